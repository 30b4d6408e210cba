/* Compilers do not generate these shuffles at -O2, so the one that every picture needs is written with intrinsics. */
#include "stages/memory/pixel_rows.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86 1
#include <immintrin.h>
#elif defined(__aarch64__)
#define HAVE_NEON 1
#include <arm_neon.h>
#endif

#if HAVE_X86 || HAVE_NEON
enum { VECTOR = 16 };
#endif

#if HAVE_X86
/* The source of byte i of the first, second and third 16 bytes of packed pixels; bytes of other planes are 0. */
#define O (-1)
static const int8_t joins[3][3][VECTOR] = {
    { { 0, O, O, 1, O, O, 2, O, O, 3, O, O, 4, O, O, 5 },
      { O, 0, O, O, 1, O, O, 2, O, O, 3, O, O, 4, O, O },
      { O, O, 0, O, O, 1, O, O, 2, O, O, 3, O, O, 4, O } },
    { { O, O, 6, O, O, 7, O, O, 8, O, O, 9, O, O, 10, O },
      { 5, O, O, 6, O, O, 7, O, O, 8, O, O, 9, O, O, 10 },
      { O, 5, O, O, 6, O, O, 7, O, O, 8, O, O, 9, O, O } },
    { { O, 11, O, O, 12, O, O, 13, O, O, 14, O, O, 15, O, O },
      { O, O, 11, O, O, 12, O, O, 13, O, O, 14, O, O, 15, O },
      { 10, O, O, 11, O, O, 12, O, O, 13, O, O, 14, O, O, 15 } },
};
#undef O

/* Returns the number of pixels converted, from the start. */
__attribute__((target("ssse3"))) static int join_vectors(const uint8_t *red, const uint8_t *green,
                                                         const uint8_t *blue, uint8_t *packed, int num_pixels)
{
    __m128i shuffles[3][3];
    for (int i = 0; i < 9; i++)
        shuffles[i / 3][i % 3] = _mm_loadu_si128((const __m128i *)joins[i / 3][i % 3]);
    int x = 0;
    for (; x + VECTOR <= num_pixels; x += VECTOR) {
        __m128i r = _mm_loadu_si128((const __m128i *)(red + x));
        __m128i g = _mm_loadu_si128((const __m128i *)(green + x));
        __m128i b = _mm_loadu_si128((const __m128i *)(blue + x));
        __m128i *to = (__m128i *)(packed + 3 * x);
        for (int i = 0; i < 3; i++)
            _mm_storeu_si128(to + i, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(r, shuffles[i][0]),
                                                               _mm_shuffle_epi8(g, shuffles[i][1])),
                                                  _mm_shuffle_epi8(b, shuffles[i][2])));
    }
    return x;
}

static int can_join_vectors(void)
{
    return __builtin_cpu_supports("ssse3") != 0;
}
#elif HAVE_NEON
static int join_vectors(const uint8_t *red, const uint8_t *green, const uint8_t *blue, uint8_t *packed,
                        int num_pixels)
{
    int x = 0;
    for (; x + VECTOR <= num_pixels; x += VECTOR) {
        uint8x16x3_t pixels = { { vld1q_u8(red + x), vld1q_u8(green + x), vld1q_u8(blue + x) } };
        vst3q_u8(packed + 3 * x, pixels);
    }
    return x;
}

static int can_join_vectors(void)
{
    return 1;
}
#else
static int join_vectors(const uint8_t *red, const uint8_t *green, const uint8_t *blue, uint8_t *packed,
                        int num_pixels)
{
    (void)red;
    (void)green;
    (void)blue;
    (void)packed;
    (void)num_pixels;
    return 0;
}

static int can_join_vectors(void)
{
    return 0;
}
#endif

/* Values of two bytes: they are copied, whatever their alignment. */
static void join_wide(const uint8_t *const planes[3], uint8_t *packed, int num_pixels)
{
    for (int x = 0; x < num_pixels; x++)
        for (int c = 0; c < 3; c++)
            memcpy(packed + 2 * (3 * x + c), planes[c] + 2 * x, 2);
}

static void split_wide(const uint8_t *packed, uint8_t *const planes[3], int num_pixels)
{
    for (int x = 0; x < num_pixels; x++)
        for (int c = 0; c < 3; c++)
            memcpy(planes[c] + 2 * x, packed + 2 * (3 * x + c), 2);
}

void weir__rows_join(const uint8_t *red, const uint8_t *green, const uint8_t *blue, uint8_t *packed, int num_pixels,
                     size_t value_bytes)
{
    if (value_bytes == 2) {
        join_wide((const uint8_t *const[]){ red, green, blue }, packed, num_pixels);
        return;
    }
    int x = can_join_vectors() ? join_vectors(red, green, blue, packed, num_pixels) : 0;
    for (; x < num_pixels; x++) {
        packed[3 * x] = red[x];
        packed[3 * x + 1] = green[x];
        packed[3 * x + 2] = blue[x];
    }
}

void weir__rows_split(const uint8_t *packed, uint8_t *red, uint8_t *green, uint8_t *blue, int num_pixels,
                      size_t value_bytes)
{
    if (value_bytes == 2) {
        split_wide(packed, (uint8_t *const[]){ red, green, blue }, num_pixels);
        return;
    }
    for (int x = 0; x < num_pixels; x++) {
        red[x] = packed[3 * x];
        green[x] = packed[3 * x + 1];
        blue[x] = packed[3 * x + 2];
    }
}
