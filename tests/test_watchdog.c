/* Deadlines, and hangs that are not silent. */
#include "tests/support.h"

#include <dirent.h>
#include <inttypes.h>

/* Hands its input on when it is asked to stop. */
static int run_too_long(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    run_until_asked(worker, in, out, task);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op hanging_op = { .name = "hanging", .run = run_until_asked };
static const weir_op late_op = { .name = "late", .run = run_too_long };

static weir_pipeline *with_stage(const test_numbers *numbers, const weir_op *op, const void *config,
                                 const weir_stage_options *stage, const weir_pipeline_options *options)
{
    weir_builder *builder = builder_with(numbers);
    weir_builder_pipe(builder, op, config, op->config_size, stage);
    weir_builder_sink(builder, NULL);
    return build(builder, options);
}

/* Runs items through the stage, which all go beyond its deadline. */
static void expect_all_timed_out(const weir_op *op, uint64_t count)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = count, .labelled = true };
    weir_error error = { 0 };
    weir_pipeline *pipeline =
        with_stage(&numbers, op, NULL,
                   &(weir_stage_options){ .task_deadline_ns = 5 * WEIR_MILLISECOND, .concurrency = 2 }, NULL);
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(weir_pipeline_error(pipeline, op->name, &error), WEIR_ETIMEDOUT);
    assert_int_equal(error.status, WEIR_ETIMEDOUT);
    assert_memory_equal(error.label, "item-", 5); /* of two slots, which one is first? */
    assert_non_null(strstr(error.message, "deadline of 0.005 s"));
    assert_int_equal(account_of(pipeline, op->name).failed, count);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(a_task_beyond_its_deadline_is_asked_to_stop_and_fails)
{
    expect_all_timed_out(&hanging_op, 4);
}

TEST_CASE(a_result_that_comes_after_the_deadline_is_not_passed_on)
{
    expect_all_timed_out(&late_op, 3);
}

/* How often the service thread of the only pipeline has slept. */
static int64_t count_sleeps_of_service(void)
{
    char path[300], name[32] = "";
    int64_t sleeps = -1;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; sleeps < 0 && (entry = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        bool is_service = status && fscanf(status, "Name: %31s", name) == 1 && strcmp(name, "weir-service") == 0;
        char line[256];
        while (is_service && fgets(line, sizeof line, status))
            if (sscanf(line, "voluntary_ctxt_switches: %" SCNd64, &sleeps) == 1)
                break;
        if (status)
            fclose(status);
    }
    closedir(tasks);
    assert_true(sleeps >= 0);
    return sleeps;
}

typedef struct laps_reported {
    test_counter laps, events;
} laps_reported;

static void count_lap(void *self, const weir_lap *lap)
{
    counter_add(&((laps_reported *)self)->laps, lap->num_joined);
}

static void count_event(void *self, const weir_event *event)
{
    (void)event;
    counter_add(&((laps_reported *)self)->events, 1);
}

TEST_CASE(an_idle_pipeline_is_not_woken_by_a_short_deadline)
{
    enum { NUM_LAPS = 15 };
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 2, .gate = &gate };
    laps_reported reported = { .laps = COUNTER, .events = COUNTER };
    const weir_observer observer = { .self = &reported, .lap_end = count_lap, .event = count_event };
    weir_pipeline *pipeline =
        with_stage(&numbers, &pass_op, NULL, &(weir_stage_options){ .task_deadline_ns = WEIR_MILLISECOND },
                   &(weir_pipeline_options){
                       .stats_interval_ns = 30 * WEIR_MILLISECOND, .observers = &observer, .num_observers = 1 });
    gate_let(&gate, 1);
    for (weir_account account = { 0 }; account.passed_on + account.failed < 1; sched_yield())
        account = account_of(pipeline, "pass"); /* on a busy machine it may fail at its deadline */
    gate_await_waiting(&gate, 1);
    counter_await(&reported.laps, counter_value(&reported.laps) + 2);
    int64_t num_laps = counter_value(&reported.laps), sleeps = count_sleeps_of_service();
    counter_await(&reported.laps, num_laps + NUM_LAPS);
    sleeps = count_sleeps_of_service() - sleeps;
    assert_int_equal(weir_pipeline_event(pipeline, "now", NULL, NULL), WEIR_OK);
    counter_await(&reported.events, 1); /* and so all laps in which it slept */
    num_laps = counter_value(&reported.laps) - num_laps;
    assert_in_range(sleeps, 0, 5 * num_laps); /* for laps and heartbeats; was about 20 in a lap */
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static int never_complete(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    (void)task;
    return WEIR_PENDING;
}

static void complete_when_cancelled(void *worker, weir_task *task)
{
    (void)worker;
    weir_task_complete(task, WEIR_ESTOPPED, NULL);
}

TEST_CASE(a_pending_task_beyond_its_deadline_is_cancelled)
{
    static const weir_op pending = { .name = "pending", .run = never_complete, .cancel = complete_when_cancelled };
    expect_all_timed_out(&pending, 5);
}

