/*
 * A libavfilter graph between the decoder and the scaler, from the user's description. Internal. One thread at a time
 * for each filter. The graph is created for the first picture, and again when the size or format changes; pictures
 * buffered in the old graph are lost then, as in the ffmpeg program.
 */
#ifndef STAGES_PICTURE_FILTER_GRAPH_H
#define STAGES_PICTURE_FILTER_GRAPH_H

#include <stdint.h>

#include <libavutil/frame.h>
#include <libavutil/rational.h>

#include <weir/status.h>

typedef struct weir_filter {
    /* until the reset */
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
    AVRational time_base; /* of input and output */
    AVFrame *in;
    AVFrame *source_copy; /* of the last picture, if libavfilter may not read it */
    AVFrame *out;
} weir_filter;

/* Checks that the description has one input and one output. WEIR_OK, or the failure with *error
   filled. */
int weir__filter_check(const char *description, weir_error *error);

/* Puts a picture in, with its time; NULL marks the end. WEIR_OK, or the failure with *error
   filled. */
int weir__filter_put(weir_filter *filter, const AVFrame *frame, int64_t pts, AVRational time_base, weir_error *error);

/* WEIR_OK: *frame is the next picture, valid until the next call; its pts is in the input's time base. WEIR_SKIP:
   needs an input. WEIR_EOF: no more. Or a failure with *error filled. */
int weir__filter_get(weir_filter *filter, const AVFrame **frame, weir_error *error);

/* Discards pending pictures and frees the graph. The filter can be used again. */
void weir__filter_reset(weir_filter *filter);

#endif
