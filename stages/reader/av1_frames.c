#include "stages/reader/av1_frames.h"

#include <string.h>

#include "stages/reader/bits.h"

enum { SEQUENCE_HEADER = 1, TEMPORAL_DELIMITER, FRAME_HEADER, TILE_GROUP, METADATA, FRAME, REDUNDANT_HEADER };
enum { KEY_FRAME = 0, INTER_FRAME, INTRA_ONLY_FRAME, SWITCH_FRAME };
enum { NUM_SLOTS = 8, ALL_SLOTS = 0xff, NUM_REFERENCES = 7, EACH_FRAME_SAYS = 2 };

/* ---- the sequence header ---------------------------------------------------------------------------------------- */

static void read_timing(weir_bits *from, weir_av1_sequence *sequence, unsigned *delay_bits)
{
    weir__bits_read(from, 32); /* num_units_in_display_tick */
    weir__bits_read(from, 32); /* time_scale */
    sequence->equal_picture_interval = weir__bits_flag(from);
    if (sequence->equal_picture_interval)
        weir__bits_golomb(from);
    sequence->has_decoder_model = weir__bits_flag(from);
    if (!sequence->has_decoder_model)
        return;
    *delay_bits = weir__bits_read(from, 5) + 1;
    weir__bits_read(from, 32); /* num_units_in_decoding_tick */
    sequence->removal_time_bits = (uint8_t)(weir__bits_read(from, 5) + 1);
    sequence->presentation_time_bits = (uint8_t)(weir__bits_read(from, 5) + 1);
}

/* False: there are several, or it has spatial layers above the lowest. */
static bool read_operating_point(weir_bits *from, weir_av1_sequence *sequence, unsigned delay_bits)
{
    enum { LAST_LEVEL_WITHOUT_TIER = 7, UPPER_SPATIAL_LAYERS = 0xe00 };
    bool has_display_delay = weir__bits_flag(from);
    if (weir__bits_read(from, 5) != 0)
        return false;
    sequence->point_idc = (uint16_t)weir__bits_read(from, 12);
    if (sequence->point_idc & UPPER_SPATIAL_LAYERS)
        return false;
    if (weir__bits_read(from, 5) > LAST_LEVEL_WITHOUT_TIER)
        weir__bits_flag(from);
    sequence->has_model_of_point = sequence->has_decoder_model && weir__bits_flag(from);
    if (sequence->has_model_of_point) {
        weir__bits_read(from, delay_bits);
        weir__bits_read(from, delay_bits);
        weir__bits_flag(from);
    }
    if (has_display_delay && weir__bits_flag(from))
        weir__bits_read(from, 4);
    return true;
}

static void read_tools(weir_bits *from, weir_av1_sequence *sequence)
{
    weir__bits_read(from, 4); /* interintra, masked compound, warped motion, dual filter */
    bool has_order_hint = weir__bits_flag(from);
    if (has_order_hint)
        weir__bits_read(from, 2); /* jnt_comp, ref_frame_mvs */
    sequence->screen_content = weir__bits_flag(from) ? EACH_FRAME_SAYS : (uint8_t)weir__bits_flag(from);
    sequence->integer_mv = EACH_FRAME_SAYS;
    if (sequence->screen_content > 0)
        sequence->integer_mv = weir__bits_flag(from) ? EACH_FRAME_SAYS : (uint8_t)weir__bits_flag(from);
    sequence->order_hint_bits = has_order_hint ? (uint8_t)(weir__bits_read(from, 3) + 1) : 0;
}

/* FNV-1a */
static uint32_t sum_bytes(const uint8_t *bytes, size_t num_bytes)
{
    uint32_t sum = UINT32_C(2166136261);
    for (size_t i = 0; i < num_bytes; i++)
        sum = (sum ^ bytes[i]) * UINT32_C(16777619);
    return sum;
}

static bool read_sequence(weir_bits *from, weir_av1_sequence *sequence)
{
    unsigned delay_bits = 0;
    *sequence = (weir_av1_sequence){
        .checksum = sum_bytes(from->data, from->num / 8),
        .screen_content = EACH_FRAME_SAYS,
        .integer_mv = EACH_FRAME_SAYS,
    };
    weir__bits_read(from, 3); /* seq_profile */
    weir__bits_flag(from);    /* still_picture */
    sequence->is_reduced_still = weir__bits_flag(from);
    if (sequence->is_reduced_still) {
        weir__bits_read(from, 5); /* seq_level_idx */
    } else {
        if (weir__bits_flag(from))
            read_timing(from, sequence, &delay_bits);
        if (!read_operating_point(from, sequence, delay_bits))
            return false;
    }
    unsigned width_bits = weir__bits_read(from, 4) + 1, height_bits = weir__bits_read(from, 4) + 1;
    weir__bits_read(from, width_bits);
    weir__bits_read(from, height_bits);
    if (!sequence->is_reduced_still && weir__bits_flag(from)) /* frame_id_numbers_present_flag */
        return false;
    weir__bits_read(from, 3); /* 128x128 superblocks, filter intra, intra edge filter */
    if (!sequence->is_reduced_still)
        read_tools(from, sequence);
    sequence->is_known = !from->is_over;
    return sequence->is_known;
}

