/* The flow of items: all arrive, in the promised order, within the limits of queues and slots, on the available
   threads. */
#include "tests/support.h"

#include <sched.h>

static test_ledger ledger;

static weir_pipeline_options one_thread = { .threads = 1 };
static weir_pipeline_options four_threads = { .threads = 4 };

/* Drains it, frees it, and asserts that exactly the values 0 … count - 1 came, in this order. */
static void assert_delivers_in_order(weir_pipeline *pipeline, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(next_value(pipeline), i);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* The same in any order. */
static void assert_delivers(weir_pipeline *pipeline, uint64_t count)
{
    bool *seen = calloc(count, sizeof *seen);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = next_value(pipeline);
        assert_true(value < count && !seen[value]);
        seen[value] = true;
    }
    free(seen);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- everything arrives ------------------------------------------------------------------------------------- */

static void deliver_through(uint32_t stages, uint32_t concurrency, uint32_t queue_items, uint32_t threads)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 300 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .queue_items = queue_items });
    for (uint32_t i = 0; i < stages; i++)
        weir_builder_pipe(builder, &pass_op, NULL, 0,
                          &(weir_stage_options){ .concurrency = concurrency, .queue_items = queue_items });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = queue_items });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = threads });
    if (concurrency == 1)
        assert_delivers_in_order(pipeline, numbers.count);
    else
        assert_delivers(pipeline, numbers.count);
}

TEST_CASE(every_item_arrives_whatever_the_shape)
{
    static const uint32_t concurrencies[] = { 1, 3, 64 }, queues[] = { 1, 2, 33 }, threads[] = { 1, 2, 5 };
    for (uint32_t stages = 0; stages <= 3; stages++)
        for (size_t i = 0; i < LENGTH(concurrencies); i++)
            for (size_t j = 0; j < LENGTH(queues); j++)
                for (size_t k = 0; k < LENGTH(threads); k++)
                    deliver_through(stages, concurrencies[i], queues[j], threads[k]);
}

TEST_CASE(a_source_without_items_ends_at_once)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    assert_delivers_in_order(build(builder, NULL), 0);
}

TEST_CASE(the_end_comes_again_and_again)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_item item;
    assert_int_equal(next_value(pipeline), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
        assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_EOF);
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static int pass_on_nothing(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    (void)task;
    return WEIR_OK;
}

