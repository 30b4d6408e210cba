/*
 * Each value is rounded to float after the product and after the sum. Product and sum are never fused (see
 * -ffp-contract in CMakeLists.txt). The value is narrowed with rounding to nearest, ties to even. So vectors and
 * plain loops give the same bits.
 */
#include "stages/batch/convert.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_AVX2 1
#include <immintrin.h>
#endif

weir_conversion weir__conversion_make(weir_dtype dtype, weir_pixel pixel, const double mean[3], const double std[3],
                                      int channel)
{
    weir_conversion conversion = { .dtype = dtype, .value_bytes = weir_pixel_value_bytes(pixel) };
    for (int i = 0; i < WEIR_CONVERT_PERIOD; i++) {
        int c = channel < 0 ? i % 3 : channel;
        double deviation = std[c] > 0 ? std[c] : 1;
        conversion.scale[i] = (float)(1 / (weir_pixel_max_value(pixel) * deviation));
        conversion.bias[i] = (float)(-mean[c] / deviation);
    }
    return conversion;
}

/* ---- plain ------------------------------------------------------------------------------------------------------- */

static uint16_t to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Handles subnormal and too large values; values are never NaN. */
static uint16_t to_float16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits >= 0x477ff000) /* 65520, halfway beyond the largest */
        return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000) { /* 2^-14: the addition rounds correctly */
        float magnitude;
        memcpy(&magnitude, &bits, sizeof bits);
        magnitude += 0.5F;
        memcpy(&bits, &magnitude, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    return (uint16_t)(sign | ((bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13));
}

static uint16_t value_at(const uint8_t *from, size_t i, size_t value_bytes)
{
    uint16_t value;
    if (value_bytes == 1)
        return from[i];
    memcpy(&value, from + 2 * i, sizeof value);
    return value;
}

static bool is_integer(weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_UINT8 || dtype == WEIR_DTYPE_UINT16;
}

static void convert_from(const weir_conversion *conversion, void *to, const uint8_t *from, size_t start, size_t end)
{
    float *floats = to;
    uint16_t *halves = to;
    for (size_t i = start, phase = start % WEIR_CONVERT_PERIOD; i < end; i++) {
        float product = (float)value_at(from, i, conversion->value_bytes) * conversion->scale[phase];
        float value = product + conversion->bias[phase];
        if (conversion->dtype == WEIR_DTYPE_FLOAT32)
            floats[i] = value;
        else
            halves[i] = conversion->dtype == WEIR_DTYPE_BFLOAT16 ? to_bfloat16(value) : to_float16(value);
        phase = phase + 1 == WEIR_CONVERT_PERIOD ? 0 : phase + 1;
    }
}

void weir__convert_plain(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values)
{
    if (is_integer(conversion->dtype))
        memcpy(to, from, num_values * conversion->value_bytes);
    else
        convert_from(conversion, to, from, 0, num_values);
}

/* ---- AVX2 -------------------------------------------------------------------------------------------------------- */

#ifdef HAVE_AVX2

#define AVX2 __attribute__((target("avx2,f16c")))

/* Eight values from value i on. */
static inline AVX2 __m256 eight(const uint8_t *from, size_t i, size_t value_bytes, __m256 scale, __m256 bias)
{
    const uint8_t *at = from + i * value_bytes;
    __m256i wide = value_bytes == 1 ? _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)at))
                                    : _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)at));
    return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(wide), scale), bias);
}

static inline AVX2 __m128i eight_bfloat16(__m256 values)
{
    __m256i bits = _mm256_castps_si256(values);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

/* Whole periods only; returns the number of values converted. */
static inline AVX2 size_t convert_vectors(const weir_conversion *conversion, void *to, const uint8_t *from,
                                          size_t num_values, size_t value_bytes)
{
    enum { LANES = 8, VECTORS = WEIR_CONVERT_PERIOD / LANES };
    __m256 scale[VECTORS], bias[VECTORS];
    size_t end = num_values - num_values % WEIR_CONVERT_PERIOD;
    for (int v = 0; v < VECTORS; v++) {
        scale[v] = _mm256_loadu_ps(conversion->scale + LANES * v);
        bias[v] = _mm256_loadu_ps(conversion->bias + LANES * v);
    }
    if (conversion->dtype == WEIR_DTYPE_FLOAT32) {
        float *out = to;
        for (size_t i = 0; i < end; i += WEIR_CONVERT_PERIOD)
            for (int v = 0; v < VECTORS; v++)
                _mm256_storeu_ps(out + i + LANES * v,
                                 eight(from, i + (size_t)(LANES * v), value_bytes, scale[v], bias[v]));
        return end;
    }
    uint16_t *out = to;
    bool is_brain = conversion->dtype == WEIR_DTYPE_BFLOAT16;
    for (size_t i = 0; i < end; i += WEIR_CONVERT_PERIOD)
        for (int v = 0; v < VECTORS; v++) {
            __m256 values = eight(from, i + (size_t)(LANES * v), value_bytes, scale[v], bias[v]);
            __m128i narrow = is_brain ? eight_bfloat16(values) : _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
            _mm_storeu_si128((__m128i *)(out + i + LANES * v), narrow);
        }
    return end;
}

/* Each has a loop of its own for its values. */
static AVX2 size_t convert_narrow(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values)
{
    return convert_vectors(conversion, to, from, num_values, 1);
}

static AVX2 size_t convert_wide(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values)
{
    return convert_vectors(conversion, to, from, num_values, 2);
}

void weir__convert(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values)
{
    if (is_integer(conversion->dtype) || !__builtin_cpu_supports("avx2")) { /* every CPU with AVX2 has F16C */
        weir__convert_plain(conversion, to, from, num_values);
        return;
    }
    size_t done = conversion->value_bytes == 1 ? convert_narrow(conversion, to, from, num_values)
                                               : convert_wide(conversion, to, from, num_values);
    convert_from(conversion, to, from, done, num_values);
}

#else

void weir__convert(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values)
{
    weir__convert_plain(conversion, to, from, num_values);
}

#endif
