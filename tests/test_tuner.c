/* The tuner on running pipelines: tasks that wait by themselves, and tasks that wait for one server. */
#include "tests/live_pipeline.h"

#include <stdio.h>
#include <string.h>

#include <weir/tuner.h>

typedef struct tuned_run {
    live_pipeline live;
    weir_tuner *tuner;
    atomic_uint slots, most_slots; /* of the stage, as decided */
    atomic_uint num_decisions;
    test_counter rests, reductions;
} tuned_run;

static void on_decision(void *self, const weir_tuner_decision *decision)
{
    tuned_run *run = self;
    assert_true(decision->action >= WEIR_TUNER_KEPT && decision->action <= WEIR_TUNER_RESTARTED);
    assert_true(*decision->text);
    if (decision->stage && decision->slots)
        atomic_store(&run->slots, decision->slots);
    if (atomic_load(&run->slots) > atomic_load(&run->most_slots))
        atomic_store(&run->most_slots, atomic_load(&run->slots));
    atomic_fetch_add(&run->num_decisions, 1);
    if (decision->action == WEIR_TUNER_RESTED)
        counter_add(&run->rests, 1);
    if (decision->action == WEIR_TUNER_REDUCED)
        counter_add(&run->reductions, 1);
}

static void start_run(tuned_run *run, live_work work, uint32_t slots, weir_tuner_options options)
{
    counter_init(&run->rests);
    counter_init(&run->reductions);
    live_pipeline_start(&run->live, work, slots, slots + 2);
    atomic_store(&run->slots, slots);
    options.slice_ns = WEIR_SECOND / 10;
    options.setting_ns = 2 * WEIR_SECOND;
    options.decided = on_decision;
    options.decided_self = run;
    weir_error error = { 0 };
    if (weir_tuner_start(run->live.pipeline, &options, &run->tuner, &error) != WEIR_OK)
        fail_msg("%s", error.message);
}

static void end_run(tuned_run *run)
{
    weir_tuner_free(run->tuner);
    live_pipeline_stop(&run->live);
}

/* Runs until the tuner rests. Returns the slots in the end; *most (may be NULL) is the highest number. */
static uint32_t tune(live_work work, uint32_t slots, weir_tuner_options options, uint32_t *most)
{
    tuned_run run = { .tuner = NULL };
    start_run(&run, work, slots, options);
    counter_await(&run.rests, 1);
    end_run(&run);
    if (most)
        *most = atomic_load(&run.most_slots);
    return atomic_load(&run.slots);
}

static bool slots_were_right(int number, uint32_t slots, bool is_right)
{
    char said[32];
    snprintf(said, sizeof said, "%u slots", (unsigned)slots);
    return test_try_was_right(number, is_right, said);
}

/* What the tuner measures on a busy machine may be something else: each of the next two is tried again then, TEST_TRIES times
   in all. */
TEST_CASE(slots_that_bring_more_are_kept_up_to_the_limit)
{
    uint32_t most;
    int number = 0;
    do {
        tune(wait_alone, 1, (weir_tuner_options){ .max_slots = 4, .max_threads = 8 }, &most);
        assert_true(most <= 4);
    } while (!slots_were_right(++number, most, most > 1));
}

/* Three stages, each as slow as the others: more slots of one, or of two, bring nothing. */
TEST_CASE(equal_stages_are_raised_together)
{
    int number = 0;
    uint32_t most;
    do {
        tuned_run run = { .live = { .num_stages = 3 } };
        start_run(&run, wait_alone, 1, (weir_tuner_options){ .max_slots = 2, .max_threads = 12 });
        counter_await(&run.rests, 1);
        most = UINT32_MAX;
        weir_snapshot *snapshot;
        assert_int_equal(weir_pipeline_snapshot(run.live.pipeline, &snapshot), WEIR_OK);
        for (int i = 1; i <= 3; i++)
            most = snapshot->stages[i].concurrency < most ? snapshot->stages[i].concurrency : most;
        weir_snapshot_free(snapshot);
        end_run(&run);
    } while (!slots_were_right(++number, most, most == 2));
}

/* More of them bring nothing, so half of them lose nothing. */
TEST_CASE(slots_of_what_serves_one_at_a_time_are_taken_back)
{
    uint32_t slots;
    int number = 0;
    do
        slots = tune(wait_in_turn, 8, (weir_tuner_options){ .max_slots = 64 }, NULL);
    while (!slots_were_right(++number, slots, slots < 8));
}

TEST_CASE(a_budget_that_is_exceeded_is_kept_at_once)
{
    tuned_run run = { .tuner = NULL };
    start_run(&run, wait_alone, 8, (weir_tuner_options){ .memory_bytes = 1 });
    counter_await(&run.reductions, 1);
    end_run(&run);
}

TEST_CASE(a_run_may_end_at_any_time)
{
    tuned_run run = { .tuner = NULL };
    start_run(&run, wait_alone, 2, (weir_tuner_options){ .cpus = 0 });
    weir_pipeline_stop(run.live.pipeline);
    end_run(&run);
}

TEST_CASE(options_are_checked)
{
    weir_tuner *tuner;
    weir_error error = { 0 };
    weir_pipeline *any = (weir_pipeline *)&tuner; /* is not used */
    weir_tuner_options options = { .cpus = -1 };
    assert_int_equal(weir_tuner_start(any, &options, &tuner, &error), WEIR_EINVAL);
    assert_null(tuner);
    options = (weir_tuner_options){ .max_slots = WEIR_MAX_SLOTS + 1 };
    assert_int_equal(weir_tuner_start(any, &options, &tuner, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "slots"));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