/* What the operation leaves in its input is released; a result need not hold anything. */
TEST_CASE(an_item_may_be_empty)
{
    static const weir_op op = { .name = "empty", .run = pass_on_nothing };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 10, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (uint64_t i = 0; i < numbers.count; i++) {
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_null(item.data);
        assert_int_equal(item.seq, i);
        assert_int_equal(atoi(item.label + strlen("item-")), i);
        weir_item_release(&item);
    }
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- numbers and labels ------------------------------------------------------------------------------------- */

enum { CHUNKS = 3 };

/* Three chunks of each input; the last one is the input itself. */
static int cut(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *chunk = worker;
    uint64_t value = item_value(in);
    (void)task;
    if (++*chunk < CHUNKS) {
        ledger_fill(&ledger, out, value, 0);
        return WEIR_MORE;
    }
    *chunk = 0;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op cut_op = { .name = "cut", .worker_size = sizeof(uint64_t), .run = cut };

TEST_CASE(seq_and_label_are_inherited)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_pipe(builder, &cut_op, NULL, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (uint64_t i = 0; i < numbers.count * CHUNKS; i++) {
        weir_item item;
        char label[32];
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_int_equal(item_value(&item), i / CHUNKS);
        assert_int_equal(item.seq, i / CHUNKS);
        snprintf(label, sizeof label, "item-%d", (int)(i / CHUNKS));
        assert_string_equal(item.label, label);
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static int label_anew(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static _Thread_local char text[64];
    (void)worker;
    snprintf(text, sizeof text, "%s/%s", weir_task_label(task), weir_task_stage(task));
    weir_item_move(out, in);
    out->label = text;
    return WEIR_OK;
}

TEST_CASE(an_operation_may_give_a_label_of_its_own)
{
    static const weir_op op = { .name = "relabel", .run = label_anew };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 200, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &four_threads);
    weir_item item;
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        char label[64];
        snprintf(label, sizeof label, "item-%d/0:1:relabel[2]/0:2:relabel", (int)item_value(&item));
        assert_string_equal(item.label, label);
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static int check_task(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    REQUIRE(weir_task_seq(task) == item_value(in));
    REQUIRE(in->seq == item_value(in));
    REQUIRE(strcmp(weir_task_label(task), in->label) == 0);
    REQUIRE(strcmp(weir_task_stage(task), "0:1:check") == 0);
    REQUIRE(weir_task_config(task) == &ledger);
    REQUIRE(!weir_task_should_stop(task));
    REQUIRE(!out->data && !out->label && !out->size_bytes && !out->release);
    weir_item_move(out, in);
    REQUIRE(!in->data && in->label);
    return WEIR_OK;
}

TEST_CASE(a_task_knows_its_item_and_stage)
{
    static const weir_op op = { .name = "check", .run = check_task };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &ledger, 0, NULL);
    weir_builder_sink(builder, NULL);
    assert_delivers_in_order(build(builder, NULL), 20);
}

/* ---- skip and more ------------------------------------------------------------------------------------------ */

static int skip_odd(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    if (item_value(in) % 2)
        return WEIR_SKIP;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op skip_odd_op = { .name = "skip_odd", .run = skip_odd };

TEST_CASE(a_skipped_item_is_not_passed_on)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 100 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &skip_odd_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (uint64_t i = 0; i < numbers.count; i += 2)
        assert_int_equal(next_value(pipeline), i);
    assert_int_equal(drain_all(pipeline), 0);
    weir_account account = account_of(pipeline, "skip_odd");
    assert_int_equal(account.skipped, 50);
    assert_account_is_exact(&account);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

typedef struct endless_run {
    test_counter made;
} endless_run;

/* Two chunks of each input: which call this is, it asks its task. */
static int cut_in_two(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *calls = worker;
    char label[40];
    REQUIRE(weir_task_num_chunks(task) == (*calls)++ % 2);
    snprintf(label, sizeof label, "%s/%d", weir_task_num_chunks(task) ? "second" : weir_task_label(task),
             (int)*calls);
    REQUIRE(weir_task_set_label(task, label) == WEIR_OK);
    memset(label, '?', sizeof label); /* the engine has a copy */
    if (weir_task_num_chunks(task) == 0) {
        out->data = out;
        return WEIR_MORE;
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(a_task_tells_its_chunks_and_sets_its_label)
{
    static const weir_op op = { .name = "cut", .worker_size = sizeof(uint64_t), .run = cut_in_two };
    test_ledger own = LEDGER;
    weir_item item;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &own, .count = 2, .labelled = true });
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    static const char *const labels[] = { "item-0/1", "second/2", "item-1/3", "second/4" };
    for (size_t i = 0; i < LENGTH(labels); i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_string_equal(item.label, labels[i]);
        weir_item_release(&item);
        assert_string_equal(item.label, "");
    }
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&own);
}

TEST_CASE(only_weir_forever_is_a_negative_timeout)
{
    test_ledger own = LEDGER;
    weir_item item;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &own, .count = 0 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(weir_pipeline_next(pipeline, &item, -2), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_next(pipeline, &item, INT64_MIN), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    weir_pipeline_free(pipeline);
}

TEST_CASE(labels_are_never_null)
{
    test_ledger own = LEDGER;
    weir_item item;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &own, .count = 1 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    assert_string_equal(item.label, "");
    weir_item_release(&item);
    weir_pipeline_free(pipeline);
    ledger_close(&own);
}

/* One input becomes chunks without end. */
static int make_endless(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    endless_run *endless = (endless_run *)weir_task_config(task);
    (void)worker;
    ledger_fill(&ledger, out, item_value(in), 0);
    counter_add(&endless->made, 1);
    return WEIR_MORE;
}

/* A generator runs no further ahead than its queue, its slot, the sink and the sink's slot hold. */
TEST_CASE(a_generator_waits_for_room_between_its_chunks)
{
    static const weir_op op = { .name = "endless", .run = make_endless };
    enum { QUEUE = 2, SINK = 3, AHEAD = 1 + QUEUE + 1 + SINK };
    endless_run endless = { .made = COUNTER };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &endless, 0, &(weir_stage_options){ .queue_items = QUEUE });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = SINK });
    weir_pipeline *pipeline = build(builder, &one_thread);
    for (int64_t taken = 0; taken < 200; taken++) {
        counter_await(&endless.made, taken + AHEAD);
        assert_int_equal(counter_value(&endless.made), taken + AHEAD);
        next_value(pipeline);
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- pending ------------------------------------------------------------------------------------------------ */

static void *complete_with_input(void *argument)
{
    struct test_pending_task *pending = argument;
    weir_item out = { 0 };
    weir_item_move(&out, pending->in);
    weir_task_complete(pending->task, WEIR_OK, &out);
    return NULL;
}

/* Another thread has completed the task when run() returns WEIR_PENDING. */
static int complete_elsewhere(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    thread_join(thread_start(complete_with_input, &(struct test_pending_task){ task, in }));
    return WEIR_PENDING;
}

static int complete_here(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    complete_with_input(&(struct test_pending_task){ task, in });
    return WEIR_PENDING;
}

static int complete_and_pass_on(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    weir_item completed = { 0 };
    ledger_fill(&ledger, &completed, item_value(in), 0);
    weir_task_complete(task, WEIR_OK, &completed);
    weir_item_move(out, in);
    return WEIR_OK;
}

/* It has completed the task, and returns a result as well: both are released, and the task has failed. */
TEST_CASE(a_task_that_is_completed_and_returns_a_result_fails)
{
    static const weir_op op = { .name = "both", .run = complete_and_pass_on };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_error error = { 0 };
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(account_of(pipeline, "both").failed, 20);
    assert_int_equal(weir_pipeline_error(pipeline, "both", &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "weir_task_complete()"));
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(a_task_may_be_completed_before_run_returns)
{
    static const weir_op ops[] = { { .name = "elsewhere", .run = complete_elsewhere },
                                   { .name = "here", .run = complete_here } };
    for (size_t i = 0; i < LENGTH(ops); i++) {
        ledger_init(&ledger);
        test_numbers numbers = { .ledger = &ledger, .count = 100 };
        weir_builder *builder = builder_with(&numbers);
        weir_builder_pipe(builder, &ops[i], NULL, 0, NULL);
        weir_builder_sink(builder, NULL);
        assert_delivers_in_order(build(builder, NULL), 100);
    }
}

TEST_CASE(a_task_may_be_completed_later)
{
    test_pending pending = PENDING;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 500 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0, &(weir_stage_options){ .concurrency = 8 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &one_thread);
    pending_start(&pending);
    assert_delivers(pipeline, 500);
    pending_end(&pending);
}

static void complete(weir_task *task, weir_item *in, int status)
{
    weir_item out = { 0 };
    weir_item_move(&out, in);
    weir_task_complete(task, status, &out);
    if (status != WEIR_OK)
        weir_item_release(&out); /* still ours */
}

static uint32_t slots_waiting_for_their_turn(weir_pipeline *pipeline, size_t stage)
{
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    uint32_t slots = snapshot->stages[stage].waiting_turn;
    weir_snapshot_free(snapshot);
    return slots;
}

/* The task waits for its turn when it is completed again: nothing happens, and an error is logged. */
TEST_CASE(a_task_that_is_completed_twice_is_completed_once)
{
    char line[512];
    test_pending pending = PENDING;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0,
                      &(weir_stage_options){ .concurrency = 2, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &four_threads);
    pending_await(&pending, 2);
    struct test_pending_task tasks[2];
    for (int i = 0; i < 2; i++)
        tasks[i].task = pending_take(&pending, &tasks[i].in);
    int second = item_value(tasks[1].in) == 1;
    complete_with_input(&tasks[second]);
    while (slots_waiting_for_their_turn(pipeline, 1) < 1)
        sched_yield();
    weir_item again = { 0 };
    ledger_fill(&ledger, &again, 99, 0);
    weir_task_complete(tasks[second].task, WEIR_OK, &again);
    last_logged_line(WEIR_LOG_ERROR, line, sizeof line);
    assert_non_null(strstr(line, "0:1:pending[2]: weir_task_complete()"));
    complete_with_input(&tasks[!second]);
    assert_delivers_in_order(pipeline, 2);
}

TEST_CASE(a_pending_task_may_end_in_skip_or_failure)
{
    test_pending pending = PENDING;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 4, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_item *in;
    weir_task *task;
    weir_error error = { 0 };

    task = pending_take(&pending, &in);
    complete(task, in, WEIR_SKIP);
    task = pending_take(&pending, &in);
    weir_task_fail(task, WEIR_EIO, -104, "connection %s", "reset");
    complete(task, in, WEIR_EIO);
    task = pending_take(&pending, &in);
    weir_task_complete(task, WEIR_EDATA, NULL); /* the input is left to the engine */
    task = pending_take(&pending, &in);
    complete(task, in, WEIR_OK);
    assert_int_equal(next_value(pipeline), 3);
    assert_int_equal(drain_all(pipeline), 0);

    weir_account account = account_of(pipeline, "pending");
    assert_int_equal(account.skipped, 1);
    assert_int_equal(account.failed, 2);
    assert_int_equal(account.passed_on, 1);
    assert_int_equal(weir_pipeline_error(pipeline, "pending", &error), WEIR_EIO);
    assert_int_equal(error.status, WEIR_EIO);
    assert_int_equal(error.library_code, -104);
    assert_string_equal(error.message, "connection reset");
    assert_string_equal(error.label, "item-1");
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Each task's label is overwritten as soon as the call has returned. For the second task, the only thread is held then. */
TEST_CASE(the_label_of_a_pending_result_is_copied_at_the_call)
{
    test_pending pending = PENDING;
    test_gate gate = GATE;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &one_thread);
    pending_await(&pending, 2);
    for (int i = 0; i < 2; i++) {
        weir_item *in, out = { 0 };
        weir_task *task = pending_take(&pending, &in);
        char *label = strdup("made elsewhere");
        weir_item_move(&out, in);
        out.label = label;
        weir_task_complete(task, WEIR_OK, &out);
        memset(label, '?', strlen(label));
        free(label);
        gate_await_waiting(&gate, 1);
    }
    gate_open(&gate);
    for (int i = 0; i < 2; i++) {
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_string_equal(item.label, "made elsewhere");
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* 256 tasks in flight on one thread, completed last first. */
TEST_CASE(pending_tasks_hold_no_thread)
{
    enum { SLOTS = 256 };
    static test_pending pending;
    weir_task *tasks[SLOTS];
    weir_item *ins[SLOTS];
    pending_init(&pending);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = SLOTS };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0, &(weir_stage_options){ .concurrency = SLOTS });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &one_thread);
    pending_await(&pending, SLOTS);
    for (int i = 0; i < SLOTS; i++)
        tasks[i] = pending_take(&pending, &ins[i]);
    for (int i = SLOTS; i-- > 0;) {
        complete(tasks[i], ins[i], WEIR_OK);
        assert_int_equal(next_value(pipeline), i); /* in the order of completion */
    }
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Two results immediately, the third one pending. */
static int cut_pending(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    int status = cut(worker, in, out, task);
    if (status == WEIR_MORE)
        return status;
    weir_item_move(in, out);
    pending_add((test_pending *)weir_task_config(task), task, in);
    return WEIR_PENDING;
}

TEST_CASE(a_generator_may_end_pending)
{
    static const weir_op op = { .name = "cut_pending", .worker_size = sizeof(uint64_t), .run = cut_pending };
    test_pending pending = PENDING;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 50 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &pending, 0,
                      &(weir_stage_options){ .concurrency = 3, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, NULL);
    pending_start(&pending);
    for (uint64_t i = 0; i < 50 * CHUNKS; i++)
        assert_int_equal(next_value(pipeline), i / CHUNKS);
    assert_int_equal(drain_all(pipeline), 0);
    pending_end(&pending);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Ten items, each of them pending first, then the end, which is not. */
static int pending_source(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *made = worker;
    (void)out;
    REQUIRE(in == NULL);
    if (*made == 10)
        return WEIR_EOF;
    REQUIRE(weir_task_seq(task) == *made);
    ++*made;
    pending_add((test_pending *)weir_task_config(task), task, NULL);
    return WEIR_PENDING;
}

TEST_CASE(a_source_may_be_pending)
{
    static const weir_op op = { .name = "slow", .worker_size = sizeof(uint64_t), .run = pending_source };
    test_pending pending = PENDING;
    ledger_init(&ledger);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &op, &pending, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (uint64_t i = 0; i < 10; i++) {
        weir_item out = { 0 };
        weir_task *task = pending_take(&pending, NULL);
        ledger_fill(&ledger, &out, i, 0);
        out.label = "pending";
        weir_task_complete(task, WEIR_OK, &out);
        assert_int_equal(weir_pipeline_next(pipeline, &out, WEIR_FOREVER), WEIR_OK);
        assert_int_equal(out.seq, i);
        assert_int_equal(item_value(&out), i);
        assert_string_equal(out.label, "pending");
        weir_item_release(&out);
    }
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- limits ------------------------------------------------------------------------------------------------- */

/* Passes the gate, then counts its input out. */
typedef struct way_out {
    test_gate gate;
    test_counter *between;
    int64_t each;
} way_out;

static int leave_slowly(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    way_out *way = (way_out *)weir_task_config(task);
    (void)worker;
    gate_pass(&way->gate);
    counter_add(way->between, -way->each);
    weir_item_move(out, in);
    return WEIR_OK;
}

typedef struct way_in {
    test_counter between;
    int64_t each;
} way_in;

static int enter_counted(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    way_in *way = (way_in *)weir_task_config(task);
    (void)worker;
    counter_add(&way->between, way->each);
    weir_item_move(out, in);
    out->size_bytes = (size_t)way->each;
    return WEIR_OK;
}

/* A stage fills the input queue of a stage whose tasks wait at a gate: counts the items in between. */
static void fill_between(weir_stage_options options, int64_t each, int64_t expected_items)
{
    static const weir_op in_op = { .name = "in", .run = enter_counted };
    static const weir_op out_op = { .name = "out", .run = leave_slowly };
    way_in in = { .between = COUNTER, .each = each };
    way_out out = { .gate = GATE, .between = &in.between, .each = each };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 100 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &in_op, &in, 0, &options);
    weir_builder_pipe(builder, &out_op, &out, 0, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 100 });
    weir_pipeline *pipeline = build(builder, &four_threads);
    for (uint64_t i = 0; i + (uint64_t)expected_items < numbers.count; i++) {
        counter_await(&in.between, expected_items * each);
        gate_let(&out.gate, 1);
    }
    assert_int_equal(counter_highest(&in.between), expected_items * each);
    gate_open(&out.gate);
    assert_delivers_in_order(pipeline, 100);
}

/* The items in the queue, one in the upstream slot that waits for room, one in the downstream slot. */
TEST_CASE(a_queue_never_holds_more_items_than_its_capacity)
{
    fill_between((weir_stage_options){ .queue_items = 1 }, 1, 1 + 2);
    fill_between((weir_stage_options){ .queue_items = 2 }, 1, 2 + 2);
    fill_between((weir_stage_options){ .queue_items = 20 }, 1, 20 + 2);
}

/* 100 bytes are reached with the fourth item of 30; the queue may be overshot by one. */
TEST_CASE(a_queue_overshoots_its_bytes_by_one_item_at_most)
{
    fill_between((weir_stage_options){ .queue_items = 50, .queue_bytes = 100 }, 30, 4 + 2);
    fill_between((weir_stage_options){ .queue_items = 50, .queue_bytes = 1 }, 1000, 1 + 2);
    fill_between((weir_stage_options){ .queue_items = 3, .queue_bytes = 1000 }, 10, 3 + 2);
}

typedef struct crowd_config {
    test_counter inside;
    test_gate gate;
} crowd_config;

static int join_crowd(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    crowd_config *crowd = (crowd_config *)weir_task_config(task);
    uint32_t *busy = worker;
    REQUIRE(!*busy); /* a worker has one task at a time */
    *busy = 1;
    counter_add(&crowd->inside, 1);
    gate_pass(&crowd->gate);
    counter_add(&crowd->inside, -1);
    *busy = 0;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op crowd_op = { .name = "crowd", .worker_size = sizeof(uint32_t), .run = join_crowd };

static void crowd_through(uint32_t concurrency, uint32_t threads, uint32_t own_threads, uint32_t expected)
{
    crowd_config crowd = { .inside = COUNTER, .gate = GATE };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 200 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .queue_items = 200 });
    weir_builder_pipe(builder, &crowd_op, &crowd, 0,
                      &(weir_stage_options){ .concurrency = concurrency, .threads = own_threads });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = threads });
    gate_await_waiting(&crowd.gate, expected);
    gate_open(&crowd.gate);
    assert_delivers(pipeline, 200);
    assert_int_equal(counter_highest(&crowd.inside), expected);
}

TEST_CASE(at_most_concurrency_tasks_run_at_once)
{
    crowd_through(1, 4, 0, 1);
    crowd_through(3, 8, 0, 3);
    crowd_through(5, 2, 5, 5);
}

TEST_CASE(concurrency_may_be_far_above_the_threads)
{
    crowd_through(1000, 1, 0, 1);
    crowd_through(1000, 3, 0, 3);
    crowd_through(1000, 1, 2, 2);
}

/* ---- threads ------------------------------------------------------------------------------------------------ */

typedef struct trace_log {
    char steps[64]; /* one letter for each run of an operation */
    atomic_int num_steps;
} trace_log;

typedef struct traced_config {
    trace_log *trace;
    char letter;
    uint64_t left; /* a source's */
} traced_config;

static void note(traced_config *traced)
{
    int step = atomic_fetch_add(&traced->trace->num_steps, 1);
    REQUIRE(step < (int)sizeof traced->trace->steps - 1);
    traced->trace->steps[step] = traced->letter;
}

static int traced_source(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    traced_config *traced = (traced_config *)weir_task_config(task);
    (void)worker;
    (void)in;
    if (traced->left == 0)
        return WEIR_EOF;
    note(traced);
    ledger_fill(&ledger, out, --traced->left, 0);
    return WEIR_OK;
}

static int traced_pass(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    note((traced_config *)weir_task_config(task));
    weir_item_move(out, in);
    return WEIR_OK;
}

/* A thread takes the slot nearest the sink, so an item reaches the sink before the next one is made. */
TEST_CASE(what_is_nearest_the_sink_runs_first)
{
    static const weir_op source_op = { .name = "s", .run = traced_source };
    static const weir_op stage_op = { .name = "t", .run = traced_pass };
    trace_log trace = { .num_steps = 0 };
    traced_config source = { &trace, 's', 5 }, a = { &trace, 'a', 0 }, b = { &trace, 'b', 0 }, c = { &trace, 'c', 0 };
    ledger_init(&ledger);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source_op, &source, 0, &(weir_stage_options){ .queue_items = 10 });
    weir_builder_pipe(builder, &stage_op, &a, 0, &(weir_stage_options){ .queue_items = 10, .concurrency = 3 });
    weir_builder_pipe(builder, &stage_op, &b, 0, &(weir_stage_options){ .queue_items = 10 });
    weir_builder_pipe(builder, &stage_op, &c, 0, &(weir_stage_options){ .queue_items = 10, .concurrency = 2 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 10 });
    weir_pipeline *pipeline = build(builder, &one_thread);
    assert_int_equal(drain_all(pipeline), 5);
    weir_pipeline_free(pipeline);
    assert_string_equal(trace.steps, "sabcsabcsabcsabcsabc");
    ledger_close(&ledger);
}

