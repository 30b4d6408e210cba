/*
 * The C loops define the results. The AVX2 loops use whole vectors. The last one overlaps the one before, so that
 * nothing outside a row is read or written. Rows shorter than a vector use the C loops.
 */
#include "stages/scale/scale_kernels.h"

#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_AVX2 1
#include <immintrin.h>
#endif

enum { CHROMA_OFFSET = 128 << WEIR_SAMPLE_BITS };

/* ---- C ------------------------------------------------------------------------------------------------------ */

/* The high half of the doubled product, rounded: the CPU's pmulhrsw, sqrdmulh. */
static int16_t multiply(int16_t a, int16_t b)
{
    return (int16_t)((a * b + (1 << 14)) >> 15);
}

static int16_t saturate(int value)
{
    return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

static uint8_t to_byte(int16_t sample)
{
    int value = saturate(sample + (1 << (WEIR_SAMPLE_BITS - 1))) >> WEIR_SAMPLE_BITS;
    return (uint8_t)(value < 0 ? 0 : value > UINT8_MAX ? UINT8_MAX : value);
}

/* The average loss from truncating the lower halves. */
static int16_t lost_halves(const weir_row_sum *sum)
{
    return (int16_t)((2 * sum->num_positive - sum->num_taps + 1) / 2);
}

/* 16-bit samples times 14-bit weights, upper half: a sample with 6 fractional bits. */
static int16_t sum_row_samples(const weir_row_sum *sum, int x, int depth)
{
    int total = lost_halves(sum);
    for (int t = 0; t < sum->num_taps; t++) {
        unsigned sample = depth == 8 ? ((const uint8_t *)sum->rows[t])[x] : ((const uint16_t *)sum->rows[t])[x];
        unsigned product = (sample << (16 - depth) & UINT16_MAX) * (sum->weights[t] & UINT16_MAX) >> 16;
        total += t < sum->num_positive ? (int)product : -(int)product;
    }
    return (int16_t)total;
}

static void sum_rows_8(int16_t *out, const weir_row_sum *sum, int width)
{
    for (int x = 0; x < width; x++)
        out[x] = sum_row_samples(sum, x, 8);
}

static void sum_rows_16(int16_t *out, const weir_row_sum *sum, int width, int depth)
{
    for (int x = 0; x < width; x++)
        out[x] = sum_row_samples(sum, x, depth);
}

static void sum_columns(int16_t *out, const int16_t *in, const int32_t *starts, const int16_t *weights, int num_taps,
                        int width)
{
    for (int x = 0; x < width; x++) {
        int32_t sum = 1 << (WEIR_WEIGHT_BITS - 1);
        for (int t = 0; t < num_taps; t++)
            sum += in[starts[x] + t] * weights[(ptrdiff_t)x * num_taps + t];
        out[x] = saturate(sum >> WEIR_WEIGHT_BITS);
    }
}

/* sum + sample × factor */
static int16_t add_product(int16_t sum, int16_t sample, weir_factor factor)
{
    return saturate(saturate(sum + (int16_t)(sample * factor.whole)) + multiply(sample, factor.part));
}

static void mix_rgb(uint8_t *const *rgb, const int16_t *const *yuv, const weir_colour_matrix *matrix, int width)
{
    for (int x = 0; x < width; x++) {
        int16_t y = add_product(0, saturate(yuv[0][x] - matrix->luma_offset), matrix->luma);
        int16_t u = saturate(yuv[1][x] - CHROMA_OFFSET);
        int16_t v = saturate(yuv[2][x] - CHROMA_OFFSET);
        rgb[0][x] = to_byte(add_product(y, v, matrix->red_v));
        rgb[1][x] = to_byte(add_product(add_product(y, u, matrix->green_u), v, matrix->green_v));
        rgb[2][x] = to_byte(add_product(y, u, matrix->blue_u));
    }
}

static void round_values(uint8_t *out, const int16_t *in, int16_t offset, weir_factor factor, int width)
{
    for (int x = 0; x < width; x++)
        out[x] = to_byte(add_product(0, saturate(in[x] - offset), factor));
}

const weir_kernels weir__kernels_c = {
    .sum_rows_8 = sum_rows_8,
    .sum_rows_16 = sum_rows_16,
    .sum_columns = sum_columns,
    .mix = mix_rgb,
    .round = round_values,
};

/* ---- AVX2 --------------------------------------------------------------------------------------------------- */

#if HAVE_AVX2
#define AVX2 __attribute__((target("avx2")))

/* There are more rows than the hardware prefetcher tracks, so data is prefetched here. */
enum { BYTES = 32, WORDS = 16, AHEAD_BYTES = 192 };

/* x, or the last position at which a vector fits into the row. */
static int last_start(int x, int vector, int width)
{
    return x + vector <= width ? x : width - vector;
}

AVX2 static __m256i load_words(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

AVX2 static void store_words(int16_t *to, __m256i words)
{
    _mm256_storeu_si256((__m256i *)to, words);
}

/* The products' upper halves, for samples from rows[t] + at bytes. Even and odd samples are in separate words; 64 at
   a time amortise the loop overhead. */
typedef struct sums_8 {
    __m256i even[2];
    __m256i odd[2];
} sums_8;

AVX2 static inline void multiply_bytes(const void *row, ptrdiff_t at, __m256i weight, sums_8 *products)
{
    __m256i upper = _mm256_set1_epi16((int16_t)0xff00);
    _mm_prefetch((const char *)row + at + AHEAD_BYTES, _MM_HINT_T0);
    for (int i = 0; i < 2; i++) {
        __m256i bytes = load_words((const uint8_t *)row + at + i * BYTES);
        products->even[i] = _mm256_mulhi_epu16(_mm256_slli_epi16(bytes, 8), weight);
        products->odd[i] = _mm256_mulhi_epu16(_mm256_and_si256(bytes, upper), weight);
    }
}

AVX2 static inline void store_interleaved(int16_t *out, __m256i even, __m256i odd)
{
    __m256i low = _mm256_unpacklo_epi16(even, odd); /* within the halves of a vector */
    __m256i high = _mm256_unpackhi_epi16(even, odd);
    store_words(out, _mm256_permute2x128_si256(low, high, 0x20));
    store_words(out + WORDS, _mm256_permute2x128_si256(low, high, 0x31));
}

AVX2 static void sum_rows_8_avx2(int16_t *out, const weir_row_sum *sum, int width)
{
    if (width < 2 * BYTES) {
        sum_rows_8(out, sum, width);
        return;
    }
    for (int next = 0; next < width; next += 2 * BYTES) {
        int x = last_start(next, 2 * BYTES, width);
        __m256i first = _mm256_set1_epi16(lost_halves(sum));
        sums_8 sums = { { first, first }, { first, first } };
        sums_8 products;
        int t = 0;
        for (; t < sum->num_positive; t++) {
            multiply_bytes(sum->rows[t], x, _mm256_set1_epi32((int)sum->weights[t]), &products);
            for (int i = 0; i < 2; i++) {
                sums.even[i] = _mm256_add_epi16(sums.even[i], products.even[i]);
                sums.odd[i] = _mm256_add_epi16(sums.odd[i], products.odd[i]);
            }
        }
        for (; t < sum->num_taps; t++) {
            multiply_bytes(sum->rows[t], x, _mm256_set1_epi32((int)sum->weights[t]), &products);
            for (int i = 0; i < 2; i++) {
                sums.even[i] = _mm256_sub_epi16(sums.even[i], products.even[i]);
                sums.odd[i] = _mm256_sub_epi16(sums.odd[i], products.odd[i]);
            }
        }
        for (int i = 0; i < 2; i++)
            store_interleaved(out + x + i * BYTES, sums.even[i], sums.odd[i]);
    }
}

AVX2 static void sum_rows_16_avx2(int16_t *out, const weir_row_sum *sum, int width, int depth)
{
    if (width < WORDS) {
        sum_rows_16(out, sum, width, depth);
        return;
    }
    __m128i shift = _mm_cvtsi32_si128(16 - depth);
    for (int next = 0; next < width; next += WORDS) {
        int x = last_start(next, WORDS, width);
        __m256i total = _mm256_set1_epi16(lost_halves(sum));
        int t = 0;
        for (; t < sum->num_taps; t++) {
            __m256i samples = _mm256_sll_epi16(load_words((const uint16_t *)sum->rows[t] + x), shift);
            __m256i products = _mm256_mulhi_epu16(samples, _mm256_set1_epi32((int)sum->weights[t]));
            total = t < sum->num_positive ? _mm256_add_epi16(total, products) : _mm256_sub_epi16(total, products);
        }
        store_words(out + x, total);
    }
}

/* The sums of one result's products, in eight parts. */
AVX2 static inline __m256i sum_taps(const int16_t *in, const int16_t *weights, int num_taps)
{
    __m256i sum = _mm256_madd_epi16(load_words(in), load_words(weights));
    for (int t = WEIR_TAP_GROUP; t < num_taps; t += WEIR_TAP_GROUP)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load_words(in + t), load_words(weights + t)));
    return sum;
}

