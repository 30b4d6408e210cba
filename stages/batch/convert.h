/* Converts pixels' values of 8 or 16 bits to normalised floats, at memory speed. Internal. Any thread. */
#ifndef STAGES_BATCH_CONVERT_H
#define STAGES_BATCH_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/collate.h>
#include <weir/picture_config.h>

/* Value i becomes value × scale[i % PERIOD] + bias[i % PERIOD]. The period is a multiple of 1, 3 and the vector
   length. */
enum { WEIR_CONVERT_PERIOD = 24 };

typedef struct weir_conversion {
    weir_dtype dtype;
    size_t value_bytes; /* of the input: 1 or 2 */
    float scale[WEIR_CONVERT_PERIOD];
    float bias[WEIR_CONVERT_PERIOD];
} weir_conversion;

/* For values of one channel, or (channel -1) of three interleaved channels. dtype is a float type, or that of the pixels. */
weir_conversion weir__conversion_make(weir_dtype dtype, weir_pixel pixel, const double mean[3], const double std[3],
                                      int channel);

/* The same values on every CPU, with vectors or without. */
void weir__convert(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values);

/* Without vectors: the reference for tests. */
void weir__convert_plain(const weir_conversion *conversion, void *to, const uint8_t *from, size_t num_values);

#endif
