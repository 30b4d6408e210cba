/*
 * The clock: packets whose times restart are continued; the rounding of stored times; which frames are before, at and after
 * a time.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/test_case.h"

#include <libavutil/mathematics.h>

#include <weir/clock.h>
#include <weir/status.h>

#include "stages/reader/frame_clock.h"

enum { SECOND = 90000, FRAME = 3600 };

static const AVRational unknown = { 0, 1 }, milliseconds = { 1, 1000 };

/* ---- packets ------------------------------------------------------------------------------------------------- */

static weir_packet_clock transport_clock(void)
{
    return (weir_packet_clock){
        .time_base = { 1, SECOND },
        .may_restart = true,
        .wrap_bits = 33,
        .start_us = AV_NOPTS_VALUE,
        .last_dts_us = AV_NOPTS_VALUE,
        .next_dts_us = AV_NOPTS_VALUE,
    };
}

/* The continued dts of a packet with that one, shown two frames later. */
static int64_t run_clock(weir_packet_clock *clock, int64_t dts, int64_t duration)
{
    AVPacket *packet = av_packet_alloc();
    assert_non_null(packet);
    packet->dts = dts;
    packet->pts = dts + 2 * (int64_t)FRAME;
    packet->duration = duration;
    weir__packet_clock_run(clock, packet);
    assert_int_equal(packet->pts - packet->dts, 2 * FRAME);
    int64_t continued = packet->dts;
    av_packet_free(&packet);
    return continued;
}

TEST_CASE(a_clock_that_restarts_is_continued)
{
    weir_packet_clock clock = transport_clock();
    for (int64_t i = 0; i < 30; i++)
        assert_int_equal(run_clock(&clock, 1000 + i % 10 * FRAME, FRAME), 1000 + i * FRAME);
    assert_int_equal(clock.num_restarts, 2);
    /* ahead by more than ten seconds, and by less */
    assert_int_equal(run_clock(&clock, INT64_C(900) * SECOND, FRAME), 1000 + 30 * FRAME);
    assert_int_equal(run_clock(&clock, INT64_C(909) * SECOND, FRAME), 1000 + 30 * FRAME + 9 * SECOND);
    assert_int_equal(clock.num_restarts, 3);
}

/* By a frame or two, as in broken muxers; the limit is 0.1 s. */
TEST_CASE(a_clock_that_goes_back_a_little_is_not_a_restart)
{
    weir_packet_clock clock = transport_clock();
    assert_int_equal(run_clock(&clock, SECOND, FRAME), SECOND);
    assert_int_equal(run_clock(&clock, SECOND + FRAME - SECOND / 10, FRAME), SECOND + FRAME - SECOND / 10);
    assert_int_equal(clock.num_restarts, 0);
    assert_int_equal(run_clock(&clock, SECOND + 2 * FRAME - 2 * SECOND / 10 - 90, FRAME),
                     SECOND + 2 * FRAME - SECOND / 10);
    assert_int_equal(clock.num_restarts, 1);
}

/* Without a duration only jumps of ten seconds are seen. */
TEST_CASE(without_durations_only_long_jumps_are_restarts)
{
    weir_packet_clock clock = transport_clock();
    assert_int_equal(run_clock(&clock, 20 * SECOND, 0), 20 * SECOND);
    assert_int_equal(run_clock(&clock, 11 * SECOND, 0), 11 * SECOND);
    assert_int_equal(run_clock(&clock, 0, 0), 11 * SECOND);
    assert_int_equal(clock.num_restarts, 1);
    clock = transport_clock();
    clock.interval_us = AV_TIME_BASE / 25;
    assert_int_equal(run_clock(&clock, 20 * SECOND, 0), 20 * SECOND);
    assert_int_equal(run_clock(&clock, 11 * SECOND, 0), 20 * SECOND + FRAME);
}

