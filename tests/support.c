/* See support.h. */
#include "tests/support.h"

#include <signal.h>
#include <unistd.h>

/* ---- the frame of a test ------------------------------------------------------------------------------------ */

#if defined SANITIZED || defined COUNTS_LINES
enum { SLOWNESS = 4 };
#else
enum { SLOWNESS = 1 };
#endif

static const char *running_test = "";

static struct {
    pthread_mutex_t lock;
    uint64_t lines[4];
    char last[4][4096];
} logged = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void write_text(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(3);
}

static void on_alarm(int signal)
{
    (void)signal;
    write_text("\nTIME LIMIT: ");
    write_text(running_test);
    write_text(" hangs\n");
    abort();
}

static void record_line(void *self, weir_log_level level, const char *line)
{
    (void)self;
    pthread_mutex_lock(&logged.lock);
    logged.lines[level]++;
    snprintf(logged.last[level], sizeof logged.last[level], "%s", line);
    pthread_mutex_unlock(&logged.lock);
}

int test_setup(void **state)
{
    running_test = *state;
    memset(logged.lines, 0, sizeof logged.lines);
    weir_log_set_function(record_line, NULL);
    weir_log_set_level(WEIR_LOG_INFO);
    signal(SIGALRM, on_alarm);
    alarm(TEST_SECONDS * SLOWNESS);
    return 0;
}

int test_teardown(void **state)
{
    (void)state;
    alarm(0);
    return 0;
}

uint64_t logged_lines(weir_log_level level)
{
    pthread_mutex_lock(&logged.lock);
    uint64_t lines = logged.lines[level];
    pthread_mutex_unlock(&logged.lock);
    return lines;
}

void last_logged_line(weir_log_level level, char *line, size_t size)
{
    pthread_mutex_lock(&logged.lock);
    snprintf(line, size, "%s", logged.last[level]);
    pthread_mutex_unlock(&logged.lock);
}

void require_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "\n%s: %s:%d: this does not hold: %s\n", running_test, file, line, condition);
    abort();
}

pthread_t thread_start(void *(*main)(void *), void *argument)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, main, argument) == 0);
    return thread;
}

void thread_join(pthread_t thread)
{
    REQUIRE(pthread_join(thread, NULL) == 0);
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    REQUIRE(memory);
    return memory;
}

/* ---- waiting ------------------------------------------------------------------------------------------------ */

void gate_init(test_gate *gate)
{
    memset(gate, 0, sizeof *gate);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
}

void gate_pass(test_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open && gate->permits == 0)
        pthread_cond_wait(&gate->changed, &gate->lock);
    gate->waiting--;
    gate->passed++;
    if (!gate->open)
        gate->permits--;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

