/*
 * The reference pictures for PSNR: FFmpeg's bicubic scaling (its kernel, widened when scaling down, chroma centred in
 * its pixels, colour matrix and range from the picture), in double precision and rounded once, at the end. Slow, and
 * shares no code with the stage.
 */
#ifndef BENCH_BICUBIC_H
#define BENCH_BICUBIC_H

#include <stddef.h>
#include <stdint.h>

#include <libavutil/frame.h>

/* Buffers for the stretched picture, one for each pixel format of the stage. */
typedef struct bicubic_picture {
    uint8_t *rgb24;
    uint8_t *gray8;
    uint8_t *yuv420p; /* planes of Y, U and V; same sizes as in the stage */
} bicubic_picture;

size_t bicubic_yuv420p_bytes(int width, int height);

/* Converts a picture with YUV planes of 8 to 16 bits. Returns 0; 1 = other pixel format; -1 = out of memory. */
int bicubic_make(const AVFrame *in, int width, int height, const bicubic_picture *out);

#endif
