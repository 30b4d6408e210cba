/*
 * Headers of AV1 frames: what is read from them is what was written, and plans are made of it. A writer that follows section 5 of
 * the specification draws sequences, frames and units at random. Held constant: what comes after the fields that are
 * read is noise, as in real frames.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/clock.h>
#include <weir/status.h>

#include "common/random.h"
#include "stages/reader/av1_frames.h"
#include "stages/reader/av1_plan.h"

enum { MAX_BYTES = 8192, NUM_SEQUENCES = 2000, NUM_UNITS_OF_TIME = 8 };
enum { KEY = 0, INTER, INTRA_ONLY, SWITCH };
enum {
    SEQUENCE_HEADER = 1,
    TEMPORAL_DELIMITER,
    FRAME_HEADER,
    TILE_GROUP,
    METADATA,
    FRAME,
    REDUNDANT_HEADER,
    PADDING = 15
};

static uint64_t chance;

static uint32_t below(uint32_t end)
{
    return (uint32_t)weir__random_below(&chance, end);
}

static bool toss(void)
{
    return below(2);
}

/* ---- a writer --------------------------------------------------------------------------------------------------- */

typedef struct written {
    uint8_t bytes[MAX_BYTES];
    size_t num; /* bits */
} written;

static void put(written *to, uint32_t value, unsigned num_bits)
{
    while (num_bits-- > 0) {
        assert_true(to->num < 8 * (size_t)MAX_BYTES);
        to->bytes[to->num / 8] |= (uint8_t)((value >> num_bits & 1u) << (7 - to->num % 8));
        to->num++;
    }
}

static void put_any(written *to, unsigned num_bits)
{
    put(to, num_bits == 32 ? (uint32_t)weir__random_next(&chance) : below(1u << num_bits), num_bits);
}

/* uvlc() */
static void put_variable(written *to, unsigned num_bits)
{
    put(to, 0, num_bits);
    put(to, 1, 1);
    put_any(to, num_bits);
}

static size_t num_bytes_of(const written *of)
{
    return (of->num + 7) / 8;
}

typedef struct drawn_sequence {
    bool is_still, has_timing, is_equal, has_model, has_point_model, has_display_delay, has_frame_ids;
    unsigned num_points, idc, level;
    unsigned delay_bits, removal_bits, presentation_bits, order_bits;
    unsigned screen, integer; /* 2 = each frame says it */
} drawn_sequence;

static drawn_sequence draw_sequence(void)
{
    static const unsigned idcs[] = { 0, 0x101, 0x103, 0x107, 0x1ff };
    bool has_timing = toss(), has_model = has_timing && toss(), is_still = below(8) == 0;
    return (drawn_sequence){
        .is_still = is_still,
        .has_timing = has_timing,
        .is_equal = toss(),
        .has_model = has_model && !is_still,
        .has_point_model = has_model && toss(),
        .has_display_delay = toss(),
        .num_points = 1,
        .idc = is_still ? 0 : idcs[below(5)],
        .level = below(32),
        .delay_bits = 1 + below(32),
        .removal_bits = 1 + below(32),
        .presentation_bits = 1 + below(32),
        .order_bits = is_still ? 0 : below(9),
        .screen = is_still ? 2 : below(3),
        .integer = below(3),
    };
}

static void write_timing(written *to, const drawn_sequence *sequence)
{
    put(to, sequence->has_timing, 1);
    if (!sequence->has_timing)
        return;
    put_any(to, 32);
    put_any(to, 32);
    put(to, sequence->is_equal, 1);
    if (sequence->is_equal)
        put_variable(to, below(20));
    put(to, sequence->has_model, 1);
    if (!sequence->has_model)
        return;
    put(to, sequence->delay_bits - 1, 5);
    put_any(to, 32);
    put(to, sequence->removal_bits - 1, 5);
    put(to, sequence->presentation_bits - 1, 5);
}

