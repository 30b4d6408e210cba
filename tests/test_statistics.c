/*
 * The metrics: their meaning, exact sums over laps (to the item and the nanosecond), and the reports to observers.
 * Laps are a millisecond long here. What a lap shows is checked where the state of things is known throughout it.
 */
#include "common/unix_clock.h"
#include "tests/support.h"

#include <sched.h>
#include <time.h>

static test_ledger ledger;

enum { LAPS = 10 /* that a state is watched for */ };

static const weir_pipeline_options quick = { .threads = 2, .stats_interval_ns = WEIR_MILLISECOND };

static weir_pipeline *build_recorded(weir_builder *builder, weir_pipeline_options options, test_recorder *recorder)
{
    recorder_init(recorder);
    options.observers = &recorder->observer;
    options.num_observers = 1;
    return build(builder, &options);
}

/* ---- laps in which the state is known -------------------------------------------------------------------------- */

/* The laps from `first` to before `end` are completely within a time without changes. */
typedef struct lap_span {
    uint64_t first, end;
} lap_span;

/* Whatever state the pipeline is in now and stays in: waits for LAPS laps of it. What was reported before the event
   had ended by now; one more lap may have ended and not been passed on yet, and the next one has begun. */
static lap_span watch_laps(weir_pipeline *pipeline, test_recorder *recorder)
{
    uint64_t events = recorder_events_named(recorder, "now");
    assert_int_equal(weir_pipeline_event(pipeline, "now", "test", NULL), WEIR_OK);
    while (recorder_events_named(recorder, "now") == events)
        sched_yield();
    uint64_t first = (uint64_t)counter_value(&recorder->laps) + 2;
    counter_await(&recorder->laps, (int64_t)first + LAPS);
    return (lap_span){ first, first + LAPS };
}

/* Copies of the laps of a stage or queue in the span. */
static void stage_laps(test_recorder *recorder, lap_span span, const char *name, weir_subject_lap laps[LAPS])
{
    size_t found = 0;
    pthread_mutex_lock(&recorder->lock);
    for (uint64_t i = 0; i < recorder->num_stage_records; i++) {
        const stage_record *record = &recorder->stages[i];
        if (record->lap_number >= span.first && record->lap_number < span.end && strcmp(record->name, name) == 0)
            laps[found++] = record->lap;
    }
    pthread_mutex_unlock(&recorder->lock);
    assert_int_equal(found, LAPS);
}

static void queue_laps(test_recorder *recorder, lap_span span, const char *name, weir_subject_lap laps[LAPS])
{
    size_t found = 0;
    pthread_mutex_lock(&recorder->lock);
    for (uint64_t i = 0; i < recorder->num_queue_records; i++) {
        const queue_record *record = &recorder->queues[i];
        if (record->lap_number >= span.first && record->lap_number < span.end && strcmp(record->name, name) == 0)
            laps[found++] = record->lap;
    }
    pthread_mutex_unlock(&recorder->lock);
    assert_int_equal(found, LAPS);
}

/* ---- every slot's time is in one state ------------------------------------------------------------------------ */

static int64_t slot_time(const weir_subject_lap *lap)
{
    return lap->metrics.task.busy_ns + lap->metrics.task.wait_in_ns + lap->metrics.task.wait_thread_ns +
           lap->metrics.task.wait_turn_ns + lap->metrics.task.wait_out_ns + lap->metrics.task.ended_ns;
}

static uint32_t slots_of(const test_recorder *recorder, const char *stage)
{
    for (uint32_t i = 0; i < recorder->num_stages; i++)
        if (strcmp(recorder->infos[i].name, stage) == 0)
            return recorder->infos[i].concurrency;
    fail_msg("no stage %s", stage);
    return 0;
}

/* Each lap begins where the one before it ended, or the clock was set by more than a millisecond. */
static void assert_laps_join(const test_recorder *recorder)
{
    int64_t before_unix_ns = recorder->run.start_unix_ns, end_unix_ns = before_unix_ns;
    uint64_t lap_number = UINT64_MAX;
    for (uint64_t i = 0; i < recorder->num_queue_records; i++) {
        const queue_record *record = &recorder->queues[i];
        if (record->lap_number != lap_number)
            before_unix_ns = end_unix_ns;
        lap_number = record->lap_number;
        end_unix_ns = record->lap.lap->end_unix_ns;
        int64_t apart_ns = end_unix_ns - record->lap.lap->elapsed_ns - before_unix_ns;
        assert_true(apart_ns == 0 || llabs(apart_ns) > WEIR_MILLISECOND);
    }
}

/* What holds in every lap of every run, when it is over. */
static void assert_laps_are_sound(test_recorder *recorder)
{
    for (uint64_t i = 0; i < recorder->num_stage_records; i++) {
        const stage_record *record = &recorder->stages[i];
        const weir_subject_lap *lap = &record->lap;
        assert_true(lap->lap->elapsed_ns >= 0);
        assert_int_equal(slot_time(lap), slots_of(recorder, record->name) * lap->lap->elapsed_ns);
        assert_true(lap->metrics.task.cpu_ns >= 0 && lap->metrics.task.cpu_ns <= lap->metrics.task.busy_ns);
        assert_int_equal(record->histogram_count, lap->metrics.task.num_tasks - lap->metrics.task.num_failures);
        assert_true(lap->metrics.task.num_skipped <= lap->metrics.task.num_tasks - lap->metrics.task.num_failures);
        assert_true((int64_t)record->histogram_count * lap->metrics.task.max_ns >= lap->metrics.task.success_ns);
    }
    assert_laps_join(recorder);
    for (uint64_t i = 0; i < recorder->num_queue_records; i++) {
        const queue_record *record = &recorder->queues[i];
        const weir_subject_lap *lap = &record->lap;
        assert_int_equal(record->put_count, lap->metrics.queue.num_put);
        assert_int_equal(record->get_count, lap->metrics.queue.num_items);
        assert_true(lap->metrics.queue.occupied_ns >= 0 && lap->metrics.queue.occupied_ns <= lap->lap->elapsed_ns);
        assert_true(lap->metrics.queue.max_depth <= (int64_t)lap->capacity);
        assert_true(lap->metrics.queue.depth_ns >= (double)lap->metrics.queue.occupied_ns);
        assert_true(lap->metrics.queue.depth_ns <=
                    (double)lap->metrics.queue.occupied_ns * (double)lap->metrics.queue.max_depth * (1 + 1e-9));
        assert_true(lap->metrics.queue.bytes_ns <=
                    (double)lap->metrics.queue.occupied_ns * (double)lap->metrics.queue.max_bytes * (1 + 1e-9));
    }
}

static void free_recorded(weir_pipeline *pipeline, test_recorder *recorder)
{
    weir_pipeline_free(pipeline);
    assert_true(recorder->ended);
    assert_laps_are_sound(recorder);
    recorder_free(recorder);
    ledger_close(&ledger);
}

static int64_t cpu_clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec;
}