/* One thread, thirty stages, queues of one item: whoever waited for room or input would stop everything. */
TEST_CASE(no_thread_waits_at_a_queue)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 500 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .queue_items = 1 });
    for (int i = 0; i < 30; i++)
        weir_builder_pipe(builder, &pass_op, NULL, 0,
                          &(weir_stage_options){ .queue_items = 1,
                                                 .concurrency = 1 + (uint32_t)i % 3,
                                                 .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    assert_delivers_in_order(build(builder, &one_thread), 500);
}

/* All slots of the blocking stage wait at its gate, and the only pool thread still runs the other stages. */
TEST_CASE(a_stage_with_threads_of_its_own_does_not_stop_the_others)
{
    enum { SLOTS = 16, AHEAD = 4 };
    test_gate gate = GATE;
    test_counter made = COUNTER;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 100, .made = &made };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .queue_items = AHEAD });
    weir_builder_pipe(builder, &gated_op, &gate, 0, &(weir_stage_options){ .concurrency = SLOTS, .threads = SLOTS });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &one_thread);
    gate_await_waiting(&gate, SLOTS);
    counter_await(&made, SLOTS + AHEAD + 1);
    gate_open(&gate);
    assert_delivers(pipeline, 100);
}

typedef struct meeting_config {
    test_counter come; /* to all meetings so far */
    uint64_t count;
} meeting_config;

