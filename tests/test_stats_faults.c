/* Every allocation, file, thread, lock and SQL statement of weir-stats fails: see fault_loop.h. */
#include "tests/stats_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/engine.h>
#include <weir/openmetrics.h>
#include <weir/query.h>
#include <weir/span.h>
#include <weir/summary.h>
#include <weir/tensorboard.h>
#include <weir/trace_file.h>
#include <weir/verdict.h>
#include <weir/whatif.h>

#include "tests/fault_loop.h"

/* ---- reading ------------------------------------------------------------------------------------------------------ */

static weir_recording *recording;

static int open_base(weir_error *error)
{
    return weir_recording_open(in_folder("base.db"), &recording, error);
}

/* Opens the database around an attempt. */
#define READING(name, call) \
    static int name(FILE *out, weir_error *error) \
    { \
        (void)out; \
        int status = open_base(error); \
        if (status == WEIR_OK) \
            status = call; \
        weir_recording_close(recording); \
        recording = NULL; \
        return status; \
    }

static int explain(FILE *out, weir_error *error)
{
    weir_verdict *verdict = NULL;
    int status = weir_verdict_explain(recording, NULL, &verdict, error);
    if (status == WEIR_OK)
        weir_verdict_write(verdict, WEIR_VERDICT_ALL | WEIR_VERDICT_CODE, 0, out);
    weir_verdict_free(verdict);
    return status;
}

static int predict(FILE *out, weir_error *error)
{
    weir_prediction *prediction = NULL;
    int status = weir_whatif(recording, NULL,
                             &(weir_whatif_options){ .settings = (const char *const[]){ "decode.concurrency=4" },
                                                     .num_settings = 1,
                                                     .num_items = 100,
                                                     .seed = 1,
                                                     .resamples = 2 },
                             &prediction, error);
    if (status == WEIR_OK)
        fprintf(out, "%.9g\n", prediction->throughput);
    weir_prediction_free(prediction);
    return status;
}

static int add_up(FILE *out, weir_error *error)
{
    weir_totals totals;
    int status = weir_totals_read(recording, NULL, &(weir_grouping){ .by = WEIR_BY_PHASE }, &totals, error);
    if (status != WEIR_OK)
        return status;
    for (int subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        fprintf(out, "%zu\n", totals.of[subject].count);
    weir_totals_free(&totals);
    return WEIR_OK;
}

static int list_failures(FILE *out, weir_error *error)
{
    weir_query *query = NULL;
    const weir_record *record;
    int status = weir_query_begin(recording, WEIR_RECORD_FAILURE,
                                  &(weir_filter){ .name = "dec*", .descending = true }, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        fprintf(out, "%s\n", record->failure.label);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static void put_finding(void *out, const weir_finding *finding)
{
    fprintf(out, "%d %s %s\n", (int)finding->level, finding->check, finding->text);
}

READING(summarize, weir_summary_write(out, recording, NULL, NULL, weir_verdict_write_limit, error))
READING(tell_failures, weir_summary_write_failures(out, recording, NULL, 10, error))
READING(read_verdict, explain(out, error))
READING(read_model, predict(out, error))
READING(read_totals, add_up(out, error))
READING(read_failures, list_failures(out, error))
READING(check_database, weir_database_check(recording, false, put_finding, out, error))
READING(export_metrics, weir_openmetrics_export(recording, NULL, false, out, error))
READING(export_laps, weir_openmetrics_export(recording, NULL, true, out, error))

TEST_CASE(readers_bear_every_fault)
{
    BEARS_EVERY_FAULT(summarize);
    BEARS_EVERY_FAULT(tell_failures);
    BEARS_EVERY_FAULT(read_verdict);
    BEARS_EVERY_FAULT(read_model);
    BEARS_EVERY_FAULT(read_totals);
    BEARS_EVERY_FAULT(read_failures);
    BEARS_EVERY_FAULT(check_database);
    BEARS_EVERY_FAULT(export_metrics);
    BEARS_EVERY_FAULT(export_laps);
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

static void remove_database(const char *name)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    char file[32];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(file, sizeof file, "%s%s", name, ends[i]);
        unlink(in_folder(file));
    }
}

static void observe_all(weir_observer observer)
{
    observe_start(observer);
    for (int lap = 0; lap < 3; lap++) {
        observe_lap(observer, lap, 8);
        if (observer.failure)
            observe_failure(observer, (uint64_t)lap, "clip", "broken");
    }
    observe_end(observer, WEIR_OK);
}

static weir_span_name *step;
static weir_counter *counter;

/* Forty items; every tenth fails in the stage. Spans and counters of all kinds come from the stage, too. */
static int make_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    static char item;
    out->data = &item;
    out->label = "clip";
    return weir_task_seq(task) < 40 ? WEIR_OK : WEIR_EOF;
}

static int decode(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (weir_task_seq(task) % 10 == 3)
        return weir_task_fail(task, WEIR_EDATA, 0, "broken");
    weir_span_token token = weir_span_start(step);
    weir_span_begin(step);
    weir_marker(step, WEIR_MARKER_THREAD);
    weir_counter_add(counter, 0, 1);
    weir_span_end();
    weir_span_finish(&token);
    weir_frame_begin(step, (int64_t)weir_task_seq(task));
    weir_frame_end(step);
    weir_item_move(out, in);
    return WEIR_OK;
}

static void run_pipeline(weir_observer observer, const weir_task_hook *hook)
{
    static const weir_op source = { .name = "src", .run = make_item }, stage = { .name = "decode", .run = decode };
    weir_pipeline *pipeline;
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, NULL, 0, NULL);
    weir_builder_pipe(builder, &stage, NULL, 0,
                      &(weir_stage_options){ .concurrency = 2, .task_hooks = hook, .num_task_hooks = hook ? 1 : 0 });
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .threads = 2, .observers = &observer, .num_observers = 1 };
    assert_int_equal(weir_builder_build(builder, &options, &pipeline, NULL), WEIR_OK);
    assert_int_equal(weir_pipeline_mark_phase(pipeline, "train"), WEIR_OK);
    assert_int_equal(weir_pipeline_event(pipeline, "seen", "test", "something"), WEIR_OK);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
}

