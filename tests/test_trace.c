/* The raw record and trace files. test_random.c compares what they say with the laps. */
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support.h"

#include <weir/span.h>
#include <weir/sqlite.h>
#include <weir/summary.h>
#include <weir/trace_file.h>

#include "tests/program.h"
#include "tests/trace_totals.h"

/* ---- records in memory --------------------------------------------------------------------------------------- */

typedef struct watched {
    weir_observer observer;
    test_gate *gate; /* passed in each call (NULL = none) */
    test_counter calls;
    weir_trace_record *records;
    size_t num_records, room;
    uint64_t num_lost;
    char phases[256]; /* one after the other */
    char labels[4096];
} watched;

static void watch(void *self, const weir_trace_batch *batch)
{
    watched *w = self;
    counter_add(&w->calls, 1);
    if (w->gate)
        gate_pass(w->gate);
    for (size_t i = 0; i < batch->num_records; i++) {
        const weir_trace_record *record = &batch->records[i];
        if (w->num_records == w->room)
            REQUIRE(w->records = realloc(w->records, (w->room = w->room ? 2 * w->room : 1024) * sizeof *w->records));
        w->records[w->num_records++] = *record;
        const char *text = (const char *)(intptr_t)record->value;
        if (record->kind == WEIR_TRACE_PHASE)
            strcat(strcat(w->phases, text), " ");
        if (record->kind == WEIR_TRACE_LABEL && strlen(w->labels) < sizeof w->labels - 64)
            strcat(strcat(w->labels, text), " ");
        if (record->kind == WEIR_TRACE_ON)
            w->num_lost += (uint64_t)record->value;
    }
}

static void watched_init(watched *w)
{
    *w = (watched){ .observer = { .self = w, .trace = watch } };
    counter_init(&w->calls);
}

static size_t count_kind(const watched *w, weir_trace_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < w->num_records; i++)
        count += w->records[i].kind == kind;
    return count;
}

static size_t count_tasks(const watched *w, uint16_t node, int status)
{
    size_t count = 0;
    for (size_t i = 0; i < w->num_records; i++) {
        const weir_trace_record *record = &w->records[i];
        count += record->kind == WEIR_TRACE_TASK && record->node == node && record->detail == status;
    }
    return count;
}

static weir_pipeline *build_watched(weir_builder *builder, watched *w, weir_pipeline_options options)
{
    options.observers = &w->observer;
    options.num_observers = 1;
    return build(builder, &options);
}

TEST_CASE(what_happened_to_each_item_is_recorded_in_order)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 20, .labelled = true };
    watched w;
    watched_init(&w);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &w, (weir_pipeline_options){ .threads = 2 });
    assert_int_equal(weir_pipeline_mark_phase(pipeline, "train"), WEIR_OK);
    for (int64_t step = 0; step < 20; step++) {
        assert_int_equal(weir_pipeline_mark_step(pipeline, step), WEIR_OK);
        next_value(pipeline);
    }
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    assert_int_equal(count_tasks(&w, 0, WEIR_OK), 20);
    assert_int_equal(count_tasks(&w, 1, WEIR_OK), 20);
    assert_int_equal(count_kind(&w, WEIR_TRACE_DELIVER), 20);
    assert_int_equal(count_kind(&w, WEIR_TRACE_STEP), 20);
    assert_int_equal(count_kind(&w, WEIR_TRACE_LABEL), 20); /* once for each item, not once for each stage */
    assert_string_equal(w.phases, "train ");
    assert_non_null(strstr(w.labels, "item-19 "));
    assert_int_equal(w.num_lost, 0);
    int64_t last_ns = 0;
    for (size_t i = 0; i < w.num_records; i++) {
        /* these are in order for each thread; a state has the time at which the step before it ended */
        if (w.records[i].kind >= WEIR_TRACE_NAME || w.records[i].kind == WEIR_TRACE_STATE)
            continue;
        assert_true(w.records[i].time_ns >= last_ns);
        last_ns = w.records[i].time_ns;
    }
    free(w.records);
    ledger_close(&ledger);
}

TEST_CASE(recording_is_switched_while_tasks_run)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 3, .labelled = true };
    test_gate gate = GATE;
    watched w;
    watched_init(&w);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &w, (weir_pipeline_options){ .threads = 2, .trace_off = true });
    gate_await_waiting(&gate, 1);
    assert_int_equal(weir_pipeline_trace(pipeline, false), WEIR_OK); /* it already is */
    assert_int_equal(weir_pipeline_trace(pipeline, true), WEIR_OK);
    assert_int_equal(weir_pipeline_trace(pipeline, true), WEIR_OK);
    counter_await(&w.calls, 1);
    assert_int_equal(weir_pipeline_trace(pipeline, false), WEIR_OK);
    gate_let(&gate, 1);
    next_value(pipeline); /* not recorded */
    assert_int_equal(weir_pipeline_trace(pipeline, true), WEIR_OK);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    assert_int_equal(count_kind(&w, WEIR_TRACE_ON), 2);
    assert_int_equal(count_kind(&w, WEIR_TRACE_OFF), 2);
    assert_int_equal(w.records[0].kind, WEIR_TRACE_ON);
    bool reported = false; /* the task that ran at the first switch, and the label of its item */
    for (size_t i = 0; w.records[i].kind != WEIR_TRACE_OFF; i++)
        reported |= w.records[i].kind == WEIR_TRACE_STATE && w.records[i].node == 1 &&
                    w.records[i].detail == WEIR_TRACE_RUNNING;
    assert_true(reported);
    assert_memory_equal(w.labels, "item-", 5);
    assert_int_equal(count_kind(&w, WEIR_TRACE_DELIVER), 2);
    assert_int_equal(w.records[w.num_records - 1].kind, WEIR_TRACE_OFF); /* the run's end */
    free(w.records);
    ledger_close(&ledger);
}

/* The observer waits for the gate, nothing else does: the ring is full. */
static weir_pipeline *fill_ring(watched *w, test_gate *gate, test_numbers *numbers)
{
    watched_init(w);
    w->gate = gate;
    weir_builder *builder = builder_with(numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, w, (weir_pipeline_options){ .threads = 2, .trace_records = 64 });
    gate_await_waiting(gate, 1);
    for (int i = 0; i < 1900; i++)
        next_value(pipeline);
    return pipeline;
}

TEST_CASE(a_full_ring_loses_records_and_begins_again)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 2000, .labelled = true };
    test_gate gate = GATE;
    watched w;
    weir_pipeline *pipeline = fill_ring(&w, &gate, &numbers);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    assert_true(count_kind(&w, WEIR_TRACE_ON) >= 2);
    assert_true(w.num_lost > 1900);
    size_t states = 0;
    for (size_t i = 0; i < w.num_records; i++) { /* each beginning tells every slot: 3, and 3 for hooks */
        if (w.records[i].kind != WEIR_TRACE_ON)
            continue;
        for (size_t j = i + 1; j < w.num_records && w.records[j].kind != WEIR_TRACE_TASK; j++)
            states += w.records[j].kind == WEIR_TRACE_STATE && w.records[j].time_ns == w.records[i].time_ns;
        assert_true(states >= 6);
        states = 0;
    }
    free(w.records);
    ledger_close(&ledger);
}

