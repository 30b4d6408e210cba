/* Uses only products, quotients and square roots, which all machines round in the same way. */
#include "stages/batch/crop.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"

enum { WEIGHT_BITS = 14 };

int weir__crop_check(weir_collate_config *config, weir_error *error)
{
    config->min_area = config->min_area > 0 ? config->min_area : 0.08;
    config->max_area = config->max_area > 0 ? config->max_area : 1;
    config->min_aspect = config->min_aspect > 0 ? config->min_aspect : 3.0 / 4;
    config->max_aspect = config->max_aspect > 0 ? config->max_aspect : 4.0 / 3;
    if ((config->crop_width == 0) != (config->crop_height == 0))
        return weir_error_set(error, WEIR_EINVAL, 0, "set both crop_width and crop_height, or neither");
    if ((unsigned)config->crop > WEIR_CROP_RESIZED || (config->crop && !config->crop_width))
        return weir_error_set(error, WEIR_EINVAL, 0, "crop %d needs crop_width and crop_height", (int)config->crop);
    if (!(config->flip >= 0 && config->flip <= 1))
        return weir_error_set(error, WEIR_EINVAL, 0, "flip is %g; it must be a probability, 0 to 1", config->flip);
    if (config->max_area > 1 || config->min_area > config->max_area || config->min_aspect > config->max_aspect)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "areas must be at most 1, and no minimum may be above its maximum");
    return WEIR_OK;
}

static double draw_between(uint64_t *state, double low, double high)
{
    return low + (high - low) * ((double)(weir__random_next(state) >> 11) / 9007199254740992.0);
}

/* A random aspect (width / height), symmetric around 1. */
static double draw_aspect(const weir_collate_config *config, uint64_t *state)
{
    bool is_wide = weir__random_next(state) >> 63;
    if (is_wide)
        return draw_between(state, config->min_aspect, config->max_aspect);
    return 1 / draw_between(state, 1 / config->max_aspect, 1 / config->min_aspect);
}

static void set_position(weir_crop_area *crop, uint32_t width, uint32_t height, uint64_t *state)
{
    crop->x = (uint32_t)weir__random_below(state, width - crop->width + 1);
    crop->y = (uint32_t)weir__random_below(state, height - crop->height + 1);
}

/* The largest centred area with the crop's aspect, if no random one fits. */
static void cover_picture(const weir_collate_config *config, uint32_t width, uint32_t height, weir_crop_area *crop)
{
    uint64_t fitted = (uint64_t)height * config->crop_width / config->crop_height;
    crop->width = fitted < width ? (uint32_t)fitted : width;
    fitted = (uint64_t)width * config->crop_height / config->crop_width;
    crop->height = fitted < height ? (uint32_t)fitted : height;
    crop->width = crop->width ? crop->width : 1;
    crop->height = crop->height ? crop->height : 1;
    crop->x = (width - crop->width) / 2;
    crop->y = (height - crop->height) / 2;
}

static void draw_resized(const weir_collate_config *config, uint32_t width, uint32_t height, uint64_t *state,
                         weir_crop_area *crop)
{
    enum { MAX_TRIES = 10 };
    for (int try = 0; try < MAX_TRIES; try++) {
        double area = (double)width * height * draw_between(state, config->min_area, config->max_area);
        double aspect = draw_aspect(config, state);
        double wanted_width = floor(sqrt(area * aspect) + 0.5);
        double wanted_height = floor(sqrt(area / aspect) + 0.5);
        if (wanted_width >= 1 && wanted_width <= width && wanted_height >= 1 && wanted_height <= height) {
            crop->width = (uint32_t)wanted_width;
            crop->height = (uint32_t)wanted_height;
            set_position(crop, width, height, state);
            return;
        }
    }
    cover_picture(config, width, height, crop);
}

int weir__crop_draw(const weir_collate_config *config, uint32_t width, uint32_t height, uint64_t epoch, uint64_t id,
                    weir_crop_area *crop, weir_error *error)
{
    uint64_t state = weir__random_seed(weir__random_seed(config->seed, epoch), id);
    *crop = (weir_crop_area){ .width = width, .height = height };
    crop->is_flipped = draw_between(&state, 0, 1) < config->flip;
    if (config->crop_width == 0)
        return WEIR_OK;
    if (config->crop == WEIR_CROP_RESIZED) {
        draw_resized(config, width, height, &state, crop);
        return WEIR_OK;
    }
    if (config->crop_width > width || config->crop_height > height)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the frames, %" PRIu32 "×%" PRIu32 ", are smaller than the crop, %" PRIu32 "×%" PRIu32,
                              width, height, config->crop_width, config->crop_height);
    crop->width = config->crop_width;
    crop->height = config->crop_height;
    if (config->crop == WEIR_CROP_RANDOM)
        set_position(crop, width, height, &state);
    else
        *crop = (weir_crop_area){ (width - crop->width) / 2, (height - crop->height) / 2, crop->width, crop->height,
                                  crop->is_flipped };
    return WEIR_OK;
}

