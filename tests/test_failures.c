/* Failures: which are tolerated, which are not, where they are reported, and which results are still delivered. */
#include "tests/support.h"

#include <sched.h>

static test_ledger ledger;

static weir_pipeline_options one_thread = { .threads = 1 };

/* Which numbers fail. */
typedef struct failing_config {
    uint64_t from, until; /* from this one, up to before that one */
    uint64_t every;       /* every how many-th of these fails (0 = all) */
} failing_config;

static int fail_some(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const failing_config *failing = weir_task_config(task);
    uint64_t value = item_value(in);
    (void)worker;
    if (value >= failing->from && value < failing->until &&
        (failing->every == 0 || (value - failing->from) % failing->every == 0))
        return weir_task_fail(task, WEIR_EDATA, -1000 - (int)value, "number %d is damaged", (int)value);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op failing_op = { .name = "failing", .run = fail_some };

/* Every way out ends like this: the account is exact, nothing is in flight, every item has been released. */
static void end_and_check(weir_pipeline *pipeline, uint64_t delivered)
{
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    assert_int_equal(account.passed_on, delivered);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static void assert_failed_for_good(weir_pipeline *pipeline)
{
    weir_item item;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EFAILED);
        assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_EFAILED);
    }
}

/* ---- budgets ------------------------------------------------------------------------------------------------ */

#define COUNT_OF(n) \
    { \
        .kind = WEIR_FAILURES_COUNT, .count = (n) \
    }
#define RATE_OF(n, of) \
    { \
        .kind = WEIR_FAILURES_RATE, .num = (n), .den = (of) \
    }
#define ANY_NUMBER \
    { \
        .kind = WEIR_FAILURES_ANY \
    }

static const struct {
    const char *what;
    uint64_t count; /* of items */
    uint32_t slots;
    weir_max_failures of_pipeline, of_stage;
    failing_config failing;
    uint64_t failures;  /* that are counted */
    uint64_t delivered; /* then comes the end, or, if `fails`, WEIR_EFAILED */
    bool fails;
} budgets[] = {
    { "any number by default", 1000, 3, ANY_NUMBER, ANY_NUMBER, { 0, 1000, 0 }, 1000, 0, false },
    { "-1 is any number", 1000, 1, COUNT_OF(-1), ANY_NUMBER, { 0, 1000, 0 }, 1000, 0, false },
    { "none is tolerated", 1000, 1, COUNT_OF(0), ANY_NUMBER, { 7, 1000, 0 }, 1, 7, true },
    { "none is tolerated and none comes", 1000, 1, COUNT_OF(0), ANY_NUMBER, { 0, 0, 0 }, 0, 1000, false },
    { "three are tolerated", 1000, 1, ANY_NUMBER, COUNT_OF(3), { 10, 1000, 10 }, 4, 37, true },
    { "three are tolerated and three come", 1000, 1, ANY_NUMBER, COUNT_OF(3), { 10, 13, 0 }, 3, 997, false },
    { "the stage's is looser", 1000, 3, COUNT_OF(0), COUNT_OF(-1), { 0, 500, 0 }, 500, 500, false },
    { "the stage's is tighter", 1000, 1, COUNT_OF(-1), COUNT_OF(1), { 0, 500, 0 }, 2, 0, true },
    { "the stage's rate, the pipeline's count", 1000, 1, COUNT_OF(0), RATE_OF(1, 2), { 0, 50, 0 }, 50, 950, false },
    { "a rate is checked from 100 tasks on", 1000, 1, RATE_OF(1, 2), ANY_NUMBER, { 0, 1000, 0 }, 100, 0, true },
    { "a rate reached is not exceeded", 1000, 1, RATE_OF(1, 10), ANY_NUMBER, { 9, 1000, 10 }, 100, 900, false },
    { "a rate exceeded at 100 tasks", 1000, 1, RATE_OF(1, 10), ANY_NUMBER, { 0, 1000, 9 }, 12, 88, true },
    { "a rate exceeded only before it is judged", 1000, 1, RATE_OF(1, 2), ANY_NUMBER, { 0, 60, 0 }, 60, 40, true },
    { "a rate exceeded later", 1000, 1, RATE_OF(1, 10), ANY_NUMBER, { 900, 1000, 0 }, 100, 900, false },
    { "a rate exceeded much later", 1000, 1, RATE_OF(1, 20), ANY_NUMBER, { 900, 1000, 0 }, 48, 900, true },
    { "a rate of nothing", 1000, 1, RATE_OF(0, 1), ANY_NUMBER, { 150, 151, 0 }, 1, 150, true },
    { "all may fail", 1000, 1, RATE_OF(1, 1), ANY_NUMBER, { 0, 1000, 0 }, 1000, 0, false },
    { "a rate of which none comes", 1000, 1, RATE_OF(99, 100), ANY_NUMBER, { 0, 0, 0 }, 0, 1000, false },
    { "the stage's rate is tighter", 100, 1, RATE_OF(19, 100), RATE_OF(11, 100), { 0, 100, 7 }, 15, 85, true },
    { "a rate with five slots", 100, 5, RATE_OF(1, 2), RATE_OF(3, 20), { 0, 100, 5 }, 20, 80, true },
    { "20 tasks are too few to judge", 20, 1, RATE_OF(1, 100), ANY_NUMBER, { 0, 20, 5 }, 4, 16, false },
};

