/*
 * weir_pipeline_close(): it waits no longer than it may, and what is left is freed once the code of the program returns, wherever
 * that code was.
 */
#include "tests/support.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/state/run_state.h"

static test_ledger ledger;
static test_gate gate;
static test_numbers numbers;
static test_recorder recorder;
static test_counter detached, freed;

static void count_detach(void *self)
{
    (void)self;
    counter_add(&detached, 1);
}

/* It comes after all else. */
static void count_freed(void *self)
{
    assert_ptr_equal(self, &freed);
    assert_int_equal(counter_value(&detached), 1);
    assert_true(recorder.ended);
    counter_add(&freed, 1);
}

static weir_builder *start_test(void)
{
    ledger_init(&ledger);
    gate_init(&gate);
    counter_init(&detached);
    counter_init(&freed);
    numbers = (test_numbers){ .ledger = &ledger, .count = UINT64_MAX };
    return builder_with(&numbers);
}

/* With two observers: one that records, and this one, which counts its detach(). */
static weir_pipeline *build_with_observer(weir_builder *builder, weir_observer observer)
{
    recorder_init(&recorder);
    weir_builder_sink(builder, NULL);
    weir_observer observers[] = { recorder.observer, observer };
    return build(
        builder,
        &(weir_pipeline_options){
            .threads = 2, .observers = observers, .num_observers = 2, .freed = count_freed, .freed_self = &freed });
}

static weir_pipeline *build_with_sink(weir_builder *builder)
{
    return build_with_observer(builder, (weir_observer){ .detach = count_detach });
}

static weir_pipeline *build_gated(void)
{
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &gated_op, &gate, 0, &(weir_stage_options){ .concurrency = 2 });
    return build_with_sink(builder);
}

