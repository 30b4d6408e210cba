/* Inspection: snapshots, and the position of the consumer. */
#include "tests/support.h"

TEST_CASE(a_snapshot_shows_slots_queues_and_tasks_with_label_and_age)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    weir_builder *builder =
        builder_with(&(test_numbers){ .ledger = &ledger, .count = 100, .labelled = true, .size_bytes = 5 });
    weir_builder_pipe(builder, &gated_op, &gate, 0, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_bytes = 1000 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 4 });
    gate_await_waiting(&gate, 3);
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    assert_false(snapshot->marks_steps);
    weir_snapshot_free(snapshot);
    assert_int_equal(weir_pipeline_mark_step(pipeline, 1), WEIR_OK);
    for (;;) { /* until the source has filled its queue */
        assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
        if (snapshot->queues[0].waiting_to_put == 1)
            break;
        weir_snapshot_free(snapshot);
    }
    assert_string_equal(snapshot->state, "running");
    assert_int_equal(snapshot->num_stages, 3);
    assert_int_equal(snapshot->num_queues, 3);
    assert_int_equal(snapshot->stages[0].waiting_out, 1);
    assert_int_equal(snapshot->stages[1].running, 3);
    assert_int_equal(snapshot->stages[2].waiting_in, 1);
    assert_int_equal(snapshot->queues[0].depth, 2);
    assert_int_equal(snapshot->queues[0].bytes, 10);
    assert_int_equal(snapshot->queues[0].capacity_bytes, 0);
    assert_int_equal(snapshot->queues[2].capacity_bytes, 1000);
    assert_true(snapshot->marks_steps);
    assert_int_equal(snapshot->num_tasks, 3);

    gate_open(&gate); /* the labels must outlive the tasks */
    assert_int_equal(drain_all(pipeline), 100);
    bool seen[3] = { false };
    for (size_t i = 0; i < 3; i++) {
        assert_true(snapshot->tasks[i].age_ns > 0);
        assert_false(snapshot->tasks[i].pending);
        assert_memory_equal(snapshot->tasks[i].label, "item-", 5);
        seen[snapshot->tasks[i].label[5] - '0'] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    weir_snapshot_free(snapshot);

    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    assert_true(snapshot->stages[1].ended);
    assert_int_equal(snapshot->stages[1].num_tasks, 100);
    assert_int_equal(snapshot->num_tasks, 0);
    weir_snapshot_free(snapshot);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(snapshots_can_be_taken_by_any_thread_while_items_flow)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 3000, .labelled = true });
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        weir_snapshot *snapshot;
        weir_item_release(&item);
        assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
        weir_snapshot_free(snapshot);
    }
    assert_int_equal(status, WEIR_EOF);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(laps_say_in_which_phase_and_at_which_steps_they_were)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 4, .gate = &gate });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .observers = &recorder.observer, .num_observers = 1, .stats_interval_ns = WEIR_FOREVER });
    gate_let(&gate, 1);
    next_value(pipeline);
    assert_int_equal(weir_pipeline_mark_step(pipeline, 10), WEIR_OK);
    gate_let(&gate, 1);
    next_value(pipeline);
    assert_int_equal(weir_pipeline_mark_step(pipeline, 11), WEIR_OK);
    assert_int_equal(weir_pipeline_mark_phase(pipeline, "eval"), WEIR_OK);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 2);
    weir_pipeline_free(pipeline);

    static const struct {
        const char *phase;
        int64_t first_step, last_step;
        uint64_t num_tasks;
    } expected[] = { { "startup", 0, -1, 1 }, { "loop", 10, 11, 1 }, { "eval", 11, 11, 2 } };
    enum { NODES = 3, STAGE = 1 };
    assert_int_equal(recorder.num_stage_records, NODES * LENGTH(expected));
    for (size_t i = 0; i < LENGTH(expected); i++) {
        const stage_record *record = &recorder.stages[NODES * i + STAGE];
        assert_string_equal(record->phase, expected[i].phase);
        assert_int_equal(record->lap.lap->position.first_step, expected[i].first_step);
        assert_int_equal(record->lap.lap->position.last_step, expected[i].last_step);
        assert_int_equal(record->lap.metrics.task.num_tasks, expected[i].num_tasks);
    }
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(the_end_is_a_phase_of_its_own_once_the_sources_have_ended)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 3, .gate = &gate });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .observers = &recorder.observer, .num_observers = 1, .stats_interval_ns = WEIR_FOREVER });
    assert_int_equal(weir_pipeline_mark_step(pipeline, 0), WEIR_OK);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    assert_string_equal(recorder.queues[recorder.num_queue_records - 1].phase, "finish");
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(a_phase_needs_a_name_that_fits)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    char name[65];
    memset(name, 'x', sizeof name);
    name[64] = '\0';
    assert_int_equal(weir_pipeline_mark_phase(pipeline, NULL), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_mark_phase(pipeline, ""), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_mark_phase(pipeline, name), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_mark_phase(pipeline, name + 1), WEIR_OK);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
