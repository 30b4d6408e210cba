#include "stages/isolate/message_rules.h"

#include <weir/audio.h>
#include <weir/bytes.h>
#include <weir/video_reader.h>

#include "stages/audio/resampler.h"
#include "stages/isolate/message_head.h"
#include "stages/isolate/sandbox.h"
#include "stages/memory/shared_data.h"

/*
 * FIELD(type, name, kind, lowest, highest): every field of a struct, in its order. A consumer divides by time bases
 * and rates, and adds up counts and times. The limits make that safe. Numbers that are an int in FFmpeg have the
 * range of an int. Times of frames and of the first sample may be any number, because a file may have any.
 */

/* Room for a sum: a consumer adds four durations of an item to the moment of its start. */
#define MAX_PART_NS   (INT64_MAX / 8)
#define MAX_COUNT     INT64_MAX
#define MAX_H273_CODE 255

#define HEAD_FIELDS(FIELD, type) \
    FIELD(type, kind, UNSIGNED, ISOLATED_CONFIG, ISOLATED_LOG) \
    FIELD(type, status, SIGNED, INT32_MIN, INT32_MAX) /* and as the kind of the message says: message.c */ \
    FIELD(type, library_code, SIGNED, INT32_MIN, INT32_MAX) \
    FIELD(type, source, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, seq, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, epoch, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, max_memory_bytes, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, sandbox, UNSIGNED, SANDBOX_NONE, SANDBOX_URLS) \
    FIELD(type, has_file, UNSIGNED, 0, 1) \
    FIELD(type, body_bytes, UNSIGNED, 0, ISOLATED_MAX_BODY_BYTES) \
    FIELD(type, data_bytes, UNSIGNED, 0, INT64_MAX) \
    FIELD(type, data_room, UNSIGNED, 0, INT64_MAX) \
    FIELD(type, data_number, SIGNED, -1, WEIR_SHARED_BLOCKS - 1) \
    FIELD(type, is_data_known, UNSIGNED, 0, 1)

#define COST_FIELDS(FIELD, type) \
    FIELD(type, codec, TEXT, 0, 0) \
    FIELD(type, width, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, height, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, num_frames, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, size_bytes, UNSIGNED, 0, INT64_MAX) \
    FIELD(type, open_ns, SIGNED, 0, MAX_PART_NS) \
    FIELD(type, demux_ns, SIGNED, 0, MAX_PART_NS) \
    FIELD(type, decode_ns, SIGNED, 0, MAX_PART_NS) \
    FIELD(type, scale_ns, SIGNED, 0, MAX_PART_NS) \
    FIELD(type, num_missing, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, num_errors, UNSIGNED, 0, MAX_COUNT)

#define FRAMES_FIELDS(FIELD, type) \
    FIELD(type, data, OURS, 0, 0) \
    FIELD(type, num_frames, UNSIGNED, 1, UINT32_MAX) /* and no more than the message has data for */ \
    FIELD(type, height, UNSIGNED, 1, INT32_MAX) \
    FIELD(type, width, UNSIGNED, 1, INT32_MAX) \
    FIELD(type, channels, UNSIGNED, 0, 3) /* and as pixel says */ \
    FIELD(type, pixel, UNSIGNED, WEIR_PIXEL_RGB24, WEIR_PIXEL_YUV420P10) \
    FIELD(type, layout, UNSIGNED, WEIR_LAYOUT_NHWC, WEIR_LAYOUT_NCHW) \
    FIELD(type, frame_bytes, UNSIGNED, 1, SIZE_MAX) /* and as the size and pixel say */ \
    FIELD(type, scaler, UNSIGNED, WEIR_SCALER_DEFAULT + 1, WEIR_SCALER_FAST) \
    FIELD(type, matrix, SIGNED, 0, MAX_H273_CODE) \
    FIELD(type, full_range, UNSIGNED, false, true) \
    FIELD(type, pts, OURS, 0, 0) \
    FIELD(type, times_ns, OURS, 0, 0) \
    FIELD(type, mask, OURS, 0, 0) \
    FIELD(type, num_clips, UNSIGNED, 0, UINT32_MAX) /* and the frames must divide evenly among them */ \
    FIELD(type, time_base_num, SIGNED, 1, INT32_MAX) \
    FIELD(type, time_base_den, SIGNED, 1, INT32_MAX) \
    FIELD(type, codec, TEXT, 0, 0) \
    FIELD(type, stream, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, stream_index, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, source_width, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, source_height, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, num_errors, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, num_corrupt_frames, UNSIGNED, 0, UINT32_MAX) /* and no more than there are frames */ \
    FIELD(type, memory_bytes, OURS, 0, 0) \
    FIELD(type, entry, OURS, 0, 0) \
    FIELD(type, sidecars, OURS, 0, 0) \
    FIELD(type, cost, STRUCT, &weir__cost_rules, 0) \
    FIELD(type, num_missing_frames, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, first_frame, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, is_last_chunk, UNSIGNED, false, true) \
    FIELD(type, shared, OURS, 0, 0) \
    FIELD(type, audio, OURS, 0, 0) \
    FIELD(type, memory, OURS_STRUCT, 0, 0) /* shared memory is the host's */ \
    FIELD(type, block, OURS, 0, 0) \
    FIELD(type, num_views, OURS, 0, 0)

