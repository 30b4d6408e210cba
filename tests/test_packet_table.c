/*
 * The packet table: what is packed comes out again, field by field, for random tables; whatever is changed in its bytes is
 * refused. Held constant: the codec, and what makes an index trusted, since only such an index is packed.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/test_case.h"

#include <libavformat/avformat.h>

#include <weir/status.h>

#include "stages/reader/packet_table.h"

enum { MAX_PACKETS = 400, CHECKSUM_BYTES = 4, NUM_TABLES = 3000 };

static AVFormatContext *format;
static AVStream *stream;
static uint64_t chance_state;

static int make_stream(void **state)
{
    (void)state;
    format = avformat_alloc_context();
    stream = format ? avformat_new_stream(format, NULL) : NULL;
    if (!stream)
        return -1;
    stream->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codecpar->codec_id = AV_CODEC_ID_H264;
    stream->time_base = (AVRational){ 1, 90000 };
    return 0;
}

static int free_stream(void **state)
{
    (void)state;
    avformat_free_context(format);
    return 0;
}

static uint64_t below(uint64_t end)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (chance_state >> 11) % end;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const int32_t sizes[] = { 0, 1, 63, 64, 8191, 8192, 1 << 20, INT32_MAX };

/* Decode times rise by steps that are steady for a while; frames are shown a little later, in another order, each at a time
   of its own. Some packets have no dts, and some that are not shown have no pts. */
static void draw_packets(weir_packet_entry *packets, size_t num_packets)
{
    int64_t unit = (int64_t[]){ 1, 2, 1001, 3003, INT64_C(1) << 31 }[below(5)];
    int64_t dts = (int64_t)below(2000) * unit - 1000 * unit, step = unit, duration = unit;
    int64_t last_pts = dts - 100 * unit;
    for (size_t i = 0; i < num_packets; i++) {
        bool is_first = i == 0, is_shown = is_first || below(8) > 0, is_clean = is_first || below(12) == 0;
        if (below(5) == 0) {
            step = (int64_t)(1 + below(40)) * unit;
            duration = unit <= INT32_MAX / 50 ? (int64_t)below(50) * unit : 0;
        }
        dts += step;
        last_pts += (int64_t)(1 + below(3)) * unit; /* they differ, and the first one is the lowest */
        packets[i] = (weir_packet_entry){
            .pts = is_shown || below(2) ? last_pts : AV_NOPTS_VALUE,
            .dts = below(6) ? dts : AV_NOPTS_VALUE,
            .size_bytes = below(4) ? (int32_t)below(100000) : sizes[below(sizeof sizes / sizeof sizes[0])],
            .duration = (int32_t)duration,
            .start = is_clean ? (uint32_t)i : packets[i - 1].start,
            .flags =
                (uint8_t)((is_first || below(6) == 0 ? WEIR_PACKET_KEY : 0) | (is_clean ? WEIR_PACKET_CLEAN : 0) |
                          (is_shown ? WEIR_PACKET_SHOWN : 0) | (below(3) ? 0 : WEIR_PACKET_DISPOSABLE)),
        };
    }
    for (size_t i = 1; i + 1 < num_packets; i += 1 + below(4)) { /* as B-frames do */
        int64_t pts = packets[i].pts;
        if (pts == AV_NOPTS_VALUE || packets[i + 1].pts == AV_NOPTS_VALUE || packets[i + 1].flags & WEIR_PACKET_KEY)
            continue; /* nothing that is decoded before a keyframe is shown after it */
        packets[i].pts = packets[i + 1].pts;
        packets[i + 1].pts = pts;
    }
}

/* The index that would be made of these packets. */
static weir_index scanned(const weir_packet_entry *packets, size_t num_packets)
{
    weir_index index = { .packets = calloc(num_packets, sizeof *packets), .num_packets = num_packets };
    assert_non_null(index.packets);
    memcpy(index.packets, packets, num_packets * sizeof *packets);
    assert_int_equal(weir__index_end(&index, stream), WEIR_OK);
    assert_null(index.distrust);
    return index;
}

static uint8_t *pack(const weir_packet_entry *packets, size_t num_packets, size_t *num_bytes)
{
    uint8_t *table = NULL;
    weir_index index = scanned(packets, num_packets);
    assert_int_equal(weir__packet_table_pack(&index, stream->time_base, &table, num_bytes), WEIR_OK);
    assert_non_null(table);
    weir__index_reset(&index);
    return table;
}

