/*
 * The pictures that the price list measures against: FFmpeg's bicubic (its kernel, widened for smaller pictures, chroma in
 * the middle of its pixels, colour matrix and range as the picture tells), in double precision throughout and rounded
 * once, at the end. Slow, and shares no code with the stage.
 */
#ifndef BENCH_BICUBIC_H
#define BENCH_BICUBIC_H

#include <stddef.h>
#include <stdint.h>

#include <libavutil/frame.h>

/* Where the stretched picture goes, in each of the stage's kinds of pixels. */
typedef struct bicubic_picture {
    uint8_t *rgb24;
    uint8_t *gray8;
    uint8_t *yuv420p; /* planes of Y, U and V; their sizes as the stage has them */
} bicubic_picture;

size_t bicubic_yuv420p_bytes(int width, int height);

/* Makes it of a picture of YUV planes of 8 to 16 bits. 0; 1 = it is of another kind; -1 = out of memory. */
int bicubic_make(const AVFrame *in, int width, int height, const bicubic_picture *out);

#endif