static void run_budget(size_t i, weir_order order, bool own_threads)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = budgets[i].count };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &budgets[i].failing, 0,
                      &(weir_stage_options){ .concurrency = budgets[i].slots,
                                             .threads = own_threads ? budgets[i].slots : 0,
                                             .output_order = order,
                                             .max_failures = budgets[i].of_stage });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 2, .max_failures = budgets[i].of_pipeline });
    int status;
    uint64_t delivered = drain(pipeline, &status);
    uint64_t failures = account_of(pipeline, "failing").failed;
    if (delivered != budgets[i].delivered || failures != budgets[i].failures ||
        status != (budgets[i].fails ? WEIR_EFAILED : WEIR_EOF))
        fail_msg("%s, order %d, own threads %d: %d delivered, %d failures, %s", budgets[i].what, (int)order,
                 own_threads, (int)delivered, (int)failures, weir_status_name(status));
    assert_int_equal(account_of(pipeline, "pass").taken, delivered); /* nothing else runs behind it */
    end_and_check(pipeline, delivered);
}

TEST_CASE(failures_are_borne_up_to_the_budget)
{
    for (size_t i = 0; i < LENGTH(budgets); i++)
        for (weir_order order = WEIR_ORDER_COMPLETION; order <= WEIR_ORDER_INPUT; order++) {
            run_budget(i, order, false);
            run_budget(i, order, true);
        }
}

TEST_CASE(beyond_the_budget_the_error_tells_the_numbers_and_the_last_failure)
{
    weir_error error = { 0 };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 100, .labelled = true };
    failing_config failing = { .from = 10, .until = 100, .every = 5 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &failing, 0, &(weir_stage_options){ .max_failures = COUNT_OF(2) });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &one_thread);
    int status;
    uint64_t delivered = drain(pipeline, &status);
    assert_int_equal(status, WEIR_EFAILED);
    weir_pipeline_error(pipeline, NULL, &error);
    assert_int_equal(error.status, WEIR_EDATA);
    assert_int_equal(error.library_code, -1020);
    assert_string_equal(error.stage, "0:1:failing");
    assert_string_equal(error.label, "item-20");
    assert_non_null(strstr(error.message, "3 of 21 tasks failed"));
    assert_non_null(strstr(error.message, "number 20 is damaged"));
    end_and_check(pipeline, delivered);
}

/* ---- errors ------------------------------------------------------------------------------------------------- */

