/*
 * The index of a file, from invented packets: which frame is where, where decoding begins, the times, and each reason not to
 * trust it. Held constant: the codec (H.264, with packets that weir__index_add() need not parse), except of keyframes that drop
 * frames.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <libavformat/avformat.h>

#include <weir/clock.h>
#include <weir/status.h>

#include "stages/reader/frame_index.h"

enum { CLEAN_KEY = WEIR_PACKET_KEY | WEIR_PACKET_CLEAN | WEIR_PACKET_SHOWN, SHOWN = WEIR_PACKET_SHOWN };

static AVFormatContext *format;
static AVStream *stream;

static int make_stream(void **state)
{
    (void)state;
    format = avformat_alloc_context();
    stream = format ? avformat_new_stream(format, NULL) : NULL;
    if (!stream)
        return -1;
    stream->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codecpar->codec_id = AV_CODEC_ID_H264;
    stream->time_base = (AVRational){ 1, 1000 };
    return 0;
}

static int free_stream(void **state)
{
    (void)state;
    avformat_free_context(format);
    return 0;
}

/* Copies the packets, and sets where decoding can begin. */
static weir_index index_of(const weir_packet_entry *packets, size_t num_packets)
{
    weir_index index = { .packets = calloc(num_packets + 1, sizeof *packets), .num_packets = num_packets };
    assert_non_null(index.packets);
    uint32_t start = 0;
    for (size_t i = 0; i < num_packets; i++) {
        index.packets[i] = packets[i];
        start = packets[i].flags & WEIR_PACKET_CLEAN ? (uint32_t)i : start;
        index.packets[i].start = start;
    }
    assert_int_equal(weir__index_end(&index, stream), WEIR_OK);
    return index;
}

/* An open group: the frames 400 and 500 are shown before the second keyframe, 600, and need the first. One is not shown. */
static const weir_packet_entry open_group[] = {
    { .pts = 100, .dts = 0, .flags = CLEAN_KEY, .duration = 100 },
    { .pts = 300, .dts = 100, .flags = SHOWN, .duration = 100 },
    { .pts = 200, .dts = 200, .flags = SHOWN | WEIR_PACKET_DISPOSABLE, .duration = 100 },
    { .pts = 350, .dts = 300, .flags = 0, .duration = 100 },
    { .pts = 600, .dts = 400, .flags = CLEAN_KEY, .duration = 100 },
    { .pts = 400, .dts = 500, .flags = SHOWN, .duration = 100 },
    { .pts = 500, .dts = 600, .flags = SHOWN, .duration = 100 },
    { .pts = 750, .dts = 700, .flags = SHOWN, .duration = 40 },
};

enum { NUM_OPEN = sizeof open_group / sizeof open_group[0] };

/* ---- which frame is where ---------------------------------------------------------------------------------------- */

TEST_CASE(frames_are_in_the_order_of_their_times)
{
    static const uint32_t wanted[] = { 0, 2, 1, 5, 6, 4, 7 };
    weir_index index = index_of(open_group, NUM_OPEN);
    assert_null(index.distrust);
    assert_int_equal(index.num_frames, 7);
    assert_memory_equal(index.frames, wanted, sizeof wanted);
    weir__index_reset(&index);
    assert_true(!index.packets && !index.frames && index.num_packets == 0 && index.num_frames == 0);
}

TEST_CASE(a_time_has_its_frame_or_the_place_where_it_would_be)
{
    static const struct {
        int64_t pts;
        bool is_there;
        size_t frame;
    } times[] = { { 99, false, 0 }, { 100, true, 0 }, { 101, false, 1 }, { 200, true, 1 }, { 350, false, 3 },
                  { 400, true, 3 }, { 600, true, 5 }, { 749, false, 6 }, { 750, true, 6 }, { 751, false, 7 } };
    weir_index index = index_of(open_group, NUM_OPEN);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        size_t frame = 99;
        assert_int_equal(weir__index_find(&index, times[i].pts, &frame), times[i].is_there);
        assert_int_equal(frame, times[i].frame);
    }
    weir__index_reset(&index);
}