TEST_CASE(formats_whose_clock_may_not_restart_keep_their_times)
{
    weir_packet_clock clock = transport_clock();
    clock.may_restart = false;
    assert_int_equal(run_clock(&clock, 50 * SECOND, FRAME), 50 * SECOND);
    assert_int_equal(run_clock(&clock, 0, FRAME), 0);
    assert_int_equal(clock.num_restarts, 0);
}

/* The 33 bits of a time wrap around every 26.5 hours: after them, and at the very beginning, where the probe has seen the later
   times first. */
TEST_CASE(a_clock_that_wraps_around_is_continued)
{
    const int64_t wrap = INT64_C(1) << 33;
    weir_packet_clock clock = transport_clock();
    for (int64_t i = 0; i < 10; i++)
        assert_int_equal(run_clock(&clock, (wrap - 5 * FRAME + i * FRAME) % wrap, FRAME),
                         wrap - 5 * FRAME + i * FRAME);
    assert_int_equal(clock.num_restarts, 1);
    clock = transport_clock();
    clock.start_us = 0;
    for (int64_t i = 0; i < 10; i++)
        assert_int_equal(run_clock(&clock, i < 3 ? wrap - 3 * FRAME + i * FRAME : (i - 3) * FRAME, FRAME),
                         -3 * FRAME + i * FRAME);
}

TEST_CASE(after_a_seek_a_time_is_not_a_restart)
{
    weir_packet_clock clock = transport_clock();
    assert_int_equal(run_clock(&clock, 50 * SECOND, FRAME), 50 * SECOND);
    weir__packet_clock_seek(&clock);
    assert_int_equal(run_clock(&clock, 0, FRAME), 0);
    assert_int_equal(clock.num_restarts, 0);
}

/* A packet without a time of decoding takes its duration all the same. */
TEST_CASE(a_missing_time_does_not_hide_a_restart)
{
    weir_packet_clock clock = transport_clock();
    AVPacket *packet = av_packet_alloc();
    assert_non_null(packet);
    assert_int_equal(run_clock(&clock, 50 * SECOND, FRAME), 50 * SECOND);
    packet->duration = FRAME;
    weir__packet_clock_run(&clock, packet);
    assert_true(packet->dts == AV_NOPTS_VALUE && packet->pts == AV_NOPTS_VALUE);
    av_packet_free(&packet);
    assert_int_equal(run_clock(&clock, 0, FRAME), 50 * SECOND + 2 * FRAME);
    assert_int_equal(clock.num_restarts, 1);
}

/* The times of a recording that began before the wrap are moved until the first one after it, and no longer. */
TEST_CASE(times_before_a_wrap_are_moved_once)
{
    const int64_t wrap = INT64_C(1) << 33;
    weir_packet_clock clock = transport_clock();
    clock.start_us = 0;
    assert_int_equal(run_clock(&clock, wrap - FRAME, 0), -FRAME);
    assert_int_equal(run_clock(&clock, 0, 0), 0);
    assert_true(clock.is_wrap_checked);
    assert_int_equal(run_clock(&clock, wrap - FRAME, 0), 0); /* a jump: the clock goes on */
}

/* ---- decoded frames ------------------------------------------------------------------------------------------ */

TEST_CASE(frames_without_a_time_go_on_by_their_duration)
{
    static const struct {
        int64_t pts, wanted_pts, ticks;
    } frames[] = {
        { AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0 },
        { 1100, 1100, 40 }, /* the first one was 40 earlier */
        { AV_NOPTS_VALUE, 1140, 80 },
        { 1120, 1120, 80 }, /* back: as it is stored, and in order */
        { 1300, 1300, 240 },
        { AV_NOPTS_VALUE, 1340, 280 },
    };
    AVFormatContext *format = avformat_alloc_context();
    AVStream *stream = format ? avformat_new_stream(format, NULL) : NULL;
    AVFrame *frame = av_frame_alloc();
    weir_frame_clock clock;
    assert_true(stream && frame);
    stream->time_base = milliseconds;
    stream->avg_frame_rate = (AVRational){ 25, 1 };
    weir__frame_clock_begin(&clock, stream);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        frame->best_effort_timestamp = frames[i].pts;
        weir__frame_clock_add(&clock, frame);
        assert_int_equal(clock.pts, frames[i].wanted_pts);
        assert_int_equal(clock.ticks, frames[i].ticks);
        assert_int_equal(clock.end_ticks, frames[i].ticks + 40);
        assert_true(clock.has_end);
    }
    clock.rate = (AVRational){ 0, 1 };
    weir__frame_clock_add(&clock, frame);
    assert_false(clock.has_end);
    av_frame_free(&frame);
    avformat_free_context(format);
}

