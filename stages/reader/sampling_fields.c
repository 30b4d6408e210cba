#include "stages/reader/sampling_fields.h"

#include <weir/video.h>

#define SAMPLING_FIELDS(FIELD, type) \
    FIELD(type, what, ENUM, "WEIR_SAMPLE_…", WEIR_SAMPLE_CLIPS) \
    FIELD(type, start_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, end_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, start_frame, UNSIGNED, 0, INT64_MAX) \
    FIELD(type, end_frame, UNSIGNED, 0, INT64_MAX) \
    FIELD(type, count, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, every, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, rate_num, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, rate_den, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, length_frames, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, length_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, indices, LIST, num_indices, 0) \
    FIELD(type, num_indices, UNSIGNED, 0, SIZE_MAX) \
    FIELD(type, times_ns, LIST, num_times, 0) \
    FIELD(type, num_times, UNSIGNED, 0, SIZE_MAX) \
    FIELD(type, match, ENUM, "WEIR_MATCH_…", WEIR_MATCH_EXACT) \
    FIELD(type, outside, ENUM, "WEIR_OUTSIDE_…", WEIR_OUTSIDE_FAIL) \
    FIELD(type, tolerance_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, origin, ENUM, "WEIR_ORIGIN_…", WEIR_ORIGIN_STREAM) \
    FIELD(type, num_clips, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, stride_frames, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, stride_ns, SIGNED, 0, INT64_MAX) \
    FIELD(type, clip_start, ENUM, "WEIR_CLIP_…", WEIR_CLIP_EVEN) \
    FIELD(type, clip_short, ENUM, "WEIR_SHORT_…", WEIR_SHORT_FAIL)

DEFINE_STRUCT_RULES(weir__sampling_fields, weir_sampling, "weir_sampling", SAMPLING_FIELDS);
