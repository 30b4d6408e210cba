/*
 * What the tuner keeps, from trials whose results the test sets: weir__live_try() of this file is in the place of the
 * real one. Held constant: one stage whose tasks wait, so that the rules name its slots.
 */
#include "tests/live_pipeline.h"

#include <string.h>

#include <weir/tuner.h>

#include "stats/advice/verdict/live.h"

/* Set before the tuner starts. */
static live_trial result_of_more, result_of_less;
static _Atomic int64_t longest_ns; /* that a trial could take for each setting */

int __wrap_weir__live_try(weir_pipeline *pipeline, const live_set *set, int64_t settle_ns, live_unit unit,
                          const weir_live_options *options, const atomic_bool *stops, live_trial *trial);
int __wrap_weir__live_try(weir_pipeline *pipeline, const live_set *set, int64_t settle_ns, live_unit unit,
                          const weir_live_options *options, const atomic_bool *stops, live_trial *trial)
{
    (void)pipeline;
    (void)settle_ns;
    (void)unit;
    (void)stops;
    if (options->setting_ns > atomic_load(&longest_ns))
        atomic_store(&longest_ns, options->setting_ns);
    bool is_more = set->other[0].slots > set->now[0].slots || set->other[0].threads > set->now[0].threads;
    *trial = is_more ? result_of_more : result_of_less;
    trial->num_pairs = 3;
    trial->elapsed_s = 6;
    return WEIR_OK;
}

/* How often more, or less, was kept and undone until the tuner rests. */
typedef struct decisions {
    live_pipeline live;
    uint32_t slots; /* of the stage */
    int more_kept, more_undone, less_kept, less_undone;
    test_counter rests;
} decisions;

static void on_decision(void *self, const weir_tuner_decision *decision)
{
    decisions *all = self;
    const char *change = strstr(decision->text, " -> ");
    bool is_kept = decision->action == WEIR_TUNER_KEPT;
    if (decision->action == WEIR_TUNER_RESTED)
        counter_add(&all->rests, 1);
    if (!change || (!is_kept && decision->action != WEIR_TUNER_REVERTED))
        return;
    /* "kept 4: …" has what was tried */
    const char *tried = strstr(change, is_kept ? "kept " : "undone ");
    assert_non_null(tried);
    bool is_more = strtoul(strchr(tried, ' '), NULL, 10) > decision->before;
    if (is_more)
        ++*(is_kept ? &all->more_kept : &all->more_undone);
    else
        ++*(is_kept ? &all->less_kept : &all->less_undone);
}

static live_trial trial_of(double gain, double low, double high)
{
    return (live_trial){ .gain = gain, .low = low, .high = high, .rate = 100, .other_rate = 100 * gain };
}

static decisions tune(live_trial more, live_trial less)
{
    decisions all = { .slots = 0 };
    weir_tuner *tuner;
    weir_error error = { 0 };
    const weir_tuner_options options = {
        .max_slots = 8, .max_threads = 16, .decided = on_decision, .decided_self = &all
    };
    result_of_more = more;
    result_of_less = less;
    counter_init(&all.rests);
    live_pipeline_start(&all.live, wait_alone, 2, 4);
    if (weir_tuner_start(all.live.pipeline, &options, &tuner, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    counter_await(&all.rests, 1);
    weir_tuner_free(tuner);
    weir_snapshot *s;
    assert_int_equal(weir_pipeline_snapshot(all.live.pipeline, &s), WEIR_OK);
    all.slots = s->stages[1].concurrency;
    weir_snapshot_free(s);
    live_pipeline_stop(&all.live);
    return all;
}

TEST_CASE(more_is_kept_only_if_it_certainly_brings_more)
{
    const live_trial loss = trial_of(0.5, 0.4, 0.6);
    decisions d = tune(trial_of(1.10, 1.02, 1.18), loss);
    assert_true(d.more_kept >= 2 && d.more_undone == 0 && d.less_kept == 0);
    assert_int_equal(d.slots, 8);
    static const double others[][3] = {
        { 1.10, 0.97, 1.24 },  /* it may bring nothing */
        { 1.50, 0.999, 2.25 }, /* the same */
        { 1.02, 1.01, 1.03 },  /* it certainly brings too little to be worth it */
        { 0.90, 0.80, 1.01 },
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        d = tune(trial_of(others[i][0], others[i][1], others[i][2]), loss);
        if (d.more_kept != 0 || d.more_undone == 0 || d.slots != 2)
            fail_msg("gain %g: more was kept %d times, undone %d times: %u slots", others[i][0], d.more_kept,
                     d.more_undone, (unsigned)d.slots);
    }
}

/* The change may bring nothing, or as much as is worth a change. Neither is certain, until longer trials have not
   decided either. */
TEST_CASE(more_that_did_not_decide_is_tried_again_and_longer)
{
    const live_trial loss = trial_of(0.5, 0.4, 0.6);
    atomic_store(&longest_ns, 0);
    decisions decided = tune(trial_of(1.0, 0.97, 1.03), loss);
    int64_t usual_ns = atomic_exchange(&longest_ns, 0);
    decisions unclear = tune(trial_of(1.15, 0.9, 1.47), loss);
    assert_true(decided.more_undone >= 1 && unclear.more_kept == 0);
    assert_int_equal(unclear.more_undone, 3 * decided.more_undone);
    assert_true(atomic_load(&longest_ns) > usual_ns);
}

TEST_CASE(less_is_kept_only_if_it_certainly_costs_little)
{
    const live_trial nothing = trial_of(1, 0.99, 1.01);
    decisions d = tune(nothing, trial_of(1, 0.95, 1.05));
    assert_true(d.less_kept >= 1 && d.less_undone == 0 && d.more_kept == 0);
    assert_int_equal(d.slots, 1);
    static const double others[][3] = {
        { 1.00, 0.85, 1.17 }, /* it may cost much */
        { 0.96, 0.95, 0.97 }, /* it certainly costs something */
        { 0.50, 0.40, 0.60 },
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        d = tune(nothing, trial_of(others[i][0], others[i][1], others[i][2]));
        if (d.less_kept != 0 || d.less_undone == 0 || d.slots != 2)
            fail_msg("gain %g: less was kept %d times, undone %d times: %u slots", others[i][0], d.less_kept,
                     d.less_undone, (unsigned)d.slots);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
