/* A result's data as a dense array, for the .npy writer and DLPack. Internal. */
#ifndef STAGES_BATCH_TENSOR_H
#define STAGES_BATCH_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <weir/allocator.h>
#include <weir/audio.h>
#include <weir/collate.h>
#include <weir/video.h>

enum { WEIR_TENSOR_MAX_DIMS = 6 };

/* Row-major and contiguous; shape[0] is the number of frames, clips or items. */
typedef struct weir_tensor {
    void *data;
    char kind;         /* as in NumPy: 'u' unsigned, 'f' floating point */
    uint8_t num_bytes; /* of a value */
    int num_dims;
    int64_t shape[WEIR_TENSOR_MAX_DIMS];
    weir_memory memory; /* where data is */
} weir_tensor;

/*
 * Of a weir_frames: [frames][height][width][channels] or [frames][channels][height][width], as its layout says; YUV,
 * whose planes differ in size: [frames][values]. With an axis of clips, [clips] comes first. Of a weir_audio:
 * [samples][channels] or, if planar, [channels][samples]. Of a weir_collated: its shape; bfloat16, which NumPy does
 * not support, has the kind 'b'. Borrows the data. WEIR_OK, or WEIR_EINVAL with *error filled: NULL, or another type
 * of item.
 */
int weir__item_tensor(const weir_item *item, weir_tensor *tensor, weir_error *error);

/* An array with a value for each frame, in the frames' shape. Borrows the values. */
weir_tensor weir__frames_tensor(const weir_frames *frames, void *values, char kind, size_t num_bytes);

/* [B, N], or with an axis of clips [B, clips, N / clips]. Borrows it. */
weir_tensor weir__batch_mask(const weir_collated *batch);

/* Whether the item has data of that type. */
bool weir__item_is(const weir_item *item, const char *type);

/* The size of the dimensions from dim on: dim 0 is everything, dim 1 one frame. */
size_t weir__tensor_bytes(const weir_tensor *tensor, int dim);

#endif