TEST_CASE(each_stage_keeps_its_first_error)
{
    static const struct {
        const char *name;
        int status, library_code;
        const char *stage, *label, *message;
    } expected[] = {
        { "failing", WEIR_EDATA, -1003, "0:1:failing", "item-3", "number 3 is damaged" },
        { "0:1:failing", WEIR_EDATA, -1003, "0:1:failing", "item-3", "number 3 is damaged" },
        { "second", WEIR_EDATA, -1005, "0:2:second", "item-5", "number 5 is damaged" },
        { "0:3:pass", WEIR_OK, 0, "", "", "" },
        { "sink", WEIR_OK, 0, "", "", "" },
    };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 20, .labelled = true };
    failing_config first = { .from = 3, .until = 20, .every = 4 }, second = { .from = 5, .until = 20, .every = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &first, 0, NULL);
    weir_builder_pipe(builder, &failing_op, &second, 0, &(weir_stage_options){ .name = "second" });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    uint64_t delivered = drain_all(pipeline);
    weir_error error = { 0 };
    for (size_t i = 0; i < LENGTH(expected); i++) {
        memset(&error, 0xff, sizeof error);
        assert_int_equal(weir_pipeline_error(pipeline, expected[i].name, &error), expected[i].status);
        assert_int_equal(error.status, expected[i].status);
        assert_int_equal(error.library_code, expected[i].library_code);
        assert_string_equal(error.stage, expected[i].stage);
        assert_string_equal(error.label, expected[i].label);
        assert_string_equal(error.message, expected[i].message);
    }
    assert_int_equal(weir_pipeline_error(pipeline, "nobody", &error), WEIR_ENOTFOUND);
    assert_int_equal(weir_pipeline_error(pipeline, NULL, &error), WEIR_OK);
    assert_int_equal(error.status, WEIR_OK);
    end_and_check(pipeline, delivered);
}

/* Returns what its options say. */
static int return_number(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    return *(const int *)weir_task_config(task);
}

static const weir_op returning_op = { .name = "returning", .run = return_number };

TEST_CASE(a_result_that_is_none_fails_the_task)
{
    static const int wrong[] = { WEIR_EOF, WEIR_EPOCH, WEIR_KEPT, 99 };
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        weir_error error = { 0 };
        ledger_init(&ledger);
        test_numbers numbers = { .ledger = &ledger, .count = 3 };
        weir_builder *builder = builder_with(&numbers);
        weir_builder_pipe(builder, &returning_op, &wrong[i], 0, NULL);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build(builder, NULL);
        assert_int_equal(drain_all(pipeline), 0);
        weir_pipeline_error(pipeline, "returning", &error);
        assert_int_equal(error.status, WEIR_EINVAL);
        assert_non_null(strstr(error.message, weir_status_name(wrong[i])));
        assert_int_equal(account_of(pipeline, "returning").failed, 3);
        end_and_check(pipeline, 0);
    }
}

TEST_CASE(a_failure_without_a_word_gets_the_text_of_its_status)
{
    static const int status = WEIR_EACCESS;
    weir_error error = { 0 };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &returning_op, &status, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_error(pipeline, "returning", &error);
    assert_int_equal(error.status, WEIR_EACCESS);
    assert_int_equal(error.library_code, 0);
    assert_non_null(strstr(error.message, weir_status_text(WEIR_EACCESS)));
    end_and_check(pipeline, 0);
}

static int fail_in_words(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    weir_task_fail(task, WEIR_EIO, 1, "first thought");
    if (item_value(in) == 0)
        return weir_task_fail(task, WEIR_EDATA, 2, "second thought");
    return item_value(in) == 1 ? WEIR_ENOTFOUND : WEIR_SKIP;
}

TEST_CASE(the_last_word_of_a_task_counts_and_the_status_returned)
{
    static const weir_op op = { .name = "talking", .run = fail_in_words };
    test_recorder recorder;
    recorder_init(&recorder);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .observers = &recorder.observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 0);
    end_and_check(pipeline, 0);
    /* a skipped task has not failed, whatever weir_task_fail() said before */
    assert_int_equal(recorder.num_failures, 2);
    assert_int_equal(recorder.failures[0].failure.status, WEIR_EDATA);
    assert_int_equal(recorder.failures[0].failure.library_code, 2);
    assert_string_equal(recorder.failures[0].message, "second thought");
    assert_int_equal(recorder.failures[1].failure.status, WEIR_ENOTFOUND);
    assert_string_equal(recorder.failures[1].message, "first thought");
    recorder_free(&recorder);
}

static int fail_with_result(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    ledger_fill(&ledger, out, item_value(in), 0);
    return WEIR_EIO;
}

TEST_CASE(the_result_of_a_failed_task_is_released)
{
    static const weir_op op = { .name = "half", .run = fail_with_result };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(drain_all(pipeline), 0);
    end_and_check(pipeline, 0);
}

static int label_at_length(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static _Thread_local char label[3000];
    (void)worker;
    (void)task;
    memset(label, '/', sizeof label - 1);
    strcpy(label + sizeof label - sizeof "end.mp4", "end.mp4");
    weir_item_move(out, in);
    out->label = label;
    return WEIR_OK;
}