TEST_CASE(lost_records_are_counted_and_in_the_summary_although_recording_is_switched)
{
    char *folder = make_folder(), *db = path_in(folder, "a.db"), *text = NULL, line[80];
    size_t size;
    weir_sqlite_writer *writer;
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 2000 };
    test_gate gate = GATE;
    watched w;
    watched_init(&w);
    w.gate = &gate;
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_sqlite_open(db, NULL, &writer, NULL), WEIR_OK);
    weir_observer observers[2] = { w.observer, weir_sqlite_observer(writer) };
    weir_pipeline *pipeline = build(
        builder,
        &(weir_pipeline_options){ .threads = 2, .trace_records = 64, .observers = observers, .num_observers = 2 });
    gate_await_waiting(&gate, 1);
    for (int i = 0; i < 1900; i++)
        next_value(pipeline);
    assert_int_equal(weir_pipeline_trace(pipeline, false), WEIR_OK);
    assert_int_equal(weir_pipeline_trace(pipeline, true), WEIR_OK);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    assert_true(w.num_lost > 1900);
    assert_int_equal(weir_sqlite_close(writer, NULL), WEIR_OK);
    FILE *out = open_memstream(&text, &size);
    weir_recording *recording;
    assert_int_equal(weir_recording_open(db, &recording, NULL), WEIR_OK);
    assert_int_equal(weir_summary_write(out, recording, NULL, NULL, NULL, NULL), WEIR_OK);
    weir_recording_close(recording);
    fclose(out);
    snprintf(line, sizeof line, "\n%llu records of the trace were lost", (unsigned long long)w.num_lost);
    assert_non_null(strstr(text, line));
    free(text);
    free(db);
    remove_folder(folder);
    free(w.records);
    ledger_close(&ledger);
}

TEST_CASE(a_ring_that_is_too_small_for_added_slots_grows)
{
    enum { SLOTS = 300 };
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 2000 };
    test_gate gate = GATE;
    watched w;
    weir_pipeline *pipeline = fill_ring(&w, &gate, &numbers);
    assert_int_equal(weir_pipeline_set_concurrency(pipeline, "pass", SLOTS), WEIR_OK);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    uint32_t last = 0;
    for (size_t i = 0; i < w.num_records; i++)
        if (w.records[i].kind == WEIR_TRACE_STATE && w.records[i].node == 1 &&
            (w.records[i].number & WEIR_TRACE_SLOT) > last)
            last = w.records[i].number & WEIR_TRACE_SLOT;
    assert_int_equal(last, SLOTS - 1);
    free(w.records);
    ledger_close(&ledger);
}

static test_counter delivered = COUNTER;

static void mark_each_call(void *self, const weir_trace_batch *batch)
{
    counter_add(&((watched *)self)->calls, 1);
    weir_marker(weir_span_name_get("test", "batch"), WEIR_MARKER_THREAD);
    for (size_t i = 0; i < batch->num_records; i++)
        counter_add(&delivered, batch->records[i].kind == WEIR_TRACE_DELIVER);
}

TEST_CASE(an_observer_that_records_each_of_its_calls_gets_all_records_in_time)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    watched w;
    watched_init(&w);
    w.observer.trace = mark_each_call;
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_watched(builder, &w, (weir_pipeline_options){ .threads = 1 });
    counter_await(&w.calls, 3); /* the last ones only brought what the calls before them had recorded */
    next_value(pipeline);
    counter_await(&delivered, 1);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(a_pipeline_without_an_observer_of_records_refuses_to_record)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(weir_pipeline_trace(pipeline, true), WEIR_EUNSUPPORTED);
    assert_int_equal(weir_pipeline_trace(NULL, true), WEIR_EINVAL);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- files --------------------------------------------------------------------------------------------------- */

typedef struct run_spec {
    uint64_t count;
    int64_t steps; /* marked, one for each item; 0 = none */
    const weir_op *op;
    uint32_t epochs;
    bool unlabelled;
    weir_pipeline_options options;
} run_spec;

/* Runs items through a stage with this observer. */
static void run_items(weir_observer observer, run_spec spec)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = {
        .ledger = &ledger, .count = spec.count, .labelled = !spec.unlabelled, .size_bytes = 100
    };
    weir_builder *builder = weir_builder_new();
    weir_item item;
    int64_t step = 0;
    int status;
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .epochs = spec.epochs });
    weir_builder_pipe(builder, spec.op ? spec.op : &pass_op, NULL, 0,
                      &(weir_stage_options){ .concurrency = spec.epochs ? 1 : 3 });
    weir_builder_sink(builder, NULL);
    spec.options.observers = &observer;
    spec.options.num_observers = 1;
    weir_pipeline *pipeline = build(builder, &spec.options);
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        weir_item_release(&item);
        if (step < spec.steps)
            weir_pipeline_mark_step(pipeline, step++);
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static weir_trace_file *open_trace(const char *path, const weir_trace_options *options)
{
    weir_trace_file *file;
    weir_error error = { 0 };
    weir_trace_options own = options ? *options : (weir_trace_options){ 0 };
    if (weir_trace_open(path, &own, &file, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return file;
}

static void close_trace(weir_trace_file *file)
{
    weir_error error = { 0 };
    if (weir_trace_close(file, &error) != WEIR_OK)
        fail_msg("%s", error.message);
}

static weir_pipeline *build_traced(weir_builder *builder, weir_trace_file *file, weir_pipeline_options options)
{
    weir_observer observer = weir_trace_observer(file);
    options.observers = &observer;
    options.num_observers = 1;
    return build(builder, &options);
}

static void end_traced(weir_pipeline *pipeline, weir_trace_file *file)
{
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    close_trace(file);
}

static void write_trace(const char *path, const weir_trace_options *options, run_spec spec)
{
    weir_trace_file *file = open_trace(path, options);
    run_items(weir_trace_observer(file), spec);
    close_trace(file);
}

static trace_totals totals;

static void assert_well_formed(const char *path)
{
    char *text = read_file(path);
    const char *mistake = trace_format_mistake(text, strlen(text));
    if (mistake)
        fail_msg("%s: %s", path, mistake);
    free(text);
    assert_true(trace_totals_read(path, &totals));
    assert_false(totals.is_cut);
}

/* A file that was not closed: only the bracket is missing. */
static void assert_well_formed_with_bracket(const char *path)
{
    char *text = read_file(path), *whole = NULL;
    assert_true(asprintf(&whole, "%s]", text) > 0);
    const char *mistake = trace_format_mistake(whole, strlen(whole));
    if (mistake)
        fail_msg("%s: %s", path, mistake);
    free(whole);
    free(text);
    assert_true(trace_totals_read(path, &totals));
    assert_true(totals.is_cut);
}

static uint64_t count_in(const char *path, const char *what)
{
    uint64_t count = 0;
    char *text = read_file(path);
    for (const char *at = text; (at = strstr(at, what)); at++)
        count++;
    free(text);
    return count;
}

static int odd_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (weir_task_seq(task) % 4 == 1)
        return weir_task_fail(task, WEIR_EDATA, 0, "\"odd\"\n\x01\xff");
    if (weir_task_seq(task) % 4 == 3)
        return WEIR_SKIP;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op odd_op = { .name = "odd", .run = odd_run };

TEST_CASE(a_file_is_strict_json_and_says_what_became_of_each_item)
{
    char *folder = make_folder(), *path = path_in(folder, "sub/trace.json");
    write_trace(path, NULL, (run_spec){ .count = 40, .steps = 5, .op = &odd_op });
    assert_well_formed(path);
    const trace_total *stage = trace_totals_of(&totals, "0:1:odd[3]");
    assert_int_equal(stage->num_tasks, 40);
    assert_int_equal(stage->num_failures, 10);
    assert_int_equal(stage->num_skipped, 10);
    assert_int_equal(totals.num_flow_begins, 40);
    assert_int_equal(totals.num_flow_ends, 40); /* 20 at the consumer, 20 where they ended */
    assert_true(totals.num_labels >= 80);
    assert_int_equal(count_in(path, "\"cat\":\"failure\""), 10);
    assert_int_equal(count_in(path, "\"cat\":\"busy\",\"name\":\"! failed: "), 10);
    assert_int_equal(count_in(path, "\"task\":\"! failed\""), 10);
    assert_int_equal(count_in(path, "\"cat\":\"step\""), 5);
    assert_true(count_in(path, "\"name\":\"0:1:odd[3] #2\"") == 1);
    assert_int_equal(count_in(path, "\"name\":\"consumer waits\""), 1);       /* its track */
    assert_true(count_in(path, "\"cat\":\"wait_in\",\"name\":\"idle\"") > 0); /* a source waits for no input */
    free(path);
    remove_folder(folder);
}

static int compute_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    for (int64_t start_ns = weir_clock_ns(); weir_clock_ns() - start_ns < 100 * WEIR_MICROSECOND;)
        continue;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op compute_op = { .name = "compute", .run = compute_run };

/* The consumer marks when it has been woken: often between the pick of a slot and the begin of its step. */
TEST_CASE(times_that_marks_divide_are_those_of_the_trace)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 300 };
    test_recorder recorder;
    weir_item item;
    recorder_init(&recorder);
    weir_trace_file *file = open_trace(path, NULL);
    const weir_observer observers[] = { recorder.observer, weir_trace_observer(file) };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &compute_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 2, .observers = observers, .num_observers = 2 });
    for (int i = 0; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; i++) {
        weir_item_release(&item);
        assert_int_equal(weir_pipeline_mark_phase(pipeline, i % 2 ? "odd" : "even"), WEIR_OK);
    }
    weir_pipeline_free(pipeline);
    close_trace(file);
    assert_true(trace_totals_read(path, &totals));
    const weir_task_metrics task = recorder_stage_total(&recorder, "0:1:compute").metrics.task;
    const trace_total *traced = trace_totals_of(&totals, "0:1:compute");
    assert_true(llabs(task.busy_ns - traced->busy_ns) < WEIR_MICROSECOND);
    assert_true(llabs(task.wait_thread_ns - traced->wait_thread_ns) < WEIR_MICROSECOND);
    recorder_free(&recorder);
    ledger_close(&ledger);
    free(path);
    remove_folder(folder);
}