/* The file as the result. */
static void put_file(FILE *out, const char *name)
{
    fault_arm(false);
    size_t size;
    char *bytes = read_file(in_folder(name), &size);
    fwrite(bytes, 1, size, out);
    free(bytes);
    fault_arm(true);
}

/* What a writer could not keep is an error when it is closed; else the database has no fault. */
static int record(FILE *out, weir_error *error)
{
    weir_sqlite_writer *writer = NULL;
    weir_sqlite_options options = { .command = "test", .node_id = "node", .retry_limit_ns = WEIR_MILLISECOND };
    remove_database("w.db");
    int status = weir_sqlite_open(in_folder("w.db"), &options, &writer, error);
    if (status != WEIR_OK)
        return status;
    observe_all(weir_sqlite_observer(writer));
    status = weir_sqlite_close(writer, error);
    fault_arm(false);
    if (status == WEIR_OK)
        fprintf(out, "%d tasks, %d failures\n",
                (int)query_int(in_folder("w.db"), "SELECT sum(num_tasks) FROM task_stats"),
                (int)query_int(in_folder("w.db"), "SELECT count(*) FROM task_failures"));
    fault_arm(true);
    return status;
}

static int write_metrics(FILE *out, weir_error *error)
{
    weir_openmetrics_file *file = NULL;
    weir_openmetrics_options options = { .command = "test", .node_id = "node" };
    unlink(in_folder("m.prom"));
    int status = weir_openmetrics_open(in_folder("m.prom"), &options, &file, error);
    if (status != WEIR_OK)
        return status;
    observe_all(weir_openmetrics_observer(file));
    status = weir_openmetrics_close(file, error);
    if (status == WEIR_OK)
        put_file(out, "m.prom");
    return status;
}

static int open_trace(FILE *out, weir_error *error)
{
    weir_trace_file *file = NULL;
    (void)out;
    unlink(in_folder("t.json"));
    int status = weir_trace_open(in_folder("t.json"), &(weir_trace_options){ 0 }, &file, error);
    return status == WEIR_OK ? weir_trace_close(file, error) : status;
}

static int write_trace(FILE *out, weir_error *error)
{
    weir_trace_file *file = NULL;
    weir_trace_options options = { 0 };
    unlink(in_folder("t.json"));
    int status = weir_trace_open(in_folder("t.json"), &options, &file, error);
    if (status != WEIR_OK)
        return status;
    run_pipeline(weir_trace_observer(file), NULL);
    status = weir_trace_close(file, error);
    (void)out; /* it has the time of the test in it */
    return status;
}

static int write_events(FILE *out, weir_error *error)
{
    weir_tensorboard_log *log = NULL;
    weir_tensorboard_options options = { 0 };
    (void)out;
    int status = weir_tensorboard_open(in_folder("events"), &options, &log, error);
    if (status != WEIR_OK)
        return status;
    observe_all(weir_tensorboard_observer(log));
    return weir_tensorboard_close(log, error);
}

static int merge(FILE *out, weir_error *error)
{
    weir_merged merged = { 0 };
    char to[300];
    remove_database("merged.db");
    snprintf(to, sizeof to, "%s", in_folder("merged.db"));
    int status = weir_database_merge(to, in_folder("base.db"), &merged, error);
    if (status == WEIR_OK)
        fprintf(out, "%d runs\n", (int)merged.added);
    return status;
}

static int merge_traces(FILE *out, weir_error *error)
{
    char to[300], from[300];
    const char *const inputs[] = { from, from };
    snprintf(to, sizeof to, "%s", in_folder("merged.json"));
    snprintf(from, sizeof from, "%s", in_folder("base.json"));
    int status = weir_trace_merge(to, inputs, 2, NULL, false, error);
    if (status == WEIR_OK)
        put_file(out, "merged.json");
    return status;
}

TEST_CASE(writers_bear_every_fault)
{
    BEARS_EVERY_FAULT(record);
    BEARS_EVERY_FAULT(write_metrics);
    BEARS_EVERY_FAULT(open_trace);
    BEARS_EVERY_FAULT(write_trace);
    BEARS_EVERY_FAULT(merge);
    BEARS_EVERY_FAULT(merge_traces);
    BEARS_EVERY_FAULT(write_events);
}

static int set_up(void **state)
{
    int status = make_folder(state);
    weir_sqlite_writer *writer =
        open_writer(in_folder("base.db"),
                    &(weir_sqlite_options){ .command = "test", .node_id = "node", .world = 1, .job = "job" });
    weir_task_hook hook;
    step = weir_span_name_get("test", "step");
    counter = weir_counter_get("test", "results", NULL, 0);
    assert_int_equal(weir_sqlite_item_hook(writer, &(weir_sqlite_items){ .all = true }, &hook, NULL), WEIR_OK);
    run_pipeline(weir_sqlite_observer(writer), &hook);
    close_writer(writer);
    weir_trace_file *trace;
    assert_int_equal(weir_trace_open(in_folder("base.json"), NULL, &trace, NULL), WEIR_OK);
    run_pipeline(weir_trace_observer(trace), NULL);
    assert_int_equal(weir_trace_close(trace, NULL), WEIR_OK);
    return status;
}

int main(void)
{
    fault_drop_log();
    return test_cases_run(NULL, NULL, set_up, remove_folder);
}
