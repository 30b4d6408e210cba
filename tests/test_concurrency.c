/* Changing a stage's concurrency while it runs. */
#include "tests/support.h"

#include <sched.h>

static weir_pipeline *gated(const test_numbers *numbers, test_gate *gate, uint32_t concurrency,
                            const weir_pipeline_options *options)
{
    weir_builder *builder = builder_with(numbers);
    weir_builder_pipe(builder, &gated_op, gate, 0,
                      &(weir_stage_options){ .name = "work", .concurrency = concurrency });
    weir_builder_sink(builder, NULL);
    return build(builder, options);
}

static weir_stage_snapshot stage_now(weir_pipeline *pipeline, size_t index)
{
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    weir_stage_snapshot stage = snapshot->stages[index];
    weir_snapshot_free(snapshot);
    return stage;
}

TEST_CASE(more_slots_run_more_tasks_at_once)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 50 };
    weir_pipeline *pipeline = gated(&numbers, &gate, 2, &(weir_pipeline_options){ .threads = 8 });
    gate_await_waiting(&gate, 2);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "work", 6), WEIR_OK);
    gate_await_waiting(&gate, 6);
    assert_int_equal(stage_now(pipeline, 1).slots, 6);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 50);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(slots_that_are_too_many_end_with_their_task_and_nothing_is_lost)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 50 };
    weir_pipeline *pipeline = gated(&numbers, &gate, 6, &(weir_pipeline_options){ .threads = 8 });
    gate_await_waiting(&gate, 6);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "0:1:work[6]", 1), WEIR_OK);
    assert_int_equal(stage_now(pipeline, 1).running, 6);
    assert_int_equal(stage_now(pipeline, 1).slots, 6);
    assert_int_equal(stage_now(pipeline, 1).concurrency, 1);
    gate_let(&gate, 6);
    for (int i = 0; i < 6; i++)
        next_value(pipeline);
    gate_await_waiting(&gate, 1);
    weir_stage_snapshot stage = stage_now(pipeline, 1);
    assert_int_equal(stage.slots, 1);
    assert_int_equal(stage.running, 1);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 44);
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(waiting_slots_end_at_once_and_come_back)
{
    test_ledger ledger = LEDGER;
    test_gate source_gate = GATE, gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 20, .gate = &source_gate };
    weir_pipeline *pipeline = gated(&numbers, &gate, 4, &(weir_pipeline_options){ .threads = 6 });
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "work", 1), WEIR_OK);
    assert_int_equal(stage_now(pipeline, 1).slots, 1);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "work", 3), WEIR_OK);
    assert_int_equal(stage_now(pipeline, 1).waiting_in, 3);
    gate_open(&source_gate);
    gate_await_waiting(&gate, 3);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 20);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(the_figures_fit_across_a_change_and_an_event_tells_it)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    test_numbers numbers = { .ledger = &ledger, .count = 200 };
    weir_pipeline *pipeline = gated(&numbers, &gate, 2,
                                    &(weir_pipeline_options){ .threads = 4,
                                                              .observers = &recorder.observer,
                                                              .num_observers = 1,
                                                              .stats_interval_ns = WEIR_MILLISECOND });
    for (uint32_t i = 0; i < 50; i++) {
        assert_int_equal(weir_pipeline_set_concurrency(pipeline, "work", 1 + i * 7 % 5), WEIR_OK);
        gate_let(&gate, 1);
        next_value(pipeline);
    }
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 150);
    weir_pipeline_free(pipeline);

    assert_true(recorder_events_named(&recorder, "concurrency") > 30);
    assert_string_equal(recorder.events[0].detail, "2 -> 1");
    assert_string_equal(recorder.events[0].category, "0:1:work[2]");
    assert_int_equal(recorder_stage_total(&recorder, "0:1:work[2]").metrics.task.num_tasks, 200);
    for (uint64_t i = 0; i < recorder.num_stage_records; i++) {
        const weir_subject_lap *lap = &recorder.stages[i].lap;
        int64_t slots_ns = lap->metrics.task.busy_ns + lap->metrics.task.wait_in_ns +
                           lap->metrics.task.wait_thread_ns + lap->metrics.task.wait_out_ns +
                           lap->metrics.task.ended_ns;
        assert_true(slots_ns <= 5 * lap->lap->elapsed_ns);
    }
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(what_cannot_be_changed_is_refused)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 1 });
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 2 }, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "work" });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "work", 0), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "work", 65537), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "nobody", 2), WEIR_ENOTFOUND);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "src", 2), WEIR_EUNSUPPORTED);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "sink", 2), WEIR_EUNSUPPORTED);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "aggregate", 2), WEIR_EUNSUPPORTED);
    assert_int_equal(drain_all(pipeline), 1);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "work", 5), WEIR_OK); /* too late, and harmless */
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

typedef struct changer {
    weir_pipeline *pipeline;
    uint32_t seed;
} changer;

static void *change_often(void *argument)
{
    changer *changer_ = argument;
    for (uint32_t i = 0; i < 200; i++)
        REQUIRE(weir_pipeline_set_concurrency(changer_->pipeline, "work",
                                              1 + (changer_->seed + i) * 2654435761u % 16) == WEIR_OK);
    return NULL;
}

/* Mostly back to one slot, with which there are bursts. */
static void *change_in_bursts(void *argument)
{
    changer *changer_ = argument;
    for (uint32_t i = 0; i < 2000; i++)
        REQUIRE(weir_pipeline_set_concurrency(changer_->pipeline, "work", i % 3 ? 1 : 2 + i % 3) == WEIR_OK);
    return NULL;
}

