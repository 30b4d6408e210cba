/*
 * Where results are: the kinds of memory, and allocators of the program, from the decoder to the last tensor. "Pinned" and
 * "device" are only names here: the memory is the C library's, or none at all where nobody may touch it. Batches are in
 * test_collate.c.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/allocator.h>
#include <weir/arrays.h>
#include <weir/collate.h>
#include <weir/engine.h>
#include <weir/files.h>
#include <weir/image.h>
#include <weir/isolated.h>
#include <weir/video.h>

#include "stages/batch/dlpack_layout.h"
#include "tests/clips.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- kinds ---------------------------------------------------------------------------------------------------- */

TEST_CASE(the_cpu_may_touch_host_pinned_and_managed_memory_only)
{
    static const struct {
        weir_memory_kind kind;
        bool is_accessible;
        const char *name;
    } kinds[] = {
        { WEIR_MEMORY_HOST, true, "host" },
        { WEIR_MEMORY_CUDA_HOST, true, "pinned host (CUDA)" },
        { WEIR_MEMORY_ROCM_HOST, true, "pinned host (ROCm)" },
        { WEIR_MEMORY_CUDA_MANAGED, true, "managed (CUDA)" },
        { WEIR_MEMORY_CUDA, false, "CUDA" },
        { WEIR_MEMORY_ROCM, false, "ROCm" },
        { WEIR_MEMORY_ONEAPI, false, "oneAPI" },
        { WEIR_MEMORY_OTHER, false, "another device's" },
        { (weir_memory_kind)1, false, "unknown" }, /* kDLCPU is WEIR_MEMORY_HOST here */
        { (weir_memory_kind)99, false, "unknown" },
    };
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        weir_memory memory = { kinds[i].kind, 3 };
        weir_error error = { 0 };
        assert_string_equal(weir_memory_kind_name(kinds[i].kind), kinds[i].name);
        assert_int_equal(weir_memory_is_accessible(memory), kinds[i].is_accessible);
        assert_int_equal(weir_memory_check(memory, "sharpening", &error),
                         kinds[i].is_accessible ? WEIR_OK : WEIR_EUNSUPPORTED);
        if (!kinds[i].is_accessible) {
            assert_non_null(strstr(error.message, "sharpening: "));
            assert_non_null(strstr(error.message, kinds[i].name));
            assert_non_null(strstr(error.message, "device 3"));
        }
    }
}

/* ---- an allocator that keeps count ---------------------------------------------------------------------------- */

typedef struct counted_memory {
    atomic_size_t num_allocated, num_freed, num_bytes;
    atomic_int num_closed;
    size_t most; /* allocations, after which it has no more (0 = any number) */
} counted_memory;

/* The size is in front of the block: it must be the same at the end. */
enum { HEAD = 64 };

static void *counted_allocate(void *self, size_t num_bytes)
{
    counted_memory *memory = self;
    if (memory->most && atomic_load(&memory->num_allocated) == memory->most)
        return NULL;
    char *block = malloc(HEAD + num_bytes);
    if (!block)
        return NULL;
    atomic_fetch_add(&memory->num_allocated, 1);
    atomic_fetch_add(&memory->num_bytes, num_bytes);
    memcpy(block, &num_bytes, sizeof num_bytes);
    return block + HEAD;
}

static void counted_free(void *self, void *data, size_t num_bytes)
{
    counted_memory *memory = self;
    char *block = (char *)data - HEAD;
    if (memcmp(block, &num_bytes, sizeof num_bytes) != 0)
        abort();
    memset(block, 0xa5, HEAD + num_bytes);
    atomic_fetch_add(&memory->num_freed, 1);
    free(block);
}

static void counted_close(void *self)
{
    counted_memory *memory = self;
    if (atomic_load(&memory->num_allocated) != atomic_load(&memory->num_freed))
        abort(); /* it is the last call */
    atomic_fetch_add(&memory->num_closed, 1);
}

