/* The verdict on a loop without a pipeline: known times give known figures, and intervals contain what they should. */
#include "tests/test_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/loop.h>
#include <weir/span.h>
#include <weir/verdict.h>

#include "common/random.h"

#define MS WEIR_MILLISECOND

static weir_loop *new_loop(void)
{
    weir_loop *loop;
    weir_error error = { 0 };
    assert_int_equal(weir_loop_new(&loop, &error), WEIR_OK);
    return loop;
}

static weir_loop_result judge(const weir_loop *loop)
{
    weir_loop_result result;
    assert_int_equal(weir_loop_judge(loop, &result), WEIR_OK);
    return result;
}

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.12g instead of %.12g", value, wanted);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in: %s", part, text);
}

/* A number from 0 to 1. */
static double draw(uint64_t *state)
{
    return (double)(weir__random_next(state) >> 11) / (double)(UINT64_C(1) << 53);
}

TEST_CASE(a_loop_that_waits_for_data_is_told_how_long_and_what_it_could_gain)
{
    weir_loop *loop = new_loop();
    for (int i = 0; i < 300; i++)
        assert_int_equal(weir_loop_add(loop, (20 + i % 3) * MS, (59 + i % 3) * MS, false), WEIR_OK);
    weir_loop_result r = judge(loop);
    assert_int_equal(r.kind, WEIR_LOOP_DATA);
    assert_int_equal(r.num_steps, 300);
    assert_near(r.wait_s, 0.021);
    assert_near(r.step_s, 0.060);
    assert_near(r.share, 21.0 / 81);
    assert_near(r.most, 81.0 / 60);
    assert_true(r.share_low < r.share && r.share < r.share_high);
    assert_true(r.share_low > 0.25 && r.share_high < 0.27);
    assert_near(r.most_low, 1 / (1 - r.share_low));
    assert_near(r.most_high, 1 / (1 - r.share_high));
    assert_true(isnan(r.gain) && isnan(r.gain_low) && isnan(r.gain_high) && r.num_replayed == 0);
    assert_has(r.text, "the loop waits for data: it waits for 25.9 % of the time");
    assert_has(r.text, "300 steps");
    assert_has(r.text, "at most 1.35 times");
    weir_loop_free(loop);
}

TEST_CASE(a_loop_whose_data_is_there_does_not_wait)
{
    weir_loop *loop = new_loop();
    for (int i = 0; i < 100; i++)
        weir_loop_add(loop, (1 + i % 2) * MS, 50 * MS, false);
    weir_loop_result r = judge(loop);
    assert_int_equal(r.kind, WEIR_LOOP_STEPS);
    assert_has(r.text, "the loop does not wait for data");
    weir_loop_free(loop);
}

TEST_CASE(few_or_varying_steps_do_not_tell)
{
    weir_loop *loop = new_loop();
    weir_loop_result r = judge(loop);
    assert_int_equal(r.kind, WEIR_LOOP_UNKNOWN);
    assert_true(isnan(r.share) && isnan(r.most) && isnan(r.start_s));
    assert_has(r.text, "no step has ended yet");
    weir_loop_add(loop, 500 * MS, 500 * MS, false);
    r = judge(loop);
    assert_int_equal(r.kind, WEIR_LOOP_UNKNOWN);
    assert_near(r.share, 0.5);
    assert_true(r.share_low == 0 && r.share_high == 1);
    for (int i = 0; i < 8; i++)
        weir_loop_add(loop, 0, 900 * MS, false);
    r = judge(loop); /* one step of nine has waited */
    assert_int_equal(r.kind, WEIR_LOOP_UNKNOWN);
    assert_has(r.text, "do not tell");
    weir_loop_free(loop);
}

TEST_CASE(steps_with_kept_data_say_more_than_the_bound)
{
    static const struct {
        int64_t wait_ms, step_ms, replay_ms;
        weir_loop_kind kind;
    } cases[] = {
        { 40, 60, 60, WEIR_LOOP_DATA },  /* as the bound says */
        { 40, 60, 97, WEIR_LOOP_STEPS }, /* loader and steps share the CPUs: waiting costs nothing */
        { 1, 99, 50, WEIR_LOOP_DATA },   /* the loader slows down the steps */
    };
    for (size_t c = 0; c < 3; c++) {
        weir_loop *loop = new_loop();
        for (int i = 0; i < 200; i++)
            weir_loop_add(loop, cases[c].wait_ms * MS + i % 2, cases[c].step_ms * MS, false);
        for (int i = 0; i < 50; i++)
            weir_loop_add(loop, 0, cases[c].replay_ms * MS + i % 2, true);
        weir_loop_result r = judge(loop);
        assert_int_equal(r.kind, cases[c].kind);
        assert_int_equal(r.num_steps, 200);
        assert_int_equal(r.num_replayed, 50);
        assert_true(fabs(r.gain - 100.0 / (double)cases[c].replay_ms) < 1e-4);
        assert_true(r.gain_low < r.gain && r.gain < r.gain_high && r.gain_high - r.gain_low < 0.01);
        assert_has(r.text, "steps with kept data");
        weir_loop_free(loop);
    }
}

/* Waiting for a slow minute now and then: neighbouring steps are alike. */
static double draw_wait(uint64_t *state, bool *is_slow)
{
    *is_slow = draw(state) < (*is_slow ? 0.8 : 0.05);
    return (*is_slow ? 0.03 : 0.002) * (0.5 + draw(state));
}