/* ---- hidden packets ------------------------------------------------------------------------------------------ */

TEST_CASE(frames_of_hidden_packets_are_dropped_where_the_decoder_shows_them)
{
    static const AVCodec dav1d = { .name = "libdav1d" }, others = { .name = "h264" };
    weir_hidden_packets hidden = { 0 };
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    assert_true(packet && frame);
    for (packet->pts = 0; packet->pts < 200; packet->pts++) {
        packet->flags = packet->pts < 100 ? AV_PKT_FLAG_DISCARD : 0;
        assert_int_equal(weir__hidden_packets_add(&hidden, &dav1d, packet), WEIR_OK);
    }
    for (frame->pts = 2; frame->pts < 200; frame->pts++)
        assert_int_equal(weir__hidden_packets_take(&hidden, frame), frame->pts < 100);
    assert_int_equal(hidden.num, 0);
    frame->pts = 99; /* it was taken */
    assert_false(weir__hidden_packets_take(&hidden, frame));
    packet->flags = AV_PKT_FLAG_DISCARD;
    assert_int_equal(weir__hidden_packets_add(&hidden, &others, packet), WEIR_OK);
    frame->pts = packet->pts;
    assert_false(weir__hidden_packets_take(&hidden, frame));
    weir__hidden_packets_reset(&hidden);
    av_frame_free(&frame);
    av_packet_free(&packet);
}

/* ---- rounding ------------------------------------------------------------------------------------------------ */

/* The times of num_frames frames of that duration, each rounded to the nearest tick. */
static weir_timeline steady(size_t num_frames, AVRational frame, AVRational tick, AVRational rate)
{
    weir_timeline timeline = { .time_base = tick };
    for (size_t i = 0; i < num_frames; i++)
        assert_int_equal(weir__timeline_add(&timeline, av_rescale_q((int64_t)i, frame, tick), false), WEIR_OK);
    timeline.end_ticks = av_rescale_q((int64_t)num_frames, frame, tick);
    weir__timeline_end(&timeline, weir__timeline_step(&timeline), rate, unknown);
    return timeline;
}

static void assert_tolerance(weir_timeline timeline, int64_t smallest_ns, int64_t largest_ns)
{
    for (size_t i = 0; i <= timeline.num_frames; i++) {
        int64_t tolerance_ns = weir__timeline_tolerance_ns(&timeline, i);
        assert_in_range(tolerance_ns, smallest_ns, largest_ns);
    }
    weir__timeline_reset(&timeline);
}

TEST_CASE(a_whole_number_of_ticks_needs_no_tolerance)
{
    assert_tolerance(steady(60, (AVRational){ 1, 25 }, milliseconds, unknown), 1, 1);
    assert_tolerance(steady(60, (AVRational){ 1, 30 }, (AVRational){ 1, 15360 }, unknown), 1, 1);
    assert_tolerance(steady(60, (AVRational){ 1, 30 }, (AVRational){ 1, 90000 }, unknown), 1, 1);
    assert_tolerance(steady(2, (AVRational){ 1, 25 }, milliseconds, (AVRational){ 25, 1 }), 1, 1);
    /* one tick each, as in AVI */
    assert_tolerance(steady(60, (AVRational){ 1, 30 }, (AVRational){ 1, 30 }, (AVRational){ 30, 1 }), 1, 1);
}

