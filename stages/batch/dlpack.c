/*
 * A tensor is one more owner of an item's data. Which way it becomes one depends on who frees the data:
 *  - a result of weir, whose release function is that of its type, or for which the item is only a name. The result
 *    counts its owners, so weir_frames_free() and the like may be called while tensors exist;
 *  - anybody else (a loan of weir_cache, a result of the program): nobody else knows how to count. So the item's
 *    release function moves to a lent_data, which the item and its tensors share. The lent_data calls it once. Others
 *    may read the same values at the same time, so such tensors are read-only, as far as DLPack can say it (versioned
 *    ones).
 */
#include <weir/arrays.h>

#include <stdatomic.h>
#include <stdlib.h>

#include "stages/batch/dlpack_layout.h"
#include "stages/batch/tensor.h"
#include "stages/memory/views.h"

typedef void release_function(void *data, void *self);

/* ---- owners ------------------------------------------------------------------------------------------------------ */

typedef struct lent_data {
    atomic_size_t owners;
    release_function *release;
    void *release_self;
} lent_data;

static void lent_data_release(void *data, void *self)
{
    lent_data *lent = self;
    if (atomic_fetch_sub_explicit(&lent->owners, 1, memory_order_acq_rel) != 1)
        return;
    lent->release(data, lent->release_self);
    free(lent);
}

/* What frees a result of the item's type, and its count of owners. */
static release_function *find_own_release(const weir_item *item, uint32_t **num_views)
{
    if (weir__item_is(item, WEIR_TYPE_FRAMES)) {
        *num_views = &((weir_frames *)item->data)->num_views;
        return weir_frames_release;
    }
    if (weir__item_is(item, WEIR_TYPE_AUDIO)) {
        *num_views = &((weir_audio *)item->data)->num_views;
        return weir_audio_release;
    }
    *num_views = &((weir_collated *)item->data)->num_views;
    return weir_collated_release;
}

