/* Graphs with branches: batches, routes, merges, and epochs through all of them. */
#include <sched.h>

#include "tests/support.h"

/* ---- helpers ------------------------------------------------------------------------------------------------ */

static int by_three(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item_value(item) % 3);
}

static int always(void *self, const weir_item *item)
{
    (void)item;
    return *(const int *)self;
}

/* An item that is a batch, as its values: "1 2 3 ". Releases it. */
static void take_batch(weir_pipeline *pipeline, char *values, size_t size)
{
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    const weir_batch *batch = item.data;
    size_t length = 0;
    values[0] = '\0';
    for (size_t i = 0; i < batch->num_items; i++)
        length += (size_t)snprintf(values + length, size - length, "%llu ",
                                   (unsigned long long)item_value(&batch->items[i]));
    weir_item_release(&item);
}

static void expect_batch(weir_pipeline *pipeline, const char *values)
{
    char taken[256];
    take_batch(pipeline, taken, sizeof taken);
    assert_string_equal(taken, values);
}

static void expect_end(weir_pipeline *pipeline, int status)
{
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), status);
}

static void finish(weir_pipeline *pipeline, test_ledger *ledger)
{
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    weir_pipeline_free(pipeline);
    ledger_close(ledger);
}

/* Counts which of the values below `count` come until an epoch or the stream ends; each exactly once. */
static void expect_all_once(weir_pipeline *pipeline, uint64_t count, int end)
{
    bool *seen = calloc(count, sizeof *seen);
    weir_item item;
    int status;
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_true(item_value(&item) < count);
        assert_false(seen[item_value(&item)]);
        seen[item_value(&item)] = true;
        weir_item_release(&item);
    }
    status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    assert_int_equal(status, end);
    free(seen);
}

/* ---- batches ------------------------------------------------------------------------------------------------ */

TEST_CASE(aggregate_passes_on_full_batches_and_the_incomplete_last_one)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 7, .size_bytes = 10 });
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 3 }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    expect_batch(pipeline, "0 1 2 ");
    expect_batch(pipeline, "3 4 5 ");
    expect_batch(pipeline, "6 ");
    expect_end(pipeline, WEIR_EOF);
    weir_account account = account_of(pipeline, "aggregate");
    assert_int_equal(account.taken, 7);
    assert_int_equal(account.passed_on, 3);
    assert_int_equal(account.merged, 5);
    assert_int_equal(account.created, 1);
    finish(pipeline, &ledger);
}

TEST_CASE(aggregate_with_drop_last_skips_the_incomplete_batch)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 7 });
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 4, .drop_last = true }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    expect_batch(pipeline, "0 1 2 3 ");
    expect_end(pipeline, WEIR_EOF);
    assert_int_equal(account_of(pipeline, "aggregate").skipped, 3);
    finish(pipeline, &ledger);
}

static void expect_label_and_seq(weir_pipeline *pipeline, const char *label, uint64_t seq)
{
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    assert_string_equal(item.label, label);
    assert_int_equal(item.seq, seq);
    weir_item_release(&item);
}

TEST_CASE(a_batch_knows_its_size_and_the_labels_of_its_items)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder =
        builder_with(&(test_numbers){ .ledger = &ledger, .count = 5, .size_bytes = 10, .labelled = true });
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 2 }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    assert_int_equal(item.size_bytes, 20);
    assert_string_equal(item.label, "item-1");
    const weir_batch *batch = item.data;
    assert_string_equal(batch->items[0].label, "item-0");
    assert_int_equal(batch->items[1].seq, 1);
    assert_int_equal(item.seq, 1);
    weir_item_release(&item);
    expect_label_and_seq(pipeline, "item-3", 3);
    expect_label_and_seq(pipeline, "item-4", 4); /* the incomplete one */
    finish(pipeline, &ledger);
}

TEST_CASE(stop_drops_what_an_aggregate_has_kept)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 5, .gate = &gate });
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 100 }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 2, .observers = &recorder.observer, .num_observers = 1 });
    gate_let(&gate, 3);
    gate_await_waiting(&gate, 1);
    weir_account account;
    do
        account = account_of(pipeline, "aggregate");
    while (account.merged < 3);
    weir_pipeline_stop(pipeline);
    gate_open(&gate);
    await_work_end(pipeline);
    account = account_of(pipeline, NULL);
    assert_int_equal(account.merged, 0);
    assert_int_equal(account.taken, account.dropped);
    finish(pipeline, &ledger);
    recorder_free(&recorder);
}

TEST_CASE(disaggregate_passes_on_each_item_with_its_label)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 8, .labelled = true });
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 3 }, NULL);
    weir_pipe_disaggregate(builder, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, NULL);
    for (uint64_t i = 0; i < 8; i++) {
        weir_item item;
        char label[32];
        snprintf(label, sizeof label, "item-%llu", (unsigned long long)i);
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_int_equal(item_value(&item), i);
        assert_string_equal(item.label, label);
        assert_int_equal(item.seq, i);
        weir_item_release(&item);
    }
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

/* A user-defined aggregation: the sum of its inputs, passed on only at the end. */
typedef struct sum_worker {
    uint64_t sum;
    test_ledger *ledger;
} sum_worker;

static int sum_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)out;
    sum_worker *sum = worker;
    sum->sum += item_value(in);
    sum->ledger = *(test_ledger *const *)weir_task_config(task);
    return WEIR_KEPT;
}

static int sum_flush(void *worker, weir_item *out, weir_task *task)
{
    (void)task;
    sum_worker *sum = worker;
    ledger_fill(sum->ledger, out, sum->sum, 0);
    sum->sum = 0;
    return WEIR_OK;
}

static const weir_op sum_op = {
    .name = "sum",
    .config_size = sizeof(test_ledger *),
    .worker_size = sizeof(sum_worker),
    .run = sum_run,
    .flush = sum_flush,
};

