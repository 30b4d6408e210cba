/* Bursts, and items that are taken ahead (engine/state/burst.h): what an operation, a consumer or a program waits for comes,
   although steps run, and items are taken, without the lock. */
#include "tests/support.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/state/run_state.h"

/*
 * Short steps. After 2000 of them, every tenth ends while the consumer sleeps:
 *   in_burst   the consumer falls asleep in the middle of a burst. The burst seems to have just begun, so it does not
 *              end for having lasted too long. The next step waits until the item of this one is delivered
 *   else       it makes nothing, and the second one after it waits until the item in between is delivered
 */
typedef struct late_source {
    bool in_burst;
    int64_t num_steps, num_made, num_waits, num_in_burst;
    test_counter delivered;
    pid_t consumer;
} late_source;

enum { LATE_STEPS = 16000, LATE_FROM = 2000, LATE_BURSTS = 1000 };

/* Until the thread is blocked in the kernel. */
static void await_sleep_of(pid_t thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    while (state != 'S') {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
        sched_yield();
    }
}

/* As if it had begun now. False = the step is not in a burst, or is the last one of it. */
static bool extend_burst(weir_pool_thread *thread)
{
    thread->began_ns = weir_clock_ns();
    return thread->burst.num_passed < thread->burst.plan.num_steps;
}

static int wait_for_consumer(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    late_source *late = (late_source *)(uintptr_t)weir_task_config(task);
    (void)worker;
    (void)in;
    int64_t step = late->num_steps++;
    bool sleeps = step >= LATE_FROM && step % 10 == 5;
    bool waits = sleeps || (step >= LATE_FROM && step % 10 == (late->in_burst ? 6 : 7));
    if (late->in_burst ? late->num_in_burst == LATE_BURSTS : step == LATE_STEPS)
        return WEIR_EOF;
    late->num_waits += waits;
    if (waits)
        counter_await(&late->delivered, late->num_made);
    if (sleeps)
        await_sleep_of(late->consumer);
    if (sleeps && !late->in_burst)
        return WEIR_SKIP;
    if (sleeps)
        late->num_in_burst += extend_burst(task->thread);
    late->num_made++;
    out->data = late;
    return WEIR_OK;
}

static const weir_op late_source_op = { .name = "late", .run = wait_for_consumer };

/* The same as weir_pipeline_next(), but from some item on in the way of an event loop. */
static int next_of_late(weir_pipeline *pipeline, weir_item *item, bool polls)
{
    struct pollfd poll_fd = { .events = POLLIN };
    if (!polls)
        return weir_pipeline_next(pipeline, item, WEIR_FOREVER);
    assert_int_equal(weir_pipeline_poll_fd(pipeline, &poll_fd.fd), WEIR_OK);
    int status;
    while ((status = weir_pipeline_next(pipeline, item, 0)) == WEIR_ETIMEDOUT)
        assert_int_equal(poll(&poll_fd, 1, -1), 1);
    return status;
}

static void take_from_late_source(uint32_t threads, bool polls, bool in_burst)
{
    late_source late = { .in_burst = in_burst, .consumer = (pid_t)syscall(SYS_gettid) };
    counter_init(&late.delivered);
    weir_stage_options options = { .queue_items = 32 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &late_source_op, &late, 0, &options);
    weir_builder_sink(builder, &options);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = threads });
    weir_item item;
    while (next_of_late(pipeline, &item, polls && counter_value(&late.delivered) >= LATE_FROM) == WEIR_OK)
        counter_add(&late.delivered, 1);
    assert_int_equal(counter_value(&late.delivered), late.num_made);
    if (!in_burst)
        assert_int_equal(late.num_waits, (LATE_STEPS - LATE_FROM) / 5);
    weir_pipeline_free(pipeline);
}

TEST_CASE(a_sleeping_consumer_gets_a_result_while_the_next_step_waits_for_that)
{
    take_from_late_source(1, false, false);
    take_from_late_source(2, false, false);
}

TEST_CASE(a_consumer_that_falls_asleep_in_a_burst_gets_its_result)
{
    take_from_late_source(1, false, true);
}

TEST_CASE(a_descriptor_is_readable_while_the_next_step_waits_for_that)
{
    take_from_late_source(1, true, false);
    take_from_late_source(2, true, false);
}

/* ---- waking ------------------------------------------------------------------------------------------------------- */

enum { WAKE_ITEMS = 50000, ROOM_ITEMS = 1000, WAKE_ROOM = 32 };

static weir_pipeline *build_short_steps(const test_numbers *numbers, uint32_t room)
{
    weir_stage_options options = { .queue_items = room };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, numbers, 0, &options);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &options);
    weir_builder_sink(builder, &options);
    return build(builder, &(weir_pipeline_options){ .threads = 1 });
}