void gate_let(test_gate *gate, uint64_t permits)
{
    pthread_mutex_lock(&gate->lock);
    gate->permits += permits;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

void gate_open(test_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

void gate_shut(test_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = false;
    gate->permits = 0;
    pthread_mutex_unlock(&gate->lock);
}

void gate_await_waiting(test_gate *gate, uint64_t waiting)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->waiting < waiting)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

uint64_t gate_waiting(test_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    uint64_t waiting = gate->waiting;
    pthread_mutex_unlock(&gate->lock);
    return waiting;
}

void counter_init(test_counter *counter)
{
    memset(counter, 0, sizeof *counter);
    pthread_mutex_init(&counter->lock, NULL);
    pthread_cond_init(&counter->changed, NULL);
}

void counter_add(test_counter *counter, int64_t change)
{
    pthread_mutex_lock(&counter->lock);
    counter->value += change;
    if (counter->value > counter->highest)
        counter->highest = counter->value;
    pthread_cond_broadcast(&counter->changed);
    pthread_mutex_unlock(&counter->lock);
}

int64_t counter_value(test_counter *counter)
{
    pthread_mutex_lock(&counter->lock);
    int64_t value = counter->value;
    pthread_mutex_unlock(&counter->lock);
    return value;
}

int64_t counter_highest(test_counter *counter)
{
    pthread_mutex_lock(&counter->lock);
    int64_t highest = counter->highest;
    pthread_mutex_unlock(&counter->lock);
    return highest;
}

void counter_await(test_counter *counter, int64_t at_least)
{
    pthread_mutex_lock(&counter->lock);
    while (counter->value < at_least)
        pthread_cond_wait(&counter->changed, &counter->lock);
    pthread_mutex_unlock(&counter->lock);
}

/* ---- items -------------------------------------------------------------------------------------------------- */

void ledger_init(test_ledger *ledger)
{
    memset(ledger, 0, sizeof *ledger);
    pthread_mutex_init(&ledger->lock, NULL);
    counter_init(&ledger->released);
}

static void release_payload(void *data, void *self)
{
    (void)self;
    test_payload *payload = data;
    REQUIRE(!atomic_exchange(&payload->released, true)); /* released only once */
    counter_add(&payload->ledger->released, 1);
}

void ledger_fill(test_ledger *ledger, weir_item *item, uint64_t value, size_t size_bytes)
{
    test_payload *payload = allocate(sizeof *payload);
    payload->value = value;
    payload->ledger = ledger;
    atomic_init(&payload->released, false);
    pthread_mutex_lock(&ledger->lock);
    payload->next = ledger->all;
    ledger->all = payload;
    ledger->made++;
    pthread_mutex_unlock(&ledger->lock);
    item->data = payload;
    item->size_bytes = size_bytes;
    item->release = release_payload;
}

void ledger_close(test_ledger *ledger)
{
    assert_int_equal(counter_value(&ledger->released), ledger->made);
    while (ledger->all) {
        test_payload *payload = ledger->all;
        ledger->all = payload->next;
        assert_true(atomic_load(&payload->released));
        free(payload);
    }
    ledger->made = 0;
    ledger->released.value = 0;
}

uint64_t item_value(const weir_item *item)
{
    const test_payload *payload = item->data;
    REQUIRE(payload && !atomic_load(&payload->released));
    return payload->value;
}

/* ---- operations --------------------------------------------------------------------------------------------- */

static int make_number(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const test_numbers *numbers = weir_task_config(task);
    uint64_t *next = worker;
    REQUIRE(in == NULL);
    if (*next == numbers->count)
        return numbers->end_status ? numbers->end_status : WEIR_EOF;
    if (numbers->gate)
        gate_pass(numbers->gate);
    ledger_fill(numbers->ledger, out, *next, numbers->size_bytes);
    if (numbers->labelled) {
        static _Thread_local char label[32]; /* the engine copies it when this function returns */
        snprintf(label, sizeof label, "item-%llu", (unsigned long long)*next);
        out->label = label;
    }
    ++*next;
    if (numbers->made)
        counter_add(numbers->made, 1);
    return WEIR_OK;
}

const weir_op numbers_op = { .name = "numbers", .worker_size = sizeof(uint64_t), .run = make_number };

static int pass(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    weir_item_move(out, in);
    return WEIR_OK;
}

const weir_op pass_op = { .name = "pass", .run = pass };

int run_until_asked(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    while (!weir_task_should_stop(task))
        sched_yield();
    return WEIR_EIO;
}

static int pass_gate(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    gate_pass((test_gate *)weir_task_config(task));
    weir_item_move(out, in);
    return WEIR_OK;
}

const weir_op gated_op = { .name = "gated", .run = pass_gate };

void pending_init(test_pending *pending)
{
    memset(pending, 0, sizeof *pending);
    pthread_mutex_init(&pending->lock, NULL);
    pthread_cond_init(&pending->changed, NULL);
}

void pending_add(test_pending *pending, weir_task *task, weir_item *in)
{
    pthread_mutex_lock(&pending->lock);
    REQUIRE(pending->num_added - pending->num_taken < LENGTH(pending->tasks));
    pending->tasks[pending->num_added++ % LENGTH(pending->tasks)] = (struct test_pending_task){ task, in };
    pthread_cond_broadcast(&pending->changed);
    pthread_mutex_unlock(&pending->lock);
}

weir_task *pending_take(test_pending *pending, weir_item **in)
{
    pending_await(pending, 1);
    pthread_mutex_lock(&pending->lock);
    struct test_pending_task taken = pending->tasks[pending->num_taken++ % LENGTH(pending->tasks)];
    pthread_mutex_unlock(&pending->lock);
    if (in)
        *in = taken.in;
    return taken.task;
}

void pending_await(test_pending *pending, uint64_t num_waiting)
{
    pthread_mutex_lock(&pending->lock);
    while (pending->num_added - pending->num_taken < num_waiting)
        pthread_cond_wait(&pending->changed, &pending->lock);
    pthread_mutex_unlock(&pending->lock);
}

static void *complete_all(void *argument)
{
    weir_item *in;
    weir_task *task;
    while ((task = pending_take(argument, &in))) {
        weir_item out = { .label = ((test_pending *)argument)->label };
        weir_item_move(&out, in);
        weir_task_complete(task, WEIR_OK, &out);
    }
    return NULL;
}

void pending_start(test_pending *pending)
{
    pending->thread = thread_start(complete_all, pending);
}

void pending_end(test_pending *pending)
{
    pending_add(pending, NULL, NULL);
    thread_join(pending->thread);
}

static int leave_pending(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)out;
    pending_add((test_pending *)weir_task_config(task), task, in);
    return WEIR_PENDING;
}