enum { BETWEEN_MEETINGS = 40 };

static int make_nothing(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const meeting_config *config = weir_task_config(task);
    (void)worker;
    (void)in;
    (void)out;
    return weir_task_seq(task) < config->count ? WEIR_OK : WEIR_EOF;
}

/* Two of forty tasks wait for each other; the others are so short that the engine does not expect any to take long. */
static int meet(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    meeting_config *config = (meeting_config *)weir_task_config(task);
    int64_t others = 2 * (int64_t)(in->seq / BETWEEN_MEETINGS);
    (void)worker;
    (void)out;
    if (in->seq % BETWEEN_MEETINGS < 2) {
        counter_add(&config->come, 1);
        counter_await(&config->come, others + 2);
    }
    return WEIR_OK;
}

/* A free thread takes ready work, however short the tasks have been so far; nothing else wakes the engine. */
TEST_CASE(tasks_that_wait_for_each_other_run_at_once)
{
    static const weir_op source_op = { .name = "nothing", .run = make_nothing };
    static const weir_op stage_op = { .name = "meet", .run = meet };
    enum { MEETINGS = 2000 };
    meeting_config config = { .come = COUNTER, .count = MEETINGS * BETWEEN_MEETINGS };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source_op, &config, 0, &(weir_stage_options){ .queue_items = 8 });
    weir_builder_pipe(builder, &stage_op, &config, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = (uint32_t)config.count });
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .threads = 2, .stats_interval_ns = WEIR_FOREVER, .stall_warning_ns = WEIR_FOREVER });
    counter_await(&config.come, 2 * MEETINGS);
    assert_int_equal(drain_all(pipeline), config.count);
    weir_pipeline_free(pipeline);
}

