/*
 * The collate stage: the input is decoded clips, the output batches for a model: one contiguous tensor [B, …] of
 * uint8, or of scaled and normalised floats, with labels, ids and masks.
 *
 * In: items of weir_video_decode or weir_image_decode, in RGB or gray. Out: an item whose data is a weir_collated *
 * (freed with weir_collated_free()), with the label and number of its last item. No batch crosses the end of an
 * epoch. With a concurrency above 1 each slot collects separate batches.
 *
 * Clips of different length or size are padded up to the largest in the batch. The padding is black (0 before
 * normalising), at the end of the clip, right and bottom. mask and sizes describe what is not padding. A crop
 * makes sizes equal.
 *
 * Random crops and flips are the same for all frames of a clip. They depend only on the seed and the clip's epoch and
 * id, not on the rank, the batch or the number of threads.
 *
 * A batch fails as a whole with WEIR_EINVAL if a column of the user's has texts in one item and numbers in another.
 * A task that fails drops its item. WEIR_EUNSUPPORTED: the item is YUV, or its values are in memory of a device.
 * WEIR_EINVAL: it has another kind of pixels or another number of clips (weir_frames.num_clips) than the batch, or
 * its frames are smaller than the crop. The third failure is WEIR_ENOMEM.
 */
#ifndef WEIR_COLLATE_H
#define WEIR_COLLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/allocator.h>
#include <weir/columns.h>
#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_dtype {
    WEIR_DTYPE_UINT8 = 0, /* as decoded, of pixels of 8 bits */
    WEIR_DTYPE_FLOAT16,
    WEIR_DTYPE_BFLOAT16,
    WEIR_DTYPE_FLOAT32,
    WEIR_DTYPE_UINT16, /* as decoded, of pixels of 16 bits */
} weir_dtype;

/* B items, N frames, height, width, C channels. It may differ from the frames' layout (weir_video_config.layout), but
   conversion is fastest if the channels are in the same place: NHWC to NHWC, NCHW to the others. If the frames have an axis of K
   clips (weir_frames.num_clips), it comes second: [B, K, N, H, W, C]; N is then the number of frames of a clip. */
typedef enum weir_collate_layout {
    WEIR_COLLATE_NHWC = 0,    /* [B, N, H, W, C] */
    WEIR_COLLATE_NCHW,        /* [B, N, C, H, W]: time first */
    WEIR_COLLATE_TIME_SECOND, /* [B, C, N, H, W]: for convolutions in three dimensions */
} weir_collate_layout;

typedef enum weir_crop {
    WEIR_CROP_CENTER = 0,
    WEIR_CROP_RANDOM,  /* a random position */
    WEIR_CROP_RESIZED, /* a random position and size, then resized (a triangle filter, widened when downscaling) */
} weir_crop;

/* Setting all fields except the limits of a batch to 0 is equivalent to defaults. */
typedef struct weir_collate_config {
    /* The limits of a batch; at least one must be set. A clip that alone exceeds them becomes a batch of one. */
    size_t num_items;    /* clips (0 = any number) */
    uint64_t max_frames; /* B × N, padding included (0 = any number) */
    uint64_t max_bytes;  /* of the tensor, padding included (0 = any number) */
    bool drop_last;      /* an incomplete batch at the end of an epoch is dropped; its items count as skipped */

    weir_dtype dtype;
    weir_collate_layout layout;
    double mean
        [3]; /* floats are (value / max - mean) / std for each channel, where max is 255 or 65535; gray uses the first */
    double std[3]; /* (0 = 1) */

    /* the crop of every clip */
    uint32_t crop_width, crop_height; /* in pixels; set both or neither (0 = no crop) */
    weir_crop crop;
    double min_area, max_area;     /* RESIZED: the share of the picture's area (0 = 0.08 and 1) */
    double min_aspect, max_aspect; /* RESIZED: width to height (0 = 3/4 and 4/3) */
    double flip;                   /* the probability of a mirror image, left to right (0 = never) */
    uint64_t seed;

    /* Batches are made in the memory of this allocator (NULL = the C library's memory, aligned to 64 bytes). The CPU must be
       able to read and write it. Up to 8 free blocks are kept for reuse. Borrowed until the pipeline is built; the pipeline is
       then one of its owners. */
    weir_allocator *allocator;
} weir_collate_config;

/* A batch. Only the stage makes it. It has one owner at a time; its tensors (weir_to_dlpack()) also share it.
   weir_collated_free() frees it and all it holds. */
typedef struct weir_collated {
    void *data; /* contiguous, row-major */
    size_t data_bytes;
    weir_dtype dtype;
    weir_collate_layout layout;
    int64_t shape[6]; /* as the layout says */
    int num_dims;     /* 5, or with clips 6 */

    size_t num_items;   /* B */
    int64_t *labels;    /* [B] weir_entry.class_id; -1 = unknown */
    int64_t *ids;       /* [B] weir_entry.number; of other items weir_item.seq */
    int64_t num_frames; /* of each item, padding and all clips included */
    uint32_t num_clips; /* K; 0 = there is no axis of clips */
    int32_t *sizes;     /* [B, 3] frames, height and width without padding */
    double padding;     /* the share of data that is padding: 0 = none; batches of items of similar sizes have less */
    uint8_t *mask;      /* [B, num_frames] 1 = a frame, 0 = padding, or a repeat as in weir_frames.mask */
    char **names;       /* [B] the items' labels */
    uint64_t epoch;     /* of the last item */

    struct weir_block *block; /* internal: do not change */

    /* [B] 0 = another clip stands there for one that failed, as weir_entry.stands_in says: leave it out of the loss; else 1 */
    uint8_t *valid;
    weir_memory memory; /* where data is; all else is in host memory */

    /* The columns of the user's that items have (weir_entry.values), with B elements each, in one block. NULL = none */
    weir_column *columns;
    size_t num_columns;

    uint32_t num_views; /* internal: do not change */
} weir_collated;

/* The type of items whose data is a weir_collated. */
#define WEIR_TYPE_COLLATED "weir.collated"

/* The weir_item.release of such an item; self is not used. */
WEIR_API void weir_collated_release(void *data, void *self);

/* NULL is fine. Any thread, also after the pipeline has been freed. */
static inline void weir_collated_free(weir_collated *batch)
{
    weir_collated_release(batch, NULL);
}

/* Bytes of one value. */
static inline size_t weir_dtype_bytes(weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_UINT8 ? 1 : dtype == WEIR_DTYPE_FLOAT32 ? 4 : 2;
}

extern WEIR_API const weir_op weir_collate;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_collate(weir_builder *builder, const weir_collate_config *config,
                                     const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_collate, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
