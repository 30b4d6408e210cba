/*
 * Whether rates change beyond chance. Held constant: laps of equal length. Widened: noise (normal, uniform, rare tail), 12 to
 * 2,000 laps, the place, the size and the direction of a change, the period of an alternation.
 */
#include "tests/support.h"

#include <math.h>

#include "stats/advice/verdict/variation.h"

enum { MOST_LAPS = 2000, NUM_SERIES = 1000 };

typedef enum noise { NOISE_NORMAL, NOISE_UNIFORM, NOISE_TAIL, NUM_NOISES } noise;

static double uniform(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static double draw(noise kind, double mean)
{
    if (kind == NOISE_NORMAL)
        return fmax(0, mean * (1 + 0.2 * sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform())));
    if (kind == NOISE_UNIFORM)
        return mean * (0.7 + 0.6 * uniform());
    return uniform() < 0.02 ? 0.1 * mean : mean * (0.95 + 0.1 * uniform());
}

static size_t draw_count(void)
{
    return 12 + (size_t)(pow(uniform(), 3) * (MOST_LAPS - 12));
}

/* 5 %, and three standard errors of such a count. */
static void assert_by_chance(int num_found)
{
    if (num_found > 0.05 * NUM_SERIES + 3 * sqrt(0.05 * 0.95 * NUM_SERIES))
        fail_msg("%d of %d without a change", num_found, NUM_SERIES);
}

TEST_CASE(a_steady_rate_changes_by_chance_only)
{
    static double rates[MOST_LAPS];
    for (noise kind = 0; kind < NUM_NOISES; kind++) {
        int num_changes = 0, num_levels = 0;
        for (int i = 0; i < NUM_SERIES; i++) {
            size_t count = draw_count();
            rate_change change;
            rate_levels levels;
            for (size_t j = 0; j < count; j++)
                rates[j] = draw(kind, 100);
            num_changes += weir__variation_find_change(rates, count, &change);
            num_levels += weir__variation_find_levels(rates, count, &levels);
        }
        assert_by_chance(num_changes);
        assert_by_chance(num_levels);
    }
}

TEST_CASE(a_change_is_found_where_it_is)
{
    static double rates[MOST_LAPS];
    int num_found = 0, num_there = 0;
    for (int i = 0; i < NUM_SERIES; i++) {
        size_t count = 40 + (size_t)(uniform() * 500), at = count / 4 + (size_t)(uniform() * (double)count / 2);
        double after = i % 2 ? 200 : 50;
        rate_change found;
        for (size_t j = 0; j < count; j++)
            rates[j] = draw((noise)(i % NUM_NOISES), j < at ? 100 : after);
        if (!weir__variation_find_change(rates, count, &found))
            continue;
        num_found++;
        num_there += fabs((double)found.at - (double)at) <= 5 && (found.after > found.before) == (i % 2 == 1);
    }
    assert_int_equal(num_found, NUM_SERIES);
    assert_in_range(num_there, NUM_SERIES * 95 / 100, NUM_SERIES);
}

TEST_CASE(a_slow_decline_is_gradual)
{
    double rates[100];
    rate_change found;
    for (int i = 0; i < 100; i++)
        rates[i] = draw(NOISE_TAIL, 430 - 2.8 * i);
    assert_true(weir__variation_find_change(rates, 100, &found) && found.is_gradual && found.after < found.before);
    for (int i = 0; i < 100; i++)
        rates[i] = draw(NOISE_TAIL, i < 50 ? 430 : 150);
    assert_true(weir__variation_find_change(rates, 100, &found) && !found.is_gradual);
    assert_int_equal(found.at, 50);
}

TEST_CASE(a_change_that_is_not_worth_it_is_not_reported)
{
    double rates[200];
    rate_change found;
    for (int i = 0; i < 200; i++)
        rates[i] = i < 100 ? 100 : 108;
    assert_false(weir__variation_find_change(rates, 200, &found));
    for (int i = 0; i < 200; i++)
        rates[i] = i < 100 ? 0 : 1;
    assert_true(weir__variation_find_change(rates, 200, &found));
    assert_int_equal(found.at, 100);
    assert_false(weir__variation_find_change(rates, 0, &found));
    assert_false(weir__variation_find_change(rates, 1, &found));
}

TEST_CASE(levels_are_found_where_they_are)
{
    double rates[120];
    for (int period = 3; period <= 15; period++) {
        rate_levels found;
        for (int i = 0; i < 120; i++)
            rates[i] = draw((noise)(period % NUM_NOISES), i / period % 2 ? 150 : 430);
        if (!weir__variation_find_levels(rates, 120, &found))
            fail_msg("a level of %d laps was not found", period);
        assert_true(fabs(found.low.rate / 150 - 1) < 0.25 && fabs(found.high.rate / 430 - 1) < 0.25);
        assert_true(fabs((double)found.low.num_laps - 60) <= 15);
        assert_true(found.low.until - found.low.from <= (size_t)period + 1);
    }
}

/* Every other lap: that is a matter of laps, not of the run. */
TEST_CASE(neighbours_that_differ_are_no_levels)
{
    double rates[100];
    rate_levels found;
    for (int i = 0; i < 100; i++)
        rates[i] = i % 2 ? 150 : 430;
    assert_false(weir__variation_find_levels(rates, 100, &found));
    for (int i = 0; i < 100; i++)
        rates[i] = i < 50 ? 150 : 430; /* one change */
    assert_false(weir__variation_find_levels(rates, 100, &found));
    for (int i = 0; i < 100; i++)
        rates[i] = 7;
    assert_false(weir__variation_find_levels(rates, 100, &found));
    assert_false(weir__variation_find_levels(rates, 0, &found));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
