/* Failures that the program pulls, and the causes beside them: each cause is released once, whatever becomes of its task. */
#include "tests/support.h"

#include <stdlib.h>

static test_ledger ledger;
static test_counter made, released;

/* What a task does, by the number of its item. */
typedef struct cause_plan {
    uint64_t fails_from;      /* items from this number on fail; those before succeed, also with a cause */
    uint64_t causes_for_each; /* how often a task sets a cause */
    test_gate *gate;          /* passed before the task ends (NULL = none) */
} cause_plan;

static void release_cause(void *cause)
{
    free(cause);
    counter_add(&released, 1);
}

static void set_cause(weir_task *task, uint64_t value)
{
    uint64_t *cause = malloc(sizeof *cause);
    assert_non_null(cause);
    *cause = value;
    counter_add(&made, 1);
    assert_int_equal(weir_task_set_cause(task, cause, release_cause), WEIR_OK);
}

static int run_planned(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const cause_plan *plan = weir_task_config(task);
    uint64_t value = item_value(in);
    (void)worker;
    for (uint64_t i = plan->causes_for_each; i > 0; i--)
        set_cause(task, 1000 * (i - 1) + value);
    if (plan->gate)
        gate_pass(plan->gate);
    if (value >= plan->fails_from)
        return weir_task_fail(task, WEIR_EDATA, -7, "number %d is damaged", (int)value);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op planned_op = { .name = "planned", .run = run_planned };

static weir_pipeline *build_planned(const cause_plan *plan, uint64_t count, weir_pipeline_options options)
{
    ledger_init(&ledger);
    counter_init(&made);
    counter_init(&released);
    static test_numbers numbers;
    numbers = (test_numbers){ .ledger = &ledger, .count = count, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &planned_op, plan, 0, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    options.threads = options.threads ? options.threads : 2;
    return build(builder, &options);
}

static void end_test(weir_pipeline *pipeline)
{
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&released), counter_value(&made));
    ledger_close(&ledger);
}

static weir_kept_failure *pull(weir_pipeline *pipeline)
{
    weir_kept_failure *failure;
    int status = weir_pipeline_next_failure(pipeline, &failure);
    assert_int_equal(status, failure ? WEIR_OK : WEIR_ENOTFOUND);
    return failure;
}

TEST_CASE(a_pulled_failure_has_its_item_its_error_and_its_cause)
{
    const cause_plan plan = { .fails_from = 2, .causes_for_each = 1 };
    weir_pipeline *pipeline = build_planned(&plan, 3, (weir_pipeline_options){ .threads = 1, .kept_failures = 10 });
    assert_int_equal(drain_all(pipeline), 2);
    assert_int_equal(counter_value(&released), 2); /* of the tasks that have not failed */
    weir_kept_failure *kept = pull(pipeline);
    assert_non_null(kept);
    assert_string_equal(kept->failure->name, "0:1:planned[3]");
    assert_string_equal(kept->failure->label, "item-2");
    assert_string_equal(kept->failure->identity.address, "item-2");
    assert_string_equal(kept->failure->message, "number 2 is damaged");
    assert_int_equal(kept->failure->status, WEIR_EDATA);
    assert_int_equal(kept->failure->library_code, -7);
    assert_int_equal(kept->failure->seq, 2);
    assert_int_equal(kept->attempt, 0);
    assert_int_equal(kept->num_lost, 0);
    assert_int_equal(*(uint64_t *)kept->cause, 2);
    assert_null(pull(pipeline));
    assert_int_equal(counter_value(&released), 2);
    weir_kept_failure_free(kept);
    assert_int_equal(counter_value(&released), 3);
    end_test(pipeline);
}

TEST_CASE(a_cause_that_the_program_takes_is_its_own_beyond_the_pipeline)
{
    const cause_plan plan = { .causes_for_each = 1 };
    weir_pipeline *pipeline = build_planned(&plan, 2, (weir_pipeline_options){ .threads = 1, .kept_failures = 10 });
    assert_int_equal(drain_all(pipeline), 0);
    weir_kept_failure *first = pull(pipeline), *second = pull(pipeline);
    uint64_t *cause = first->cause;
    first->cause = NULL;
    weir_kept_failure_free(first);
    assert_int_equal(counter_value(&released), 0);
    assert_int_equal(*cause, 0);
    weir_pipeline_free(pipeline);
    assert_string_equal(second->failure->label, "item-1");
    weir_kept_failure_free(second);
    assert_int_equal(counter_value(&released), 1);
    free(cause);
    ledger_close(&ledger);
}

TEST_CASE(the_last_of_several_causes_counts_and_the_others_are_released)
{
    const cause_plan plan = { .causes_for_each = 3 };
    weir_pipeline *pipeline = build_planned(&plan, 1, (weir_pipeline_options){ .kept_failures = 10 });
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(counter_value(&released), 2);
    weir_kept_failure *kept = pull(pipeline);
    assert_int_equal(*(uint64_t *)kept->cause, 0);
    weir_kept_failure_free(kept);
    end_test(pipeline);
}

