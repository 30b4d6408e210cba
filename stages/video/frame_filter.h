/*
 * What is between the decoder and the scaler: pictures are turned upright, and go through the user's filter, if there is
 * one. Internal. One thread at a time for each.
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
    /* immutable after init; all-zero hands on what it gets */
    bool is_coded;      /* they stay as they are coded */
    weir_filter filter; /* its description may be NULL */

    weir_upright upright;
    const AVFrame *next; /* what has been put in, upright, */
    int64_t next_pts;    /* its time, */
    AVRational time_base;
    unsigned num_times; /* how often it is there */
    unsigned num_left;  /* and how often it has still to come, or to go through the filter */
    bool is_again;      /* the picture that came last is the one before, once more */
    bool is_ended;      /* nothing more is put in */
} weir_pictures;

/* Checks the options that concern this, and makes the strings the config's own. WEIR_OK, or the failure with *error
   filled. */
int weir_pictures_config_init(weir_video_config *video, weir_error *error);
void weir_pictures_config_free(weir_video_config *video);

/* What the configuration asks for; it lives as long as the pictures. */
void weir_pictures_init(weir_pictures *pictures, const weir_video_config *video);

/* Puts in a decoded frame of the stream, which lives until the next one is, its time, and how often it is there; or, NULL,
   the news that there are no more. Only after weir_pictures_get() said WEIR_SKIP. WEIR_OK, or the failure with *error
   filled. */
int weir_pictures_put(weir_pictures *pictures, const AVStream *stream, const AVFrame *frame, int64_t pts,
                      unsigned num_times, weir_error *error);

/* WEIR_OK: *frame is the next picture, until the next call, and *pts its time; is_again tells whether it is the same as the
   last. WEIR_SKIP: one has to be put in first. WEIR_EOF: there are no more. Or a failure with *error filled. */
int weir_pictures_get(weir_pictures *pictures, const AVFrame **frame, int64_t *pts, weir_error *error);

/* Ready for the next file. */
void weir_pictures_reset(weir_pictures *pictures);

void weir_pictures_free(weir_pictures *pictures);

#endif