/* The end of a path is more informative than its beginning. */
TEST_CASE(of_a_long_label_the_end_is_kept)
{
    static const weir_op op = { .name = "label", .run = label_at_length };
    static const int status = WEIR_EIO;
    weir_error error = { 0 };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, NULL);
    weir_builder_pipe(builder, &returning_op, &status, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    drain_all(pipeline);
    weir_pipeline_error(pipeline, "returning", &error);
    assert_int_equal(strlen(error.label), sizeof error.label - 1);
    assert_string_equal(error.label + sizeof error.label - sizeof "end.mp4", "end.mp4");
    end_and_check(pipeline, 0);
}

TEST_CASE(a_failure_is_logged_with_stage_and_label)
{
    char line[512];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 9, .labelled = true };
    failing_config failing = { .from = 4, .until = 5 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &failing, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    uint64_t delivered = drain_all(pipeline);
    end_and_check(pipeline, delivered);
    assert_int_equal(logged_lines(WEIR_LOG_WARNING), 1);
    last_logged_line(WEIR_LOG_WARNING, line, sizeof line);
    assert_string_equal(line, "0:1:failing: item-4: number 4 is damaged (WEIR_EDATA)");
}

/* ---- what fails the pipeline -------------------------------------------------------------------------------- */

static void fail_source_behind(uint64_t count)
{
    weir_error error = { 0 };
    test_recorder recorder;
    recorder_init(&recorder);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = count, .end_status = WEIR_ENOTFOUND };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .observers = &recorder.observer, .num_observers = 1 });
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(next_value(pipeline), i);
    assert_failed_for_good(pipeline);
    weir_pipeline_error(pipeline, NULL, &error);
    assert_int_equal(error.status, WEIR_ENOTFOUND);
    assert_string_equal(error.stage, "0:0:src");
    weir_pipeline_error(pipeline, "0:0:src", &error);
    assert_int_equal(error.status, WEIR_ENOTFOUND);
    end_and_check(pipeline, count);
    assert_int_equal(recorder.end.status, WEIR_EFAILED);
    assert_int_equal(recorder_events_named(&recorder, "failed"), 1);
    recorder_free(&recorder);
}

TEST_CASE(a_failed_source_fails_the_pipeline_after_what_it_has_made)
{
    fail_source_behind(20);
    fail_source_behind(0);
}

TEST_CASE(a_source_that_wants_to_go_on_without_input_has_failed)
{
    static const int more = WEIR_MORE;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &returning_op, &more, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_failed_for_good(pipeline);
    weir_pipeline_error(pipeline, NULL, &error);
    assert_int_equal(error.status, WEIR_EINVAL);
    assert_non_null(strstr(error.message, "WEIR_MORE"));
    weir_pipeline_free(pipeline);
}

/* Item 5 fails the stage while its results are in the queue and at the downstream gate; the source is endless. */
TEST_CASE(what_is_already_downstream_is_still_delivered)
{
    test_gate gate = GATE;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = UINT64_MAX };
    failing_config failing = { .from = 5, .until = 6 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &failing, 0,
                      &(weir_stage_options){ .max_failures = COUNT_OF(0), .queue_items = 10 });
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 2 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    gate_await_waiting(&gate, 1);
    weir_error error = { 0 };
    while (error.status == WEIR_OK) /* the failure is known before the consumer gets it */
        weir_pipeline_error(pipeline, NULL, &error);
    gate_open(&gate);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(next_value(pipeline), i);
    assert_failed_for_good(pipeline);
    end_and_check(pipeline, 5);
}

/* The second of two slots holds a result that waits for its turn when the first one's failure ends everything. */
static int fail_slowly(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (item_value(in) == 0) {
        gate_pass((test_gate *)weir_task_config(task));
        return WEIR_EIO;
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(results_that_wait_for_their_turn_are_delivered_too)
{
    static const weir_op op = { .name = "slow", .run = fail_slowly };
    enum { SLOTS = 4 };
    test_gate gate = GATE;
    test_counter made = COUNTER;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = UINT64_MAX, .made = &made };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(
        builder, &op, &gate, 0,
        &(weir_stage_options){
            .concurrency = SLOTS, .queue_items = 1, .output_order = WEIR_ORDER_INPUT, .max_failures = COUNT_OF(0) });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2 });
    counter_await(&made, SLOTS + 2 + 1); /* so every slot has taken its input */
    gate_open(&gate);
    for (uint64_t i = 1; i < SLOTS; i++)
        assert_int_equal(next_value(pipeline), i);
    assert_failed_for_good(pipeline);
    end_and_check(pipeline, SLOTS - 1);
}

