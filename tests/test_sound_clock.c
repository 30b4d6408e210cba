/* The clock of sound: which sample a frame begins with, by counting and, after a seek, by its time. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/test_case.h"

#include <libavutil/mathematics.h>

#include "stages/audio/sound_clock.h"

enum { RATE = 44100, SIZE = 1024 };

static const AVRational milliseconds = { 1, 1000 }, samples = { 1, RATE }, transport = { 1, 90000 };

static int64_t place(weir_sound_clock *clock, int64_t pts, int size)
{
    AVFrame *frame = av_frame_alloc();
    assert_non_null(frame);
    frame->sample_rate = RATE;
    frame->nb_samples = size;
    frame->best_effort_timestamp = pts;
    int64_t sample = weir__sound_clock_place(clock, frame);
    av_frame_free(&frame);
    return sample;
}

/* The time of that sample as a container stores it. */
static int64_t stored(AVRational unit, int64_t sample)
{
    return av_rescale_q(sample, samples, unit);
}

/* Has read that many frames of SIZE from the start; the first one is cut. */
static weir_sound_clock clock_of(AVRational unit, bool has_fixed_size, bool may_restart, int num_frames)
{
    weir_sound_clock clock;
    int64_t next = 0;
    weir__sound_clock_begin(&clock, unit, has_fixed_size, may_restart);
    for (int i = 0; i < num_frames; i++) {
        int size = i == 0 ? 700 : SIZE;
        assert_int_equal(place(&clock, stored(unit, next), size), next);
        next += size;
    }
    return clock;
}

static int64_t sample_of(int64_t frame)
{
    return 700 + (frame - 1) * SIZE;
}

TEST_CASE(every_frame_is_found_after_a_seek_by_its_rounded_time)
{
    for (int64_t frame = 5; frame < 3000000; frame += 1 + frame / 3) { /* up to 19 hours */
        weir_sound_clock clock = clock_of(milliseconds, true, false, 3);
        assert_true(weir__sound_clock_can_seek(&clock, false));
        weir__sound_clock_seek(&clock);
        assert_int_equal(place(&clock, stored(milliseconds, sample_of(frame)), SIZE), WEIR_SAMPLE_UNKNOWN);
        for (int64_t i = frame + 1; i < frame + 50; i++)
            assert_int_equal(place(&clock, stored(milliseconds, sample_of(i)), SIZE), sample_of(i));
    }
}

TEST_CASE(a_time_base_of_samples_needs_no_frames_of_one_size)
{
    weir_sound_clock clock = clock_of(samples, false, false, 3);
    assert_true(weir__sound_clock_can_seek(&clock, false));
    weir__sound_clock_seek(&clock);
    assert_int_equal(place(&clock, 99000, 333), WEIR_SAMPLE_UNKNOWN);
    assert_int_equal(place(&clock, 99333, 77), 99333);
    assert_int_equal(place(&clock, 99410, 500), 99410);
    assert_int_equal(place(&clock, 99912, 500), WEIR_SAMPLE_LOST);
}

TEST_CASE(times_that_do_not_tell_the_sample_are_not_sought)
{
    weir_sound_clock clock = clock_of(milliseconds, false, false, 3);
    assert_false(weir__sound_clock_can_seek(&clock, false)); /* frames of any size */
    clock = clock_of(samples, true, true, 3);
    assert_false(weir__sound_clock_can_seek(&clock, false)); /* times that may restart */
    assert_true(weir__sound_clock_can_seek(&clock, true));
    clock = clock_of(samples, true, false, 2);
    assert_false(weir__sound_clock_can_seek(&clock, false)); /* too few frames to know their size */
    clock = clock_of(samples, true, false, 3);
    assert_true(weir__sound_clock_can_seek(&clock, false));
}

TEST_CASE(a_time_between_two_frames_is_lost_after_a_seek)
{
    weir_sound_clock clock = clock_of(samples, true, false, 3);
    weir__sound_clock_seek(&clock);
    place(&clock, sample_of(99), SIZE);
    assert_int_equal(place(&clock, sample_of(100) + SIZE / 3, SIZE), WEIR_SAMPLE_LOST);
    weir__sound_clock_seek(&clock);
    place(&clock, sample_of(99), SIZE);
    assert_int_equal(place(&clock, sample_of(100), SIZE - 1), WEIR_SAMPLE_LOST);
}

TEST_CASE(from_the_start_lost_frames_are_a_gap_and_jitter_is_none)
{
    weir_sound_clock clock = clock_of(milliseconds, true, false, 10);
    assert_int_equal(place(&clock, stored(milliseconds, sample_of(12)), SIZE), sample_of(12)); /* two are lost */
    assert_int_equal(place(&clock, stored(milliseconds, sample_of(13) + 400), SIZE), sample_of(13));
    assert_int_equal(place(&clock, stored(milliseconds, sample_of(14) - 400), SIZE), sample_of(14));
    int64_t far = sample_of(14) + 20 * RATE + 300;
    assert_in_range(place(&clock, stored(milliseconds, far), SIZE), far - 100, far + 100);
}

TEST_CASE(a_clock_that_restarts_is_continued)
{
    weir_sound_clock clock = clock_of(transport, true, true, 10);
    for (int64_t i = 0; i < 10; i++) /* begins again */
        assert_int_equal(place(&clock, stored(transport, i * SIZE), SIZE), sample_of(10 + i));
    for (int64_t i = 0; i < 10; i++) /* far ahead */
        assert_int_equal(place(&clock, INT64_C(90000) * 5000 + stored(transport, i * SIZE), SIZE), sample_of(20 + i));
    assert_int_equal(place(&clock, AV_NOPTS_VALUE, SIZE), sample_of(30));
    int64_t gap = INT64_C(90000) * 5000 + stored(transport, 11 * SIZE + RATE);
    assert_in_range(place(&clock, gap, SIZE), sample_of(31) + RATE - 600, sample_of(31) + RATE + 600);
}

TEST_CASE(wrong_times_do_no_harm)
{
    static const int64_t wrong[] = { INT64_MAX, INT64_MIN + 1, -1, INT64_MAX / 2, 0, INT64_MIN };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        for (int may_restart = 0; may_restart < 2; may_restart++) {
            weir_sound_clock clock = clock_of(transport, true, may_restart, 10);
            int64_t next = clock.next;
            for (size_t j = 0; j < sizeof wrong / sizeof wrong[0]; j++) {
                int64_t at = place(&clock, wrong[(i + j) % 6], SIZE);
                assert_true(at >= next);
                next = at + SIZE;
            }
        }
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