/* False = out of memory: nothing has changed. */
static bool lend_data(weir_item *item)
{
    if (item->release == lent_data_release) {
        atomic_fetch_add_explicit(&((lent_data *)item->release_self)->owners, 1, memory_order_relaxed);
        return true;
    }
    lent_data *lent = malloc(sizeof *lent);
    if (!lent)
        return false;
    *lent = (lent_data){ .release = item->release, .release_self = item->release_self };
    atomic_init(&lent->owners, 2); /* the item and the tensor */
    item->release = lent_data_release;
    item->release_self = lent;
    return true;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* The tensor and what it points to, in one block. */
typedef struct owned_tensor {
    union {
        dl_managed managed;
        dl_versioned versioned;
    } as;
    int64_t shape[WEIR_TENSOR_MAX_DIMS];
    int64_t strides[WEIR_TENSOR_MAX_DIMS];
    bool is_read_only;
    void *data; /* of the item; freed by: */
    release_function *release;
    void *release_self;
} owned_tensor;

static void owned_tensor_free(owned_tensor *own)
{
    own->release(own->data, own->release_self);
    free(own);
}

static void delete_managed(dl_managed *managed)
{
    owned_tensor_free(managed->context);
}

static void delete_versioned(dl_versioned *versioned)
{
    owned_tensor_free(versioned->context);
}

static bool own_data(owned_tensor *own, weir_item *item)
{
    uint32_t *num_views;
    release_function *release = find_own_release(item, &num_views);
    own->data = item->data;
    own->release = release;
    if (!item->release || item->release == release) {
        weir__views_add(num_views);
        return true;
    }
    own->is_read_only = true;
    if (!lend_data(item))
        return false;
    own->release = item->release;
    own->release_self = item->release_self;
    return true;
}

static uint8_t code_of(char kind)
{
    return kind == 'u' ? DL_UINT : kind == 'i' ? DL_INT : kind == 'b' ? DL_BFLOAT : DL_FLOAT;
}

static dl_tensor describe_tensor(owned_tensor *own, const weir_tensor *tensor)
{
    for (int i = 0; i < tensor->num_dims; i++) {
        own->shape[i] = tensor->shape[i];
        own->strides[i] = (int64_t)(weir__tensor_bytes(tensor, i + 1) / tensor->num_bytes);
    }
    return (dl_tensor){
        .data = tensor->data,
        .device = { weir_memory_dlpack_type(tensor->memory), tensor->memory.device },
        .num_dims = tensor->num_dims,
        .dtype = { .code = code_of(tensor->kind), .bits = (uint8_t)(8 * tensor->num_bytes), .lanes = 1 },
        .shape = own->shape,
        .strides = own->strides,
    };
}

/* False = they have no such array. */
static bool choose_frames_array(const weir_frames *frames, weir_array_kind kind, weir_tensor *tensor)
{
    switch (kind) {
    case WEIR_ARRAY_PTS:
        *tensor = weir__frames_tensor(frames, frames->pts, 'i', sizeof *frames->pts);
        return frames->pts;
    case WEIR_ARRAY_TIMES:
        *tensor = weir__frames_tensor(frames, frames->times_ns, 'i', sizeof *frames->times_ns);
        return frames->times_ns;
    case WEIR_ARRAY_MASK:
        *tensor = weir__frames_tensor(frames, frames->mask, 'u', sizeof *frames->mask);
        return frames->mask;
    case WEIR_ARRAY_DATA:
    case WEIR_ARRAY_LABELS:
    case WEIR_ARRAY_IDS:
    case WEIR_ARRAY_SIZES:
    case WEIR_ARRAY_VALID: break;
    }
    return false;
}

/* False = it has no such array. */
static bool choose_batch_array(const weir_collated *batch, weir_array_kind kind, weir_tensor *tensor)
{
    int64_t num_items = tensor->shape[0];
    switch (kind) {
    case WEIR_ARRAY_LABELS:
        *tensor = (weir_tensor){ batch->labels, 'i', sizeof *batch->labels, 1, { num_items }, { 0 } };
        return true;
    case WEIR_ARRAY_IDS:
        *tensor = (weir_tensor){ batch->ids, 'i', sizeof *batch->ids, 1, { num_items }, { 0 } };
        return true;
    case WEIR_ARRAY_SIZES:
        *tensor = (weir_tensor){ batch->sizes, 'i', sizeof *batch->sizes, 2, { num_items, 3 }, { 0 } };
        return true;
    case WEIR_ARRAY_MASK: *tensor = weir__batch_mask(batch); return true;
    case WEIR_ARRAY_VALID:
        *tensor = (weir_tensor){ batch->valid, 'u', sizeof *batch->valid, 1, { num_items }, { 0 } };
        return true;
    case WEIR_ARRAY_DATA:
    case WEIR_ARRAY_TIMES:
    case WEIR_ARRAY_PTS: break;
    }
    return false;
}

/* The array of a batch or of frames, whose data is in *tensor already. False = it has no such array. */
static bool choose_array(const weir_item *item, weir_array_kind kind, weir_tensor *tensor)
{
    if (kind == WEIR_ARRAY_DATA)
        return true;
    if (weir__item_is(item, WEIR_TYPE_FRAMES))
        return choose_frames_array(item->data, kind, tensor);
    return weir__item_is(item, WEIR_TYPE_COLLATED) && choose_batch_array(item->data, kind, tensor);
}

/* What the CPU may touch is also memory of the host, which is all that some consumers know. */
static int name_memory(const weir_memory *wanted, weir_memory *memory, weir_error *error)
{
    bool is_same = !wanted || (wanted->kind == memory->kind && wanted->device == memory->device);
    bool is_host = wanted && wanted->kind == WEIR_MEMORY_HOST && wanted->device == 0;
    if (is_same)
        return WEIR_OK;
    if (!is_host || !weir_memory_is_accessible(*memory))
        return weir_error_set(
            error, WEIR_EUNSUPPORTED, 0,
            "the values are in %s memory (device %d), not in %s memory (device %d), and a tensor does not copy them",
            weir_memory_kind_name(memory->kind), (int)memory->device, weir_memory_kind_name(wanted->kind),
            (int)wanted->device);
    *memory = *wanted;
    return WEIR_OK;
}

/* *described is that tensor, in a new block that owns the item's data, too. */
static int share_tensor(weir_item *item, const weir_tensor *tensor, owned_tensor **to, dl_tensor *described,
                        weir_error *error)
{
    owned_tensor *own = calloc(1, sizeof *own);
    if (!own || !own_data(own, item)) {
        free(own);
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    *described = describe_tensor(own, tensor);
    *to = own;
    return WEIR_OK;
}

static int make_tensor(weir_item *item, weir_array_kind kind, const weir_memory *wanted, owned_tensor **to,
                       dl_tensor *described, weir_error *error)
{
    weir_tensor tensor;
    int rc = weir__item_tensor(item, &tensor, error);
    if (rc != WEIR_OK)
        return rc;
    if (!choose_array(item, kind, &tensor))
        return weir_error_set(error, WEIR_EINVAL, 0, "an item of type \"%s\" has no array %d", item->type, (int)kind);
    rc = name_memory(wanted, &tensor.memory, error);
    return rc == WEIR_OK ? share_tensor(item, &tensor, to, described, error) : rc;
}

/* The numbers of a user's column of a batch. */
static int make_column(weir_item *item, const char *name, owned_tensor **to, dl_tensor *described, weir_error *error)
{
    const weir_collated *batch = weir__item_is(item, WEIR_TYPE_COLLATED) ? item->data : NULL;
    const weir_column *column = batch ? weir_column_find(batch->columns, batch->num_columns, name) : NULL;
    if (!column || column->kind == WEIR_COLUMN_TEXT)
        return weir_error_set(error, column ? WEIR_EUNSUPPORTED : WEIR_ENOTFOUND, 0,
                              column  ? "the column \"%s\" has texts: a tensor has numbers"
                              : batch ? "the batch has no column \"%s\""
                                      : "only batches have columns, such as \"%s\"",
                              name);
    bool is_integer = column->kind == WEIR_COLUMN_INTEGER;
    const void *values = is_integer ? (const void *)column->integers : column->reals;
    weir_tensor tensor = {
        (void *)(uintptr_t)values, is_integer ? 'i' : 'f', sizeof(int64_t), 1, { (int64_t)batch->num_items }, { 0 }
    };
    return share_tensor(item, &tensor, to, described, error);
}

static int refuse_null(weir_error *error)
{
    return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
}

static void give_versioned(owned_tensor *own, const dl_tensor *tensor, struct DLManagedTensorVersioned **to)
{
    own->as.versioned = (dl_versioned){ .major = DL_MAJOR_VERSION,
                                        .minor = DL_MINOR_VERSION,
                                        .context = own,
                                        .deleter = delete_versioned,
                                        .flags = own->is_read_only ? DL_READ_ONLY : 0,
                                        .tensor = *tensor };
    *to = (struct DLManagedTensorVersioned *)(void *)&own->as.versioned;
}

int weir_column_to_dlpack(weir_item *item, const char *name, struct DLManagedTensorVersioned **to, weir_error *error)
{
    owned_tensor *own;
    dl_tensor tensor;
    if (to)
        *to = NULL;
    if (!item || !name || !to)
        return refuse_null(error);
    int rc = make_column(item, name, &own, &tensor, error);
    if (rc == WEIR_OK)
        give_versioned(own, &tensor, to);
    return rc;
}

int weir_to_dlpack(weir_item *item, weir_array_kind kind, const weir_memory *wanted,
                   struct DLManagedTensorVersioned **to, weir_error *error)
{
    owned_tensor *own;
    dl_tensor tensor;
    if (to)
        *to = NULL;
    if (!item || !to)
        return refuse_null(error);
    int rc = make_tensor(item, kind, wanted, &own, &tensor, error);
    if (rc == WEIR_OK)
        give_versioned(own, &tensor, to);
    return rc;
}

int weir_to_dlpack_unversioned(weir_item *item, weir_array_kind kind, const weir_memory *wanted,
                               struct DLManagedTensor **to, weir_error *error)
{
    owned_tensor *own;
    dl_tensor tensor;
    if (to)
        *to = NULL;
    if (!item || !to)
        return refuse_null(error);
    int rc = make_tensor(item, kind, wanted, &own, &tensor, error);
    if (rc != WEIR_OK)
        return rc;
    own->as.managed = (dl_managed){ .tensor = tensor, .context = own, .deleter = delete_managed };
    *to = (struct DLManagedTensor *)(void *)&own->as.managed;
    return WEIR_OK;
}