static void write_points(written *to, const drawn_sequence *sequence)
{
    put(to, sequence->has_display_delay, 1);
    put(to, sequence->num_points - 1, 5);
    for (unsigned i = 0; i < sequence->num_points; i++) {
        put(to, sequence->idc, 12);
        put(to, sequence->level, 5);
        if (sequence->level > 7)
            put_any(to, 1);
        if (sequence->has_model)
            put(to, sequence->has_point_model, 1);
        if (sequence->has_model && sequence->has_point_model) {
            put_any(to, sequence->delay_bits);
            put_any(to, sequence->delay_bits);
            put_any(to, 1);
        }
        bool is_there = toss();
        if (sequence->has_display_delay)
            put(to, is_there, 1);
        if (sequence->has_display_delay && is_there)
            put_any(to, 4);
    }
}

static void write_tools(written *to, const drawn_sequence *sequence)
{
    put_any(to, 4);
    put(to, sequence->order_bits > 0, 1);
    if (sequence->order_bits > 0)
        put_any(to, 2);
    put(to, sequence->screen == 2, 1);
    if (sequence->screen != 2)
        put(to, sequence->screen, 1);
    if (sequence->screen > 0) {
        put(to, sequence->integer == 2, 1);
        if (sequence->integer != 2)
            put(to, sequence->integer, 1);
    }
    if (sequence->order_bits > 0)
        put(to, sequence->order_bits - 1, 3);
}

static void write_sequence(written *to, const drawn_sequence *sequence)
{
    unsigned width_bits = 1 + below(16), height_bits = 1 + below(16);
    put_any(to, 3);
    put(to, sequence->is_still, 1);
    put(to, sequence->is_still, 1);
    if (sequence->is_still) {
        put(to, sequence->level, 5);
    } else {
        write_timing(to, sequence);
        write_points(to, sequence);
    }
    put(to, width_bits - 1, 4);
    put(to, height_bits - 1, 4);
    put_any(to, width_bits);
    put_any(to, height_bits);
    if (!sequence->is_still)
        put(to, sequence->has_frame_ids, 1);
    put_any(to, 3);
    if (!sequence->is_still)
        write_tools(to, sequence);
    put_any(to, 20); /* superres, cdef, restoration, colors, film grain */
}

typedef struct drawn_frame {
    unsigned type;
    bool shows_slot, is_shown, is_resilient, is_short;
    unsigned slot, writes;
    unsigned references[7];
} drawn_frame;

static drawn_frame draw_frame(const drawn_sequence *sequence)
{
    drawn_frame frame = { .type = below(4), .slot = below(8), .writes = below(256) };
    frame.shows_slot = below(4) == 0;
    frame.is_shown = toss();
    frame.is_resilient = toss();
    if (sequence->is_still) {
        frame.type = KEY;
        frame.shows_slot = false;
        frame.is_shown = true;
    }
    frame.is_short = sequence->order_bits > 0 && below(8) == 0;
    if (frame.type == SWITCH || (frame.type == KEY && frame.is_shown)) {
        frame.is_resilient = true;
        frame.writes = 255;
    }
    for (unsigned i = 0; i < 7; i++)
        frame.references[i] = below(8);
    return frame;
}

/* As far as to the order hint, and the primary reference. */
static void write_begin(written *to, const drawn_sequence *sequence, const drawn_frame *frame)
{
    bool has_time = sequence->has_model && !sequence->is_equal, has_screen = sequence->screen == 1;
    bool is_intra = frame->type == KEY || frame->type == INTRA_ONLY;
    if (!sequence->is_still) {
        put(to, 0, 1);
        put(to, frame->type, 2);
        put(to, frame->is_shown, 1);
        if (frame->is_shown && has_time)
            put_any(to, sequence->presentation_bits);
        if (!frame->is_shown)
            put_any(to, 1); /* showable */
        if (frame->type != SWITCH && !(frame->type == KEY && frame->is_shown))
            put(to, frame->is_resilient, 1);
    }
    put_any(to, 1); /* disable_cdf_update */
    if (sequence->screen == 2) {
        has_screen = toss();
        put(to, has_screen, 1);
    }
    if (has_screen && (sequence->integer == 2 || sequence->is_still))
        put_any(to, 1);
    if (frame->type != SWITCH && !sequence->is_still)
        put_any(to, 1); /* frame_size_override_flag */
    put_any(to, sequence->order_bits);
    if (!is_intra && !frame->is_resilient)
        put_any(to, 3); /* primary_ref_frame */
}

