/* The crop of a clip's pictures, and the resize to the batch's size. Internal. */
#ifndef STAGES_BATCH_CROP_H
#define STAGES_BATCH_CROP_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/collate.h>

typedef struct weir_crop_area {
    uint32_t x, y, width, height; /* of the picture */
    bool is_flipped;
} weir_crop_area;

/* Checks the options and fills in defaults. WEIR_OK, or WEIR_EINVAL with *error filled. */
int weir__crop_check(weir_collate_config *config, weir_error *error);

/* For a clip with pictures of that size. WEIR_OK, or WEIR_EINVAL with *error filled: they are smaller than the crop.
   Any thread. */
int weir__crop_draw(const weir_collate_config *config, uint32_t width, uint32_t height, uint64_t epoch, uint64_t id,
                    weir_crop_area *crop, weir_error *error);

/* One direction of a resize: for each output pixel, consecutive input pixels with weights. */
typedef struct weir_taps {
    uint32_t num_outputs;
    uint32_t num_taps; /* of each output */
    uint32_t *starts;
    int16_t *weights; /* in units of 2^-14; those of one output add up to 1 */
} weir_taps;

/* A triangle filter over `length` pixels, widened for smaller outputs. WEIR_OK or WEIR_ENOMEM; afterwards
   weir__taps_free(). */
int weir__taps_make(weir_taps *taps, uint32_t length, uint32_t num_outputs);
void weir__taps_free(weir_taps *taps);

/* Resizes a crop of pixels with `channels` values of one or two bytes each. from_stride is in bytes. temp has room for a row of
   the crop's width. */
void weir__crop_resize(const weir_taps *across, const weir_taps *down, const uint8_t *from, size_t from_stride,
                       uint32_t from_width, unsigned channels, size_t value_bytes, uint8_t *to, uint8_t *temp);

#endif
