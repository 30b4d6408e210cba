#include <weir/dlpack.h>

#ifdef WEIR_HAVE_DLPACK

#include <stdlib.h>

#include <dlpack/dlpack.h>

#include "tensor.h"

/* The tensor and what it points to, in one block. */
typedef struct frames_tensor {
    DLManagedTensor managed;
    int64_t shape[WEIR_TENSOR_MAX_DIMS];
    int64_t strides[WEIR_TENSOR_MAX_DIMS];
} frames_tensor;

static void delete_tensor(DLManagedTensor *managed)
{
    weir_frames_free(managed->manager_ctx);
    free(managed); /* the first member of its frames_tensor */
}

bool weir_has_dlpack(void)
{
    return true;
}

int weir_frames_to_dlpack(weir_frames *frames, DLManagedTensor **to, weir_error *error)
{
    if (!frames || !to)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *to = NULL;
    frames_tensor *own = calloc(1, sizeof *own);
    if (!own)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");

    weir_tensor tensor = weir_frames_tensor(frames);
    for (int i = 0; i < tensor.num_dims; i++) {
        own->shape[i] = tensor.shape[i];
        own->strides[i] = (int64_t)(weir_tensor_bytes(&tensor, i + 1) / tensor.num_bytes);
    }
    own->managed = (DLManagedTensor){
        .dl_tensor = {
            .data = tensor.data,
            .device = { .device_type = kDLCPU },
            .ndim = tensor.num_dims,
            .dtype = { .code = kDLUInt, .bits = (uint8_t)(8 * tensor.num_bytes), .lanes = 1 },
            .shape = own->shape,
            .strides = own->strides,
        },
        .manager_ctx = frames,
        .deleter = delete_tensor,
    };
    *to = &own->managed;
    return WEIR_OK;
}

#else

bool weir_has_dlpack(void)
{
    return false;
}

int weir_frames_to_dlpack(weir_frames *frames, struct DLManagedTensor **tensor, weir_error *error)
{
    if (!frames || !tensor)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *tensor = NULL;
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                          "weir was built without dlpack.h (Debian: libdlpack-dev): install it and build weir again");
}

#endif
