/* The pipeline does not wait for user code (observers, op->cancel, the log), and does not affect the rest of the
   process. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support.h"

static test_ledger ledger;

/* ---- observers that are held up ------------------------------------------------------------------------------- */

typedef struct held_observer {
    test_gate gate;
    test_counter laps;
    uint64_t num_laps, num_joined, next_number;
    uint64_t first_joined; /* how many laps came up to the first that was joined; 0 = none was */
    uint64_t num_tasks, num_events, num_dropped;
    int64_t elapsed_ns;
} held_observer;

static void hold_lap(void *self, const weir_subject_lap *lap)
{
    held_observer *held = self;
    gate_pass(&held->gate);
    if (lap->subject == WEIR_SUBJECT_STAGE)
        held->num_tasks += lap->metrics.task.num_tasks;
}

static void count_lap(void *self, const weir_lap *lap)
{
    held_observer *held = self;
    REQUIRE(lap->number == held->next_number);
    REQUIRE(lap->elapsed_ns > 0 && lap->num_joined >= 1);
    held->next_number = lap->number + lap->num_joined;
    held->num_laps++;
    if (lap->num_joined > 1 && held->first_joined == 0)
        held->first_joined = held->num_laps;
    held->num_joined += lap->num_joined;
    held->elapsed_ns += lap->elapsed_ns;
    counter_add(&held->laps, 1);
}

static void count_event(void *self, const weir_event *event)
{
    held_observer *held = self;
    unsigned long long failures, events;
    if (strcmp(event->name, "dropped") == 0 &&
        sscanf(event->detail, "%llu failures and %llu events", &failures, &events) == 2)
        held->num_dropped += events;
    else
        held->num_events += strcmp(event->name, "mine") == 0;
}

static weir_observer held_observer_init(held_observer *held)
{
    *held = (held_observer){ .gate = GATE, .laps = COUNTER };
    return (weir_observer){ .self = held, .lap = hold_lap, .lap_end = count_lap, .event = count_event };
}

/* A lap waits at the gate of the observer. Items are still delivered, and afterwards each task is in exactly one
   lap. */
TEST_CASE(items_are_delivered_while_an_observer_is_held_up_in_a_lap)
{
    enum { COUNT = 20000 };
    held_observer held;
    weir_observer observer = held_observer_init(&held);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .observers = &observer, .num_observers = 1, .stats_interval_ns = WEIR_MILLISECOND });
    gate_await_waiting(&held.gate, 1);
    assert_int_equal(drain_all(pipeline), COUNT);
    gate_open(&held.gate);
    weir_pipeline_free(pipeline);
    assert_int_equal(held.num_tasks, COUNT);
    ledger_close(&ledger);
}

/* Holds the observer up in the first lap for that time; later laps end meanwhile. */
static held_observer hold_up_first_lap(int64_t delayed_ns)
{
    held_observer held;
    weir_observer observer = held_observer_init(&held);
    test_gate source_gate = GATE;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 100, .gate = &source_gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 200 });
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .observers = &observer, .num_observers = 1, .stats_interval_ns = WEIR_MILLISECOND });
    gate_await_waiting(&held.gate, 1);
    for (int64_t end_ns = weir_clock_ns() + delayed_ns; weir_clock_ns() < end_ns;)
        sched_yield();
    gate_open(&source_gate);
    assert_int_equal(drain_all(pipeline), 100);
    gate_open(&held.gate);
    weir_pipeline_free(pipeline);
    assert_int_equal(held.num_joined, held.next_number);
    assert_int_equal(held.num_tasks, 100);
    assert_true(held.elapsed_ns >= delayed_ns);
    ledger_close(&ledger);
    return held;
}

/* One lap is held up and 64 wait, of which the newest is joined with what follows. A busy machine may take long to end
   that many; if they were never joined, the test's time limit would end this. */
TEST_CASE(laps_that_wait_too_long_are_joined)
{
    uint64_t first_joined = 0;
    for (int64_t delayed_ns = 200 * WEIR_MILLISECOND; first_joined != 65; delayed_ns *= 2)
        first_joined = hold_up_first_lap(delayed_ns).first_joined;
}