const weir_op pending_op = { .name = "pending", .run = leave_pending };

weir_builder *builder_with(const test_numbers *numbers)
{
    weir_builder *builder = weir_builder_new();
    assert_non_null(builder);
    weir_builder_source(builder, &numbers_op, numbers, 0, NULL);
    return builder;
}

weir_pipeline *build(weir_builder *builder, const weir_pipeline_options *options)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    int status = weir_builder_build(builder, options, &pipeline, &error);
    if (status != WEIR_OK)
        fail_msg("weir_builder_build: %s: %s", error.stage, error.message);
    assert_non_null(pipeline);
    assert_int_equal(error.status, WEIR_OK);
    return pipeline;
}

uint64_t drain(weir_pipeline *pipeline, int *status)
{
    weir_item item;
    uint64_t num_items = 0;
    while ((*status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        weir_item_release(&item);
        num_items++;
    }
    return num_items;
}

uint64_t drain_all(weir_pipeline *pipeline)
{
    int status;
    uint64_t num_items = drain(pipeline, &status);
    assert_int_equal(status, WEIR_EOF);
    return num_items;
}

void await_work_end(weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    bool has_ended = false;
    while (!has_ended) {
        assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
        has_ended = strcmp(snapshot->state, "ended") == 0 && account_of(pipeline, NULL).in_flight == 0;
        for (uint32_t i = 0; i < snapshot->num_stages; i++)
            has_ended = has_ended && account_of(pipeline, snapshot->stages[i].name).in_flight == 0;
        weir_snapshot_free(snapshot);
        sched_yield();
    }
}

uint64_t next_value(weir_pipeline *pipeline)
{
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    uint64_t value = item_value(&item);
    weir_item_release(&item);
    return value;
}

weir_stage_snapshot stage_snapshot(weir_pipeline *pipeline, const char *stage)
{
    weir_snapshot *snapshot;
    weir_stage_snapshot seen = { 0 };
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    for (size_t i = 0; i < snapshot->num_stages; i++)
        if (strcmp(snapshot->stages[i].name, stage) == 0)
            seen = snapshot->stages[i];
    weir_snapshot_free(snapshot);
    return seen;
}

weir_account account_of(weir_pipeline *pipeline, const char *stage)
{
    weir_account account;
    assert_int_equal(weir_pipeline_account(pipeline, stage, &account), WEIR_OK);
    return account;
}

void assert_account_is_exact(const weir_account *account)
{
    assert_int_equal(account->taken + account->created, account->passed_on + account->skipped + account->failed +
                                                            account->dropped + account->merged + account->in_flight);
}

/* ---- the observer that records ------------------------------------------------------------------------------- */

/* Makes room for one more element after `count`, by doubling. */
#define APPEND(array, count) \
    ((array) = grow((array), (count), sizeof *(array)), memset(&(array)[count], 0, sizeof *(array)), \
     &(array)[(count)++])

static void *grow(void *array, uint64_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    array = realloc(array, (count ? 2 * count : 1) * size);
    REQUIRE(array);
    return array;
}

static void enter(test_recorder *recorder)
{
    REQUIRE(!atomic_exchange(&recorder->inside, true));
    REQUIRE(!recorder->ended);
}

static void leave(test_recorder *recorder)
{
    atomic_store(&recorder->inside, false);
}

static void on_start(void *self, const weir_run_info *info)
{
    test_recorder *recorder = self;
    enter(recorder);
    REQUIRE(!recorder->started);
    recorder->started = true;
    recorder->run = *info;
    recorder->num_stages = info->num_stages;
    recorder->names = allocate(info->num_stages * sizeof *recorder->names);
    recorder->infos = allocate(info->num_stages * sizeof *recorder->infos);
    for (uint32_t i = 0; i < info->num_stages; i++) {
        REQUIRE(info->stages[i].inputs && info->stages[i].merge_order); /* without memory, too */
        recorder->infos[i] = info->stages[i];
        recorder->infos[i].name =
            strncpy(recorder->names[i][0], info->stages[i].name, sizeof recorder->names[i][0] - 1);
        recorder->infos[i].queue_name =
            strncpy(recorder->names[i][1], info->stages[i].queue_name, sizeof recorder->names[i][1] - 1);
    }
    recorder->run.stages = recorder->infos;
    leave(recorder);
}

/* A copy (NULL = of zeros) that lives until recorder_free(). */
static weir_lap *keep_lap(test_recorder *recorder, const weir_lap *lap)
{
    kept_lap *kept = calloc(1, sizeof *kept);
    REQUIRE(kept);
    if (lap)
        kept->lap = *lap;
    kept->next = recorder->kept_laps;
    recorder->kept_laps = kept;
    return &kept->lap;
}

static bool is_of(const char *name, const weir_stage_info *info)
{
    return strncmp(name, info->name, strlen(info->name)) == 0;
}

/* The first lap defines the order of every lap: upstream first, each stage, then its queues. */
static void learn_lap_call(test_recorder *recorder, const char *name)
{
    uint64_t number = recorder->num_lap_names;
    char *kept = *APPEND(recorder->lap_names, recorder->num_lap_names);
    strncpy(kept, name, sizeof *recorder->lap_names - 1);
    for (uint32_t i = 0; i < recorder->num_stages; i++) {
        const weir_stage_info *info = &recorder->infos[i];
        if (strcmp(name, info->name) == 0)
            REQUIRE(i == 0 ? number == 0 : is_of(recorder->lap_names[number - 1], &recorder->infos[i - 1]));
        if (strcmp(name, info->queue_name) == 0)
            REQUIRE(strcmp(recorder->lap_names[number - 1], info->name) == 0);
    }
}

/* Returns the number of the lap. */
static uint64_t begin_lap_call(test_recorder *recorder, const char *name)
{
    REQUIRE(recorder->started);
    if (counter_value(&recorder->laps) == 0)
        learn_lap_call(recorder, name);
    REQUIRE(recorder->calls_in_lap < recorder->num_lap_names);
    REQUIRE(strcmp(name, recorder->lap_names[recorder->calls_in_lap++]) == 0);
    return (uint64_t)counter_value(&recorder->laps);
}

static void end_lap_call(test_recorder *recorder, const char *name)
{
    bool complete = strcmp(name, recorder->infos[recorder->num_stages - 1].queue_name) == 0;
    REQUIRE(complete == (counter_value(&recorder->laps) > 0 && recorder->calls_in_lap == recorder->num_lap_names) ||
            counter_value(&recorder->laps) == 0);
    leave(recorder);
    if (!complete)
        return;
    recorder->calls_in_lap = 0;
    counter_add(&recorder->laps, 1);
    if (recorder->on_lap)
        recorder->on_lap(recorder, recorder->on_lap_argument);
}

#define KEEP(field, from) snprintf((field), sizeof(field), "%s", (from))

static void keep_stage(test_recorder *recorder, const weir_subject_lap *lap, uint64_t number)
{
    stage_record *record = APPEND(recorder->stages, recorder->num_stage_records);
    record->lap = *lap;
    record->lap.lap = keep_lap(recorder, lap->lap);
    record->lap.name = NULL;
    KEEP(record->name, lap->name);
    record->lap.metrics.task.run_times = NULL;
    record->lap_number = number;
    record->histogram_count = lap->metrics.task.run_times->count;
    KEEP(record->phase, lap->lap->position.phase);
}

static void keep_queue(test_recorder *recorder, const weir_subject_lap *lap, uint64_t number)
{
    queue_record *record = APPEND(recorder->queues, recorder->num_queue_records);
    record->lap = *lap;
    record->lap.lap = keep_lap(recorder, lap->lap);
    record->lap.name = NULL;
    KEEP(record->name, lap->name);
    record->lap.metrics.queue.put_times = record->lap.metrics.queue.get_times = NULL;
    record->lap.metrics.queue.latencies = NULL;
    record->latency_count = lap->metrics.queue.latencies ? lap->metrics.queue.latencies->count : 0;
    record->lap_number = number;
    record->put_count = lap->metrics.queue.put_times->count;
    record->get_count = lap->metrics.queue.get_times->count;
    KEEP(record->phase, lap->lap->position.phase);
}

static void on_subject_lap(void *self, const weir_subject_lap *lap)
{
    test_recorder *recorder = self;
    if (lap->subject > WEIR_SUBJECT_QUEUE)
        return;
    enter(recorder);
    uint64_t number = begin_lap_call(recorder, lap->name);
    pthread_mutex_lock(&recorder->lock);
    if (lap->subject == WEIR_SUBJECT_QUEUE)
        keep_queue(recorder, lap, number);
    else
        keep_stage(recorder, lap, number);
    pthread_mutex_unlock(&recorder->lock);
    end_lap_call(recorder, lap->name);
}

static void on_failure(void *self, const weir_failure *failure)
{
    test_recorder *recorder = self;
    enter(recorder);
    REQUIRE(recorder->started && recorder->calls_in_lap == 0);
    counter_add(&recorder->failures_reported, 1);
    if (recorder->failure_gate)
        gate_pass(recorder->failure_gate);
    pthread_mutex_lock(&recorder->lock);
    failure_record *record = APPEND(recorder->failures, recorder->num_failures);
    record->failure = *failure;
    record->failure.name = record->failure.label = record->failure.message = NULL;
    KEEP(record->name, failure->name);
    KEEP(record->label, failure->label);
    KEEP(record->message, failure->message);
    pthread_mutex_unlock(&recorder->lock);
    leave(recorder);
}

static void on_event(void *self, const weir_event *event)
{
    test_recorder *recorder = self;
    enter(recorder);
    REQUIRE(recorder->started && recorder->calls_in_lap == 0);
    pthread_mutex_lock(&recorder->lock);
    event_record *record = APPEND(recorder->events, recorder->num_events);
    record->event = *event;
    record->event.name = record->event.category = record->event.detail = NULL;
    KEEP(record->name, event->name);
    KEEP(record->category, event->category);
    KEEP(record->detail, event->detail);
    pthread_mutex_unlock(&recorder->lock);
    leave(recorder);
}

static void on_end(void *self, const weir_run_end *end)
{
    test_recorder *recorder = self;
    enter(recorder);
    REQUIRE(recorder->started && recorder->calls_in_lap == 0);
    REQUIRE(recorder->may_lose_laps || counter_value(&recorder->laps) > 0); /* the last lap was reported */
    recorder->ended = true;
    recorder->end = *end;
    leave(recorder);
    counter_add(&recorder->ends, 1);
}

void recorder_init(test_recorder *recorder)
{
    memset(recorder, 0, sizeof *recorder);
    pthread_mutex_init(&recorder->lock, NULL);
    counter_init(&recorder->laps);
    counter_init(&recorder->failures_reported);
    counter_init(&recorder->ends);
    atomic_init(&recorder->inside, false);
    recorder->observer = (weir_observer){
        .self = recorder,
        .run_start = on_start,
        .lap = on_subject_lap,
        .failure = on_failure,
        .event = on_event,
        .run_end = on_end,
    };
}

void recorder_free(test_recorder *recorder)
{
    free(recorder->names);
    free(recorder->lap_names);
    free(recorder->infos);
    while (recorder->kept_laps) {
        kept_lap *next = recorder->kept_laps->next;
        free(recorder->kept_laps);
        recorder->kept_laps = next;
    }
    free(recorder->stages);
    free(recorder->queues);
    free(recorder->failures);
    free(recorder->events);
}

weir_subject_lap recorder_stage_total(test_recorder *recorder, const char *name)
{
    weir_lap *sum = keep_lap(recorder, NULL);
    weir_subject_lap total = { .lap = sum };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &total.metrics.task);
    for (uint64_t i = 0; i < recorder->num_stage_records; i++) {
        const weir_subject_lap *lap = &recorder->stages[i].lap;
        if (strcmp(recorder->stages[i].name, name) != 0)
            continue;
        total.name = name;
        sum->elapsed_ns += lap->lap->elapsed_ns;
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_STAGE), &total.metrics.task, &lap->metrics.task);
    }
    assert_non_null(total.name);
    return total;
}