static void assert_same_packet(const weir_packet_entry *got, const weir_packet_entry *wanted, size_t at)
{
    if (got->pts != wanted->pts || got->dts != wanted->dts || got->size_bytes != wanted->size_bytes ||
        got->duration != wanted->duration || got->start != wanted->start || got->flags != wanted->flags)
        fail_msg("packet %zu: pts %" PRId64 " dts %" PRId64 " size %d duration %d start %u flags %d, not %" PRId64
                 " %" PRId64 " %d %d %u %d",
                 at, got->pts, got->dts, got->size_bytes, got->duration, got->start, got->flags, wanted->pts,
                 wanted->dts, wanted->size_bytes, wanted->duration, wanted->start, wanted->flags);
}

static void assert_unpacks_to(const uint8_t *table, size_t num_bytes, const weir_packet_entry *packets,
                              size_t num_packets)
{
    weir_index index = { 0 };
    size_t num_frames = 0;
    assert_int_equal(weir__packet_table_open(table, num_bytes, stream, &index), WEIR_OK);
    assert_null(index.distrust);
    assert_int_equal(index.num_packets, num_packets);
    for (size_t i = 0; i < num_packets; i++) {
        assert_same_packet(weir__index_packet(&index, i), &packets[i], i);
        num_frames += (packets[i].flags & WEIR_PACKET_SHOWN) != 0;
    }
    assert_int_equal(index.num_frames, num_frames);
    assert_int_equal(weir__index_failure(&index, NULL), WEIR_OK);
    weir__index_reset(&index);
}

/* FNV-1a. */
static void put_checksum(uint8_t *to, const uint8_t *bytes, size_t num_bytes)
{
    uint32_t sum = 0x811c9dc5;
    for (size_t i = 0; i < num_bytes; i++)
        sum = (sum ^ bytes[i]) * 0x01000193;
    for (size_t i = 0; i < CHECKSUM_BYTES; i++)
        to[i] = (uint8_t)(sum >> 8 * i);
}

static size_t skip_numbers(const uint8_t *table, size_t at, size_t num_bytes, unsigned count)
{
    for (; count > 0 && at < num_bytes; at++)
        count -= !(table[at] & 0x80);
    return at;
}

/* The checksums of a table of one block. */
static void seal(uint8_t *table, size_t num_bytes)
{
    size_t block = skip_numbers(table, 0, num_bytes, 6 + 4); /* behind its numbers in the directory */
    if (block + 2 * CHECKSUM_BYTES > num_bytes)
        return;
    size_t packets = block + 2 * CHECKSUM_BYTES;
    put_checksum(table + block, table + packets, num_bytes - packets);
    put_checksum(table + block + CHECKSUM_BYTES, table, block + CHECKSUM_BYTES);
}

/* It is refused, and the index is as empty as before. */
static void assert_refused(const uint8_t *table, size_t num_bytes, const char *what, size_t at)
{
    weir_index index = { 0 };
    int rc = weir__packet_table_open(table, num_bytes, stream, &index);
    if (rc != WEIR_EDATA || index.blocks || index.num_frames || index.num_packets)
        fail_msg("%s %zu: status %d, %zu packets", what, at, rc, index.num_packets);
}

/* ---- what comes out ---------------------------------------------------------------------------------------------- */

TEST_CASE(what_is_packed_comes_out_again)
{
    static weir_packet_entry packets[MAX_PACKETS];
    const char *seed = getenv("WEIR_SEED");
    chance_state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    print_message("WEIR_SEED=%" PRIu64 "\n", chance_state);
    for (int i = 0; i < NUM_TABLES; i++) {
        size_t num_bytes, num_packets = 1 + below(i % 10 ? 40 : MAX_PACKETS);
        draw_packets(packets, num_packets);
        uint8_t *table = pack(packets, num_packets, &num_bytes);
        assert_unpacks_to(table, num_bytes, packets, num_packets);
        free(table);
    }
}

/* A steady stream needs 3 bytes for each packet: flags, pts - dts and size. */
TEST_CASE(a_steady_stream_is_packed_into_few_bytes)
{
    static weir_packet_entry packets[100];
    size_t num_bytes;
    for (int i = 0; i < 100; i++)
        packets[i] =
            (weir_packet_entry){ .pts = 3000 * (i + 2),
                                 .dts = 3000 * i,
                                 .size_bytes = 50,
                                 .duration = 3000,
                                 .flags = WEIR_PACKET_SHOWN | (i ? 0 : WEIR_PACKET_KEY | WEIR_PACKET_CLEAN) };
    uint8_t *table = pack(packets, 100, &num_bytes);
    /* version, 1, 90000, unit, step, blocks; packets, frames, time and bytes of the block; of the first two packets also the change
       of the step and the duration */
    size_t directory = (1 + 1 + 3 + 2 + 2 + 1) + (1 + 1 + 1 + 2 + CHECKSUM_BYTES) + CHECKSUM_BYTES;
    assert_int_equal(num_bytes, directory + 2 * 5 + 98 * 3);
    assert_unpacks_to(table, num_bytes, packets, 100);
    free(table);
}

