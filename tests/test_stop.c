/*
 * Stop and free, in every state and from every place: everything that waits wakes, everything is released once, and the
 * accounts are exact.
 */
#include "tests/support.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static test_ledger ledger;

/* ---- before and after a stop --------------------------------------------------------------------------------- */

static weir_pipeline *build_watched(weir_builder *builder, test_recorder *recorder, uint32_t threads)
{
    recorder_init(recorder);
    return build(builder, &(weir_pipeline_options){
                              .threads = threads, .observers = &recorder->observer, .num_observers = 1 });
}

static void assert_accounts_are_exact(weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    for (size_t i = 0; i < snapshot->num_stages; i++) {
        account = account_of(pipeline, snapshot->stages[i].name);
        assert_account_is_exact(&account);
    }
    weir_snapshot_free(snapshot);
}

static void free_and_check(weir_pipeline *pipeline, test_recorder *recorder, int status)
{
    await_work_end(pipeline);
    assert_accounts_are_exact(pipeline);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder->end.status, status);
    assert_int_equal(recorder_events_named(recorder, "stop"), status == WEIR_ESTOPPED);
    recorder_free(recorder);
    ledger_close(&ledger);
}

static void stop_and_check(weir_pipeline *pipeline, test_recorder *recorder)
{
    weir_item item;
    weir_pipeline_stop(pipeline);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_ESTOPPED);
        assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ESTOPPED);
        weir_pipeline_stop(pipeline);
    }
    free_and_check(pipeline, recorder, WEIR_ESTOPPED);
}

/* ---- operations that obey ----------------------------------------------------------------------------------- */

static int obey(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    test_counter *inside = (test_counter *)weir_task_config(task);
    (void)worker;
    (void)in;
    (void)out;
    counter_add(inside, 1);
    while (!weir_task_should_stop(task))
        sched_yield();
    counter_add(inside, -1);
    return WEIR_ESTOPPED;
}

static const weir_op obeying_op = { .name = "obeying", .run = obey };

/* Pending until it is cancelled; `cancel` completes it. */
typedef struct cancel_config {
    test_counter pending, cancelled;
    int status; /* that it is then completed with */
} cancel_config;

static int wait_for_cancel(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    cancel_config *config = (cancel_config *)weir_task_config(task);
    (void)worker;
    (void)in;
    (void)out;
    counter_add(&config->pending, 1);
    return WEIR_PENDING;
}

static void complete_cancelled(void *worker, weir_task *task)
{
    cancel_config *config = (cancel_config *)weir_task_config(task);
    weir_item out = { 0 };
    (void)worker;
    REQUIRE(weir_task_should_stop(task));
    counter_add(&config->cancelled, 1);
    if (config->status == WEIR_OK)
        ledger_fill(&ledger, &out, 0, 0);
    weir_task_complete(task, config->status, &out);
}

static const weir_op cancelled_op = { .name = "cancelled", .run = wait_for_cancel, .cancel = complete_cancelled };

/* ---- stop in every state -------------------------------------------------------------------------------------- */

static weir_builder *endless_builder(test_numbers *numbers)
{
    ledger_init(&ledger);
    *numbers = (test_numbers){ .ledger = &ledger, .count = UINT64_MAX, .labelled = true };
    return builder_with(numbers);
}

TEST_CASE(stop_at_once)
{
    for (int i = 0; i < 200; i++) {
        test_numbers numbers;
        test_recorder recorder;
        weir_builder *builder = endless_builder(&numbers);
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
        weir_builder_sink(builder, NULL);
        stop_and_check(build_watched(builder, &recorder, 2), &recorder);
    }
}

TEST_CASE(stop_while_the_source_runs)
{
    test_counter inside = COUNTER;
    test_recorder recorder;
    ledger_init(&ledger);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &obeying_op, &inside, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
    counter_await(&inside, 1);
    stop_and_check(pipeline, &recorder);
}

TEST_CASE(stop_while_the_source_is_pending_and_everybody_waits_for_input)
{
    cancel_config config = { .pending = COUNTER, .cancelled = COUNTER, .status = WEIR_SKIP };
    test_recorder recorder;
    ledger_init(&ledger);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &cancelled_op, &config, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 5 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
    AWAIT_SLOTS(pipeline, "0:0:src", pending, 1);
    AWAIT_SLOTS(pipeline, "0:1:pass[5]", waiting_in, 5);
    stop_and_check(pipeline, &recorder);
    assert_int_equal(counter_value(&config.cancelled), 1);
}