TEST_CASE(events_are_bounded_and_what_was_dropped_is_told)
{
    enum { COUNT = 100000 };
    static const char detail[] =
        "a detail that is longer than most, so that many of them do not fit into the memory that is kept";
    held_observer held;
    weir_observer observer = held_observer_init(&held);
    test_gate source_gate = GATE;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &source_gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .observers = &observer,
                                                 .num_observers = 1,
                                                 .stats_interval_ns = WEIR_MILLISECOND,
                                                 .stall_warning_ns = WEIR_FOREVER /* would be an event, too */ });
    gate_await_waiting(&held.gate, 1);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(weir_pipeline_event(pipeline, "mine", "test", detail), WEIR_OK);
    gate_open(&source_gate);
    assert_int_equal(drain_all(pipeline), 1);
    gate_open(&held.gate);
    weir_pipeline_free(pipeline);
    assert_true(held.num_dropped > 0);
    assert_int_equal(held.num_events + held.num_dropped, COUNT);
    ledger_close(&ledger);
}

/* Reports an event for each lap, as the tuner does. */
typedef struct lap_reporter {
    weir_pipeline *pipeline;
    test_gate gate;
    bool repeats; /* also for each of these events, without end */
    uint64_t num_laps, num_events, num_dropped;
} lap_reporter;

static void report_lap(void *self, const weir_lap *lap)
{
    (void)lap;
    lap_reporter *reporter = self;
    gate_pass(&reporter->gate);
    reporter->num_laps++;
    REQUIRE(weir_pipeline_event(reporter->pipeline, "mine", NULL, NULL) == WEIR_OK);
}

static void take_event(void *self, const weir_event *event)
{
    lap_reporter *reporter = self;
    reporter->num_events += strcmp(event->name, "mine") == 0;
    reporter->num_dropped += strcmp(event->name, "dropped") == 0;
    if (reporter->repeats && strcmp(event->name, "mine") == 0)
        REQUIRE(weir_pipeline_event(reporter->pipeline, "mine", NULL, NULL) == WEIR_OK);
}

static void run_with_reporter(lap_reporter *reporter)
{
    weir_observer observer = { .self = reporter, .lap_end = report_lap, .event = take_event };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    reporter->pipeline = build(builder, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 });
    assert_int_equal(drain_all(reporter->pipeline), 10);
    gate_open(&reporter->gate);
    weir_pipeline_free(reporter->pipeline);
    ledger_close(&ledger);
}

/* These events were dropped once: when the last lap is reported, the pipeline has ended. */
TEST_CASE(events_that_an_observer_reports_about_the_last_lap_are_told)
{
    lap_reporter reporter = { .gate = GATE };
    run_with_reporter(&reporter);
    assert_true(reporter.num_laps >= 1);
    assert_int_equal(reporter.num_events, reporter.num_laps);
    assert_int_equal(reporter.num_dropped, 0);
}

TEST_CASE(an_observer_that_reports_events_without_end_does_not_hold_up_the_end)
{
    lap_reporter reporter = { .gate = GATE, .repeats = true };
    run_with_reporter(&reporter);
    assert_true(reporter.num_events >= reporter.num_laps);
}

TEST_CASE(deadlines_hold_while_an_observer_is_held_up)
{
    static const weir_op op = { .name = "endless", .run = run_until_asked };
    held_observer held;
    weir_observer observer = held_observer_init(&held);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .task_deadline_ns = 20 * WEIR_MILLISECOND });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .observers = &observer, .num_observers = 1, .stats_interval_ns = WEIR_MILLISECOND });
    gate_await_waiting(&held.gate, 1);
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(account_of(pipeline, "endless").failed, 3);
    gate_open(&held.gate);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- work that was expected to be short ------------------------------------------------------------------------ */

/* The last ones of many short tasks are only over when all of them run at once. */
typedef struct meeting {
    uint64_t from;
    test_counter arrived;
} meeting;

enum { MEETING = 4 };

static int meet(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    meeting *met = (meeting *)weir_task_config(task);
    if (item_value(in) >= met->from) {
        counter_add(&met->arrived, 1);
        counter_await(&met->arrived, MEETING);
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

/* Held up or not, an observer is of no use for it: the threads find the work by themselves. */
TEST_CASE(long_tasks_behind_many_short_ones_run_at_once)
{
    enum { SHORT = 20000 };
    static const weir_op op = { .name = "meet", .run = meet };
    meeting met = { .from = SHORT, .arrived = COUNTER };
    held_observer held;
    weir_observer observer = held_observer_init(&held);
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = SHORT + MEETING };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &met, 0, &(weir_stage_options){ .concurrency = MEETING });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = MEETING,
                                                                       .observers = &observer,
                                                                       .num_observers = 1,
                                                                       .stats_interval_ns = WEIR_MILLISECOND });
    assert_int_equal(drain_all(pipeline), SHORT + MEETING);
    gate_open(&held.gate);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- op->cancel ------------------------------------------------------------------------------------------------- */