TEST_CASE(an_operation_may_accumulate_and_flush_as_it_likes)
{
    test_ledger ledger = LEDGER;
    test_ledger *config = &ledger;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .epochs = 2 });
    weir_builder_pipe(builder, &sum_op, &config, sizeof(test_ledger *), NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (int epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(next_value(pipeline), 45);
        expect_end(pipeline, WEIR_EPOCH);
    }
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

static int fail_to_flush(void *worker, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    return weir_task_fail(task, WEIR_EIO, 0, "cannot write the rest");
}

TEST_CASE(a_flush_that_fails_is_a_failure_of_what_was_kept)
{
    static const weir_op broken_op = {
        .name = "broken",
        .config_size = sizeof(test_ledger *),
        .worker_size = sizeof(sum_worker),
        .run = sum_run,
        .flush = fail_to_flush,
    };
    test_ledger ledger = LEDGER;
    test_ledger *config = &ledger;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 4 });
    weir_builder_pipe(builder, &broken_op, &config, sizeof(test_ledger *), NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    expect_end(pipeline, WEIR_EOF);
    weir_account account = account_of(pipeline, "broken");
    assert_int_equal(account.failed, 4);
    assert_int_equal(account.merged, 0);
    weir_error error = { 0 };
    assert_int_equal(weir_pipeline_error(pipeline, "broken", &error), WEIR_EIO);
    assert_string_equal(error.message, "cannot write the rest");
    finish(pipeline, &ledger);
}

/* ---- routes ------------------------------------------------------------------------------------------------- */

TEST_CASE(route_sends_each_item_through_the_branch_that_was_picked)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 30 });
    weir_builder_route(builder, &(weir_route_config){ .pick = by_three, .num_branches = 3 }, NULL);
    weir_builder_branch(builder); /* empty: items pass */
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "one", .concurrency = 3 });
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "two" });
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "three" });
    weir_builder_join(builder, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 3 });
    expect_all_once(pipeline, 30, WEIR_EOF);
    assert_int_equal(account_of(pipeline, "one").taken, 10);
    assert_int_equal(account_of(pipeline, "two").taken, 10);
    assert_int_equal(account_of(pipeline, "three").taken, 10);
    finish(pipeline, &ledger);
}

/* Items below this value go to the slow branch, which waits at the gate; all others to the fast one. */
typedef struct slow_first {
    uint64_t num_slow;
    uint32_t look_ahead_items;
    size_t size_bytes;
    uint64_t queue_bytes;
    test_numbers numbers; /* of the source */
} slow_first;

static int pick_slow_first(void *self, const weir_item *item)
{
    const slow_first *shape = self;
    return item_value(item) < shape->num_slow ? 0 : 1;
}

enum { FAST_ITEMS = 50 };

static weir_pipeline *build_slow_first(slow_first *shape, test_ledger *ledger, test_gate *gate)
{
    shape->numbers =
        (test_numbers){ .ledger = ledger, .count = shape->num_slow + FAST_ITEMS, .size_bytes = shape->size_bytes };
    weir_builder *builder = builder_with(&shape->numbers);
    weir_builder_route(
        builder,
        &(weir_route_config){
            .pick = pick_slow_first, .self = shape, .num_branches = 2, .look_ahead_items = shape->look_ahead_items },
        &(weir_stage_options){ .queue_bytes = shape->queue_bytes });
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &gated_op, gate, 0, &(weir_stage_options){ .threads = 1 });
    weir_builder_branch(builder);
    weir_builder_join(builder, NULL);
    weir_builder_sink(builder, NULL);
    return build(builder, &(weir_pipeline_options){ .threads = 2 });
}

static void await_blocked_route(weir_pipeline *pipeline)
{
    for (bool is_blocked = false; !is_blocked; sched_yield()) {
        weir_snapshot *snapshot;
        assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
        for (size_t i = 0; i < snapshot->num_stages; i++)
            is_blocked |= strstr(snapshot->stages[i].name, "route") && snapshot->stages[i].waiting_out == 1;
        weir_snapshot_free(snapshot);
    }
}

/* One item is at the gate, two are in its queue, and the others are set aside: one more than most_slow holds up the
   route. Held constant: a route with one slot, queues of two items, a slow branch that does nothing at all. */
static void check_look_ahead(slow_first shape, uint64_t most_slow)
{
    for (int is_one_more = 0; is_one_more < 2; is_one_more++) {
        test_ledger ledger = LEDGER;
        test_gate gate = GATE;
        weir_item item;
        shape.num_slow = most_slow + (uint64_t)is_one_more;
        weir_pipeline *pipeline = build_slow_first(&shape, &ledger, &gate);
        gate_await_waiting(&gate, 1);
        if (is_one_more) {
            await_blocked_route(pipeline);
            assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ETIMEDOUT);
        } else {
            for (uint64_t i = 0; i < FAST_ITEMS; i++)
                assert_int_equal(next_value(pipeline), most_slow + i);
        }
        gate_open(&gate);
        for (uint64_t i = 0, slow = 0; i < shape.num_slow + (is_one_more ? FAST_ITEMS : 0); i++) {
            uint64_t value = next_value(pipeline);
            if (value < shape.num_slow)
                assert_int_equal(value, slow++); /* the order of the branch */
        }
        expect_end(pipeline, WEIR_EOF);
        assert_int_equal(account_of(pipeline, "route").passed_on, shape.num_slow + FAST_ITEMS);
        finish(pipeline, &ledger);
    }
}

