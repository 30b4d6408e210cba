/* Bytes to normalised floats, as fast as memory takes them. Internal. Any thread. */
#ifndef WEIR_STAGES_CONVERT_H
#define WEIR_STAGES_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/collate.h>

/* Value i becomes value × scale[i % PERIOD] + bias[i % PERIOD]: a multiple of one and of three channels, and of a vector. */
enum { WEIR_CONVERT_PERIOD = 24 };

typedef struct weir_conversion {
    weir_dtype dtype;
    float scale[WEIR_CONVERT_PERIOD];
    float bias[WEIR_CONVERT_PERIOD];
} weir_conversion;

/* For values of one channel, or (channel -1) of three in turn. */
weir_conversion weir_conversion_make(weir_dtype dtype, const double mean[3], const double std[3], int channel);

/* The same values on every CPU, with vectors or without. */
void weir_convert(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values);

/* Without vectors: what the others are tested against. */
void weir_convert_plain(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values);

#endif
