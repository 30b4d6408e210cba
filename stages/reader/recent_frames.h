/*
 * Decoded frames of a file that stays open, kept for further requests that want them again, as overlapping clips do.
 * The oldest give way to new ones; all give way where the decoder would be over its limit of memory. Internal. One
 * thread at a time; not with decoder threads, which may ask for memory at any time.
 */
#ifndef STAGES_READER_RECENT_FRAMES_H
#define STAGES_READER_RECENT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavutil/frame.h>

typedef struct weir_recent_frame {
    uint64_t number;
    AVFrame *frame;
    size_t bytes;
} weir_recent_frame;

/* All-zero keeps nothing yet. */
typedef struct weir_recent_frames {
    weir_recent_frame *all; /* a ring, in the order in which they came */
    size_t max;             /* capacity */
    size_t first, num;
    size_t bytes;
} weir_recent_frames;

/* Keeps the frame, unless it is there; without memory, nothing is kept. */
void weir__recent_frames_add(weir_recent_frames *recent, uint64_t number, const AVFrame *frame);

/* A new reference to the frame with that number, which the caller frees; NULL = it is not there, or out of memory. */
AVFrame *weir__recent_frames_get(const weir_recent_frames *recent, uint64_t number);

/* Frees all frames. */
void weir__recent_frames_drop(weir_recent_frames *recent);

void weir__recent_frames_reset(weir_recent_frames *recent);

#endif
