/* Frames, samples and batches as arrays of other programs: .npy and .safetensors files, and DLPack tensors. */
#ifndef WEIR_ARRAYS_H
#define WEIR_ARRAYS_H

#include <stdbool.h>
#include <stdio.h>

#include <weir/allocator.h>
#include <weir/audio.h>
#include <weir/collate.h>
#include <weir/item.h>
#include <weir/status.h>
#include <weir/version.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- .npy -- */

/*
 * Writes frames, samples or batches to a .npy file, NumPy's format: `numpy.load("out.npy")` returns the array, with
 * `mmap_mode="r"` without reading it. Its shape is that of the data: by default [N, height, width, 3] of uint8 for frames,
 * [samples, channels] of float for sound ([channels, samples] if planar).
 *
 * Chunks of a long video (weir_video_config.chunk_frames) are added one by one, in constant memory. The file gets its name
 * when it is complete: until then it has none, or a hidden one that ends in ".tmp" where the file system cannot do without.
 */

/* A file that is being written. One thread at a time. */
typedef struct weir_npy weir_npy;

/* WEIR_OK with *npy set, to be freed by weir_npy_close(). Or a failure, with *error (may be NULL) filled and *npy
   NULL. WEIR_ENOTFOUND: no such folder. WEIR_EINVAL: a folder or device has that name, or a file that is no .npy file
   (see weir/output.h). Others are WEIR_EACCESS, WEIR_EIO and WEIR_ENOMEM. */
WEIR_API int weir_npy_open(weir_npy **npy, const char *path, weir_error *error);

/* The same to an open file, which stays the caller's: it must be empty, able to seek and at its start. `name` is for messages.
   weir_npy_close() completes its content and flushes it. */
WEIR_API int weir_npy_open_stream(weir_npy **npy, FILE *file, const char *name, weir_error *error);

/* Appends the item's data: a weir_frames, weir_audio or weir_collated. WEIR_OK, or a failure. WEIR_EINVAL: another
   type of item, or its size or pixel format differs from that of earlier items, and nothing has been written.
   WEIR_EUNSUPPORTED: it is bfloat16, which NumPy does not support, or in memory of a device. WEIR_EIO: the disk is
   full or broken. After WEIR_EIO, call only weir_npy_close(). */
WEIR_API int weir_npy_add(weir_npy *npy, const weir_item *item, weir_error *error);

/* keep: completes the file and gives it its name; an existing .npy file is replaced. Otherwise removes what was written. `npy` is
   freed in any case. WEIR_OK, or the failure with *error filled and no file: WEIR_EINVAL (nothing was added), WEIR_EACCESS,
   WEIR_EIO. */
WEIR_API int weir_npy_close(weir_npy *npy, bool keep, weir_error *error);

