/* What a program gets at once, on the thread that marks; and pauses, in which nothing is measured. */
#include "tests/support.h"

#include <weir/span.h>
#include <weir/trace.h>

/* ---- marks --------------------------------------------------------------------------------------------------- */

typedef struct reported_marks {
    char text[1024];
    pthread_t thread;
    bool stops; /* at the end of step 1 */
} reported_marks;

static void tell_mark(void *self, const weir_mark *mark)
{
    static const char *const kinds[] = { "epoch", "step", "phase", "mode" };
    reported_marks *reported = self;
    size_t length = strlen(reported->text);
    REQUIRE(pthread_equal(reported->thread, pthread_self()));
    if (mark->kind <= WEIR_MARK_STEP)
        snprintf(reported->text + length, sizeof reported->text - length, "%c%s %d;", mark->begins ? '+' : '-',
                 kinds[mark->kind], (int)mark->number);
    else
        snprintf(reported->text + length, sizeof reported->text - length, "%c%s %s;", mark->begins ? '+' : '-',
                 kinds[mark->kind], mark->name);
    if (reported->stops && mark->kind == WEIR_MARK_STEP && !mark->begins)
        weir_pipeline_stop(mark->pipeline);
}

static weir_pipeline *build_reported(reported_marks *reported, const test_numbers *numbers, uint32_t epochs)
{
    *reported = (reported_marks){ .thread = pthread_self(), .stops = reported->stops };
    weir_observer observer = { .self = reported, .mark = tell_mark };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, numbers, 0, &(weir_stage_options){ .epochs = epochs });
    weir_builder_sink(builder, NULL);
    return build(builder, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 });
}

TEST_CASE(each_event_of_a_training_loop_calls_back_at_once)
{
    test_ledger ledger;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    reported_marks reported = { .stops = false };
    weir_pipeline *pipeline = build_reported(&reported, &numbers, 2);
    weir_item item;
    int64_t step = 0;
    weir_pipeline_mark_mode(pipeline, "train");
    for (int status; (status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) != WEIR_EOF;) {
        if (status == WEIR_EPOCH)
            continue;
        weir_pipeline_mark_step(pipeline, step++);
        weir_pipeline_mark_phase(pipeline, "forward");
        assert_non_null(strstr(reported.text, "+phase forward;")); /* it was called before the mark returned */
        weir_pipeline_mark_phase(pipeline, "backward");
        weir_item_release(&item);
    }
    weir_pipeline_mark_step(pipeline, WEIR_NO_STEP);
    weir_pipeline_free(pipeline);
    assert_string_equal(reported.text,
                        "+mode train;+epoch 0;+step 0;+phase forward;-phase forward;+phase backward;-step 0;+step 1;"
                        "-phase backward;+phase forward;-phase forward;+phase backward;-epoch 0;"
                        "+epoch 1;-step 1;+step 2;-phase backward;+phase forward;-phase forward;+phase backward;"
                        "-step 2;+step 3;-phase backward;+phase forward;-phase forward;+phase backward;-epoch 1;"
                        "-step 3;-phase backward;-mode train;");
    ledger_close(&ledger);
}

TEST_CASE(what_is_open_is_told_to_end_and_a_callback_may_stop_the_run)
{
    test_ledger ledger;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    reported_marks reported = { .stops = true };
    weir_pipeline *pipeline = build_reported(&reported, &numbers, 0);
    weir_item item;
    for (int64_t step = 0; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; step++) {
        weir_item_release(&item);
        weir_pipeline_mark_step(pipeline, step);
    }
    weir_pipeline_free(pipeline);
    assert_string_equal(reported.text, "+epoch 0;+step 0;-step 0;+step 1;-epoch 0;-step 1;");
    ledger_close(&ledger);
}

/* ---- begins of spans ------------------------------------------------------------------------------------------- */

static void count_begins(void *self, const weir_trace_batch *batch)
{
    for (size_t i = 0; i < batch->num_records; i++)
        if (batch->records[i].kind == WEIR_TRACE_SPAN_BEGIN &&
            strcmp((const char *)(uintptr_t)batch->records[i].item, "open,long/span") == 0)
            counter_add(self, 1);
}

TEST_CASE(a_span_is_told_while_it_is_open)
{
    test_ledger ledger;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    test_counter begins = COUNTER;
    weir_observer observer = { .self = &begins, .trace = count_begins };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 });
    weir_span_begin(weir_span_name_get("open,long", "span")); /* of two categories */
    counter_await(&begins, 1);
    weir_span_end();
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- pauses -------------------------------------------------------------------------------------------------- */

typedef struct reported_laps {
    test_recorder *recorder;
    uint64_t num_spans;
    atomic_ullong num_delivered; /* in the trace */
    int64_t value;
} reported_laps;

static void count_spans(void *self, const weir_subject_lap *lap)
{
    reported_laps *reported = self;
    if (lap->subject == WEIR_SUBJECT_SPAN && strcmp(lap->name, "pause/span") == 0)
        reported->num_spans += lap->metrics.span.num_spans;
    if (lap->subject == WEIR_SUBJECT_COUNTER && strcmp(lap->name, "pause/value") == 0)
        reported->value = (int64_t)lap->metrics.counter.last;
}

static void count_delivered(void *self, const weir_trace_batch *batch)
{
    reported_laps *reported = self;
    for (size_t i = 0; i < batch->num_records; i++)
        reported->num_delivered += batch->records[i].kind == WEIR_TRACE_DELIVER;
}

static weir_pipeline *build_numbers(const test_numbers *numbers, const weir_pipeline_options *options)
{
    weir_builder *builder = builder_with(numbers);
    weir_builder_sink(builder, NULL);
    return build(builder, options);
}