/* Three slots of long tasks; nothing comes out until the gate is opened. */
TEST_CASE(before_the_first_item_comes_out_the_sink_is_empty)
{
    test_gate gate = GATE;
    test_recorder recorder;
    weir_subject_lap queue[LAPS];
    weir_subject_lap stage[LAPS];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &gated_op, &gate, 0, &(weir_stage_options){ .concurrency = 3, .threads = 3 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    gate_await_waiting(&gate, 3);
    AWAIT_SLOTS(pipeline, "0:0:src", waiting_out, 1); /* the queue before is full */
    lap_span held = watch_laps(pipeline, &recorder);
    lap_span all = { 0, held.end };

    stage_laps(&recorder, held, "0:1:gated[3]", stage);
    for (int i = 0; i < LAPS; i++) {
        assert_int_equal(stage[i].metrics.task.busy_ns,
                         3 * stage[i].lap->elapsed_ns); /* long tasks show while they run */
        assert_int_equal(stage[i].metrics.task.num_tasks, 0);
    }
    queue_laps(&recorder, held, "0:0:src_queue", queue);
    for (int i = 0; i < LAPS; i++)
        assert_int_equal(queue[i].metrics.queue.occupied_ns, queue[i].lap->elapsed_ns);
    pthread_mutex_lock(&recorder.lock);
    for (uint64_t i = 0; i < recorder.num_queue_records; i++)
        if (recorder.queues[i].lap_number < all.end && strcmp(recorder.queues[i].name, "0:2:sink_queue") == 0)
            assert_int_equal(recorder.queues[i].lap.metrics.queue.occupied_ns, 0);
    pthread_mutex_unlock(&recorder.lock);

    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 20);
    free_recorded(pipeline, &recorder);
}

TEST_CASE(slots_that_wait_for_input_show_it)
{
    test_gate gate = GATE;
    test_recorder recorder;
    weir_subject_lap stage[LAPS];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    gate_await_waiting(&gate, 1);
    stage_laps(&recorder, watch_laps(pipeline, &recorder), "0:1:pass[4]", stage);
    for (int i = 0; i < LAPS; i++)
        assert_int_equal(stage[i].metrics.task.wait_in_ns, 4 * stage[i].lap->elapsed_ns);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 5);
    free_recorded(pipeline, &recorder);
}

/* The only pool thread waits at the gate of the downstream stage. */
TEST_CASE(slots_that_wait_for_a_thread_show_it)
{
    test_gate gate = GATE;
    test_recorder recorder;
    weir_subject_lap stage[LAPS];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .threads = 1 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(
        builder, (weir_pipeline_options){ .threads = 1, .stats_interval_ns = WEIR_MILLISECOND }, &recorder);
    gate_await_waiting(&gate, 1);
    AWAIT_SLOTS(pipeline, "0:1:pass[4]", waiting_thread, 4);
    stage_laps(&recorder, watch_laps(pipeline, &recorder), "0:1:pass[4]", stage);
    for (int i = 0; i < LAPS; i++)
        assert_int_equal(stage[i].metrics.task.wait_thread_ns, 4 * stage[i].lap->elapsed_ns);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 20);
    free_recorded(pipeline, &recorder);
}

TEST_CASE(slots_that_wait_for_room_show_it)
{
    test_recorder recorder;
    weir_subject_lap stage[LAPS];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    AWAIT_SLOTS(pipeline, "0:1:pass[4]", waiting_out, 4);
    stage_laps(&recorder, watch_laps(pipeline, &recorder), "0:1:pass[4]", stage);
    for (int i = 0; i < LAPS; i++)
        assert_int_equal(stage[i].metrics.task.wait_out_ns, 4 * stage[i].lap->elapsed_ns);
    assert_int_equal(drain_all(pipeline), 20);
    free_recorded(pipeline, &recorder);
}

TEST_CASE(pending_tasks_are_busy)
{
    test_pending pending = PENDING;
    test_recorder recorder;
    weir_subject_lap stage[LAPS];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 8 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0, &(weir_stage_options){ .concurrency = 8 });
    weir_builder_sink(builder, NULL);
    int64_t cpu_ns = cpu_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    AWAIT_SLOTS(pipeline, "0:1:pending[8]", pending, 8);
    lap_span span = watch_laps(pipeline, &recorder);
    stage_laps(&recorder, span, "0:1:pending[8]", stage);
    int64_t watched_ns = 0;
    for (int i = 0; i < LAPS; i++) {
        assert_int_equal(stage[i].metrics.task.busy_ns, 8 * stage[i].lap->elapsed_ns);
        assert_int_equal(stage[i].metrics.task.pending_ns, stage[i].metrics.task.busy_ns);
        watched_ns += stage[i].lap->elapsed_ns;
    }
    pending_start(&pending);
    assert_int_equal(drain_all(pipeline), 8);
    pending_end(&pending);
    weir_pipeline_free(pipeline);
    weir_subject_lap total = recorder_stage_total(&recorder, "0:1:pending[8]");
    assert_true(total.metrics.task.success_ns >= 8 * watched_ns && total.metrics.task.max_ns >= watched_ns);
    assert_true(total.metrics.task.cpu_ns <= cpu_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* ---- totals --------------------------------------------------------------------------------------------------- */

/* By the item's number: fails, is skipped, becomes two results, is pending, or is passed on. */
static int do_anything(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *chunks = worker;
    switch (item_value(in) % 5) {
    case 0: return WEIR_EDATA;
    case 1: return WEIR_SKIP;
    case 2: ledger_fill(&ledger, out, item_value(in), 3); return ++*chunks % 2 ? WEIR_MORE : WEIR_OK;
    case 3: pending_add((test_pending *)weir_task_config(task), task, in); return WEIR_PENDING;
    default: weir_item_move(out, in); return WEIR_OK;
    }
}

static const weir_op anything_op = { .name = "anything", .worker_size = sizeof(uint64_t), .run = do_anything };

static void assert_stage_adds_up(test_recorder *recorder, const char *stage, const weir_account *account)
{
    weir_subject_lap total = recorder_stage_total(recorder, stage);
    assert_int_equal(total.metrics.task.num_failures, account->failed);
    assert_int_equal(total.metrics.task.num_skipped, account->skipped);
    assert_int_equal(slot_time(&total), slots_of(recorder, stage) * total.lap->elapsed_ns);
    assert_true(total.metrics.task.busy_ns >= total.metrics.task.success_ns + total.metrics.task.failed_ns);
    char queue[128];
    snprintf(queue, sizeof queue, "%s_queue", stage);
    assert_int_equal(recorder_queue_total(recorder, queue).metrics.queue.num_put, account->passed_on);
}

static void assert_queue_adds_up(test_recorder *recorder, const char *queue, uint64_t put, uint64_t taken)
{
    weir_subject_lap total = recorder_queue_total(recorder, queue);
    assert_int_equal(total.metrics.queue.num_put, put);
    assert_int_equal(total.metrics.queue.num_items, taken);
}

/* Ends the run in one of several ways, and compares the sums of the laps with the accounts. */
static void add_up(uint64_t count, uint64_t taken, bool stop, int64_t interval_ns)
{
    test_pending pending = PENDING;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = count, .size_bytes = 7 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &anything_op, &pending, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build_recorded(builder, (weir_pipeline_options){ .threads = 2, .stats_interval_ns = interval_ns }, &recorder);
    pending_start(&pending);
    weir_item item;
    for (uint64_t i = 0; i < taken && weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; i++)
        weir_item_release(&item);
    if (stop)
        weir_pipeline_stop(pipeline);
    if (stop || taken == UINT64_MAX)
        await_work_end(pipeline);
    weir_account source = account_of(pipeline, "0:0:src"), first = account_of(pipeline, "anything");
    weir_account second = account_of(pipeline, "pass"), sink = account_of(pipeline, "sink");
    weir_account all = account_of(pipeline, NULL);
    weir_pipeline_free(pipeline);
    pending_end(&pending);

    if (stop || taken == UINT64_MAX) {
        assert_queue_adds_up(&recorder, "0:0:src_queue", source.passed_on, first.taken);
        assert_stage_adds_up(&recorder, "0:1:anything[4]", &first);
        assert_queue_adds_up(&recorder, "0:1:anything[4]_queue", first.passed_on, second.taken);
        assert_stage_adds_up(&recorder, "0:2:pass", &second);
        assert_queue_adds_up(&recorder, "0:3:sink_queue", sink.passed_on, all.passed_on);
    }
    if (interval_ns == WEIR_FOREVER)
        assert_int_equal(counter_value(&recorder.laps), 1);
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(the_laps_add_up_to_the_accounts)
{
    add_up(3000, UINT64_MAX, false, WEIR_MILLISECOND);
    add_up(3000, UINT64_MAX, false, 0);
    add_up(3000, UINT64_MAX, false, WEIR_FOREVER);
    add_up(1, UINT64_MAX, false, WEIR_MILLISECOND);
    add_up(0, UINT64_MAX, false, WEIR_FOREVER);
}

TEST_CASE(the_last_lap_is_recorded_on_every_way_out)
{
    for (uint64_t taken = 0; taken < 40; taken += 3) {
        add_up(UINT64_MAX, taken, true, WEIR_MILLISECOND);
        add_up(UINT64_MAX, taken, true, WEIR_FOREVER);
        add_up(20, taken, true, 1); /* below a millisecond is a millisecond */
    }
}

TEST_CASE(the_last_lap_is_recorded_after_a_failure)
{
    test_recorder recorder;
    int status;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20, .end_status = WEIR_EIO };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(
        builder, (weir_pipeline_options){ .threads = 1, .stats_interval_ns = WEIR_FOREVER }, &recorder);
    assert_int_equal(drain(pipeline, &status), 20);
    assert_int_equal(status, WEIR_EFAILED);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&recorder.laps), 1);
    assert_int_equal(recorder_stage_total(&recorder, "0:1:pass").metrics.task.num_tasks, 20);
    assert_int_equal(recorder_queue_total(&recorder, "0:2:sink_queue").metrics.queue.num_items, 20);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* With what the observers have got so far. */