/* Durations of a variable frame rate: the steps are steady, and only a duration differs. */
TEST_CASE(a_duration_that_changes_alone_is_kept)
{
    weir_packet_entry packets[6] = { 0 };
    static const int32_t durations[] = { 10, 10, 25, 10, 0, 40 };
    size_t num_bytes;
    for (int i = 0; i < 6; i++)
        packets[i] =
            (weir_packet_entry){ .pts = 10 * i,
                                 .dts = 10 * i,
                                 .size_bytes = 7,
                                 .duration = durations[i],
                                 .flags = WEIR_PACKET_SHOWN | (i ? 0 : WEIR_PACKET_KEY | WEIR_PACKET_CLEAN) };
    uint8_t *table = pack(packets, 6, &num_bytes);
    assert_unpacks_to(table, num_bytes, packets, 6);
    free(table);
}

/* Tables are kept in indexes: a change of the format must change the version. */
TEST_CASE(the_format_is_the_one_that_is_stored)
{
    uint8_t stored[] = {
        2,    2,    0xa0, 0xfe, 0x0a, 0x90, 0x4e, 0x90, 0x4e, 1, /* version, 1 / 90000, unit and step 5000, 1 block */
        3,    2,    2,    13,                        /* 3 packets, 2 frames, the first one after 1 unit, 13 bytes */
        0,    0,    0,    0,    0,    0,    0,    0, /* checksums */
        7,    1,    4,    2,    100, /* KEY, CLEAN, SHOWN; the step becomes -1; pts is 2 later; duration 1; 50 bytes */
        12,   4,    4,    2,    102, /* SHOWN, DISPOSABLE; the step grows by 2; pts is 2 later; duration 1; 51 bytes */
        0xe0, 0x80, 1,               /* without times, and as steady as before; 64 bytes */
    };
    const weir_packet_entry packets[] = {
        { .pts = 5000, .dts = -5000, .size_bytes = 50, .duration = 5000, .flags = 7 },
        { .pts = 10000, .dts = 0, .size_bytes = 51, .duration = 5000, .flags = 12 },
        { .pts = AV_NOPTS_VALUE, .dts = AV_NOPTS_VALUE, .size_bytes = 64, .duration = 5000 },
    };
    size_t num_bytes;
    seal(stored, sizeof stored);
    uint8_t *table = pack(packets, 3, &num_bytes);
    assert_int_equal(num_bytes, sizeof stored);
    assert_memory_equal(table, stored, sizeof stored);
    assert_unpacks_to(stored, sizeof stored, packets, 3);
    free(table);
}

/* ---- what is refused ---------------------------------------------------------------------------------------------- */

static uint8_t *pack_some(size_t num_packets, size_t *num_bytes)
{
    static weir_packet_entry packets[MAX_PACKETS];
    draw_packets(packets, num_packets);
    return pack(packets, num_packets, num_bytes);
}

TEST_CASE(every_changed_byte_and_every_cut_is_refused)
{
    size_t num_bytes;
    uint8_t *table = pack_some(30, &num_bytes);
    for (size_t at = 0; at < num_bytes; at++) {
        assert_refused(table, at, "cut after byte", at);
        for (unsigned bit = 0; bit < 8; bit++) {
            table[at] ^= (uint8_t)(1u << bit);
            assert_refused(table, num_bytes, "byte", at);
            table[at] ^= (uint8_t)(1u << bit);
        }
    }
    free(table);
}

/* Whoever makes a checksum that fits gets an index within its bounds, or none. How many packets such indexes had. */
static size_t change_bytes(uint8_t *table, size_t num_bytes)
{
    size_t num_used = 0;
    for (int i = 0; i < 20000; i++) {
        size_t at = below(num_bytes);
        uint8_t before = table[at];
        weir_index index = { 0 };
        table[at] = (uint8_t)below(256);
        seal(table, num_bytes);
        int rc = weir__packet_table_open(table, num_bytes, stream, &index);
        for (size_t j = 0; rc == WEIR_OK && j < index.num_packets; j++) {
            assert_true(weir__index_packet(&index, j)->size_bytes >= 0);
            assert_true(weir__index_packet(&index, j)->start <= j);
            num_used++;
        }
        assert_true(rc == WEIR_OK || (rc == WEIR_EDATA && !index.blocks));
        weir__index_reset(&index);
        table[at] = before;
    }
    return num_used;
}