static int obey(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    if (item_value(in) == 0) {
        gate_pass((test_gate *)weir_task_config(task));
        return WEIR_EIO;
    }
    gate_let((test_gate *)weir_task_config(task), 1);
    while (!weir_task_should_stop(task))
        ;
    return weir_task_fail(task, WEIR_ESTOPPED, 0, "asked to stop");
}

/* A running task of the failing stage is asked to stop; its result does not count as a second failure. */
TEST_CASE(tasks_beside_the_failed_one_are_asked_to_stop)
{
    static const weir_op op = { .name = "obey", .run = obey };
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &gate, 0, &(weir_stage_options){ .concurrency = 2, .max_failures = COUNT_OF(0) });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 2, .observers = &recorder.observer, .num_observers = 1 });
    assert_failed_for_good(pipeline);
    weir_account account = account_of(pipeline, "obey");
    assert_int_equal(account.failed, 1);
    assert_int_equal(account.dropped, 1);
    end_and_check(pipeline, 0);
    assert_int_equal(recorder.num_failures, 1);
    recorder_free(&recorder);
}

TEST_CASE(a_failure_in_one_line_ends_the_other_sources_too)
{
    ledger_init(&ledger);
    test_numbers endless = { .ledger = &ledger, .count = UINT64_MAX };
    test_numbers short_one = { .ledger = &ledger, .count = 3, .end_status = WEIR_EIO };
    weir_builder *builder = builder_with(&endless);
    weir_builder_source(builder, &numbers_op, &short_one, 0, NULL);
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    int status;
    uint64_t delivered = drain(pipeline, &status);
    assert_int_equal(status, WEIR_EFAILED);
    assert_failed_for_good(pipeline);
    end_and_check(pipeline, delivered);
}

/* Fails for the first numbers; runs the hundredth task until nobody wants its result, and then succeeds. */
typedef struct late_config {
    uint64_t num_failing;
    test_gate *begun;
} late_config;

static int succeed_late(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const late_config *late = weir_task_config(task);
    uint64_t value = item_value(in);
    (void)worker;
    if (value < late->num_failing)
        return weir_task_fail(task, WEIR_EDATA, 0, "number %d is damaged", (int)value);
    if (value == 99) {
        gate_open(late->begun);
        while (!weir_task_should_stop(task))
            sched_yield();
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op late_op = { .name = "late", .run = succeed_late };

/* The merge is at its end before the hundredth task is, with which the rate of the other line would be judged. Held constant:
   one slot, and a task that succeeds; one that fails in a line that nobody wants is not counted at all. */
TEST_CASE(a_line_that_nobody_wants_any_more_is_not_judged_by_its_failures)
{
    test_gate gate = GATE;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    test_numbers short_one = { .ledger = &ledger, .count = 1, .gate = &gate };
    late_config late = { .num_failing = 60, .begun = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &late_op, &late, 0, &(weir_stage_options){ .max_failures = RATE_OF(1, 2) });
    weir_builder_source(builder, &numbers_op, &short_one, 0, NULL);
    weir_builder_merge(builder, &(weir_merge_config){ .end = WEIR_MERGE_END_FIRST }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 3 });
    int status;
    weir_error error = { 0 };
    weir_item item;
    uint64_t delivered = drain(pipeline, &status);
    assert_int_equal(status, WEIR_EOF);
    while (account_of(pipeline, "late").in_flight) /* the end of the merge is the end for the consumer */
        sched_yield();
    assert_int_equal(weir_pipeline_error(pipeline, NULL, &error), WEIR_OK);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    assert_int_equal(delivered, 39 + 1);
    assert_int_equal(account_of(pipeline, "late").failed, 60);
    end_and_check(pipeline, delivered);
}

/* Thirty consecutive routes are a billion paths. */
static int pick_last_bit(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item->seq % 2);
}

