/*
 * Every allocation, thread and lock of weir-stats fails, once or from then on: an error comes back with a text, or the
 * result is the same as without a fault. The linker puts the functions below in the place of the C library's (see
 * CMakeLists.txt); only calls of weir-stats come here.
 */
#include "stats_fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include <weir/engine.h>
#include <weir/log.h>
#include <weir/maintain.h>
#include <weir/openmetrics.h>
#include <weir/query.h>
#include <weir/summary.h>
#include <weir/tensorboard.h>
#include <weir/trace_file.h>
#include <weir/verdict.h>
#include <weir/whatif.h>

/* ---- what may fail -------------------------------------------------------------------------------------------- */

static struct {
    atomic_bool is_armed;
    atomic_long calls;
    long failing_call; /* from 1 */
    bool stays;        /* all later ones fail, too */
} faults;

static bool fails(void)
{
    if (!atomic_load(&faults.is_armed))
        return false;
    long call = atomic_fetch_add(&faults.calls, 1) + 1;
    return call == faults.failing_call || (faults.stays && call > faults.failing_call);
}

#define WRAP(type, function, parameters, arguments, failed) \
    type __real_##function parameters; \
    type __wrap_##function parameters; \
    type __wrap_##function parameters \
    { \
        return fails() ? failed : __real_##function arguments; /* NOLINT(bugprone-macro-parentheses): a list */ \
    }

WRAP(void *, malloc, (size_t size), (size), NULL)
WRAP(void *, calloc, (size_t count, size_t size), (count, size), NULL)
WRAP(void *, realloc, (void *block, size_t size), (block, size), NULL)
WRAP(char *, strdup, (const char *text), (text), NULL)
WRAP(char *, strndup, (const char *text, size_t size), (text, size), NULL)
WRAP(FILE *, open_memstream, (char **text, size_t *size), (text, size), NULL)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
WRAP(int, uv_thread_create, (uv_thread_t * thread, uv_thread_cb main, void *self), (thread, main, self), UV_EAGAIN)
WRAP(int, uv_mutex_init, (uv_mutex_t * mutex), (mutex), UV_ENOMEM)
WRAP(int, uv_cond_init, (uv_cond_t * condition), (condition), UV_ENOMEM)

#define WRAP_PRINT(function, parameters) \
    int __wrap_##function parameters; \
    int __wrap_##function parameters \
    { \
        va_list arguments; \
        if (fails()) \
            return -1; \
        va_start(arguments, format); \
        int length = vasprintf(text, format, arguments); \
        va_end(arguments); \
        return length; \
    }

WRAP_PRINT(asprintf, (char **text, const char *format, ...))
WRAP_PRINT(__asprintf_chk, (char **text, __attribute__((unused)) int flag, const char *format, ...))