/* The consumer waits until all queues and slots are full. */
TEST_CASE(items_and_bytes_of_each_queue_are_a_counter)
{
    static const struct {
        const char *name;
        long most; /* queues of 2, 2 and 3 items */
    } queues[] = { { "0:0:src_queue", 200 }, { "0:1:pass[3]_queue", 200 }, { "0:2:sink_queue", 300 } };
    char *folder = make_folder(), *path = path_in(folder, "trace.json"), name[80];
    test_ledger ledger = LEDGER;
    test_counter made;
    counter_init(&made);
    test_numbers numbers = { .ledger = &ledger, .count = 40, .size_bytes = 100, .made = &made };
    weir_trace_file *file = open_trace(path, NULL);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_traced(builder, file, (weir_pipeline_options){ 0 });
    counter_await(&made, 11);
    end_traced(pipeline, file);
    assert_well_formed(path);
    char *text = read_file(path);
    for (size_t i = 0; i < LENGTH(queues); i++) {
        long highest = 0, last = -1;
        snprintf(name, sizeof name, "\"name\":\"%s\",\"args\":{\"items\":", queues[i].name);
        for (char *at = text; (at = strstr(at, name)); highest = last > highest ? last : highest) {
            long items = strtol(at + strlen(name), &at, 10);
            const char *bytes = ",\"bytes\":";
            last = strncmp(at, bytes, strlen(bytes)) == 0 ? strtol(at + strlen(bytes), NULL, 10) : 0;
            assert_int_equal(last, 100 * items);
        }
        assert_in_range(highest, 100, queues[i].most);
        assert_int_equal(last, 0);
    }
    free(text);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

static int parts_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    static const weir_part_info first = { "first", WEIR_PART_TIME, "s", "" },
                                none = { "none", WEIR_PART_TIME, "s", "" },
                                longer = { "longer than the task", WEIR_PART_TIME, "s", "" },
                                count = { "count", WEIR_PART_COUNT, "", "" };
    assert_int_equal(weir_task_set_part(task, &first, WEIR_MICROSECOND), WEIR_OK);
    assert_int_equal(weir_task_set_part(task, &none, 0), WEIR_OK);
    assert_int_equal(weir_task_set_part(task, &count, WEIR_MICROSECOND), WEIR_OK);
    assert_int_equal(weir_task_set_part(task, &longer, 3600 * WEIR_SECOND), WEIR_OK);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op parts_op = { .name = "parts", .run = parts_run };

TEST_CASE(parts_of_a_task_are_inside_it)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    write_trace(path, NULL, (run_spec){ .count = 10, .op = &parts_op });
    assert_well_formed(path);
    assert_int_equal(totals.num_open, 0);
    assert_int_equal(count_in(path, "\"task\":\"parts\""), 10);
    assert_int_equal(count_in(path, "\"cat\":\"part\",\"name\":\"first\""), 10);
    assert_int_equal(count_in(path, "\"cat\":\"part\",\"name\":\"longer than the task\""), 10);
    assert_int_equal(count_in(path, "\"name\":\"none\""), 0);
    assert_int_equal(count_in(path, "\"name\":\"count\""), 0);
    assert_true(totals.end_ns < 3600 * WEIR_SECOND);
    free(path);
    remove_folder(folder);
}

/* A part has the name of the stage, as decoding has. */
static int named_part_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    static const weir_part_info named = { "same", WEIR_PART_TIME, "s", "" };
    assert_int_equal(weir_task_set_part(task, &named, WEIR_MICROSECOND), WEIR_OK);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op named_part_op = { .name = "same", .run = named_part_run };

enum { MOST_OPEN = 8, MOST_TRACKS = 20, NAME_BYTES = 64 };

/* The spans that are open in a track, the innermost last. */
struct open_names {
    long tid;
    size_t count;
    char names[MOST_OPEN][NAME_BYTES];
};

static void nest_event(struct open_names tracks[MOST_TRACKS], const char *line)
{
    const char *tid = strstr(line, "\"tid\":"), *name = strstr(line, "\"name\":\"");
    struct open_names *track = tracks;
    while (tid && track->tid && track->tid != strtol(tid + 6, NULL, 10))
        assert_true(++track < tracks + MOST_TRACKS);
    if (strstr(line, "\"ph\":\"E\""))
        assert_true(track->count-- > 0);
    if (!strstr(line, "\"ph\":\"B\""))
        return;
    track->tid = strtol(tid + 6, NULL, 10);
    assert_true(track->count < MOST_OPEN);
    snprintf(track->names[track->count], NAME_BYTES, "%.*s", (int)strcspn(name + 8, "\""), name + 8);
    for (size_t i = 0; i < track->count; i++)
        assert_string_not_equal(track->names[i], track->names[track->count]);
    track->count++;
}

/* Held constant: labels without folders; base_names_of_labels_are_the_names_of_tasks has others. */
TEST_CASE(no_span_is_inside_one_of_its_name)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json"), *rest;
    for (int unlabelled = 0; unlabelled < 2; unlabelled++) {
        static struct open_names tracks[MOST_TRACKS];
        write_trace(path, NULL, (run_spec){ .count = 10, .op = &named_part_op, .unlabelled = unlabelled });
        assert_well_formed(path);
        assert_int_equal(count_in(path, "\"cat\":\"part\",\"name\":\"same\""), 10);
        assert_int_equal(count_in(path, "\"name\":\"item 7\""), unlabelled ? 2 : 0); /* in the source, too */
        char *text = read_file(path);
        memset(tracks, 0, sizeof tracks);
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            nest_event(tracks, line);
        free(text);
        assert_int_equal(unlink(path), 0);
    }
    free(path);
    remove_folder(folder);
}