/* ---- order -------------------------------------------------------------------------------------------------- */

static int wait_if_first(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    crowd_config *crowd = (crowd_config *)weir_task_config(task);
    (void)worker;
    if (item_value(in) == 0)
        gate_pass(&crowd->gate);
    else
        counter_add(&crowd->inside, 1);
    weir_item_move(out, in);
    return WEIR_OK;
}

/* Item 0 waits at a gate: later items wait, at most as many as the stage has slots. */
TEST_CASE(in_input_order_the_stages_own_slots_are_held_back)
{
    static const weir_op op = { .name = "first_waits", .run = wait_if_first };
    enum { SLOTS = 5 };
    crowd_config crowd = { .inside = COUNTER, .gate = GATE };
    test_counter made = COUNTER;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 100, .made = &made };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(
        builder, &op, &crowd, 0,
        &(weir_stage_options){ .concurrency = SLOTS, .queue_items = 50, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &four_threads);
    weir_item item;
    gate_await_waiting(&crowd.gate, 1);
    counter_await(&crowd.inside, SLOTS - 1);
    counter_await(&made, SLOTS + 2 + 1); /* in the queue before, and one that waits for room there */
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ETIMEDOUT);
    assert_int_equal(counter_value(&crowd.inside), SLOTS - 1);
    gate_open(&crowd.gate);
    assert_delivers_in_order(pipeline, 100);
}