/* Opens, writes and closes: the data of one item as a file. */
static inline int weir_write_npy(const weir_item *item, const char *path, weir_error *error)
{
    weir_npy *npy;
    int rc = weir_npy_open(&npy, path, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir_npy_add(npy, item, error);
    int closed = weir_npy_close(npy, rc == WEIR_OK, error);
    return rc != WEIR_OK ? rc : closed;
}

/* -- .safetensors -- */

/*
 * Writes a batch or a clip to a .safetensors file, which PyTorch, JAX, NumPy and others load with names, types and
 * shapes: `safetensors.torch.load_file("batch.safetensors")`. The file gets its name when it is complete; an existing
 * .safetensors file is replaced, one of another kind is not (see weir/output.h).
 *
 * A weir_collated is written as several tensors. "frames" is the batch's data. The others are "labels" and "ids"
 * (I64, [B]), "sizes" (I32, [B, 3]), "mask" (U8, [B, N]) and "valid" (U8, [B]). Its metadata are "epoch" and "names"
 * (a JSON array as a string). A weir_frames is written as the tensors "frames", in the frames' shape, "pts" and
 * "times_ns" (I64, [N]) and "mask" (U8, [N]). With an axis of K clips, N becomes K, N. Any thread.
 * WEIR_OK, or a failure, with *error (may be NULL) filled and no file. WEIR_ENOTFOUND: no such folder. WEIR_EINVAL:
 * another type of item, or the path is another file. WEIR_EUNSUPPORTED: in memory of a device. Others are
 * WEIR_EACCESS, WEIR_EIO and WEIR_ENOMEM.
 */
WEIR_API int weir_write_safetensors(const weir_item *item, const char *path, weir_error *error);

/* -- DLPack -- */

struct DLManagedTensorVersioned; /* <dlpack/dlpack.h> of DLPack 1.0 and later */
struct DLManagedTensor;          /* of all versions */

/* An item has several arrays: its values, and what describes them. Each can become a tensor. */
typedef enum weir_array_kind {
    WEIR_ARRAY_DATA = 0, /* the values of frames, sound or a batch, in their shape and type */
    /* of a batch */
    WEIR_ARRAY_LABELS, /* int64, [B] */
    WEIR_ARRAY_IDS,    /* int64, [B] */
    WEIR_ARRAY_SIZES,  /* int32, [B, 3] */
    WEIR_ARRAY_MASK,   /* uint8, [B, N], with clips [B, K, N]; also of frames: [N], with clips [K, N] */
    WEIR_ARRAY_VALID,  /* uint8, [B] */
    /* of frames */
    WEIR_ARRAY_PTS, /* int64, [N], in units of weir_frames.time_base_num / time_base_den seconds; with clips [K, N] */
    WEIR_ARRAY_TIMES, /* int64, the same shape: weir_frames.times_ns */
} weir_array_kind;

/*
 * Makes a tensor of an array of an item, without a copy. PyTorch, NumPy 2.1, JAX, CuPy and all other libraries that
 * read DLPack 1.0 can use it. The tensor has the shape of the array ([N, height, width, 3] of uint8 by default),
 * row-major and contiguous. The data is on the device that the item's `memory` says; other arrays are on the CPU. In
 * Python, put the tensor into a capsule named "dltensor_versioned".
 *
 * The item does not change, and it can have any number of tensors, also several of the same array. They share its memory. The
 * memory is freed when the item and all its tensors have been freed. The item is freed by weir_item_release() or
 * weir_frames_free() (weir_audio_free(), weir_collated_free()). Each tensor is freed by its deleter, which its owner calls
 * once, on any thread. Tensors may be written to; all that share the memory see the changes. If other items have the same data
 * (a replay of weir_cache), the tensors are read-only.
 *
 * wanted: the device that the tensor names (NULL = that of the memory); in Python, this is dl_device. Nothing is
 * copied, so only two devices are possible: the device of the memory, or the host ({ WEIR_MEMORY_HOST, 0 }) for
 * memory that the CPU may read and write. PyTorch and JAX accept pinned memory only as host memory.
 *
 * Any thread, one at a time for each item. WEIR_OK. Otherwise the item is unchanged, *tensor is NULL and *error (may be NULL) is
 * filled: WEIR_EINVAL (NULL, another type of item, or an item without this array), WEIR_EUNSUPPORTED (the values are not in that
 * memory), WEIR_ENOMEM.
 */
WEIR_API int weir_to_dlpack(weir_item *item, weir_array_kind kind, const weir_memory *wanted,
                            struct DLManagedTensorVersioned **tensor, weir_error *error);

/* The numbers of a column of the user's in a batch (weir_collated.columns), [B] of int64 or float64, as
   weir_to_dlpack() makes tensors. WEIR_OK; or *tensor is NULL and *error (may be NULL) is filled: WEIR_ENOTFOUND (no
   such column), WEIR_EUNSUPPORTED (it has texts), WEIR_EINVAL, WEIR_ENOMEM. */
WEIR_API int weir_column_to_dlpack(weir_item *item, const char *name, struct DLManagedTensorVersioned **tensor,
                                   weir_error *error);

/* The same for consumers that do not support versioned tensors (NumPy before 2.1; capsules named "dltensor"). Such a tensor
   cannot say that it is read-only: NumPy treats all of them as read-only, other consumers treat all of them as writable. */
WEIR_API int weir_to_dlpack_unversioned(weir_item *item, weir_array_kind kind, const weir_memory *wanted,
                                        struct DLManagedTensor **tensor, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