/* For some tables, each change is refused. Then others are drawn. */
TEST_CASE(changed_bytes_with_a_checksum_that_fits_do_no_harm)
{
    size_t num_used = 0;
    for (int i = 0; i < 100 && num_used == 0; i++) {
        size_t num_bytes;
        uint8_t *table = pack_some(30, &num_bytes);
        num_used = change_bytes(table, num_bytes);
        free(table);
    }
    assert_true(num_used > 0);
}

TEST_CASE(a_table_of_another_version_stream_or_length_is_refused)
{
    size_t num_bytes;
    uint8_t *table = pack_some(30, &num_bytes);
    uint8_t *longer = malloc(num_bytes + 1);
    memcpy(longer, table, num_bytes);
    longer[0]++;
    seal(longer, num_bytes);
    assert_refused(longer, num_bytes, "version", longer[0]);
    memcpy(longer, table, num_bytes);
    longer[num_bytes] = 0;
    seal(longer, num_bytes + 1);
    assert_refused(longer, num_bytes + 1, "bytes more:", 1);
    memcpy(longer, table, num_bytes - 1);
    seal(longer, num_bytes - 1);
    assert_refused(longer, num_bytes - 1, "bytes less:", 1);

    static const AVRational others[] = { { 2, 90000 }, { 1, 90001 }, { 1, 45000 } };
    for (size_t i = 0; i < 3; i++) {
        stream->time_base = others[i];
        assert_refused(table, num_bytes, "time base", i);
    }
    stream->time_base = (AVRational){ 1, 90000 };
    free(longer);
    free(table);
}