TEST_CASE(in_completion_order_nobody_waits_for_the_first)
{
    static const weir_op op = { .name = "first_waits", .run = wait_if_first };
    crowd_config crowd = { .inside = COUNTER, .gate = GATE };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 50 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &crowd, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &four_threads);
    for (uint64_t i = 1; i < 50; i++)
        assert_int_equal(next_value(pipeline), i);
    gate_open(&crowd.gate);
    assert_int_equal(next_value(pipeline), 0);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* By the item's number: passed on, skipped, failed, passed on in chunks, or pending. */
static int do_anything(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t value = item_value(in);
    if (value % 3 == 0)
        sched_yield();
    switch (value % 7) {
    case 0: return WEIR_SKIP;
    case 1: return weir_task_fail(task, WEIR_EDATA, 0, "damaged");
    case 2: return cut(worker, in, out, task);
    case 3:
    case 4: pending_add((test_pending *)weir_task_config(task), task, in); return WEIR_PENDING;
    default: weir_item_move(out, in); return WEIR_OK;
    }
}

static uint64_t results_of(uint64_t value)
{
    return value % 7 < 2 ? 0 : value % 7 == 2 ? CHUNKS : 1;
}

TEST_CASE(input_order_holds_for_every_kind_of_result)
{
    static const weir_op op = { .name = "anything", .worker_size = sizeof(uint64_t), .run = do_anything };
    static const uint32_t concurrencies[] = { 1, 2, 7, 100 };
    for (size_t i = 0; i < LENGTH(concurrencies); i++) {
        test_pending pending = PENDING;
        ledger_init(&ledger);
        test_numbers numbers = { .ledger = &ledger, .count = 700 };
        weir_builder *builder = builder_with(&numbers);
        weir_builder_pipe(builder, &op, &pending, 0,
                          &(weir_stage_options){
                              .concurrency = concurrencies[i], .queue_items = 1, .output_order = WEIR_ORDER_INPUT });
        weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
        weir_pipeline *pipeline = build(builder, &four_threads);
        pending_start(&pending);
        for (uint64_t value = 0; value < numbers.count; value++)
            for (uint64_t j = 0; j < results_of(value); j++)
                assert_int_equal(next_value(pipeline), value);
        assert_int_equal(drain_all(pipeline), 0);
        pending_end(&pending);
        weir_pipeline_free(pipeline);
        ledger_close(&ledger);
    }
}