TEST_CASE(decoding_begins_at_the_last_keyframe_that_is_not_shown_later)
{
    static const size_t wanted[] = { 0, 0, 0, 0, 0, 4, 4 };
    weir_index index = index_of(open_group, NUM_OPEN);
    for (size_t frame = 0; frame < 7; frame++)
        assert_int_equal(weir__index_start_of(&index, frame), wanted[frame]);
    index.packets[4].pts = AV_NOPTS_VALUE; /* when it is shown is not known: the one before */
    assert_int_equal(weir__index_start_of(&index, 6), 0);
    weir__index_reset(&index);
}

/* Skipping needs the highest layer: packets of lower ones are needed by others. */
TEST_CASE(only_packets_of_the_highest_layer_can_be_skipped)
{
    weir_packet_entry packets[NUM_OPEN];
    memcpy(packets, open_group, sizeof packets);
    for (size_t i = 1; i < NUM_OPEN; i++) {
        packets[i].flags |= WEIR_PACKET_DISPOSABLE;
        packets[i].layer = (uint8_t)(i % 3);
    }
    weir_index index = index_of(packets, NUM_OPEN);
    for (size_t i = 0; i < NUM_OPEN; i++)
        assert_int_equal((index.packets[i].flags & WEIR_PACKET_DISPOSABLE) != 0, i > 0 && i % 3 == 2);
    weir__index_reset(&index);
}

/* ---- times -------------------------------------------------------------------------------------------------------- */

static int64_t end_of(weir_packet_entry *packets, size_t num_packets)
{
    weir_index index = index_of(packets, num_packets);
    weir_timeline timeline = { 0 };
    weir__index_set_timeline(&index, stream, &timeline);
    int64_t end_ns = weir__timeline_ns(&timeline, timeline.num_frames);
    weir__timeline_reset(&timeline);
    weir__index_reset(&index);
    return end_ns;
}

TEST_CASE(the_timeline_begins_at_0_and_ends_with_the_last_duration)
{
    static const int64_t times_ms[] = { 0, 100, 200, 300, 400, 500, 650 };
    weir_index index = index_of(open_group, NUM_OPEN);
    weir_timeline timeline = { 0 };
    weir__index_set_timeline(&index, stream, &timeline);
    assert_int_equal(timeline.num_frames, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(weir__timeline_ns(&timeline, i), times_ms[i] * WEIR_MILLISECOND);
        assert_int_equal(weir__timeline_is_key(&timeline, i), i == 0 || i == 5);
    }
    assert_int_equal(weir__timeline_ns(&timeline, 7), 690 * WEIR_MILLISECOND);
    weir__timeline_reset(&timeline);
    weir__index_reset(&index);

    weir_packet_entry packets[NUM_OPEN];
    memcpy(packets, open_group, sizeof packets);
    packets[NUM_OPEN - 1].duration = 0; /* as long as the distance to the frame before, 600 */
    assert_int_equal(end_of(packets, NUM_OPEN), 800 * WEIR_MILLISECOND);
    assert_int_equal(end_of(packets, 1), 100 * WEIR_MILLISECOND);
    packets[0].duration = 0; /* alone: one tick */
    assert_int_equal(end_of(packets, 1), WEIR_MILLISECOND);
}

/* ---- trust --------------------------------------------------------------------------------------------------------- */

static void assert_distrusted(const weir_packet_entry *packets, size_t num_packets, const char *why)
{
    weir_index index = index_of(packets, num_packets);
    if (why ? !index.distrust || strcmp(index.distrust, why) != 0 : index.distrust != NULL)
        fail_msg("\"%s\", not \"%s\"", index.distrust ? index.distrust : "", why ? why : "");
    weir__index_reset(&index);
}

