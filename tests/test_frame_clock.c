/* The clock's timeline: the rounding of stored times, and which frames are before, at and after a time. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/test_case.h"

#include <libavutil/mathematics.h>

#include <weir/clock.h>
#include <weir/status.h>

#include "stages/reader/frame_clock.h"

static const AVRational unknown = { 0, 1 }, milliseconds = { 1, 1000 };

/* The times of num_frames frames of that duration, each rounded to the nearest tick. */
static weir_timeline steady(size_t num_frames, AVRational frame, AVRational tick, AVRational rate)
{
    weir_timeline timeline = { .time_base = tick };
    for (size_t i = 0; i < num_frames; i++)
        assert_int_equal(weir__timeline_add(&timeline, av_rescale_q((int64_t)i, frame, tick), false), WEIR_OK);
    timeline.end_ticks = av_rescale_q((int64_t)num_frames, frame, tick);
    weir__timeline_end(&timeline, rate, unknown);
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
    weir__timeline_end(&timeline, unknown, (AVRational){ 1000, 1 });
    assert_true(timeline.is_rounded);
    timeline.time_base = (AVRational){ 1, 30 }; /* a tick is a frame, some are dropped */
    weir__timeline_end(&timeline, (AVRational){ 17, 1 }, (AVRational){ 30, 1 });
    assert_false(timeline.is_rounded);
    weir__timeline_reset(&timeline);
}

TEST_CASE(a_variable_rate_of_whole_ticks_is_exact)
{
    static const int64_t ticks[] = { 0, 512, 1536, 2048, 5120, 5632 };
    weir_timeline timeline = { .time_base = { 1, 15360 }, .end_ticks = 6144 };
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(weir__timeline_add(&timeline, ticks[i], false), WEIR_OK);
    weir__timeline_end(&timeline, (AVRational){ 17, 1 }, unknown);
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