/* Adds neighbouring parts: those of a to even positions, those of b to odd ones. Like hadd, with half the shuffles. */
AVX2 static inline __m256i add_pairs(__m256i a, __m256i b)
{
    __m256i straight = _mm256_blend_epi32(a, b, 0xaa);
    __m256i crossed = _mm256_shuffle_epi32(_mm256_blend_epi32(a, b, 0x55), 0xb1);
    return _mm256_add_epi32(straight, crossed);
}

AVX2 static inline __m256i add_quads(__m256i ab, __m256i cd)
{
    __m256i straight = _mm256_blend_epi32(ab, cd, 0xcc);
    __m256i crossed = _mm256_shuffle_epi32(_mm256_blend_epi32(ab, cd, 0x33), 0x4e);
    return _mm256_add_epi32(straight, crossed);
}

/* Adds the parts of four results; each sum is still split into a lower and an upper half. */
AVX2 static inline __m256i sum_four(const int16_t *in, const int32_t *starts, const int16_t *weights, int num_taps)
{
    __m256i a = sum_taps(in + starts[0], weights, num_taps);
    __m256i b = sum_taps(in + starts[1], weights + num_taps, num_taps);
    __m256i c = sum_taps(in + starts[2], weights + 2 * (ptrdiff_t)num_taps, num_taps);
    __m256i d = sum_taps(in + starts[3], weights + 3 * (ptrdiff_t)num_taps, num_taps);
    return add_quads(add_pairs(a, b), add_pairs(c, d));
}