static weir_allocator *allocator_of(counted_memory *memory, weir_memory_kind kind)
{
    weir_allocator *allocator;
    weir_error error = { 0 };
    weir_allocator_config config = { .memory = { kind, 0 },
                                     .self = memory,
                                     .allocate = counted_allocate,
                                     .free = counted_free,
                                     .close = counted_close };
    if (weir_allocator_new(&config, &allocator, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return allocator;
}

TEST_CASE(an_allocator_that_makes_no_sense_is_refused_and_not_closed)
{
    static const struct {
        weir_memory memory;
        bool without_allocate, without_free;
        const char *message;
    } cases[] = {
        { { WEIR_MEMORY_HOST, 0 }, true, false, "both allocate and free" },
        { { WEIR_MEMORY_HOST, 0 }, false, true, "both allocate and free" },
        { { WEIR_MEMORY_HOST, 1 }, false, false, "must be 0" },
        { { WEIR_MEMORY_CUDA_HOST, 1 }, false, false, "must be 0" },
        { { WEIR_MEMORY_CUDA, -1 }, false, false, "0 or more" },
        { { (weir_memory_kind)1, 0 }, false, false, "kind 1 is none of WEIR_MEMORY_" },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        counted_memory memory = { 0 };
        weir_error error = { 0 };
        weir_allocator *allocator = (weir_allocator *)&memory;
        weir_allocator_config config = { .memory = cases[i].memory,
                                         .self = &memory,
                                         .allocate = cases[i].without_allocate ? NULL : counted_allocate,
                                         .free = cases[i].without_free ? NULL : counted_free,
                                         .close = counted_close };
        assert_int_equal(weir_allocator_new(&config, &allocator, &error), WEIR_EINVAL);
        assert_null(allocator);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s", error.message);
        assert_int_equal(atomic_load(&memory.num_closed), 0);
    }
}

TEST_CASE(an_allocator_says_what_memory_it_gives_and_is_closed_once)
{
    counted_memory memory = { 0 };
    weir_allocator *allocator;
    weir_allocator_config config = { .memory = { WEIR_MEMORY_CUDA, 7 },
                                     .self = &memory,
                                     .allocate = counted_allocate,
                                     .free = counted_free,
                                     .close = counted_close };
    assert_int_equal(weir_allocator_new(&config, &allocator, NULL), WEIR_OK);
    assert_int_equal(weir_allocator_memory(allocator).kind, WEIR_MEMORY_CUDA);
    assert_int_equal(weir_allocator_memory(allocator).device, 7);
    weir_allocator_free(allocator);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

/* ---- decoding ------------------------------------------------------------------------------------------------- */

static const char *some_video(void)
{
    return clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:r=10 -t 3 -pix_fmt yuv420p -c:v libx264 -g 10");
}

static const char *some_picture(void)
{
    return clips_make("picture.png", "-f lavfi -i testsrc2=s=64x48 -frames:v 1");
}

/* WEIR_OK, or the failure to build with *error filled. */
static int start(const char *path, size_t num_times, const weir_op *op, const void *config, weir_pipeline **pipeline,
                 weir_error *error)
{
    const char *paths[16];
    assert_true(num_times <= LENGTH(paths));
    for (size_t i = 0; i < num_times; i++)
        paths[i] = path;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = num_times }, NULL);
    weir_builder_pipe(builder, op, config, op->config_size, NULL);
    weir_builder_sink(builder, NULL);
    *pipeline = NULL;
    return weir_builder_build(builder, NULL, pipeline, error);
}

/* The next result; NULL at the end. */
static weir_item next_of(weir_pipeline *pipeline)
{
    weir_item item = { 0 };
    int status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    assert_true(status == WEIR_OK || status == WEIR_EOF);
    return item;
}

static weir_item only_result(const char *path, const weir_op *op, const void *config)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline;
    if (start(path, 1, op, config, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_item item = next_of(pipeline);
    assert_non_null(item.data);
    assert_null(next_of(pipeline).data);
    weir_pipeline_free(pipeline);
    return item;
}

static void assert_same_values(const weir_frames *a, const weir_frames *b)
{
    assert_int_equal(a->num_frames, b->num_frames);
    assert_int_equal(a->frame_bytes, b->frame_bytes);
    assert_memory_equal(a->data, b->data, a->num_frames * a->frame_bytes);
    assert_memory_equal(a->pts, b->pts, a->num_frames * sizeof *a->pts);
}

TEST_CASE(frames_are_decoded_into_the_programs_memory_and_are_the_same)
{
    static const weir_pixel pixels[] = { WEIR_PIXEL_RGB24, WEIR_PIXEL_GRAY8,  WEIR_PIXEL_YUV420P,
                                         WEIR_PIXEL_RGB48, WEIR_PIXEL_GRAY16, WEIR_PIXEL_YUV420P10 };
    for (size_t i = 0; i < LENGTH(pixels); i++) {
        counted_memory memory = { 0 };
        weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_CUDA_HOST);
        weir_item plain = only_result(some_video(), &weir_video_decode,
                                      &(weir_video_config){ WEIR_WITH_PICTURE(.pixel = pixels[i]) });
        weir_item own =
            only_result(some_video(), &weir_video_decode,
                        &(weir_video_config){ WEIR_WITH_PICTURE(.pixel = pixels[i]), .allocator = allocator });
        const weir_frames *frames = own.data;
        assert_int_equal(frames->memory.kind, WEIR_MEMORY_CUDA_HOST);
        assert_int_equal(((const weir_frames *)plain.data)->memory.kind, WEIR_MEMORY_HOST);
        assert_int_equal(frames->num_frames, 30);
        assert_same_values(plain.data, frames);
        assert_int_equal(atomic_load(&memory.num_allocated), 1); /* the container says how many frames there are */
        size_t num_bytes;
        memcpy(&num_bytes, frames->data - HEAD, sizeof num_bytes); /* it is the block itself */
        assert_int_equal(num_bytes, atomic_load(&memory.num_bytes));
        assert_true(frames->memory_bytes >= num_bytes && own.size_bytes == frames->memory_bytes);
        weir_item_release(&own);
        weir_item_release(&plain);
        assert_int_equal(atomic_load(&memory.num_closed), 0);
        weir_allocator_free(allocator);
        assert_int_equal(atomic_load(&memory.num_closed), 1);
    }
}

/* An AVI or a raw stream does not say how many frames there are; the order of indices moves frames within the block. */
TEST_CASE(frames_whose_number_is_unknown_move_to_larger_blocks)
{
    const char *path =
        clips_make("raw.h264", "-f lavfi -i testsrc2=s=64x48:r=10 -t 6 -pix_fmt yuv420p -c:v libx264 -g 10");
    counted_memory memory = { 0 };
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_HOST);
    weir_item plain = only_result(path, &weir_video_decode, &(weir_video_config){ 0 });
    weir_item own = only_result(path, &weir_video_decode, &(weir_video_config){ .allocator = allocator });
    assert_int_equal(((const weir_frames *)own.data)->num_frames, 60);
    assert_same_values(plain.data, own.data);
    assert_true(atomic_load(&memory.num_allocated) > 1);
    weir_item_release(&own);
    weir_item_release(&plain);

    const int64_t indices[] = { 20, 3, 11, 3 };
    weir_video_config config = {
        .sampling = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = LENGTH(indices) }
    };
    plain = only_result(some_video(), &weir_video_decode, &config);
    config.allocator = allocator;
    own = only_result(some_video(), &weir_video_decode, &config);
    assert_same_values(plain.data, own.data);
    weir_item_release(&own);
    weir_item_release(&plain);
    weir_allocator_free(allocator);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