static void assert_is_freed(int status)
{
    assert_int_equal(counter_value(&detached), 1);
    assert_int_equal(counter_value(&freed), 1);
    assert_true(recorder.ended);
    assert_int_equal(recorder.end.status, status);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* The pipeline was left while a thread waited at the gate. */
static void end_left(void)
{
    assert_int_equal(counter_value(&detached), 0);
    assert_int_equal(counter_value(&freed), 0);
    assert_int_equal(weir_pipeline_close_wait(0), WEIR_ETIMEDOUT);
    assert_int_equal(weir_pipeline_close_wait(WEIR_MILLISECOND), WEIR_ETIMEDOUT);
    gate_open(&gate);
    assert_int_equal(weir_pipeline_close_wait(WEIR_FOREVER), WEIR_OK);
    assert_int_equal(weir_pipeline_close_wait(0), WEIR_OK);
    assert_is_freed(WEIR_ESTOPPED);
}

/* ---- without anything that blocks ------------------------------------------------------------------------------- */

TEST_CASE(a_pipeline_that_can_end_is_freed_as_by_free)
{
    weir_builder *builder = start_test();
    weir_pipeline *pipeline = build_with_sink(builder);
    assert_int_equal(next_value(pipeline), 0);
    assert_int_equal(weir_pipeline_close(pipeline, WEIR_FOREVER), WEIR_OK);
    assert_is_freed(WEIR_ESTOPPED);
}

TEST_CASE(free_says_that_all_is_freed)
{
    weir_builder *builder = start_test();
    weir_pipeline *pipeline = build_with_sink(builder);
    assert_int_equal(next_value(pipeline), 0);
    weir_pipeline_free(pipeline);
    assert_is_freed(WEIR_ESTOPPED);
}

TEST_CASE(a_pipeline_whose_work_has_ended_is_closed_with_its_status)
{
    weir_builder *builder = start_test();
    numbers.count = 5;
    weir_pipeline *pipeline = build_with_sink(builder);
    assert_int_equal(drain_all(pipeline), 5);
    await_work_end(pipeline);
    assert_int_equal(weir_pipeline_close(pipeline, INT64_MAX), WEIR_OK);
    assert_is_freed(WEIR_OK);
}

TEST_CASE(a_failed_pipeline_is_closed_as_failed)
{
    weir_builder *builder = start_test();
    numbers.count = 3;
    numbers.end_status = WEIR_EIO;
    weir_pipeline *pipeline = build_with_sink(builder);
    int status;
    drain(pipeline, &status);
    assert_int_equal(status, WEIR_EFAILED);
    assert_int_equal(weir_pipeline_close(pipeline, WEIR_FOREVER), WEIR_OK);
    assert_is_freed(WEIR_EFAILED);
}

TEST_CASE(what_is_no_pipeline_or_no_time_is_refused)
{
    weir_builder *builder = start_test();
    weir_pipeline *pipeline = build_with_sink(builder);
    assert_int_equal(weir_pipeline_close(NULL, 0), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_close(pipeline, -2), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_close_wait(-2), WEIR_EINVAL);
    assert_int_equal(next_value(pipeline), 0); /* it still runs */
    assert_int_equal(weir_pipeline_close(pipeline, WEIR_FOREVER), WEIR_OK);
    assert_is_freed(WEIR_ESTOPPED);
}

/* ---- code that blocks -------------------------------------------------------------------------------------------- */

TEST_CASE(a_task_that_blocks_is_left_and_freed_when_it_returns)
{
    weir_pipeline *pipeline = build_gated();
    gate_await_waiting(&gate, 2);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    end_left();
}

TEST_CASE(a_close_waits_for_its_time)
{
    weir_pipeline *pipeline = build_gated();
    gate_await_waiting(&gate, 2);
    int64_t begin_ns = weir_clock_ns();
    assert_int_equal(weir_pipeline_close(pipeline, 20 * WEIR_MILLISECOND), WEIR_ETIMEDOUT);
    assert_true(weir_clock_ns() - begin_ns >= 20 * WEIR_MILLISECOND);
    end_left();
}

static void *open_gate_once_stopped(void *argument)
{
    (void)argument;
    while (gate_waiting(&gate) < 3) /* all three tasks */
        sched_yield();
    gate_open(&gate);
    return NULL;
}

static int block_until_stopped(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    (void)in;
    while (!weir_task_should_stop(task))
        sched_yield();
    gate_pass(&gate);
    return WEIR_ESTOPPED;
}

static const weir_op stubborn_op = { .name = "stubborn", .run = block_until_stopped };

TEST_CASE(a_task_that_returns_in_time_is_waited_for)
{
    pthread_t thread;
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &stubborn_op, NULL, 0, &(weir_stage_options){ .concurrency = 3, .threads = 3 });
    weir_pipeline *pipeline = build_with_sink(builder);
    AWAIT_SLOTS(pipeline, "0:1:stubborn[3]", running, 3);
    pthread_create(&thread, NULL, open_gate_once_stopped, NULL);
    assert_int_equal(weir_pipeline_close(pipeline, WEIR_FOREVER), WEIR_OK);
    pthread_join(thread, NULL);
    assert_is_freed(WEIR_ESTOPPED);
}

/* Each place of an operation where code may block. */
static int block_in_init(void *worker, const void *config, weir_task *task)
{
    (void)worker;
    (void)config;
    (void)task;
    gate_pass(&gate);
    return WEIR_OK;
}

static void block_in_free(void *worker)
{
    (void)worker;
    gate_pass(&gate);
}