static void write_frame(written *to, const drawn_sequence *sequence, const drawn_frame *frame)
{
    bool is_intra = frame->type == KEY || frame->type == INTRA_ONLY;
    if (frame->shows_slot) {
        put(to, 1, 1);
        put(to, frame->slot, 3);
        put_any(to, 12);
        return;
    }
    write_begin(to, sequence, frame);
    bool has_removal_time = sequence->has_model && toss();
    if (sequence->has_model)
        put(to, has_removal_time, 1);
    if (has_removal_time && sequence->has_point_model)
        put_any(to, sequence->removal_bits);
    if (frame->type != SWITCH && !(frame->type == KEY && frame->is_shown))
        put(to, frame->writes, 8);
    for (unsigned i = 0; (!is_intra || frame->writes != 255) && frame->is_resilient && i < 8; i++)
        put_any(to, sequence->order_bits);
    if (!is_intra && sequence->order_bits > 0)
        put(to, frame->is_short, 1);
    for (unsigned i = 0; !is_intra && !frame->is_short && i < 7; i++)
        put(to, frame->references[i], 3);
    put_any(to, 24);
}

/* ---- temporal units ----------------------------------------------------------------------------------------------- */

/* What a temporal unit is to look like. */
typedef struct expected {
    weir_av1_frame frames[WEIR_AV1_MAX_FRAMES];
    uint8_t owners[WEIR_AV1_MAX_UNITS]; /* frames of units */
    unsigned num_frames, num_units;
    unsigned num_shown;
} expected;

typedef struct unit_kind {
    bool has_layers, has_size;
    unsigned temporal, spatial;
} unit_kind;

static void put_unit(written *to, unsigned type, unit_kind kind, const written *payload)
{
    size_t size_bytes = num_bytes_of(payload), left = size_bytes;
    put(to, type << 3 | (unsigned)kind.has_layers << 2 | (unsigned)kind.has_size << 1, 8);
    if (kind.has_layers)
        put(to, kind.temporal << 5 | kind.spatial << 3, 8);
    for (bool is_more = kind.has_size; is_more; left >>= 7) {
        is_more = left > 127;
        put(to, (uint32_t)(left & 127) | (is_more ? 128u : 0), 8);
    }
    for (size_t i = 0; i < size_bytes; i++)
        put(to, payload->bytes[i], 8);
}

static void add_unit(written *to, expected *is, unsigned type, unit_kind kind, const written *payload, uint8_t owner)
{
    put_unit(to, type, kind, payload);
    is->owners[is->num_units++] = owner;
}

static void add_noise(written *to, expected *is, unsigned type, uint8_t owner)
{
    written noise = { 0 };
    for (unsigned i = below(200) + 1; i > 0; i--)
        put_any(&noise, 8);
    add_unit(to, is, type, (unit_kind){ .has_size = true }, &noise, owner);
}

/* What the frame is to look like. */
static weir_av1_frame look_of(const drawn_frame *frame)
{
    weir_av1_frame look = { .is_shown = frame->is_shown || frame->shows_slot, .shows_slot = frame->shows_slot };
    bool is_inter = !frame->shows_slot && (frame->type == INTER || frame->type == SWITCH);
    if (frame->shows_slot) {
        look.reads = (uint8_t)(1u << frame->slot);
        return look;
    }
    look.is_key = frame->type == KEY;
    look.writes = (uint8_t)frame->writes;
    for (unsigned i = 0; is_inter && i < 7; i++)
        look.reads |= (uint8_t)(1u << frame->references[i]);
    if (is_inter && frame->is_short)
        look.reads = 255;
    return look;
}

