/* Builds a weir_frames frame by frame. Internal. One thread at a time. */
#ifndef STAGES_PICTURE_FRAME_BUFFER_H
#define STAGES_PICTURE_FRAME_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>
#include <weir/video.h>

#include "stages/memory/frame_arrays.h"

typedef struct weir_frames_builder {
    weir_frames *frames; /* NULL = not begun */
    size_t frame_bytes;
    size_t max_frames; /* capacity */
    /* set before weir__frames_begin() */
    uint64_t max_bytes;        /* of the result */
    weir_allocator *allocator; /* NULL = the heap, or shared memory */
    uint8_t *into;             /* the program's memory, of max_bytes; NULL = none */

    uint8_t *scratch; /* holds a frame if `into` has no room for the slack behind it; NULL = not needed yet */
    bool is_scratch;  /* the frame of weir__frames_next() is there */
} weir_frames_builder;

/* Begins a result of frames of that size, stored as configured, with room for the expected number of them (0 =
   unknown). WEIR_OK, or the failure with *error filled. */
int weir__frames_begin(weir_frames_builder *builder, const weir_picture_config *picture, uint32_t width,
                       uint32_t height, uint64_t expected_frames, weir_error *error);

/* Memory for one more frame, in *data, followed by WEIR_SCALER_SLACK_BYTES; weir__frames_commit() adds it to the
   result. */
int weir__frames_next(weir_frames_builder *builder, uint8_t **data, weir_error *error);
void weir__frames_commit(weir_frames_builder *builder, weir_frame_facts facts);

/* Reorders the frames: frame from[i] moves to position i. `from` is a permutation, and is overwritten. WEIR_OK or
   WEIR_ENOMEM. */
int weir__frames_arrange(weir_frames_builder *builder, size_t *from);

/* Frees unused memory; the caller owns the result. */
weir_frames *weir__frames_end(weir_frames_builder *builder);

/* A result of `num` of these frames, from number `first` on: a copy, in memory of the allocator (NULL = the heap, or
   shared memory). NULL = out of memory. */
weir_frames *weir__frames_slice(const weir_frames *frames, uint32_t first, uint32_t num, weir_allocator *allocator);

/* Frees the result, if one was begun. */
void weir__frames_abort(weir_frames_builder *builder);

#endif
