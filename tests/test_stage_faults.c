/* Every allocation, file, thread, child process and SQL statement of weir-stages and weir-dataset fails: see
   fault_loop.h. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <dirent.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
#include <spawn.h>

#include <weir/dataset.h>
#include <weir/engine.h>
#include <weir/isolated.h>
#include <weir/sampler.h>
#include <weir/stages.h>

#include "stages/batch/dlpack_layout.h"
#include "tests/clips.h"
#include "tests/fault_loop.h"

/* ---- what else may fail ----------------------------------------------------------------------------------------- */

WRAP(AVFrame *, av_frame_alloc, (void), (), NULL)
WRAP(AVPacket *, av_packet_alloc, (void), (), NULL)
WRAP(AVCodecContext *, avcodec_alloc_context3, (const AVCodec *codec), (codec), NULL)
WRAP(AVFormatContext *, avformat_alloc_context, (void), (), NULL)
WRAP(void *, av_malloc, (size_t size), (size), NULL)
WRAP(void *, av_calloc, (size_t count, size_t size), (count, size), NULL)
WRAP(AVBufferRef *, av_buffer_ref, (const AVBufferRef *buffer), (buffer), NULL)
WRAP(int, av_frame_ref, (AVFrame * to, const AVFrame *from), (to, from), AVERROR(ENOMEM))
WRAP(int, avcodec_open2, (AVCodecContext * context, const AVCodec *codec, AVDictionary **options),
     (context, codec, options), AVERROR(ENOMEM))
WRAP(struct SwsContext *, sws_alloc_context, (void), (), NULL)
WRAP(DIR *, fdopendir, (int fd), (fd), NULL)
WRAP(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
     (at, size, protection, flags, fd, offset), MAP_FAILED)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
WRAP(int, posix_spawn,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
      char *const argv[], char *const envp[]),
     (pid, path, actions, attributes, argv, envp), ENOMEM)

/* ---- a pipeline, and what comes out of it ----------------------------------------------------------------------- */

static const char *folder, *clip, *turned, *picture, *archives, *archive, *index_path; /* what is read */
static const char *npy, *safetensors, *new_index;                                      /* what is written */

static uint64_t hash(const void *data, size_t num_bytes)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);
    for (const uint8_t *byte = data; num_bytes > 0; num_bytes--)
        value = (value ^ *byte++) * UINT64_C(0x100000001b3);
    return value;
}

static int check_errors(uint64_t num_errors, weir_error *error)
{
    return num_errors ? weir_error_set(error, WEIR_EDATA, 0, "%" PRIu64 " errors in a result", num_errors) : WEIR_OK;
}

static int put_audio(FILE *out, const weir_audio *audio, weir_error *error)
{
    fprintf(out, "%" PRIu64 " samples %016" PRIx64 "\n", audio->num_samples,
            hash(audio->data, (size_t)audio->num_samples * audio->channels * sizeof *audio->data));
    return check_errors(audio->num_errors, error);
}

static int put_frames(FILE *out, const weir_frames *frames, weir_error *error)
{
    fprintf(out, "%u frames of %ux%u %016" PRIx64 "\n", frames->num_frames, frames->width, frames->height,
            hash(frames->data, frames->num_frames * frames->frame_bytes));
    int status = frames->audio ? put_audio(out, frames->audio, error) : WEIR_OK;
    return status == WEIR_OK ? check_errors(frames->num_errors + frames->num_missing_frames, error) : status;
}

static int put_item(FILE *out, const weir_item *item, weir_error *error)
{
    if (strcmp(item->type, WEIR_TYPE_FRAMES) == 0)
        return put_frames(out, item->data, error);
    if (strcmp(item->type, WEIR_TYPE_AUDIO) == 0)
        return put_audio(out, item->data, error);
    if (strcmp(item->type, WEIR_TYPE_PROBE) == 0) {
        const weir_probe_result *result = item->data;
        fprintf(out, "%s: %" PRIu64 " frames, table of %zu bytes\n", result->codec, result->num_frames,
                result->packets_bytes);
        *error = result->error;
        return result->error.status;
    }
    if (strcmp(item->type, WEIR_TYPE_COLLATED) == 0) {
        const weir_collated *batch = item->data;
        fprintf(out, "%zu clips %016" PRIx64 "\n", batch->num_items, hash(batch->data, batch->data_bytes));
        return WEIR_OK;
    }
    fprintf(out, "%s\n", strrchr(item->label, '/'));
    return WEIR_OK;
}

