/*
 * Frames to PyTorch, NumPy, JAX, CuPy and all other libraries that read DLPack (dlpack.h), without a copy: the array
 * uses the memory of the frames, which are freed when the array is.
 */
#ifndef WEIR_DLPACK_H
#define WEIR_DLPACK_H

#include <stdbool.h>

#include <weir/collate.h>
#include <weir/export.h>
#include <weir/status.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

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