static uint64_t num_tasks_reported(test_recorder *recorder, const char *name)
{
    uint64_t count = 0;
    pthread_mutex_lock(&recorder->lock);
    for (uint64_t i = 0; i < recorder->num_stage_records; i++)
        if (strcmp(recorder->stages[i].name, name) == 0)
            count += recorder->stages[i].lap.metrics.task.num_tasks;
    pthread_mutex_unlock(&recorder->lock);
    return count;
}

TEST_CASE(a_lap_that_is_asked_for_has_all_up_to_now)
{
    test_recorder recorder;
    weir_item item;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 200 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(
        builder, (weir_pipeline_options){ .threads = 1, .stats_interval_ns = WEIR_FOREVER }, &recorder);
    for (uint64_t taken = 1; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; taken++) {
        weir_item_release(&item);
        weir_account before = account_of(pipeline, "pass");
        assert_int_equal(weir_pipeline_end_lap(pipeline, WEIR_FOREVER), WEIR_OK);
        weir_account after = account_of(pipeline, "pass");
        assert_in_range(num_tasks_reported(&recorder, "0:1:pass"), before.passed_on, after.passed_on + 1);
        assert_true(counter_value(&recorder.laps) >= (int64_t)taken);
    }
    assert_int_equal(weir_pipeline_end_lap(pipeline, WEIR_FOREVER), WEIR_OK); /* in the tail */
    assert_int_equal(num_tasks_reported(&recorder, "0:1:pass"), 200);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_stage_total(&recorder, "0:1:pass").metrics.task.num_tasks, 200);
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

static void count_tasks(void *count, const weir_subject_lap *lap)
{
    if (lap->subject == WEIR_SUBJECT_STAGE && strcmp(lap->name, "0:1:apart") == 0)
        counter_add(count, (int64_t)lap->metrics.task.num_tasks);
}

TEST_CASE(a_stage_with_an_interval_of_its_own_is_told_when_it_is_asked_for)
{
    test_counter count;
    counter_init(&count);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .name = "apart", .stats_interval_ns = 3600 * WEIR_SECOND });
    weir_builder_sink(builder, NULL);
    const weir_observer observer = { .self = &count, .lap = count_tasks };
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 20);
    assert_int_equal(weir_pipeline_end_lap(pipeline, WEIR_FOREVER), WEIR_OK);
    assert_int_equal(counter_value(&count), 20);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&count), 20);
    ledger_close(&ledger);
}

static weir_pipeline *asked_by_observer;
static atomic_int status_of_observer;

static void ask_in_observer(test_recorder *recorder, void *unused)
{
    (void)recorder, (void)unused;
    if (asked_by_observer)
        atomic_store(&status_of_observer, weir_pipeline_end_lap(asked_by_observer, WEIR_FOREVER));
}

TEST_CASE(an_observer_does_not_wait_for_itself_to_get_a_lap)
{
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    asked_by_observer = NULL;
    recorder_init(&recorder);
    recorder.on_lap = ask_in_observer;
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .stats_interval_ns = WEIR_FOREVER, .observers = &recorder.observer, .num_observers = 1 });
    asked_by_observer = pipeline;
    assert_int_equal(weir_pipeline_end_lap(pipeline, WEIR_FOREVER), WEIR_OK);
    assert_int_equal(atomic_load(&status_of_observer), WEIR_EBUSY);
    weir_pipeline_free(pipeline);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

static void wait_in_observer(test_recorder *recorder, void *gate)
{
    (void)recorder;
    gate_pass(gate);
}

TEST_CASE(an_observer_that_is_held_up_costs_no_more_than_the_time_given)
{
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    recorder_init(&recorder);
    recorder.on_lap = wait_in_observer;
    recorder.on_lap_argument = &gate;
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .stats_interval_ns = WEIR_FOREVER, .observers = &recorder.observer, .num_observers = 1 });
    assert_int_equal(weir_pipeline_end_lap(pipeline, WEIR_MILLISECOND), WEIR_ETIMEDOUT);
    gate_open(&gate);
    assert_int_equal(weir_pipeline_end_lap(pipeline, WEIR_FOREVER), WEIR_OK);
    weir_pipeline_free(pipeline);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(the_laps_cover_the_run_without_gap)
{
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    int64_t before_ns = weir_clock_ns();
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    int64_t built_ns = weir_clock_ns();
    counter_await(&recorder.laps, LAPS);
    int64_t opened_ns = weir_clock_ns(); /* the run cannot be over yet */
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 1);
    weir_pipeline_free(pipeline);
    int64_t elapsed_ns = recorder_stage_total(&recorder, "0:1:pass").lap->elapsed_ns;
    assert_true(elapsed_ns >= opened_ns - built_ns && elapsed_ns <= weir_clock_ns() - before_ns);
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* ---- times of tasks ------------------------------------------------------------------------------------------- */

