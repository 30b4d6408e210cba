/*
 * The scaler: a decoded picture in, a picture of the result's size, pixel format and layout out, fitted as asked, in
 * memory of the caller's. Internal. One thread at a time for each scaler.
 *
 * Several implementations stand behind it, each a table in a file of its own (scaler_exact.c, …); which one scales is
 * chosen per kind of picture, as one may not know what another does.
 */
#ifndef WEIR_STAGES_SCALER_H
#define WEIR_STAGES_SCALER_H

#include <stdbool.h>
#include <stdint.h>

#include <libavutil/frame.h>

#include <weir/status.h>
#include <weir/video.h>

/* This many bytes behind a picture must be the caller's, too: swscale writes whole vectors. */
enum { WEIR_SCALER_SLACK_BYTES = 64 };

/* Where the scaled picture stands in the result: at x, y, or, if it is larger (crop), from -x, -y on. */
typedef struct weir_fit {
    int width;
    int height;
    int x;
    int y;
} weir_fit;

/* What a kind of pictures needs of an implementation: the whole of the source is scaled to width × height, and the
   window of that is written. No pointers and no gaps in it: two are the same if their bytes are. */
typedef struct weir_scaling {
    int source_width;
    int source_height;
    int source_format; /* AVPixelFormat */
    int source_colorspace;
    int source_range;
    int width;
    int height;
    int window_x;
    int window_y;
    int window_width;
    int window_height;
    weir_pixel pixel;
    weir_layout layout;
} weir_scaling;

/* Where to write: red, green and blue, or Y, U and V, or the one plane that holds all. */
typedef struct weir_planes {
    uint8_t *data[3];
    int stride[3]; /* bytes from row to row */
} weir_planes;

/* One way to scale. The state belongs to one scaler. */
typedef struct weir_scaler_op {
    weir_scaler_kind kind;
    bool (*knows)(const weir_scaling *scaling); /* can it do that? */
    /* Makes the state for pictures of that kind; after a failure, with *error filled, there is none. */
    int (*open)(void **state, const weir_scaling *scaling, weir_error *error);
    /* May write up to WEIR_SCALER_SLACK_BYTES beyond the end of a row of packed pixels. */
    int (*run)(void *state, const AVFrame *in, const weir_planes *out, weir_error *error);
    void (*close)(void *state);
} weir_scaler_op;

extern const weir_scaler_op weir_scaler_exact;
extern const weir_scaler_op weir_scaler_fast;
extern const weir_scaler_op weir_scaler_zimg; /* only where zimg was there to build with */

typedef struct weir_scaler {
    /* immutable after weir_scaler_set() */
    int width;
    int height;
    weir_resize resize;
    weir_pixel pixel;
    weir_layout layout;
    weir_scaler_kind kind;

    /* for pictures like the last one; made anew when another kind comes */
    const weir_scaler_op *op; /* NULL = none yet */
    void *state;
    weir_scaling scaling;
    weir_fit fit;
} weir_scaler;

/* Are the options that concern the scaler possible, in this build? WEIR_OK, or the failure with *error filled. */
int weir_scaler_check(const weir_video_config *video, weir_error *error);

/* How a picture of that size is fitted. The result is at least one pixel each way. */
weir_fit weir_scaler_fit(weir_resize resize, int source_width, int source_height, int width, int height);

/* The bytes of one picture of the result: its planes one behind the other. */
size_t weir_scaler_picture_bytes(weir_pixel pixel, uint32_t width, uint32_t height);

/* What is to be made of the pictures that follow, as configured. *scaler is all-zero before the first time. */
void weir_scaler_set(weir_scaler *scaler, const weir_video_config *video, int width, int height);

/* `out` has weir_scaler_picture_bytes() and the slack. WEIR_OK, or the failure with *error filled. */
int weir_scaler_run(weir_scaler *scaler, const AVFrame *in, uint8_t *out, weir_error *error);

/* Notes in the result what the last picture was made by and of. */
void weir_scaler_describe(const weir_scaler *scaler, weir_frames *frames);

/* Frees what the scaler holds. It can be used again. */
void weir_scaler_reset(weir_scaler *scaler);

/* ---- for the implementations ---- */

/* Does the frame's format or tag say that its values use all of 0 to 255? Unspecified is as FFmpeg takes it: only
   gray and the yuvj formats do. */
bool weir_scaling_is_full_range(const weir_scaling *scaling);

/* Has this format luma and chroma, and no colours of its own? */
bool weir_format_is_yuv(int format);

/* Is each component a plane of its own, of whole bytes in the CPU's order, 8 to 16 bits, nothing but colour? */
bool weir_format_is_plain(int format);

#endif
