#include "tests/stats_fixture.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[256];

int make_folder(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/weir-test-XXXXXX", parent && *parent ? parent : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *in_folder(const char *name)
{
    static char paths[4][sizeof folder + 256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void write_file(const char *path, const void *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size_bytes, file), size_bytes);
    assert_int_equal(fclose(file), 0);
}

char *read_file(const char *path, size_t *size_bytes)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    FILE *out = open_memstream(&bytes, &size);
    for (int c; (c = getc(in)) != EOF;)
        putc(c, out);
    fclose(in);
    fclose(out);
    if (size_bytes)
        *size_bytes = size;
    return bytes;
}

sqlite3 *connect_to(const char *path)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 20000);
    return db;
}

void run_sql(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

void execute(const char *path, const char *sql)
{
    sqlite3 *db = connect_to(path);
    run_sql(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Runs a query up to its first row. */
static sqlite3_stmt *first_row(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    if (sqlite3_step(row) != SQLITE_ROW)
        fail_msg("%s: no row: %s", sql, sqlite3_errmsg(db));
    return row;
}

static void done_with(sqlite3_stmt *row, sqlite3 *db)
{
    sqlite3_finalize(row);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int64_t query_int(const char *path, const char *sql)
{
    sqlite3 *db = connect_to(path);
    sqlite3_stmt *row = first_row(db, sql);
    int64_t value = sqlite3_column_int64(row, 0);
    done_with(row, db);
    return value;
}

double query_real(const char *path, const char *sql)
{
    sqlite3 *db = connect_to(path);
    sqlite3_stmt *row = first_row(db, sql);
    double value = sqlite3_column_double(row, 0);
    done_with(row, db);
    return value;
}

char *query_text(const char *path, const char *sql)
{
    sqlite3 *db = connect_to(path);
    sqlite3_stmt *row = first_row(db, sql);
    const char *text = (const char *)sqlite3_column_text(row, 0);
    char *copy = strdup(text ? text : "NULL");
    done_with(row, db);
    return copy;
}

weir_sqlite_writer *open_writer(const char *path, const weir_sqlite_options *options)
{
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    if (weir_sqlite_open(path, options, &writer, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return writer;
}

void close_writer(weir_sqlite_writer *writer)
{
    weir_error error = { 0 };
    if (weir_sqlite_close(writer, &error) != WEIR_OK)
        fail_msg("%s", error.message);
}

int print_summary(FILE *out, const char *path, int64_t run_id, weir_summary_line *line, weir_error *error)
{
    weir_recording *recording;
    const weir_filter filter = { .run_id = run_id ? run_id : WEIR_LAST_RUN };
    int status = weir_recording_open(path, &recording, error);
    if (status == WEIR_OK)
        status = weir_summary_write(out, recording, &filter, NULL, line, error);
    weir_recording_close(recording);
    return status;
}

int print_failures(FILE *out, const char *path, int64_t run_id, size_t at_most, weir_error *error)
{
    weir_recording *recording;
    const weir_filter filter = { .run_id = run_id ? run_id : WEIR_LAST_RUN };
    int status = weir_recording_open(path, &recording, error);
    if (status == WEIR_OK)
        status = weir_summary_write_failures(out, recording, &filter, at_most, error);
    weir_recording_close(recording);
    return status;
}

weir_recording *open_reader(const char *path)
{
    weir_recording *recording;
    weir_error error = { 0 };
    if (weir_recording_open(path, &recording, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return recording;
}

void observe_start(weir_observer observer)
{
    static const weir_stage_info stages[] = {
        { "0:0:src", "0:0:src_queue", "source", 1, 2, 0, "completion", "", "", 0, 0 },
        { "0:1:decode[10]", "0:1:decode[10]_queue", "stage", 10, 2, 1000000, "input", "0:0:src_queue", "", 0, 0 },
        { "0:2:sink", "0:2:sink_queue", "sink", 1, 3, 0, "completion", "0:1:decode[10]_queue", "", 0, 0 },
    };
    static const weir_run_info info = {
        .start_unix_ns = 1000 * WEIR_SECOND, .threads = 10, .stages = stages, .num_stages = 3
    };
    observer.run_start(observer.self, &info);
}

static void observe_stage_lap(weir_observer observer, int64_t end_unix_ns, uint64_t num_tasks)
{
    uint64_t num_failures = num_tasks / 4;
    uint64_t num_successes = num_tasks - num_failures;
    static weir_histogram all_times; /* no allocation: some tests let them fail */
    weir_histogram *times = memset(&all_times, 0, sizeof all_times);
    for (uint64_t i = 0; i < num_successes; i++)
        weir_histogram_record(times, 100 * WEIR_MILLISECOND);
    weir_subject_lap lap = { .subject = WEIR_SUBJECT_STAGE,
                             .kind = "stage",
                             .name = "0:1:decode[10]",
                             .lap = &(weir_lap){ .end_unix_ns = end_unix_ns, .elapsed_ns = 2 * WEIR_SECOND },
                             .metrics.task = { .num_tasks = num_tasks,
                                               .num_failures = num_failures,
                                               .success_ns = (int64_t)num_successes * 100 * WEIR_MILLISECOND,
                                               .failed_ns = (int64_t)num_failures * 10 * WEIR_MILLISECOND,
                                               .min_ns = num_successes ? 90 * WEIR_MILLISECOND : INT64_MAX,
                                               .max_ns = num_successes ? 100 * WEIR_MILLISECOND : 0,
                                               .busy_ns = 10 * WEIR_SECOND,
                                               .wait_in_ns = 5 * WEIR_SECOND,
                                               .wait_thread_ns = 3 * WEIR_SECOND,
                                               .wait_out_ns = 2 * WEIR_SECOND,
                                               .cpu_ns = 8 * WEIR_SECOND,
                                               .run_times = times,
                                               .max_held_bytes = 5000000 } };
    observer.lap(observer.self, &lap);
}

static void observe_queue_lap(weir_observer observer, const char *name, int64_t end_unix_ns, uint64_t num_items)
{
    static weir_histogram put_and_get_times[2];
    weir_histogram *times = memset(put_and_get_times, 0, sizeof put_and_get_times);
    for (uint64_t i = 0; i < num_items; i++) {
        weir_histogram_record(&times[0], 4 * WEIR_MILLISECOND);
        weir_histogram_record(&times[1], 20 * WEIR_MILLISECOND);
    }
    weir_subject_lap lap = { .subject = WEIR_SUBJECT_QUEUE,
                             .kind = "queue",
                             .name = name,
                             .capacity = 2,
                             .lap = &(weir_lap){ .end_unix_ns = end_unix_ns, .elapsed_ns = 2 * WEIR_SECOND },
                             .metrics.queue = { .num_put = num_items + 1,
                                                .num_items = num_items,
                                                .put_ns = (int64_t)(num_items + 1) * 4 * WEIR_MILLISECOND,
                                                .get_ns = (int64_t)num_items * 20 * WEIR_MILLISECOND,
                                                .occupied_ns = WEIR_SECOND,
                                                .depth_ns = 3.0 * (double)WEIR_SECOND,
                                                .bytes_ns = 3.0e6 * (double)WEIR_SECOND,
                                                .max_put_ns = num_items ? 4 * WEIR_MILLISECOND : 0,
                                                .max_get_ns = num_items ? 20 * WEIR_MILLISECOND : 0,
                                                .max_depth = 2,
                                                .max_bytes = 2000000,
                                                .put_times = &times[0],
                                                .get_times = &times[1],
                                                .latency_ns = -1,
                                                .min_latency_ns = -1,
                                                .max_latency_ns = -1 } };
    observer.lap(observer.self, &lap);
}

void observe_lap(weir_observer observer, int lap, uint64_t num_tasks)
{
    int64_t end_unix_ns = (1000 + 2 * (lap + 1)) * WEIR_SECOND;
    observe_stage_lap(observer, end_unix_ns, num_tasks);
    observe_queue_lap(observer, "0:0:src_queue", end_unix_ns, num_tasks);
    observe_queue_lap(observer, "0:1:decode[10]_queue", end_unix_ns, num_tasks - num_tasks / 4);
    observe_queue_lap(observer, "0:2:sink_queue", end_unix_ns, num_tasks - num_tasks / 4);
    if (observer.lap_end)
        observer.lap_end(
            observer.self,
            &(weir_lap){ .end_unix_ns = end_unix_ns, .elapsed_ns = 2 * WEIR_SECOND, .position.phase = "" });
}

void observe_failure(weir_observer observer, uint64_t seq, const char *label, const char *message)
{
    weir_failure failure = {
        .unix_ns = 1001 * WEIR_SECOND,
        .name = "0:1:decode[10]",
        .seq = seq,
        .label = label,
        .status = WEIR_EDATA,
        .library_code = -1094995529,
        .message = message,
        .run_ns = 10 * WEIR_MILLISECOND,
    };
    observer.failure(observer.self, &failure);
}

void observe_end(weir_observer observer, int status)
{
    weir_run_end end = { .end_unix_ns = 1100 * WEIR_SECOND, .status = status };
    observer.run_end(observer.self, &end);
}