typedef struct slow_cancel {
    test_gate gate; /* which the first call passes */
    atomic_uint num_calls;
} slow_cancel;

static int never_complete(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    (void)out;
    *(slow_cancel **)worker = (slow_cancel *)weir_task_config(task);
    return WEIR_PENDING;
}

static void cancel_slowly(void *worker, weir_task *task)
{
    slow_cancel *slow = *(slow_cancel **)worker;
    if (atomic_fetch_add(&slow->num_calls, 1) == 0)
        gate_pass(&slow->gate);
    weir_task_complete(task, WEIR_ETIMEDOUT, NULL);
}

static const weir_op slow_cancel_op = {
    .name = "slow", .worker_size = sizeof(slow_cancel *), .run = never_complete, .cancel = cancel_slowly
};

/* The first cancel does not return. The other tasks of the same stage, and their deadlines, do not wait for it. */
TEST_CASE(a_slow_cancel_delays_no_other_deadline)
{
    slow_cancel slow = { .gate = GATE };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 8 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &slow_cancel_op, &slow, 0,
                      &(weir_stage_options){ .concurrency = 2, .task_deadline_ns = 5 * WEIR_MILLISECOND });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    while (account_of(pipeline, "slow").failed < 7)
        sched_yield();
    gate_await_waiting(&slow.gate, 1); /* its thread may have been preempted before */
    assert_int_equal(account_of(pipeline, "slow").failed, 7);
    gate_open(&slow.gate);
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(account_of(pipeline, "slow").failed, 8);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- the program's own ------------------------------------------------------------------------------------------ */

static weir_pipeline *start_idle(test_numbers *numbers)
{
    weir_builder *builder = builder_with(numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .threads = 1 });
    weir_builder_sink(builder, NULL);
    return build(builder, &(weir_pipeline_options){ .threads = 2 });
}

static bool read_field(const char *task, const char *file, const char *field, char *value, size_t size)
{
    char path[128], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, file);
    FILE *stream = fopen(path, "r");
    bool found = false;
    while (stream && !found && fgets(line, sizeof line, stream)) {
        found = strncmp(line, field, strlen(field)) == 0;
        snprintf(value, size, "%s", line + strlen(field));
    }
    if (stream)
        fclose(stream);
    value[strcspn(value, "\n")] = '\0';
    return found;
}

/* Each thread but those of the program (one, and what a sanitizer adds, which have no such name). */
TEST_CASE(threads_have_names_and_no_signals)
{
    test_gate gate = GATE;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_pipeline *pipeline = start_idle(&numbers);
    gate_await_waiting(&gate, 1);
    uint32_t service = 0, observers = 0, workers = 0, own = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));) {
        char name[64], blocked[64];
        if (entry->d_name[0] == '.' || !read_field(entry->d_name, "comm", "", name, sizeof name) ||
            !read_field(entry->d_name, "status", "SigBlk:", blocked, sizeof blocked))
            continue;
        service += strcmp(name, "weir-service") == 0;
        observers += strcmp(name, "weir-observer") == 0;
        workers += strcmp(name, "weir/0") == 0 || strcmp(name, "weir/1") == 0;
        own += strcmp(name, "pass/0") == 0;
        if (strncmp(name, "weir", 4) == 0 || strcmp(name, "pass/0") == 0)
            assert_true(strtoull(blocked, NULL, 16) & (1u << (SIGINT - 1)));
    }
    closedir(tasks);
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 1);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    assert_int_equal(service, 1);
    assert_int_equal(observers, 1);
    assert_int_equal(workers, 2);
    assert_int_equal(own, 1);
}

/* In a separate process: its status says whether a pipeline ran. */
static int run_in_child(void (*prepare)(void))
{
    pid_t child = fork();
    if (child == 0) {
        static test_ledger own;
        ledger_init(&own);
        test_numbers numbers = { .ledger = &own, .count = 10 };
        weir_error error = { 0 };
        weir_pipeline *pipeline;
        prepare();
        weir_builder *builder = builder_with(&numbers);
        weir_builder_sink(builder, NULL);
        if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
            _exit(3);
        int end;
        uint64_t count = drain(pipeline, &end);
        weir_pipeline_free(pipeline);
        _exit(count == 10 && end == WEIR_EOF ? 0 : 4);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void close_standard_streams(void)
{
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
}

static void leave_no_descriptors(void)
{
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 });
}