/* ---- resizing --------------------------------------------------------------------------------------------------- */

void weir__taps_free(weir_taps *taps)
{
    free(taps->starts);
    free(taps->weights);
    *taps = (weir_taps){ 0 };
}

/* The weights around `centre`; the rounding error is added to the largest. */
static void fill_taps(const weir_taps *taps, uint32_t output, double centre, double reach)
{
    int16_t *weights = taps->weights + (size_t)output * taps->num_taps;
    double sum = 0;
    int32_t rest = 1 << WEIGHT_BITS;
    uint32_t largest = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t t = 0; t < taps->num_taps; t++) {
            double distance = fabs((double)(taps->starts[output] + t) + 0.5 - centre) / reach;
            double weight = distance < 1 ? 1 - distance : 0;
            if (pass == 0) {
                sum += weight;
            } else {
                weights[t] = (int16_t)floor(weight / sum * (1 << WEIGHT_BITS) + 0.5);
                rest -= weights[t];
                largest = weights[t] > weights[largest] ? t : largest;
            }
        }
    }
    weights[largest] = (int16_t)(weights[largest] + rest);
}

int weir__taps_make(weir_taps *taps, uint32_t length, uint32_t num_outputs)
{
    double scale = (double)length / num_outputs;
    double reach = scale > 1 ? scale : 1;
    uint32_t num_taps = 2 * (uint32_t)ceil(reach) + 1;
    *taps = (weir_taps){ .num_outputs = num_outputs, .num_taps = num_taps < length ? num_taps : length };
    taps->starts = malloc(num_outputs * sizeof *taps->starts);
    taps->weights = malloc((size_t)num_outputs * taps->num_taps * sizeof *taps->weights);
    if (!taps->starts || !taps->weights)
        return WEIR_ENOMEM;
    for (uint32_t i = 0; i < num_outputs; i++) {
        double centre = ((double)i + 0.5) * scale;
        double start = floor(centre - reach);
        uint32_t last = length - taps->num_taps;
        taps->starts[i] = start <= 0 ? 0 : start >= last ? last : (uint32_t)start;
        fill_taps(taps, i, centre, reach);
    }
    return WEIR_OK;
}

/* Sums of 16-bit values fit: weights are not negative, and add up to 2^14. */
static inline int32_t value_at(const uint8_t *values, size_t i, size_t value_bytes)
{
    uint16_t wide;
    if (value_bytes == 1)
        return values[i];
    memcpy(&wide, values + 2 * i, sizeof wide);
    return wide;
}

static inline void set_rounded(uint8_t *values, size_t i, size_t value_bytes, int32_t sum)
{
    uint16_t wide = (uint16_t)((sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS);
    if (value_bytes == 1)
        values[i] = (uint8_t)wide;
    else
        memcpy(values + 2 * i, &wide, sizeof wide);
}

/* An output row of the crop's width. */
static inline void resize_down(const weir_taps *down, uint32_t y, const uint8_t *from, size_t from_stride,
                               size_t row_values, size_t value_bytes, uint8_t *temp)
{
    const int16_t *weights = down->weights + (size_t)y * down->num_taps;
    const uint8_t *rows = from + down->starts[y] * from_stride;
    for (size_t i = 0; i < row_values; i++) {
        int32_t sum = 0;
        for (uint32_t t = 0; t < down->num_taps; t++)
            sum += value_at(rows + t * from_stride, i, value_bytes) * weights[t];
        set_rounded(temp, i, value_bytes, sum);
    }
}

static inline void resize_across(const weir_taps *across, const uint8_t *temp, unsigned channels, size_t value_bytes,
                                 uint8_t *to)
{
    for (uint32_t x = 0; x < across->num_outputs; x++) {
        const int16_t *weights = across->weights + (size_t)x * across->num_taps;
        size_t first = (size_t)across->starts[x] * channels;
        for (unsigned c = 0; c < channels; c++) {
            int32_t sum = 0;
            for (uint32_t t = 0; t < across->num_taps; t++)
                sum += value_at(temp, first + t * channels + c, value_bytes) * weights[t];
            set_rounded(to, (size_t)x * channels + c, value_bytes, sum);
        }
    }
}

void weir__crop_resize(const weir_taps *across, const weir_taps *down, const uint8_t *from, size_t from_stride,
                       uint32_t from_width, unsigned channels, size_t value_bytes, uint8_t *to, uint8_t *temp)
{
    size_t row_values = (size_t)from_width * channels, row_bytes = across->num_outputs * channels * value_bytes;
    for (uint32_t y = 0; y < down->num_outputs; y++, to += row_bytes) {
        if (value_bytes == 1) { /* loops of their own */
            resize_down(down, y, from, from_stride, row_values, 1, temp);
            resize_across(across, temp, channels, 1, to);
        } else {
            resize_down(down, y, from, from_stride, row_values, 2, temp);
            resize_across(across, temp, channels, 2, to);
        }
    }
}