TEST_CASE(a_picture_is_decoded_into_the_programs_memory)
{
    counted_memory memory = { 0 };
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_ROCM_HOST);
    weir_item plain = only_result(some_picture(), &weir_image_decode, &(weir_image_config){ 0 });
    weir_item own = only_result(some_picture(), &weir_image_decode, &(weir_image_config){ .allocator = allocator });
    weir_allocator_free(allocator);
    assert_int_equal(((const weir_frames *)own.data)->memory.kind, WEIR_MEMORY_ROCM_HOST);
    assert_same_values(plain.data, own.data);
    assert_int_equal(atomic_load(&memory.num_allocated), 1);
    assert_int_equal(atomic_load(&memory.num_closed), 0); /* the picture is an owner, after the pipeline */
    weir_item_release(&own);
    weir_item_release(&plain);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

TEST_CASE(blocks_are_used_again)
{
    counted_memory memory = { 0 };
    weir_error error = { 0 };
    weir_pipeline *pipeline;
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_CUDA_HOST);
    weir_item item;
    int num_items = 0;
    int status = start(some_video(), 16, &weir_video_decode, &(weir_video_config){ .allocator = allocator },
                       &pipeline, &error);
    assert_int_equal(status, WEIR_OK);
    weir_allocator_free(allocator);
    for (; (item = next_of(pipeline)).data; num_items++)
        weir_item_release(&item);
    assert_int_equal(num_items, 16);
    assert_in_range(atomic_load(&memory.num_allocated), 1, 10); /* one worker, and queues of a few items */
    weir_pipeline_free(pipeline);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