TEST_CASE(several_threads_may_change_it_while_items_flow)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 5000 });
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .name = "work", .concurrency = 3, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 3 });
    changer changers[3];
    pthread_t threads[3];
    for (uint32_t i = 0; i < 3; i++) {
        changers[i] = (changer){ .pipeline = pipeline, .seed = i * 77 };
        threads[i] = thread_start(change_often, &changers[i]);
    }
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(next_value(pipeline), i);
    assert_int_equal(drain_all(pipeline), 0);
    for (uint32_t i = 0; i < 3; i++)
        thread_join(threads[i]);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Steps that do nothing run in bursts while there is one slot; each change ends the bursts of the moment. Held constant:
   one stage, queues of 32, changes as fast as the lock allows. */
TEST_CASE(slots_that_change_in_bursts_lose_and_double_no_item)
{
    enum { NUM_ITEMS = 20000 };
    static bool seen[NUM_ITEMS];
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = NUM_ITEMS };
    weir_stage_options options = { .queue_items = 32 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &options);
    options.name = "work";
    weir_builder_pipe(builder, &pass_op, NULL, 0, &options);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 32 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    changer changer_ = { .pipeline = pipeline };
    pthread_t thread = thread_start(change_in_bursts, &changer_);
    for (uint64_t i = 0; i < NUM_ITEMS; i++) {
        uint64_t value = next_value(pipeline);
        assert_in_range(value, 0, NUM_ITEMS - 1);
        assert_false(seen[value]);
        seen[value] = true;
    }
    assert_int_equal(drain_all(pipeline), 0);
    thread_join(thread);
    assert_int_equal(account_of(pipeline, "work").taken, NUM_ITEMS);
    assert_int_equal(account_of(pipeline, "work").passed_on, NUM_ITEMS);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- threads ------------------------------------------------------------------------------------------------- */

TEST_CASE(more_threads_run_more_slots_at_once)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 50 };
    weir_pipeline *pipeline = gated(&numbers, &gate, 8, &(weir_pipeline_options){ .threads = 1 });
    gate_await_waiting(&gate, 1);
    assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, 5), WEIR_OK);
    gate_await_waiting(&gate, 5);
    assert_int_equal(stage_now(pipeline, 1).running, 5);
    assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, 8), WEIR_OK);
    gate_await_waiting(&gate, 8);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 50);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(surplus_threads_end_their_step_then_rest_and_come_back)
{
    test_ledger ledger = LEDGER;
    test_gate source_gate = GATE, gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 60, .gate = &source_gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &gated_op, &gate, 0,
                      &(weir_stage_options){ .name = "work", .concurrency = 6, .threads = 6 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 1 });
    gate_let(&source_gate, 6);
    gate_await_waiting(&gate, 6);
    assert_int_equal(weir_pipeline_set_threads(pipeline, "work", 2), WEIR_OK);
    assert_int_equal(stage_now(pipeline, 1).running, 6); /* nothing is interrupted */
    gate_let(&gate, 6);
    for (int i = 0; i < 6; i++)
        next_value(pipeline);
    gate_open(&source_gate);
    gate_await_waiting(&gate, 2);
    while (stage_now(pipeline, 1).waiting_thread < 4) /* the other slots have inputs, but no thread */
        sched_yield();
    assert_int_equal(stage_now(pipeline, 1).running, 2);
    assert_int_equal(weir_pipeline_set_threads(pipeline, "work", 4), WEIR_OK);
    gate_await_waiting(&gate, 4);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 60 - 6);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(thread_time_fits_across_a_change_and_an_event_tells_it)
{
    test_ledger ledger = LEDGER;
    test_recorder recorder;
    recorder_init(&recorder);
    test_numbers numbers = { .ledger = &ledger, .count = 200 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "work", .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2,
                                                                       .observers = &recorder.observer,
                                                                       .num_observers = 1,
                                                                       .stats_interval_ns = WEIR_MILLISECOND });
    for (uint32_t i = 0; i < 40; i++) {
        assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, 1 + i * 7 % 5), WEIR_OK);
        next_value(pipeline);
    }
    assert_int_equal(drain_all(pipeline), 160);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_events_named(&recorder, "threads"), 40);
    assert_string_equal(recorder.events[0].detail, "2 -> 1");
    assert_string_equal(recorder.events[0].category, "0:pool");
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(threads_that_cannot_be_changed_are_refused)
{
    test_ledger ledger = LEDGER;
    weir_pipeline *pipeline;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 1 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "work" });
    weir_builder_sink(builder, NULL);
    pipeline = build(builder, NULL);
    assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, 0), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, 65537), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_set_threads(pipeline, "nobody", 2), WEIR_ENOTFOUND);
    assert_int_equal(weir_pipeline_set_threads(pipeline, "work", 2), WEIR_EUNSUPPORTED);
    assert_int_equal(drain_all(pipeline), 1);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static void *change_threads_often(void *argument)
{
    changer *changer_ = argument;
    for (uint32_t i = 0; i < 100; i++)
        REQUIRE(weir_pipeline_set_threads(changer_->pipeline, NULL, 1 + (changer_->seed + i) * 2654435761u % 8) ==
                WEIR_OK);
    return NULL;
}

TEST_CASE(threads_may_be_changed_while_items_flow)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 5000 });
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .name = "work", .concurrency = 3, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 3, .stats_interval_ns = WEIR_MILLISECOND });
    changer changers[3];
    pthread_t threads[3];
    for (uint32_t i = 0; i < 3; i++) {
        changers[i] = (changer){ .pipeline = pipeline, .seed = i * 77 };
        threads[i] = thread_start(change_threads_often, &changers[i]);
    }
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(next_value(pipeline), i);
    for (uint32_t i = 0; i < 3; i++)
        thread_join(threads[i]);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