/* Two results: 3 and 4 µs of work, and a part that is the same in both. */
static int chunked_parts_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static const weir_part_info work = { "work", WEIR_PART_TIME, "s", "" },
                                once = { "once", WEIR_PART_TIME, "s", "" };
    const bool is_first = weir_task_num_chunks(task) == 0;
    (void)worker;
    weir_task_set_part(task, &work, is_first ? 3 * WEIR_MICROSECOND : 7 * WEIR_MICROSECOND);
    weir_task_set_part(task, &once, 2 * WEIR_MICROSECOND);
    if (is_first) {
        static char data;
        out->data = &data;
        return WEIR_MORE;
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op chunked_parts_op = { .name = "parts", .run = chunked_parts_run };

TEST_CASE(each_result_of_a_task_has_the_parts_that_were_added_since_the_last_one)
{
    watched w;
    int64_t work_ns[4] = { 0 };
    size_t num_work = 0, num_once = 0;
    watched_init(&w);
    run_items(w.observer, (run_spec){ .count = 2, .op = &chunked_parts_op, .options.threads = 1 });
    for (size_t i = 0; i < w.num_records; i++) {
        const weir_trace_record *record = &w.records[i];
        if (record->kind != WEIR_TRACE_PART)
            continue;
        bool is_work = strcmp((const char *)(uintptr_t)record->item, "work") == 0;
        assert_true(num_work < LENGTH(work_ns));
        if (is_work)
            work_ns[num_work++] = record->value;
        num_once += !is_work;
    }
    assert_int_equal(num_work, 4);
    assert_int_equal(num_once, 2);
    assert_int_equal(work_ns[0] + work_ns[1] + work_ns[2] + work_ns[3], 14 * WEIR_MICROSECOND);
    for (size_t i = 0; i < num_work; i++)
        assert_true(work_ns[i] == 3 * WEIR_MICROSECOND || work_ns[i] == 4 * WEIR_MICROSECOND);
    free(w.records);
}

/* A file that was not closed: it holds what was open at its last flush. */
TEST_CASE(spans_of_user_code_that_are_open_are_in_the_file_of_a_killed_program)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_trace_file *file = open_trace(path, NULL);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_traced(builder, file, (weir_pipeline_options){ 0 });
    weir_span_begin(weir_span_name_get("mine", "never ends"));
    weir_frame_begin(weir_span_name_get("mine", "frame"), 12);
    while (access(path, F_OK) != 0)
        sched_yield();
    do /* each request writes the file, also while it is read */
        weir_trace_request(file);
    while (count_in(path, "\"cat\":\"mine\",\"name\":\"never ends\"") == 0 ||
           count_in(path, "\"cat\":\"busy\",\"name\":\"src\"") == 0);
    assert_well_formed_with_bracket(path);
    assert_true(totals.num_open >= 2); /* the span, and the task of the source */
    weir_frame_end(weir_span_name_get("mine", "frame"));
    gate_open(&gate);
    end_traced(pipeline, file);
    weir_span_end();
    assert_well_formed(path);
    assert_int_equal(count_in(path, "\"cat\":\"mine\",\"name\":\"never ends\""), 1);
    assert_int_equal(count_in(path, "\"cat\":\"mine\",\"name\":\"frame\""), 2); /* its begin and its end */
    assert_int_equal(count_in(path, "\"args\":{\"number\":12}"), 1);
    assert_int_equal(totals.num_open, 0);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

static test_gate late_gate = GATE;

static int late_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker, (void)in, (void)out;
    gate_pass(&late_gate);
    return weir_task_fail(task, WEIR_EDATA, 0, "late");
}

static const weir_op late_op = { .name = "late", .run = late_run };

/* Its beginning is in the file before anybody knows that it fails. */
TEST_CASE(a_task_that_fails_late_has_the_name_of_its_item_too)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_trace_file *file = open_trace(path, NULL);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &late_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_traced(builder, file, (weir_pipeline_options){ 0 });
    while (access(path, F_OK) != 0)
        sched_yield();
    do
        weir_trace_request(file);
    while (count_in(path, "\"task\":\"late\"") == 0);
    gate_open(&late_gate);
    end_traced(pipeline, file);
    assert_well_formed(path);
    assert_int_equal(trace_totals_of(&totals, "0:1:late")->num_tasks, 1);
    assert_int_equal(trace_totals_of(&totals, "0:1:late")->num_failures, 1);
    assert_int_equal(count_in(path, "\"cat\":\"busy\",\"name\":\"! failed: "), 1);
    assert_int_equal(count_in(path, "\"task\":\"! failed\""), 1);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

static weir_trace_record span_record(weir_trace_kind kind, int64_t time_ns, int64_t level, const char *name)
{
    return (weir_trace_record){
        .time_ns = time_ns, .item = (uintptr_t)name, .value = level, .number = 7, .node = 4, .kind = (uint8_t)kind
    };
}

/* The end of "inner" and the begin of "other" are lost. */
TEST_CASE(lost_begins_and_ends_do_not_move_the_others)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    weir_trace_file *file = open_trace(path, NULL);
    weir_observer observer = weir_trace_observer(file);
    int64_t now_ns = weir_clock_ns();
    const weir_trace_record records[] = {
        span_record(WEIR_TRACE_SPAN_BEGIN, now_ns, 0, "mine/outer"),
        span_record(WEIR_TRACE_SPAN_BEGIN, now_ns + 1000, 1, "mine/inner"),
        span_record(WEIR_TRACE_SPAN_BEGIN, now_ns + 3000, 1, "mine/next"),
        span_record(WEIR_TRACE_SPAN_END, now_ns + 4000, 1, "mine/next"),
        span_record(WEIR_TRACE_SPAN_END, now_ns + 6000, 1, "mine/other"),
        span_record(WEIR_TRACE_SPAN_END, now_ns + 9000, 0, "mine/outer"),
        span_record(WEIR_TRACE_SPAN_BEGIN, now_ns + 10000, 2, "mine/deep"), /* of spans that began before the file */
        span_record(WEIR_TRACE_SPAN_END, now_ns + 11000, 2, "mine/deep"),
        span_record(WEIR_TRACE_SPAN_END, now_ns + 12000, 1, "mine/before"),
    };
    observer.run_start(observer.self, &(weir_run_info){ .start_ns = now_ns });
    observer.trace(observer.self, &(weir_trace_batch){ records, LENGTH(records), 2 });
    observer.run_end(observer.self, &(weir_run_end){ .status = WEIR_OK });
    weir_trace_close(file, NULL);
    assert_well_formed(path);
    assert_int_equal(totals.num_open, 0);
    assert_int_equal(count_in(path, "\"ph\":\"B\""), 4);
    assert_int_equal(count_in(path, "\"ph\":\"E\""), 4);
    free(path);
    remove_folder(folder);
}

/* The ring is filled before the observer thread can read it: the first call of another observer waits. */
TEST_CASE(lost_records_of_user_code_are_marked_in_the_file)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    test_gate gate = GATE;
    watched w;
    watched_init(&w);
    w.gate = &gate;
    weir_error error = { 0 };
    weir_trace_file *file = open_trace(path, NULL);
    weir_observer observers[2] = { w.observer, weir_trace_observer(file) };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .trace_records = 64, .observers = observers, .num_observers = 2 });
    gate_await_waiting(&gate, 1);
    for (int i = 0; i < 300; i++)
        weir_marker(weir_span_name_get("test", "many"), WEIR_MARKER_TASK);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    assert_int_equal(weir_trace_close(file, &error), WEIR_ELIMIT);
    assert_well_formed(path);
    assert_true(count_in(path, "\"cat\":\"lost\",\"name\":\"records of user code are lost before here\"") > 0);
    assert_true(count_in(path, "\"name\":\"many\",\"s\":\"t\",\"args\":{\"scope\":\"task\"}}") > 0);
    free(w.records);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

TEST_CASE(counters_of_any_value_leave_the_file_well_formed_in_any_locale)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_trace_file *file = open_trace(path, NULL);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    if (!test_set_comma_locale())
        print_message("no locale with a decimal comma can be made\n");
    weir_pipeline *pipeline = build_traced(builder, file, (weir_pipeline_options){ 0 });
    weir_marker(weir_span_name_get("one,two", "several"), WEIR_MARKER_TASK);
    weir_counter *counter = weir_counter_get("test", "odd", NULL, 0);
    static const double values[] = { 0.5, 1e300, -1e300, NAN, INFINITY, 9223372036854775808.0, -7 };
    for (size_t i = 0; i < LENGTH(values); i++)
        weir_counter_set(counter, 0, values[i]);
    gate_open(&gate);
    end_traced(pipeline, file);
    setlocale(LC_ALL, "C");
    assert_well_formed(path);
    assert_int_equal(count_in(path, "\"name\":\"test/odd\",\"args\":{\"value\":"), 5);
    assert_int_equal(count_in(path, "\"cat\":\"one,two\",\"name\":\"several\""), 1);
    assert_int_equal(count_in(path, "{\"value\":0.5}"), 1);
    assert_int_equal(count_in(path, "\"detail\":\"not a number\""), 1);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

