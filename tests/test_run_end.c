/* The end of a run: what the consumer reports between the last item and weir_pipeline_free() is recorded. */
#include "common/unix_clock.h"
#include "tests/stats_fixture.h"
#include "tests/support.h"

#include <weir/span.h>
#include <weir/trace.h>

typedef enum run_ending { ENDS_WITH_THE_ITEMS, ENDS_WITH_A_STOP, ENDS_WITH_A_FAILURE, NUM_ENDINGS } run_ending;

typedef struct marks_traced {
    test_counter steps, phases, spans, ends;
} marks_traced;

static void count_marks(void *self, const weir_trace_batch *batch)
{
    marks_traced *traced = self;
    for (size_t i = 0; i < batch->num_records; i++) {
        const weir_trace_record *record = &batch->records[i];
        const char *text = (const char *)(intptr_t)record->value;
        counter_add(&traced->steps, record->kind == WEIR_TRACE_STEP);
        counter_add(&traced->phases, record->kind == WEIR_TRACE_PHASE && strcmp(text, "save") == 0);
        counter_add(&traced->spans, record->kind == WEIR_TRACE_SPAN_END);
        counter_add(&traced->ends, record->kind == WEIR_TRACE_OFF);
        REQUIRE(counter_value(&traced->ends) == 0 || i + 1 == batch->num_records);
    }
}

/* Takes results to the end, then reports as a training loop does. */
static void consume_and_report(weir_pipeline *pipeline, run_ending ending)
{
    weir_span_name *save = weir_span_name_get("test", "save_checkpoint");
    weir_counter *saved = weir_counter_get("test", "saved", NULL, 0);
    weir_item item;
    for (int64_t step = 1; step <= 2; step++) {
        assert_int_equal(weir_pipeline_mark_step(pipeline, step), WEIR_OK);
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        weir_item_release(&item);
    }
    if (ending == ENDS_WITH_A_STOP)
        weir_pipeline_stop(pipeline);
    assert_true(weir_pipeline_next(pipeline, &item, WEIR_FOREVER) != WEIR_OK);
    await_work_end(pipeline);
    assert_int_equal(weir_pipeline_event(pipeline, "best", "user", "0.93"), WEIR_OK);
    assert_int_equal(weir_pipeline_mark_phase(pipeline, "save"), WEIR_OK);
    assert_int_equal(weir_pipeline_mark_step(pipeline, 3), WEIR_OK);
    weir_span_begin(save);
    weir_counter_set(saved, 0, 7);
    weir_span_end();
}

TEST_CASE(reports_after_the_last_item_are_recorded)
{
    for (run_ending ending = 0; ending < NUM_ENDINGS; ending++) {
        const char *path = in_folder(ending == 0 ? "eof.db" : ending == 1 ? "stop.db" : "failure.db");
        test_ledger ledger = LEDGER;
        marks_traced traced = { COUNTER, COUNTER, COUNTER, COUNTER };
        weir_sqlite_writer *writer = open_writer(path, NULL);
        weir_observer observers[] = { weir_sqlite_observer(writer), { .self = &traced, .trace = count_marks } };
        weir_builder *builder = builder_with(&(test_numbers){
            .ledger = &ledger, .count = 2, .end_status = ending == ENDS_WITH_A_FAILURE ? WEIR_EIO : 0 });
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline =
            build(builder, &(weir_pipeline_options){
                               .observers = observers, .num_observers = 2, .stats_interval_ns = WEIR_FOREVER });
        consume_and_report(pipeline, ending);
        weir_pipeline_free(pipeline);
        close_writer(writer);
        ledger_close(&ledger);

        assert_int_equal(query_int(path, "SELECT count(*) FROM event_stats WHERE event_name = 'best'"), 1);
        assert_int_equal(query_int(path, "SELECT sum(num_spans) FROM span_stats WHERE name = 'weir/step'"), 3);
        assert_int_equal(query_int(path, "SELECT sum(num_spans) FROM span_stats WHERE name = 'test/save_checkpoint'"),
                         1);
        assert_int_equal(query_int(path, "SELECT sum(num_updates) FROM counter_stats WHERE name = 'test/saved'"), 1);
        assert_int_equal(query_int(path, "SELECT sum(num_items) FROM queue_stats WHERE name LIKE '%sink_queue'"), 2);
        assert_int_equal(query_int(path, "SELECT last_step FROM queue_stats ORDER BY id DESC LIMIT 1"), 3);
        assert_int_equal(query_int(path, "SELECT max(abs(r.ended - q.timestamp)) < 2e-6 FROM run r, queue_stats q "
                                         "WHERE q.id = (SELECT max(id) FROM queue_stats)"),
                         1);
        assert_int_equal(counter_value(&traced.steps), 3);
        assert_int_equal(counter_value(&traced.phases), 1);
        assert_int_equal(counter_value(&traced.spans), 1);
        assert_int_equal(counter_value(&traced.ends), 1);
    }
}

/* The figures of a pipeline that is kept are those of its work. */
TEST_CASE(a_pipeline_that_reports_nothing_more_ends_with_its_work)
{
    const char *path = in_folder("kept.db");
    test_ledger ledger = LEDGER;
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 2 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(
        builder,
        &(weir_pipeline_options){ .observers = &observer, .num_observers = 1, .stats_interval_ns = WEIR_FOREVER });
    drain_all(pipeline);
    await_work_end(pipeline);
    /* Wall times of one run may be off by a millisecond against each other: see weir__laps_unix_at_ns(). */
    int64_t ended_unix_ns = unix_clock_ns(), kept_ns = weir_clock_ns() + 20 * WEIR_MILLISECOND;
    while (weir_clock_ns() < kept_ns)
        sched_yield();
    weir_pipeline_free(pipeline);
    close_writer(writer);
    ledger_close(&ledger);
    assert_int_equal(query_int(path, "SELECT count(*) FROM queue_stats WHERE name LIKE '%sink_queue'"), 1);
    assert_true(query_real(path, "SELECT ended FROM run") < (double)(ended_unix_ns + 10 * WEIR_MILLISECOND) / 1e9);
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
