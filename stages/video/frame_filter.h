/*
 * The step between the decoder and the scaler: rotates pictures and applies the user's filter, if any. Internal. One thread
 * at a time for each.
 */
#ifndef WEIR_STAGES_PICTURES_H
#define WEIR_STAGES_PICTURES_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include <weir/status.h>
#include <weir/video.h>

#include "filter_graph.h"
#include "rotate.h"

typedef struct weir_pictures {
    /* immutable after init; all-zero rotates, without a filter */
    bool is_coded;      /* no rotation */
    weir_filter filter; /* its description may be NULL */

    weir_upright upright;
    const AVFrame *next; /* the input, rotated */
    int64_t next_pts;    /* its time */
    AVRational time_base;
    unsigned num_times; /* how often it occurs */
    unsigned num_left;  /* of these, how many are still to be output or filtered */
    bool is_again;      /* the last output is the same picture as the one before */
    bool is_ended;      /* the input has ended */
} weir_pictures;

/* Checks the options of this step, and copies their strings. WEIR_OK, or the failure with *error filled. */
int weir_pictures_config_init(weir_video_config *video, weir_error *error);
void weir_pictures_config_free(weir_video_config *video);

/* As configured; the configuration must outlive it. */
void weir_pictures_init(weir_pictures *pictures, const weir_video_config *video);

/* Puts in a decoded frame of the stream, which must stay valid until the next one, its time, and how often it occurs; NULL
   marks the end. Only after weir_pictures_get() returned WEIR_SKIP. WEIR_OK, or the failure with *error filled. */
int weir_pictures_put(weir_pictures *pictures, const AVStream *stream, const AVFrame *frame, int64_t pts,
                      unsigned num_times, weir_error *error);

/* WEIR_OK: *frame is the next picture, valid until the next call, and *pts its time; is_again shows whether it is the same
   as the last one. WEIR_SKIP: needs an input. WEIR_EOF: no more. Or a failure with *error filled. */
int weir_pictures_get(weir_pictures *pictures, const AVFrame **frame, int64_t *pts, weir_error *error);

/* Prepares for the next file. */
void weir_pictures_reset(weir_pictures *pictures);

void weir_pictures_free(weir_pictures *pictures);

#endif
