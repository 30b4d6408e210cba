/*
 * Writes frames or samples to a .npy file, NumPy's format: `numpy.load("out.npy")` returns the array, with
 * `mmap_mode="r"` without reading it. Its shape is that of the frames, by default [N, height, width, 3] of uint8.
 *
 * Chunks of a long video (weir_video_config.chunk_frames) are added one by one, in constant memory. The file is
 * written under a temporary name that ends in ".tmp", in the same folder, and gets its name when it is complete.
 */
#ifndef WEIR_NPY_H
#define WEIR_NPY_H

#include <weir/audio.h>
#include <weir/collate.h>
#include <weir/export.h>
#include <weir/status.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