TEST_CASE(intervals_contain_the_share_that_long_runs_have)
{
    enum { RUNS = 300, STEPS = 1500 };
    const double wait_s = 0.2 * 0.03 + 0.8 * 0.002, step_s = 0.02; /* slow for 0.05 / (0.05 + 0.2) of the steps */
    const double share = wait_s / (wait_s + step_s);
    uint64_t chance = 4;
    int num_right = 0;
    double width = 0;
    for (int run = 0; run < RUNS; run++) {
        weir_loop *loop = new_loop();
        bool is_slow = draw(&chance) < 0.2;
        for (int i = 0; i < STEPS; i++)
            weir_loop_add(loop, (int64_t)(1e9 * draw_wait(&chance, &is_slow)),
                          (int64_t)(1e9 * step_s * (0.9 + 0.2 * draw(&chance))), false);
        weir_loop_result r = judge(loop);
        num_right += r.share_low <= share && share <= r.share_high;
        width += (r.share_high - r.share_low) / RUNS;
        weir_loop_free(loop);
    }
    assert_in_range(num_right, RUNS * 90 / 100, RUNS * 99 / 100);
    assert_true(width > 0.05 && width < 0.11); /* four standard errors of 1,500 such steps are 0.08 */
}

TEST_CASE(sums_are_exact_however_many_steps_there_are)
{
    for (uint64_t num_steps = 1; num_steps <= 5000; num_steps += 1 + num_steps / 3) {
        weir_loop *loop = new_loop();
        for (uint64_t i = 1; i <= num_steps; i++)
            weir_loop_add(loop, (int64_t)i * 1000, 3000, false);
        weir_loop_result r = judge(loop);
        assert_int_equal(r.num_steps, num_steps);
        assert_near(r.wait_s, 1e-6 * (double)(num_steps + 1) / 2);
        assert_near(r.step_s, 3e-6);
        assert_true(r.share_low <= r.share && r.share <= r.share_high);
        weir_loop_free(loop);
    }
}

/* ---- by the clock ----------------------------------------------------------------------------------------------- */

static void pass_time(int64_t ns)
{
    int64_t until_ns = weir_clock_ns() + ns;
    while (weir_clock_ns() < until_ns)
        ;
}

static void run_step(weir_loop *loop, int64_t wait_ns, int64_t step_ns, bool is_replayed)
{
    assert_int_equal(weir_loop_wait(loop), WEIR_OK);
    pass_time(wait_ns);
    assert_int_equal(weir_loop_step(loop, is_replayed), WEIR_OK);
    pass_time(step_ns);
}

TEST_CASE(times_are_those_of_the_clock_without_starts_and_pauses)
{
    weir_loop *loop = new_loop();
    assert_int_equal(weir_loop_step(loop, false), WEIR_EINVAL);
    run_step(loop, 30 * MS, 0, false); /* the start of the loader */
    int64_t begin_ns = weir_clock_ns();
    for (int i = 0; i < 5; i++)
        run_step(loop, MS, 2 * MS, false);
    weir_loop_pause(loop);
    double elapsed_s = (double)(weir_clock_ns() - begin_ns) / 1e9;
    assert_int_equal(weir_loop_step(loop, false), WEIR_EINVAL);
    pass_time(20 * MS); /* an evaluation */
    run_step(loop, 10 * MS, 0, false);
    run_step(loop, 0, MS, true);
    weir_loop_wait(loop);
    weir_loop_wait(loop); /* asks again */
    weir_loop_result r = judge(loop);
    assert_int_equal(r.num_steps, 5);
    assert_int_equal(r.num_replayed, 1);
    assert_int_equal(r.num_starts, 2);
    assert_true(r.start_s >= 0.020);
    assert_true(r.wait_s >= 0.001 && r.step_s >= 0.002);
    assert_true(5 * (r.wait_s + r.step_s) <= elapsed_s);
    weir_loop_free(loop);
}

TEST_CASE(after_a_pause_steps_with_kept_data_count_and_the_loader_still_starts)
{
    weir_loop *loop = new_loop();
    run_step(loop, 10 * MS, 0, false); /* the start of the loader */
    run_step(loop, MS, MS, false);
    weir_loop_pause(loop);
    run_step(loop, 0, MS, true);
    run_step(loop, 0, MS, true);
    weir_loop_pause(loop);
    run_step(loop, 0, MS, true);
    run_step(loop, 10 * MS, 0, false); /* it starts again */
    weir_loop_pause(loop);
    weir_loop_result r = judge(loop);
    assert_int_equal(r.num_steps, 1);
    assert_int_equal(r.num_replayed, 3);
    assert_int_equal(r.num_starts, 2);
    assert_true(r.start_s >= 0.010);
    weir_loop_free(loop);
}

TEST_CASE(times_are_spans_too)
{
    char *text;
    size_t size;
    weir_loop *loop = new_loop();
    run_step(loop, 0, 0, false);
    run_step(loop, 0, 0, true);
    weir_loop_free(loop);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(weir_span_dump(out, &(weir_span_dump_options){ .json = true }), WEIR_OK);
    fclose(out);
    assert_has(text, "loop");
    assert_has(text, "wait");
    assert_has(text, "replay");
    free(text);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