static int first_is_pending(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (item_value(in) > 0) {
        weir_item_move(out, in);
        return WEIR_OK;
    }
    pending_add((test_pending *)weir_task_config(task), task, in);
    return WEIR_PENDING;
}

/* When the first result comes, 20000 others follow; this must not use the stack. */
TEST_CASE(any_number_of_results_may_wait_for_the_first)
{
    static const weir_op op = { .name = "first_pending", .run = first_is_pending };
    enum { SLOTS = 20000 };
    test_pending pending = PENDING;
    test_counter made = COUNTER;
    weir_item *in;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = SLOTS + 4, .made = &made };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(
        builder, &op, &pending, 0,
        &(weir_stage_options){ .concurrency = SLOTS, .queue_items = SLOTS, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &one_thread);
    counter_await(&made, SLOTS + 3); /* two more in the queue before, one waits for room there */
    weir_task *task = pending_take(&pending, &in);
    complete(task, in, WEIR_OK);
    assert_delivers_in_order(pipeline, SLOTS + 4);
}

/* ---- workers ------------------------------------------------------------------------------------------------ */

typedef struct worker_log {
    test_counter inits;
    atomic_int to_fail; /* number of the next inits that fail */
} worker_log;

static int worker_made(void *worker, const void *config, weir_task *task)
{
    worker_log *workers = (worker_log *)config;
    uint64_t *mark = worker;
    REQUIRE(*mark == 0);
    *mark = 42;
    if (atomic_fetch_sub(&workers->to_fail, 1) > 0)
        return weir_task_fail(task, WEIR_EUNSUPPORTED, 3, "no such codec");
    counter_add(&workers->inits, 1);
    return WEIR_OK;
}

static int worker_passes(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)task;
    REQUIRE(*(uint64_t *)worker == 42);
    weir_item_move(out, in);
    return WEIR_OK;
}

static test_counter workers_freed;

static void worker_gone(void *worker)
{
    REQUIRE(*(uint64_t *)worker == 42);
    counter_add(&workers_freed, 1);
}

static const weir_op worker_op = {
    .name = "worker",
    .worker_size = sizeof(uint64_t),
    .worker_init = worker_made,
    .run = worker_passes,
    .worker_free = worker_gone,
};

/* One thread needs one worker, though there are a hundred slots. */
TEST_CASE(workers_are_made_when_needed_and_freed_at_the_end)
{
    worker_log workers = { .inits = COUNTER };
    counter_init(&workers_freed);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 100 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &worker_op, &workers, 0,
                      &(weir_stage_options){ .concurrency = 100, .queue_items = 200 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 200 });
    weir_pipeline *pipeline = build(builder, &one_thread);
    assert_int_equal(counter_value(&workers_freed), 0);
    assert_delivers(pipeline, 100);
    assert_int_equal(counter_value(&workers.inits), 1);
    assert_int_equal(counter_value(&workers_freed), 1);
}