TEST_CASE(a_full_branch_does_not_hold_up_the_others)
{
    check_look_ahead((slow_first){ .look_ahead_items = 0 }, 3 + 16);
    check_look_ahead((slow_first){ .look_ahead_items = 5 }, 3 + 5);
    check_look_ahead((slow_first){ .look_ahead_items = WEIR_NO_LOOK_AHEAD }, 3);
    /* by bytes the queue is full with 2 items of 100, or with 5, of which 3 are set aside */
    check_look_ahead((slow_first){ .size_bytes = 100, .queue_bytes = 150 }, 1 + 2);
    check_look_ahead((slow_first){ .size_bytes = 100, .queue_bytes = 450 }, 1 + 2 + 3);
}

TEST_CASE(what_a_route_has_set_aside_is_dropped_by_a_stop)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    slow_first shape = { .num_slow = 13 };
    weir_pipeline *pipeline = build_slow_first(&shape, &ledger, &gate);
    for (uint64_t i = 0; i < FAST_ITEMS; i++)
        assert_int_equal(next_value(pipeline), shape.num_slow + i);
    gate_await_waiting(&gate, 1);
    weir_account before = account_of(pipeline, "route");
    assert_int_equal(before.passed_on, 3 + FAST_ITEMS);
    assert_int_equal(before.in_flight, 10);
    weir_pipeline_stop(pipeline);
    gate_open(&gate);
    expect_end(pipeline, WEIR_ESTOPPED);
    weir_account account = account_of(pipeline, "route");
    assert_int_equal(account.taken, 13 + FAST_ITEMS);
    assert_int_equal(account.passed_on, 3 + FAST_ITEMS);
    assert_int_equal(account.dropped + account.in_flight, 10); /* they are released after the end */
    finish(pipeline, &ledger);
}

TEST_CASE(routes_may_be_nested)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 100 });
    weir_builder_route(builder, &(weir_route_config){ .pick = by_three, .num_branches = 3 }, NULL);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    for (int branch = 1; branch < 3; branch++) {
        weir_builder_branch(builder);
        weir_builder_route(builder, &(weir_route_config){ .pick = by_three, .num_branches = 3 }, NULL);
        for (int inner = 0; inner < 3; inner++) {
            weir_builder_branch(builder);
            weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
        }
        weir_builder_join(builder, NULL);
    }
    weir_builder_join(builder, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    expect_all_once(pipeline, 100, WEIR_EOF);
    finish(pipeline, &ledger);
}

/* Fails every seventh item, skips every fifth, and takes its time over every fourth. */
static int uneven(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    uint64_t value = item_value(in);
    for (int i = 0; value % 4 == 0 && i < 50; i++)
        sched_yield();
    if (value % 7 == 0)
        return weir_task_fail(task, WEIR_EDATA, 0, "a seventh");
    if (value % 5 == 0)
        return WEIR_SKIP;
    weir_item_move(out, in);
    return WEIR_OK;
}

static void expect_rising(weir_pipeline *pipeline, uint64_t count)
{
    weir_item item;
    uint64_t delivered = 0, last = 0;
    for (; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; delivered++) {
        assert_true(delivered == 0 || item_value(&item) > last);
        last = item_value(&item);
        weir_item_release(&item);
    }
    assert_int_equal(delivered, count);
}

TEST_CASE(a_join_restores_the_order_of_the_route)
{
    static const weir_op uneven_op = { .name = "uneven", .run = uneven };
    enum { COUNT = 2000 };
    uint64_t passed = 0;
    for (uint64_t i = 0; i < COUNT; i++)
        passed += i % 3 == 0 || (i % 7 != 0 && i % 5 != 0);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        test_ledger ledger = LEDGER;
        weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = COUNT });
        weir_builder_route(builder, &(weir_route_config){ .pick = by_three, .num_branches = 3 },
                           &(weir_stage_options){ .concurrency = 2 });
        weir_builder_branch(builder);
        weir_builder_branch(builder);
        weir_builder_pipe(builder, &uneven_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
        weir_builder_branch(builder);
        weir_builder_pipe(builder, &uneven_op, NULL, 0, &(weir_stage_options){ .concurrency = 2, .queue_items = 1 });
        weir_builder_route(builder, &(weir_route_config){ .pick = by_three, .num_branches = 3 }, NULL);
        for (int inner = 0; inner < 3; inner++) {
            weir_builder_branch(builder);
            weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
        }
        weir_builder_join(builder, NULL);
        weir_builder_join(builder, &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT });
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = threads });
        expect_rising(pipeline, passed);
        finish(pipeline, &ledger);
    }
}

/* Items 0 and 1 go to the inner route; once item 2 is here, item 1 has passed it. */
static int outer_branch(void *self, const weir_item *item)
{
    if (item_value(item) == 2)
        gate_open(self);
    return item_value(item) < 2 ? 0 : 1;
}

static int inner_branch(void *self, const weir_item *item)
{
    (void)self;
    return item_value(item) == 0 ? 0 : 1;
}

static int skip_at_gate(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    gate_pass(*(test_gate *const *)weir_task_config(task));
    return WEIR_SKIP;
}

TEST_CASE(an_inner_join_continues_after_a_skip_if_the_outer_one_restores_the_order)
{
    static const weir_op skip_op = { .name = "skip", .config_size = sizeof(test_gate *), .run = skip_at_gate };
    enum { COUNT = 50 };
    test_gate gate = GATE, *config = &gate;
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = COUNT });
    weir_builder_route(builder, &(weir_route_config){ .pick = outer_branch, .self = &gate, .num_branches = 2 }, NULL);
    weir_builder_branch(builder);
    weir_builder_route(builder, &(weir_route_config){ .pick = inner_branch, .num_branches = 2 }, NULL);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &skip_op, &config, sizeof config, NULL);
    weir_builder_branch(builder);
    weir_builder_join(builder, NULL);
    weir_builder_branch(builder);
    weir_builder_join(builder, &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    expect_rising(pipeline, COUNT - 1);
    finish(pipeline, &ledger);
}