static int64_t spin(int64_t span_ns)
{
    int64_t start_ns = weir_clock_ns();
    while (weir_clock_ns() - start_ns < span_ns)
        ;
    return weir_clock_ns() - start_ns;
}

static int spin_and_fail(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    if (item_value(in) % 2) {
        spin(5 * WEIR_MILLISECOND);
        return WEIR_EIO;
    }
    spin(WEIR_MILLISECOND);
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(failed_tasks_have_their_time_apart)
{
    static const weir_op op = { .name = "spinning", .run = spin_and_fail };
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    assert_int_equal(drain_all(pipeline), 5);
    weir_pipeline_free(pipeline);
    weir_subject_lap total = recorder_stage_total(&recorder, "0:1:spinning");
    assert_true(total.metrics.task.failed_ns >= 5 * (5 * WEIR_MILLISECOND - CLOCKS_APART_NS));
    assert_true(total.metrics.task.success_ns >= 5 * (WEIR_MILLISECOND - CLOCKS_APART_NS));
    assert_true(total.metrics.task.max_ns >= WEIR_MILLISECOND - CLOCKS_APART_NS &&
                total.metrics.task.max_ns <= total.metrics.task.success_ns);
    assert_int_equal(total.metrics.task.num_tasks, 10);
    assert_int_equal(total.metrics.task.num_failures, 5);
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* What the operation itself has measured of its CPU time. */
typedef struct cpu_config {
    test_counter own_cpu_ns;
    int64_t span_ns; /* that it spins for, 0 = it waits at the gate */
    test_gate *gate;
} cpu_config;

static int use_cpu(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    cpu_config *config = (cpu_config *)weir_task_config(task);
    int64_t start_ns = cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    (void)worker;
    if (config->span_ns)
        spin(config->span_ns);
    else
        gate_pass(config->gate);
    weir_item_move(out, in);
    counter_add(&config->own_cpu_ns, cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns);
    return WEIR_OK;
}

static const weir_op cpu_op = { .name = "cpu", .run = use_cpu };

static int64_t cpu_time_of(test_recorder *recorder, const char *stage)
{
    return recorder_stage_total(recorder, stage).metrics.task.cpu_ns;
}

/* All stages together have no more than the process; how the time is divided is test_cpu_window's subject. */
TEST_CASE(cpu_time_is_that_of_the_tasks)
{
    enum { COUNT = 100 };
    int64_t cpu_ns = cpu_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    test_gate gate = GATE;
    test_recorder recorder;
    cpu_config short_ones = { .own_cpu_ns = COUNTER, .span_ns = 20 * WEIR_MICROSECOND };
    cpu_config long_ones = { .own_cpu_ns = COUNTER, .span_ns = 2 * WEIR_MILLISECOND };
    cpu_config waiting = { .own_cpu_ns = COUNTER, .gate = &gate };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &cpu_op, &short_ones, 0, &(weir_stage_options){ .name = "short" });
    weir_builder_pipe(builder, &cpu_op, &long_ones, 0, &(weir_stage_options){ .name = "long", .concurrency = 2 });
    weir_builder_pipe(builder, &cpu_op, &waiting, 0, &(weir_stage_options){ .name = "waiting" });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    gate_await_waiting(&gate, 1);
    watch_laps(pipeline, &recorder);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), COUNT);
    weir_pipeline_free(pipeline);
    int64_t long_ns = cpu_time_of(&recorder, "0:2:long[2]");
    cpu_ns = cpu_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    assert_true(long_ns > 0);
    assert_in_range(cpu_time_of(&recorder, "0:1:short") + long_ns + cpu_time_of(&recorder, "0:3:waiting"), 1, cpu_ns);
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

static int spin_until_reported(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    atomic_int *phase = (atomic_int *)weir_task_config(task);
    (void)worker;
    atomic_store(phase, 1);
    while (atomic_load(phase) == 1)
        ;
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(a_task_shows_its_time_and_cpu_time_before_it_ends)
{
    static const weir_op op = { .name = "endless", .run = spin_until_reported };
    atomic_int phase = 0;
    test_recorder recorder;
    weir_subject_lap stage[LAPS];
    int64_t cpu_ns = 0;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &phase, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    while (atomic_load(&phase) == 0)
        sched_yield();
    while (cpu_ns == 0) { /* the thread may have to wait for a CPU for some laps */
        stage_laps(&recorder, watch_laps(pipeline, &recorder), "0:1:endless", stage);
        for (int i = 0; i < LAPS; i++) {
            assert_int_equal(stage[i].metrics.task.busy_ns, stage[i].lap->elapsed_ns);
            assert_int_equal(stage[i].metrics.task.num_tasks, 0);
            cpu_ns += stage[i].metrics.task.cpu_ns;
        }
    }
    assert_true(stage_snapshot(pipeline, "0:1:endless").cpu_ns >=
                cpu_ns); /* the total since the start has what laps have */
    atomic_store(&phase, 2);
    assert_int_equal(drain_all(pipeline), 1);
    free_recorded(pipeline, &recorder);
}

/* ---- what stages hold ------------------------------------------------------------------------------------------- */

typedef struct holding {
    test_gate first, later; /* items 0 and 1; others */
} holding;

/* Holds 1,000 bytes for item 0, 2,000 for item 1, and 10 for others, while it waits; all workers together hold 50. */
static int hold_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    holding *own = (holding *)(uintptr_t)weir_task_config(task);
    uint64_t value = item_value(in);
    (void)worker;
    REQUIRE(weir_task_set_held(task, WEIR_HOLDER_WORKER, value < 2 ? 1000 * (value + 1) : 10) == WEIR_OK);
    REQUIRE(weir_task_set_held(task, WEIR_HOLDER_STAGE, 50) == WEIR_OK);
    REQUIRE(weir_task_set_held(task, WEIR_HOLDER_WORKER, (UINT64_C(1) << 46) + 1) == WEIR_EINVAL);
    REQUIRE(weir_task_set_held(task, (weir_holder)2, 1) == WEIR_EINVAL);
    gate_pass(value < 2 ? &own->first : &own->later);
    REQUIRE(weir_task_set_held(task, WEIR_HOLDER_WORKER, 0) == WEIR_OK);
    weir_item_move(out, in);
    return WEIR_OK;
}

static void assert_laps_hold(weir_pipeline *pipeline, test_recorder *recorder, int64_t bytes)
{
    weir_subject_lap laps[LAPS];
    stage_laps(recorder, watch_laps(pipeline, recorder), "0:1:hold[2]", laps);
    for (int i = 0; i < LAPS; i++)
        assert_int_equal(laps[i].metrics.task.max_held_bytes, bytes);
}