TEST_CASE(of_too_many_failures_the_newest_are_kept_and_the_others_counted)
{
    const cause_plan plan = { .causes_for_each = 1 };
    weir_pipeline *pipeline = build_planned(&plan, 10, (weir_pipeline_options){ .threads = 1, .kept_failures = 3 });
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(counter_value(&released), 7);
    for (uint64_t i = 7; i < 10; i++) {
        weir_kept_failure *kept = pull(pipeline);
        assert_int_equal(kept->failure->seq, i);
        assert_int_equal(*(uint64_t *)kept->cause, i);
        assert_int_equal(kept->num_lost, i == 7 ? 7 : 0);
        weir_kept_failure_free(kept);
    }
    assert_null(pull(pipeline));
    end_test(pipeline);
}

TEST_CASE(without_the_option_nothing_is_kept_and_causes_are_released)
{
    const cause_plan plan = { .causes_for_each = 2 };
    weir_pipeline *pipeline = build_planned(&plan, 100, (weir_pipeline_options){ 0 });
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(counter_value(&released), 200);
    assert_null(pull(pipeline));
    end_test(pipeline);
}

TEST_CASE(what_nobody_pulls_is_released_with_the_pipeline)
{
    const cause_plan plan = { .fails_from = 50, .causes_for_each = 1 };
    weir_pipeline *pipeline = build_planned(&plan, 100, (weir_pipeline_options){ .kept_failures = 1000 });
    assert_int_equal(drain_all(pipeline), 50);
    assert_int_equal(counter_value(&released), 50);
    end_test(pipeline);
}

/* Returns how many were pulled or lost. */
static void *pull_all(void *argument)
{
    weir_pipeline *pipeline = argument;
    uintptr_t num_failures = 0;
    for (bool have_all_failed = false, is_empty = false; !have_all_failed || !is_empty;) {
        have_all_failed = account_of(pipeline, "planned").failed == 2000;
        weir_kept_failure *kept = pull(pipeline);
        is_empty = !kept;
        num_failures += kept ? 1 + kept->num_lost : 0;
        weir_kept_failure_free(kept);
    }
    return (void *)num_failures;
}

TEST_CASE(pulled_and_lost_failures_add_up_to_those_of_the_account)
{
    const cause_plan plan = { .causes_for_each = 1 };
    weir_pipeline *pipeline = build_planned(&plan, 2000, (weir_pipeline_options){ .kept_failures = 5 });
    pthread_t puller = thread_start(pull_all, pipeline);
    assert_int_equal(drain_all(pipeline), 0);
    void *num_pulled;
    pthread_join(puller, &num_pulled);
    assert_int_equal((uintptr_t)num_pulled, 2000);
    end_test(pipeline);
}

TEST_CASE(the_failure_that_ends_the_run_can_be_pulled_once_the_consumer_knows_of_it)
{
    const cause_plan plan = { .fails_from = 5, .causes_for_each = 1 };
    weir_pipeline_options strict = { .threads = 1,
                                     .kept_failures = 10,
                                     .max_failures = { .kind = WEIR_FAILURES_COUNT } };
    weir_pipeline *pipeline = build_planned(&plan, 100, strict);
    int status;
    drain(pipeline, &status);
    assert_int_equal(status, WEIR_EFAILED);
    weir_kept_failure *kept = pull(pipeline);
    assert_int_equal(*(uint64_t *)kept->cause, 5);
    weir_kept_failure_free(kept);
    end_test(pipeline);
}

TEST_CASE(a_task_that_is_asked_to_stop_releases_its_cause_and_keeps_no_failure)
{
    test_gate gate;
    gate_init(&gate);
    const cause_plan plan = { .causes_for_each = 1, .gate = &gate };
    weir_pipeline *pipeline = build_planned(&plan, 100, (weir_pipeline_options){ .kept_failures = 10 });
    gate_await_waiting(&gate, 2);
    weir_pipeline_stop(pipeline);
    gate_open(&gate);
    await_work_end(pipeline);
    assert_null(pull(pipeline));
    assert_int_equal(counter_value(&released), counter_value(&made));
    end_test(pipeline);
}

/* ---- where causes come from ---------------------------------------------------------------------------------- */

static int fail_source(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    set_cause(task, 77);
    return weir_task_fail(task, WEIR_EIO, 0, "the list cannot be read");
}

static const weir_op failing_source = { .name = "broken", .run = fail_source };