/* A layer of the operating point, if that has some. */
static unit_kind draw_kind(const drawn_sequence *sequence)
{
    unit_kind kind = { .has_layers = toss(), .has_size = true, .temporal = below(8) };
    while (sequence->idc && !(sequence->idc >> kind.temporal & 1u))
        kind.temporal = below(8);
    return kind;
}

static void add_frame(written *to, expected *is, const drawn_sequence *sequence, const drawn_frame *frame)
{
    written header = { 0 };
    bool is_whole = !frame->shows_slot && toss();
    uint8_t number = (uint8_t)is->num_frames;
    write_frame(&header, sequence, frame);
    add_unit(to, is, is_whole ? FRAME : FRAME_HEADER, draw_kind(sequence), &header, number);
    for (unsigned i = frame->shows_slot ? 0 : below(3) + !is_whole; i > 0; i--)
        add_noise(to, is, TILE_GROUP, number);
    is->frames[is->num_frames] = look_of(frame);
    is->num_shown += is->frames[is->num_frames++].is_shown;
}

static void assert_look(const weir_av1_look *look, const expected *is, size_t size_bytes)
{
    assert_int_equal(look->num_frames, is->num_frames);
    assert_int_equal(look->num_units, is->num_units);
    assert_int_equal(look->num_shown, is->num_shown);
    for (unsigned i = 0; i < is->num_frames; i++) {
        const weir_av1_frame *frame = &look->frames[i], *right = &is->frames[i];
        assert_int_equal(frame->is_shown, right->is_shown);
        assert_int_equal(frame->is_key, right->is_key);
        assert_int_equal(frame->shows_slot, right->shows_slot);
        assert_int_equal(frame->reads, right->reads);
        assert_int_equal(frame->writes, right->writes);
    }
    for (unsigned i = 0; i < is->num_units; i++) {
        assert_int_equal(look->units[i].begin, i ? look->units[i - 1].end : 0);
        assert_int_equal(look->units[i].frame, is->owners[i]);
    }
    assert_int_equal(look->units[is->num_units - 1].end, size_bytes);
}

/* In memory of just that size, so that the sanitizers see what is read beyond it. */
static bool look_at(weir_av1_sequence *sequence, const written *unit, size_t size_bytes, weir_av1_look *look)
{
    uint8_t *copy = malloc(size_bytes ? size_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, unit->bytes, size_bytes);
    bool is_understood = weir__av1_look(sequence, copy, size_bytes, look);
    free(copy);
    return is_understood;
}

static bool looks_well(weir_av1_sequence *sequence, const written *unit, weir_av1_look *look)
{
    return look_at(sequence, unit, num_bytes_of(unit), look);
}

/* ---- what is written is read --------------------------------------------------------------------------------------- */

static void add_frames(written *to, expected *is, const drawn_sequence *sequence)
{
    for (unsigned i = below(4) + 1; i > 0; i--) {
        drawn_frame frame = draw_frame(sequence);
        if (below(4) == 0)
            add_noise(to, is, toss() ? METADATA : PADDING, WEIR_AV1_NO_FRAME);
        add_frame(to, is, sequence, &frame);
    }
}