TEST_CASE(a_lap_has_the_most_bytes_that_a_stage_held_at_once)
{
    static const weir_op op = { .name = "hold", .run = hold_run };
    holding own = { GATE, GATE };
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &own, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    gate_await_waiting(&own.first, 2);
    assert_laps_hold(pipeline, &recorder, 1000 + 2000 + 50); /* the levels last */
    gate_open(&own.first);
    gate_await_waiting(&own.later, 1);
    while (account_of(pipeline, "hold").passed_on < 2) /* both workers hold nothing now */
        sched_yield();
    assert_laps_hold(pipeline, &recorder, 10 + 50);
    assert_int_equal(weir_pipeline_set_held(pipeline, 7000), WEIR_OK);
    assert_int_equal(weir_pipeline_set_held(pipeline, UINT64_MAX), WEIR_EINVAL);
    gate_open(&own.later);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_stage_total(&recorder, "0:1:hold[2]").metrics.task.max_held_bytes, 3050);
    assert_int_equal(recorder_stage_total(&recorder, "0:2:sink").metrics.task.max_held_bytes, 7000);
    assert_true(recorder_stage_total(&recorder, "0:0:src").metrics.task.max_held_bytes < 0); /* not known */
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(an_incomplete_batch_is_held)
{
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 10, .size_bytes = 100 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &weir_aggregate, &(weir_aggregate_config){ .num_items = 4 },
                      sizeof(weir_aggregate_config), NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_stage_total(&recorder, "0:1:aggregate").metrics.task.max_held_bytes, 400);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* ---- work inside items ------------------------------------------------------------------------------------------ */

typedef struct advancing {
    test_gate gate;
    atomic_uint num_reported; /* tasks that have reported the first part of their work */
} advancing;

/* Says that 5 of 12 frames are done, and waits; then fails if its number is 1. */
static int advance_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    advancing *own = (advancing *)(uintptr_t)weir_task_config(task);
    char unit[] = "frames"; /* another text of the same letters */
    (void)worker;
    for (int i = 0; i < 5; i++)
        REQUIRE(weir_task_advance(task, "frames", 1) == WEIR_OK);
    atomic_fetch_add(&own->num_reported, 1);
    gate_pass(&own->gate);
    REQUIRE(weir_task_advance(task, unit, 7) == WEIR_OK);
    REQUIRE(weir_task_advance(task, "samples", 1) == WEIR_EINVAL); /* a stage counts in one unit */
    REQUIRE(weir_task_advance(task, "", 1) == WEIR_EINVAL && weir_task_advance(task, NULL, 1) == WEIR_EINVAL);
    REQUIRE(weir_task_advance(task, "frames", (UINT64_C(1) << 40) + 1) == WEIR_EINVAL);
    REQUIRE(weir_task_advance(task, "frames", 0) == WEIR_OK);
    if (item_value(in) == 1)
        return weir_task_fail(task, WEIR_EDATA, 0, "bad");
    weir_item_move(out, in);
    return WEIR_OK;
}

static void assert_work(weir_pipeline *pipeline, uint64_t num_work, const char *unit)
{
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    const weir_stage_snapshot *stage = &snapshot->stages[1];
    assert_int_equal(stage->num_work, num_work);
    assert_true(unit ? stage->work_unit && strcmp(stage->work_unit, unit) == 0 : !stage->work_unit);
    assert_int_equal(snapshot->stages[0].num_work, 0);
    weir_snapshot_free(snapshot);
}

TEST_CASE(work_inside_items_is_in_the_lap_in_which_it_was_done)
{
    static const weir_op op = { .name = "advance", .run = advance_run };
    advancing own = { .gate = GATE };
    test_recorder recorder;
    weir_subject_lap laps[LAPS];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &own, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    while (atomic_load(&own.num_reported) < 2)
        sched_yield();
    lap_span span = watch_laps(pipeline, &recorder);
    weir_subject_lap so_far = recorder_stage_total(&recorder, "0:1:advance[2]");
    assert_int_equal(so_far.metrics.task.num_work, 10); /* no item has ended */
    assert_int_equal(so_far.metrics.task.num_tasks, 0);
    stage_laps(&recorder, span, "0:1:advance[2]", laps);
    for (int i = 0; i < LAPS; i++)
        assert_int_equal(laps[i].metrics.task.num_work, 0); /* it was in an earlier one */
    assert_work(pipeline, 10, "frames");
    gate_open(&own.gate);
    assert_int_equal(drain_all(pipeline), 2);
    assert_work(pipeline, 36, "frames");
    weir_pipeline_free(pipeline);
    weir_subject_lap all = recorder_stage_total(&recorder, "0:1:advance[2]");
    assert_int_equal(all.metrics.task.num_work, 36); /* that of the failed one, too */
    assert_int_equal(all.metrics.task.num_failures, 1);
    assert_int_equal(recorder_stage_total(&recorder, "0:0:src").metrics.task.num_work, 0);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* A phase that is left and entered again within a lap. */
TEST_CASE(work_of_a_phase_that_goes_on_is_added_up)
{
    static const weir_op op = { .name = "advance", .run = advance_run };
    advancing own = { .gate = GATE };
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &own, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(
        builder, (weir_pipeline_options){ .threads = 1, .stats_interval_ns = WEIR_FOREVER }, &recorder);
    while (atomic_load(&own.num_reported) < 1)
        sched_yield();
    for (int i = 0; i < 1000; i++) { /* the service thread makes room for new phases */
        assert_int_equal(weir_pipeline_mark_phase(pipeline, "other"), WEIR_OK);
        assert_int_equal(weir_pipeline_mark_phase(pipeline, "own"), WEIR_OK);
        sched_yield();
    }
    gate_open(&own.gate);
    assert_int_equal(drain_all(pipeline), 1);
    assert_int_equal(weir_pipeline_mark_phase(pipeline, "other"), WEIR_OK);
    assert_int_equal(weir_pipeline_mark_phase(pipeline, "own"), WEIR_OK);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_stage_total(&recorder, "0:1:advance").metrics.task.num_work, 12);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(who_reports_no_work_has_none)
{
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    assert_int_equal(drain_all(pipeline), 3);
    assert_work(pipeline, 0, NULL);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_stage_total(&recorder, "0:1:pass").metrics.task.num_work, 0);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* ---- queues --------------------------------------------------------------------------------------------------- */

TEST_CASE(level_and_bytes_of_a_full_queue)
{
    enum { CAPACITY = 3, BYTES = 1000 };
    test_gate gate = GATE;
    test_recorder recorder;
    weir_subject_lap queue[LAPS];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20, .size_bytes = BYTES };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .queue_items = CAPACITY });
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    AWAIT_SLOTS(pipeline, "0:0:src", waiting_out, 1);
    queue_laps(&recorder, watch_laps(pipeline, &recorder), "0:0:src_queue", queue);
    for (int i = 0; i < LAPS; i++) {
        double elapsed_ns = (double)queue[i].lap->elapsed_ns;
        assert_int_equal(queue[i].metrics.queue.occupied_ns, queue[i].lap->elapsed_ns);
        assert_true(queue[i].metrics.queue.depth_ns == CAPACITY * elapsed_ns);
        assert_true(queue[i].metrics.queue.bytes_ns == CAPACITY * BYTES * elapsed_ns);
        assert_int_equal(queue[i].metrics.queue.max_depth, CAPACITY);
        assert_int_equal(queue[i].metrics.queue.max_bytes, CAPACITY * BYTES);
        assert_int_equal(queue[i].capacity, CAPACITY);
        assert_int_equal(queue[i].metrics.queue.num_put + queue[i].metrics.queue.num_items, 0);
    }
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 20);
    free_recorded(pipeline, &recorder);
}