TEST_CASE(each_reason_against_an_index_is_told)
{
    weir_packet_entry packets[3];
    const weir_packet_entry good[] = { { .pts = 10, .flags = CLEAN_KEY },
                                       { .pts = 30, .flags = SHOWN },
                                       { .pts = 20, .flags = SHOWN } };
#define WITH(change) \
    memcpy(packets, good, sizeof packets); \
    change
    assert_distrusted(good, 3, NULL);
    assert_distrusted(good, 0, "there are no frames");
    WITH(packets[0].flags = WEIR_PACKET_KEY | WEIR_PACKET_CLEAN);
    assert_distrusted(packets, 1, "there are no frames");
    WITH(packets[0].flags = WEIR_PACKET_KEY | SHOWN);
    assert_distrusted(packets, 3, "it does not begin with a keyframe");
    WITH(packets[0].flags = WEIR_PACKET_CLEAN | SHOWN);
    assert_distrusted(packets, 3, "it does not begin with a keyframe");
    WITH(packets[2].pts = AV_NOPTS_VALUE);
    assert_distrusted(packets, 3, "timestamps are missing");
    WITH(packets[2].pts = 9);
    assert_distrusted(packets, 3, "frames are shown before the first keyframe");
    WITH(packets[2].pts = 30);
    assert_distrusted(packets, 3, "two frames have the same timestamp");
    WITH(packets[1].pts = INT64_MAX / 4 + 1);
    assert_distrusted(packets, 3, "timestamps are out of range");
    WITH(packets[1].pts = INT64_MAX / 4 / 1000000 - INT32_MAX + 9); /* just fits: a tick is 1 ms */
    assert_distrusted(packets, 3, NULL);
    WITH(packets[1].pts = INT64_MAX / 4 / 1000000 - INT32_MAX + 12);
    assert_distrusted(packets, 3, "timestamps are out of range");
#undef WITH
    stream->codecpar->codec_id = AV_CODEC_ID_THEORA;
    assert_distrusted(good, 3, "the codec's packets cannot be parsed");
    stream->codecpar->codec_id = AV_CODEC_ID_H264;
    stream->time_base.num = 0;
    assert_distrusted(good, 3, "timestamps are out of range");
    stream->time_base.num = 1;
}

/* ---- packets -------------------------------------------------------------------------------------------------------- */

/* More than the first capacity; a duration that does not fit into 32 bits is not known. */
TEST_CASE(packets_are_added_one_by_one)
{
    enum { NUM = 1300 };
    weir_index index = { 0 };
    AVPacket *packet = av_packet_alloc();
    assert_int_equal(av_new_packet(packet, 50), 0);
    memset(packet->data, 0, 50);
    stream->codecpar->codec_id = AV_CODEC_ID_MJPEG;
    for (int i = 0; i < NUM; i++) {
        packet->pts = 3 * i + 1;
        packet->dts = 3 * i;
        packet->size = 1 + i % 50;
        packet->duration = i == 7 ? INT64_C(1) << 40 : i == 8 ? -1 : i == 9 ? INT32_MAX - 1 : i;
        packet->flags = i % 2 ? AV_PKT_FLAG_KEY | AV_PKT_FLAG_DISCARD : AV_PKT_FLAG_KEY;
        assert_int_equal(weir__index_add(&index, stream, packet), WEIR_OK);
    }
    packet->size = 50;
    av_packet_free(&packet);
    assert_int_equal(index.num_packets, NUM);
    for (int i = 0; i < NUM; i++) {
        const weir_packet_entry *entry = &index.packets[i];
        assert_int_equal(entry->pts, 3 * i + 1);
        assert_int_equal(entry->dts, 3 * i);
        assert_int_equal(entry->size_bytes, 1 + i % 50);
        assert_int_equal(entry->duration, i == 7 || i == 8 ? 0 : i == 9 ? INT32_MAX - 1 : i);
        assert_int_equal((entry->flags & WEIR_PACKET_SHOWN) != 0, i % 2 == 0);
        assert_true(entry->flags & WEIR_PACKET_KEY);
        assert_int_equal(entry->start,
                         entry->flags & WEIR_PACKET_CLEAN || i == 0 ? i : (int)index.packets[i - 1].start);
    }
    assert_int_equal(weir__index_end(&index, stream), WEIR_OK);
    assert_int_equal(index.num_frames, NUM / 2);
    weir__index_reset(&index);
    stream->codecpar->codec_id = AV_CODEC_ID_H264;
}

