/*
 * The step between the decoder and the scaler: rotates pictures and applies the user's filter, if any. Internal. One
 * thread at a time for each.
 */
#ifndef STAGES_PICTURE_FRAME_FILTER_H
#define STAGES_PICTURE_FRAME_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include <weir/picture_config.h>
#include <weir/status.h>

#include "stages/memory/frame_arrays.h"
#include "stages/picture/filter_graph.h"
#include "stages/scale/rotate.h"

typedef struct weir_frame_filter {
    /* of the file; all-zero rotates, without a filter */
    bool is_coded;      /* no rotation */
    weir_filter filter; /* its description may be NULL */

    weir_rotator rotator;
    const AVFrame *next;         /* the input, rotated */
    weir_frame_facts next_facts; /* its times */
    AVRational time_base;
    unsigned num_times; /* how often it occurs */
    unsigned num_left;  /* of these, how many are still to be output or filtered */
    bool is_again;      /* the last output is the same picture as the one before */
    bool is_ended;      /* the input has ended */
} weir_frame_filter;

/* Begins a file, as configured; the configuration lives until the next reset. */
void weir__frame_filter_begin(weir_frame_filter *frame_filter, const weir_picture_config *picture);

/* Puts in a decoded frame of the stream, which must stay valid until the next one, its times, and how often it occurs;
   NULL marks the end. Only after weir__frame_filter_get() returned WEIR_SKIP. WEIR_OK, or the failure with *error
   filled. */
int weir__frame_filter_put(weir_frame_filter *frame_filter, const AVStream *stream, const AVFrame *frame,
                           weir_frame_facts facts, unsigned num_times, weir_error *error);

/* The same, of a frame that is passed on as it is, without a filter. */
void weir__frame_filter_pass(weir_frame_filter *frame_filter, const AVStream *stream, const AVFrame *frame,
                             weir_frame_facts facts, unsigned num_times);

/* WEIR_OK: *frame is the next picture, valid until the next call, and *facts its times (not its mask); is_again shows
   whether it is the same as the last one. WEIR_SKIP: needs an input. WEIR_EOF: no more. Or a failure with *error
   filled. */
int weir__frame_filter_get(weir_frame_filter *frame_filter, const AVFrame **frame, weir_frame_facts *facts,
                           weir_error *error);

/* Prepares for the next file. */
void weir__frame_filter_reset(weir_frame_filter *frame_filter);

void weir__frame_filter_free(weir_frame_filter *frame_filter);

#endif