#ifndef SANITIZED /* the steps would not be short */
/* How often the calling thread has slept. */
static int64_t count_sleeps(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

static int64_t count_sleeps_on_one_cpu(uint32_t room)
{
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    test_ledger ledger = LEDGER;
    weir_pipeline *pipeline = build_short_steps(&(test_numbers){ .ledger = &ledger, .count = WAKE_ITEMS }, room);
    int64_t num_sleeps = count_sleeps();
    assert_int_equal(drain_all(pipeline), WAKE_ITEMS);
    num_sleeps = count_sleeps() - num_sleeps;
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    return num_sleeps;
}

/* Room for one item holds four: in the two queues, and at the stage and the sink that wait for room. */
TEST_CASE(on_one_cpu_a_consumer_sleeps_once_for_many_short_steps)
{
    assert_true(count_sleeps_on_one_cpu(1) < WAKE_ITEMS / 3);
    assert_true(count_sleeps_on_one_cpu(WAKE_ROOM) < WAKE_ITEMS / 25);
}
#endif

/* The first item that is taken wakes no thread, as the consumer has enough; then it takes no more. */
TEST_CASE(room_is_used_although_the_consumer_takes_no_more)
{
    enum { FULL = 3 * (WAKE_ROOM + 1) };
    for (uint64_t i = 0; i < 20; i++) {
        test_ledger ledger = LEDGER;
        test_counter made;
        counter_init(&made);
        weir_pipeline *pipeline =
            build_short_steps(&(test_numbers){ .ledger = &ledger, .count = ROOM_ITEMS, .made = &made }, WAKE_ROOM);
        counter_await(&made, FULL);
        await_sleep_of(atomic_load(&pipeline->pools[0]->threads[0]->tid));
        next_value(pipeline);
        counter_await(&made, FULL + 1);
        assert_int_equal(drain_all(pipeline), ROOM_ITEMS - 1);
        weir_pipeline_free(pipeline);
        ledger_close(&ledger);
    }
}

/* Short steps, but one of them waits until the next item was run, which needs another slot. */
typedef struct stuck_stage {
    uint64_t seq; /* of the item that waits */
    test_counter stuck, passed;
} stuck_stage;

static int wait_for_next_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    stuck_stage *stuck = (stuck_stage *)(uintptr_t)weir_task_config(task);
    (void)worker;
    if (in->seq == stuck->seq) {
        counter_add(&stuck->stuck, 1);
        counter_await(&stuck->passed, 1);
    } else if (in->seq == stuck->seq + 1) {
        counter_add(&stuck->passed, 1);
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op stuck_op = { .name = "stuck", .run = wait_for_next_item };

static void *take_all(void *argument)
{
    weir_item item;
    while (weir_pipeline_next(argument, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    return NULL;
}

static void add_slot_while_stuck(uint64_t seq)
{
    stuck_stage stuck = { .seq = seq };
    counter_init(&stuck.stuck);
    counter_init(&stuck.passed);
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = LATE_STEPS };
    weir_stage_options options = { .queue_items = 32 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &options);
    weir_builder_pipe(builder, &stuck_op, &stuck, 0, &options);
    weir_builder_sink(builder, &options);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    pthread_t consumer = thread_start(take_all, pipeline);
    counter_await(&stuck.stuck, 1);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "stuck", 2), WEIR_OK);
    thread_join(consumer);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(a_slot_that_is_added_runs_the_next_item_of_a_step_that_takes_long)
{
    for (uint64_t seq = LATE_FROM; seq < LATE_FROM + 16; seq++) /* the first and the last of a burst are others */
        add_slot_while_stuck(seq);
}

/* ---- what the consumer takes without the lock --------------------------------------------------------------------- */

enum { AHEAD_ITEMS = 4000, AHEAD_ROOM = 8 };

/* A source and a sink, with queues of AHEAD_ROOM. */
static weir_pipeline *build_numbers(const test_numbers *numbers)
{
    weir_stage_options options = { .queue_items = AHEAD_ROOM };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, numbers, 0, &options);
    weir_builder_sink(builder, &options);
    return build(builder, &(weir_pipeline_options){ .threads = 1 });
}

/* Without weir__engine_lock(), which tells the core. */
static uint64_t taken_as_reported(weir_pipeline *pipeline)
{
    uv_mutex_lock(&pipeline->lock);
    uint64_t num_taken = pipeline->core.sink->total_got;
    uv_mutex_unlock(&pipeline->lock);
    return num_taken;
}

/* All queues are full. The first item that is taken lets the stages go on. One has no room for its next result. Then
   the only thread is in a step of the other one, which takes long. */
TEST_CASE(the_engine_knows_at_once_of_room_for_which_a_task_waits)
{
    enum { ROOM_BEFORE_SINK = 3 * AHEAD_ROOM + 3, ROOM = ROOM_BEFORE_SINK + AHEAD_ROOM + 1 };
    test_ledger ledger = LEDGER;
    test_counter made;
    stuck_stage stuck = { .seq = ROOM_BEFORE_SINK };
    counter_init(&made);
    counter_init(&stuck.stuck);
    counter_init(&stuck.passed);
    test_numbers numbers = { .ledger = &ledger, .count = AHEAD_ITEMS, .made = &made };
    weir_stage_options options = { .queue_items = AHEAD_ROOM };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &options);
    weir_builder_pipe(builder, &stuck_op, &stuck, 0, &options);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &options);
    weir_builder_sink(builder, &options);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 1 });
    counter_await(&made, ROOM);
    await_sleep_of(atomic_load(&pipeline->pools[0]->threads[0]->tid));
    next_value(pipeline);
    assert_int_equal(pipeline->consumer.ahead.num_planned, AHEAD_ROOM - 1);
    counter_await(&stuck.stuck, 1);
    next_value(pipeline);
    assert_int_equal(taken_as_reported(pipeline), 2);
    counter_add(&stuck.passed, 1);
    assert_int_equal(drain_all(pipeline), AHEAD_ITEMS - 2);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* The items that the consumer could still take stay in the queue. */