static void take_items(weir_pipeline *pipeline, int count, weir_span_name *span, weir_counter *counter)
{
    for (int i = 0; i < count; i++) {
        weir_span_begin(span);
        next_value(pipeline);
        weir_span_end();
        weir_counter_set(counter, 0, count);
    }
}

/* Items that pass one by one: 3 before the pause, 5 in it, 7 after it; then 2 in a pause that lasts to the end. */
TEST_CASE(what_happens_in_a_pause_is_in_no_lap_trace_or_span)
{
    test_ledger ledger;
    ledger_init(&ledger);
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 17, .gate = &gate };
    test_recorder recorder;
    recorder_init(&recorder);
    reported_laps reported = { .value = -1 };
    weir_span_name *span = weir_span_name_get("pause", "span");
    weir_counter *counter = weir_counter_get("pause", "value", NULL, 0);
    weir_observer observers[] = { recorder.observer,
                                  { .self = &reported, .lap = count_spans, .trace = count_delivered } };
    weir_pipeline *pipeline =
        build_numbers(&numbers, &(weir_pipeline_options){ .observers = observers, .num_observers = 2 });
    static const int counts[] = { 3, 5, 7, 2 };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(weir_set_paused(i % 2), WEIR_OK);
        gate_let(&gate, (uint64_t)counts[i]);
        take_items(pipeline, counts[i], span, counter);
    }
    assert_int_equal(account_of(pipeline, NULL).passed_on, 17); /* accounts have everything */
    weir_pipeline_free(pipeline);
    assert_int_equal(weir_set_paused(false), WEIR_OK);

    assert_int_equal(recorder_queue_total(&recorder, "0:1:sink_queue").metrics.queue.num_items, 10);
    assert_int_equal(reported.num_spans, 10);
    assert_int_equal(reported.num_delivered, 10);
    assert_int_equal(reported.value, 7);
    assert_true(recorder.laps.value >= 2);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

static void count_lap(void *self, const weir_lap *lap)
{
    (void)lap;
    ++*(int *)self;
}

TEST_CASE(a_pipeline_that_is_built_in_a_pause_begins_with_it)
{
    for (int in_pause = 0; in_pause < 2; in_pause++) {
        test_ledger ledger;
        ledger_init(&ledger);
        test_numbers numbers = { .ledger = &ledger, .count = 100 };
        int num_laps = 0;
        weir_observer observer = { .self = &num_laps, .lap_end = count_lap };
        assert_int_equal(weir_set_paused(in_pause), WEIR_OK);
        weir_pipeline *pipeline =
            build_numbers(&numbers, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 });
        assert_int_equal(drain_all(pipeline), 100);
        weir_pipeline_free(pipeline);
        assert_int_equal(weir_set_paused(false), WEIR_OK);
        assert_int_equal(num_laps > 0, !in_pause);
        ledger_close(&ledger);
    }
}

/* ---- intervals of single stages -------------------------------------------------------------------------------- */

typedef struct counted_stage {
    const char *name;
    uint64_t num_laps, num_tasks, num_times;
    int64_t elapsed_ns, shortest_ns;
    bool is_ended, is_late;
} counted_stage;

static void count_stage(void *self, const weir_subject_lap *lap)
{
    for (counted_stage *stage = self; stage->name; stage++) {
        if (strcmp(stage->name, lap->name) != 0)
            continue;
        bool is_queue = lap->subject == WEIR_SUBJECT_QUEUE;
        stage->num_laps++;
        stage->elapsed_ns += lap->lap->elapsed_ns;
        stage->num_tasks += is_queue ? lap->metrics.queue.num_items : lap->metrics.task.num_tasks;
        stage->num_times += is_queue ? lap->metrics.queue.get_times->count : lap->metrics.task.run_times->count;
        stage->is_late |= stage->is_ended;
    }
}

static void end_stages(void *self, const weir_run_end *end)
{
    (void)end;
    for (counted_stage *stage = self; stage->name; stage++)
        stage->is_ended = true;
}

/* Steps end laps. All time and tasks of each stage are reported, in more or fewer laps. */
TEST_CASE(a_stage_may_have_an_interval_of_its_own)
{
    enum { COUNT = 40 };
    test_ledger ledger;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    counted_stage stages[] = { { .name = "0:1:each" },        { .name = "0:1:each_queue" }, { .name = "0:2:hours" },
                               { .name = "0:2:hours_queue" }, { .name = "0:3:once" },       { .name = NULL } };
    weir_observer observer = { .self = stages, .lap = count_stage, .run_end = end_stages };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "each" });
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .name = "hours", .stats_interval_ns = 3600 * WEIR_SECOND });
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .name = "once", .stats_interval_ns = WEIR_FOREVER });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .observers = &observer,
                                                                       .num_observers = 1,
                                                                       .stats_interval_ns = 1800 * WEIR_SECOND,
                                                                       .steps_per_lap = 1 });
    weir_pipeline_mark_phase(pipeline, "first");
    for (int64_t step = 0; step < COUNT; step++) {
        weir_pipeline_mark_step(pipeline, step);
        if (step == COUNT / 2)
            weir_pipeline_mark_phase(pipeline, "second"); /* what is held is of one phase */
        next_value(pipeline);
    }
    weir_pipeline_free(pipeline);
    for (counted_stage *stage = stages; stage->name; stage++) {
        assert_int_equal(stage->num_tasks, COUNT);
        assert_int_equal(stage->num_times, COUNT);
        assert_int_equal(stage->elapsed_ns, stages[0].elapsed_ns);
        assert_false(stage->is_late);
    }
    assert_true(stages[0].num_laps > 10 && stages[0].num_laps == stages[1].num_laps);
    for (int i = 2; i < 5; i++)
        assert_in_range(stages[i].num_laps, 2, 3); /* the start, and two phases */
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
