/*
 * Pictures for libraries that may touch whole strides: every picture that weir gives to swscale or libavfilter goes
 * through here, and every one that its own loops read. Internal. Any thread, one at a time for each picture.
 *
 * Such a library copies height × stride bytes at once where two strides are equal, and converts whole strides (swscale:
 * XYZ, also where it scales); its loops work on whole vectors. So it must not get a window of a larger buffer, unless
 * all that it may touch is in that buffer, too. Such a window is a picture that a container or a filter has cropped,
 * one field of two, or the middle of a result.
 */
#ifndef STAGES_SCALE_LENT_PICTURE_H
#define STAGES_SCALE_LENT_PICTURE_H

#include <stdbool.h>

#include <libavutil/frame.h>

#include <weir/status.h>

/* Bytes behind the last whole stride of a plane that a library may touch as well: the least that av_frame_get_buffer()
   leaves there. */
enum { WEIR_LENT_GUARD_BYTES = 32 };

/* What of a picture is read. */
typedef enum weir_touch {
    WEIR_TOUCH_STRIDES = 0, /* by a library: whole strides, and the guard bytes */
    WEIR_TOUCH_ROWS,        /* by weir's own loops: the pixels; FFmpeg's field filter shows rows that are not there */
} weir_touch;

/* WEIR_OK: the CPU may touch the picture. WEIR_EUNSUPPORTED with *error filled: it is a surface of a device's decoder; `who`
   ("scaling") wanted to. */
int weir__picture_check(const AVFrame *picture, const char *who, weir_error *error);

/* A picture to be read, after weir__picture_check(). *out is `in` if all that may be touched is in its buffers.
   Otherwise it is a copy of the pixels, without the properties, in *copy (NULL = none yet). The copy is kept for the
   next picture; the caller frees it. WEIR_OK, or the failure with *error filled. */
int weir__lend_source(AVFrame **copy, const AVFrame *in, weir_touch touch, const AVFrame **out, weir_error *error);

/* A picture of its own for a library to write to, in *frame (NULL = none yet); it is reused if it is like that already
   and nobody else holds it. Rows are as long as in FFmpeg's frames, as some of swscale's loops depend on their length. The
   caller frees it. WEIR_OK, or the failure with *error filled. */
int weir__lend_room(AVFrame **frame, int format, int width, int height, weir_error *error);

/* May a library write rows of row_pixels RGB pixels directly to memory of that stride? Only if a stride is a row and
   whole vectors: then it touches nothing but the rows, and the slack behind the last one
   (WEIR_SCALER_SLACK_BYTES). */
bool weir__can_lend_rows(int row_pixels, int stride);

#endif
