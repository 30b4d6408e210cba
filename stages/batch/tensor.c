#include "stages/batch/tensor.h"

#include <string.h>

#include "stages/memory/pixel_kind.h"

/* Dimension `at` becomes clips, and what is left of it. */
static weir_tensor with_clips(weir_tensor tensor, int at, uint32_t num_clips)
{
    if (num_clips == 0)
        return tensor;
    memmove(tensor.shape + at + 1, tensor.shape + at, (size_t)(tensor.num_dims - at) * sizeof *tensor.shape);
    tensor.shape[at] = num_clips;
    tensor.shape[at + 1] /= num_clips;
    tensor.num_dims++;
    return tensor;
}

static weir_tensor frames_tensor(const weir_frames *frames)
{
    weir_tensor tensor = {
        .data = frames->data,
        .kind = 'u',
        .num_bytes = (uint8_t)weir_pixel_value_bytes(frames->pixel),
        .num_dims = 4,
        .memory = frames->memory,
    };
    int64_t num_frames = frames->num_frames;
    int64_t height = frames->height;
    int64_t width = frames->width;
    int64_t channels = frames->channels;
    if (weir__pixel_is_yuv(frames->pixel)) { /* planes of two sizes: the shape is only a number of values */
        tensor.num_dims = 2;
        tensor.shape[0] = num_frames;
        tensor.shape[1] = (int64_t)(frames->frame_bytes / tensor.num_bytes);
        return with_clips(tensor, 0, frames->num_clips);
    }
    bool is_planar = frames->layout == WEIR_LAYOUT_NCHW;
    tensor.shape[0] = num_frames;
    tensor.shape[1] = is_planar ? channels : height;
    tensor.shape[2] = is_planar ? height : width;
    tensor.shape[3] = is_planar ? width : channels;
    return with_clips(tensor, 0, frames->num_clips);
}

static weir_tensor audio_tensor(const weir_audio *audio)
{
    int64_t num_samples = (int64_t)audio->num_samples;
    int64_t channels = audio->channels;
    return (weir_tensor){
        .data = audio->data,
        .kind = 'f',
        .num_bytes = sizeof *audio->data,
        .num_dims = 2,
        .shape = { audio->planar ? channels : num_samples, audio->planar ? num_samples : channels },
    };
}

static weir_tensor collated_tensor(const weir_collated *batch)
{
    static const char kinds[] = { 'u', 'f', 'b', 'f', 'u' };
    weir_tensor tensor = {
        .data = batch->data,
        .kind = kinds[batch->dtype],
        .num_bytes = (uint8_t)weir_dtype_bytes(batch->dtype),
        .num_dims = batch->num_dims,
        .memory = batch->memory,
    };
    memcpy(tensor.shape, batch->shape, sizeof batch->shape);
    return tensor;
}

weir_tensor weir__frames_tensor(const weir_frames *frames, void *values, char kind, size_t num_bytes)
{
    weir_tensor tensor = {
        .data = values, .kind = kind, .num_bytes = (uint8_t)num_bytes, .num_dims = 1, .shape = { frames->num_frames }
    };
    return with_clips(tensor, 0, frames->num_clips);
}

weir_tensor weir__batch_mask(const weir_collated *batch)
{
    weir_tensor tensor = { .data = batch->mask,
                           .kind = 'u',
                           .num_bytes = sizeof *batch->mask,
                           .num_dims = 2,
                           .shape = { (int64_t)batch->num_items, batch->num_frames } };
    return with_clips(tensor, 1, batch->num_clips);
}

bool weir__item_is(const weir_item *item, const char *type)
{
    return item && item->data && item->type && strcmp(item->type, type) == 0;
}

int weir__item_tensor(const weir_item *item, weir_tensor *tensor, weir_error *error)
{
    if (weir__item_is(item, WEIR_TYPE_FRAMES))
        *tensor = frames_tensor(item->data);
    else if (weir__item_is(item, WEIR_TYPE_AUDIO))
        *tensor = audio_tensor(item->data);
    else if (weir__item_is(item, WEIR_TYPE_COLLATED))
        *tensor = collated_tensor(item->data);
    else
        return weir_error_set(error, WEIR_EINVAL, 0, "the item is neither frames, nor sound, nor a batch");
    return WEIR_OK;
}

size_t weir__tensor_bytes(const weir_tensor *tensor, int dim)
{
    size_t num_bytes = tensor->num_bytes;
    for (; dim < tensor->num_dims; dim++)
        num_bytes *= (size_t)tensor->shape[dim];
    return num_bytes;
}