TEST_CASE(frames_are_read_as_they_were_written)
{
    chance = (uint64_t)weir_clock_ns();
    printf("seed %" PRIu64 "\n", chance);
    for (unsigned i = 0; i < NUM_SEQUENCES; i++) {
        drawn_sequence drawn = draw_sequence();
        weir_av1_sequence sequence = { 0 };
        written header = { 0 };
        write_sequence(&header, &drawn);
        for (unsigned j = 0; j < NUM_UNITS_OF_TIME; j++) {
            written unit = { 0 };
            expected is = { 0 };
            weir_av1_look look;
            if (toss())
                add_unit(&unit, &is, TEMPORAL_DELIMITER, (unit_kind){ .has_size = true }, &(written){ 0 },
                         WEIR_AV1_NO_FRAME);
            if (j == 0 || below(4) == 0)
                add_unit(&unit, &is, SEQUENCE_HEADER, (unit_kind){ .has_size = true }, &header, WEIR_AV1_NO_FRAME);
            add_frames(&unit, &is, &drawn);
            assert_true(looks_well(&sequence, &unit, &look));
            assert_look(&look, &is, num_bytes_of(&unit));
        }
    }
}

/* ---- examples ------------------------------------------------------------------------------------------------------ */

/* A stream with temporal layers 0 and 1, and order hints of 7 bits. */
static const drawn_sequence plain = {
    .num_points = 1, .idc = 0x103, .level = 5, .order_bits = 7, .screen = 2, .integer = 2
};
static const drawn_frame key = { .type = KEY, .is_shown = true, .is_resilient = true, .writes = 255 };
static const drawn_frame inter = {
    .type = INTER, .is_shown = true, .writes = 4, .references = { 0, 1, 2, 3, 3, 3, 3 }
};
static const unit_kind sized = { .has_size = true };

static void put_sequence(written *to, const drawn_sequence *sequence)
{
    written header = { 0 };
    write_sequence(&header, sequence);
    put_unit(to, SEQUENCE_HEADER, sized, &header);
}

static void put_header(written *to, unsigned type, unit_kind kind, const drawn_frame *frame)
{
    written header = { 0 };
    write_frame(&header, &plain, frame);
    put_unit(to, type, kind, &header);
}

static void put_tiles(written *to)
{
    put_unit(to, TILE_GROUP, sized, &(written){ .bytes = { 1, 2, 3 }, .num = 24 });
}

/* The sequence of a stream whose first unit has its header and a keyframe. */
static weir_av1_sequence begin(const drawn_sequence *drawn)
{
    weir_av1_sequence sequence = { 0 };
    written unit = { 0 };
    weir_av1_look look;
    put_sequence(&unit, drawn);
    put_header(&unit, FRAME, sized, &key);
    assert_true(looks_well(&sequence, &unit, &look));
    assert_int_equal(look.frames[0].writes, 255);
    return sequence;
}

static weir_av1_sequence begin_plain(void)
{
    return begin(&plain);
}

TEST_CASE(the_last_unit_needs_no_size)
{
    weir_av1_sequence sequence = begin_plain();
    written unit = { 0 };
    weir_av1_look look;
    put_header(&unit, FRAME, sized, &inter);
    put_header(&unit, FRAME, (unit_kind){ 0 }, &inter);
    assert_true(looks_well(&sequence, &unit, &look));
    assert_int_equal(look.num_frames, 2);
    assert_int_equal(look.frames[1].reads, 15);
    assert_int_equal(look.units[1].end, num_bytes_of(&unit));
}

TEST_CASE(frames_of_other_layers_than_those_of_the_operating_point_are_not_followed)
{
    static const struct {
        unsigned idc; /* temporal layers; 0x100 = the lowest spatial one */
        unit_kind kind;
        bool is_followed;
    } layers[] = {
        { 0x103, { .has_layers = true, .has_size = true, .temporal = 1 }, true },
        { 0x103, { .has_layers = true, .has_size = true, .temporal = 2 }, false },
        { 0x103, { .has_layers = true, .has_size = true, .spatial = 1 }, false },
        { 0x102, { .has_layers = true, .has_size = true }, false },
        { 0x102, { .has_size = true }, true },
        { 0x003, { .has_layers = true, .has_size = true }, false },
        { 0, { .has_layers = true, .has_size = true, .temporal = 7 }, true },
    };
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        drawn_sequence drawn = plain;
        drawn.idc = layers[i].idc;
        weir_av1_sequence sequence = begin(&drawn);
        weir_av1_look look;
        written whole = { 0 }, parts = { 0 };
        put_header(&whole, FRAME, layers[i].kind, &inter);
        assert_int_equal(looks_well(&sequence, &whole, &look), layers[i].is_followed);
        put_header(&parts, FRAME_HEADER, sized, &inter);
        put_unit(&parts, TILE_GROUP, layers[i].kind, &(written){ .num = 24 });
        assert_int_equal(looks_well(&sequence, &parts, &look), layers[i].is_followed);
    }
}