TEST_CASE(an_empty_queue_shows_nothing)
{
    test_gate gate = GATE;
    test_recorder recorder;
    weir_subject_lap queue[LAPS];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5, .gate = &gate, .size_bytes = 10 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 4 });
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    gate_let(&gate, 2);
    next_value(pipeline);
    next_value(pipeline);
    gate_await_waiting(&gate, 1);
    queue_laps(&recorder, watch_laps(pipeline, &recorder), "0:1:sink_queue", queue);
    for (int i = 0; i < LAPS; i++)
        assert_true(queue[i].metrics.queue.occupied_ns == 0 && queue[i].metrics.queue.depth_ns == 0 &&
                    queue[i].metrics.queue.bytes_ns == 0 && queue[i].metrics.queue.max_depth == 0 &&
                    queue[i].metrics.queue.max_bytes == 0);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 3);
    free_recorded(pipeline, &recorder);
}

/* The source's third item waits for room while the gate is shut. */
TEST_CASE(the_time_an_item_waits_for_room_is_its_put_time)
{
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .queue_items = 1 });
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    AWAIT_SLOTS(pipeline, "0:0:src", waiting_out, 1);
    int64_t start_ns = weir_clock_ns();
    watch_laps(pipeline, &recorder);
    int64_t waited_ns = weir_clock_ns() - start_ns;
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    weir_subject_lap total = recorder_queue_total(&recorder, "0:0:src_queue");
    assert_int_equal(total.metrics.queue.num_put, 3);
    assert_true(total.metrics.queue.put_ns >= waited_ns &&
                total.metrics.queue.put_ns <= total.lap->elapsed_ns); /* the other two had not to wait */
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* In input order a result may wait for its turn; that is not a wait for room. */
static int first_waits(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (item_value(in) == 0)
        gate_pass((test_gate *)weir_task_config(task));
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(the_time_a_result_waits_for_its_turn_is_no_put_time)
{
    static const weir_op op = { .name = "turns", .run = first_waits };
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 4 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &gate, 0,
                      &(weir_stage_options){ .concurrency = 4, .queue_items = 8, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 8 });
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    AWAIT_SLOTS(pipeline, "0:1:turns[4]", waiting_turn, 3);
    watch_laps(pipeline, &recorder);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 4);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_queue_total(&recorder, "0:1:turns[4]_queue").metrics.queue.put_ns, 0);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

typedef struct late_item {
    weir_pipeline *pipeline;
    test_recorder *recorder;
    test_gate *gate;
    int64_t waited_ns;
} late_item;

static void *open_late(void *argument)
{
    late_item *late = argument;
    int64_t start_ns = weir_clock_ns();
    watch_laps(late->pipeline, late->recorder);
    late->waited_ns = weir_clock_ns() - start_ns;
    gate_open(late->gate);
    return NULL;
}

/* Both wait while the source is at the gate: the slot of the stage for its input, the consumer in
   weir_pipeline_next(). */
TEST_CASE(the_time_a_taker_waits_is_the_get_time)
{
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    late_item late = { .pipeline = pipeline, .recorder = &recorder, .gate = &gate };
    gate_await_waiting(&gate, 1);
    pthread_t thread = thread_start(open_late, &late);
    int64_t start_ns = weir_clock_ns();
    assert_int_equal(next_value(pipeline), 0);
    int64_t most_ns = weir_clock_ns() - start_ns;
    thread_join(thread);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    weir_subject_lap of_stage = recorder_queue_total(&recorder, "0:0:src_queue");
    weir_subject_lap of_sink = recorder_queue_total(&recorder, "0:2:sink_queue");
    assert_int_equal(of_stage.metrics.queue.num_items, 1);
    assert_int_equal(of_sink.metrics.queue.num_items, 1);
    assert_true(of_stage.metrics.queue.get_ns >= late.waited_ns);
    assert_true(of_sink.metrics.queue.get_ns > 0 && of_sink.metrics.queue.get_ns <= most_ns);
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* Everything is there before anybody takes it. */
TEST_CASE(who_does_not_wait_has_a_get_time_of_zero)
{
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 3 });
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    while (!stage_snapshot(pipeline, "0:1:sink").ended)
        sched_yield();
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    weir_subject_lap total = recorder_queue_total(&recorder, "0:1:sink_queue");
    assert_int_equal(total.metrics.queue.num_items, 3);
    assert_int_equal(total.metrics.queue.get_ns, 0);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* ---- observers ------------------------------------------------------------------------------------------------ */

TEST_CASE(several_observers_are_told_the_same)
{
    test_pending pending = PENDING;
    test_recorder first, second;
    recorder_init(&second);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 500 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &anything_op, &pending, 0, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    recorder_init(&first);
    weir_pipeline_options options = quick;
    options.observers = (weir_observer[]){ first.observer, { .self = NULL }, second.observer };
    options.num_observers = 3;
    weir_pipeline *pipeline = build(builder, &options);
    pending_start(&pending);
    drain_all(pipeline);
    pending_end(&pending);
    weir_pipeline_free(pipeline);
    assert_true(first.ended && second.ended);
    assert_int_equal(first.num_failures, 100);
    assert_int_equal(second.num_failures, 100);
    assert_int_equal(first.num_stage_records, second.num_stage_records);
    assert_int_equal(first.num_queue_records, second.num_queue_records);
    for (uint64_t i = 0; i < first.num_stage_records; i++) {
        assert_int_equal(first.stages[i].lap.metrics.task.num_tasks, second.stages[i].lap.metrics.task.num_tasks);
        assert_int_equal(first.stages[i].histogram_count, second.stages[i].histogram_count);
    }
    assert_laps_are_sound(&second);
    recorder_free(&first);
    recorder_free(&second);
    ledger_close(&ledger);
}

/* Laps, failures and events together, with an observer that checks the order of the calls and that they never
   overlap. */
static void ask_the_pipeline(test_recorder *recorder, void *argument)
{
    weir_pipeline *pipeline = atomic_load((_Atomic(weir_pipeline *) *)argument);
    weir_account account;
    (void)recorder;
    if (!pipeline)
        return;
    REQUIRE(weir_pipeline_account(pipeline, NULL, &account) == WEIR_OK);
    REQUIRE(weir_pipeline_event(pipeline, "lap", "user", "seen") == WEIR_OK);
}