weir_subject_lap recorder_queue_total(test_recorder *recorder, const char *name)
{
    weir_lap *sum = keep_lap(recorder, NULL);
    weir_subject_lap total = { .lap = sum };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &total.metrics.queue);
    for (uint64_t i = 0; i < recorder->num_queue_records; i++) {
        const weir_subject_lap *lap = &recorder->queues[i].lap;
        if (strcmp(recorder->queues[i].name, name) != 0)
            continue;
        total.name = name;
        total.capacity = lap->capacity;
        sum->elapsed_ns += lap->lap->elapsed_ns;
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &total.metrics.queue, &lap->metrics.queue);
    }
    assert_non_null(total.name);
    return total;
}

uint64_t recorder_events_named(test_recorder *recorder, const char *name)
{
    uint64_t num_events = 0;
    pthread_mutex_lock(&recorder->lock);
    for (uint64_t i = 0; i < recorder->num_events; i++)
        num_events += strcmp(recorder->events[i].name, name) == 0;
    pthread_mutex_unlock(&recorder->lock);
    return num_events;
}

uint64_t recorder_dropped_failures(test_recorder *recorder)
{
    uint64_t dropped = 0;
    unsigned long long failures;
    for (uint64_t i = 0; i < recorder->num_events; i++)
        if (strcmp(recorder->events[i].name, "dropped") == 0 &&
            sscanf(recorder->events[i].detail, "%llu failures", &failures) == 1)
            dropped += failures;
    return dropped;
}
