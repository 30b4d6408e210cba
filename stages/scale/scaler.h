/*
 * The scaler: the input is a decoded picture, the output a picture with the result's size, pixel format and layout,
 * fitted as configured, in the caller's memory. Internal. One thread at a time for each scaler.
 *
 * There are several implementations, each a table in a separate file (scaler_exact.c, …). The implementation is
 * chosen for each kind of picture, as not all support the same formats.
 */
#ifndef STAGES_SCALE_SCALER_H
#define STAGES_SCALE_SCALER_H

#include <stdbool.h>
#include <stdint.h>

#include <libavutil/frame.h>

#include <weir/picture_config.h>
#include <weir/status.h>
#include <weir/video.h>

#include "common/sibling.h"
#include "stages/scale/lent_picture.h"

/* The caller must provide this many bytes after a picture, because swscale writes whole vectors. */
enum { WEIR_SCALER_SLACK_BYTES = 64 };

/* The position of the scaled picture in the result: at x, y; both are negative if it is larger (crop). */
typedef struct weir_fit {
    int width;
    int height;
    int x;
    int y;
} weir_fit;

/* The task of an implementation for one kind of picture: scale the whole source to width × height, and write the
   window of that. No pointers and no padding: two are equal if their bytes are. */
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

/* The output planes: red, green and blue, or Y, U and V, or one plane for all. */
typedef struct weir_planes {
    uint8_t *data[3];
    int stride[3]; /* bytes from row to row */
} weir_planes;

/* An implementation. The state belongs to one scaler. */
typedef struct weir_scaler_op {
    weir_scaler_kind kind;
    weir_touch touch; /* what run() reads of the source */
    /* Creates the state for pictures of that kind; none after a failure, with *error filled. */
    int (*open)(void **state, const weir_scaling *scaling, weir_error *error);
    /* May write up to WEIR_SCALER_SLACK_BYTES beyond the end of a row of packed pixels. */
    int (*run)(void *state, const AVFrame *in, const weir_planes *out, weir_error *error);
    void (*close)(void *state);
} weir_scaler_op;

extern const weir_scaler_op weir__scaler_exact; /* reports what swscale does not support */
extern const weir_scaler_op weir__scaler_fast;

/* Whether the fast one supports this kind of picture. */
bool weir__scaler_fast_knows(const weir_scaling *scaling);

typedef struct weir_scaler {
    /* immutable after weir__scaler_set() */
    int width;
    int height;
    const weir_picture_config *picture;

    /* for pictures like the last one; recreated for another kind */
    const weir_scaler_op *op; /* NULL = none yet */
    void *state;
    weir_scaling scaling;
    weir_fit fit;
    AVFrame *source; /* a copy of the source, where it cannot be read as it is; NULL = none */
} weir_scaler;

/* The size of the result, if the first picture has that size. WEIR_OK; or WEIR_ELIMIT with *error (may be NULL) filled: a side
   would be too long. */
int weir__scaler_size(const weir_picture_config *picture, int source_width, int source_height, int *width,
                      int *height, weir_error *error);

/* How a picture of that size is fitted. Both sides are at least one pixel. */
weir_fit weir__scaler_fit(weir_resize resize, int source_width, int source_height, int width, int height);

/* The bytes of one picture of the result, all planes together. */
WEIR_SIBLING_API size_t weir__scaler_picture_bytes(weir_pixel pixel, uint32_t width, uint32_t height);

/* Sets the output for the following pictures, as configured; the config outlives the scaler. *scaler must be all-zero the first
   time. */
void weir__scaler_set(weir_scaler *scaler, const weir_picture_config *picture, int width, int height);

/* `out` has weir__scaler_picture_bytes() and the slack. WEIR_OK, or the failure with *error filled. */
int weir__scaler_run(weir_scaler *scaler, const AVFrame *in, uint8_t *out, weir_error *error);

/* How a picture was scaled. */
typedef struct weir_scaled {
    weir_scaler_kind kind;
    int matrix;
    bool is_full_range;
} weir_scaled;

/* How the last picture was scaled. */
weir_scaled weir__scaler_last(const weir_scaler *scaler);

/* Frees what the scaler holds. It can be used again. */
void weir__scaler_reset(weir_scaler *scaler);

/* ---- for the implementations ---- */

/* Do the frame's values use the full range of 0 to 255, by its format or tag? If unspecified, as in FFmpeg, only gray
   and the yuvj formats do. */
bool weir__scaling_is_full_range(const weir_scaling *scaling);

/* Is this a format with luma and chroma? */
bool weir__format_is_yuv(int format);

/* Is each component a separate plane of whole bytes in native order, 8 to 16 bits, without alpha? */
bool weir__format_is_plain(int format);

#endif