/* Whoever is the last one: a tensor outlives the frames, which outlive the pipeline, which outlives the program's part. */
TEST_CASE(the_last_call_comes_once_after_the_last_tensor)
{
    counted_memory memory = { 0 };
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_CUDA_HOST);
    weir_item item = only_result(some_video(), &weir_video_decode, &(weir_video_config){ .allocator = allocator });
    struct DLManagedTensorVersioned *made[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_to_dlpack(&item, i ? WEIR_ARRAY_PTS : WEIR_ARRAY_DATA, NULL, &made[i], NULL), WEIR_OK);
    dl_versioned *data = (dl_versioned *)(void *)made[0];
    dl_versioned *pts = (dl_versioned *)(void *)made[1];
    assert_int_equal(data->tensor.device.type, 3); /* kDLCUDAHost */
    assert_int_equal(data->tensor.device.id, 0);
    weir_allocator_free(allocator);
    weir_item_release(&item);
    data->deleter(data);
    assert_int_equal(((const int64_t *)pts->tensor.data)[0], 0);
    assert_int_equal(atomic_load(&memory.num_closed), 0);
    pts->deleter(pts); /* of host memory, but its frames are not */
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

static void *end_view(void *self)
{
    dl_versioned *tensor = self;
    tensor->deleter(tensor);
    return NULL;
}

/* Each thread frees one owner; one of them frees all. */
TEST_CASE(tensors_end_on_any_thread_and_the_last_call_is_still_one)
{
    enum { NUM_VIEWS = 8 };
    counted_memory memory = { 0 };
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_CUDA_HOST);
    weir_item item = only_result(some_picture(), &weir_image_decode, &(weir_image_config){ .allocator = allocator });
    struct DLManagedTensorVersioned *views[NUM_VIEWS];
    pthread_t threads[NUM_VIEWS];
    for (int i = 0; i < NUM_VIEWS; i++)
        assert_int_equal(weir_to_dlpack(&item, i % 2 ? WEIR_ARRAY_PTS : WEIR_ARRAY_DATA, NULL, &views[i], NULL),
                         WEIR_OK);
    for (int i = 0; i < NUM_VIEWS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, end_view, views[i]), 0);
    weir_item_release(&item);
    weir_allocator_free(allocator);
    for (int i = 0; i < NUM_VIEWS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

TEST_CASE(stages_of_other_sizes_share_an_allocator)
{
    counted_memory memory = { 0 };
    weir_error error = { 0 };
    weir_pipeline *pipeline = NULL;
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_CUDA_HOST);
    const char *paths[16];
    for (size_t i = 0; i < LENGTH(paths); i++)
        paths[i] = some_video();
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = LENGTH(paths) }, NULL);
    weir_pipe_video(builder, &(weir_video_config){ .allocator = allocator }, NULL);
    weir_pipe_collate(
        builder, &(weir_collate_config){ .num_items = 4, .dtype = WEIR_DTYPE_FLOAT32, .allocator = allocator }, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1 }, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_allocator_free(allocator);
    weir_item item;
    int num_batches = 0;
    for (; (item = next_of(pipeline)).data; num_batches++) {
        assert_int_equal(((const weir_collated *)item.data)->memory.kind, WEIR_MEMORY_CUDA_HOST);
        weir_item_release(&item);
    }
    assert_int_equal(num_batches, 4);
    assert_in_range(atomic_load(&memory.num_allocated), 2, 15); /* 20 without reuse */
    weir_pipeline_free(pipeline);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

