/*
 * The inner loops of the fast scaler, in C and for AVX2. Internal. Any thread. Both give the same bytes.
 *
 * Samples between the loops are 16 bits with 6 of them behind the point, weights 16 bits with 14 behind it: a picture's
 * values may overshoot by their own range without overflow, and what is rounded away is below a hundredth of a value.
 */
#ifndef WEIR_STAGES_KERNELS_H
#define WEIR_STAGES_KERNELS_H

#include <stdint.h>

enum { WEIR_SAMPLE_BITS = 6, WEIR_WEIGHT_BITS = 14 };

/* Horizontal weights come in groups of so many, the unused ones 0; or in half a group, if that is enough. As many
   samples behind a row must be readable. */
enum { WEIR_TAP_GROUP = 16 };

/* The rows of a vertical sum: those with weights above 0 first, then those below. */
typedef struct weir_row_sum {
    const void **rows;
    const uint32_t *weights; /* without their sign, twice: in the upper and in the lower half */
    int num_positive;
    int num_taps;
} weir_row_sum;

/* A factor: the whole number nearest to it, and what is missing, with 15 bits behind the point. */
typedef struct weir_factor {
    int16_t whole;
    int16_t part;
} weir_factor;

/* What makes RGB of YUV. */
typedef struct weir_colour_matrix {
    int16_t luma_offset; /* taken off first, 6 bits behind the point; of chroma it is 128 */
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

extern const weir_kernels weir_kernels_c;

/* The best for this CPU; weir_kernels_c if there is none better. */
const weir_kernels *weir_kernels_best(void);

#endif