static bool is_followed(const drawn_sequence *drawn)
{
    weir_av1_sequence sequence = { 0 };
    written unit = { 0 };
    weir_av1_look look;
    put_sequence(&unit, drawn);
    put_header(&unit, FRAME, sized, &key);
    return looks_well(&sequence, &unit, &look);
}

TEST_CASE(several_operating_points_spatial_layers_and_frame_ids_are_not_followed)
{
    drawn_sequence drawn = plain;
    assert_true(is_followed(&drawn));
    drawn.num_points = 2;
    assert_false(is_followed(&drawn));
    drawn = plain;
    drawn.idc = 0x301;
    assert_false(is_followed(&drawn));
    drawn = plain;
    drawn.has_frame_ids = true;
    assert_false(is_followed(&drawn));
}

TEST_CASE(frames_without_a_sequence_or_without_tiles_are_not_followed)
{
    weir_av1_sequence none = { 0 }, sequence = begin_plain();
    weir_av1_look look;
    written frame = { 0 }, bare = { 0 }, two = { 0 }, tiles = { 0 }, nothing = { 0 };
    put_header(&frame, FRAME, sized, &inter);
    assert_false(looks_well(&none, &frame, &look));
    assert_true(looks_well(&sequence, &frame, &look));

    put_header(&bare, FRAME_HEADER, sized, &inter);
    assert_false(looks_well(&sequence, &bare, &look));
    two = bare;
    put_header(&two, FRAME, sized, &inter);
    assert_false(looks_well(&sequence, &two, &look));
    put_tiles(&bare);
    assert_true(looks_well(&sequence, &bare, &look));

    put_tiles(&tiles);
    assert_false(looks_well(&sequence, &tiles, &look));
    assert_false(looks_well(&sequence, &nothing, &look));
}

TEST_CASE(what_shows_a_slot_is_a_header_without_tiles)
{
    static const drawn_frame shows = { .shows_slot = true, .slot = 6 };
    weir_av1_sequence sequence = begin_plain();
    weir_av1_look look;
    written header = { 0 }, frame = { 0 };
    put_header(&header, FRAME_HEADER, sized, &shows);
    assert_true(looks_well(&sequence, &header, &look));
    assert_int_equal(look.frames[0].reads, 1 << 6);
    put_tiles(&header);
    assert_false(looks_well(&sequence, &header, &look));
    put_header(&frame, FRAME, sized, &shows);
    assert_false(looks_well(&sequence, &frame, &look));
}

TEST_CASE(a_copy_of_a_header_is_not_followed)
{
    weir_av1_sequence sequence = begin_plain();
    weir_av1_look look;
    written unit = { 0 };
    put_header(&unit, FRAME_HEADER, sized, &inter);
    put_header(&unit, REDUNDANT_HEADER, sized, &inter);
    put_tiles(&unit);
    assert_false(looks_well(&sequence, &unit, &look));
}