TEST_CASE(an_allocator_without_memory_fails_the_item)
{
    counted_memory memory = { .most = 1 };
    weir_error error = { 0 };
    weir_pipeline *pipeline;
    const char *path =
        clips_make("raw.h264", "-f lavfi -i testsrc2=s=64x48:r=10 -t 6 -pix_fmt yuv420p -c:v libx264 -g 10");
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_CUDA_HOST);
    int status =
        start(path, 1, &weir_video_decode, &(weir_video_config){ .allocator = allocator }, &pipeline, &error);
    assert_int_equal(status, WEIR_OK);
    assert_null(next_of(pipeline).data);
    assert_int_equal(weir_pipeline_error(pipeline, "decode", &error), WEIR_ENOMEM);
    weir_pipeline_free(pipeline);
    weir_allocator_free(allocator);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

static void decode_and_release(weir_allocator *allocator, bool is_video)
{
    weir_item item =
        is_video ? only_result(some_video(), &weir_video_decode, &(weir_video_config){ .allocator = allocator })
                 : only_result(some_picture(), &weir_image_decode, &(weir_image_config){ .allocator = allocator });
    weir_item_release(&item);
}

TEST_CASE(blocks_that_suit_now_and_then_are_kept)
{
    counted_memory memory = { 0 };
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_HOST);
    for (int i = 0; i < 60; i++)
        decode_and_release(allocator, i % 20 == 0);
    assert_int_equal(atomic_load(&memory.num_allocated), 2);
    assert_int_equal(atomic_load(&memory.num_freed), 0);
    weir_allocator_free(allocator);
}

/* A block of a size that nobody asks for any more does not stay until the end. */
TEST_CASE(blocks_that_do_not_suit_for_long_are_freed)
{
    counted_memory memory = { 0 };
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_HOST);
    decode_and_release(allocator, true);
    assert_int_equal(atomic_load(&memory.num_freed), 0);
    for (int i = 0; i < 40; i++)
        decode_and_release(allocator, false);
    assert_int_equal(atomic_load(&memory.num_allocated), 2);
    assert_int_equal(atomic_load(&memory.num_freed), 1);
    weir_allocator_free(allocator);
}

/* ---- what cannot be ------------------------------------------------------------------------------------------- */

static void expect_refusal(const weir_op *op, const void *config, const char *message)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline;
    assert_int_equal(start("x", 1, op, config, &pipeline, &error), WEIR_EUNSUPPORTED);
    if (!strstr(error.message, message))
        fail_msg("%s", error.message);
}

TEST_CASE(stages_that_run_on_the_cpu_refuse_an_allocator_of_a_device)
{
    counted_memory memory = { 0 };
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_CUDA);
    expect_refusal(&weir_video_decode, &(weir_video_config){ .allocator = allocator }, "cannot write to CUDA memory");
    expect_refusal(&weir_image_decode, &(weir_image_config){ .allocator = allocator }, "cannot write to CUDA memory");
    weir_error error = { 0 };
    weir_collate_config config = { .num_items = 1, .allocator = allocator };
    assert_int_equal(weir_collate.config_init(&config, &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "collate"));
    assert_int_equal(atomic_load(&memory.num_closed), 0); /* a refusal does not end it */
    weir_allocator_free(allocator);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

