#include <weir/arrays.h>

#ifdef WEIR_HAVE_DLPACK

#include <stdlib.h>

#include <dlpack/dlpack.h>

#include "stages/batch/tensor.h"
#include "stages/memory/views.h"

/* The tensor and what it points to, in one block. */
typedef struct owned_tensor {
    DLManagedTensor managed;
    int64_t shape[WEIR_TENSOR_MAX_DIMS];
    int64_t strides[WEIR_TENSOR_MAX_DIMS];
    void *data; /* of the item; freed by: */
    void (*release)(void *data, void *self);
    void *release_self;
} owned_tensor;

static void delete_tensor(DLManagedTensor *managed)
{
    owned_tensor *own = managed->manager_ctx;
    if (own->release)
        own->release(own->data, own->release_self);
    free(own);
}

static uint8_t code_of(char kind)
{
    return kind == 'u' ? kDLUInt : kind == 'i' ? kDLInt : kind == 'b' ? kDLBfloat : kDLFloat;
}

/* NULL = out of memory. */
static owned_tensor *make_tensor(const weir_tensor *tensor)
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
            .device = { (DLDeviceType)weir_memory_dlpack_type(tensor->memory), tensor->memory.device },
            .ndim = tensor->num_dims,
            .dtype = { .code = code_of(tensor->kind), .bits = (uint8_t)(8 * tensor->num_bytes), .lanes = 1 },
            .shape = own->shape,
            .strides = own->strides,
        },
        .manager_ctx = own,
        .deleter = delete_tensor,
    };
    return own;
}

static weir_tensor part_of_batch(const weir_collated *batch, weir_collated_part part, weir_tensor frames)
{
    int64_t num_items = frames.shape[0];
    int64_t num_frames = frames.shape[batch->layout == WEIR_COLLATE_TIME_SECOND ? 2 : 1];
    const weir_tensor tensors[] = {
        frames,
        { batch->labels, 'i', sizeof *batch->labels, 1, { num_items }, { 0 } },
        { batch->ids, 'i', sizeof *batch->ids, 1, { num_items }, { 0 } },
        { batch->sizes, 'i', sizeof *batch->sizes, 2, { num_items, 3 }, { 0 } },
        { batch->mask, 'u', sizeof *batch->mask, 2, { num_items, num_frames }, { 0 } },
        { batch->valid, 'u', sizeof *batch->valid, 1, { num_items }, { 0 } },
    };
    return tensors[part];
}

int weir_to_dlpack(weir_item *item, weir_collated_part part, DLManagedTensor **to, weir_error *error)
{
    weir_tensor tensor;
    if (to)
        *to = NULL;
    bool is_batch = weir__item_is(item, WEIR_TYPE_COLLATED);
    if (!item || !to || (unsigned)part > (is_batch ? WEIR_COLLATED_VALID : WEIR_COLLATED_FRAMES))
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument is NULL, or the item has no such part");
    int rc = weir__item_tensor(item, &tensor, error);
    if (rc != WEIR_OK)
        return rc;
    if (is_batch)
        tensor = part_of_batch(item->data, part, tensor);
    owned_tensor *own = make_tensor(&tensor);
    if (!own)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    own->data = item->data;
    own->release = is_batch ? weir_collated_release : item->release;
    own->release_self = is_batch ? NULL : item->release_self;
    if (is_batch) {
        weir__views_add(&((weir_collated *)item->data)->num_views);
    } else {
        item->data = item->release_self = NULL;
        item->release = NULL;
    }
    *to = &own->managed;
    return WEIR_OK;
}

#else

int weir_to_dlpack(weir_item *item, weir_collated_part part, struct DLManagedTensor **tensor, weir_error *error)
{
    (void)part;
    if (!item || !tensor)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *tensor = NULL;
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                          "weir was built without dlpack.h (Debian: libdlpack-dev): install it and build weir again");
}

#endif