TEST_CASE(a_rounded_time_is_true_to_less_than_a_tick)
{
    enum { TICK_NS = WEIR_SECOND / 90000 };
    assert_tolerance(steady(60, (AVRational){ 1, 30 }, milliseconds, unknown), WEIR_MILLISECOND - 1,
                     WEIR_MILLISECOND - 1);
    assert_tolerance(steady(60, (AVRational){ 1001, 24000 }, (AVRational){ 1, 90000 }, unknown), TICK_NS - 1,
                     TICK_NS);
    /* two frames have a common step by chance: the header's rate tells */
    assert_tolerance(steady(2, (AVRational){ 1, 30 }, milliseconds, (AVRational){ 30, 1 }), WEIR_MILLISECOND - 1,
                     WEIR_MILLISECOND - 1);
}

TEST_CASE(the_tolerance_is_less_than_half_a_frame)
{
    /* frames of 1.1, 1.6 and 0.7 ticks */
    assert_tolerance(steady(600, (AVRational){ 11, 10000 }, milliseconds, unknown), 1, WEIR_MILLISECOND / 2 - 1);
    assert_tolerance(steady(600, (AVRational){ 16, 10000 }, milliseconds, unknown), 1, WEIR_MILLISECOND - 1);
    assert_tolerance(steady(600, (AVRational){ 7, 10000 }, milliseconds, unknown), 1, WEIR_MILLISECOND / 2 - 1);
}

/* FFmpeg's guess of the real rate, for variable rates in milliseconds, is 1000. */
TEST_CASE(a_guessed_rate_does_not_make_times_exact)
{
    weir_timeline timeline = steady(60, (AVRational){ 1, 30 }, milliseconds, unknown);
    weir__timeline_end(&timeline, weir__timeline_step(&timeline), unknown, (AVRational){ 1000, 1 });
    assert_true(timeline.is_rounded);
    timeline.time_base = (AVRational){ 1, 30 }; /* a tick is a frame, some are dropped */
    weir__timeline_end(&timeline, weir__timeline_step(&timeline), (AVRational){ 17, 1 }, (AVRational){ 30, 1 });
    assert_false(timeline.is_rounded);
    weir__timeline_reset(&timeline);
}

TEST_CASE(a_variable_rate_of_whole_ticks_is_exact)
{
    static const int64_t ticks[] = { 0, 512, 1536, 2048, 5120, 5632 };
    weir_timeline timeline = { .time_base = { 1, 15360 }, .end_ticks = 6144 };
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(weir__timeline_add(&timeline, ticks[i], false), WEIR_OK);
    weir__timeline_end(&timeline, weir__timeline_step(&timeline), (AVRational){ 17, 1 }, unknown);
    assert_tolerance(timeline, 1, 1);
}

TEST_CASE(times_are_compared_with_the_tolerance)
{
    weir_timeline timeline = steady(60, (AVRational){ 1, 30 }, milliseconds, unknown); /* 0, 33, 67, 100 ms, … */
    assert_int_equal(weir__timeline_up_to(&timeline, 0), 1);
    assert_int_equal(weir__timeline_up_to(&timeline, 66 * WEIR_MILLISECOND), 2); /* a tick before it */
    assert_int_equal(weir__timeline_up_to(&timeline, 66 * WEIR_MILLISECOND + 1), 3);
    assert_int_equal(weir__timeline_up_to(&timeline, INT64_MAX), 60);
    assert_int_equal(weir__timeline_before(&timeline, 0), 0);
    assert_int_equal(weir__timeline_before(&timeline, 67 * WEIR_MILLISECOND), 2);
    assert_int_equal(weir__timeline_before(&timeline, 68 * WEIR_MILLISECOND - 1), 2);
    assert_int_equal(weir__timeline_before(&timeline, 68 * WEIR_MILLISECOND), 3); /* a tick after it */
    assert_int_equal(weir__timeline_before(&timeline, INT64_MAX), 60);
    weir__timeline_reset(&timeline);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