TEST_CASE(a_branch_that_does_not_exist_fails_the_item_and_is_named)
{
    test_ledger ledger = LEDGER;
    int branch = 7;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 2 });
    weir_builder_route(builder, &(weir_route_config){ .pick = always, .self = &branch, .num_branches = 2 }, NULL);
    weir_builder_branch(builder);
    weir_builder_branch(builder);
    weir_builder_join(builder, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    expect_end(pipeline, WEIR_EOF);
    weir_error error = { 0 };
    assert_int_equal(weir_pipeline_error(pipeline, "route", &error), WEIR_EINVAL);
    assert_int_equal(error.status, WEIR_EINVAL);
    assert_non_null(strstr(error.message, "branch 7"));
    assert_int_equal(account_of(pipeline, "route").failed, 2);
    finish(pipeline, &ledger);
}

static int fail_always(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    return weir_task_fail(task, WEIR_EDATA, 0, "no");
}

TEST_CASE(a_failure_in_one_branch_ends_the_pipeline_and_not_the_other_items)
{
    static const weir_op failing_op = { .name = "failing", .run = fail_always };
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 1000000 });
    weir_builder_route(builder, &(weir_route_config){ .pick = by_three, .num_branches = 3 }, NULL);
    weir_builder_branch(builder);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &failing_op, NULL, 0,
                      &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = 5 } });
    weir_builder_join(builder, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    int status;
    drain(pipeline, &status);
    assert_int_equal(status, WEIR_EFAILED);
    assert_int_equal(account_of(pipeline, "failing").failed, 6);
    finish(pipeline, &ledger);
}

TEST_CASE(mistakes_in_the_graph_are_told_by_name)
{
    static const struct {
        const char *calls; /* s: source, p: pipe, r: route of 2, b: branch, j: join, m: merge, k: sink */
        const char *message;
    } cases[] = {
        { "srbk", "route route is still open" },
        { "srbj", "only 1 were described" },
        { "srbbbj", "this is one too many" },
        { "srpk", "no branch yet" },
        { "sbk", "no route is open" },
        { "sjk", "no route is open" },
        { "srbsbjk", "route route is still open" },
        { "srbbmk", "end with weir_builder_join()" },
        { "ssk", "call weir_builder_merge()" },
        { "mk", "no source yet" },
        { "srbb", "route route is still open" },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        static const test_numbers numbers = { .count = 1 };
        weir_builder *builder = weir_builder_new();
        for (const char *call = cases[i].calls; *call; call++)
            switch (*call) {
            case 's': weir_builder_source(builder, &numbers_op, &numbers, 0, NULL); break;
            case 'p': weir_builder_pipe(builder, &pass_op, NULL, 0, NULL); break;
            case 'r':
                weir_builder_route(builder, &(weir_route_config){ .pick = by_three, .num_branches = 2 }, NULL);
                break;
            case 'b': weir_builder_branch(builder); break;
            case 'j': weir_builder_join(builder, NULL); break;
            case 'm': weir_builder_merge(builder, NULL, NULL); break;
            default: weir_builder_sink(builder, NULL);
            }
        weir_pipeline *pipeline;
        weir_error error = { 0 };
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].calls, error.message, cases[i].message);
    }
}

/* ---- merges ------------------------------------------------------------------------------------------------- */

enum { A = 0, B = 1000, C = 2000 };

/* Numbers from `first` on. */
typedef struct line_config {
    test_ledger *ledger;
    uint64_t first, count;
} line_config;

static int line_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    uint64_t *made = worker;
    const line_config *config = weir_task_config(task);
    if (*made == config->count)
        return WEIR_EOF;
    ledger_fill(config->ledger, out, config->first + (*made)++, 0);
    return WEIR_OK;
}

static const weir_op line_op = {
    .name = "line",
    .config_size = sizeof(line_config),
    .worker_size = sizeof(uint64_t),
    .run = line_run,
};

static weir_pipeline *merge_three(test_ledger *ledger, const weir_merge_config *config, uint32_t epochs)
{
    weir_builder *builder = weir_builder_new();
    weir_stage_options options = { .epochs = epochs };
    weir_builder_source(builder, &line_op, &(line_config){ ledger, A, 4 }, sizeof(line_config), &options);
    weir_builder_source(builder, &line_op, &(line_config){ ledger, B, 2 }, sizeof(line_config), &options);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_source(builder, &line_op, &(line_config){ ledger, C, 1 }, sizeof(line_config), &options);
    weir_builder_merge(builder, config, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    return build(builder, &(weir_pipeline_options){ .threads = 2 });
}

static void expect_values(weir_pipeline *pipeline, const uint64_t *values, size_t num_values)
{
    for (size_t i = 0; i < num_values; i++)
        assert_int_equal(next_value(pipeline), values[i]);
}

TEST_CASE(round_robin_takes_one_of_each_and_leaves_out_what_has_ended)
{
    test_ledger ledger = LEDGER;
    weir_pipeline *pipeline = merge_three(&ledger, &(weir_merge_config){ .order = WEIR_MERGE_ROUND_ROBIN }, 0);
    expect_values(pipeline, (uint64_t[]){ A, B, C, A + 1, B + 1, A + 2, A + 3 }, 7);
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

/* 0 10 20 1 11 21 2 22 3: with B at its end, C comes after A. */
TEST_CASE(round_robin_skips_no_other_input_when_one_ends)
{
    for (uint32_t queue_items = 1; queue_items <= 8; queue_items *= 2) {
        test_ledger ledger = LEDGER;
        weir_stage_options options = { .queue_items = queue_items };
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &line_op, &(line_config){ &ledger, A, 4 }, sizeof(line_config), &options);
        weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, 2 }, sizeof(line_config), &options);
        weir_builder_source(builder, &line_op, &(line_config){ &ledger, C, 3 }, sizeof(line_config), &options);
        weir_builder_merge(builder, &(weir_merge_config){ .order = WEIR_MERGE_ROUND_ROBIN }, NULL);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build(builder, NULL);
        expect_values(pipeline, (uint64_t[]){ A, B, C, A + 1, B + 1, C + 1, A + 2, C + 2, A + 3 }, 9);
        expect_end(pipeline, WEIR_EOF);
        finish(pipeline, &ledger);
    }
}