/* Chart by chart: each event has the last of all its values, in the categories of the counter. */
TEST_CASE(the_values_of_a_counter_are_one_chart)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_trace_file *file = open_trace(path, NULL);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_traced(builder, file, (weir_pipeline_options){ 0 });
    weir_counter *loss = weir_counter_get("train,gpu", "loss/of all", (const char *[]){ "train", "a/b" }, 2);
    weir_counter *total = weir_counter_get_total("train,gpu", "loss/of", (const char *[]){ "all" }, 1);
    weir_counter_set(loss, 0, 0.5);
    weir_counter_set(loss, 1, 2);
    weir_counter_set(loss, 0, NAN);
    weir_counter_set(loss, 1, 3);
    weir_counter_set(loss, 0, 0.25);
    weir_counter_add(total, 0, 7); /* the beginning of the other one's name */
    gate_open(&gate);
    end_traced(pipeline, file);
    assert_well_formed(path);
    static const char event[] = "\"cat\":\"train,gpu\",\"name\":\"train,gpu/loss/of all\",\"args\":{";
    static const char *const args[] = { "\"train\":0.5}", "\"train\":0.5,\"a/b\":2}", "\"a/b\":3}",
                                        "\"train\":0.25,\"a/b\":3}" };
    char wanted[200];
    for (size_t i = 0; i < LENGTH(args); i++) {
        snprintf(wanted, sizeof wanted, "%s%s", event, args[i]);
        assert_int_equal(count_in(path, wanted), 1);
    }
    assert_int_equal(count_in(path, event), 4);
    assert_int_equal(count_in(path, "\"name\":\"train,gpu/loss/of\",\"args\":{\"all\":7}"), 1);
    assert_int_equal(count_in(path, "\"detail\":\"not a number\""), 1);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

TEST_CASE(epochs_and_kept_items_appear_as_what_they_are)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    static weir_op batches;
    batches = weir_aggregate;
    static weir_aggregate_config config = { .num_items = 4 };
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_trace_file *file = open_trace(path, NULL);
    weir_builder *builder = weir_builder_new();
    weir_item item;
    int status;
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .epochs = 2 });
    weir_builder_pipe(builder, &batches, &config, sizeof config, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_traced(builder, file, (weir_pipeline_options){ 0 });
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
    close_trace(file);
    assert_well_formed(path);
    assert_int_equal(count_in(path, "\"outcome\":\"kept\""), 16);
    assert_true(count_in(path, "\"flush\":true") >= 2);
    assert_int_equal(count_in(path, "\"cat\":\"epoch\""), 2 * 3);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

TEST_CASE(a_compressed_file_says_the_same)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json.gz");
    weir_trace_file *file;
    weir_error error = { 0 };
    if (weir_trace_open(path, NULL, &file, &error) == WEIR_EUNSUPPORTED) {
        remove_folder(folder);
        free(path);
        skip();
    }
    run_items(weir_trace_observer(file), (run_spec){ .count = 100 });
    close_trace(file);
    assert_true(trace_totals_read(path, &totals));
    assert_false(totals.is_cut);
    assert_int_equal(trace_totals_of(&totals, "0:1:pass[3]")->num_tasks, 100);

    /* The first member alone tells the Perfetto UI what the file is. */
    char *gz = read_file(path), *begin = path_in(folder, "begin"), *text = path_in(folder, "text");
    size_t member = 10;
    while (memcmp(gz + member, "\x1f\x8b\x08", 3) != 0)
        member++;
    FILE *only_begin = fopen(begin, "w");
    assert_non_null(only_begin);
    assert_int_equal(fwrite(gz, 1, member, only_begin), member);
    assert_int_equal(fclose(only_begin), 0);
    char command[4200];
    snprintf(command, sizeof command, "gzip -dc <'%s' >'%s'", begin, text);
    assert_int_equal(system(command), 0); /* NOLINT: a command of ours */
    char *beginning = read_file(text);
    assert_memory_equal(beginning, "[\n{\"ph\":\"M\"", 11);
    free(beginning);
    free(gz);
    free(begin);
    free(text);
    free(path);
    remove_folder(folder);
}

TEST_CASE(a_file_that_was_cut_off_anywhere_can_be_read)
{
    static const char *const names[] = { "trace.json", "trace.json.gz" };
    char *folder = make_folder(), *cut = path_in(folder, "cut");
    for (size_t i = 0; i < LENGTH(names); i++) {
        char *path = path_in(folder, names[i]);
        struct stat info;
        uint64_t before = 0;
        write_trace(path, NULL, (run_spec){ .count = 30 });
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(rename(path, cut), 0);
        trace_totals_read(cut, &totals);
        before = totals.num_events;
        for (off_t size = info.st_size - 1; size > 80; size -= 1 + info.st_size / 97) {
            assert_int_equal(truncate(cut, size), 0);
            assert_true(trace_totals_read(cut, &totals));
            assert_true(totals.num_events <= before);
            before = totals.num_events;
        }
        free(path);
    }
    free(cut);
    remove_folder(folder);
}

static void run_endlessly(const char *path, uint64_t max_bytes)
{
    static test_ledger ledger;
    static test_numbers numbers;
    ledger_init(&ledger);
    numbers = (test_numbers){ .ledger = &ledger, .count = UINT64_MAX, .labelled = true };
    weir_trace_file *file;
    if (weir_trace_open(path, &(weir_trace_options){ .max_bytes = max_bytes }, &file, NULL) != WEIR_OK)
        _exit(1);
    weir_observer observer = weir_trace_observer(file);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline;
    weir_item item;
    if (weir_builder_build(builder, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 }, &pipeline,
                           NULL) != WEIR_OK)
        _exit(1);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    _exit(1);
}

/* The process is killed when the file has had another size this many times, after its beginning. */
TEST_CASE(a_file_survives_a_kill_at_any_moment)
{
    static const struct {
        const char *name;
        uint64_t max_bytes;
        int most;
    } files[] = { { "ring.json", 1 << 20, 4 }, { "plain.json", 0, 2 }, { "packed.json.gz", 0, 2 } };
    char *folder = make_folder(), *old = path_in(folder, "ring.json.old");
    for (size_t i = 0; i < LENGTH(files); i++) {
        char *path = path_in(folder, files[i].name);
        for (int times = 1; times <= files[i].most; times++) {
            struct stat info = { 0 };
            off_t last = 0;
            unlink(path);
            pid_t child = fork();
            if (child == 0)
                run_endlessly(path, files[i].max_bytes);
            for (int changes = 0; changes < 2 * times && waitpid(child, NULL, WNOHANG) == 0;) {
                changes += stat(path, &info) == 0 && info.st_size != last && info.st_size > 4096;
                last = info.st_size;
                sched_yield();
            }
            if (kill(child, SIGKILL) == 0)
                waitpid(child, NULL, 0);
            assert_true(last > 0 || i == 2);
            if (last == 0)
                continue; /* a build without zlib */
            if (access(path, F_OK) != 0 || !trace_totals_read(path, &totals) || totals.num_events < 5)
                assert_true(trace_totals_read(old, &totals)); /* it was just turning over */
            assert_true(totals.num_events >= 5);
            unlink(old);
        }
        free(path);
    }
    free(old);
    remove_folder(folder);
}