AVX2 static inline __m256i sum_eight(const int16_t *in, const int32_t *starts, const int16_t *weights, int num_taps)
{
    __m256i first = sum_four(in, starts, weights, num_taps);
    __m256i second = sum_four(in, starts + 4, weights + 4 * (ptrdiff_t)num_taps, num_taps);
    return _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                            _mm256_permute2x128_si256(first, second, 0x31));
}

/* The same for half a group of taps: result i in the lower half of a vector, result i + 1 in the upper. */
AVX2 static inline __m256i sum_half_groups(const int16_t *in, const int32_t *starts, const int16_t *weights, int i)
{
    __m128i lower = _mm_loadu_si128((const __m128i *)(in + starts[i]));
    __m128i upper = _mm_loadu_si128((const __m128i *)(in + starts[i + 1]));
    __m256i samples = _mm256_inserti128_si256(_mm256_castsi128_si256(lower), upper, 1);
    return _mm256_madd_epi16(samples, load_words(weights + i * (WEIR_TAP_GROUP / 2)));
}

AVX2 static inline __m256i sum_eight_halves(const int16_t *in, const int32_t *starts, const int16_t *weights)
{
    __m256i sums =
        add_quads(add_pairs(sum_half_groups(in, starts, weights, 0), sum_half_groups(in, starts, weights, 2)),
                  add_pairs(sum_half_groups(in, starts, weights, 4), sum_half_groups(in, starts, weights, 6)));
    return _mm256_permutevar8x32_epi32(sums, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

AVX2 static void sum_columns_avx2(int16_t *out, const int16_t *in, const int32_t *starts, const int16_t *weights,
                                  int num_taps, int width)
{
    enum { RESULTS = 8 };
    if (width < RESULTS) {
        sum_columns(out, in, starts, weights, num_taps, width);
        return;
    }
    __m256i half = _mm256_set1_epi32(1 << (WEIR_WEIGHT_BITS - 1));
    for (int next = 0; next < width; next += RESULTS) {
        int x = last_start(next, RESULTS, width);
        const int16_t *at = weights + (ptrdiff_t)x * num_taps;
        __m256i sum;
        if (num_taps < WEIR_TAP_GROUP)
            sum = sum_eight_halves(in, starts + x, at);
        else if (num_taps == WEIR_TAP_GROUP) /* a constant for the compiler */
            sum = sum_eight(in, starts + x, at, WEIR_TAP_GROUP);
        else
            sum = sum_eight(in, starts + x, at, num_taps);
        sum = _mm256_srai_epi32(_mm256_add_epi32(sum, half), WEIR_WEIGHT_BITS);
        __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        _mm_storeu_si128((__m128i *)(out + x), words);
    }
}

AVX2 static void store_bytes(uint8_t *out, __m256i samples)
{
    samples = _mm256_adds_epi16(samples, _mm256_set1_epi16(1 << (WEIR_SAMPLE_BITS - 1)));
    samples = _mm256_srai_epi16(samples, WEIR_SAMPLE_BITS);
    __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(samples), _mm256_extracti128_si256(samples, 1));
    _mm_storeu_si128((__m128i *)out, bytes);
}

AVX2 static inline __m256i add_products(__m256i sum, __m256i samples, weir_factor factor)
{
    __m256i whole = _mm256_mullo_epi16(samples, _mm256_set1_epi16(factor.whole));
    __m256i part = _mm256_mulhrs_epi16(samples, _mm256_set1_epi16(factor.part));
    return _mm256_adds_epi16(_mm256_adds_epi16(sum, whole), part);
}

AVX2 static void mix_avx2(uint8_t *const *rgb, const int16_t *const *yuv, const weir_colour_matrix *matrix, int width)
{
    if (width < WORDS) {
        mix_rgb(rgb, yuv, matrix, width);
        return;
    }
    __m256i chroma_offset = _mm256_set1_epi16(CHROMA_OFFSET);
    for (int next = 0; next < width; next += WORDS) {
        int x = last_start(next, WORDS, width);
        __m256i y = _mm256_subs_epi16(load_words(yuv[0] + x), _mm256_set1_epi16(matrix->luma_offset));
        __m256i u = _mm256_subs_epi16(load_words(yuv[1] + x), chroma_offset);
        __m256i v = _mm256_subs_epi16(load_words(yuv[2] + x), chroma_offset);
        y = add_products(_mm256_setzero_si256(), y, matrix->luma);
        store_bytes(rgb[0] + x, add_products(y, v, matrix->red_v));
        store_bytes(rgb[1] + x, add_products(add_products(y, u, matrix->green_u), v, matrix->green_v));
        store_bytes(rgb[2] + x, add_products(y, u, matrix->blue_u));
    }
}

AVX2 static void round_row_avx2(uint8_t *out, const int16_t *in, int16_t offset, weir_factor factor, int width)
{
    if (width < WORDS) {
        round_values(out, in, offset, factor, width);
        return;
    }
    for (int next = 0; next < width; next += WORDS) {
        int x = last_start(next, WORDS, width);
        __m256i samples = _mm256_subs_epi16(load_words(in + x), _mm256_set1_epi16(offset));
        store_bytes(out + x, add_products(_mm256_setzero_si256(), samples, factor));
    }
}

static const weir_kernels kernels_avx2 = {
    .sum_rows_8 = sum_rows_8_avx2,
    .sum_rows_16 = sum_rows_16_avx2,
    .sum_columns = sum_columns_avx2,
    .mix = mix_avx2,
    .round = round_row_avx2,
};
#endif

const weir_kernels *weir__kernels_best(void)
{
#if HAVE_AVX2
    if (__builtin_cpu_supports("avx2"))
        return &kernels_avx2;
#endif
    return &weir__kernels_c;
}
