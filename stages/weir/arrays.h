/* Frames, samples and batches as arrays of other programs: .npy and .safetensors files, and DLPack tensors. */
#ifndef WEIR_ARRAYS_H
#define WEIR_ARRAYS_H

#include <stdbool.h>

#include <weir/audio.h>
#include <weir/collate.h>
#include <weir/export.h>
#include <weir/status.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- .npy -- */

/*
 * Writes frames or samples to a .npy file, NumPy's format: `numpy.load("out.npy")` returns the array, with
 * `mmap_mode="r"` without reading it. Its shape is that of the frames, by default [N, height, width, 3] of uint8.
 *
 * Chunks of a long video (weir_video_config.chunk_frames) are added one by one, in constant memory. The file is
 * written under a temporary name that ends in ".tmp", in the same folder, and gets its name when it is complete.
 */

/* A file that is being written. One thread at a time. */
typedef struct weir_npy weir_npy;

/* WEIR_OK with *npy set, to be freed by weir_npy_close() or weir_npy_abort(); or the failure with *error (may be NULL)
   filled and *npy NULL: WEIR_ENOTFOUND (no such folder), WEIR_EINVAL (a folder or device has that name), WEIR_EACCESS,
   WEIR_EIO, WEIR_ENOMEM. */
WEIR_API int weir_npy_open(weir_npy **npy, const char *path, weir_error *error);

/* The temporary name of the file, for a signal handler that removes it. Valid until `npy` is freed. */
WEIR_API const char *weir_npy_part(const weir_npy *npy);

/* Appends the frames. WEIR_OK; WEIR_EINVAL: their size or pixel format differs from that of earlier frames, and
   nothing has been written; WEIR_EIO: the disk is full or broken, and only weir_npy_abort() may be called now. */
WEIR_API int weir_npy_add_frames(weir_npy *npy, const weir_frames *frames, weir_error *error);

/* Completes the file and gives it its name; an existing file is replaced. `npy` is freed in any case. WEIR_OK, or
   the failure with *error filled and no file: WEIR_EINVAL (nothing was added), WEIR_EACCESS, WEIR_EIO. */
WEIR_API int weir_npy_close(weir_npy *npy, weir_error *error);

/* Frees `npy` and removes what was written. NULL is fine. */
WEIR_API void weir_npy_abort(weir_npy *npy);

/* Opens, writes and closes: the frames as a file. */
WEIR_API int weir_frames_write_npy(const weir_frames *frames, const char *path, weir_error *error);

/* The same for samples: an array of float, [samples, channels] or, if planar, [channels, samples]. */
WEIR_API int weir_audio_write_npy(const weir_audio *audio, const char *path, weir_error *error);

/* The same for a batch's data, in its shape. WEIR_EUNSUPPORTED: it is bfloat16, which NumPy does not support. */
WEIR_API int weir_collated_write_npy(const weir_collated *batch, const char *path, weir_error *error);

/* -- .safetensors -- */

/*
 * Writes batches and clips to .safetensors files, which PyTorch, JAX, NumPy and others load with names, types and
 * shapes: `safetensors.torch.load_file("batch.safetensors")`. The file gets its name when it is complete; an existing
 * file is replaced.
 */

/*
 * The tensors "frames" (the batch's data), "labels" and "ids" (I64, [B]), "sizes" (I32, [B, 3]) and "mask" (U8, [B,
 * N]), and the metadata "epoch" and "names" (a JSON array as a string). Any thread.
 * WEIR_OK, or the failure with *error (may be NULL) filled and no file: WEIR_ENOTFOUND (no such folder), WEIR_EINVAL
 * (NULL, or a folder has that name), WEIR_EACCESS, WEIR_EIO, WEIR_ENOMEM.
 */
WEIR_API int weir_collated_write_safetensors(const weir_collated *batch, const char *path, weir_error *error);

/* The same for one clip: "frames", in the frames' shape, and "pts" (I64, [N]). */
WEIR_API int weir_frames_write_safetensors(const weir_frames *frames, const char *path, weir_error *error);

/* -- DLPack -- */

/*
 * Frames to PyTorch, NumPy, JAX, CuPy and all other libraries that read DLPack (dlpack.h), without a copy: the array
 * uses the memory of the frames, which are freed when the array is.
 */
struct DLManagedTensor; /* <dlpack/dlpack.h> */

/* Was weir built with dlpack.h? */
WEIR_API bool weir_has_dlpack(void);

/*
 * The frames as a tensor on the CPU, in their own shape ([N, height, width, 3] of uint8 by default), row-major and
 * contiguous. Any thread.
 *
 * WEIR_OK: *tensor is set and owns the frames (transfer full); its owner calls its deleter, once, on any thread.
 * WEIR_ENOMEM, WEIR_EUNSUPPORTED (built without dlpack.h): *error (may be NULL) is filled, *tensor is NULL and the
 * frames stay the caller's.
 */
WEIR_API int weir_frames_to_dlpack(weir_frames *frames, struct DLManagedTensor **tensor, weir_error *error);

/* Which tensor of a batch. */
typedef enum weir_collated_part {
    WEIR_COLLATED_FRAMES = 0, /* its data, in its shape and type */
    WEIR_COLLATED_LABELS,     /* int64, [B] */
    WEIR_COLLATED_IDS,        /* int64, [B] */
    WEIR_COLLATED_SIZES,      /* int32, [B, 3] */
    WEIR_COLLATED_MASK,       /* uint8, [B, N] */
} weir_collated_part;

/*
 * One tensor of a batch, without a copy. The batch stays the caller's, who may free it at once: the memory is freed
 * when the batch and all its tensors are. Any thread, one at a time for each batch.
 * WEIR_OK, or *tensor is NULL and *error (may be NULL) is filled: WEIR_EINVAL, WEIR_ENOMEM, WEIR_EUNSUPPORTED (built
 * without dlpack.h).
 */
WEIR_API int weir_collated_to_dlpack(weir_collated *batch, weir_collated_part part, struct DLManagedTensor **tensor,
                                     weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