/* No results are taken: the queues are full, all slots hold one. */
TEST_CASE(stop_while_everybody_waits_for_room)
{
    test_numbers numbers;
    test_recorder recorder;
    weir_builder *builder = endless_builder(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 2);
    AWAIT_SLOTS(pipeline, "0:0:src", waiting_out, 1);
    AWAIT_SLOTS(pipeline, "0:1:pass[4]", waiting_out, 4);
    AWAIT_SLOTS(pipeline, "0:2:sink", waiting_out, 1);
    stop_and_check(pipeline, &recorder);
}

TEST_CASE(stop_while_tasks_run)
{
    test_counter inside = COUNTER;
    test_numbers numbers;
    test_recorder recorder;
    weir_builder *builder = endless_builder(&numbers);
    weir_builder_pipe(builder, &obeying_op, &inside, 0, &(weir_stage_options){ .concurrency = 8, .threads = 8 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
    counter_await(&inside, 8);
    stop_and_check(pipeline, &recorder);
    assert_int_equal(counter_value(&inside), 0);
}

/* One thread, which is busy in the second stage: those of the first have their input but no thread. */
TEST_CASE(stop_while_tasks_wait_for_a_thread)
{
    test_counter inside = COUNTER;
    test_numbers numbers;
    test_recorder recorder;
    weir_builder *builder = weir_builder_new();
    ledger_init(&ledger);
    numbers = (test_numbers){ .ledger = &ledger, .count = UINT64_MAX };
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .threads = 1 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_pipe(builder, &obeying_op, &inside, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
    AWAIT_SLOTS(pipeline, "0:1:pass[4]", waiting_thread, 4);
    stop_and_check(pipeline, &recorder);
}

TEST_CASE(stop_while_tasks_are_pending)
{
    static const int statuses[] = { WEIR_OK, WEIR_SKIP, WEIR_ESTOPPED, WEIR_EIO };
    for (size_t i = 0; i < LENGTH(statuses); i++) {
        cancel_config config = { .pending = COUNTER, .cancelled = COUNTER, .status = statuses[i] };
        test_numbers numbers;
        test_recorder recorder;
        weir_builder *builder = endless_builder(&numbers);
        weir_builder_pipe(builder, &cancelled_op, &config, 0, &(weir_stage_options){ .concurrency = 100 });
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
        counter_await(&config.pending, 100);
        stop_and_check(pipeline, &recorder);
        assert_int_equal(counter_value(&config.cancelled), 100); /* each one once */
    }
}

TEST_CASE(tasks_may_be_completed_long_after_the_stop)
{
    test_pending pending = PENDING;
    test_numbers numbers;
    test_recorder recorder;
    weir_builder *builder = endless_builder(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0, &(weir_stage_options){ .concurrency = 10 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
    pending_await(&pending, 10);
    weir_pipeline_stop(pipeline);
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_ESTOPPED);
    assert_true(account_of(pipeline, NULL).in_flight >= 10); /* the work has not ended before they have */
    for (int i = 0; i < 10; i++) {
        weir_item *in, out = { 0 };
        weir_task *task = pending_take(&pending, &in);
        assert_true(weir_task_should_stop(task));
        weir_item_move(&out, in);
        weir_task_complete(task, WEIR_OK, &out);
    }
    free_and_check(pipeline, &recorder, WEIR_ESTOPPED);
}

/* The first task is pending, the results of the others wait for their turn. */
static int first_is_pending(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    if (item_value(in) == 0)
        return wait_for_cancel(worker, in, out, task);
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(stop_while_results_wait_for_their_turn)
{
    static const weir_op op = { .name = "turns", .run = first_is_pending, .cancel = complete_cancelled };
    cancel_config config = { .pending = COUNTER, .cancelled = COUNTER, .status = WEIR_OK };
    test_numbers numbers;
    test_recorder recorder;
    weir_builder *builder = endless_builder(&numbers);
    weir_builder_pipe(builder, &op, &config, 0,
                      &(weir_stage_options){ .concurrency = 6, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 2);
    AWAIT_SLOTS(pipeline, "0:1:turns[6]", waiting_turn, 5);
    stop_and_check(pipeline, &recorder);
}

static int endless_chunks(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    ledger_fill(&ledger, out, item_value(in), 0);
    return WEIR_MORE;
}

TEST_CASE(stop_while_tasks_are_between_two_chunks)
{
    static const weir_op op = { .name = "chunks", .run = endless_chunks };
    for (int i = 0; i < 100; i++) {
        test_numbers numbers;
        test_recorder recorder;
        weir_builder *builder = endless_builder(&numbers);
        weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .concurrency = 3, .queue_items = 1 });
        weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
        weir_pipeline *pipeline = build_watched(builder, &recorder, 2);
        for (int j = 0; j < i; j++)
            next_value(pipeline);
        stop_and_check(pipeline, &recorder);
    }
}

static int hold_start(void *self, const char *stage, weir_error *error)
{
    (void)stage;
    (void)error;
    gate_pass(self);
    return WEIR_OK;
}

TEST_CASE(stop_while_a_stage_starts)
{
    test_gate gate = GATE;
    weir_stage_hook hook = { .self = &gate, .start = hold_start };
    test_numbers numbers;
    test_recorder recorder;
    weir_builder *builder = endless_builder(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .concurrency = 2, .stage_hooks = &hook, .num_stage_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 2);
    gate_await_waiting(&gate, 1);
    AWAIT_SLOTS(pipeline, "0:1:pass[2]", waiting_thread, 2);
    weir_pipeline_stop(pipeline);
    gate_open(&gate);
    stop_and_check(pipeline, &recorder);
}

/* ---- the consumer --------------------------------------------------------------------------------------------- */

typedef struct waiting_consumer {
    weir_pipeline *pipeline;
    test_counter *ready;
    int status;
} waiting_consumer;

static void *wait_in_next(void *argument)
{
    waiting_consumer *consumer = argument;
    weir_item item;
    counter_add(consumer->ready, 1);
    consumer->status = weir_pipeline_next(consumer->pipeline, &item, WEIR_FOREVER);
    return NULL;
}

TEST_CASE(stop_wakes_every_consumer)
{
    for (int round = 0; round < 50; round++) {
        cancel_config config = { .pending = COUNTER, .cancelled = COUNTER, .status = WEIR_ESTOPPED };
        test_counter ready = COUNTER;
        test_recorder recorder;
        ledger_init(&ledger);
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &cancelled_op, &config, 0, NULL);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
        waiting_consumer consumers[5];
        pthread_t threads[LENGTH(consumers)];
        for (size_t i = 0; i < LENGTH(consumers); i++) {
            consumers[i] = (waiting_consumer){ pipeline, &ready, 0 };
            threads[i] = thread_start(wait_in_next, &consumers[i]);
        }
        counter_await(&ready, LENGTH(consumers));
        weir_pipeline_stop(pipeline);
        for (size_t i = 0; i < LENGTH(consumers); i++) {
            thread_join(threads[i]);
            assert_int_equal(consumers[i].status, WEIR_ESTOPPED);
        }
        stop_and_check(pipeline, &recorder);
    }
}

/* ---- from every place ----------------------------------------------------------------------------------------- */

/* What stops the pipeline; it is told to all places when the pipeline is there. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    weir_pipeline *pipeline;
    bool done;
} stopper = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void stop_from_here(void)
{
    pthread_mutex_lock(&stopper.lock);
    while (!stopper.pipeline)
        pthread_cond_wait(&stopper.changed, &stopper.lock);
    weir_pipeline *pipeline = stopper.pipeline;
    stopper.done = true;
    pthread_cond_broadcast(&stopper.changed);
    pthread_mutex_unlock(&stopper.lock);
    weir_pipeline_stop(pipeline);
}

static void tell_stopper(weir_pipeline *pipeline)
{
    pthread_mutex_lock(&stopper.lock);
    stopper.pipeline = pipeline;
    stopper.done = false;
    pthread_cond_broadcast(&stopper.changed);
    pthread_mutex_unlock(&stopper.lock);
}

typedef enum stop_place {
    IN_SOURCE,
    IN_RUN,
    IN_RELEASE,
    IN_TASK_BEGIN,
    IN_TASK_END,
    IN_STAGE_START,
    IN_STAGE_END,
    IN_FAILURE,
    IN_EVENT,
    IN_LAP,
    IN_LOG,
    IN_WORKER_INIT,
    PLACES,
} stop_place;

static stop_place chosen;

static void here(stop_place place)
{
    if (place == chosen)
        stop_from_here();
}

static void release_here(void *data, void *self)
{
    (void)self;
    (void)data;
    here(IN_RELEASE);
}

static int source_here(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)task;
    here(IN_SOURCE);
    if (chosen == IN_STAGE_END && weir_task_seq(task) == 5)
        return WEIR_EOF;
    out->data = out;
    out->release = release_here;
    return WEIR_OK;
}

static int worker_here(void *worker, const void *config, weir_task *task)
{
    (void)worker;
    (void)config;
    (void)task;
    here(IN_WORKER_INIT);
    return WEIR_OK;
}

static int run_here(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    here(IN_RUN);
    weir_task_event(task, "here", NULL);
    return in->seq % 2 ? WEIR_EIO : WEIR_SKIP;
}

static int begin_here(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)self;
    (void)state;
    (void)task;
    (void)in;
    here(IN_TASK_BEGIN);
    return WEIR_OK;
}

static int end_here(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    (void)self;
    (void)state;
    (void)task;
    (void)end;
    here(IN_TASK_END);
    return WEIR_OK;
}

static int stage_start_here(void *self, const char *stage, weir_error *error)
{
    (void)self;
    (void)stage;
    (void)error;
    here(IN_STAGE_START);
    return WEIR_OK;
}

static int stage_end_here(void *self, const char *stage, weir_error *error)
{
    (void)self;
    (void)stage;
    (void)error;
    here(IN_STAGE_END);
    return WEIR_OK;
}

static void failure_here(void *self, const weir_failure *failure)
{
    (void)self;
    (void)failure;
    here(IN_FAILURE);
}

static void event_here(void *self, const weir_event *event)
{
    (void)self;
    (void)event;
    here(IN_EVENT);
}

static void lap_here(void *self, const weir_subject_lap *lap)
{
    (void)self;
    (void)lap;
    here(IN_LAP);
}

static void log_here(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)level;
    (void)line;
    here(IN_LOG);
}

static void stop_in(stop_place place)
{
    static const weir_op source_op = { .name = "source", .run = source_here };
    static const weir_op stage_op = { .name = "here", .worker_init = worker_here, .run = run_here };
    static const weir_task_hook task_hook = { .begin = begin_here, .end = end_here };
    static const weir_stage_hook stage_hook = { .start = stage_start_here, .end = stage_end_here };
    const weir_observer observer = { .failure = failure_here, .event = event_here, .lap = lap_here };
    chosen = place;
    tell_stopper(NULL);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source_op, NULL, 0, NULL);
    weir_builder_pipe(builder, &stage_op, NULL, 0,
                      &(weir_stage_options){ .concurrency = 3,
                                             .task_hooks = &task_hook,
                                             .num_task_hooks = 1,
                                             .stage_hooks = &stage_hook,
                                             .num_stage_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder,
              &(weir_pipeline_options){
                  .threads = 2, .observers = &observer, .num_observers = 1, .stats_interval_ns = WEIR_MILLISECOND });
    tell_stopper(pipeline);
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_ESTOPPED);
    weir_pipeline_free(pipeline);
    assert_true(stopper.done);
}

TEST_CASE(stop_may_be_called_from_everywhere)
{
    weir_log_set_function(log_here, NULL);
    for (stop_place place = 0; place < PLACES; place++)
        for (int i = 0; i < 20; i++)
            stop_in(place);
}

static void *stop_often(void *argument)
{
    for (int i = 0; i < 100; i++)
        weir_pipeline_stop(argument);
    return NULL;
}

TEST_CASE(stop_may_be_called_by_many_at_once)
{
    for (int round = 0; round < 30; round++) {
        test_numbers numbers;
        test_recorder recorder;
        weir_builder *builder = endless_builder(&numbers);
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build_watched(builder, &recorder, 2);
        pthread_t threads[4];
        next_value(pipeline);
        for (size_t i = 0; i < LENGTH(threads); i++)
            threads[i] = thread_start(stop_often, pipeline);
        int status;
        drain(pipeline, &status);
        assert_int_equal(status, WEIR_ESTOPPED);
        for (size_t i = 0; i < LENGTH(threads); i++)
            thread_join(threads[i]);
        stop_and_check(pipeline, &recorder);
    }
}

typedef struct cancelling_config {
    test_pending pending;
    test_counter asked;
} cancelling_config;

static int wait_for_completion(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    cancelling_config *config = (cancelling_config *)weir_task_config(task);
    (void)worker;
    (void)out;
    pending_add(&config->pending, task, in);
    return WEIR_PENDING;
}

static void ask_for_completion(void *worker, weir_task *task)
{
    (void)worker;
    counter_add(&((cancelling_config *)weir_task_config(task))->asked, 1);
}

/* The completion that cancel asks for comes from another thread: before, while or after cancel runs. */
TEST_CASE(a_completion_may_meet_the_cancel)
{
    static const weir_op op = { .name = "meeting", .run = wait_for_completion, .cancel = ask_for_completion };
    for (int round = 0; round < 100; round++) {
        cancelling_config config = { .pending = PENDING, .asked = COUNTER };
        test_numbers numbers;
        test_recorder recorder;
        weir_builder *builder = endless_builder(&numbers);
        weir_builder_pipe(builder, &op, &config, 0, &(weir_stage_options){ .concurrency = 4 });
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
        pending_await(&config.pending, 4);
        weir_pipeline_stop(pipeline);
        if (round % 2)
            counter_await(&config.asked, 1);
        for (int i = 0; i < 4; i++)
            weir_task_complete(pending_take(&config.pending, NULL), WEIR_ESTOPPED, NULL);
        free_and_check(pipeline, &recorder, WEIR_ESTOPPED);
        assert_true(counter_value(&config.asked) <= 4);
    }
}

/* ---- after the end -------------------------------------------------------------------------------------------- */

TEST_CASE(a_stop_after_the_end_changes_nothing)
{
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
    weir_item item;
    assert_int_equal(drain_all(pipeline), 10);
    weir_pipeline_stop(pipeline);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    free_and_check(pipeline, &recorder, WEIR_OK);
}

TEST_CASE(a_stop_after_a_failure_changes_nothing)
{
    test_recorder recorder;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 10, .end_status = WEIR_EIO };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
    weir_item item;
    int status;
    assert_int_equal(drain(pipeline, &status), 10);
    weir_pipeline_stop(pipeline);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EFAILED);
    free_and_check(pipeline, &recorder, WEIR_EFAILED);
}

/* Everything is made, but the consumer does not take it. */
TEST_CASE(free_without_draining)
{
    for (uint64_t taken = 0; taken < 12; taken++) {
        test_recorder recorder;
        ledger_init(&ledger);
        test_numbers numbers = { .ledger = &ledger, .count = 10, .labelled = true };
        weir_builder *builder = builder_with(&numbers);
        weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
        weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 20 });
        weir_pipeline *pipeline = build_watched(builder, &recorder, 1);
        for (uint64_t i = 0; i < taken && i < 10; i++)
            assert_int_equal(next_value(pipeline), i);
        weir_pipeline_free(pipeline);
        assert_true(recorder.ended);
        recorder_free(&recorder);
        ledger_close(&ledger);
    }
}

