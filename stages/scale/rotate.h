/*
 * Rotation: phones store pictures in the sensor's orientation, with a display matrix that describes the rotation. It is
 * applied as in the ffmpeg program: rotations by 90 degrees and mirrors, to the whole picture before it is scaled.
 * Internal. One thread at a time for each weir_rotator.
 */
#ifndef STAGES_SCALE_ROTATE_H
#define STAGES_SCALE_ROTATE_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>
#include <libavutil/frame.h>

#include <weir/status.h>

/* Where the sample at x, y of the rotated picture is in the coded one: at y, x if transposed; counted from the other
   end if mirrored. */
typedef struct weir_rotation {
    bool transposed;
    bool mirrored_x; /* the coded picture's columns count from the right */
    bool mirrored_y; /* its rows count from the bottom */
} weir_rotation;

/* All-zero is the initial state. */
typedef struct weir_rotator {
    AVFrame *rotated;
    AVFrame *converted; /* if the format cannot be rotated directly */
    AVFrame *source;    /* a copy, if the decoded picture cannot be read as it is */
} weir_rotator;

/* The rotation of a display matrix (all false: none, or an angle that is not a multiple of 90 degrees). */
weir_rotation weir__rotation_of(const int32_t *matrix);

/* The same of the stream's header; pictures may have their own. */
weir_rotation weir__rotation_of_stream(const AVStream *stream);

/* *out is the rotated picture: `in` itself, or one that is valid until the next call. WEIR_OK, or the failure with
   *error filled. */
int weir__rotator_run(weir_rotator *rotator, const AVStream *stream, const AVFrame *in, const AVFrame **out,
                      weir_error *error);

void weir__rotator_free(weir_rotator *rotator);

#endif