/* Is already beyond its deadline when it becomes pending. */
static int become_pending_late(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    run_until_asked(worker, in, out, task);
    return WEIR_PENDING;
}

TEST_CASE(a_task_that_becomes_pending_beyond_its_deadline_is_cancelled)
{
    static const weir_op op = { .name = "late", .run = become_pending_late, .cancel = complete_when_cancelled };
    expect_all_timed_out(&op, 3);
}

TEST_CASE(a_task_within_its_deadline_does_not_fail)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 100 };
    weir_pipeline *pipeline =
        with_stage(&numbers, &pass_op, NULL, &(weir_stage_options){ .task_deadline_ns = 30 * WEIR_SECOND }, NULL);
    assert_int_equal(drain_all(pipeline), 100);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static void await_warning(void)
{
    while (logged_lines(WEIR_LOG_WARNING) == 0)
        sched_yield();
}

TEST_CASE(a_task_that_runs_very_long_is_named_while_it_runs)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .labelled = true };
    weir_pipeline *pipeline = with_stage(&numbers, &gated_op, &gate, NULL,
                                         &(weir_pipeline_options){ .observers = &recorder.observer,
                                                                   .num_observers = 1,
                                                                   .stall_warning_ns = 2 * WEIR_MILLISECOND });
    await_warning();
    char line[512];
    last_logged_line(WEIR_LOG_WARNING, line, sizeof line);
    assert_non_null(strstr(line, "0:1:"));
    assert_non_null(strstr(line, "item-0: "));
    assert_non_null(strstr(line, "still running"));
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 1);
    weir_pipeline_free(pipeline);
    assert_true(recorder_events_named(&recorder, "stall") > 0);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

static _Atomic(weir_task *) kept_task;

static int keep_task(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    atomic_store(&kept_task, task);
    return WEIR_PENDING;
}

TEST_CASE(many_double_completions_do_not_flood_the_log)
{
    enum { CALLS = 1000, MOST_LINES = 100 };
    test_ledger ledger = LEDGER;
    static const weir_op pending = { .name = "pending", .run = keep_task };
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_pipeline *pipeline = with_stage(&numbers, &pending, NULL, NULL, NULL);
    while (!atomic_load(&kept_task))
        sched_yield();
    for (int i = 0; i < CALLS; i++)
        weir_task_complete(atomic_load(&kept_task), WEIR_SKIP, NULL);
    assert_true(logged_lines(WEIR_LOG_ERROR) > 0 && logged_lines(WEIR_LOG_ERROR) < MOST_LINES);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Each of them is beyond the limit in several checks. */
TEST_CASE(many_stalled_tasks_do_not_flood_the_log)
{
    enum { TASKS = 500, MOST_LINES = 100 };
    test_ledger ledger = LEDGER;
    static const weir_op pending = { .name = "pending", .run = never_complete, .cancel = complete_when_cancelled };
    test_numbers numbers = { .ledger = &ledger, .count = TASKS };
    weir_pipeline *pipeline = with_stage(&numbers, &pending, NULL, &(weir_stage_options){ .concurrency = TASKS },
                                         &(weir_pipeline_options){ .stall_warning_ns = 1 });
    char line[512] = "";
    while (!strstr(line, "left out") && logged_lines(WEIR_LOG_WARNING) < MOST_LINES) {
        sched_yield();
        last_logged_line(WEIR_LOG_WARNING, line, sizeof line);
    }
    assert_true(logged_lines(WEIR_LOG_WARNING) < MOST_LINES);
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static void *free_it(void *pipeline)
{
    weir_pipeline_free(pipeline);
    return NULL;
}

TEST_CASE(a_task_that_does_not_heed_a_stop_is_named)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .labelled = true };
    weir_pipeline *pipeline =
        with_stage(&numbers, &gated_op, &gate, NULL,
                   &(weir_pipeline_options){ .observers = &recorder.observer, .num_observers = 1 });
    gate_await_waiting(&gate, 1);
    pthread_t freeing = thread_start(free_it, pipeline);
    await_warning(); /* a second after the stop */
    char line[512];
    last_logged_line(WEIR_LOG_WARNING, line, sizeof line);
    assert_non_null(strstr(line, "although it was asked to stop"));
    gate_open(&gate);
    thread_join(freeing);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* The thread that takes the slot has nothing to run. */
TEST_CASE(a_task_that_is_stopped_before_it_begins_is_not_named)
{
    enum { TIMES = 2000 };
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    for (int i = 0; i < TIMES; i++)
        weir_pipeline_free(with_stage(&numbers, &pass_op, NULL, NULL, &(weir_pipeline_options){ .threads = 1 }));
    char line[512] = "";
    last_logged_line(WEIR_LOG_WARNING, line, sizeof line);
    assert_true(!*line || strstr(line, "although it was asked to stop")); /* after a second, on a busy machine */
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
