/* Rows of pixels from one layout to another, as fast as the CPU can. Internal. Any thread. */
#ifndef STAGES_MEMORY_PIXEL_ROWS_H
#define STAGES_MEMORY_PIXEL_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* Three planes' rows to one of packed pixels, and back, in values of one or two bytes. Writes exactly 3 × num_pixels values. */
void weir__rows_join(const uint8_t *red, const uint8_t *green, const uint8_t *blue, uint8_t *packed, int num_pixels,
                     size_t value_bytes);
void weir__rows_split(const uint8_t *packed, uint8_t *red, uint8_t *green, uint8_t *blue, int num_pixels,
                      size_t value_bytes);

#endif