TEST_CASE(a_file_without_its_bracket_is_json_up_to_there)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    write_file(path, "[{\"ph\":\"M\"}]");
    weir_trace_file *file = open_trace(path, &(weir_trace_options){ .overwrite = true });
    close_trace(file); /* nothing was run: the older one stays, and nothing else is left */
    char *older = read_file(path), *script = NULL;
    assert_string_equal(older, "[{\"ph\":\"M\"}]");
    assert_true(asprintf(&script, "ls -A '%s' | grep -v '^trace.json$' >&2", folder) > 0);
    assert_int_not_equal(system(script), 0); /* NOLINT */
    free(script);
    free(older);
    unlink(path);

    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    file = open_trace(path, NULL);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_traced(builder, file, (weir_pipeline_options){ 0 });
    while (access(path, F_OK) != 0)
        sched_yield();
    assert_well_formed_with_bracket(path);
    gate_open(&gate);
    end_traced(pipeline, file);
    ledger_close(&ledger);
    free(path);
    remove_folder(folder);
}

TEST_CASE(a_file_that_cannot_grow_ends_with_what_fitted)
{
    static const char *const names[] = { "trace.json", "trace.json.gz" };
    char *folder = make_folder();
    struct rlimit usual, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    small = usual;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < LENGTH(names); i++) {
        char *path = path_in(folder, names[i]);
        weir_trace_file *file;
        weir_error error = { 0 };
        if (weir_trace_open(path, NULL, &file, &error) == WEIR_OK) {
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
            run_items(weir_trace_observer(file), (run_spec){ .count = 300 });
            assert_int_equal(weir_trace_close(file, &error), WEIR_EIO);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
            assert_non_null(strstr(error.message, names[i]));
            assert_true(trace_totals_read(path, &totals));
            assert_true(totals.is_cut && totals.num_events > 0);
        }
        free(path);
    }
    signal(SIGXFSZ, SIG_DFL);
    remove_folder(folder);
}

/* Numbers that no trace has must not overflow, and strings may end anywhere. */
TEST_CASE(weir_trace_reads_hostile_numbers)
{
    static const char *const values[] = { "9223372036854775807",
                                          "-9223372036854775808",
                                          "1e999",
                                          "-1.5e300",
                                          "9223372036854775.807",
                                          "\"x\"",
                                          "{}",
                                          "nan" };
    char *folder = make_folder(), *path = path_in(folder, "hostile.json"), *merged = path_in(folder, "merged.json");
    char command[8400];
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs("[{\"ph\":\"X\",\"name\":\"n\",\"pid\":1,\"tid\":0,\"ts\":1,\"dur\":1},", out);
    for (size_t i = 0; i < LENGTH(values) * LENGTH(values); i++) {
        const char *one = values[i % LENGTH(values)], *other = values[i / LENGTH(values)];
        fprintf(out,
                "{\"ph\":\"X\",\"name\":\"n\",\"cat\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%s,\"dur\":%s,"
                "\"args\":{\"seq\":%s}},\n{\"ph\":\"M\",\"name\":\"weir_trace\",\"args\":{\"unix_ns\":%s}},\n",
                i % 2 ? "busy" : "wait_in", (int)i / 4, one, other, one, other);
    }
    fputs("{}]", out);
    assert_int_equal(fclose(out), 0);
    snprintf(command, sizeof command, "'%s' trace '%s' >/dev/null && '%s' trace '%s' -o '%s'",
             program_path("WEIR_TOOL"), path, program_path("WEIR_TOOL"), path, merged);
    assert_int_equal(system(command), 0); /* NOLINT: a command of ours */
    free(path);
    free(merged);
    remove_folder(folder);
}

TEST_CASE(a_limited_file_holds_the_last_events)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json"), *old = path_in(folder, "trace.json.old");
    struct stat info;
    weir_trace_options options = { .max_bytes = 2 << 20, .overwrite = true };
    write_trace(path, &options, (run_spec){ .count = 8000, .options = { .trace_records = 1 << 20 } });
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size > (1 << 20) / 2);
    assert_true(info.st_size < 3 << 20);
    assert_int_not_equal(access(old, F_OK), 0);
    assert_well_formed(path);
    assert_true(count_in(path, "\"label\":\"item-7999\"") > 0);
    assert_int_equal(count_in(path, "\"label\":\"item-7\""), 0);
    free(old);
    free(path);
    remove_folder(folder);
}

/* ---- schedules and triggers ---------------------------------------------------------------------------------- */

typedef struct finished_files {
    char paths[64][256];
    size_t num_paths;
} finished_files;

static void note_finished(void *self, const char *path)
{
    finished_files *files = self;
    REQUIRE(files->num_paths < LENGTH(files->paths));
    snprintf(files->paths[files->num_paths++], sizeof files->paths[0], "%s", strrchr(path, '/') + 1);
}

TEST_CASE(a_schedule_writes_one_file_for_each_cycle)
{
    char *folder = make_folder(), *pattern = path_in(folder, "{node}/{run}-{rank}-{batch}.json");
    finished_files files = { .num_paths = 0 };
    weir_trace_options options = {
        .run = "a/b",
        .node_id = "here",
        .rank = 3,
        .keep = 2,
        .schedule = { .skip_first = 2, .wait = 3, .warmup = 1, .active = 2, .repeat = 3 },
        .finished = note_finished,
        .finished_self = &files,
    };
    write_trace(pattern, &options, (run_spec){ .count = 60, .steps = 50 });
    assert_int_equal(files.num_paths, 3);
    assert_string_equal(files.paths[0], "a_b-3-7.json");
    assert_string_equal(files.paths[1], "a_b-3-13.json");
    assert_string_equal(files.paths[2], "a_b-3-19.json");
    char *first = path_in(folder, "here/a_b-3-7.json"), *last = path_in(folder, "here/a_b-3-19.json");
    assert_int_not_equal(access(first, F_OK), 0); /* two are kept */
    assert_well_formed(last);
    assert_int_equal(count_in(last, "\"name\":\"step 18\""), 1);
    assert_int_equal(count_in(last, "\"name\":\"step 19\""), 1);
    assert_int_equal(count_in(last, "\"name\":\"step 20\""), 0);
    free(first);
    free(last);
    free(pattern);
    remove_folder(folder);
}

/* The name of a later file is known only when it begins. */
TEST_CASE(a_later_file_replaces_no_file_of_another_kind)
{
    static const char letter[] = "Dear reader,\n";
    for (int has_older = 0; has_older < 2; has_older++) {
        char *folder = make_folder(), *pattern = path_in(folder, "{batch}.json");
        char *other = path_in(folder, has_older ? "2.json.old" : "2.json"), *next = path_in(folder, "3.json");
        weir_trace_options options = { .overwrite = true,
                                       .max_bytes = has_older ? 1 << 20 : 0,
                                       .schedule = { .active = 1, .repeat = 3 } };
        FILE *file = fopen(other, "w");
        assert_non_null(file);
        fputs(letter, file);
        assert_int_equal(fclose(file), 0);
        weir_error error = { 0 };
        weir_trace_file *trace = open_trace(pattern, &options);
        run_items(weir_trace_observer(trace), (run_spec){ .count = 20, .steps = 10 });
        assert_int_equal(weir_trace_close(trace, &error), WEIR_EINVAL);
        assert_non_null(strstr(error.message, "2.json"));
        char *text = read_file(other);
        assert_string_equal(text, letter);
        assert_well_formed(next); /* the failure is that file's */
        free(text);
        free(next);
        free(other);
        free(pattern);
        remove_folder(folder);
    }
}

/* An uploader may still read a file under a name that it was given. */
TEST_CASE(a_removed_file_leaves_its_name_unused)
{
    static const char *const names[] = { "w8-l2-b1.json", "w8-l2-b1.2.json", "w8-l2-b1.3.json" };
    char *folder = make_folder(), *pattern = path_in(folder, "w{world_size}-l{local_rank}-b1.json");
    finished_files files = { .num_paths = 0 };
    weir_trace_options options = { .local_rank = 2,
                                   .world_size = 8,
                                   .keep = 1,
                                   .schedule = { .active = 1, .repeat = 3 },
                                   .finished = note_finished,
                                   .finished_self = &files };
    write_trace(pattern, &options, (run_spec){ .count = 20, .steps = 10 });
    assert_int_equal(files.num_paths, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(files.paths[i], names[i]);
    char *last = path_in(folder, names[2]);
    assert_well_formed(last);
    free(last);
    free(pattern);
    remove_folder(folder);
}

TEST_CASE(a_failure_triggers_a_file_of_what_was_before_it)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    finished_files files = { .num_paths = 0 };
    weir_trace_options options = {
        .on_failure = true, .last_ns = 3600 * WEIR_SECOND, .finished = note_finished, .finished_self = &files
    };
    write_trace(path, &options, (run_spec){ .count = 40, .op = &odd_op });
    assert_int_equal(files.num_paths, 1); /* the others are within an hour of it */
    assert_string_equal(files.paths[0], "trace.json");
    assert_well_formed(path);
    assert_true(count_in(path, "\"cat\":\"failure\"") >= 1);
    unlink(path);
    write_trace(path, &options, (run_spec){ .count = 40 });
    assert_int_not_equal(access(path, F_OK), 0);
    free(path);
    remove_folder(folder);
}