/* All bytes of it are compared. */
_Static_assert(sizeof(weir_av1_sequence) == 16, "it has no bytes between its fields");

/* A repeated one says the same. */
static bool take_sequence(weir_bits *from, weir_av1_sequence *sequence)
{
    weir_av1_sequence read;
    if (!read_sequence(from, &read))
        return false;
    if (sequence->checksum == 0)
        sequence->checksum = read.checksum;
    if (sequence->is_known && memcmp(&read, sequence, sizeof read) != 0)
        return false;
    *sequence = read;
    return true;
}

/* ---- frames ----------------------------------------------------------------------------------------------------- */

static void skip_presentation_time(weir_bits *from, const weir_av1_sequence *sequence)
{
    if (sequence->has_decoder_model && !sequence->equal_picture_interval)
        weir__bits_read(from, sequence->presentation_time_bits);
}

/* Skips the removal time of a frame of the operating point. */
static void skip_removal_time(weir_bits *from, const weir_av1_sequence *sequence)
{
    if (sequence->has_decoder_model && weir__bits_flag(from) && sequence->has_model_of_point)
        weir__bits_read(from, sequence->removal_time_bits);
}

/* What is between the type of a frame and the slots that it writes. */
static void skip_to_slots(weir_bits *from, const weir_av1_sequence *sequence, unsigned type, bool is_resilient)
{
    bool is_intra = type == KEY_FRAME || type == INTRA_ONLY_FRAME;
    weir__bits_flag(from); /* disable_cdf_update */
    bool has_screen_content =
        sequence->screen_content == EACH_FRAME_SAYS ? weir__bits_flag(from) : sequence->screen_content;
    if (has_screen_content && sequence->integer_mv == EACH_FRAME_SAYS)
        weir__bits_flag(from);
    if (type != SWITCH_FRAME && !sequence->is_reduced_still)
        weir__bits_flag(from); /* frame_size_override_flag */
    weir__bits_read(from, sequence->order_hint_bits);
    if (!is_intra && !is_resilient)
        weir__bits_read(from, 3); /* primary_ref_frame */
    skip_removal_time(from, sequence);
}

/* With short signaling, the references are chosen by the order hints of all slots. */
static uint8_t read_references(weir_bits *from, const weir_av1_sequence *sequence)
{
    uint8_t slots = 0;
    bool is_short = sequence->order_hint_bits > 0 && weir__bits_flag(from);
    if (is_short)
        return ALL_SLOTS;
    for (unsigned i = 0; i < NUM_REFERENCES; i++)
        slots |= (uint8_t)(1u << weir__bits_read(from, 3));
    return slots;
}

static bool read_frame(weir_bits *from, const weir_av1_sequence *sequence, weir_av1_frame *frame)
{
    unsigned type = KEY_FRAME;
    bool is_resilient = true;
    *frame = (weir_av1_frame){ .is_shown = true };
    if (!sequence->is_reduced_still) {
        frame->shows_slot = weir__bits_flag(from);
        if (frame->shows_slot) {
            frame->reads = (uint8_t)(1u << weir__bits_read(from, 3));
            return !from->is_over;
        }
        type = weir__bits_read(from, 2);
        frame->is_shown = weir__bits_flag(from);
        if (frame->is_shown)
            skip_presentation_time(from, sequence);
        else
            weir__bits_flag(from); /* showable_frame */
        if (type != SWITCH_FRAME && !(type == KEY_FRAME && frame->is_shown))
            is_resilient = weir__bits_flag(from);
    }
    frame->is_key = type == KEY_FRAME;
    skip_to_slots(from, sequence, type, is_resilient);
    bool writes_all = type == SWITCH_FRAME || (type == KEY_FRAME && frame->is_shown);
    frame->writes = writes_all ? ALL_SLOTS : (uint8_t)weir__bits_read(from, NUM_SLOTS);
    bool is_intra = type == KEY_FRAME || type == INTRA_ONLY_FRAME;
    if ((!is_intra || frame->writes != ALL_SLOTS) && is_resilient && sequence->order_hint_bits > 0)
        for (unsigned i = 0; i < NUM_SLOTS; i++)
            weir__bits_read(from, sequence->order_hint_bits);
    if (!is_intra)
        frame->reads = read_references(from, sequence);
    return !from->is_over;
}