TEST_CASE(a_worker_that_could_not_be_made_is_tried_again)
{
    worker_log workers = { .inits = COUNTER, .to_fail = 3 };
    weir_error error = { 0 };
    counter_init(&workers_freed);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 10, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &worker_op, &workers, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (uint64_t i = 3; i < 10; i++)
        assert_int_equal(next_value(pipeline), i);
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(weir_pipeline_error(pipeline, "worker", &error), WEIR_EUNSUPPORTED);
    assert_int_equal(error.status, WEIR_EUNSUPPORTED);
    assert_int_equal(error.library_code, 3);
    assert_string_equal(error.label, "item-0");
    assert_int_equal(account_of(pipeline, "worker").failed, 3);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&workers.inits), 1);
    assert_int_equal(counter_value(&workers_freed), 1);
    ledger_close(&ledger);
}

/* ---- the consumer ------------------------------------------------------------------------------------------- */

typedef struct consumer_run {
    weir_pipeline *pipeline;
    uint64_t num_items, sum;
    int status;
} consumer_run;

static void *consume(void *argument)
{
    consumer_run *consumer = argument;
    weir_item item;
    while ((consumer->status = weir_pipeline_next(consumer->pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        consumer->num_items++;
        consumer->sum += item_value(&item);
        weir_item_release(&item);
    }
    return NULL;
}

TEST_CASE(several_consumers_share_the_results)
{
    enum { COUNT = 3000 };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 2 });
    weir_pipeline *pipeline = build(builder, NULL);
    consumer_run consumers[4];
    pthread_t threads[LENGTH(consumers)];
    uint64_t num_items = 0, sum = 0;
    for (size_t i = 0; i < LENGTH(consumers); i++) {
        consumers[i] = (consumer_run){ .pipeline = pipeline };
        threads[i] = thread_start(consume, &consumers[i]);
    }
    for (size_t i = 0; i < LENGTH(consumers); i++) {
        thread_join(threads[i]);
        assert_int_equal(consumers[i].status, WEIR_EOF);
        num_items += consumers[i].num_items;
        sum += consumers[i].sum;
    }
    assert_int_equal(num_items, COUNT);
    assert_int_equal(sum, (uint64_t)COUNT * (COUNT - 1) / 2);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(next_gives_up_after_its_timeout)
{
    static const int64_t timeouts_ns[] = { 0, 1, 30 * WEIR_MILLISECOND };
    test_gate gate = GATE;
    weir_item item;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 2, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (size_t i = 0; i < LENGTH(timeouts_ns); i++) {
        int64_t start_ns = weir_clock_ns();
        assert_int_equal(weir_pipeline_next(pipeline, &item, timeouts_ns[i]), WEIR_ETIMEDOUT);
        assert_true(weir_clock_ns() - start_ns >= timeouts_ns[i]);
    }
    gate_open(&gate);
    assert_int_equal(weir_pipeline_next(pipeline, &item, INT64_MAX), WEIR_OK);
    weir_item_release(&item);
    assert_int_equal(weir_pipeline_next(pipeline, &item, 50 * WEIR_SECOND), WEIR_OK);
    weir_item_release(&item);
    assert_int_equal(weir_pipeline_next(pipeline, &item, 50 * WEIR_SECOND), WEIR_EOF);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- events ------------------------------------------------------------------------------------------------- */

static int say(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    char text[32];
    snprintf(text, sizeof text, "of %s", in->label);
    REQUIRE(weir_task_event(task, "seen", text) == WEIR_OK);
    memset(text, 'x', sizeof text);
    return WEIR_SKIP;
}

TEST_CASE(events_come_to_the_observer_in_order)
{
    static const weir_op op = { .name = "say", .run = say };
    test_recorder recorder;
    recorder_init(&recorder);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .observers = &recorder.observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder.num_events, 5);
    for (int i = 0; i < 5; i++) {
        char detail[32];
        snprintf(detail, sizeof detail, "of item-%d", i);
        assert_string_equal(recorder.events[i].name, "seen");
        assert_string_equal(recorder.events[i].category, "0:1:say");
        assert_string_equal(recorder.events[i].detail, detail);
        assert_true(recorder.events[i].event.unix_ns >= recorder.run.start_unix_ns);
    }
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_CASE(a_program_may_add_events_of_its_own)
{
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .observers = &recorder.observer, .num_observers = 1 });
    assert_int_equal(weir_pipeline_event(pipeline, "epoch", "training", NULL), WEIR_OK);
    assert_int_equal(weir_pipeline_event(pipeline, "checkpoint", NULL, "model.pt"), WEIR_OK);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder.num_events, 2);
    assert_string_equal(recorder.events[0].name, "epoch");
    assert_string_equal(recorder.events[0].category, "training");
    assert_string_equal(recorder.events[0].detail, "");
    assert_string_equal(recorder.events[1].category, "");
    assert_string_equal(recorder.events[1].detail, "model.pt");
    recorder_free(&recorder);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