TEST_CASE(a_stall_and_a_request_trigger_files)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    finished_files files = { .num_paths = 0 };
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .labelled = true };
    test_gate gate = GATE;
    weir_trace_options options = {
        .on_stall = true, .on_request = true, .last_ns = 1, .finished = note_finished, .finished_self = &files
    };
    weir_trace_file *file = open_trace(path, &options);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build_traced(builder, file, (weir_pipeline_options){ .stall_warning_ns = WEIR_MILLISECOND });
    char *second = path_in(folder, "trace.2.json");
    while (access(path, F_OK) != 0) /* the stall */
        sched_yield();
    weir_trace_request(file);
    while (access(second, F_OK) != 0)
        sched_yield();
    gate_open(&gate);
    end_traced(pipeline, file);
    assert_true(files.num_paths >= 2);
    assert_well_formed(path);
    assert_true(count_in(path, "\"task\":\"gated\"") > 0); /* what stalls is in it */
    free(second);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

TEST_CASE(mistakes_are_refused_with_one_line)
{
    char *folder = make_folder(), *there = path_in(folder, "there.json");
    char *pattern = path_in(folder, "1-{rank}-{run}-{step}.json"), *later = path_in(folder, "1-0-a*-70.json");
    const struct {
        const char *path;
        weir_trace_options options;
        const char *message;
    } mistakes[] = {
        { "", { 0 }, "has no name" },
        { "{stage}.json", { 0 }, "unknown word in braces" },
        { "/proc/no/trace.json", { 0 }, "cannot write trace" },
        { "a.json", { .last_ns = 1 }, "without a trigger" },
        { "a.json", { .schedule = { .wait = 1 } }, "no active steps" },
        { "a.json", { .schedule = { .active = 1 }, .on_stall = true }, "choose one" },
        { NULL, { 0 }, "exists" },
        { NULL, { .schedule = { .active = 1 } }, "exists" },
        { NULL, { .on_failure = true }, "exists" },
        { pattern, { .run = "a*", .schedule = { .active = 1 } }, "1-0-a*-70.json exists" },
    };
    write_file(there, "");
    write_file(later, "");
    for (size_t i = 0; i < LENGTH(mistakes); i++) {
        weir_trace_file *file;
        weir_error error = { 0 };
        const char *path = mistakes[i].path ? mistakes[i].path : there;
        assert_true(weir_trace_open(path, &mistakes[i].options, &file, &error) < 0);
        assert_null(file);
        if (!strstr(error.message, mistakes[i].message))
            fail_msg("%s", error.message);
    }
    weir_trace_file *other; /* another run, and a name that only looks alike */
    weir_trace_options options = { .run = "ab", .schedule = { .active = 1 } };
    assert_int_equal(weir_trace_open(pattern, &options, &other, NULL), WEIR_OK);
    assert_int_equal(weir_trace_close(other, NULL), WEIR_OK);
    free(there);
    free(pattern);
    free(later);
    remove_folder(folder);
}

/* ---- several traces ------------------------------------------------------------------------------------------ */

TEST_CASE(ranks_are_merged_by_their_clocks)
{
    char *folder = make_folder(), *out = path_in(folder, "all.json"), *foreign = path_in(folder, "foreign.json");
    char *paths[5] = { NULL, NULL, NULL, NULL, foreign };
    weir_error error = { 0 };
    for (int32_t rank = 0; rank < 4; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank%d.json", (int)rank);
        paths[rank] = path_in(folder, name);
        write_trace(paths[rank], &(weir_trace_options){ .rank = rank }, (run_spec){ .count = 10 });
    }
    write_file(foreign, "{\"otherData\": {\"a\": [1, \"}\"]}, \"traceEvents\": [\n"
                        " {\"ph\": \"X\", \"ts\": 50.5, \"dur\": 2, \"name\": \"theirs\", \"pid\": 9, \"tid\": 9}\n"
                        "], \"x\": 1}");
    if (weir_trace_merge(out, (const char *const *)paths, 5, NULL, false, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    assert_well_formed(out);
    assert_int_equal(totals.num_flow_begins, 40);
    assert_int_equal(count_in(out, "\"process_name\""), 4);
    assert_int_equal(count_in(out, "\"name\":\"weir rank 03\""), 1);
    assert_int_equal(count_in(out, "\"pid\":5,"), 1);
    assert_int_equal(count_in(out, "\"ts\":0.000,\"dur\":2.000,\"name\":\"theirs\",\"pid\":5"), 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(weir_trace_merge(paths[i], (const char *const *)paths, 5, NULL, false, &error), WEIR_EINVAL);
    }
    for (int i = 1; i < 4; i++)
        free(paths[i]);
    char *rank0 = paths[0];
    /* times and clocks of any size: they are not added to others */
    write_file(foreign, "[{\"ph\":\"M\",\"name\":\"weir_trace\",\"args\":{\"unix_ns\":-9223372036854775807}},"
                        "{\"ph\":\"X\",\"ts\":9223372036854775.807,\"pid\":1},{\"ph\":\"X\",\"ts\":1e300,\"pid\":1},"
                        "{\"ph\":\"X\",\"ts\":-9223372036854775.9,\"pid\":1},{\"ph\":\"X\",\"ts\":5,\"pid\":1}]");
    const char *const ins[] = { rank0, foreign };
    assert_int_equal(weir_trace_merge(out, ins, 2, NULL, false, &error), WEIR_OK);
    assert_int_equal(count_in(out, "\"ts\":5.000"), 1);
    free(rank0);
    write_file(foreign, "no trace");
    error = (weir_error){ 0 };
    assert_int_equal(weir_trace_merge(out, (const char *const *)&foreign, 1, NULL, false, &error), WEIR_EDATA);
    assert_non_null(strstr(error.message, "foreign.json: it is not a trace"));
    free(foreign);
    free(out);
    remove_folder(folder);
}

/* ---- weir trace ---------------------------------------------------------------------------------------------- */

/* Runs weir trace with these words; frees the output of the run before. */
static struct program shown;

static void show_trace(const char *path, int status, const char *words)
{
    char line[512], *argv[16] = { (char *)(uintptr_t)program_path("WEIR_TOOL"), (char *)(uintptr_t) "trace",
                                  (char *)(uintptr_t)path };
    size_t count = 3;
    snprintf(line, sizeof line, "%s", words);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[count++] = word;
    program_free(&shown);
    program_run(&shown, "/", argv);
    if (shown.status != status)
        fail_msg("%d: %s", shown.status, shown.err);
}

static void assert_shown(const char *part)
{
    if (!strstr(shown.out, part))
        fail_msg("%s is missing in:\n%s", part, shown.out);
}

static int path_labels_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static const char *const labels[] = { "a/folder/clip.mp4", "plain.mp4", "https://host/dir/far.mp4?size=a/b",
                                          "folder/" };
    (void)worker;
    (void)in;
    static char data;
    uint64_t seq = weir_task_seq(task);
    if (seq >= LENGTH(labels))
        return WEIR_EOF;
    out->data = &data;
    out->label = labels[seq];
    return WEIR_OK;
}

TEST_CASE(base_names_of_labels_are_the_names_of_tasks)
{
    static const weir_op source = { .name = "paths", .run = path_labels_run };
    static const char *const names[] = { "clip.mp4", "plain.mp4", "far.mp4", "folder/" };
    char *folder = make_folder(), *path = path_in(folder, "trace.json"), wanted[80];
    weir_trace_file *file = open_trace(path, NULL);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, NULL, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    end_traced(build_traced(builder, file, (weir_pipeline_options){ 0 }), file);
    assert_well_formed(path);
    for (size_t i = 0; i < LENGTH(names); i++) {
        snprintf(wanted, sizeof wanted, "\"name\":\"%s\",\"args\":{\"seq\":%zu,\"task\":\"pass\"", names[i], i);
        assert_int_equal(count_in(path, wanted), 1);
    }
    show_trace(path, 0, "--csv"); /* the tool adds up the tasks of a stage */
    assert_shown("\n,,pass,4,");
    free(path);
    remove_folder(folder);
}

/* Spans that begin before the interval or end after it are cut off; what is open at its begin comes first. */
TEST_CASE(an_interval_of_a_trace_is_cut_out)
{
    char *folder = make_folder(), *path = path_in(folder, "in.json"), *out = path_in(folder, "out.json");
    write_file(path,
               "[{\"ph\":\"M\",\"ts\":0,\"pid\":1,\"tid\":0,\"name\":\"weir_trace\",\"args\":{\"unix_ns\":1000}},"
               "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":0,\"name\":\"outer\"},"
               "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":1000,\"name\":\"gone\"},"
               "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":1500},"
               "{\"ph\":\"C\",\"pid\":1,\"tid\":0,\"ts\":1600,\"name\":\"before\",\"args\":{\"v\":1}},"
               "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":2500,\"name\":\"inner\"},"
               "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3000},"
               "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":1000,\"dur\":9000,\"name\":\"whole\"},"
               "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":5000,\"name\":\"gone\"},"
               "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":6000},"
               "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":9000},"
               "{\"ph\":\"b\",\"pid\":1,\"tid\":3,\"ts\":1000,\"name\":\"endless\",\"cat\":\"c\",\"id\":1}]");
    const weir_trace_interval interval = { .since_ns = 2 * WEIR_MILLISECOND, .until_ns = 4 * WEIR_MILLISECOND };
    assert_int_equal(weir_trace_merge(out, (const char *[]){ path }, 1, &interval, false, NULL), WEIR_OK);
    char *text = read_file(out);
    const char *events = strchr(strchr(text, '\n') + 1, '\n') + 1;
    assert_string_equal(events,
                        "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":2000.000,\"name\":\"outer\"},\n"
                        "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":2500.000,\"name\":\"inner\"},\n"
                        "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3000.000},\n"
                        "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":2000.000,\"dur\":2000.000,\"name\":\"whole\"},\n"
                        "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":4000.000},\n"
                        "{\"ph\":\"b\",\"pid\":1,\"tid\":3,\"ts\":2000.000,\"name\":\"endless\",\"cat\":\"c\","
                        "\"id\":\"0xaf63ad4c86019caf\"}\n]\n");
    free(text);
    free(out);
    free(path);
    remove_folder(folder);
}