/* Packets at which decoding cannot begin, the first one included: it is tried from the first. */
TEST_CASE(without_a_clean_packet_decoding_begins_at_the_first)
{
    weir_index index = { 0 };
    AVPacket *packet = av_packet_alloc();
    assert_int_equal(av_new_packet(packet, 8), 0);
    memset(packet->data, 0, 8);
    for (int i = 0; i < 5; i++) {
        packet->pts = packet->dts = i;
        assert_int_equal(weir__index_add(&index, stream, packet), WEIR_OK);
        assert_int_equal(index.packets[i].flags & WEIR_PACKET_CLEAN, 0);
        assert_int_equal(index.packets[i].start, 0);
    }
    av_packet_free(&packet);
    weir__index_reset(&index);
}

/* At a join whose times overlap the decoder returns all frames before the keyframe first. */
TEST_CASE(a_keyframe_that_is_shown_before_earlier_packets_is_distrusted)
{
    weir_packet_entry packets[NUM_OPEN];
    memcpy(packets, open_group, sizeof packets);
    assert_distrusted(packets, NUM_OPEN, NULL);
    packets[1].pts = 610;
    assert_distrusted(packets, NUM_OPEN, "a frame before a keyframe is shown after it");
    packets[1].flags = 0; /* it is not shown */
    assert_distrusted(packets, NUM_OPEN, NULL);
    packets[1] = open_group[1];
    packets[5].pts = 299; /* decoded after the keyframe, and shown before a frame that is decoded before it */
    assert_distrusted(packets, NUM_OPEN, "a frame before a keyframe is shown after it");
    packets[5] = open_group[5];
    packets[4].pts = 299; /* the frame before it is shown at 300 */
    assert_distrusted(packets, NUM_OPEN, "a frame before a keyframe is shown after it");
}

/* Adds invented packets of that codec, one for each letter. Are frames lost, so that the index is not to be trusted? */
static bool is_distrusted(enum AVCodecID codec, const char *letters)
{
    static const struct {
        char letter;
        uint8_t bytes[16];
    } units[] = {
        { 'i', { 0, 0, 1, 0x26, 1, 0xa0 } },                         /* IDR */
        { 'I', { 0, 0, 1, 0x26, 1, 0xe0 } },                         /* IDR that drops */
        { 'c', { 0, 0, 1, 0x2a, 1, 0xa0 } },                         /* CRA */
        { 'p', { 0, 0, 1, 0x02, 1, 0xa0 } },                         /* depends on others */
        { 'e', { 0, 0, 1, 0x02, 1, 0xa0, 0, 0, 1, 0x48, 1 } },       /* … and an end of the sequence behind it */
        { 'E', { 0, 0, 1, 0x48, 1, 0, 0, 1, 0x2a, 1, 0xa0 } },       /* CRA behind one */
        { '4', { 0, 0, 1, 0xb3, 7, 5, 0, 0x23, 0, 0, 1, 0, 0, 8 } }, /* MPEG-2, 4:3 */
        { '9', { 0, 0, 1, 0xb3, 7, 5, 0, 0x33, 0, 0, 1, 0, 0, 8 } }, /* 16:9 */
    };
    weir_index index = { 0 };
    uint8_t bytes[16 + AV_INPUT_BUFFER_PADDING_SIZE] = { 0 };
    stream->codecpar->codec_id = codec;
    for (int64_t at = 0; letters[at]; at++) {
        AVPacket *packet = av_packet_alloc();
        assert_non_null(packet);
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
            if (units[i].letter == letters[at])
                memcpy(bytes, units[i].bytes, sizeof units[i].bytes);
        packet->data = bytes;
        packet->size = sizeof units[0].bytes;
        packet->pts = packet->dts = at;
        packet->flags = letters[at] == 'p' || letters[at] == 'e' ? 0 : AV_PKT_FLAG_KEY;
        assert_int_equal(weir__index_add(&index, stream, packet), WEIR_OK);
        av_packet_free(&packet);
    }
    stream->codecpar->codec_id = AV_CODEC_ID_H264;
    bool is_told = index.distrust && strcmp(index.distrust, "frames before a keyframe are dropped") == 0;
    assert_true(is_told || !index.distrust);
    weir__index_reset(&index);
    return is_told;
}

