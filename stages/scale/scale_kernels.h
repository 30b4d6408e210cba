/*
 * The inner loops of the fast scaler, in C and for AVX2. Internal. Any thread. Both give the same bytes.
 *
 * Samples between the loops have 16 bits, 6 of them fractional; weights have 16 bits, 14 of them fractional. Values may
 * overshoot by their full range without overflow, and the rounding error is below a hundredth of a value.
 */
#ifndef STAGES_SCALE_SCALE_KERNELS_H
#define STAGES_SCALE_SCALE_KERNELS_H

#include <stdint.h>

enum { WEIR_SAMPLE_BITS = 6, WEIR_WEIGHT_BITS = 14 };

/* Horizontal weights are padded with 0 to groups of this many, or to half a group if that is enough. This many
   samples after a row must be readable. */
enum { WEIR_TAP_GROUP = 16 };

/* The rows of a vertical sum: those with weights above 0 first, then those below. */
typedef struct weir_row_sum {
    const void **rows;
    const uint32_t *weights; /* absolute values, in the upper and again in the lower half */
    int num_positive;
    int num_taps;
} weir_row_sum;

/* A factor: the nearest integer, and the remainder with 15 fractional bits. */
typedef struct weir_factor {
    int16_t whole;
    int16_t part;
} weir_factor;

/* Converts YUV to RGB. */
typedef struct weir_colour_matrix {
    int16_t luma_offset; /* subtracted first, 6 fractional bits; for chroma it is 128 */
    weir_factor luma;
    weir_factor red_v;
    weir_factor green_u;
    weir_factor green_v;
    weir_factor blue_u;
} weir_colour_matrix;

typedef struct weir_kernels {
    /* out[x] = the weighted sum over rows[t][x], samples of 8 bits, or of 16 with `depth` bits used. */
    void (*sum_rows_8)(int16_t *out, const weir_row_sum *sum, int width);
    void (*sum_rows_16)(int16_t *out, const weir_row_sum *sum, int width, int depth);
    /* out[x] = the sum of weights[x][t] × in[starts[x] + t]; num_taps is half a group or whole ones. */
    void (*sum_columns)(int16_t *out, const int16_t *in, const int32_t *starts, const int16_t *weights, int num_taps,
                        int width);
    /* Red, green and blue of Y, U and V, rounded to bytes. */
    void (*mix)(uint8_t *const *rgb, const int16_t *const *yuv, const weir_colour_matrix *matrix, int width);
    /* (in - offset) × factor, rounded to bytes. */
    void (*round)(uint8_t *out, const int16_t *in, int16_t offset, weir_factor factor, int width);
} weir_kernels;

extern const weir_kernels weir__kernels_c;

/* The fastest for this CPU. */
const weir_kernels *weir__kernels_best(void);

#endif