/* The last bit of its header is one of those that are not read. */
TEST_CASE(another_sequence_is_not_followed_unless_the_first_is_of_the_container)
{
    weir_av1_sequence sequence = { 0 };
    weir_av1_look look;
    written header = { 0 }, same = { 0 }, other = { 0 };
    write_sequence(&header, &plain);
    put_unit(&same, SEQUENCE_HEADER, sized, &header);
    header.bytes[(header.num - 1) / 8] ^= (uint8_t)(1u << (7 - (header.num - 1) % 8));
    put_unit(&other, SEQUENCE_HEADER, sized, &header);
    put_header(&same, FRAME, sized, &key);
    put_header(&other, FRAME, sized, &key);

    assert_true(looks_well(&sequence, &same, &look));
    assert_true(looks_well(&sequence, &same, &look));
    assert_false(looks_well(&sequence, &other, &look));
    sequence.checksum = 0;
    assert_true(looks_well(&sequence, &other, &look));
    assert_false(looks_well(&sequence, &same, &look));
}

TEST_CASE(more_frames_or_units_than_there_is_room_for_are_not_followed)
{
    weir_av1_sequence sequence = begin_plain();
    weir_av1_look look;
    written frames = { 0 }, units = { 0 };
    for (unsigned i = 0; i < WEIR_AV1_MAX_FRAMES; i++)
        put_header(&frames, FRAME, sized, &inter);
    assert_true(looks_well(&sequence, &frames, &look));
    put_header(&frames, FRAME, sized, &inter);
    assert_false(looks_well(&sequence, &frames, &look));

    put_header(&units, FRAME, sized, &inter);
    for (unsigned i = 1; i < WEIR_AV1_MAX_UNITS; i++)
        put_tiles(&units);
    assert_true(looks_well(&sequence, &units, &look));
    put_tiles(&units);
    assert_false(looks_well(&sequence, &units, &look));
}

/* A size that is longer than the unit, one of more than 8 bytes, a forbidden bit, an extension that is cut. */
TEST_CASE(broken_unit_headers_are_not_followed)
{
    static const struct {
        uint8_t bytes[12];
        size_t size_bytes;
    } broken[] = {
        { { FRAME << 3 | 2, 11, 0x30 }, 11 },
        { { FRAME << 3 | 2, 0x8a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0 }, 12 },
        { { 0x80 | FRAME << 3 | 2, 10, 0x30 }, 12 },
        { { FRAME << 3 | 4 }, 1 },
        { { FRAME << 3 | 2 }, 1 },
    };
    weir_av1_look look;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        weir_av1_sequence sequence = begin_plain();
        written unit = { 0 };
        memcpy(unit.bytes, broken[i].bytes, broken[i].size_bytes);
        assert_false(look_at(&sequence, &unit, broken[i].size_bytes, &look));
    }
    weir_av1_sequence sequence = begin_plain();
    written whole = { .bytes = { FRAME << 3 | 2, 10, 0x30 } };
    assert_true(look_at(&sequence, &whole, 12, &look));
}

/* Cut anywhere, a temporal unit is refused, or its units end where it ends. */
TEST_CASE(a_unit_that_is_cut_is_never_read_beyond_its_end)
{
    for (unsigned i = 0; i < NUM_SEQUENCES / 10; i++) {
        drawn_sequence drawn = draw_sequence();
        written unit = { 0 };
        expected is = { 0 };
        put_sequence(&unit, &drawn);
        add_frames(&unit, &is, &drawn);
        for (size_t size_bytes = 0; size_bytes < num_bytes_of(&unit); size_bytes++) {
            weir_av1_sequence sequence = { 0 };
            weir_av1_look look;
            if (look_at(&sequence, &unit, size_bytes, &look))
                assert_int_equal(look.units[look.num_units - 1].end, size_bytes);
        }
    }
}

/* ---- plans, of what no encoder here makes --------------------------------------------------------------------------- */

enum { MAX_PACKETS = 8 };

/* Of its packets, the last is wanted. */
typedef struct group {
    written units[MAX_PACKETS];
    AVPacket *packets[MAX_PACKETS];
    size_t num;
} group;

static const AVPacket *packet_at(void *self, size_t at)
{
    return ((group *)self)->packets[at];
}