typedef struct stage {
    const weir_op *op;
    const void *config;
} stage;

static int first_error(weir_pipeline *pipeline, const stage *stages, weir_error *error)
{
    int status = weir_pipeline_error(pipeline, NULL, error);
    for (; stages->op && status == WEIR_OK; stages++)
        status = weir_pipeline_error(pipeline, stages->op->name, error);
    return status;
}

static void assert_nothing_is_lost(weir_pipeline *pipeline)
{
    weir_account all;
    assert_int_equal(weir_pipeline_account(pipeline, NULL, &all), WEIR_OK);
    assert_int_equal(all.taken + all.created,
                     all.passed_on + all.skipped + all.failed + all.dropped + all.merged + all.in_flight);
}

/* The first stage is the source; the last one has no op. */
static int run(const stage *stages, FILE *out, weir_error *error)
{
    weir_pipeline *pipeline;
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, stages->op, stages->config, stages->op->config_size,
                        &(weir_stage_options){ .name = stages->op->name });
    for (const stage *next = stages + 1; next->op; next++)
        weir_builder_pipe(builder, next->op, next->config, next->op->config_size, NULL);
    weir_builder_sink(builder, NULL);
    int status = weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1 }, &pipeline, error);
    if (status != WEIR_OK)
        return status;
    while (status == WEIR_OK && weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        status = put_item(out, &item, error);
        weir_item_release(&item);
    }
    if (status == WEIR_OK)
        status = first_error(pipeline, stages, error);
    assert_nothing_is_lost(pipeline);
    weir_pipeline_free(pipeline);
    return status;
}

/* One file through one stage. */
static int run_file(const char *path, const weir_op *op, const void *config, FILE *out, weir_error *error)
{
    const weir_list_config list = { .paths = &path, .num_paths = 1 };
    const stage stages[] = { { &weir_list_source, &list }, { op, config }, { 0 } };
    return run(stages, out, error);
}

#define DECODING(name, path, op, ...) \
    static int name(FILE *out, weir_error *error) \
    { \
        return run_file(path, &op, &(__VA_ARGS__), out, error); \
    }

/* ---- decoding --------------------------------------------------------------------------------------------------- */

static const weir_audio_config sound = { .sample_rate = 22050, .channels = 2 };

DECODING(decode_all, clip, weir_video_decode, (weir_video_config){ WEIR_WITH_PICTURE(.width = 32, .height = 32) })
DECODING(decode_exactly, turned, weir_video_decode,
         (weir_video_config){
             WEIR_WITH_PICTURE(.width = 32, .height = 24, .scaler = WEIR_SCALER_EXACT, .layout = WEIR_LAYOUT_NCHW) })
DECODING(decode_filtered, clip, weir_video_decode,
         (weir_video_config){ WEIR_WITH_PICTURE(.filter = "hflip", .pixel = WEIR_PIXEL_GRAY8) })
DECODING(decode_some, clip, weir_video_decode,
         (weir_video_config){ WEIR_WITH_PICTURE(.width = 16, .height = 16, .scaler = WEIR_SCALER_FAST),
                              WEIR_WITH_INPUT(.io_thread = 1),
                              .sampling = { .what = WEIR_SAMPLE_UNIFORM, .count = 4 } })
DECODING(decode_chunks, clip, weir_video_decode,
         (weir_video_config){ .chunk_frames = 4, .audio = &sound, .audio_size = sizeof sound })
DECODING(decode_sound, clip, weir_audio_decode, sound)
DECODING(decode_picture, picture, weir_image_decode,
         (weir_image_config){ WEIR_WITH_PICTURE(.width = 16, .height = 16) })
DECODING(probe, clip, weir_probe, (weir_probe_config){ .check = WEIR_PROBE_ALL })
DECODING(decode_in_a_process, clip, weir_isolated,
         (weir_isolated_config){ .op = &weir_video_decode, .no_sandbox = NO_SANDBOX })

