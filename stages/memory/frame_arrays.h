/*
 * The facts that weir_frames has about each frame: pts, times_ns and mask, an array each. Whoever makes, moves, sends or frees
 * frames goes through this list, so that a new array is one line here. Internal. Pure.
 */
#ifndef STAGES_MEMORY_FRAME_ARRAYS_H
#define STAGES_MEMORY_FRAME_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/video.h>

#include "common/sibling.h"

typedef struct weir_frame_facts {
    int64_t pts;
    int64_t time_ns;
    uint8_t mask;
} weir_frame_facts;

/* Room for that many frames; the values of as many as fit are kept. WEIR_OK; or WEIR_ENOMEM, and nothing is lost. */
WEIR_SIBLING_API int weir__frame_arrays_resize(weir_frames *frames, size_t num_frames);

void weir__frame_arrays_set(weir_frames *frames, size_t frame, weir_frame_facts facts);
weir_frame_facts weir__frame_arrays_get(const weir_frames *frames, size_t frame);

/* The bytes of one frame in all arrays. */
WEIR_SIBLING_API size_t weir__frame_arrays_bytes(void);

/* Array number `i`, and its bytes for each frame; NULL = there are no more. */
WEIR_SIBLING_API void *weir__frame_arrays_at(const weir_frames *frames, unsigned i, size_t *frame_bytes);

void weir__frame_arrays_free(weir_frames *frames);

#endif