static bool is_last(void *self, size_t at)
{
    return at + 1 == ((group *)self)->num;
}

static void make_plan(weir_av1_plan *plan, group *of)
{
    const weir_av1_run run = { 0, of->num - 1, packet_at, is_last, of };
    for (size_t i = 0; i < of->num; i++) {
        of->packets[i] = av_packet_alloc();
        assert_non_null(of->packets[i]);
        of->packets[i]->data = of->units[i].bytes;
        of->packets[i]->size = (int)num_bytes_of(&of->units[i]);
    }
    assert_int_equal(weir__av1_plan_make(plan, &(AVCodecParameters){ 0 }, &run), WEIR_OK);
}

static void end_plan(weir_av1_plan *plan, group *of)
{
    weir__av1_plan_free(plan);
    for (size_t i = 0; i < of->num; i++)
        av_packet_free(&of->packets[i]);
}

static void put_first(group *of)
{
    put_sequence(&of->units[0], &plain);
    put_header(&of->units[0], FRAME, sized, &key);
    of->num = 1;
}

TEST_CASE(a_hidden_keyframe_fills_all_slots_when_it_is_shown)
{
    static const drawn_frame hidden = { .type = KEY, .writes = 8 }, shows = { .shows_slot = true, .slot = 3 };
    weir_av1_plan plan = { 0 };
    group of = { 0 };
    put_first(&of);
    put_header(&of.units[1], FRAME, sized, &inter);
    put_header(&of.units[2], FRAME, sized, &hidden);
    put_header(&of.units[2], FRAME, sized, &inter);
    put_header(&of.units[3], FRAME_HEADER, sized, &shows);
    put_header(&of.units[4], FRAME, sized, &inter);
    of.num = 5;
    make_plan(&plan, &of);
    assert_true(plan.is_on);
    assert_true(weir__av1_plan_skips(&plan, 1));
    assert_false(weir__av1_plan_skips(&plan, 2));
    assert_false(weir__av1_plan_skips(&plan, 3));
    assert_true(weir__av1_plan_cut(&plan, 2, of.packets[2])->size < of.packets[2]->size);
    assert_int_equal(plan.num_all, 5);
    assert_int_equal(plan.num_needed, 3);
    end_plan(&plan, &of);
}

/* Which slots it reads depends on what is in all of them. */
TEST_CASE(a_frame_whose_references_are_not_named_needs_all_slots)
{
    static const drawn_frame unnamed = { .type = INTER, .is_shown = true, .is_short = true };
    static const drawn_frame other = { .type = INTER, .is_shown = true, .writes = 128 };
    weir_av1_plan plan = { 0 };
    group of = { 0 };
    put_first(&of);
    put_header(&of.units[1], FRAME, sized, &other);
    put_header(&of.units[2], FRAME, sized, &other);
    put_header(&of.units[3], FRAME, sized, &unnamed);
    of.num = 4;
    make_plan(&plan, &of);
    assert_true(weir__av1_plan_skips(&plan, 1));
    assert_false(weir__av1_plan_skips(&plan, 2));
    assert_int_equal(plan.num_needed, 3);
    end_plan(&plan, &of);
}

TEST_CASE(a_packet_that_shows_no_frame_or_two_is_not_planned)
{
    static const drawn_frame hidden = { .type = INTER, .writes = 1 };
    weir_av1_plan plan = { 0 };
    group of = { 0 };
    put_first(&of);
    put_header(&of.units[1], FRAME, sized, &hidden);
    of.num = 2;
    make_plan(&plan, &of);
    assert_false(plan.is_on);
    end_plan(&plan, &of);
    put_header(&of.units[1], FRAME, sized, &inter);
    make_plan(&plan, &of);
    assert_true(plan.is_on);
    end_plan(&plan, &of);
    put_header(&of.units[1], FRAME, sized, &inter);
    make_plan(&plan, &of);
    assert_false(plan.is_on);
    end_plan(&plan, &of);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