TEST_CASE(a_failure_behind_many_routes_ends_them_all)
{
    static const weir_route_config route = { .pick = pick_last_bit, .num_branches = 2 };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = UINT64_MAX };
    failing_config failing = { .from = 20, .until = 21 };
    weir_builder *builder = builder_with(&numbers);
    for (int i = 0; i < 30; i++) {
        weir_builder_route(builder, &route, NULL);
        weir_builder_branch(builder);
        weir_builder_branch(builder);
        weir_builder_join(builder, NULL);
    }
    weir_builder_pipe(builder, &failing_op, &failing, 0, &(weir_stage_options){ .max_failures = COUNT_OF(0) });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    int status;
    uint64_t delivered = drain(pipeline, &status);
    assert_int_equal(status, WEIR_EFAILED);
    end_and_check(pipeline, delivered);
}

/* ---- stage hooks -------------------------------------------------------------------------------------------- */

typedef struct hook_config {
    int start_status, end_status;
    test_counter starts, ends;
} hook_config;

static int on_stage_start(void *self, const char *stage, weir_error *error)
{
    hook_config *hook = self;
    counter_add(&hook->starts, 1);
    if (hook->start_status < 0)
        return weir_error_set(error, hook->start_status, 7, "%s has no model", stage);
    return hook->start_status;
}

static int on_stage_end(void *self, const char *stage, weir_error *error)
{
    hook_config *hook = self;
    counter_add(&hook->ends, 1);
    if (hook->end_status < 0)
        return weir_error_set(error, hook->end_status, 8, "%s cannot write its cache", stage);
    return hook->end_status;
}

static weir_pipeline *build_hooked(const test_numbers *numbers, hook_config *hook, test_recorder *recorder)
{
    weir_stage_hook stage_hook = { .self = hook, .start = on_stage_start, .end = on_stage_end };
    recorder_init(recorder);
    ledger_init(&ledger);
    counter_init(&hook->starts);
    counter_init(&hook->ends);
    weir_builder *builder = builder_with(numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .name = "hooked", .stage_hooks = &stage_hook, .num_stage_hooks = 1 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    return build(builder, &(weir_pipeline_options){ .observers = &recorder->observer, .num_observers = 1 });
}

TEST_CASE(a_stage_hook_that_fails_at_the_start_fails_the_pipeline)
{
    test_numbers numbers = { .ledger = &ledger, .count = UINT64_MAX };
    hook_config hook = { .start_status = WEIR_ENOTFOUND };
    test_recorder recorder;
    weir_error error = { 0 };
    weir_pipeline *pipeline = build_hooked(&numbers, &hook, &recorder);
    assert_failed_for_good(pipeline);
    weir_pipeline_error(pipeline, NULL, &error);
    assert_int_equal(error.status, WEIR_ENOTFOUND);
    assert_int_equal(error.library_code, 7);
    assert_string_equal(error.stage, "0:1:hooked");
    assert_string_equal(error.message, "0:1:hooked has no model");
    assert_int_equal(account_of(pipeline, "hooked").passed_on, 0);
    end_and_check(pipeline, 0);
    assert_int_equal(counter_value(&hook.ends), 0); /* only what has started ends */
    assert_int_equal(recorder.end.status, WEIR_EFAILED);
    recorder_free(&recorder);
}

TEST_CASE(a_stage_hook_that_fails_at_the_end_fails_the_pipeline_after_everything)
{
    test_numbers numbers = { .ledger = &ledger, .count = 50 };
    hook_config hook = { .end_status = WEIR_EIO };
    test_recorder recorder;
    weir_error error = { 0 };
    weir_pipeline *pipeline = build_hooked(&numbers, &hook, &recorder);
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(next_value(pipeline), i);
    assert_failed_for_good(pipeline);
    weir_pipeline_error(pipeline, NULL, &error);
    assert_int_equal(error.status, WEIR_EIO);
    assert_int_equal(error.library_code, 8);
    assert_string_equal(error.message, "0:1:hooked cannot write its cache");
    end_and_check(pipeline, 50);
    assert_int_equal(counter_value(&hook.ends), 1);
    assert_int_equal(recorder_events_named(&recorder, "failed"), 1);
    recorder_free(&recorder);
}

TEST_CASE(a_stage_hook_that_answers_nonsense_has_failed)
{
    test_numbers numbers = { .ledger = &ledger, .count = 50 };
    hook_config hook = { .start_status = 3 };
    test_recorder recorder;
    weir_error error = { 0 };
    weir_pipeline *pipeline = build_hooked(&numbers, &hook, &recorder);
    assert_failed_for_good(pipeline);
    weir_pipeline_error(pipeline, NULL, &error);
    assert_int_equal(error.status, WEIR_EHOOK);
    assert_non_null(strstr(error.message, "hook"));
    end_and_check(pipeline, 0);
    recorder_free(&recorder);
}

/* ---- who is told -------------------------------------------------------------------------------------------- */

TEST_CASE(the_observer_is_told_each_failure_once)
{
    enum { COUNT = 5000 };
    test_recorder recorder;
    recorder_init(&recorder);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT, .labelled = true };
    failing_config failing = { .from = 0, .until = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &failing, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 3, .observers = &recorder.observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 0);
    end_and_check(pipeline, 0);

    static bool reported[COUNT];
    assert_int_equal(recorder.num_failures, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        const failure_record *record = &recorder.failures[i];
        uint64_t seq = record->failure.seq;
        char label[32], message[64];
        assert_true(seq < COUNT && !reported[seq]);
        reported[seq] = true;
        snprintf(label, sizeof label, "item-%d", (int)seq);
        snprintf(message, sizeof message, "number %d is damaged", (int)seq);
        assert_string_equal(record->name, "0:1:failing[4]");
        assert_string_equal(record->label, label);
        assert_string_equal(record->message, message);
        assert_int_equal(record->failure.status, WEIR_EDATA);
        assert_int_equal(record->failure.library_code, -1000 - (int)seq);
        assert_true(record->failure.unix_ns >= recorder.run.start_unix_ns && record->failure.run_ns >= 0);
    }
    assert_int_equal(recorder_stage_total(&recorder, "0:1:failing[4]").metrics.task.num_failures, COUNT);
    recorder_free(&recorder);
}