/* The order of three lines merged at random. */
static void merge_at_random(uint64_t seed, uint32_t queue_items, uint32_t threads, uint64_t values[12])
{
    test_ledger ledger = LEDGER;
    weir_stage_options options = { .queue_items = queue_items, .epochs = 1 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, A, 6 }, sizeof(line_config), &options);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, 4 }, sizeof(line_config), &options);
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, C, 2 }, sizeof(line_config), &options);
    weir_builder_merge(
        builder,
        &(weir_merge_config){
            .order = WEIR_MERGE_RANDOM, .weights = (uint32_t[]){ 1, 2, 7 }, .num_weights = 3, .seed = seed },
        NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = threads });
    for (int i = 0; i < 12; i++)
        values[i] = next_value(pipeline);
    expect_end(pipeline, WEIR_EPOCH);
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

TEST_CASE(a_random_merge_depends_on_its_seed_alone)
{
    uint64_t first[12], again[12], other[12];
    merge_at_random(7, 1, 1, first);
    for (uint32_t i = 1; i <= 8; i++) {
        merge_at_random(7, i, i, again);
        assert_memory_equal(first, again, sizeof first);
    }
    static const uint64_t expected[12] = { C, C + 1, A, B, B + 1, B + 2, B + 3, A + 1, A + 2, A + 3, A + 4, A + 5 };
    assert_memory_equal(first, expected, sizeof first);
    merge_at_random(8, 1, 1, other);
    assert_memory_not_equal(first, other, sizeof first);
}

TEST_CASE(random_draws_follow_the_weights)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, 0, 1000000 }, sizeof(line_config), NULL);
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, 1000000, 500 }, sizeof(line_config), NULL);
    weir_builder_merge(builder,
                       &(weir_merge_config){ .order = WEIR_MERGE_RANDOM,
                                             .end = WEIR_MERGE_END_FIRST,
                                             .weights = (uint32_t[]){ 3, 1 },
                                             .num_weights = 2 },
                       NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_in_range(drain_all(pipeline), 1900, 2100); /* the seed is fixed */
    finish(pipeline, &ledger);
}

/* Computes for some tens of microseconds, then passes its input on. */
static int compute(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    uint64_t value = item_value(in);
    for (int i = 0; i < 30000; i++)
        value = value * 6364136223846793005u + 1;
    if (value == 0) /* so that it is computed */
        return WEIR_SKIP;
    weir_item_move(out, in);
    return WEIR_OK;
}

/* test_core counts exactly, without threads. */
TEST_CASE(endless_chains_that_share_the_pool_all_advance)
{
    static const weir_op compute_op = { .name = "compute", .run = compute };
    enum { CHAINS = 3, COUNT = 300 };
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = UINT64_MAX };
    uint64_t counts[CHAINS] = { 0 };
    weir_builder *builder = weir_builder_new();
    for (int i = 0; i < CHAINS; i++) {
        weir_builder_source(builder, &numbers_op, &numbers, 0, NULL);
        weir_builder_pipe(builder, &compute_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    }
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    for (int num_behind = CHAINS; num_behind > 0;) {
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        num_behind -= ++counts[item.source] == COUNT;
        weir_item_release(&item);
    }
    weir_pipeline_stop(pipeline);
    finish(pipeline, &ledger);
}

TEST_CASE(a_merge_may_end_with_its_first_input)
{
    static const weir_merge_order orders[] = { WEIR_MERGE_ROUND_ROBIN, WEIR_MERGE_WEIGHTED };
    static const uint32_t weights[] = { 1, 1, 1 };
    for (uint32_t i = 0; i < 2; i++) {
        test_ledger ledger = LEDGER;
        weir_merge_config config = { .order = orders[i], .end = WEIR_MERGE_END_FIRST };
        if (i) {
            config.weights = weights;
            config.num_weights = 3;
        }
        weir_pipeline *pipeline = merge_three(&ledger, &config, 0);
        expect_values(pipeline, (uint64_t[]){ A, B, C, A + 1, B + 1 }, 5);
        expect_end(pipeline, WEIR_EOF);
        finish(pipeline, &ledger);
    }
}

/* The others would never end; their items are accounted for as dropped. */
TEST_CASE(sources_that_do_not_end_are_ended_by_the_first)
{
    for (uint32_t order = WEIR_MERGE_ARRIVAL; order <= WEIR_MERGE_RANDOM; order++) {
        test_ledger ledger = LEDGER;
        weir_builder *builder = weir_builder_new();
        uint32_t weights[] = { 1, 1 };
        weir_merge_config config = { .order = (weir_merge_order)order, .end = WEIR_MERGE_END_FIRST };
        if (order >= WEIR_MERGE_WEIGHTED) {
            config.weights = weights;
            config.num_weights = 2;
        }
        weir_builder_source(builder, &line_op, &(line_config){ &ledger, 0, UINT64_MAX }, sizeof(line_config), NULL);
        weir_builder_pipe(builder, &pass_op, NULL, 0,
                          &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
        weir_builder_source(builder, &line_op, &(line_config){ &ledger, 1, 3 }, sizeof(line_config), NULL);
        weir_builder_merge(builder, &config, NULL);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 3 });
        assert_true(drain_all(pipeline) > 0);
        weir_account account;
        assert_int_equal(weir_pipeline_account(pipeline, NULL, &account), WEIR_OK);
        assert_int_equal(account.taken + account.created, account.passed_on + account.dropped + account.in_flight);
        finish(pipeline, &ledger);
    }
}

