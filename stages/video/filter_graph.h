/*
 * A libavfilter graph between the decoder and the scaler, as a user described it. Internal. One thread at a time for each
 * filter. The graph is made for the first picture, and anew when pictures of another kind come; what the old one still
 * held back is lost then, as it is in the ffmpeg program.
 */
#ifndef WEIR_STAGES_FILTER_H
#define WEIR_STAGES_FILTER_H

#include <stdint.h>

#include <libavutil/frame.h>
#include <libavutil/rational.h>

#include <weir/status.h>

typedef struct weir_filter {
    /* immutable after init */
    const char *description; /* "crop=100:100,hflip"; the caller's */

    /* of the graph; NULL = none yet */
    struct AVFilterGraph *graph;
    struct AVFilterContext *source;
    struct AVFilterContext *sink;
    int width;
    int height;
    int format;
    int colorspace;
    int range;
    AVRational time_base; /* of what is put in, and of what comes out */
    AVFrame *in;
    AVFrame *out;
} weir_filter;

/* Is it a description of something with one picture going in and one coming out? WEIR_OK, or the failure with *error
   filled. */
int weir_filter_check(const char *description, weir_error *error);

/* Puts a picture in, with its time; or, NULL, the news that there are no more. WEIR_OK, or the failure with *error
   filled. */
int weir_filter_put(weir_filter *filter, const AVFrame *frame, int64_t pts, AVRational time_base, weir_error *error);

/* WEIR_OK: *frame is the next picture, until the next call; its pts is in the time base of what was put in. WEIR_SKIP: one
   has to be put in first. WEIR_EOF: there are no more. Or a failure with *error filled. */
int weir_filter_get(weir_filter *filter, const AVFrame **frame, weir_error *error);

/* Forgets what was put in; the next picture begins anew. Frees what the filter holds. */
void weir_filter_reset(weir_filter *filter);

#endif
