#include "stages/reader/sampling_fields.h"

#include <weir/video.h>

#define SAMPLING_FIELDS(FIELD, type) \
    FIELD(type, what, ENUM, "WEIR_SAMPLE_…", WEIR_SAMPLE_KEYFRAMES) \
    FIELD(type, start_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, end_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, count, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, every, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, rate_num, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, rate_den, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, stretch_frames, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, stretch_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, indices, LIST, num_indices, 0) \
    FIELD(type, num_indices, UNSIGNED, 0, SIZE_MAX) \
    FIELD(type, times_ns, LIST, num_times, 0) \
    FIELD(type, num_times, UNSIGNED, 0, SIZE_MAX) \
    FIELD(type, match, ENUM, "WEIR_MATCH_…", WEIR_MATCH_EXACT) \
    FIELD(type, outside, ENUM, "WEIR_OUTSIDE_…", WEIR_OUTSIDE_FAIL) \
    FIELD(type, tolerance_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, origin, ENUM, "WEIR_ORIGIN_…", WEIR_ORIGIN_STREAM)

DEFINE_STRUCT_RULES(weir__sampling_fields, weir_sampling, "weir_sampling", SAMPLING_FIELDS);