TEST_CASE(a_pipeline_needs_no_descriptors)
{
    assert_int_equal(run_in_child(close_standard_streams), 0);
    assert_int_equal(run_in_child(leave_no_descriptors), 0);
}

/* ---- suspension ------------------------------------------------------------------------------------------------- */

typedef struct lap_sums {
    int64_t elapsed_ns, suspended_ns;
    uint64_t num_items, num_stalls;
    test_counter laps;
} lap_sums;

static void add_lap(void *self, const weir_lap *lap)
{
    lap_sums *sums = self;
    sums->elapsed_ns += lap->elapsed_ns;
    sums->suspended_ns += lap->suspended_ns;
    counter_add(&sums->laps, 1);
}

enum { ALLOWED_MS = 3000, STOPPED_MS = ALLOWED_MS + 500 };

/* A child runs a task until it reads a byte and some laps are over; it answers with the content of its laps. */
static void run_while_stopped(int from_parent, int to_parent)
{
    static test_ledger own;
    test_gate gate = GATE;
    lap_sums sums = { .laps = COUNTER };
    weir_observer observer = { .self = &sums, .lap_end = add_lap };
    ledger_init(&own);
    test_numbers numbers = { .ledger = &own, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &gated_op, &gate, 0,
                      &(weir_stage_options){ .task_deadline_ns = ALLOWED_MS * WEIR_MILLISECOND });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .observers = &observer,
                                                 .num_observers = 1,
                                                 .stall_warning_ns = ALLOWED_MS * WEIR_MILLISECOND,
                                                 .stats_interval_ns = WEIR_MILLISECOND });
    char byte = 'r';
    gate_await_waiting(&gate, 1);
    if (write(to_parent, &byte, 1) != 1 || read(from_parent, &byte, 1) != 1)
        _exit(1);
    counter_await(&sums.laps, counter_value(&sums.laps) + 3); /* deadlines have been checked */
    gate_open(&gate);
    int end;
    sums.num_items = drain(pipeline, &end);
    sums.num_stalls = logged_lines(WEIR_LOG_WARNING);
    weir_pipeline_free(pipeline);
    _exit(write(to_parent, &sums, sizeof sums) == sizeof sums ? 0 : 1);
}

TEST_CASE(a_stop_of_the_process_is_marked_and_is_no_stall_and_no_timeout)
{
    int to_child[2], to_parent[2], status;
    char byte;
    lap_sums sums = { 0 };
    assert_int_equal(pipe(to_child) | pipe(to_parent), 0);
    pid_t child = fork();
    if (child == 0)
        run_while_stopped(to_child[0], to_parent[1]);
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    poll(NULL, 0, STOPPED_MS); /* nothing but time makes it a suspension */
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(read(to_parent[0], &sums, sizeof sums), sizeof sums);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(sums.suspended_ns > STOPPED_MS / 2 * WEIR_MILLISECOND);
    assert_true(sums.suspended_ns <= sums.elapsed_ns);
    assert_int_equal(sums.num_items, 1);
    assert_int_equal(sums.num_stalls, 0);
    close(to_child[0]);
    close(to_child[1]);
    close(to_parent[0]);
    close(to_parent[1]);
}

/* ---- attaching -------------------------------------------------------------------------------------------------- */

typedef struct attached {
    int answer, attached, detached, started;
} attached;

static int on_attach(void *self, weir_error *error)
{
    attached *observer = self;
    observer->attached++;
    return observer->answer ? weir_error_set(error, observer->answer, 0, "it is in use") : WEIR_OK;
}

static void on_detach(void *self)
{
    ((attached *)self)->detached++;
}

static void on_start(void *self, const weir_run_info *info)
{
    (void)info;
    ((attached *)self)->started++;
}

TEST_CASE(an_observer_may_refuse_to_be_attached)
{
    attached first = { 0 }, second = { .answer = WEIR_EBUSY };
    weir_observer observers[] = {
        { .self = &first, .attach = on_attach, .detach = on_detach, .run_start = on_start },
        { .self = &second, .attach = on_attach, .detach = on_detach, .run_start = on_start },
    };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_pipeline_options options = { .observers = observers, .num_observers = 2 };
    assert_int_equal(weir_builder_build(builder, &options, &pipeline, &error), WEIR_EBUSY);
    assert_null(pipeline);
    assert_string_equal(error.message, "it is in use");
    assert_int_equal(first.attached, 1);
    assert_int_equal(first.detached, 1);
    assert_int_equal(second.detached, 0);
    assert_int_equal(first.started + second.started, 0);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
