/*
 * The scaler: a decoded picture in, a picture of the result's size and pixel format out, fitted as asked, in memory of
 * the caller's. Internal. One thread at a time for each scaler.
 *
 * What it makes is, byte for byte, what FFmpeg's filter chain
 *     pad:     scale=W:H:flags=bicubic:force_original_aspect_ratio=decrease,pad=W:H:(ow-iw)/2:(oh-ih)/2,format=rgb24
 *     stretch: scale=W:H:flags=bicubic,format=rgb24
 *     crop:    scale=W:H:flags=bicubic:force_original_aspect_ratio=increase,crop=W:H,format=rgb24
 * makes of it, with the FFmpeg that weir is built with.
 */
#ifndef WEIR_STAGES_SCALER_H
#define WEIR_STAGES_SCALER_H

#include <stdint.h>

#include <libavutil/frame.h>
#include <libswscale/swscale.h>

#include <weir/status.h>
#include <weir/video.h>

/* swscale writes whole vectors: this many bytes behind the last row of a picture must be the caller's, too. */
enum { WEIR_SCALER_SLACK_BYTES = 64 };

/* Where the scaled picture stands in the result: at x, y, or, if it is larger (crop), from -x, -y on. */
typedef struct weir_fit {
    int width;
    int height;
    int x;
    int y;
} weir_fit;

typedef struct weir_scaler {
    /* immutable after init */
    int width;
    int height;
    weir_resize resize;

    /* for pictures like the last one; made anew when another kind comes */
    struct SwsContext *sws; /* NULL = none yet */
    int source_width;
    int source_height;
    int source_format;
    int source_colorspace;
    int source_range;
    weir_fit fit;
    uint8_t *spare; /* where swscale cannot write to the result directly; NULL = it can */
    int spare_stride;
} weir_scaler;

/* How a picture of that size is fitted. The result is at least one pixel each way. */
weir_fit weir_scaler_fit(weir_resize resize, int source_width, int source_height, int width, int height);

/* *scaler is all-zero but for what is immutable. `out` has width × height × 3 bytes and the slack. WEIR_OK, or the
   failure with *error filled. */
int weir_scaler_run(weir_scaler *scaler, const AVFrame *in, uint8_t *out, weir_error *error);

/* The scaler is all-zero afterwards, but for what is immutable. */
void weir_scaler_reset(weir_scaler *scaler);

#endif
