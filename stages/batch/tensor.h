/* A result's data as a dense array, for the .npy writer and DLPack. Internal. */
#ifndef STAGES_BATCH_TENSOR_H
#define STAGES_BATCH_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <weir/audio.h>
#include <weir/collate.h>
#include <weir/video.h>

enum { WEIR_TENSOR_MAX_DIMS = 5 };

/* Row-major and contiguous; shape[0] is the number of frames of a video. */
typedef struct weir_tensor {
    void *data;
    char kind;         /* as in NumPy: 'u' unsigned, 'f' floating point */
    uint8_t num_bytes; /* of a value */
    int num_dims;
    int64_t shape[WEIR_TENSOR_MAX_DIMS];
} weir_tensor;

/* RGB and gray: [frames][height][width][channels] or [frames][channels][height][width], as its layout says. YUV, whose
   planes differ in size: [frames][bytes]. Borrows the data. */
weir_tensor weir__frames_tensor(const weir_frames *frames);

/* [samples][channels] or, if planar, [channels][samples]. Borrows the data. */
weir_tensor weir__audio_tensor(const weir_audio *audio);

/* A batch, in its shape; bfloat16, which NumPy does not support, has the kind 'b'. Borrows the data. */
weir_tensor weir__collated_tensor(const weir_collated *batch);

/* Adds an owner, who must also call weir_collated_free(). */
void weir__collated_hold(weir_collated *batch);

/* The size of the dimensions from dim on: dim 0 is everything, dim 1 one frame. */
size_t weir__tensor_bytes(const weir_tensor *tensor, int dim);

#endif