/* Data of a pipe is kept in a temporary file. */
static int decode_pipe(FILE *out, weir_error *error)
{
    int fds[2];
    char bytes[32 << 10], name[32];
    fault_arm(false);
    FILE *file = fopen(clip, "rb");
    assert_true(file && pipe(fds) == 0);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(feof(file) && write(fds[1], bytes, size) == (ssize_t)size);
    fclose(file);
    close(fds[1]);
    fault_arm(true);
    snprintf(name, sizeof name, "pipe:%d", fds[0]);
    int status = run_file(name, &weir_video_decode,
                          &(weir_video_config){ WEIR_WITH_INPUT(.allow = WEIR_ALLOW_PIPES) }, out, error);
    close(fds[0]);
    return status;
}

/* ---- a reader ---------------------------------------------------------------------------------------------------- */

static int ask_into(weir_video_reader *reader, FILE *out, weir_error *error)
{
    static uint8_t data[3 * 32 * 32 * 3];
    const weir_sampling three = { .what = WEIR_SAMPLE_UNIFORM, .count = 3 };
    const weir_picture_config size = { .width = 32, .height = 32 };
    weir_frames *frames = NULL;
    int rc = weir_video_reader_frames_into(reader, &three, sizeof three, &size, sizeof size, data, sizeof data,
                                           &frames, error);
    rc = rc == WEIR_OK ? put_frames(out, frames, error) : rc;
    weir_frames_free(frames);
    return rc;
}

static int ask_all(weir_video_reader *reader, FILE *out, weir_error *error)
{
    weir_frames *frames = NULL;
    int rc = weir_video_reader_begin(reader, NULL, 0, NULL, 0, error);
    while (rc == WEIR_OK && (rc = weir_video_reader_next(reader, &frames, error)) == WEIR_OK) {
        rc = put_frames(out, frames, error);
        weir_frames_free(frames);
    }
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

static int ask_sound(weir_video_reader *reader, FILE *out, weir_error *error)
{
    weir_audio *audio = NULL;
    const weir_audio_config mono = { .channels = 1, .sample_rate = 16000 };
    int rc = weir_video_reader_sound(reader, &mono, sizeof mono, 100000000, 200000000, &audio, error);
    rc = rc == WEIR_OK ? put_audio(out, audio, error) : rc;
    weir_audio_free(audio);
    return rc;
}

static int ask_reader(FILE *out, weir_error *error)
{
    const weir_video_source source = { .path = clip };
    const weir_video_config config = { .damage = WEIR_DAMAGE_STRICT, .chunk_frames = 4 };
    weir_video_reader *reader = NULL;
    weir_frames_size size;
    int rc = weir_video_reader_open(&reader, &source, sizeof source, &config, sizeof config, error);
    if (rc == WEIR_OK)
        rc = weir_video_reader_measure(reader, NULL, 0, NULL, 0, &size, sizeof size, error);
    if (rc == WEIR_OK)
        rc = ask_into(reader, out, error);
    if (rc == WEIR_OK)
        rc = ask_sound(reader, out, error);
    if (rc == WEIR_OK)
        rc = ask_all(reader, out, error);
    weir_video_reader_free(reader);
    return rc;
}

TEST_CASE(readers_bear_every_fault)
{
    BEARS_EVERY_FAULT(ask_reader);
}

TEST_CASE(decoding_bears_every_fault)
{
    BEARS_EVERY_FAULT(decode_all);
    BEARS_EVERY_FAULT(decode_exactly);
    BEARS_EVERY_FAULT(decode_some);
    BEARS_EVERY_FAULT(decode_chunks);
    BEARS_EVERY_FAULT(decode_pipe);
    BEARS_EVERY_FAULT(decode_sound);
    BEARS_EVERY_FAULT(decode_picture);
    BEARS_EVERY_FAULT(probe);
    BEARS_EVERY_FAULT(decode_in_a_process);
    BEARS_EVERY_FAULT(decode_filtered);
}

/* Calls of the child fail: this program, see main(). */
TEST_CASE(children_bear_every_fault)
{
    const weir_isolated_config config = { .op = &weir_video_decode,
                                          .program = "/proc/self/exe",
                                          .no_sandbox = NO_SANDBOX };
    char expected[256] = "", result[256], fault[32];
    for (int i = -1; i < 2 * 5; i++) { /* none; the 1st, 4th, 16th, … */
        weir_error error = { 0 };
        FILE *out = fmemopen(i < 0 ? expected : memset(result, 0, sizeof result), sizeof result, "w");
        snprintf(fault, sizeof fault, "%d%s", i < 0 ? 0 : 1 << i / 2 * 2, i > 0 && i % 2 ? "+" : "");
        setenv("WEIR_CHILD_FAULT", fault, 1);
        int status = run_file(clip, &weir_isolated, &config, out, &error);
        fclose(out);
        if (i < 0 && status != WEIR_OK)
            fail_msg("without a fault: %s", error.message);
        if (i < 0)
            continue;
        if (status == WEIR_OK)
            assert_string_equal(result, expected);
        else
            assert_true(error.status == status && error.message[0]);
    }
}

/* ---- memory of the program, and tensors ------------------------------------------------------------------------- */

static void *give_memory(void *self, size_t num_bytes)
{
    (void)self;
    return malloc(num_bytes);
}

static void take_memory(void *self, void *data, size_t num_bytes)
{
    (void)self;
    (void)num_bytes;
    free(data);
}

static void count_close(void *self)
{
    ++*(int *)self;
}

static void end_loan(void *data, void *self)
{
    (void)self;
    weir_frames_free(data);
}

static weir_frames *take_frames(void)
{
    weir_pipeline *pipeline;
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &clip, .num_paths = 1 }, NULL);
    weir_pipe_video(builder, NULL, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    weir_pipeline_free(pipeline);
    weir_frames *frames = item.data;
    item.data = NULL;
    weir_item_release(&item);
    return frames;
}

