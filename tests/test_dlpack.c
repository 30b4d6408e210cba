/* Items as DLPack tensors: what they say, who may write, and who frees. Batches are in test_collate.c. */
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/arrays.h>

#include "stages/batch/dlpack_layout.h"

#if defined __has_include
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define HAS_HEADER
#endif
#endif

enum { NUM_FRAMES = 4, HEIGHT = 3, WIDTH = 5, CHANNELS = 3, NUM_BYTES = NUM_FRAMES * HEIGHT * WIDTH * CHANNELS };

static weir_frames *frames_new(weir_memory memory)
{
    weir_frames *frames = calloc(1, sizeof *frames);
    assert_non_null(frames);
    *frames = (weir_frames){
        .num_frames = NUM_FRAMES, .height = HEIGHT, .width = WIDTH, .channels = CHANNELS, .memory = memory
    };
    frames->data = malloc(NUM_BYTES);
    frames->pts = calloc(NUM_FRAMES, sizeof *frames->pts);
    assert_non_null(frames->data);
    assert_non_null(frames->pts);
    for (size_t i = 0; i < NUM_BYTES; i++)
        frames->data[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < NUM_FRAMES; i++)
        frames->pts[i] = (int64_t)i * 512 - 1;
    return frames;
}

static weir_item frames_item(weir_memory memory)
{
    return (weir_item){ .data = frames_new(memory), .type = WEIR_TYPE_FRAMES, .release = weir_frames_release };
}

static const weir_memory host = { WEIR_MEMORY_HOST, 0 };

