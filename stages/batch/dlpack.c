#include <weir/arrays.h>

#ifdef WEIR_HAVE_DLPACK

#include <stdlib.h>

#include <dlpack/dlpack.h>

#include "tensor.h"

/* The tensor and what it points to, in one block. */
typedef struct owned_tensor {
    DLManagedTensor managed;
    int64_t shape[WEIR_TENSOR_MAX_DIMS];
    int64_t strides[WEIR_TENSOR_MAX_DIMS];
} owned_tensor;

static void delete_frames(DLManagedTensor *managed)
{
    weir_frames_free(managed->manager_ctx);
    free(managed); /* the first member of its owned_tensor */
}

static void delete_collated(DLManagedTensor *managed)
{
    weir_collated_free(managed->manager_ctx);
    free(managed);
}

static uint8_t code_of(char kind)
{
    return kind == 'u' ? kDLUInt : kind == 'i' ? kDLInt : kind == 'b' ? kDLBfloat : kDLFloat;
}

/* NULL = out of memory; then `owner` stays the caller's. */
static DLManagedTensor *make_tensor(const weir_tensor *tensor, void *owner, void (*deleter)(DLManagedTensor *managed))
{
    owned_tensor *own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    for (int i = 0; i < tensor->num_dims; i++) {
        own->shape[i] = tensor->shape[i];
        own->strides[i] = (int64_t)(weir__tensor_bytes(tensor, i + 1) / tensor->num_bytes);
    }
    own->managed = (DLManagedTensor){
        .dl_tensor = {
            .data = tensor->data,
            .device = { .device_type = kDLCPU },
            .ndim = tensor->num_dims,
            .dtype = { .code = code_of(tensor->kind), .bits = (uint8_t)(8 * tensor->num_bytes), .lanes = 1 },
            .shape = own->shape,
            .strides = own->strides,
        },
        .manager_ctx = owner,
        .deleter = deleter,
    };
    return &own->managed;
}

bool weir_has_dlpack(void)
{
    return true;
}

int weir_frames_to_dlpack(weir_frames *frames, DLManagedTensor **to, weir_error *error)
{
    if (!frames || !to)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_tensor tensor = weir__frames_tensor(frames);
    *to = make_tensor(&tensor, frames, delete_frames);
    return *to ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

int weir_collated_to_dlpack(weir_collated *batch, weir_collated_part part, DLManagedTensor **to, weir_error *error)
{
    if (!batch || !to || (unsigned)part > WEIR_COLLATED_MASK)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument is NULL or not one of the enumeration");
    weir_tensor frames = weir__collated_tensor(batch);
    int64_t num_items = frames.shape[0];
    int64_t num_frames = frames.shape[batch->layout == WEIR_COLLATE_TIME_SECOND ? 2 : 1];
    const weir_tensor tensors[] = {
        frames,
        { batch->labels, 'i', sizeof *batch->labels, 1, { num_items } },
        { batch->ids, 'i', sizeof *batch->ids, 1, { num_items } },
        { batch->sizes, 'i', sizeof *batch->sizes, 2, { num_items, 3 } },
        { batch->mask, 'u', sizeof *batch->mask, 2, { num_items, num_frames } },
    };
    *to = make_tensor(&tensors[part], batch, delete_collated);
    if (!*to)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    weir__collated_hold(batch);
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

int weir_collated_to_dlpack(weir_collated *batch, weir_collated_part part, struct DLManagedTensor **tensor,
                            weir_error *error)
{
    (void)part;
    if (!batch || !tensor)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *tensor = NULL;
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                          "weir was built without dlpack.h (Debian: libdlpack-dev): install it and build weir again");
}

#endif