/* Completes the task of item 0 while it runs that of item 2: the results of 1 and 2 wait for their turn until then. */
typedef struct behind_config {
    test_ledger *ledger;
    test_pending *pending;
    int first_status; /* of item 0 */
    bool in_chunks;   /* the others give two results */
} behind_config;

static int behind_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const behind_config *config = weir_task_config(task);
    uint64_t value = item_value(in), chunk = weir_task_num_chunks(task);
    if (value == 0) {
        pending_add(config->pending, task, in);
        return WEIR_PENDING;
    }
    if (value == 2 && chunk == 0) {
        weir_item first = { 0 }, *first_in;
        weir_task *first_task = pending_take(config->pending, &first_in);
        if (config->first_status == WEIR_OK)
            weir_item_move(&first, first_in);
        weir_task_complete(first_task, config->first_status, config->first_status == WEIR_OK ? &first : NULL);
    }
    if (!config->in_chunks) {
        weir_item_move(out, in);
        return WEIR_OK;
    }
    ledger_fill(config->ledger, out, value, 0);
    return chunk == 0 ? WEIR_MORE : WEIR_OK;
}

static const weir_op behind_op = {
    .makes = WEIR_TYPE_ANY, .name = "behind", .config_size = sizeof(behind_config), .run = behind_run
};

/* The stage puts one result after the other in one hand-off, and the second ends the merge. The only thread runs the
   second source, which ends at once, before the first. */
static void end_a_merge_in_a_row_of_results(weir_merge_order order, behind_config config, uint64_t num_results)
{
    static const uint32_t weights[] = { 3, 1 };
    test_ledger ledger = LEDGER;
    test_pending pending = PENDING;
    weir_builder *builder = weir_builder_new();
    weir_merge_config merge = { .order = order, .end = WEIR_MERGE_END_FIRST };
    if (order == WEIR_MERGE_WEIGHTED) {
        merge.weights = weights;
        merge.num_weights = 2;
    }
    config.ledger = &ledger;
    config.pending = &pending;
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, 0, UINT64_MAX }, sizeof(line_config), NULL);
    weir_builder_pipe(builder, &behind_op, &config, sizeof(behind_config),
                      &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, 0, 0 }, sizeof(line_config), NULL);
    weir_builder_merge(builder, &merge, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 8 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 1 });
    assert_int_equal(drain_all(pipeline), num_results);
    weir_account account = account_of(pipeline, "behind");
    assert_account_is_exact(&account);
    finish(pipeline, &ledger);
}

TEST_CASE(a_merge_may_end_while_results_are_put_in_a_row)
{
    end_a_merge_in_a_row_of_results(WEIR_MERGE_WEIGHTED, (behind_config){ .first_status = WEIR_OK }, 2);
    end_a_merge_in_a_row_of_results(WEIR_MERGE_ROUND_ROBIN, (behind_config){ .first_status = WEIR_SKIP }, 1);
}

TEST_CASE(a_merge_may_end_with_a_chunk_whose_task_makes_more)
{
    end_a_merge_in_a_row_of_results(WEIR_MERGE_WEIGHTED,
                                    (behind_config){ .first_status = WEIR_OK, .in_chunks = true }, 2);
}

TEST_CASE(only_sources_without_epochs_end_with_the_first)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, A, 1 }, sizeof(line_config),
                        &(weir_stage_options){ .epochs = 2 });
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, 1 }, sizeof(line_config), NULL);
    weir_builder_merge(builder, &(weir_merge_config){ .end = WEIR_MERGE_END_FIRST }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    if (!strstr(error.message, "source src has epochs"))
        fail_msg("%s", error.message);
    ledger_close(&ledger);
}

/* The numbers of an item follow from its value alone: line (A, B, C), epoch, place in the epoch. */
TEST_CASE(items_are_numbered_by_source_and_epoch)
{
    enum { COUNT = 50, EPOCHS = 3 };
    test_ledger ledger = LEDGER;
    weir_stage_options options = { .epochs = EPOCHS };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, A, COUNT }, sizeof(line_config), &options);
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, COUNT }, sizeof(line_config), &options);
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 4 });
    weir_item item;
    uint64_t epoch = 0, delivered = 0;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        if (status == WEIR_EPOCH) {
            epoch++;
            continue;
        }
        uint64_t value = item_value(&item);
        assert_int_equal(item.source, value >= B);
        assert_int_equal(item.epoch, epoch);
        assert_int_equal(item.seq, value - (value >= B ? B : A));
        weir_item_release(&item);
        delivered++;
    }
    assert_int_equal(status, WEIR_EOF);
    assert_int_equal(delivered, 2 * COUNT * EPOCHS);
    finish(pipeline, &ledger);
}

TEST_CASE(weights_set_the_shares_of_the_inputs)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, A, 300 }, sizeof(line_config), NULL);
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, 100 }, sizeof(line_config), NULL);
    weir_builder_merge(
        builder,
        &(weir_merge_config){ .order = WEIR_MERGE_WEIGHTED, .weights = (uint32_t[]){ 3, 1 }, .num_weights = 2 },
        NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (int round = 0; round < 100; round++) {
        int from_b = 0;
        for (int i = 0; i < 4; i++)
            from_b += next_value(pipeline) >= B;
        assert_int_equal(from_b, 1);
    }
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

TEST_CASE(an_input_at_the_end_of_its_epoch_is_skipped)
{
    test_ledger ledger = LEDGER;
    weir_stage_options options = { .epochs = 2, .queue_items = 1 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, A, 1 }, sizeof(line_config), &options);
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, 20 }, sizeof(line_config), &options);
    weir_builder_merge(builder, &(weir_merge_config){ .order = WEIR_MERGE_ROUND_ROBIN }, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    for (int epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(next_value(pipeline), A);
        for (uint64_t i = 0; i < 20; i++)
            assert_int_equal(next_value(pipeline), B + i);
        expect_end(pipeline, WEIR_EPOCH);
    }
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

TEST_CASE(a_failure_in_one_line_ends_the_sources_of_the_others)
{
    static const weir_op failing_op = { .name = "failing", .run = fail_always };
    test_ledger ledger = LEDGER;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, A, 1000 }, sizeof(line_config),
                        &(weir_stage_options){ .epochs = WEIR_ENDLESS });
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, 10 }, sizeof(line_config), NULL);
    weir_builder_pipe(builder, &failing_op, NULL, 0,
                      &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = 0 } });
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH)
        weir_item_release(&item);
    assert_int_equal(status, WEIR_EFAILED);
    finish(pipeline, &ledger);
}