TEST_CASE(an_observer_may_ask_the_pipeline)
{
    _Atomic(weir_pipeline *) shared = NULL;
    test_pending pending = PENDING;
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 300, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &anything_op, &pending, 0, NULL);
    weir_builder_sink(builder, NULL);
    recorder_init(&recorder);
    recorder.on_lap = ask_the_pipeline;
    recorder.on_lap_argument = (void *)&shared;
    weir_pipeline_options options = quick;
    options.observers = &recorder.observer;
    options.num_observers = 1;
    weir_pipeline *pipeline = build(builder, &options);
    atomic_store(&shared, pipeline);
    counter_await(&recorder.laps, counter_value(&recorder.laps) + 3);
    pending_start(&pending);
    gate_open(&gate);
    drain_all(pipeline);
    pending_end(&pending);
    weir_pipeline_free(pipeline);
    assert_true(recorder_events_named(&recorder, "lap") >= 2);
    assert_laps_are_sound(&recorder);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(run_info_and_end_tell_the_times)
{
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    int64_t before_ns = unix_clock_ns();
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    /* the wall clock is read beside the steady one, and a busy machine may run others in between */
    assert_true(before_ns <= recorder.run.start_unix_ns + 60 * WEIR_SECOND);
    assert_true(recorder.run.start_unix_ns <= recorder.end.end_unix_ns);
    assert_true(recorder.end.end_unix_ns <= unix_clock_ns() + 60 * WEIR_SECOND);
    assert_int_equal(recorder.end.status, WEIR_OK);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(the_console_observer_writes_a_line_for_each_stage_and_queue)
{
    char line[512];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_observer console = weir_console_observer();
    weir_pipeline *pipeline = build(
        builder,
        &(weir_pipeline_options){ .observers = &console, .num_observers = 1, .stats_interval_ns = WEIR_FOREVER });
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    assert_int_equal(logged_lines(WEIR_LOG_INFO), 2 + 3); /* the source has tasks, too */
    last_logged_line(WEIR_LOG_INFO, line, sizeof line);
    assert_memory_equal(line, "0:2:sink_queue: 3 items", strlen("0:2:sink_queue: 3 items"));
    ledger_close(&ledger);
}

static void count_run_end(void *self, const weir_run_end *end)
{
    (void)end;
    counter_add(self, 1);
}

static void never_a_lap(void *self, const weir_subject_lap *lap)
{
    (void)self;
    (void)lap;
    require_failed("a lap without statistics", __FILE__, __LINE__);
}

/* ---- what belongs to no task ---------------------------------------------------------------------------------- */

typedef struct hook_times {
    int64_t begin_ns; /* in `begin` */
    int64_t after_ns; /* from its end to `end` */
} hook_times;

static int begin_slowly(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)task;
    (void)in;
    ((hook_times *)self)->begin_ns += spin(5 * WEIR_MILLISECOND);
    *(int64_t *)state = weir_clock_ns();
    return WEIR_OK;
}

static int note_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    (void)task;
    (void)end;
    ((hook_times *)self)->after_ns += weir_clock_ns() - *(int64_t *)state;
    return WEIR_OK;
}

/* Task time begins at the operation's first instruction: a hook before it is busy time, but not the task's. */
TEST_CASE(what_runs_before_the_operation_is_no_task_time)
{
    enum { COUNT = 20 };
    hook_times times = { 0 };
    test_recorder recorder;
    ledger_init(&ledger);
    weir_task_hook hook = { .self = &times, .state_size = sizeof(int64_t), .begin = begin_slowly, .end = note_end };
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    assert_int_equal(drain_all(pipeline), COUNT);
    weir_pipeline_free(pipeline);
    weir_subject_lap total = recorder_stage_total(&recorder, "0:1:pass");
    assert_int_equal(total.metrics.task.num_tasks, COUNT);
    assert_true(total.metrics.task.busy_ns >= times.begin_ns - COUNT * CLOCKS_APART_NS);
    assert_true(total.metrics.task.success_ns <= times.after_ns + COUNT * CLOCKS_APART_NS);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* ---- sources, merges and sinks have metrics ------------------------------------------------------------------- */

TEST_CASE(sources_and_sinks_have_laps_like_stages)
{
    enum { COUNT = 300 };
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    assert_int_equal(drain_all(pipeline), COUNT);
    weir_pipeline_free(pipeline);
    weir_subject_lap source = recorder_stage_total(&recorder, "0:0:src");
    weir_subject_lap sink = recorder_stage_total(&recorder, "0:2:sink");
    assert_int_equal(source.metrics.task.num_tasks, COUNT); /* the end of the stream is not an item */
    assert_true(source.metrics.task.busy_ns > 0);
    assert_int_equal(sink.metrics.task.num_tasks, 0);
    assert_int_equal(sink.metrics.task.busy_ns, 0);
    assert_int_equal(slot_time(&sink), slot_time(&source)); /* one slot each */
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* ---- the get time of a consumer that polls --------------------------------------------------------------------- */

/* The consumer called once, did something else, and comes back after the item arrived: it waited until the item
   was available, and was late from then on. */
TEST_CASE(a_consumer_that_polls_has_waited_since_it_first_asked)
{
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_recorded(builder, quick, &recorder);
    gate_await_waiting(&gate, 1);
    weir_item item;
    int64_t asked_ns = weir_clock_ns();
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ETIMEDOUT);
    int64_t first_ns = weir_clock_ns();
    spin(20 * WEIR_MILLISECOND);
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ETIMEDOUT);
    int64_t opened_ns = weir_clock_ns();
    gate_open(&gate);
    AWAIT_SLOTS(pipeline, "0:0:src", ended, true);
    int64_t there_ns = weir_clock_ns();
    spin(20 * WEIR_MILLISECOND); /* the item is there, the consumer is not */
    int64_t back_ns = weir_clock_ns();
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_OK);
    int64_t taken_ns = weir_clock_ns();
    weir_item_release(&item);
    weir_pipeline_free(pipeline);
    weir_queue_metrics sink = recorder_queue_total(&recorder, "0:1:sink_queue").metrics.queue;
    assert_true(sink.get_ns >= opened_ns - first_ns && sink.get_ns <= there_ns - asked_ns);
    assert_true(sink.late_ns >= back_ns - there_ns && sink.late_ns <= taken_ns - opened_ns);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* ---- the first lap ---------------------------------------------------------------------------------------------- */

/* If a run is killed within its first minute, at least a second of it is known. */
TEST_CASE(the_first_lap_of_a_long_interval_ends_early)
{
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build_recorded(builder, (weir_pipeline_options){ .stats_interval_ns = 3600 * WEIR_SECOND }, &recorder);
    counter_await(&recorder.laps, 1);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 1);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&recorder.laps), 2);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

static int spin_a_little(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    spin(WEIR_MILLISECOND / 4);
    weir_item_move(out, in);
    return WEIR_OK;
}

static int expect_no_run_time(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    (void)state;
    (void)task;
    counter_add(self, 1);
    return end->run_ns == 0 ? WEIR_OK : WEIR_EINVAL;
}