static dl_versioned *view(weir_item *item, weir_array_kind kind)
{
    weir_error error = { 0 };
    struct DLManagedTensorVersioned *made;
    if (weir_to_dlpack(item, kind, NULL, &made, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return (dl_versioned *)(void *)made;
}

static dl_managed *view_unversioned(weir_item *item)
{
    struct DLManagedTensor *made;
    assert_int_equal(weir_to_dlpack_unversioned(item, WEIR_ARRAY_DATA, NULL, &made, NULL), WEIR_OK);
    return (dl_managed *)(void *)made;
}

/* ---- what a tensor says ------------------------------------------------------------------------------------- */

#ifdef HAS_HEADER
#define SAME(ours, field, theirs, their_field) \
    assert_int_equal(offsetof(ours, field), offsetof(theirs, their_field)); \
    assert_int_equal(sizeof(((ours *)NULL)->field), sizeof(((theirs *)NULL)->their_field))

TEST_CASE(the_layout_is_that_of_the_installed_header)
{
    SAME(dl_tensor, data, DLTensor, data);
    SAME(dl_tensor, device.type, DLTensor, device.device_type);
    SAME(dl_tensor, device.id, DLTensor, device.device_id);
    SAME(dl_tensor, num_dims, DLTensor, ndim);
    SAME(dl_tensor, dtype.code, DLTensor, dtype.code);
    SAME(dl_tensor, dtype.bits, DLTensor, dtype.bits);
    SAME(dl_tensor, dtype.lanes, DLTensor, dtype.lanes);
    SAME(dl_tensor, shape, DLTensor, shape);
    SAME(dl_tensor, strides, DLTensor, strides);
    SAME(dl_tensor, byte_offset, DLTensor, byte_offset);
    SAME(dl_managed, tensor, DLManagedTensor, dl_tensor);
    SAME(dl_managed, context, DLManagedTensor, manager_ctx);
    SAME(dl_managed, deleter, DLManagedTensor, deleter);
    assert_int_equal(sizeof(dl_managed), sizeof(DLManagedTensor));
    assert_int_equal(DL_INT, kDLInt);
    assert_int_equal(DL_UINT, kDLUInt);
    assert_int_equal(DL_FLOAT, kDLFloat);
    assert_int_equal(DL_BFLOAT, kDLBfloat);
#ifdef DLPACK_MAJOR_VERSION
    SAME(dl_versioned, major, DLManagedTensorVersioned, version.major);
    SAME(dl_versioned, minor, DLManagedTensorVersioned, version.minor);
    SAME(dl_versioned, context, DLManagedTensorVersioned, manager_ctx);
    SAME(dl_versioned, deleter, DLManagedTensorVersioned, deleter);
    SAME(dl_versioned, flags, DLManagedTensorVersioned, flags);
    SAME(dl_versioned, tensor, DLManagedTensorVersioned, dl_tensor);
    assert_int_equal(sizeof(dl_versioned), sizeof(DLManagedTensorVersioned));
    assert_int_equal(DL_MAJOR_VERSION, DLPACK_MAJOR_VERSION);
    assert_int_equal(DL_READ_ONLY, DLPACK_FLAG_BITMASK_READ_ONLY);
#endif
}

TEST_CASE(a_kind_of_memory_has_the_number_of_the_installed_header)
{
    static const struct {
        weir_memory_kind kind;
        int type;
    } known[] = { { WEIR_MEMORY_HOST, kDLCPU },
                  { WEIR_MEMORY_CUDA, kDLCUDA },
                  { WEIR_MEMORY_CUDA_HOST, kDLCUDAHost },
                  { WEIR_MEMORY_ROCM, kDLROCM },
                  { WEIR_MEMORY_ROCM_HOST, kDLROCMHost },
                  { WEIR_MEMORY_OTHER, kDLExtDev },
                  { WEIR_MEMORY_CUDA_MANAGED, kDLCUDAManaged } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(weir_memory_dlpack_type((weir_memory){ known[i].kind, 0 }), known[i].type);
}
#endif

TEST_CASE(a_device_of_dlpack_is_a_kind_of_memory_and_back)
{
    static const int32_t types[] = { 1, 2, 3, 10, 11, 12, 13, 14 };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        weir_memory memory = weir_memory_of_dlpack(types[i], 4);
        assert_string_not_equal(weir_memory_kind_name(memory.kind), "unknown");
        assert_int_equal(weir_memory_dlpack_type(memory), types[i]);
        assert_int_equal(memory.device, 4);
    }
    assert_int_equal(weir_memory_of_dlpack(1, 0).kind, WEIR_MEMORY_HOST);
    assert_string_equal(weir_memory_kind_name(weir_memory_of_dlpack(0, 0).kind), "unknown");
    assert_string_equal(weir_memory_kind_name(weir_memory_of_dlpack(17, 0).kind), "unknown");
}

TEST_CASE(the_versioned_struct_is_laid_out_as_dlpack_1_says)
{
    /* two numbers of 32 bits, two pointers, flags of 64 bits, the tensor: on 64 bits */
    if (sizeof(void *) != 8)
        skip();
    assert_int_equal(offsetof(dl_versioned, minor), 4);
    assert_int_equal(offsetof(dl_versioned, context), 8);
    assert_int_equal(offsetof(dl_versioned, deleter), 16);
    assert_int_equal(offsetof(dl_versioned, flags), 24);
    assert_int_equal(offsetof(dl_versioned, tensor), 32);
    assert_int_equal(sizeof(dl_tensor), 48);
}

static void assert_is_the_frames(const dl_tensor *tensor, const weir_frames *frames)
{
    const int64_t shape[] = { NUM_FRAMES, HEIGHT, WIDTH, CHANNELS };
    const int64_t strides[] = { HEIGHT * WIDTH * CHANNELS, WIDTH * CHANNELS, CHANNELS, 1 };
    assert_ptr_equal(tensor->data, frames->data);
    assert_int_equal(tensor->byte_offset, 0);
    assert_int_equal(tensor->device.type, 1); /* kDLCPU */
    assert_int_equal(tensor->device.id, 0);
    assert_int_equal(tensor->dtype.code, DL_UINT);
    assert_int_equal(tensor->dtype.bits, 8);
    assert_int_equal(tensor->dtype.lanes, 1);
    assert_int_equal(tensor->num_dims, 4);
    assert_memory_equal(tensor->shape, shape, sizeof shape);
    assert_memory_equal(tensor->strides, strides, sizeof strides);
}

TEST_CASE(a_tensor_is_the_frames_themselves)
{
    weir_item item = frames_item(host);
    dl_versioned *tensor = view(&item, WEIR_ARRAY_DATA);
    assert_int_equal(tensor->major, 1);
    assert_int_equal(tensor->minor, 0);
    assert_int_equal(tensor->flags, 0); /* writable */
    assert_is_the_frames(&tensor->tensor, item.data);
    dl_managed *old = view_unversioned(&item);
    assert_is_the_frames(&old->tensor, item.data);
    old->deleter(old);
    tensor->deleter(tensor);
    weir_item_release(&item);
}

TEST_CASE(the_times_of_frames_are_a_tensor)
{
    weir_item item = frames_item((weir_memory){ WEIR_MEMORY_CUDA, 1 });
    const weir_frames *frames = item.data;
    dl_versioned *tensor = view(&item, WEIR_ARRAY_PTS);
    assert_ptr_equal(tensor->tensor.data, frames->pts);
    assert_int_equal(tensor->tensor.num_dims, 1);
    assert_int_equal(tensor->tensor.shape[0], NUM_FRAMES);
    assert_int_equal(tensor->tensor.strides[0], 1);
    assert_int_equal(tensor->tensor.dtype.code, DL_INT);
    assert_int_equal(tensor->tensor.dtype.bits, 64);
    assert_int_equal(tensor->tensor.device.type, 1); /* of the CPU, wherever the frames are */
    assert_int_equal(tensor->tensor.device.id, 0);
    weir_item_release(&item);
    assert_int_equal(((const int64_t *)tensor->tensor.data)[3], 3 * 512 - 1);
    tensor->deleter(tensor);
}

TEST_CASE(a_tensor_names_the_device_of_its_memory)
{
    static const struct {
        weir_memory memory;
        int32_t type;
    } places[] = { { { WEIR_MEMORY_HOST, 0 }, 1 },       { { WEIR_MEMORY_CUDA_HOST, 0 }, 3 },
                   { { WEIR_MEMORY_CUDA, 2 }, 2 },       { { WEIR_MEMORY_ROCM, 5 }, 10 },
                   { { WEIR_MEMORY_ROCM_HOST, 0 }, 11 }, { { WEIR_MEMORY_CUDA_MANAGED, 0 }, 13 },
                   { { WEIR_MEMORY_ONEAPI, 1 }, 14 } };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        weir_item item = frames_item(places[i].memory);
        dl_versioned *tensor = view(&item, WEIR_ARRAY_DATA);
        dl_managed *old = view_unversioned(&item);
        assert_int_equal(tensor->tensor.device.type, places[i].type);
        assert_int_equal(tensor->tensor.device.id, places[i].memory.device);
        assert_int_equal(old->tensor.device.type, places[i].type);
        assert_int_equal(old->tensor.device.id, places[i].memory.device);
        tensor->deleter(tensor);
        old->deleter(old);
        weir_item_release(&item);
    }
}

/* PyTorch knows pinned memory as that of the CPU only. */
TEST_CASE(pinned_memory_is_that_of_the_cpu_for_whom_wants_it_so)
{
    static const weir_memory_kind kinds[] = { WEIR_MEMORY_HOST, WEIR_MEMORY_CUDA_HOST, WEIR_MEMORY_ROCM_HOST,
                                              WEIR_MEMORY_CUDA_MANAGED };
    const weir_memory cpu = weir_memory_of_dlpack(1, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct DLManagedTensorVersioned *made;
        struct DLManagedTensor *made_old;
        weir_item item = frames_item((weir_memory){ kinds[i], 0 });
        assert_int_equal(weir_to_dlpack(&item, WEIR_ARRAY_DATA, &cpu, &made, NULL), WEIR_OK);
        assert_int_equal(weir_to_dlpack_unversioned(&item, WEIR_ARRAY_DATA, &cpu, &made_old, NULL), WEIR_OK);
        dl_versioned *tensor = (dl_versioned *)(void *)made;
        dl_managed *old = (dl_managed *)(void *)made_old;
        assert_is_the_frames(&tensor->tensor, item.data);
        assert_is_the_frames(&old->tensor, item.data);
        tensor->deleter(tensor);
        old->deleter(old);
        weir_item_release(&item);
    }
}

TEST_CASE(a_tensor_is_no_copy_on_another_device)
{
    static const struct {
        weir_memory memory, wanted;
        weir_array_kind kind;
        bool is_refused;
    } cases[] = { { { WEIR_MEMORY_CUDA, 1 }, { WEIR_MEMORY_CUDA, 1 }, WEIR_ARRAY_DATA, false },
                  { { WEIR_MEMORY_CUDA, 1 }, { WEIR_MEMORY_CUDA, 0 }, WEIR_ARRAY_DATA, true },
                  { { WEIR_MEMORY_CUDA, 1 }, { WEIR_MEMORY_HOST, 0 }, WEIR_ARRAY_DATA, true },
                  { { WEIR_MEMORY_CUDA, 1 }, { WEIR_MEMORY_HOST, 0 }, WEIR_ARRAY_PTS, false },
                  { { WEIR_MEMORY_CUDA, 1 }, { WEIR_MEMORY_CUDA, 1 }, WEIR_ARRAY_PTS, true },
                  { { WEIR_MEMORY_HOST, 0 }, { WEIR_MEMORY_CUDA_HOST, 0 }, WEIR_ARRAY_DATA, true },
                  { { WEIR_MEMORY_HOST, 0 }, { WEIR_MEMORY_HOST, 1 }, WEIR_ARRAY_DATA, true },
                  { { WEIR_MEMORY_CUDA_HOST, 0 }, { WEIR_MEMORY_CUDA_HOST, 0 }, WEIR_ARRAY_DATA, false } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct DLManagedTensorVersioned *made;
        weir_error error = { 0 };
        weir_item item = frames_item(cases[i].memory);
        int status = weir_to_dlpack(&item, cases[i].kind, &cases[i].wanted, &made, &error);
        assert_int_equal(status, cases[i].is_refused ? WEIR_EUNSUPPORTED : WEIR_OK);
        if (cases[i].is_refused) {
            assert_null(made);
            assert_non_null(strstr(error.message, "a tensor does not copy them"));
        } else {
            dl_versioned *tensor = (dl_versioned *)(void *)made;
            assert_int_equal(tensor->tensor.device.type, weir_memory_dlpack_type(cases[i].wanted));
            assert_int_equal(tensor->tensor.device.id, cases[i].wanted.device);
            tensor->deleter(tensor);
        }
        weir_item_release(&item);
    }
}

TEST_CASE(sound_is_a_tensor_of_floats)
{
    weir_audio *audio = calloc(1, sizeof *audio);
    assert_non_null(audio);
    *audio = (weir_audio){ .num_samples = 7, .channels = 2, .planar = true, .data = calloc(14, sizeof(float)) };
    weir_item item = { .data = audio, .type = WEIR_TYPE_AUDIO, .release = weir_audio_release };
    dl_versioned *first = view(&item, WEIR_ARRAY_DATA);
    dl_versioned *second = view(&item, WEIR_ARRAY_DATA);
    weir_item_release(&item);
    assert_int_equal(first->tensor.dtype.code, DL_FLOAT);
    assert_int_equal(first->tensor.dtype.bits, 32);
    assert_int_equal(first->tensor.shape[0], 2);
    assert_int_equal(first->tensor.shape[1], 7);
    first->deleter(first);
    ((float *)second->tensor.data)[13] = 1;
    second->deleter(second);
}

/* ---- who frees ---------------------------------------------------------------------------------------------- */

/* The address sanitizer sees what is freed too early, and what is not freed. */
TEST_CASE(views_of_the_same_frames_share_them_and_the_last_frees)
{
    for (int order = 0; order < 2; order++) {
        weir_item item = frames_item(host);
        dl_versioned *views[3];
        for (int i = 0; i < 3; i++)
            views[i] = view(&item, i == 1 ? WEIR_ARRAY_PTS : WEIR_ARRAY_DATA);
        dl_managed *old = view_unversioned(&item);
        if (order == 0)
            weir_item_release(&item);
        else
            weir_frames_free(item.data);
        ((uint8_t *)views[0]->tensor.data)[NUM_BYTES - 1] = 123; /* what one writes, the others see */
        assert_int_equal(((const uint8_t *)old->tensor.data)[NUM_BYTES - 1], 123);
        old->deleter(old);
        views[0]->deleter(views[0]);
        views[1]->deleter(views[1]);
        assert_int_equal(((const uint8_t *)views[2]->tensor.data)[NUM_BYTES - 1], 123);
        views[2]->deleter(views[2]);
    }
}

TEST_CASE(frames_outlive_their_tensors)
{
    weir_item item = frames_item(host);
    weir_frames *frames = item.data;
    for (int i = 0; i < 3; i++) {
        dl_versioned *tensor = view(&item, WEIR_ARRAY_DATA);
        tensor->deleter(tensor);
    }
    assert_int_equal(frames->data[1], 7);
    weir_item_release(&item);
}

/* ---- data that others have, too ----------------------------------------------------------------------------- */

static void end_loan(void *data, void *self)
{
    assert_int_equal(((const weir_frames *)data)->data[1], 7);
    atomic_fetch_add((atomic_int *)self, 1);
}

TEST_CASE(a_loan_is_read_only_and_ends_once_with_its_last_tensor)
{
    atomic_int num_ended = 0;
    weir_frames *frames = frames_new(host);
    weir_item item = { .data = frames, .type = WEIR_TYPE_FRAMES, .release = end_loan, .release_self = &num_ended };
    dl_versioned *first = view(&item, WEIR_ARRAY_DATA);
    dl_versioned *second = view(&item, WEIR_ARRAY_PTS);
    dl_managed *old = view_unversioned(&item);
    assert_int_equal(first->flags, DL_READ_ONLY);
    assert_int_equal(second->flags, DL_READ_ONLY);
    first->deleter(first);
    weir_item_release(&item);
    old->deleter(old);
    assert_int_equal(atomic_load(&num_ended), 0);
    second->deleter(second);
    assert_int_equal(atomic_load(&num_ended), 1);
    weir_frames_free(frames);
}

TEST_CASE(a_loan_ends_with_the_item_if_that_is_released_last)
{
    atomic_int num_ended = 0;
    weir_frames *frames = frames_new(host);
    weir_item item = { .data = frames, .type = WEIR_TYPE_FRAMES, .release = end_loan, .release_self = &num_ended };
    dl_versioned *tensor = view(&item, WEIR_ARRAY_DATA);
    tensor->deleter(tensor);
    assert_int_equal(atomic_load(&num_ended), 0);
    weir_item_release(&item);
    assert_int_equal(atomic_load(&num_ended), 1);
    weir_frames_free(frames);
}

/* ---- mistakes ----------------------------------------------------------------------------------------------- */

TEST_CASE(an_item_without_that_part_is_refused_and_unchanged)
{
    struct DLManagedTensorVersioned *made = (void *)&made;
    weir_error error = { 0 };
    weir_item item = frames_item(host);
    for (int kind = WEIR_ARRAY_LABELS; kind <= WEIR_ARRAY_VALID; kind++)
        assert_int_equal(weir_to_dlpack(&item, (weir_array_kind)kind, NULL, &made, NULL), WEIR_EINVAL);
    assert_int_equal(weir_to_dlpack(&item, (weir_array_kind)INT_MAX, NULL, &made, &error), WEIR_EINVAL);
    assert_null(made);
    assert_non_null(strstr(error.message, "weir.frames"));
    weir_item_release(&item);

    char text[] = "text";
    item = (weir_item){ .data = text, .type = WEIR_TYPE_TEXT };
    assert_int_equal(weir_to_dlpack(&item, WEIR_ARRAY_DATA, NULL, &made, NULL), WEIR_EINVAL);
    int64_t pts[NUM_FRAMES];
    weir_frames not_sound = { .pts = pts, .num_frames = NUM_FRAMES }; /* what a mistake would find there */
    item = (weir_item){ .data = &not_sound, .type = WEIR_TYPE_AUDIO };
    assert_int_equal(weir_to_dlpack(&item, WEIR_ARRAY_PTS, NULL, &made, NULL), WEIR_EINVAL);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