TEST_CASE(by_arrival_nothing_waits_for_a_source_that_is_slow)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers slow = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &slow, 0, &(weir_stage_options){ .threads = 1 });
    weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, 50 }, sizeof(line_config), NULL);
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(next_value(pipeline), B + i);
    gate_open(&gate);
    assert_int_equal(next_value(pipeline), 0);
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

TEST_CASE(weights_that_do_not_fit_are_refused)
{
    static const struct {
        uint32_t weights[2];
        size_t num_weights;
    } cases[] = { { { 1, 0 }, 2 }, { { 1, 1 }, 1 }, { { 1, 1 }, 3 } };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        test_ledger ledger = LEDGER;
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &line_op, &(line_config){ &ledger, A, 1 }, sizeof(line_config), NULL);
        weir_builder_source(builder, &line_op, &(line_config){ &ledger, B, 1 }, sizeof(line_config), NULL);
        weir_builder_merge(builder,
                           &(weir_merge_config){ .order = WEIR_MERGE_WEIGHTED,
                                                 .weights = cases[i].weights,
                                                 .num_weights = cases[i].num_weights },
                           NULL);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline;
        weir_error error = { 0 };
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
        assert_non_null(strstr(error.message, "weight"));
        assert_string_equal(error.stage, "merge");
        ledger_close(&ledger);
    }
}

/* ---- epochs ------------------------------------------------------------------------------------------------- */

static weir_builder *epochs_of(const test_numbers *numbers, uint32_t epochs)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, numbers, 0,
                        &(weir_stage_options){ .epochs = epochs, .queue_items = 1 });
    return builder;
}

TEST_CASE(no_item_crosses_the_end_of_an_epoch)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 20 };
    for (weir_order order = WEIR_ORDER_COMPLETION; order <= WEIR_ORDER_INPUT; order++) {
        weir_builder *builder = epochs_of(&numbers, 5);
        weir_builder_pipe(builder, &pass_op, NULL, 0,
                          &(weir_stage_options){ .concurrency = 7, .queue_items = 1, .output_order = order });
        weir_builder_route(builder, &(weir_route_config){ .pick = by_three, .num_branches = 3 }, NULL);
        weir_builder_branch(builder);
        weir_builder_branch(builder);
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 2 });
        weir_builder_branch(builder);
        weir_builder_join(builder, NULL);
        weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
        weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 3 });
        for (int epoch = 0; epoch < 5; epoch++)
            expect_all_once(pipeline, 20, WEIR_EPOCH);
        expect_end(pipeline, WEIR_EOF);
        expect_end(pipeline, WEIR_EOF);
        weir_account account = account_of(pipeline, NULL);
        assert_account_is_exact(&account);
        assert_int_equal(account.passed_on, 100);
        weir_pipeline_free(pipeline);
    }
    ledger_close(&ledger);
}

TEST_CASE(aggregates_flush_at_the_end_of_an_epoch)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_builder *builder = epochs_of(&numbers, 2);
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 3 }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (int epoch = 0; epoch < 2; epoch++) {
        expect_batch(pipeline, "0 1 2 ");
        expect_batch(pipeline, "3 4 ");
        expect_end(pipeline, WEIR_EPOCH);
    }
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

TEST_CASE(a_merge_passes_one_end_of_an_epoch_for_all_its_sources)
{
    test_ledger ledger = LEDGER;
    weir_pipeline *pipeline = merge_three(&ledger, &(weir_merge_config){ .order = WEIR_MERGE_ROUND_ROBIN }, 2);
    for (int epoch = 0; epoch < 2; epoch++) {
        expect_values(pipeline, (uint64_t[]){ A, B, C, A + 1, B + 1, A + 2, A + 3 }, 7);
        expect_end(pipeline, WEIR_EPOCH);
    }
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

TEST_CASE(a_source_without_epochs_belongs_to_the_first_epoch)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &(test_numbers){ .ledger = &ledger, .count = 3 }, 0,
                        &(weir_stage_options){ .epochs = 2 });
    test_numbers once = { .ledger = &ledger, .count = 2, .gate = &gate };
    weir_builder_source(builder, &numbers_op, &once, 0, NULL);
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 20 });
    weir_pipeline *pipeline = build(builder, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        weir_item_release(&item);
    }
    /* the epoch of the other source continues */
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ETIMEDOUT);
    gate_open(&gate);
    static const int expected[] = { WEIR_OK, WEIR_OK, WEIR_EPOCH, WEIR_OK, WEIR_OK, WEIR_OK, WEIR_EPOCH, WEIR_EOF };
    for (size_t i = 0; i < LENGTH(expected); i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), expected[i]);
        if (expected[i] == WEIR_OK)
            weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

typedef struct epoch_consumer {
    weir_pipeline *pipeline;
    uint64_t items, epochs;
} epoch_consumer;

static void *consume_epochs(void *argument)
{
    epoch_consumer *consumer = argument;
    weir_item item;
    int status;
    while ((status = weir_pipeline_next(consumer->pipeline, &item, WEIR_FOREVER)) != WEIR_EOF) {
        REQUIRE(status == WEIR_OK || status == WEIR_EPOCH);
        consumer->items += status == WEIR_OK;
        consumer->epochs += status == WEIR_EPOCH;
        if (status == WEIR_OK)
            weir_item_release(&item);
    }
    return NULL;
}