TEST_CASE(a_keyframe_that_drops_frames_is_distrusted)
{
    assert_false(is_distrusted(AV_CODEC_ID_HEVC, "ippipp"));
    assert_false(is_distrusted(AV_CODEC_ID_HEVC, "Ippipp")); /* there are none before it */
    assert_true(is_distrusted(AV_CODEC_ID_HEVC, "ippIpp"));
    assert_false(is_distrusted(AV_CODEC_ID_HEVC, "cppcpe")); /* nothing comes behind the end */
    assert_false(is_distrusted(AV_CODEC_ID_HEVC, "cpeipp")); /* only CRA pictures drop */
    assert_false(is_distrusted(AV_CODEC_ID_HEVC, "cpeipcpp"));
    assert_true(is_distrusted(AV_CODEC_ID_HEVC, "cpecpp"));
    assert_true(is_distrusted(AV_CODEC_ID_HEVC, "cppEpp"));
    assert_false(is_distrusted(AV_CODEC_ID_MPEG2VIDEO, "444"));
    assert_false(is_distrusted(AV_CODEC_ID_MPEG2VIDEO, "999"));
    assert_true(is_distrusted(AV_CODEC_ID_MPEG2VIDEO, "449"));
}

/* As where the 32 bits of FLV's times wrap around. */
TEST_CASE(a_clock_that_jumps_while_a_frame_waits_is_distrusted)
{
    enum { JUMP_MS = 10001 };
    static const char why[] = "the clock jumps within a group of pictures";
    const weir_packet_entry group[] = { { .pts = 20, .dts = 0, .flags = CLEAN_KEY },
                                        { .pts = 50, .dts = 10, .flags = SHOWN },
                                        { .pts = 30, .dts = 20, .flags = SHOWN },
                                        { .pts = 40 + JUMP_MS, .dts = 20 + JUMP_MS, .flags = SHOWN } };
    weir_packet_entry packets[4];
    assert_distrusted(group, 4, why);
    memcpy(packets, group, sizeof packets);
    packets[3].dts--;
    assert_distrusted(packets, 4, NULL);
    packets[3] = group[3];
    packets[3].flags = CLEAN_KEY; /* another group: what waits is shown before it */
    assert_distrusted(packets, 4, NULL);
    packets[3] = group[3];
    packets[1].flags = 0; /* nothing that is shown waits */
    packets[2].dts = 30;
    assert_distrusted(packets, 4, NULL);
    memcpy(packets, group, sizeof packets);
    packets[3].dts = AV_NOPTS_VALUE;
    assert_distrusted(packets, 4, NULL);
    for (size_t i = 0; i < 3; i++)
        packets[i].dts += 2 * JUMP_MS;
    packets[1].pts = 50 + 2 * JUMP_MS;
    packets[3].dts = 0; /* backwards */
    assert_distrusted(packets, 4, why);
}

TEST_MAIN(NULL, NULL, make_stream, free_stream)