TEST_CASE(the_failure_of_a_source_is_kept_too)
{
    counter_init(&made);
    counter_init(&released);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &failing_source, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .kept_failures = 1 });
    int status;
    drain(pipeline, &status);
    assert_int_equal(status, WEIR_EFAILED);
    weir_kept_failure *kept = pull(pipeline);
    assert_string_equal(kept->failure->name, "0:0:src");
    assert_string_equal(kept->failure->message, "the list cannot be read");
    assert_int_equal(*(uint64_t *)kept->cause, 77);
    weir_kept_failure_free(kept);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&released), 1);
}

TEST_CASE(whoever_completes_a_pending_task_can_set_its_cause)
{
    ledger_init(&ledger);
    counter_init(&made);
    counter_init(&released);
    test_pending pending = PENDING;
    pending_init(&pending);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .kept_failures = 1 });
    weir_task *task = pending_take(&pending, NULL);
    set_cause(task, 5);
    weir_task_complete(task, weir_task_fail(task, WEIR_EIO, 0, "no answer"), NULL);
    assert_int_equal(drain_all(pipeline), 0);
    weir_kept_failure *kept = pull(pipeline);
    assert_string_equal(kept->failure->message, "no answer");
    assert_int_equal(*(uint64_t *)kept->cause, 5);
    weir_kept_failure_free(kept);
    end_test(pipeline);
}

static int set_cause_at_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    (void)self;
    (void)state;
    set_cause(task, end->status < 0 ? 300 : 400);
    return WEIR_OK;
}

TEST_CASE(a_task_hook_can_set_the_cause)
{
    const cause_plan plan = { .fails_from = 1 };
    weir_task_hook hook = { .end = set_cause_at_end };
    weir_pipeline *pipeline = build_planned(
        &plan, 2, (weir_pipeline_options){ .kept_failures = 9, .task_hooks = &hook, .num_task_hooks = 1 });
    assert_int_equal(drain_all(pipeline), 1);
    weir_kept_failure *kept = pull(pipeline);
    assert_int_equal(*(uint64_t *)kept->cause, 300);
    weir_kept_failure_free(kept);
    end_test(pipeline);
}

/* Promises a result for each item: what fails is replaced until the third attempt. */
static int make_other(const void *config, uint64_t epoch, uint64_t seq, uint64_t attempt, weir_item *out,
                      weir_error *error)
{
    (void)config;
    (void)epoch;
    (void)error;
    if (attempt)
        ledger_fill(&ledger, out, attempt < 3 ? 9 : 0, 0);
    (void)seq;
    return WEIR_OK;
}

TEST_CASE(each_attempt_in_a_place_is_a_failure_with_its_number)
{
    ledger_init(&ledger);
    counter_init(&made);
    counter_init(&released);
    weir_op source = numbers_op;
    source.replace = make_other;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    const cause_plan plan = { .fails_from = 9, .causes_for_each = 1 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, &numbers, 0, NULL);
    weir_builder_pipe(builder, &planned_op, &plan, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .kept_failures = 9 });
    assert_int_equal(drain_all(pipeline), 10);
    for (uint64_t attempt = 0; attempt < 3; attempt++) {
        weir_kept_failure *kept = pull(pipeline);
        assert_int_equal(kept->failure->seq, 9);
        assert_int_equal(kept->attempt, attempt);
        weir_kept_failure_free(kept);
    }
    assert_null(pull(pipeline));
    end_test(pipeline);
}

/* Items without anything to release, so that short steps run in bursts. */
static int count_up(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *num_made = worker;
    (void)in;
    (void)task;
    if (*num_made == 20000)
        return WEIR_EOF;
    out->data = (void *)(uintptr_t)++ * num_made;
    return WEIR_OK;
}

static void count_release(void *cause)
{
    (void)cause;
    counter_add(&released, 1);
}

static int fail_each_64th(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if ((uintptr_t)in->data % 64 == 0)
        return weir_task_fail(task, WEIR_EDATA, 0, "without a cause");
    weir_task_set_cause(task, task, count_release);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op count_up_op = { .name = "count_up", .worker_size = sizeof(uint64_t), .run = count_up };
static const weir_op fail_each_64th_op = { .name = "fail_each_64th", .run = fail_each_64th };

TEST_CASE(in_a_burst_of_steps_no_failure_gets_the_cause_of_another_task)
{
    counter_init(&released);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &count_up_op, NULL, 0, &(weir_stage_options){ .queue_items = 256 });
    weir_builder_pipe(builder, &fail_each_64th_op, NULL, 0, &(weir_stage_options){ .queue_items = 256 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 256 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 1, .kept_failures = 1000 });
    assert_int_equal(drain_all(pipeline), 20000 - 20000 / 64);
    assert_int_equal(counter_value(&released), 20000 - 20000 / 64);
    for (uint64_t i = 0; i < 20000 / 64; i++) {
        weir_kept_failure *kept = pull(pipeline);
        assert_null(kept->cause);
        weir_kept_failure_free(kept);
    }
    assert_null(pull(pipeline));
    weir_pipeline_free(pipeline);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
