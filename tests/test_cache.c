/* The cache stage and the measurement of the headspace: which items come when, and who frees them. */
#include "tests/support.h"

#include <math.h>

#include <weir/cache.h>
#include <weir/headspace.h>

#include "stages/cache/step_times.h"

/* recorder: NULL = none. */
static weir_pipeline *build_recorded(weir_builder *builder, test_recorder *recorder)
{
    weir_pipeline_options options = { 0 };
    if (recorder) {
        recorder_init(recorder);
        options.observers = &recorder->observer;
        options.num_observers = 1;
    }
    weir_builder_sink(builder, NULL);
    return build(builder, &options);
}

static weir_pipeline *build_cache(const test_numbers *numbers, const weir_cache_config *config)
{
    weir_builder *builder = builder_with(numbers);
    weir_pipe_cache(builder, config, NULL);
    return build_recorded(builder, NULL);
}

static weir_item take(weir_pipeline *pipeline)
{
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    return item;
}

static void assert_next(weir_pipeline *pipeline, uint64_t value)
{
    char label[32];
    weir_item item = take(pipeline);
    assert_int_equal(item_value(&item), value);
    snprintf(label, sizeof label, "item-%llu", (unsigned long long)value);
    assert_string_equal(item.label, label);
    weir_item_release(&item);
}

static void end(weir_pipeline *pipeline, test_ledger *ledger)
{
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    weir_pipeline_free(pipeline);
    ledger_close(ledger);
}

TEST_CASE(what_was_kept_is_replayed_until_the_stop)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1000, .labelled = true };
    weir_pipeline *pipeline = build_cache(&numbers, &(weir_cache_config){ .num_items = 20, .replay_after = 30 });
    for (uint64_t i = 0; i < 30; i++)
        assert_next(pipeline, i);
    for (uint64_t i = 0; i < 3000; i++) {
        weir_item item = take(pipeline);
        assert_true(item_value(&item) < 20);
        weir_item_release(&item);
    }
    weir_account source = account_of(pipeline, "src");
    assert_true(source.created + source.taken < 50); /* no more than queues and slots hold */
    weir_pipeline_stop(pipeline);
    end(pipeline, &ledger);
}

TEST_CASE(after_the_replays_the_input_goes_on)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 40, .labelled = true };
    weir_pipeline *pipeline = build_cache(&numbers, &(weir_cache_config){ .num_items = 10, .num_replays = 25 });
    for (uint64_t i = 0; i < 10; i++)
        assert_next(pipeline, i);
    for (uint64_t i = 0; i < 25; i++) {
        weir_item item = take(pipeline);
        assert_true(item_value(&item) < 10);
        weir_item_release(&item);
    }
    for (uint64_t i = 10; i < 40; i++)
        assert_next(pipeline, i);
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    end(pipeline, &ledger);
}

TEST_CASE(an_input_that_ends_early_is_replayed_at_its_end)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 3, .labelled = true };
    weir_pipeline *pipeline = build_cache(&numbers, &(weir_cache_config){ .num_replays = 7 });
    assert_int_equal(drain_all(pipeline), 3 + 7);
    end(pipeline, &ledger);
}

TEST_CASE(bytes_bound_what_is_kept)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 100, .size_bytes = 1000, .labelled = true };
    weir_pipeline *pipeline =
        build_cache(&numbers, &(weir_cache_config){ .num_items = 50, .max_bytes = 2500, .num_replays = 5 });
    for (uint64_t i = 0; i < 3; i++) /* the third is over the limit, and the last */
        assert_next(pipeline, i);
    for (uint64_t i = 0; i < 5; i++) {
        weir_item item = take(pipeline);
        assert_true(item_value(&item) < 3);
        weir_item_release(&item);
    }
    assert_next(pipeline, 3);
    weir_pipeline_stop(pipeline);
    end(pipeline, &ledger);
}

TEST_CASE(what_is_kept_is_in_the_statistics)
{
    test_recorder recorder;
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 100, .size_bytes = 1000 };
    weir_builder *builder = builder_with(&numbers);
    weir_pipe_cache(builder, &(weir_cache_config){ .num_items = 50, .max_bytes = 2500, .num_replays = 5 }, NULL);
    weir_pipeline *pipeline = build_recorded(builder, &recorder);
    assert_int_equal(drain_all(pipeline), 105);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_stage_total(&recorder, "0:1:cache").metrics.task.max_held_bytes, 3000);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(replayed_items_outlive_their_pipeline)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_pipeline *pipeline = build_cache(&numbers, NULL);
    weir_item items[3];
    for (int i = 0; i < 3; i++)
        items[i] = take(pipeline);
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(item_value(&items[i]), 0);
        weir_item_release(&items[i]);
    }
    ledger_close(&ledger);
}

/* ---- headspace ---------------------------------------------------------------------------------------------- */

enum { WARMUP = 3, STEPS = 5 };

static weir_headspace *headspace_new(void)
{
    weir_headspace *headspace;
    weir_headspace_options options = { .warmup_steps = WARMUP, .num_steps = STEPS, .num_items = 2 };
    assert_int_equal(weir_headspace_new(&options, &headspace, NULL), WEIR_OK);
    return headspace;
}

static weir_headspace_result report_of(const weir_headspace *headspace)
{
    weir_headspace_result result;
    assert_int_equal(weir_headspace_report(headspace, &result), WEIR_OK);
    return result;
}

