/*
 * Writes batches and clips to .safetensors files, which PyTorch, JAX, NumPy and others load with names, types and
 * shapes: `safetensors.torch.load_file("batch.safetensors")`. The file gets its name when it is complete; an existing
 * file is replaced.
 */
#ifndef WEIR_SAFETENSORS_H
#define WEIR_SAFETENSORS_H

#include <weir/collate.h>
#include <weir/export.h>
#include <weir/status.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The tensors "frames" (the batch's data), "labels" and "ids" (I64, [B]), "sizes" (I32, [B, 3]) and "mask" (U8, [B,
 * N]), and the metadata "epoch" and "names" (a JSON array as a string). Any thread.
 * WEIR_OK, or the failure with *error (may be NULL) filled and no file: WEIR_ENOTFOUND (no such folder), WEIR_EINVAL
 * (NULL, or a folder has that name), WEIR_EACCESS, WEIR_EIO, WEIR_ENOMEM.
 */
WEIR_API int weir_collated_write_safetensors(const weir_collated *batch, const char *path, weir_error *error);

/* The same for one clip: "frames", in the frames' shape, and "pts" (I64, [N]). */
WEIR_API int weir_frames_write_safetensors(const weir_frames *frames, const char *path, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
