#include "stages/isolate/message_rules.h"

#include <string.h>

#include <weir/audio.h>
#include <weir/bytes.h>
#include <weir/video.h>

#include "stages/audio/resampler.h"
#include "stages/isolate/message_head.h"
#include "stages/isolate/sandbox.h"
#include "stages/memory/shared_data.h"

/*
 * FIELD(name, kind, lowest, highest): every field of a struct, in its order. A consumer divides by what describes time, and adds
 * up counts and times: the limits leave room for that. Numbers that FFmpeg has as an int have its range. Times of frames and
 * of the first sample may be any number, as a file may have any.
 */

/* Four times of an item, and the moment of its start, are added. */
#define MAX_PART_NS   (INT64_MAX / 8)
#define MAX_COUNT     INT64_MAX
#define MAX_H273_CODE 255

#define HEAD_FIELDS(FIELD) \
    FIELD(kind, UNSIGNED, ISOLATED_CONFIG, ISOLATED_LOG) \
    FIELD(status, SIGNED, INT32_MIN, INT32_MAX) /* and as the kind of the message says: message.c */ \
    FIELD(library_code, SIGNED, INT32_MIN, INT32_MAX) \
    FIELD(source, UNSIGNED, 0, UINT32_MAX) \
    FIELD(seq, UNSIGNED, 0, UINT64_MAX) \
    FIELD(epoch, UNSIGNED, 0, UINT64_MAX) \
    FIELD(max_memory_bytes, UNSIGNED, 0, UINT64_MAX) \
    FIELD(sandbox, UNSIGNED, SANDBOX_NONE, SANDBOX_URLS) \
    FIELD(has_file, UNSIGNED, 0, 1) \
    FIELD(body_bytes, UNSIGNED, 0, ISOLATED_MAX_BODY_BYTES) \
    FIELD(data_bytes, UNSIGNED, 0, INT64_MAX) \
    FIELD(data_room, UNSIGNED, 0, INT64_MAX) \
    FIELD(data_number, SIGNED, -1, WEIR_SHARED_BLOCKS - 1) \
    FIELD(is_data_known, UNSIGNED, 0, 1)

#define COST_FIELDS(FIELD) \
    FIELD(codec, TEXT, 0, 0) \
    FIELD(width, UNSIGNED, 0, INT32_MAX) \
    FIELD(height, UNSIGNED, 0, INT32_MAX) \
    FIELD(num_frames, UNSIGNED, 0, MAX_COUNT) \
    FIELD(size_bytes, UNSIGNED, 0, INT64_MAX) \
    FIELD(open_ns, SIGNED, 0, MAX_PART_NS) \
    FIELD(demux_ns, SIGNED, 0, MAX_PART_NS) \
    FIELD(decode_ns, SIGNED, 0, MAX_PART_NS) \
    FIELD(scale_ns, SIGNED, 0, MAX_PART_NS) \
    FIELD(num_missing, UNSIGNED, 0, MAX_COUNT) \
    FIELD(num_errors, UNSIGNED, 0, MAX_COUNT)

#define FRAMES_FIELDS(FIELD) \
    FIELD(data, OURS, 0, 0) \
    FIELD(num_frames, UNSIGNED, 1, UINT32_MAX) /* and no more than the message has data for */ \
    FIELD(height, UNSIGNED, 1, INT32_MAX) \
    FIELD(width, UNSIGNED, 1, INT32_MAX) \
    FIELD(channels, UNSIGNED, 0, 3) /* and as pixel says */ \
    FIELD(pixel, UNSIGNED, WEIR_PIXEL_RGB24, WEIR_PIXEL_YUV420P) \
    FIELD(layout, UNSIGNED, WEIR_LAYOUT_NHWC, WEIR_LAYOUT_NCHW) \
    FIELD(frame_bytes, UNSIGNED, 1, SIZE_MAX) /* and as the size and pixel say */ \
    FIELD(scaler, UNSIGNED, WEIR_SCALER_DEFAULT + 1, WEIR_SCALER_FAST) \
    FIELD(matrix, SIGNED, 0, MAX_H273_CODE) \
    FIELD(full_range, UNSIGNED, false, true) \
    FIELD(pts, OURS, 0, 0) \
    FIELD(time_base_num, SIGNED, 1, INT32_MAX) \
    FIELD(time_base_den, SIGNED, 1, INT32_MAX) \
    FIELD(codec, TEXT, 0, 0) \
    FIELD(stream, UNSIGNED, 0, INT32_MAX) \
    FIELD(stream_index, UNSIGNED, 0, INT32_MAX) \
    FIELD(source_width, UNSIGNED, 0, INT32_MAX) \
    FIELD(source_height, UNSIGNED, 0, INT32_MAX) \
    FIELD(num_errors, UNSIGNED, 0, MAX_COUNT) \
    FIELD(num_corrupt_frames, UNSIGNED, 0, UINT32_MAX) /* and no more than there are frames */ \
    FIELD(memory_bytes, OURS, 0, 0) \
    FIELD(entry, OURS, 0, 0) \
    FIELD(sidecars, OURS, 0, 0) \
    FIELD(cost, STRUCT, &weir__cost_rules, 0) \
    FIELD(num_missing_frames, UNSIGNED, 0, MAX_COUNT) \
    FIELD(first_frame, UNSIGNED, 0, MAX_COUNT) \
    FIELD(is_last_chunk, UNSIGNED, false, true) \
    FIELD(shared, OURS, 0, 0) \
    FIELD(audio, OURS, 0, 0)