/* More blocks than there are bytes for them: nothing is allocated for those. */
TEST_CASE(more_blocks_than_bytes_are_refused)
{
    static const uint8_t counts[][6] = { { 4 }, { 0x80, 1 }, { 0xff, 0xff, 0xff, 0xff, 0x0f } }; /* ended by 0 */
    for (size_t i = 0; i < 3; i++) {
        uint8_t table[32] = { 2, 2, 0xa0, 0xfe, 0x0a, 2, 2 };
        size_t length = 7 + strlen((const char *)counts[i]);
        memcpy(table + 7, counts[i], strlen((const char *)counts[i]));
        length += 3 + CHECKSUM_BYTES;
        seal(table, length);
        assert_refused(table, length, "count", i);
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------- */

/* Groups of pictures with frames that are shown before their keyframe; some packets are hidden. Groups, rates and lengths vary;
   one clock that rises. */
static size_t draw_groups(weir_packet_entry *packets, size_t max_packets)
{
    size_t num_packets = 0, group = 1 + below(40), reorder = below(4);
    int64_t unit = (int64_t[]){ 1, 512, 1001, 3000 }[below(4)], time = (int64_t)below(100) * unit;
    while (num_packets + group + 4 <= max_packets) {
        size_t first = num_packets, num_leading = first > 0 ? below(reorder + 1) : 0;
        size_t num = num_leading + 1 + below(group);
        for (size_t i = 0; i < num; i++) {
            /* the keyframe is decoded first, and shown after num_leading frames */
            size_t place = i == 0 ? num_leading : i <= num_leading ? i - 1 : i;
            bool is_shown = i == 0 || below(12) > 0;
            packets[num_packets++] = (weir_packet_entry){
                .pts = time + (int64_t)(place + reorder) * unit,
                .dts = time + (int64_t)i * unit,
                .size_bytes = (int32_t)below(10000),
                .duration = (int32_t)unit,
                .start = (uint32_t)first,
                .flags = (uint8_t)((i == 0 ? WEIR_PACKET_KEY | WEIR_PACKET_CLEAN : 0) |
                                   (is_shown ? WEIR_PACKET_SHOWN : WEIR_PACKET_DISPOSABLE)),
            };
        }
        time += (int64_t)num * unit;
    }
    return num_packets;
}

static size_t count_loaded(const weir_index *index)
{
    size_t num_loaded = 0;
    for (size_t i = 0; i < index->blocks->num; i++)
        num_loaded += index->blocks->all[i].packets != NULL;
    return num_loaded;
}

static void assert_same_answers(const weir_index *got, const weir_index *wanted)
{
    weir_timeline of_got = { 0 }, of_wanted = { 0 };
    size_t frame = below(wanted->num_frames), found;
    size_t packet = weir__index_packet_of(wanted, frame);
    int64_t pts = weir__index_packet(wanted, packet)->pts;
    assert_int_equal(weir__index_packet_of(got, frame), packet);
    assert_int_equal(weir__index_start_of(got, frame), weir__index_start_of(wanted, frame));
    assert_true(weir__index_find(got, pts, &found) && found == frame);
    weir__index_set_timeline(got, stream, &of_got);
    weir__index_set_timeline(wanted, stream, &of_wanted);
    assert_int_equal(of_got.end_ticks, of_wanted.end_ticks);
    assert_int_equal(of_got.is_rounded, of_wanted.is_rounded);
    assert_int_equal(weir__timeline_is_key(&of_got, frame), weir__timeline_is_key(&of_wanted, frame));
    int64_t time_ns = weir__timeline_ns(&of_wanted, frame) + (int64_t)below(40000000) - 20000000;
    assert_int_equal(weir__timeline_ns(&of_got, frame), weir__timeline_ns(&of_wanted, frame));
    assert_int_equal(weir__timeline_before(&of_got, time_ns), weir__timeline_before(&of_wanted, time_ns));
    assert_int_equal(weir__timeline_up_to(&of_got, time_ns), weir__timeline_up_to(&of_wanted, time_ns));
    weir__timeline_reset(&of_got);
    weir__timeline_reset(&of_wanted);
}

/* Held constant: one question at a time in each fresh index, whose first and last block are loaded with it. */
TEST_CASE(an_index_in_blocks_answers_as_one_of_all_packets_and_loads_few)
{
    enum { MANY = 5000 };
    static weir_packet_entry packets[MANY];
    const char *seed = getenv("WEIR_SEED");
    size_t most_blocks = 0;
    chance_state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    print_message("WEIR_SEED=%" PRIu64 "\n", chance_state);
    for (int i = 0; i < 300; i++) {
        size_t num_bytes, num_packets = draw_groups(packets, 100 + below(MANY - 100));
        weir_index wanted = scanned(packets, num_packets);
        uint8_t *table = pack(packets, num_packets, &num_bytes);
        for (int question = 0; question < 20; question++) {
            weir_index got = { 0 };
            assert_int_equal(weir__packet_table_open(table, num_bytes, stream, &got), WEIR_OK);
            assert_int_equal(got.num_frames, wanted.num_frames);
            assert_int_equal(got.step, wanted.step);
            assert_same_answers(&got, &wanted);
            assert_int_equal(weir__index_failure(&got, NULL), WEIR_OK);
            /* those of the frame, of its start before, and of a time 20 ms away */
            size_t most = 2 + 2 + 2 * (size_t)(1 + 90 * 20 / (64 * (wanted.step ? wanted.step : 1)));
            assert_in_range(count_loaded(&got), 1, most);
            most_blocks = got.blocks->num > most_blocks ? got.blocks->num : most_blocks;
            weir__index_reset(&got);
        }
        free(table);
        weir__index_reset(&wanted);
    }
    assert_true(most_blocks > 40);
}

/* A block that is damaged is noticed when it is needed; the others are as they were. */
TEST_CASE(a_damaged_block_fails_when_it_is_needed)
{
    enum { MANY = 2000 };
    static weir_packet_entry packets[MANY];
    size_t num_bytes, num_packets = 0;
    while (num_packets < MANY / 2)
        num_packets = draw_groups(packets, MANY);
    uint8_t *table = pack(packets, num_packets, &num_bytes);
    weir_index index = { 0 };
    assert_int_equal(weir__packet_table_open(table, num_bytes, stream, &index), WEIR_OK);
    size_t middle = index.blocks->num / 2;
    const weir_packet_block *block = &index.blocks->all[middle];
    size_t packets_bytes = index.blocks->all[index.blocks->num].offset;
    table[num_bytes - packets_bytes + block->offset] ^= 2;
    assert_int_equal(weir__index_packet(&index, 0)->dts, packets[0].dts);
    assert_int_equal(weir__index_failure(&index, NULL), WEIR_OK);
    weir_error error;
    assert_int_equal(weir__index_packet(&index, block->first_packet)->size_bytes, 0);
    assert_int_equal(weir__index_failure(&index, &error), WEIR_EDATA);
    assert_non_null(strstr(error.message, "damaged"));
    weir__index_reset(&index);
    free(table);
}

TEST_MAIN(NULL, NULL, make_stream, free_stream)