/* Two views of each kind, at once; with a loan, the item's own release function is somebody else's. */
static int view_frames(weir_frames *frames, bool is_lent, weir_error *error)
{
    struct DLManagedTensorVersioned *made[2] = { NULL };
    struct DLManagedTensor *old = NULL;
    weir_item item = { .data = frames,
                       .type = WEIR_TYPE_FRAMES,
                       .release = is_lent ? end_loan : weir_frames_release };
    int status = weir_to_dlpack(&item, WEIR_ARRAY_DATA, NULL, &made[0], error);
    if (status == WEIR_OK)
        status = weir_to_dlpack(&item, WEIR_ARRAY_PTS, NULL, &made[1], error);
    if (status == WEIR_OK)
        status = weir_to_dlpack_unversioned(&item, WEIR_ARRAY_DATA, NULL, &old, error);
    weir_item_release(&item);
    for (int i = 0; i < 2; i++) {
        dl_versioned *tensor = (dl_versioned *)(void *)made[i];
        if (tensor)
            tensor->deleter(tensor);
    }
    if (old)
        ((dl_managed *)(void *)old)->deleter((dl_managed *)(void *)old);
    return status;
}

static int decode_into_own_memory(FILE *out, weir_error *error)
{
    static const weir_allocator_config config = { .allocate = give_memory,
                                                  .free = take_memory,
                                                  .close = count_close };
    int num_closed = 0;
    weir_allocator_config own = config;
    own.self = &num_closed;
    weir_allocator *allocator;
    int status = weir_allocator_new(&own, &allocator, error);
    if (status != WEIR_OK)
        return status;
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .allocator = allocator };
    const weir_collate_config collate = { .num_items = 1, .allocator = allocator };
    const weir_list_config list = { .paths = &clip, .num_paths = 1 };
    const stage stages[] = {
        { &weir_list_source, &list }, { &weir_video_decode, &video }, { &weir_collate, &collate }, { 0 }
    };
    status = run(stages, out, error);
    weir_allocator_free(allocator);
    assert_int_equal(num_closed, 1);
    return status;
}

static int hand_over_tensors(FILE *out, weir_error *error)
{
    (void)out;
    int status = WEIR_OK;
    for (int is_lent = 0; is_lent < 2 && status == WEIR_OK; is_lent++) {
        fault_arm(false);
        weir_frames *frames = take_frames();
        fault_arm(true);
        status = view_frames(frames, is_lent, error);
    }
    return status;
}

TEST_CASE(memory_of_the_program_and_tensors_bear_every_fault)
{
    BEARS_EVERY_FAULT(decode_into_own_memory);
    BEARS_EVERY_FAULT(hand_over_tensors);
}