/* Another option is wrong: what was taken is given back. */
TEST_CASE(a_pipeline_that_cannot_be_built_is_no_owner)
{
    counted_memory memory = { 0 };
    weir_error error = { 0 };
    weir_pipeline *pipeline = NULL;
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_HOST);
    const char *path = "x";
    weir_audio_config sound = { .channels = 1000000 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_video(builder, &(weir_video_config){ .allocator = allocator }, NULL);
    weir_pipe_collate(builder, &(weir_collate_config){ .num_items = 1, .flip = 2, .allocator = allocator }, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    weir_video_config wrong_sound = { .allocator = allocator, .audio = &sound, .audio_size = sizeof sound };
    assert_int_not_equal(start(path, 1, &weir_video_decode, &wrong_sound, &pipeline, &error), WEIR_OK);
    assert_int_equal(atomic_load(&memory.num_closed), 0);
    weir_allocator_free(allocator);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

TEST_CASE(a_child_process_has_no_memory_of_the_program)
{
    counted_memory memory = { 0 };
    weir_allocator *allocator = allocator_of(&memory, WEIR_MEMORY_CUDA_HOST);
    weir_video_config video = { .allocator = allocator };
    weir_image_config image = { .allocator = allocator };
    expect_refusal(&weir_isolated,
                   &(weir_isolated_config){ .op = &weir_video_decode, .config = &video, .config_size = sizeof video },
                   "decode with an allocator");
    expect_refusal(&weir_isolated,
                   &(weir_isolated_config){ .op = &weir_image_decode, .config = &image, .config_size = sizeof image },
                   "image with an allocator");
    weir_allocator_free(allocator);
    assert_int_equal(atomic_load(&memory.num_closed), 1);
}

/* -- values on a device: nobody reads them, so there need not be any */

static weir_frames *device_frames(void)
{
    weir_frames *frames = calloc(1, sizeof *frames);
    assert_non_null(frames);
    *frames = (weir_frames){
        .num_frames = 2, .height = 4, .width = 4, .channels = 3, .frame_bytes = 48, .memory = { WEIR_MEMORY_CUDA, 1 }
    };
    frames->pts = calloc(2, sizeof *frames->pts);
    return frames;
}

static int give_device_frames(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    bool *is_done = worker;
    (void)in;
    (void)task;
    if (*is_done)
        return WEIR_EOF;
    *is_done = true;
    *out = (weir_item){ .data = device_frames(), .release = weir_frames_release };
    return WEIR_OK;
}

static const weir_op device_source = {
    .name = "device", .makes = WEIR_TYPE_FRAMES, .worker_size = sizeof(bool), .run = give_device_frames
};

static void expect_device_error(int status, const weir_error *error, const char *who)
{
    assert_int_equal(status, WEIR_EUNSUPPORTED);
    if (!strstr(error->message, who) || !strstr(error->message, "CUDA memory (device 1)"))
        fail_msg("%s", error->message);
}

TEST_CASE(frames_on_a_device_are_not_collated)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline = NULL;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &device_source, NULL, 0, NULL);
    weir_pipe_collate(builder, &(weir_collate_config){ .num_items = 1 }, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_OK);
    assert_null(next_of(pipeline).data);
    int status = weir_pipeline_error(pipeline, "collate", &error);
    expect_device_error(status, &error, "collate: ");
    weir_pipeline_free(pipeline);
}

TEST_CASE(frames_and_batches_on_a_device_are_not_written)
{
    weir_frames *frames = device_frames();
    weir_collated batch = { .shape = { 1, 1, 1, 1, 1 }, .memory = { WEIR_MEMORY_CUDA, 1 } };
    weir_item items[] = { { .data = frames, .type = WEIR_TYPE_FRAMES },
                          { .data = &batch, .type = WEIR_TYPE_COLLATED } };
    for (size_t i = 0; i < LENGTH(items); i++) {
        weir_error error = { 0 };
        expect_device_error(weir_write_npy(&items[i], clips_path("a.npy"), &error), &error, "npy: ");
        error = (weir_error){ 0 };
        expect_device_error(weir_write_safetensors(&items[i], clips_path("a.safetensors"), &error), &error,
                            "safetensors: ");
        assert_int_not_equal(access(clips_path("a.npy"), F_OK), 0);
        assert_int_not_equal(access(clips_path("a.safetensors"), F_OK), 0);
    }
    weir_frames_free(frames);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