#define AUDIO_FIELDS(FIELD) \
    FIELD(data, OURS, 0, 0) \
    FIELD(num_samples, UNSIGNED, 0, MAX_COUNT) /* and no more than the message has data for */ \
    FIELD(channels, UNSIGNED, 1, WEIR_RESAMPLER_MAX_CHANNELS) \
    FIELD(sample_rate, UNSIGNED, 1, INT32_MAX) \
    FIELD(planar, UNSIGNED, false, true) \
    FIELD(start_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(codec, TEXT, 0, 0) \
    FIELD(stream, UNSIGNED, 0, INT32_MAX) \
    FIELD(stream_index, UNSIGNED, 0, INT32_MAX) \
    FIELD(source_sample_rate, UNSIGNED, 0, INT32_MAX) \
    FIELD(source_channels, UNSIGNED, 0, INT32_MAX) \
    FIELD(num_errors, UNSIGNED, 0, MAX_COUNT) \
    FIELD(memory_bytes, OURS, 0, 0) \
    FIELD(entry, OURS, 0, 0) \
    FIELD(sidecars, OURS, 0, 0) \
    FIELD(cost, STRUCT, &weir__cost_rules, 0) \
    FIELD(shared, OURS, 0, 0)

/* To the child only. A user's entry may hold anything: the operation checks it, as it does without a child. */
#define ENTRY_FIELDS(FIELD) \
    FIELD(path, OURS, 0, 0) \
    FIELD(number, UNSIGNED, 0, UINT64_MAX) \
    FIELD(epoch, UNSIGNED, 0, UINT64_MAX) \
    FIELD(class_id, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(size_bytes, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(mtime_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(packets, OURS, 0, 0) \
    FIELD(packets_bytes, UNSIGNED, 0, ISOLATED_MAX_BODY_BYTES) /* and no more than the message has */ \
    FIELD(archive_length, UNSIGNED, 0, UINT64_MAX) \
    FIELD(offset, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(stands_in, UNSIGNED, false, true) \
    FIELD(start_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(end_ns, SIGNED, INT64_MIN, INT64_MAX) \
    FIELD(validator, OURS, 0, 0) \
    FIELD(occurrence, UNSIGNED, 0, UINT64_MAX)

/* -- no field is without a rule: a struct of which each field in its list is initialised has no other one */

#define ZERO_OURS     0
#define ZERO_UNSIGNED 0
#define ZERO_SIGNED   0
#define ZERO_TEXT     ""
#define ZERO_STRUCT \
    { \
        0 \
    }
#define ZERO(name, kind, lowest, highest) ZERO_##kind,

#define HEAD_ENTRY(name, kind, lowest, highest)   HEAD_##name,
#define COST_ENTRY(name, kind, lowest, highest)   COST_##name,
#define FRAMES_ENTRY(name, kind, lowest, highest) FRAMES_##name,
#define AUDIO_ENTRY(name, kind, lowest, highest)  AUDIO_##name,
#define ENTRY_ENTRY(name, kind, lowest, highest)  ENTRY_##name,

/* And none has two. */
enum { HEAD_FIELDS(HEAD_ENTRY) HEAD_COUNT };
enum { COST_FIELDS(COST_ENTRY) COST_COUNT };
enum { FRAMES_FIELDS(FRAMES_ENTRY) FRAMES_COUNT };
enum { AUDIO_FIELDS(AUDIO_ENTRY) AUDIO_COUNT };
enum { ENTRY_FIELDS(ENTRY_ENTRY) ENTRY_COUNT };

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wmissing-braces"
_Static_assert(sizeof((isolated_head){ HEAD_FIELDS(ZERO) }) != 0, "a rule for each field");
_Static_assert(sizeof((weir_item_cost){ COST_FIELDS(ZERO) }) != 0, "a rule for each field");
_Static_assert(sizeof((weir_frames){ FRAMES_FIELDS(ZERO) }) != 0, "a rule for each field");
_Static_assert(sizeof((weir_audio){ AUDIO_FIELDS(ZERO) }) != 0, "a rule for each field");
_Static_assert(sizeof((weir_entry){ ENTRY_FIELDS(ZERO) }) != 0, "a rule for each field");
#pragma GCC diagnostic pop

/* -- the tables */

#define RULE_OURS(low, high)     FIELD_OURS, 0, 0, NULL
#define RULE_UNSIGNED(low, high) FIELD_UNSIGNED, (low), (high), NULL
#define RULE_SIGNED(low, high)   FIELD_SIGNED, (low), (high), NULL
#define RULE_TEXT(low, high)     FIELD_TEXT, 0, 0, NULL
#define RULE_STRUCT(rules, high) FIELD_STRUCT, 0, 0, (rules)
#define RULE(type, name, kind, lowest, highest) \
    { #name, offsetof(type, name), sizeof(((type *)NULL)->name), RULE_##kind(lowest, highest) },

#define HEAD_RULE(name, kind, lowest, highest)   RULE(isolated_head, name, kind, lowest, highest)
#define COST_RULE(name, kind, lowest, highest)   RULE(weir_item_cost, name, kind, lowest, highest)
#define FRAMES_RULE(name, kind, lowest, highest) RULE(weir_frames, name, kind, lowest, highest)
#define AUDIO_RULE(name, kind, lowest, highest)  RULE(weir_audio, name, kind, lowest, highest)
#define ENTRY_RULE(name, kind, lowest, highest)  RULE(weir_entry, name, kind, lowest, highest)

static const field_rule head_rules[] = { HEAD_FIELDS(HEAD_RULE) };
static const field_rule cost_rules[] = { COST_FIELDS(COST_RULE) };
static const field_rule frames_rules[] = { FRAMES_FIELDS(FRAMES_RULE) };
static const field_rule audio_rules[] = { AUDIO_FIELDS(AUDIO_RULE) };
static const field_rule entry_rules[] = { ENTRY_FIELDS(ENTRY_RULE) };

const struct_rules weir__head_rules = { "head", head_rules, HEAD_COUNT, sizeof(isolated_head) };
const struct_rules weir__cost_rules = { "cost", cost_rules, COST_COUNT, sizeof(weir_item_cost) };
const struct_rules weir__frames_rules = { "frames", frames_rules, FRAMES_COUNT, sizeof(weir_frames) };
const struct_rules weir__audio_rules = { "audio", audio_rules, AUDIO_COUNT, sizeof(weir_audio) };
const struct_rules weir__entry_rules = { "entry", entry_rules, ENTRY_COUNT, sizeof(weir_entry) };

/* -- reading them */

void weir__rules_copy(const struct_rules *rules, void *to, const void *from)
{
    memset(to, 0, rules->size_bytes);
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        char *to_field = (char *)to + rule->offset;
        const char *from_field = (const char *)from + rule->offset;
        if (rule->kind == FIELD_STRUCT)
            weir__rules_copy(rule->inner, to_field, from_field);
        else if (rule->kind == FIELD_TEXT)
            memcpy(to_field, from_field, strnlen(from_field, rule->size_bytes));
        else if (rule->kind != FIELD_OURS)
            memcpy(to_field, from_field, rule->size_bytes);
    }
}

/* The number, widened without its sign. */
static uint64_t read_unsigned(const void *field, size_t size_bytes)
{
    uint64_t wide = 0;
    uint32_t narrow;
    if (size_bytes == sizeof wide) {
        memcpy(&wide, field, sizeof wide);
    } else if (size_bytes == sizeof narrow) {
        memcpy(&narrow, field, sizeof narrow);
        wide = narrow;
    } else {
        wide = *(const unsigned char *)field;
    }
    return wide;
}

static int64_t read_signed(const void *field, size_t size_bytes)
{
    uint64_t number = read_unsigned(field, size_bytes);
    return size_bytes == sizeof(int32_t) ? (int32_t)(uint32_t)number : (int64_t)number;
}

/* It is shown on terminals and stored. */
static bool is_printable(const char *text, size_t size_bytes)
{
    size_t length = strnlen(text, size_bytes);
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return length < size_bytes;
}

static bool field_holds(const field_rule *rule, const void *field)
{
    switch (rule->kind) {
    case FIELD_UNSIGNED: {
        uint64_t number = read_unsigned(field, rule->size_bytes);
        return number >= (uint64_t)rule->lowest && number <= rule->highest;
    }
    case FIELD_SIGNED: {
        int64_t number = read_signed(field, rule->size_bytes);
        return number >= rule->lowest && number <= (int64_t)rule->highest;
    }
    case FIELD_TEXT: return is_printable(field, rule->size_bytes);
    case FIELD_OURS:
    case FIELD_STRUCT: break;
    }
    return true;
}

const char *weir__rules_take(const struct_rules *rules, void *to, const void *from)
{
    memset(to, 0, rules->size_bytes);
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        char *to_field = (char *)to + rule->offset;
        const char *from_field = (const char *)from + rule->offset;
        const char *broken = NULL;
        if (rule->kind == FIELD_STRUCT)
            broken = weir__rules_take(rule->inner, to_field, from_field);
        else if (!field_holds(rule, from_field))
            broken = rule->name;
        else if (rule->kind != FIELD_OURS)
            memcpy(to_field, from_field, rule->size_bytes);
        if (broken)
            return broken;
    }
    return NULL;
}