/* ---- units ------------------------------------------------------------------------------------------------------ */

typedef struct unit_header {
    unsigned type;
    bool has_layers;
    unsigned temporal, spatial;
    size_t payload; /* where it begins */
    size_t end;
} unit_header;

/* leb128() */
static bool read_size(const uint8_t *data, size_t size_bytes, size_t *at, size_t *size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++) {
        if (*at >= size_bytes)
            return false;
        uint8_t byte = data[(*at)++];
        value |= (uint64_t)(byte & 0x7fu) << (7 * i);
        if (!(byte & 0x80u)) {
            *size = (size_t)value;
            return value <= size_bytes;
        }
    }
    return false;
}

static bool read_unit(const uint8_t *data, size_t size_bytes, size_t at, unit_header *unit)
{
    enum { FORBIDDEN = 0x80, HAS_EXTENSION = 4, HAS_SIZE = 2 };
    uint8_t first = data[at++];
    *unit = (unit_header){ .type = first >> 3 & 15u };
    if (first & FORBIDDEN)
        return false;
    if (first & HAS_EXTENSION) {
        if (at >= size_bytes)
            return false;
        unit->has_layers = true;
        unit->temporal = data[at] >> 5;
        unit->spatial = data[at++] >> 3 & 3u;
    }
    size_t size = size_bytes - at;
    if ((first & HAS_SIZE) && !read_size(data, size_bytes, &at, &size))
        return false;
    unit->payload = at;
    unit->end = at + size;
    return size <= size_bytes - at;
}

/* Or does the decoder drop it? */
static bool is_of_point(const weir_av1_sequence *sequence, const unit_header *unit)
{
    unsigned idc = sequence->point_idc;
    return idc == 0 || !unit->has_layers || ((idc >> unit->temporal & 1u) && (idc >> (unit->spatial + 8) & 1u));
}

/* Takes a frame, which is then the last one in `look`. Its tiles are in its unit, or in the next units. */
static bool take_frame(weir_bits *from, const weir_av1_sequence *sequence, unsigned type, weir_av1_look *look)
{
    weir_av1_frame *frame = &look->frames[look->num_frames];
    if (!sequence->is_known || look->is_open || look->num_frames == WEIR_AV1_MAX_FRAMES ||
        !read_frame(from, sequence, frame) || (type == FRAME && frame->shows_slot))
        return false;
    look->is_open = type == FRAME_HEADER && !frame->shows_slot;
    look->num_shown += frame->is_shown;
    look->num_frames++;
    return true;
}

static bool take_tiles(weir_av1_look *look)
{
    if (look->num_frames == 0 || look->frames[look->num_frames - 1].shows_slot)
        return false;
    look->is_open = false;
    return true;
}

/* *frame: whose unit it is. */
static bool take_unit(weir_av1_sequence *sequence, const uint8_t *data, const unit_header *unit, weir_av1_look *look,
                      uint8_t *frame)
{
    weir_bits from = { .data = data + unit->payload, .num = 8 * (unit->end - unit->payload) };
    bool is_taken = true, is_of_frame = false;
    switch (unit->type) {
    case SEQUENCE_HEADER: is_taken = take_sequence(&from, sequence); break;
    case FRAME_HEADER:
    case FRAME:
        is_taken = is_of_point(sequence, unit) && take_frame(&from, sequence, unit->type, look);
        is_of_frame = true;
        break;
    case TILE_GROUP:
        is_taken = is_of_point(sequence, unit) && take_tiles(look);
        is_of_frame = true;
        break;
    case REDUNDANT_HEADER: is_taken = false; break;
    default: break;
    }
    *frame = is_taken && is_of_frame ? (uint8_t)(look->num_frames - 1) : WEIR_AV1_NO_FRAME;
    return is_taken;
}

bool weir__av1_look(weir_av1_sequence *sequence, const uint8_t *data, size_t size_bytes, weir_av1_look *look)
{
    look->num_frames = 0;
    look->num_units = 0;
    look->num_shown = 0;
    look->is_open = false;
    for (size_t at = 0; at < size_bytes;) {
        unit_header unit;
        uint8_t frame;
        if (look->num_units == WEIR_AV1_MAX_UNITS || !read_unit(data, size_bytes, at, &unit) || unit.spatial > 0 ||
            !take_unit(sequence, data, &unit, look, &frame))
            return false;
        look->units[look->num_units++] =
            (weir_av1_unit){ .begin = (uint32_t)at, .end = (uint32_t)unit.end, .frame = frame };
        at = unit.end;
    }
    return look->num_frames > 0 && !look->is_open;
}
