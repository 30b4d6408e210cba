/* The options that choose frames of a video: their kinds, and the weir_sampling that their values make. */
#ifndef TOOLS_RECORD_SAMPLING_OPTIONS_H
#define TOOLS_RECORD_SAMPLING_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/video.h>

#include "tools/cli/options.h"

/* Frames by time or by number; all-zero is none. */
typedef struct sampling_list {
    int64_t *values; /* ns, or numbers */
    size_t num_values;
} sampling_list;

typedef struct sampling_ratio {
    uint32_t num, den; /* den 0 = not given */
} sampling_ratio;

typedef struct sampling_range {
    int64_t start_ns, end_ns; /* as in weir_sampling */
} sampling_range;

typedef struct sampling_length {
    uint32_t frames; /* one of the two */
    int64_t ns;
} sampling_length;

/* The values of the options; all-zero = none was given. */
typedef struct sampling_settings {
    sampling_list at;
    int match; /* weir_time_match */
    int64_t tolerance_ns;
    int outside; /* weir_time_outside */
    int origin;  /* weir_time_origin */
    sampling_list indices;
    int64_t every;
    sampling_ratio rate;
    int64_t count;
    int64_t random;
    bool keyframes;
    int64_t clip; /* frames */
    uint32_t num_clips;
    sampling_length stride;
    int clip_start; /* weir_clip_start */
    int clip_short; /* weir_clip_short */

    sampling_range window;
    int64_t first;
    sampling_length interval;
    uint64_t seed;
} sampling_settings;

extern const option_kind sampling_times;    /* sampling_list */
extern const option_kind sampling_indices;  /* sampling_list */
extern const option_kind sampling_rate;     /* sampling_ratio */
extern const option_kind sampling_window;   /* sampling_range */
extern const option_kind sampling_interval; /* sampling_length */
extern const option_kind sampling_stride;   /* sampling_length */
extern const option_kind sampling_span;     /* int64_t, ns */
extern const option_kind sampling_seed;     /* uint64_t */

extern const char *const sampling_match_names[];      /* as weir_time_match */
extern const char *const sampling_outside_names[];    /* as weir_time_outside */
extern const char *const sampling_origin_names[];     /* as weir_time_origin */
extern const char *const sampling_clip_start_names[]; /* as weir_clip_start */
extern const char *const sampling_clip_short_names[]; /* as weir_clip_short */

/* The sampling that the settings choose. Its lists belong to the settings. The rows of the options exclude options
   that contradict each other. */
weir_sampling sampling_choose(const sampling_settings *settings);

void sampling_free(sampling_settings *settings);

#endif