/* ---- sources, batches, files ------------------------------------------------------------------------------------ */

static int list_folder(FILE *out, weir_error *error)
{
    weir_directory_counts counts = { 0 };
    const weir_directory_config config = { .root = folder, .glob = "*.mp4", .sorted = true, .counts = &counts };
    const stage stages[] = { { &weir_directory_source, &config }, { 0 } };
    int status = run(stages, out, error);
    return status == WEIR_OK && counts.unreadable_folders ? weir_error_set(error, WEIR_EIO, 0, "unreadable folders")
                                                          : status;
}

DECODING(read_archive, archive, weir_tar_read, (weir_tar_config){ .samples = true })

static int make_batches(FILE *out, weir_error *error)
{
    const char *const paths[] = { clip, turned, clip };
    const weir_sampler_source_config source = {
        .sampler = { .num_items = 3, .order = WEIR_SAMPLER_SHUFFLED, .weights = (const double[]){ 1, 2, 3 } },
        .paths = paths
    };
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .sampling = { .count = 2 } };
    const weir_collate_config collate = {
        .num_items = 2, .dtype = WEIR_DTYPE_FLOAT32, .crop = WEIR_CROP_RESIZED, .crop_width = 8, .crop_height = 8
    };
    const stage stages[] = {
        { &weir_sampler_source, &source }, { &weir_shuffle, &(weir_shuffle_config){ .num_items = 2 } },
        { &weir_video_decode, &video },    { &weir_cache, &(weir_cache_config){ .num_items = 1, .num_replays = 2 } },
        { &weir_collate, &collate },       { 0 }
    };
    return run(stages, out, error);
}

static int write_arrays(FILE *out, weir_error *error)
{
    fault_arm(false);
    weir_frames *frames = take_frames();
    const weir_item item = { .data = frames, .type = WEIR_TYPE_FRAMES };
    unlink(npy);
    unlink(safetensors);
    fault_arm(true);
    int status = weir_write_npy(&item, npy, error);
    if (status == WEIR_OK)
        status = weir_write_safetensors(&item, safetensors, error);
    fault_arm(false);
    fprintf(out, "%d %d\n", access(npy, F_OK), access(safetensors, F_OK));
    weir_frames_free(frames);
    return status;
}

static int measure_headspace(FILE *out, weir_error *error)
{
    weir_headspace *headspace;
    weir_item item;
    (void)out; /* times */
    int status = weir_headspace_new(&(weir_headspace_options){ .num_steps = 2, .num_items = 2 }, &headspace, error);
    if (status != WEIR_OK)
        return status;
    const char *const paths[] = { clip, clip, clip, clip };
    weir_pipeline *pipeline = NULL;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = 4 }, NULL);
    weir_builder_sink(builder, NULL);
    status = weir_builder_build(builder, NULL, &pipeline, error);
    while (status == WEIR_OK && (status = weir_headspace_next(headspace, pipeline, &item, WEIR_FOREVER)) == WEIR_OK)
        weir_item_release(&item);
    if (pipeline)
        status = weir_pipeline_error(pipeline, NULL, error);
    weir_pipeline_free(pipeline);
    weir_headspace_free(headspace);
    return status;
}

TEST_CASE(sources_and_batches_bear_every_fault)
{
    BEARS_EVERY_FAULT(list_folder);
    BEARS_EVERY_FAULT(read_archive);
    BEARS_EVERY_FAULT(make_batches);
    BEARS_EVERY_FAULT(write_arrays);
    BEARS_EVERY_FAULT(measure_headspace);
}

/* ---- an index --------------------------------------------------------------------------------------------------- */

/* A file that cannot be read is broken, and counted. */
static int build_index(const char *root, bool tar, FILE *out, weir_error *error)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    char path[4096];
    weir_dataset_progress progress = { 0 };
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", new_index, ends[i]);
        unlink(path);
    }
    const weir_dataset_build_options options = { .root = root, .tar = tar, .concurrency = 1 };
    int status = weir_dataset_build(new_index, &options, &progress, error);
    fprintf(out, "%" PRIu64 " of %" PRIu64 "\n", progress.num_indexed, progress.num_found);
    return status == WEIR_OK && progress.num_broken + progress.num_unreadable_folders
               ? weir_error_set(error, WEIR_EIO, 0, "not everything could be read")
               : status;
}