TEST_CASE(an_item_counts_as_taken_when_next_returns_it)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = AHEAD_ITEMS };
    weir_pipeline *pipeline = build_numbers(&numbers);
    weir_item item;
    uint64_t num_ahead = 0;
    for (uint64_t i = 1; i <= AHEAD_ITEMS; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        weir_item_release(&item);
        num_ahead += atomic_load(&pipeline->consumer.ahead.progress) & 0xFF ? 1 : 0;
        if (i % 7)
            continue;
        weir_snapshot *snapshot = NULL;
        assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
        const weir_queue_snapshot *sink = &snapshot->queues[snapshot->num_queues - 1];
        assert_int_equal(sink->num_items, i);
        assert_int_equal(sink->num_put, i + sink->depth);
        weir_snapshot_free(snapshot);
    }
    assert_true(num_ahead > 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(nothing_is_taken_after_a_stop_and_what_could_be_is_released)
{
    for (uint64_t num_taken = 1; num_taken <= 2 * AHEAD_ROOM; num_taken++) {
        test_ledger ledger = LEDGER;
        test_counter made;
        counter_init(&made);
        test_numbers numbers = { .ledger = &ledger, .count = AHEAD_ITEMS, .made = &made };
        weir_pipeline *pipeline = build_numbers(&numbers);
        weir_item item;
        counter_await(&made, 2 * AHEAD_ROOM + 2); /* all is full */
        for (uint64_t i = 0; i < num_taken; i++)
            next_value(pipeline);
        assert_int_equal(weir_pipeline_stop(pipeline), WEIR_OK);
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_ESTOPPED);
        await_work_end(pipeline);
        weir_account account;
        assert_int_equal(weir_pipeline_account(pipeline, NULL, &account), WEIR_OK);
        assert_int_equal(account.taken, account.passed_on + account.dropped);
        assert_int_equal(account.passed_on, num_taken);
        weir_pipeline_free(pipeline);
        ledger_close(&ledger);
    }
}

/* One consumer takes ahead, the other one ends its plans. */
typedef struct shared_sink {
    weir_pipeline *pipeline;
    atomic_bool seen[AHEAD_ITEMS];
} shared_sink;

static void *take_shared(void *argument)
{
    shared_sink *shared = argument;
    uint64_t last = 0;
    weir_item item;
    while (weir_pipeline_next(shared->pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        assert_true(item_value(&item) >= last);
        assert_false(atomic_exchange(&shared->seen[item_value(&item)], true));
        last = item_value(&item);
        weir_item_release(&item);
    }
    return NULL;
}

TEST_CASE(several_consumers_get_each_item_once_and_in_order)
{
    for (int run = 0; run < 10; run++) {
        test_ledger ledger = LEDGER;
        test_numbers numbers = { .ledger = &ledger, .count = AHEAD_ITEMS };
        shared_sink shared = { .pipeline = build_numbers(&numbers) };
        pthread_t other = thread_start(take_shared, &shared);
        take_shared(&shared);
        thread_join(other);
        for (size_t i = 0; i < AHEAD_ITEMS; i++)
            assert_true(atomic_load(&shared.seen[i]));
        weir_pipeline_free(shared.pipeline);
        ledger_close(&ledger);
    }
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