TEST_CASE(weir_trace_tells_total_and_self_time)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json");
    write_file(path,
               "[{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"one\"}},"
               "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"main\"}},"
               "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":0,\"name\":\"outer\"},"
               "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":1000,\"name\":\"inner\"},"
               "{\"ph\":\"B\",\"pid\":1,\"tid\":2,\"ts\":1500,\"name\":\"inner\"},"
               "{\"ph\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2000,\"name\":\"passed\",\"cat\":\"my\",\"id\":7},"
               "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3000},"
               "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":5000},"
               "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":5500},"                                 /* nothing is open */
               "{\"ph\":\"X\",\"pid\":2,\"tid\":1,\"ts\":3000,\"dur\":1000,\"name\":\"inner\"}," /* order of other */
               "{\"ph\":\"X\",\"pid\":2,\"tid\":1,\"ts\":2000,\"dur\":4000,\"name\":\"outer\"}," /* programs */
               "{\"ph\":\"e\",\"pid\":1,\"tid\":1,\"ts\":9000,\"name\":\"passed\",\"cat\":\"my\",\"id\":7},"
               "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":10000,\"name\":\"! failed\",\"cat\":\"failure\"},\n");
    show_trace(path, 0, "--json");
    assert_shown("\"elapsed\": 0.01, \"events\": 11, \"complete\": false, \"gaps\": 0, \"failures\": 1,");
    assert_shown(
        "\"name\": \"inner\", \"count\": 3, \"total_time\": 0.0115, \"self_time\": 0.0115, \"share\": 1.15}");
    assert_shown("\"name\": \"outer\", \"count\": 2, \"total_time\": 0.009, \"self_time\": 0.006, \"share\": 0.6}");
    assert_shown("\"name\": \"passed\", \"count\": 1, \"total_time\": 0.007, \"self_time\": 0.007, \"share\": 0.7}");
    show_trace(path, 0, "--by track --csv");
    assert_shown("\none,main,outer,1,0.005,0.003,0.3");
    assert_shown("\none,2,inner,1,0.0085,0.0085,0.85"); /* open to the end */
    show_trace(path, 0, "--by rank --csv --since 2ms --until 4ms");
    assert_shown("\none,,inner,2,0.003,0.003,1.5");
    assert_shown("\none,,outer,1,0.002,0.001,0.5");
    assert_shown("\n2,,outer,1,0.002,0.001,0.5");
    show_trace(path, 0, "--top 1");
    assert_shown("\ninner ");
    assert_null(strstr(shown.out, "outer"));
    show_trace(path, 2, "--since 5ms --until 4ms");
    write_file(path, "{}");
    show_trace(path, 2, "");
    assert_non_null(strstr(shown.err, "it is not a trace in Chrome's format"));
    free(path);
    remove_folder(folder);
}

/* The same figures as those of weir_span_dump(), to the nanosecond. */
struct found_times {
    char *dump; /* of weir_span_dump() */
    size_t count;
};

static void check_time(void *self, const weir_trace_time *one)
{
    struct found_times *found = self;
    char wanted[160];
    if (strcmp(one->name, "outer") != 0 && strcmp(one->name, "inner") != 0)
        return;
    snprintf(wanted, sizeof wanted,
             "{\"name\": \"sums/%s\", \"category\": \"sums\", \"kind\": \"span\", \"count\": 500, \"total\": %.9g,",
             one->name, (double)one->total_ns / 1e9);
    if (!strstr(found->dump, wanted))
        fail_msg("%s is missing in:\n%s", wanted, found->dump);
    found->count++;
    assert_true(strcmp(one->name, "outer") == 0 ? one->self_ns < one->total_ns : one->self_ns == one->total_ns);
}

TEST_CASE(spans_in_a_trace_add_up_to_what_was_measured)
{
    char *folder = make_folder(), *path = path_in(folder, "trace.json.gz");
    weir_trace_file *file;
    weir_trace_facts facts;
    struct found_times found = { NULL, 0 };
    if (weir_trace_open(path, NULL, &file, NULL) == WEIR_EUNSUPPORTED)
        skip();
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build_traced(builder, file, (weir_pipeline_options){ 0 });
    for (int i = 0; i < 500; i++) {
        weir_span_begin(weir_span_name_get("sums", "outer"));
        weir_span_begin(weir_span_name_get("sums", "inner"));
        weir_span_end();
        weir_span_end();
    }
    gate_open(&gate);
    end_traced(pipeline, file);
    size_t size;
    FILE *out = open_memstream(&found.dump, &size);
    assert_int_equal(weir_span_dump(out, &(weir_span_dump_options){ .json = true }), WEIR_OK);
    fclose(out);
    assert_int_equal(weir_trace_times_read(path, NULL, WEIR_TRACE_BY_NAME, &facts, check_time, &found, NULL),
                     WEIR_OK);
    assert_int_equal(found.count, 2);
    free(found.dump);
    free(path);
    remove_folder(folder);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