/* The observer waits at a gate in the first failure. Tasks, consumer and stop do not wait for it. */
TEST_CASE(a_held_up_observer_holds_up_nobody)
{
    enum { COUNT = 10000 };
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    recorder.failure_gate = &gate;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    failing_config failing = { .from = 0, .until = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &failing, 0, &(weir_stage_options){ .concurrency = 8 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 2, .observers = &recorder.observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(account_of(pipeline, "failing").failed, COUNT);
    gate_open(&gate);
    end_and_check(pipeline, 0);
    assert_int_equal(recorder.num_failures, COUNT);
    recorder_free(&recorder);
}

/* The buffer for a blocked observer is bounded. What does not fit is counted, and reported as soon as there is
   room. */
TEST_CASE(failures_that_do_not_fit_are_counted_and_reported)
{
    enum { COUNT = 300000 };
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    recorder.failure_gate = &gate;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    failing_config failing = { .from = 0, .until = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &failing, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .observers = &recorder.observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 0);
    gate_open(&gate);
    end_and_check(pipeline, 0);
    assert_true(recorder_dropped_failures(&recorder) > 0);
    assert_int_equal(recorder.num_failures + recorder_dropped_failures(&recorder), COUNT);
    recorder_free(&recorder);
}

TEST_CASE(stop_does_not_wait_for_an_observer_that_is_held_up)
{
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    recorder.failure_gate = &gate;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = UINT64_MAX };
    failing_config failing = { .from = 0, .until = UINT64_MAX };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &failing, 0, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 2, .observers = &recorder.observer, .num_observers = 1 });
    gate_await_waiting(&gate, 1);
    weir_item item;
    weir_pipeline_stop(pipeline);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_ESTOPPED);
    gate_open(&gate);
    end_and_check(pipeline, 0);
    recorder_free(&recorder);
}

/* Many failures of one kind are a few lines, and the number of the others. */
TEST_CASE(failures_of_one_kind_are_not_logged_one_by_one)
{
    enum { COUNT = 20000 };
    uint64_t before = logged_lines(WEIR_LOG_WARNING);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    failing_config failing = { .from = 0, .until = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &failing_op, &failing, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(drain_all(pipeline), 0);
    end_and_check(pipeline, 0);
    uint64_t lines = logged_lines(WEIR_LOG_WARNING) - before;
    assert_true(lines >= 11 && lines < 100);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
