/*
 * The frames that a request wants, by number, and which of them have come. Internal. One thread at a time.
 */
#ifndef STAGES_READER_FRAME_TARGETS_H
#define STAGES_READER_FRAME_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavutil/frame.h>

#include "stages/reader/frame_selection.h"

/* A wanted frame, and its position in the result. */
typedef struct weir_target {
    uint64_t frame;
    size_t position;
    bool is_repeat; /* the video has too few frames: an earlier position of the clip has it, too */
    bool has_come;
    AVFrame *kept; /* it was decoded for an earlier request; NULL = it is to be decoded */
} weir_target;

typedef struct weir_frame_targets {
    weir_target *all; /* sorted by frame; NULL = all frames of the file */
    size_t num;
    size_t next;
    bool is_in_order;     /* the positions increase, too */
    uint64_t num_missing; /* lost, of all requests to the open file */
} weir_frame_targets;

/* Empty ones. WEIR_OK or WEIR_ENOMEM. */
int weir__frame_targets_set(weir_frame_targets *targets, const weir_selection *selection);

/* The next target's frame has come. Returns how many targets want it, at least one; they are passed. */
unsigned weir__frame_targets_take(weir_frame_targets *targets);

/* From here on, all are to be decoded. */
void weir__frame_targets_drop_kept(weir_frame_targets *targets);

/* Removes all targets. Missing frames stay counted. */
void weir__frame_targets_forget(weir_frame_targets *targets);

/*
 * Frames come in presentation order; this gives the requested order, if it is different. *order, which the caller frees, has
 * num_frames elements: for each position of the result, the number of the frame that came; NULL = same order.
 * WEIR_OK or WEIR_ENOMEM.
 */
int weir__frame_targets_order(const weir_frame_targets *targets, size_t num_frames, size_t **order);

#endif