static int pass_on(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(a_worker_that_blocks_when_it_is_made_is_left)
{
    static const weir_op op = { .name = "slow_init", .worker_init = block_in_init, .run = pass_on };
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_pipeline *pipeline = build_with_sink(builder);
    gate_await_waiting(&gate, 1);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    end_left();
}

/* The observers are gone when workers are freed. */
TEST_CASE(a_worker_that_blocks_when_it_is_freed_is_left)
{
    static const weir_op op = { .name = "slow_free", .run = pass_on, .worker_size = 8, .worker_free = block_in_free };
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_pipeline *pipeline = build_with_sink(builder);
    assert_int_equal(next_value(pipeline), 0);
    assert_int_equal(weir_pipeline_close(pipeline, WEIR_MILLISECOND), WEIR_ETIMEDOUT);
    gate_await_waiting(&gate, 1);
    assert_int_equal(weir_pipeline_close_wait(0), WEIR_ETIMEDOUT);
    gate_open(&gate);
    assert_int_equal(weir_pipeline_close_wait(WEIR_FOREVER), WEIR_OK);
    assert_is_freed(WEIR_ESTOPPED);
}

static void block_in_cancel(void *worker, weir_task *task)
{
    (void)worker;
    gate_pass(&gate);
    weir_task_complete(task, WEIR_ESTOPPED, NULL);
}

static int stay_pending(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    (void)task;
    return WEIR_PENDING;
}

TEST_CASE(a_cancel_that_blocks_is_left)
{
    static const weir_op op = { .name = "slow_cancel", .run = stay_pending, .cancel = block_in_cancel };
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_pipeline *pipeline = build_with_sink(builder);
    AWAIT_SLOTS(pipeline, "0:1:slow_cancel", pending, 1);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    gate_await_waiting(&gate, 1);
    end_left();
}

TEST_CASE(a_pending_task_that_nobody_completes_is_left_until_somebody_does)
{
    test_pending pending = PENDING;
    weir_item *in;
    pending_init(&pending);
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &pending_op, &pending, 0, NULL);
    weir_pipeline *pipeline = build_with_sink(builder);
    weir_task *task = pending_take(&pending, &in);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    assert_int_equal(weir_pipeline_close_wait(0), WEIR_ETIMEDOUT);
    assert_true(weir_task_should_stop(task));
    weir_task_complete(task, WEIR_OK, in);
    assert_int_equal(weir_pipeline_close_wait(WEIR_FOREVER), WEIR_OK);
    assert_is_freed(WEIR_ESTOPPED);
}

static int block_in_hook(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)self;
    (void)state;
    (void)task;
    (void)in;
    gate_pass(&gate);
    return WEIR_OK;
}

TEST_CASE(a_hook_that_blocks_is_left)
{
    weir_task_hook hook = { .begin = block_in_hook };
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .task_hooks = &hook, .num_task_hooks = 1 });
    weir_pipeline *pipeline = build_with_sink(builder);
    gate_await_waiting(&gate, 1);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    end_left();
}

static int end_slowly(void *self, const char *stage, weir_error *error)
{
    return self && stage && error ? block_in_hook(NULL, NULL, NULL, NULL) : WEIR_EHOOK;
}

TEST_CASE(a_stage_hook_that_blocks_at_the_end_is_left)
{
    weir_stage_hook hook = { .self = &gate, .end = end_slowly };
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .stage_hooks = &hook, .num_stage_hooks = 1 });
    weir_pipeline *pipeline = build_with_sink(builder);
    assert_int_equal(next_value(pipeline), 0);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    gate_await_waiting(&gate, 1);
    end_left();
}

static void block_in_event(void *self, const weir_event *event)
{
    (void)self;
    (void)event;
    gate_pass(&gate);
}

TEST_CASE(an_observer_that_blocks_is_left)
{
    weir_builder *builder = start_test();
    weir_pipeline *pipeline =
        build_with_observer(builder, (weir_observer){ .event = block_in_event, .detach = count_detach });
    assert_int_equal(weir_pipeline_event(pipeline, "named", NULL, NULL), WEIR_OK);
    gate_await_waiting(&gate, 1);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    end_left();
}

static void block_in_release(void *data, void *owner)
{
    (void)owner;
    gate_pass(&gate);
    free(data);
}

static int make_slow_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)task;
    out->data = malloc(1);
    out->release = block_in_release;
    return out->data ? WEIR_OK : WEIR_ENOMEM;
}