static void arm(bool is_armed)
{
    atomic_store(&faults.is_armed, is_armed);
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

enum { RESULT_BYTES = 1 << 20 };
static long most_faults = 8; /* of each attempt; WEIR_FAULTS=N: N */

/* Does something, and writes what comes of it to `out`. Returns the first status that is not WEIR_OK. */
typedef int attempt(FILE *out, weir_error *error);

static char result[RESULT_BYTES], expected[RESULT_BYTES];

static int run_with_fault(attempt *run, long failing_call, bool stays, weir_error *error)
{
    memset(result, 0, sizeof result);
    FILE *out = fmemopen(result, sizeof result, "w");
    assert_non_null(out);
    atomic_store(&faults.calls, 0);
    faults.failing_call = failing_call;
    faults.stays = stays;
    arm(true);
    int status = run(out, error);
    arm(false);
    fclose(out);
    return status;
}

static void check_outcome(int status, const weir_error *error, long failing_call, bool stays)
{
    if (status == WEIR_OK && strcmp(result, expected) != 0)
        fail_msg("call %ld%s: WEIR_OK, but the result differs:\n%s\n-- instead of:\n%s", failing_call,
                 stays ? " and later ones" : "", result, expected);
    if (status != WEIR_OK && (error->status != status || !error->message[0]))
        fail_msg("call %ld%s: %s, the error says %s: %s", failing_call, stays ? " and later ones" : "",
                 weir_status_name(status), weir_status_name(error->status), error->message);
}

/* Lets up to most_faults calls fail, spread over all. */
static void bears_every_fault(attempt *run)
{
    weir_error error = { 0 };
    if (run_with_fault(run, 0, false, &error) != WEIR_OK)
        fail_msg("without a fault: %s", error.message);
    strcpy(expected, result);
    long num_calls = atomic_load(&faults.calls);
    assert_true(num_calls > 0); /* else the linker has not put the functions in place */
    long num_faults = num_calls < most_faults ? num_calls : most_faults;
    for (long i = 0; i < 2 * num_faults; i++) {
        long failing_call = 1 + i / 2 * num_calls / num_faults;
        error = (weir_error){ 0 };
        int status = run_with_fault(run, failing_call, i % 2, &error);
        check_outcome(status, &error, failing_call, i % 2);
    }
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

static weir_reader *reader;

static int open_base(weir_error *error)
{
    return weir_reader_open(in_folder("base.db"), &reader, error);
}

/* Opens the database around an attempt. */
#define READING(name, call) \
    static int name(FILE *out, weir_error *error) \
    { \
        (void)out; \
        int status = open_base(error); \
        if (status == WEIR_OK) \
            status = call; \
        weir_reader_close(reader); \
        reader = NULL; \
        return status; \
    }

static int explain(FILE *out, weir_error *error)
{
    weir_verdict *verdict = NULL;
    int status = weir_verdict_explain(reader, NULL, &verdict, error);
    if (status == WEIR_OK)
        weir_verdict_write(verdict, out);
    weir_verdict_free(verdict);
    return status;
}

static int predict(FILE *out, weir_error *error)
{
    weir_model *model = NULL;
    weir_prediction *prediction = NULL;
    int status = weir_model_read(reader, NULL, &model, error);
    if (status == WEIR_OK)
        status = weir_model_set(model, "decode.concurrency", "4", error);
    if (status == WEIR_OK)
        status = weir_model_predict(model, &(weir_predict_options){ .num_items = 100, .seed = 1, .resamples = 2 },
                                    &prediction, error);
    if (status == WEIR_OK)
        fprintf(out, "%.9g\n", prediction->throughput);
    weir_prediction_free(prediction);
    weir_model_free(model);
    return status;
}

static int add_up(FILE *out, weir_error *error)
{
    weir_totals totals;
    int status = weir_totals_read(reader, NULL, &(weir_grouping){ .by = WEIR_BY_PHASE }, &totals, error);
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
    int status = weir_query_begin(reader, WEIR_RECORD_FAILURE, &(weir_filter){ .name = "dec*", .descending = true },
                                  &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        fprintf(out, "%s\n", record->failure.label);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static void put_finding(void *out, const weir_finding *finding)
{
    fprintf(out, "%d %s %s\n", (int)finding->level, finding->check, finding->text);
}

READING(summarize, weir_summary_write(out, reader, NULL, error))
READING(tell_failures, weir_summary_write_failures(out, reader, NULL, 10, error))
READING(read_verdict, explain(out, error))
READING(read_model, predict(out, error))
READING(read_totals, add_up(out, error))
READING(read_failures, list_failures(out, error))
READING(check_database, weir_database_check(reader, false, put_finding, out, error))
READING(export_metrics, weir_openmetrics_export(reader, NULL, out, error))
READING(export_laps, weir_openmetrics_export_laps(reader, NULL, out, error))
READING(export_trace, weir_trace_export(reader, NULL, out, error))

static void readers_bear_every_fault(void **state)
{
    (void)state;
    bears_every_fault(summarize);
    bears_every_fault(tell_failures);
    bears_every_fault(read_verdict);
    bears_every_fault(read_model);
    bears_every_fault(read_totals);
    bears_every_fault(read_failures);
    bears_every_fault(check_database);
    bears_every_fault(export_metrics);
    bears_every_fault(export_laps);
    bears_every_fault(export_trace);
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

/* Forty items; every tenth fails in the stage. */
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
    weir_item_move(out, in);
    return WEIR_OK;
}

static void run_pipeline(weir_observer observer)
{
    static const weir_op source = { .name = "src", .run = make_item }, stage = { .name = "decode", .run = decode };
    weir_pipeline *pipeline;
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, NULL, NULL);
    weir_builder_pipe(builder, &stage, NULL, &(weir_stage_options){ .concurrency = 2 });
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
    arm(false);
    size_t size;
    char *bytes = read_file(in_folder(name), &size);
    fwrite(bytes, 1, size, out);
    free(bytes);
    arm(true);
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
    arm(false);
    if (status == WEIR_OK)
        fprintf(out, "%d tasks, %d failures\n",
                (int)query_int(in_folder("w.db"), "SELECT sum(num_tasks) FROM task_stats"),
                (int)query_int(in_folder("w.db"), "SELECT count(*) FROM task_failures"));
    arm(true);
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

static int write_trace(FILE *out, weir_error *error)
{
    weir_trace_file *file = NULL;
    weir_trace_options options = { 0 };
    unlink(in_folder("t.json"));
    int status = weir_trace_open(in_folder("t.json"), &options, &file, error);
    if (status != WEIR_OK)
        return status;
    run_pipeline(weir_trace_observer(file));
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

static void writers_bear_every_fault(void **state)
{
    (void)state;
    bears_every_fault(record);
    bears_every_fault(write_metrics);
    bears_every_fault(write_trace);
    bears_every_fault(merge);
    weir_tensorboard_log *log;
    if (weir_tensorboard_open(in_folder("events"), &(weir_tensorboard_options){ 0 }, &log, NULL) == WEIR_EUNSUPPORTED)
        return;
    weir_tensorboard_close(log, NULL);
    bears_every_fault(write_events);
}

static void drop_line(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)level;
    (void)line;
}

static int set_up(void **state)
{
    int status = make_folder(state);
    weir_sqlite_writer *writer =
        open_writer(in_folder("base.db"), &(weir_sqlite_options){ .command = "test", .node_id = "node" });
    run_pipeline(weir_sqlite_observer(writer));
    close_writer(writer);
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_bear_every_fault),
        cmocka_unit_test(writers_bear_every_fault),
    };
    most_faults = getenv("WEIR_FAULTS") ? atol(getenv("WEIR_FAULTS")) : most_faults;
    weir_log_set_function(drop_line, NULL);
    return cmocka_run_group_tests(tests, set_up, remove_folder);
}
