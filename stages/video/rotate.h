/*
 * Rotation: phones store pictures as the sensor has them, and beside them how to hold them upright (the display matrix).
 * Applied as the ffmpeg program does it by itself: quarter turns and mirrors, to the whole picture before it is scaled.
 * Internal. One thread at a time for each weir_upright.
 */
#ifndef WEIR_STAGES_UPRIGHT_H
#define WEIR_STAGES_UPRIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>
#include <libavutil/frame.h>

#include <weir/status.h>

/* Where the sample at x, y of the upright picture is in the coded one: at y, x if transposed; counted from the other end
   if mirrored. */
typedef struct weir_turn {
    bool transposed;
    bool mirrored_x; /* the coded picture's columns count from the right */
    bool mirrored_y; /* its rows count from the bottom */
} weir_turn;

/* All-zero is a new one. */
typedef struct weir_upright {
    AVFrame *turned;
    AVFrame *converted; /* where the format cannot be turned */
} weir_upright;

/* What a display matrix asks for (all false: nothing, or an angle that is no quarter turn). */
weir_turn weir_turn_of(const int32_t *matrix);

/* *out is the upright picture: `in` itself, or one that lives until the next call. WEIR_OK, or the failure with *error
   filled. */
int weir_upright_run(weir_upright *upright, const AVStream *stream, const AVFrame *in, const AVFrame **out,
                     weir_error *error);

void weir_upright_free(weir_upright *upright);

#endif