TEST_CASE(a_release_function_that_blocks_is_left)
{
    static const weir_op op = { .name = "slow_items", .run = make_slow_item };
    weir_builder_free(start_test()); /* pipelines of its own */
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &op, NULL, 0, NULL);
    weir_pipeline *pipeline = build_with_sink(builder);
    AWAIT_SLOTS(pipeline, "0:0:src", waiting_out, 1);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    gate_await_waiting(&gate, 1);
    end_left();
}

/* ---- who closes, and who waits ---------------------------------------------------------------------------------------- */

static _Atomic(weir_pipeline *) to_close;
static atomic_int close_status, next_status;

static int close_itself(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    weir_pipeline *pipeline;
    (void)worker;
    (void)task;
    gate_pass(&gate);
    if ((pipeline = atomic_exchange(&to_close, NULL)))
        atomic_store(&close_status, weir_pipeline_close(pipeline, WEIR_FOREVER));
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(a_task_may_close_its_own_pipeline_and_does_not_wait)
{
    static const weir_op op = { .name = "closer", .run = close_itself };
    weir_builder *builder = start_test();
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_pipeline *pipeline = build_with_sink(builder);
    atomic_store(&to_close, pipeline);
    gate_open(&gate);
    while (counter_value(&detached) == 0)
        sched_yield();
    assert_int_equal(weir_pipeline_close_wait(WEIR_FOREVER), WEIR_OK);
    assert_int_equal(atomic_load(&close_status), WEIR_ETIMEDOUT);
    assert_is_freed(WEIR_ESTOPPED);
}

static void *wait_for_item(void *pipeline)
{
    weir_item item = { 0 };
    atomic_store(&next_status, weir_pipeline_next(pipeline, &item, WEIR_FOREVER));
    weir_item_release(&item);
    return NULL;
}

static void await_sleeping_consumers(weir_pipeline *pipeline, uint32_t expected)
{
    uint32_t waiting = 0;
    while (waiting != expected) {
        sched_yield();
        uv_mutex_lock(&pipeline->lock);
        waiting = pipeline->consumer.waiting;
        uv_mutex_unlock(&pipeline->lock);
    }
}

static test_gate in_mark = GATE;

/* The consumer is held up in weir_pipeline_next(), which has a result already. */
static void block_in_mark(void *self, const weir_mark *mark)
{
    (void)self;
    if (mark->kind == WEIR_MARK_EPOCH && mark->begins)
        gate_pass(&in_mark);
}

TEST_CASE(a_consumer_that_waits_is_told_and_waited_for)
{
    pthread_t consumers[2];
    weir_pipeline *pipeline = build_gated();
    gate_await_waiting(&gate, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&consumers[i], NULL, wait_for_item, pipeline);
    await_sleeping_consumers(pipeline, 2);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    for (int i = 0; i < 2; i++)
        pthread_join(consumers[i], NULL);
    assert_int_equal(atomic_load(&next_status), WEIR_ESTOPPED);
    end_left();
}

TEST_CASE(a_consumer_that_is_still_in_next_keeps_the_pipeline)
{
    pthread_t consumer;
    weir_builder *builder = start_test();
    numbers.count = 1;
    gate_init(&in_mark);
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_pipeline *pipeline =
        build_with_observer(builder, (weir_observer){ .mark = block_in_mark, .detach = count_detach });
    pthread_create(&consumer, NULL, wait_for_item, pipeline);
    gate_await_waiting(&gate, 1);
    await_sleeping_consumers(pipeline, 1);
    gate_open(&gate);
    gate_await_waiting(&in_mark, 1);
    assert_int_equal(weir_pipeline_close(pipeline, WEIR_MILLISECOND), WEIR_ETIMEDOUT);
    assert_int_equal(counter_value(&detached), 0);
    gate_open(&in_mark);
    pthread_join(consumer, NULL);
    assert_int_equal(weir_pipeline_close_wait(WEIR_FOREVER), WEIR_OK);
    assert_is_freed(WEIR_OK);
}

TEST_CASE(all_that_are_left_are_waited_for)
{
    enum { COUNT = 8 };
    weir_builder_free(start_test()); /* pipelines of its own */
    for (int i = 0; i < COUNT; i++) {
        weir_builder *builder = builder_with(&numbers);
        weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 1 });
        gate_await_waiting(&gate, (uint64_t)i + 1);
        assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    }
    assert_int_equal(weir_pipeline_close_wait(0), WEIR_ETIMEDOUT);
    gate_open(&gate);
    assert_int_equal(weir_pipeline_close_wait(WEIR_FOREVER), WEIR_OK);
    ledger_close(&ledger);
}