static int index_folder(FILE *out, weir_error *error)
{
    return build_index(folder, false, out, error);
}

static int index_archives(FILE *out, weir_error *error)
{
    return build_index(archives, true, out, error);
}

static int put_cells(void *self, const weir_dataset_cell *cells, size_t num_cells)
{
    for (size_t i = 0; i < num_cells; i++)
        fprintf(self, "%s %" PRId64 " %s\n", cells[i].name, cells[i].integer, cells[i].text ? cells[i].text : "");
    return 0;
}

static int ask(FILE *out, weir_error *error)
{
    int status = WEIR_OK;
    for (int i = WEIR_DATASET_SUMMARY; i <= WEIR_DATASET_CLIPS && status == WEIR_OK; i++)
        status = weir_dataset_ask(index_path, (weir_dataset_question)i, "size_bytes > 0", put_cells, out, error);
    return status;
}

static int read_index(FILE *out, weir_error *error)
{
    weir_dataset *dataset;
    uint32_t *classes = NULL;
    const char *const chosen[] = { "b", "a" };
    const weir_dataset_options options = { .where = "size_bytes > 0", .classes = chosen, .num_classes = 2 };
    int status = weir_dataset_open(index_path, &options, &dataset, error);
    if (status != WEIR_OK)
        return status;
    status = weir_dataset_read_classes(dataset, &classes, error);
    uint64_t num_items = weir_dataset_count(dataset);
    if (status == WEIR_OK)
        fprintf(out, "%016" PRIx64 "\n", hash(classes, num_items * sizeof *classes));
    const weir_sampler_source_config source = { .sampler = { .num_items = num_items },
                                                .items = weir_dataset_items(dataset) };
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 16, .height = 16),
                                      .sampling = { .what = WEIR_SAMPLE_KEYFRAMES } };
    const stage stages[] = { { &weir_sampler_source, &source }, { &weir_video_decode, &video }, { 0 } };
    if (status == WEIR_OK)
        status = run(stages, out, error);
    free(classes);
    weir_dataset_close(dataset);
    return status;
}

TEST_CASE(an_index_bears_every_fault)
{
    BEARS_EVERY_FAULT(index_folder);
    BEARS_EVERY_FAULT(index_archives);
    BEARS_EVERY_FAULT(read_index);
    BEARS_EVERY_FAULT(ask);
}

static int set_up(void **state)
{
    weir_dataset_progress progress;
    clips_set_up(state);
    folder = clips_path("clips");
    archives = clips_path("archives");
    archive = clips_path("archives/clips.tar");
    index_path = clips_path("index");
    new_index = clips_path("new_index");
    npy = clips_path("frames.npy");
    safetensors = clips_path("frames.safetensors");
    clips_make_folder(folder);
    clips_make_folder(archives);
    clips_make_folder(clips_path("clips/a"));
    clips_make_folder(clips_path("clips/b"));
    clip =
        clips_make("clips/a/clip.mp4", "-f lavfi -i testsrc2=s=64x48:r=10:d=1 -f lavfi -i sine=d=1 -c:v libx264 -g 5 "
                                       "-pix_fmt yuv420p -c:a aac");
    picture = clips_make("picture.jpg", "-f lavfi -i testsrc2=s=64x48 -frames:v 1");
    turned = clips_rotate(clip, "clips/b/turned.mp4", (clips_matrix){ 0, 1, -1, 0 });
    char command[8192];
    snprintf(command, sizeof command, "tar -cf '%s' -C '%s' .", archive, folder);
    return system(command) == 0 && weir_dataset_build(index_path, &(weir_dataset_build_options){ .root = folder },
                                                      &progress, NULL) == WEIR_OK
               ? 0
               : -1;
}

int main(int argc, char *argv[])
{
    const char *fault = getenv("WEIR_CHILD_FAULT");
    if (fault) {
        fault_choose(atol(fault), strchr(fault, '+') != NULL);
        fault_arm(true);
        weir_isolated_serve(argc, argv, NULL, 0);
        fault_arm(false);
    }
    fault_drop_log();
    return test_cases_run(NULL, NULL, set_up, clips_tear_down);
}