#define AUDIO_FIELDS(FIELD, type) \
    FIELD(type, data, OURS, 0, 0) \
    FIELD(type, num_samples, UNSIGNED, 0, MAX_COUNT) /* and no more than the message has data for */ \
    FIELD(type, channels, UNSIGNED, 1, WEIR_RESAMPLER_MAX_CHANNELS) \
    FIELD(type, sample_rate, UNSIGNED, 1, INT32_MAX) \
    FIELD(type, planar, UNSIGNED, false, true) \
    FIELD(type, start_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, codec, TEXT, 0, 0) \
    FIELD(type, stream, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, stream_index, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, source_sample_rate, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, source_channels, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, num_errors, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, memory_bytes, OURS, 0, 0) \
    FIELD(type, entry, OURS, 0, 0) \
    FIELD(type, sidecars, OURS, 0, 0) \
    FIELD(type, cost, STRUCT, &weir__cost_rules, 0) \
    FIELD(type, shared, OURS, 0, 0) \
    FIELD(type, num_views, OURS, 0, 0)

#define WINDOW_FIELDS(FIELD, type) \
    FIELD(type, start_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, end_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, start_frame, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, end_frame, UNSIGNED, 0, UINT64_MAX)

/* To the child only. A user's entry may hold anything: the operation checks it, as it does without a child. */
#define ENTRY_FIELDS(FIELD, type) \
    FIELD(type, path, OURS, 0, 0) \
    FIELD(type, number, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, epoch, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, class_id, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, size_bytes, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, mtime_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, packets, OURS, 0, 0) \
    FIELD(type, packets_bytes, UNSIGNED, 0, ISOLATED_MAX_BODY_BYTES) /* and no more than the message has */ \
    FIELD(type, archive_length, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, offset, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, stands_in, UNSIGNED, false, true) \
    FIELD(type, window, STRUCT, &weir__window_rules, 0) \
    FIELD(type, validator, OURS, 0, 0) \
    FIELD(type, occurrence, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, values, OURS, 0, 0) /* which the child does not need */ \
    FIELD(type, num_values, OURS, 0, 0) \
    FIELD(type, values_bytes, OURS, 0, 0)

#define INFO_FIELDS(FIELD, type) \
    FIELD(type, codec, TEXT, 0, 0) \
    FIELD(type, width, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, height, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, rotation, SIGNED, 0, 359) \
    FIELD(type, is_mirrored, UNSIGNED, false, true) \
    FIELD(type, sample_aspect_num, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, sample_aspect_den, UNSIGNED, 1, INT32_MAX) \
    FIELD(type, bit_depth, UNSIGNED, 0, 64) \
    FIELD(type, primaries, SIGNED, 0, MAX_H273_CODE) \
    FIELD(type, transfer, SIGNED, 0, MAX_H273_CODE) \
    FIELD(type, matrix, SIGNED, 0, MAX_H273_CODE) \
    FIELD(type, full_range, UNSIGNED, false, true) \
    FIELD(type, average_rate_num, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, average_rate_den, UNSIGNED, 1, INT32_MAX) \
    FIELD(type, real_rate_num, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, real_rate_den, UNSIGNED, 1, INT32_MAX) \
    FIELD(type, time_base_num, SIGNED, 1, INT32_MAX) \
    FIELD(type, time_base_den, SIGNED, 1, INT32_MAX) \
    FIELD(type, is_exact, UNSIGNED, false, true) \
    FIELD(type, num_frames, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, num_keyframes, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, duration_ns, SIGNED, 0, INT64_MAX) \
    FIELD(type, start_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(type, stream, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, stream_index, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, has_audio, UNSIGNED, false, true) \
    FIELD(type, container, TEXT, 0, 0)

#define FRAMES_SIZE_FIELDS(FIELD, type) \
    FIELD(type, num_frames, UNSIGNED, 0, MAX_COUNT) \
    FIELD(type, num_clips, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, width, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, height, UNSIGNED, 0, INT32_MAX) \
    FIELD(type, channels, UNSIGNED, 0, 3) \
    FIELD(type, frame_bytes, UNSIGNED, 0, INT64_MAX) \
    FIELD(type, num_bytes, UNSIGNED, 0, INT64_MAX)

#define TIMES_FIELDS(FIELD, type) \
    FIELD(type, num_frames, UNSIGNED, 0, MAX_COUNT) /* and no more than the message has times for */ \
    FIELD(type, times_ns, OURS, 0, 0) \
    FIELD(type, is_key, OURS, 0, 0) \
    FIELD(type, end_ns, SIGNED, INT64_MIN, INT64_MAX)

DEFINE_STRUCT_RULES(weir__head_rules, isolated_head, "head", HEAD_FIELDS);
DEFINE_STRUCT_RULES(weir__cost_rules, weir_decode_cost, "cost", COST_FIELDS);
DEFINE_STRUCT_RULES(weir__frames_rules, weir_frames, "frames", FRAMES_FIELDS);
DEFINE_STRUCT_RULES(weir__audio_rules, weir_audio, "audio", AUDIO_FIELDS);
DEFINE_STRUCT_RULES(weir__window_rules, weir_clip_window, "window", WINDOW_FIELDS);
DEFINE_STRUCT_RULES(weir__entry_rules, weir_entry, "entry", ENTRY_FIELDS);
DEFINE_STRUCT_RULES(weir__info_rules, weir_video_info, "info", INFO_FIELDS);
DEFINE_STRUCT_RULES(weir__frames_size_rules, weir_frames_size, "size", FRAMES_SIZE_FIELDS);
DEFINE_STRUCT_RULES(weir__times_rules, weir_frame_times, "times", TIMES_FIELDS);