TEST_CASE(without_statistics_hooks_get_no_run_time)
{
    enum { COUNT = 20 };
    static const weir_op op = { .name = "spin", .run = spin_a_little };
    test_counter ends = COUNTER;
    const weir_task_hook hook = { .self = &ends, .end = expect_no_run_time };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .no_statistics = true });
    assert_int_equal(drain_all(pipeline), COUNT);
    assert_int_equal(counter_value(&ends), COUNT);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Without statistics time advances, too: a short task is not reported as late after longer ones. */
TEST_CASE(deadlines_hold_without_statistics)
{
    enum { COUNT = 400 };
    static const weir_op op = { .name = "spin", .run = spin_a_little };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0,
                      &(weir_stage_options){ .concurrency = 2, .task_deadline_ns = 10 * WEIR_SECOND });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .no_statistics = true, .threads = 2 });
    assert_int_equal(drain_all(pipeline), COUNT);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(without_statistics_there_are_no_laps_but_accounts)
{
    test_counter ends = COUNTER;
    const weir_observer observer = { .self = &ends, .lap = never_a_lap, .run_end = count_run_end };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 300 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .no_statistics = true,
                                                                       .observers = &observer,
                                                                       .num_observers = 1,
                                                                       .stats_interval_ns = WEIR_MILLISECOND });
    assert_int_equal(drain_all(pipeline), 300);
    weir_account account = account_of(pipeline, "pass");
    assert_int_equal(account.passed_on, 300);
    assert_account_is_exact(&account);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&ends), 1);
    ledger_close(&ledger);
}

static int wait_in_a_child(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    weir_task_add_run_delay(task, 2 * WEIR_SECOND);
    weir_item_move(out, in);
    return WEIR_OK;
}

static void add_delay(void *sum_ns, const weir_subject_lap *lap)
{
    if (lap->subject == WEIR_SUBJECT_POOL && strcmp(lap->name, "0:1:child_pool") == 0)
        *(int64_t *)sum_ns += lap->metrics.pool.run_delay_ns;
}

/* As if a thread of the stage's pool had waited. */
TEST_CASE(what_child_processes_wait_for_a_cpu_is_counted)
{
    static const weir_op op = { .name = "child", .run = wait_in_a_child };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    int64_t delay_ns = 0;
    const weir_observer observer = { .self = &delay_ns, .lap = add_delay };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .threads = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 3);
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    assert_int_equal(snapshot->stages[1].child_delay_ns, 6 * WEIR_SECOND);
    weir_snapshot_free(snapshot);
    weir_pipeline_free(pipeline);
    if (delay_ns >= 0) /* -1: the kernel does not count it */
        assert_true(delay_ns >= 6 * WEIR_SECOND);
    ledger_close(&ledger);
}

/* ---- the largest values ------------------------------------------------------------------------------------------ */

static int use_all_cpu_time(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    weir_task_add_cpu_time(task, INT64_MAX);
    weir_task_add_cpu_time(task, INT64_MAX);
    weir_item_move(out, in);
    out->size_bytes = (size_t)1 << 63;
    return WEIR_OK;
}

TEST_CASE(the_largest_values_do_not_overflow)
{
    static const weir_op op = { .name = "large", .run = use_all_cpu_time };
    enum { COUNT = 4 };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    test_recorder recorder;
    weir_item item;
    recorder_init(&recorder);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .task_deadline_ns = INT64_MAX });
    weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .name = "second" });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = COUNT });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .stats_interval_ns = INT64_MAX,
                                                                       .stall_warning_ns = INT64_MAX,
                                                                       .observers = &recorder.observer,
                                                                       .num_observers = 1 });
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, INT64_MAX), WEIR_OK);
        weir_item_release(&item);
    }
    assert_int_equal(weir_pipeline_next(pipeline, &item, INT64_MAX), WEIR_EOF);
    weir_pipeline_free(pipeline);
    assert_in_range(counter_value(&recorder.laps), 1, 2); /* the first, early one, and the last */
    assert_int_equal(recorder_stage_total(&recorder, "0:1:large").metrics.task.cpu_ns, INT64_MAX);
    assert_true(recorder_queue_total(&recorder, "0:3:sink_queue").metrics.queue.max_bytes > (int64_t)1 << 38);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(the_most_threads_are_those_of_the_header)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    assert_int_equal(
        weir_builder_build(builder, &(weir_pipeline_options){ .threads = WEIR_MAX_THREADS + 1 }, &pipeline, &error),
        WEIR_EINVAL);
    builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    pipeline = build(builder, &(weir_pipeline_options){ .threads = 1 });
    assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, WEIR_MAX_THREADS + 1), WEIR_EINVAL);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* The batch of two is as old as its first item, which waited for the second. */
TEST_CASE(items_of_short_steps_have_a_latency_within_the_run)
{
    test_recorder recorder;
    ledger_init(&ledger);
    weir_stage_options options = { .queue_items = 32 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &(test_numbers){ .ledger = &ledger, .count = 5000 }, 0, &options);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &options);
    weir_builder_sink(builder, &options);
    int64_t start_ns = weir_clock_ns();
    weir_pipeline *pipeline = build_recorded(
        builder, (weir_pipeline_options){ .threads = 1, .stats_interval_ns = WEIR_FOREVER }, &recorder);
    assert_int_equal(drain_all(pipeline), 5000);
    int64_t run_ns = weir_clock_ns() - start_ns;
    weir_pipeline_free(pipeline);
    weir_subject_lap sink = recorder_queue_total(&recorder, "0:2:sink_queue");
    assert_in_range(sink.metrics.queue.max_latency_ns, 1, run_ns);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(the_latency_of_a_batch_is_that_of_its_oldest_item)
{
    test_gate gate = GATE;
    test_recorder recorder;
    ledger_init(&ledger);
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 3, .gate = &gate });
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 2 }, NULL);
    weir_builder_sink(builder, NULL);
    int64_t start_ns = weir_clock_ns();
    weir_pipeline *pipeline = build_recorded(
        builder, (weir_pipeline_options){ .threads = 1, .stats_interval_ns = WEIR_FOREVER }, &recorder);
    gate_let(&gate, 1);
    gate_await_waiting(&gate, 1); /* the first is made */
    int64_t made_ns = weir_clock_ns();
    while (weir_clock_ns() - made_ns < 5 * WEIR_MILLISECOND)
        sched_yield();
    int64_t opened_ns = weir_clock_ns();
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 2);
    int64_t end_ns = weir_clock_ns();
    weir_pipeline_free(pipeline);
    weir_subject_lap sink = recorder_queue_total(&recorder, "0:2:sink_queue");
    assert_in_range(sink.metrics.queue.max_latency_ns, opened_ns - made_ns, end_ns - start_ns);
    assert_in_range(sink.metrics.queue.min_latency_ns, 0, end_ns - opened_ns);
    assert_int_equal(sink.metrics.queue.latency_ns,
                     sink.metrics.queue.min_latency_ns + sink.metrics.queue.max_latency_ns);
    uint64_t count = 0;
    for (uint64_t i = 0; i < recorder.num_queue_records; i++)
        count += recorder.queues[i].latency_count;
    assert_int_equal(count, 2); /* the sink's alone */
    assert_true(recorder_queue_total(&recorder, "0:0:src_queue").metrics.queue.latency_ns < 0);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