TEST_CASE(free_at_once)
{
    for (int i = 0; i < 200; i++) {
        test_numbers numbers;
        weir_builder *builder = endless_builder(&numbers);
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 3, .threads = 2 });
        weir_builder_sink(builder, NULL);
        weir_pipeline_free(build(builder, NULL));
        ledger_close(&ledger);
    }
}

/* 64 busy slots that check regularly: only a hang takes longer than a test may. */
TEST_CASE(stop_is_over_soon)
{
    test_counter inside = COUNTER;
    test_numbers numbers;
    weir_builder *builder = endless_builder(&numbers);
    weir_builder_pipe(builder, &obeying_op, &inside, 0, &(weir_stage_options){ .concurrency = 64, .threads = 64 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    counter_await(&inside, 64);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- what is not allowed ------------------------------------------------------------------------------------ */

typedef struct self_free {
    _Atomic(weir_pipeline *) pipeline;
    test_gate gate;
    test_counter tried;
} self_free;

static int free_own_pipeline(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    self_free *self = (self_free *)weir_task_config(task);
    (void)worker;
    gate_pass(&self->gate);
    weir_pipeline_free(atomic_load(&self->pipeline));
    counter_add(&self->tried, 1);
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(free_from_a_task_stops_and_says_so)
{
    static const weir_op op = { .name = "suicidal", .run = free_own_pipeline };
    self_free self = { .gate = GATE, .tried = COUNTER };
    char line[512];
    int status;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &self, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    atomic_store(&self.pipeline, pipeline);
    gate_open(&self.gate);
    counter_await(&self.tried, 1);
    drain(pipeline, &status);
    assert_int_equal(status, WEIR_ESTOPPED);
    last_logged_line(WEIR_LOG_ERROR, line, sizeof line);
    assert_non_null(strstr(line, "weir_pipeline_free"));
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* The very first task: *pipeline is set before it starts. */
static int stop_own_pipeline(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    weir_pipeline *const *place = weir_task_config(task);
    REQUIRE(*place && weir_pipeline_stop(*place) == WEIR_OK);
    return WEIR_EOF;
}

TEST_CASE(a_task_can_stop_its_own_pipeline)
{
    static const weir_op op = { .name = "self", .run = stop_own_pipeline };
    for (int i = 0; i < 200; i++) {
        weir_pipeline *pipeline = NULL;
        weir_item item;
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &op, &pipeline, 0, NULL);
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_ESTOPPED);
        weir_pipeline_free(pipeline);
    }
}

/* Each call in a child, which would hang or be killed after 20 s. Returns which one was wrong, or 0. */
static int use_in_child(weir_pipeline *pipeline)
{
    weir_item item = { 0 };
    weir_error error;
    weir_account account;
    weir_snapshot *snapshot;
    char *text;
    int fd, call = 1;
    alarm(20);
#define FORKED(result) \
    if ((result) != WEIR_EFORKED) \
        return call; \
    call++
    FORKED(weir_pipeline_next(pipeline, &item, WEIR_FOREVER));
    FORKED(weir_pipeline_stop(pipeline));
    FORKED(weir_pipeline_stop_from_signal(pipeline));
    FORKED(weir_pipeline_stop_on_signals(pipeline));
    FORKED(weir_pipeline_stop_signal(pipeline));
    FORKED(weir_pipeline_poll_fd(pipeline, &fd));
    FORKED(weir_pipeline_error(pipeline, NULL, &error));
    FORKED(error.status);
    FORKED(weir_pipeline_account(pipeline, NULL, &account));
    FORKED(weir_pipeline_set_concurrency(pipeline, "src", 1));
    FORKED(weir_pipeline_set_threads(pipeline, NULL, 1));
    FORKED(weir_pipeline_set_speedup(pipeline, NULL, 0));
    FORKED(weir_pipeline_snapshot(pipeline, &snapshot));
    FORKED(weir_pipeline_event(pipeline, "name", NULL, NULL));
    FORKED(weir_pipeline_mark_step(pipeline, 1));
    FORKED(weir_pipeline_mark_phase(pipeline, "train"));
    FORKED(weir_pipeline_mark_mode(pipeline, "train"));
    FORKED(weir_pipeline_trace(pipeline, true));
    FORKED(weir_pipeline_checkpoint(pipeline, &text));
    FORKED(weir_checkpoint_store(pipeline, "/nowhere/x", NULL, 0, NULL));
    FORKED(weir_item_done(pipeline, &item));
#undef FORKED
    weir_pipeline_free(pipeline);
    return 0;
}

TEST_CASE(a_forked_child_gets_an_error)
{
#ifdef SANITIZED_THREADS /* starts no threads after fork(), and delays signals */
    skip();
#endif
    test_ledger used = LEDGER;
    test_numbers numbers = { .ledger = &used, .count = 100 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(
        builder, &(weir_pipeline_options){ .checkpoints = WEIR_CHECKPOINTS_DONE, .stall_warning_ns = WEIR_FOREVER });
    assert_int_equal(weir_pipeline_stop_on_signals(pipeline), WEIR_OK);
    next_value(pipeline);
    int status;
    pid_t child = fork();
    if (child == 0) {
        int wrong = use_in_child(pipeline);
        if (wrong)
            _exit(wrong);
        test_numbers own = { .ledger = &used, .count = 2 }; /* a pipeline of its own works */
        builder = builder_with(&own);
        weir_builder_sink(builder, NULL);
        weir_pipeline *mine = build(builder, NULL);
        next_value(mine);
        weir_pipeline_free(mine);
        raise(SIGTERM); /* the parent's handler stops nothing here */
        _exit(100);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
        fail_msg("call %d: signal %d", WEXITSTATUS(status), WTERMSIG(status));
    for (int i = 1; i < 100; i++)
        next_value(pipeline); /* the parent's goes on */
    weir_pipeline_free(pipeline);
    ledger_close(&used);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