/* At any moment of a run, with any time. */
TEST_CASE(pipelines_are_closed_at_any_moment)
{
    for (unsigned i = 0; i < 200; i++) {
        weir_builder *builder = start_test();
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
        weir_pipeline *pipeline = build_with_sink(builder);
        for (unsigned taken = 0; taken < i % 7; taken++)
            next_value(pipeline);
        int status = weir_pipeline_close(pipeline, (int64_t)(i % 5) * 50 * WEIR_MICROSECOND);
        assert_true(status == WEIR_OK || status == WEIR_ETIMEDOUT);
        assert_int_equal(weir_pipeline_close_wait(WEIR_FOREVER), WEIR_OK);
        assert_is_freed(WEIR_ESTOPPED);
    }
}

TEST_CASE(a_child_process_neither_closes_nor_waits)
{
    weir_pipeline *pipeline = build_gated();
    gate_await_waiting(&gate, 2);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *other = build(builder, NULL);
    assert_int_equal(weir_pipeline_close(pipeline, 0), WEIR_ETIMEDOUT);
    pid_t child = fork();
    if (child == 0)
        _exit(weir_pipeline_close(other, 0) == WEIR_EFORKED && weir_pipeline_close_wait(WEIR_FOREVER) == WEIR_OK ? 0
                                                                                                                 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(weir_pipeline_close(other, WEIR_FOREVER), WEIR_OK);
    end_left();
}

/* ---- forks --------------------------------------------------------------------------------------------------------- */

static atomic_bool has_forked;

/* Runs a pipeline, and takes the locks of the process that this needs. */
static void run_short_one(void)
{
    test_ledger used = LEDGER;
    test_numbers few = { .ledger = &used, .count = 3 };
    weir_builder *builder = builder_with(&few);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = NULL;
    if (weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1 }, &pipeline, NULL) != WEIR_OK)
        abort();
    weir_pipeline_stop_on_signals(pipeline);
    weir_pipeline_close(pipeline, WEIR_FOREVER);
    ledger_close(&used);
}

static void run_until_forked(void *unused)
{
    (void)unused;
    while (!atomic_load(&has_forked))
        run_short_one();
}

/* A child that waits for a thread of the parent is killed by the alarm. */
static int fork_one(void)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        run_short_one();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

TEST_CASE(forked_children_run_pipelines_while_threads_of_the_parent_do)
{
    enum { NUM_THREADS = 3, NUM_FORKS = 200 };
    uv_thread_t threads[NUM_THREADS];
#ifdef SANITIZED /* a sanitizer has locks of its own, which it does not hold during a fork */
    skip();
#endif
    atomic_store(&has_forked, false);
    for (int i = 0; i < NUM_THREADS; i++)
        assert_int_equal(uv_thread_create(&threads[i], run_until_forked, NULL), 0);
    int status = 0;
    for (int i = 0; i < NUM_FORKS && status == 0; i++)
        status = fork_one();
    atomic_store(&has_forked, true);
    for (int i = 0; i < NUM_THREADS; i++)
        uv_thread_join(&threads[i]);
    assert_int_equal(status, 0);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