static uint64_t step(weir_headspace *headspace, weir_pipeline *pipeline)
{
    weir_item item;
    assert_int_equal(weir_headspace_next(headspace, pipeline, &item, WEIR_FOREVER), WEIR_OK);
    uint64_t value = item_value(&item);
    weir_item_release(&item);
    return value;
}

static void assert_phase(weir_pipeline *pipeline, const char *phase)
{
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    assert_string_equal(snapshot->phase, phase);
    weir_snapshot_free(snapshot);
}

TEST_CASE(a_loop_gets_the_loaders_results_then_kept_ones_then_the_loaders)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_headspace *headspace = headspace_new();
    uint64_t value = 0, num_replayed = 0;
    for (; value < 1 + WARMUP + STEPS; value++) /* a step ends with the next result */
        assert_int_equal(step(headspace, pipeline), value);
    weir_pipeline_mark_phase(pipeline, "train");
    assert_phase(pipeline, "train");
    while (!report_of(headspace).is_complete) {
        assert_true(step(headspace, pipeline) < 2);
        num_replayed++;
        if (report_of(headspace).replayed.num_steps)
            assert_phase(pipeline, WEIR_PHASE_REPLAY);
    }
    assert_true(num_replayed >= WARMUP + STEPS);
    assert_int_equal(report_of(headspace).loader.num_steps, STEPS);
    assert_int_equal(report_of(headspace).replayed.num_steps, STEPS);
    for (; value < 1000; value++) {
        assert_int_equal(step(headspace, pipeline), value);
        assert_phase(pipeline, "train");
    }
    weir_item item;
    assert_int_equal(weir_headspace_next(headspace, pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    weir_headspace_free(headspace);
    end(pipeline, &ledger);
}

TEST_CASE(what_a_loop_keeps_is_in_the_statistics_of_the_sink)
{
    test_recorder recorder;
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1000, .size_bytes = 500 };
    weir_pipeline *pipeline = build_recorded(builder_with(&numbers), &recorder);
    weir_headspace *headspace = headspace_new();
    for (uint64_t i = 0; i < 1 + WARMUP; i++)
        step(headspace, pipeline);
    weir_pipeline_stop(pipeline);
    weir_headspace_free(headspace);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_stage_total(&recorder, "0:1:sink").metrics.task.max_held_bytes, 2 * 500);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(a_stop_ends_the_replay)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_headspace *headspace = headspace_new();
    weir_item item;
    for (int i = 0; i < 1 + WARMUP + STEPS + 1; i++)
        step(headspace, pipeline);
    weir_pipeline_stop(pipeline);
    assert_int_equal(weir_headspace_next(headspace, pipeline, &item, WEIR_FOREVER), WEIR_ESTOPPED);
    assert_false(report_of(headspace).is_complete);
    weir_headspace_free(headspace);
    end(pipeline, &ledger);
}

TEST_CASE(the_end_of_an_epoch_does_not_end_a_step)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .epochs = WEIR_ENDLESS });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_headspace *headspace = headspace_new();
    weir_item item;
    for (int i = 0; i < 1 + WARMUP + STEPS; i++) {
        step(headspace, pipeline);
        if (i < WARMUP + STEPS)
            assert_int_equal(weir_headspace_next(headspace, pipeline, &item, WEIR_FOREVER), WEIR_EPOCH);
    }
    assert_int_equal(report_of(headspace).loader.num_steps, STEPS);
    weir_headspace_free(headspace);
    weir_pipeline_stop(pipeline);
    end(pipeline, &ledger);
}

/* Whether a pipeline that makes num_results results is measured completely. */
static bool is_measured(uint64_t num_results, uint64_t *num_needed)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = num_results };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_headspace *headspace = headspace_new();
    weir_item item;
    while (weir_headspace_next(headspace, pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    weir_headspace_result result = report_of(headspace);
    *num_needed = result.num_needed;
    weir_headspace_free(headspace);
    end(pipeline, &ledger);
    return result.is_complete;
}

TEST_CASE(the_report_says_how_many_results_it_needs)
{
    uint64_t num_needed;
    assert_false(is_measured(WARMUP + STEPS, &num_needed)); /* one step less */
    assert_true(num_needed <= WARMUP + STEPS + 2);
    assert_true(is_measured(num_needed, &num_needed));
}

TEST_CASE(the_cost_is_the_share_of_a_step_that_replaying_saves)
{
    weir_step_times loader = { 0 }, replayed = { 0 };
    for (int i = 0; i < 50; i++) {
        weir__step_times_add(&loader, i % 2 ? 0.099 : 0.101);
        weir__step_times_add(&replayed, 0.087);
    }
    weir_headspace_result result = weir__step_times_compare(&loader, &replayed);
    assert_true(fabs(result.cost - 0.13) < 1e-9);
    assert_true(fabs(result.loader.standard_error_s - 0.001 * sqrt(50.0 / 49 / 50)) < 1e-9);
    assert_true(result.cost_low < 0.13 && result.cost_high > 0.13 && result.cost_high - result.cost_low < 0.01);
    weir__step_times_describe(&result);
    assert_non_null(strstr(result.text, "not known yet"));
    result.is_complete = true;
    weir__step_times_describe(&result);
    assert_non_null(strstr(result.text, "loading costs you 13.0 % of each step"));
    result = weir__step_times_compare(&loader, &loader);
    result.is_complete = true;
    weir__step_times_describe(&result);
    assert_non_null(strstr(result.text, "nothing that can be measured"));
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