TEST_CASE(the_end_of_an_epoch_goes_to_one_of_several_consumers)
{
    enum { CONSUMERS = 3, EPOCHS = 50 };
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_builder *builder = epochs_of(&numbers, EPOCHS);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    epoch_consumer consumers[CONSUMERS];
    pthread_t threads[CONSUMERS];
    uint64_t items = 0, epochs = 0;
    for (int i = 0; i < CONSUMERS; i++) {
        consumers[i] = (epoch_consumer){ .pipeline = pipeline };
        threads[i] = thread_start(consume_epochs, &consumers[i]);
    }
    for (int i = 0; i < CONSUMERS; i++) {
        thread_join(threads[i]);
        items += consumers[i].items;
        epochs += consumers[i].epochs;
    }
    assert_int_equal(items, 10 * EPOCHS);
    assert_int_equal(epochs, EPOCHS);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static int fail_the_first(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (item_value(in) == 0)
        return weir_task_fail(task, WEIR_EDATA, 0, "the first of its epoch");
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(a_budget_of_failures_is_for_all_epochs)
{
    static const weir_op op = { .name = "first_fails", .run = fail_the_first };
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    weir_builder *builder = epochs_of(&numbers, WEIR_ENDLESS);
    weir_builder_pipe(builder, &op, NULL, 0,
                      &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = 2 } });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    uint64_t epochs = 0;
    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        epochs += status == WEIR_EPOCH;
        if (status == WEIR_OK)
            weir_item_release(&item);
    }
    assert_int_equal(status, WEIR_EFAILED);
    assert_int_equal(epochs, 2); /* the third epoch brings the third failure */
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static int keep_one(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    test_gate *const *gate = weir_task_config(task);
    (void)out;
    gate_pass(*gate); /* all slots have an item before any of them continues */
    weir_item_keep(worker, in);
    return WEIR_KEPT;
}

static int pass_on_one(void *worker, weir_item *out, weir_task *task)
{
    (void)task;
    weir_item *kept = worker;
    weir_item_move(out, kept);
    weir_item_release(kept);
    return WEIR_OK;
}

TEST_CASE(what_several_slots_have_kept_is_flushed_in_the_order_of_seq)
{
    enum { SLOTS = 4 };
    static const weir_op op = {
        .name = "keep",
        .config_size = sizeof(test_gate *),
        .worker_size = sizeof(weir_item),
        .run = keep_one,
        .flush = pass_on_one,
    };
    test_ledger ledger = LEDGER;
    test_gate gate = GATE, *config = &gate;
    test_numbers numbers = { .ledger = &ledger, .count = SLOTS };
    weir_builder *builder = epochs_of(&numbers, 2);
    weir_builder_pipe(builder, &op, &config, sizeof(test_gate *),
                      &(weir_stage_options){ .concurrency = SLOTS, .threads = SLOTS });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    for (int epoch = 0; epoch < 2; epoch++) {
        weir_item item;
        gate_await_waiting(&gate, SLOTS);
        gate_let(&gate, SLOTS);
        for (uint64_t i = 0; i < SLOTS; i++)
            assert_int_equal(next_value(pipeline), i);
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EPOCH);
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(an_endless_source_can_be_stopped_within_and_between_epochs)
{
    for (uint64_t taken = 0; taken <= 6; taken++) {
        test_ledger ledger = LEDGER;
        test_numbers numbers = { .ledger = &ledger, .count = 3 };
        weir_builder *builder = epochs_of(&numbers, WEIR_ENDLESS);
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
        weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
        weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
        for (uint64_t i = 0; i < taken; i++) {
            weir_item item;
            int status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
            assert_true(status == WEIR_OK || status == WEIR_EPOCH);
            weir_item_release(&item);
        }
        weir_pipeline_stop(pipeline);
        expect_end(pipeline, WEIR_ESTOPPED);
        weir_pipeline_free(pipeline);
        ledger_close(&ledger);
    }
}

TEST_CASE(empty_epochs_are_told_too)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 0 };
    weir_builder *builder = epochs_of(&numbers, 10000);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .queue_items = 1000 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1000 });
    weir_pipeline *pipeline = build(builder, NULL);
    for (int epoch = 0; epoch < 10000; epoch++)
        expect_end(pipeline, WEIR_EPOCH);
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

/* For stage hooks: self is a gate. */
static int start_at_gate(void *gate, const char *stage, weir_error *error)
{
    (void)stage;
    (void)error;
    gate_pass(gate);
    return WEIR_OK;
}

/* …: self is a counter. */
static int count_end(void *counter, const char *stage, weir_error *error)
{
    (void)stage;
    (void)error;
    counter_add(counter, 1);
    return WEIR_OK;
}

/* A million would take no more of the stack than one. */
TEST_CASE(any_number_of_empty_epochs_may_wait_in_a_queue)
{
    enum { EPOCHS = 300000 };
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_counter sources_ended = COUNTER;
    test_numbers numbers = { .ledger = &ledger, .count = 0 };
    weir_stage_hook at_gate = { .self = &gate, .start = start_at_gate };
    weir_stage_hook counted = { .self = &sources_ended, .end = count_end };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0,
                        &(weir_stage_options){
                            .epochs = EPOCHS, .queue_items = EPOCHS, .stage_hooks = &counted, .num_stage_hooks = 1 });
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .queue_items = EPOCHS, .stage_hooks = &at_gate, .num_stage_hooks = 1 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = EPOCHS });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    counter_await(&sources_ended, 1);
    gate_open(&gate);
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        assert_int_equal(weir_pipeline_next(pipeline, &(weir_item){ 0 }, WEIR_FOREVER), WEIR_EPOCH);
    expect_end(pipeline, WEIR_EOF);
    finish(pipeline, &ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
