/* The SQLite writer, driven with made-up laps: what it writes, what it rejects, and how it handles a locked, full
   or failing database. */
#include "stats/schema/schema.h"
#include "tests/stats_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/query.h>

/* -- written rows */

static void assert_columns(const char *path, const char *table, const char *wanted)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_table_info('%s'))",
             table);
    char *columns = query_text(path, sql);
    assert_string_equal(columns, wanted);
    free(columns);
}

TEST_CASE(columns_stand_in_the_order_of_the_design)
{
    const char *path = in_folder("a.db");
    close_writer(open_writer(path, NULL));
    assert_columns(
        path, "task_stats",
        "id, timestamp, name, num_tasks, num_failures, ave_time, p90_time, p99_time, run_id, elapsed, "
        "mode, phase, first_step, last_step, suspended_time, num_joined, num_skipped, success_time, failed_time, "
        "min_time, max_time, busy_time, wait_in_time, wait_thread_time, wait_turn_time, wait_out_time, "
        "cpu_time, histogram, pending_time, num_work, ended_time, num_looks, num_file_waits, "
        "num_network_waits, num_process_waits, num_lock_waits, num_sleep_waits, num_other_waits, "
        "epoch_tail_time, epoch_gap_time, max_held_bytes, roll");
    assert_columns(
        path, "flow_stats",
        "id, timestamp, name, num_tasks, num_failures, ave_time, p90_time, p99_time, run_id, elapsed, "
        "mode, phase, first_step, last_step, suspended_time, num_joined, kind, num_skipped, success_time, "
        "failed_time, min_time, max_time, busy_time, wait_in_time, wait_thread_time, wait_turn_time, "
        "wait_out_time, cpu_time, histogram, pending_time, num_work, ended_time, num_looks, num_file_waits, "
        "num_network_waits, num_process_waits, num_lock_waits, num_sleep_waits, num_other_waits, "
        "epoch_tail_time, epoch_gap_time, max_held_bytes, roll");
    assert_columns(
        path, "queue_stats",
        "id, timestamp, name, elapsed, num_items, ave_put_time, ave_get_time, p90_put_time, p99_put_time, "
        "p90_get_time, p99_get_time, occupancy_rate, run_id, mode, phase, first_step, last_step, suspended_time, "
        "num_joined, capacity, num_put, put_time, get_time, min_put_time, max_put_time, min_get_time, "
        "max_get_time, occupied_time, depth_time, bytes_time, max_depth, max_bytes, put_histogram, "
        "get_histogram, latency_time, min_latency, max_latency, latency_histogram, late_time, ended_time, roll");
    assert_columns(
        path, "pool_stats",
        "id, timestamp, name, run_id, elapsed, mode, phase, first_step, last_step, suspended_time, num_joined, "
        "num_threads, busy_time, idle_time, cpu_time, run_delay_time, num_voluntary_switches, "
        "num_involuntary_switches, num_minor_faults, num_major_faults, roll");
    assert_columns(path, "event_stats", "id, timestamp, event_name, run_id, category, detail");
    assert_columns(path, "task_failures",
                   "id, timestamp, run_id, name, seq, label, status, library_code, message, elapsed, "
                   "identity, occurrence");
    assert_columns(path, "run",
                   "run_id, node_id, rank, pid, started, ended, status, threads, command, version, entries_lost, "
                   "machine, world, job");
    assert_columns(path, "stage",
                   "run_id, name, kind, concurrency, queue_items, queue_bytes, output_order, threads, inputs, "
                   "merge_order, look_ahead_items");
    assert_int_equal(query_int(path, "PRAGMA user_version"), WEIR_SCHEMA_VERSION);
    assert_int_equal(query_int(path, "PRAGMA application_id"), 0x77656972);
    char *mode = query_text(path, "PRAGMA journal_mode");
    assert_string_equal(mode, "wal");
    free(mode);
}

static double column(sqlite3_stmt *row, const char *name)
{
    for (int i = 0; i < sqlite3_column_count(row); i++)
        if (strcmp(sqlite3_column_name(row, i), name) == 0)
            return sqlite3_column_double(row, i);
    fail_msg("no column %s", name);
    return 0;
}

static void assert_close(double value, double wanted, double relative_error)
{
    if (fabs(value - wanted) > relative_error * fabs(wanted))
        fail_msg("%.9g is not %.9g", value, wanted);
}

TEST_CASE(queries_of_spdl_find_its_columns_and_magnitudes)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_lap(observer, 0, 4);
    observe_lap(observer, 1, 8);
    close_writer(writer);

    sqlite3 *db = connect_to(path);
    sqlite3_stmt *row;
    sqlite3_prepare_v2(db, "SELECT * FROM task_stats WHERE 1=1 ORDER BY timestamp DESC", -1, &row, NULL);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_close(column(row, "timestamp"), 1004, 1e-9);
    assert_close(column(row, "num_tasks"), 8, 0);
    assert_close(column(row, "num_failures"), 2, 0);
    assert_close(column(row, "ave_time"), 0.1, 1e-9);
    assert_close(column(row, "p90_time"), 0.1, 0.01);
    assert_close(column(row, "p99_time"), 0.1, 0.01);
    assert_close(column(row, "elapsed"), 2, 1e-9);
    assert_close(column(row, "max_time"), 0.1, 1e-9);
    assert_close(column(row, "failed_time"), 0.02, 1e-9);
    assert_close(column(row, "busy_time"), 10, 1e-9);
    assert_close(column(row, "wait_in_time"), 5, 1e-9);
    assert_close(column(row, "wait_thread_time"), 3, 1e-9);
    assert_close(column(row, "wait_out_time"), 2, 1e-9);
    assert_close(column(row, "cpu_time"), 8, 1e-9);
    sqlite3_finalize(row);

    sqlite3_prepare_v2(db,
                       "SELECT * FROM queue_stats WHERE 1=1 AND name = '0:0:src_queue' AND timestamp >= 1003 "
                       "ORDER BY timestamp DESC",
                       -1, &row, NULL);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_close(column(row, "elapsed"), 2, 1e-9);
    assert_close(column(row, "num_items"), 8, 0);
    assert_close(column(row, "ave_put_time"), 0.004, 1e-9);
    assert_close(column(row, "ave_get_time"), 0.020, 1e-9);
    assert_close(column(row, "p90_put_time"), 0.004, 0.01);
    assert_close(column(row, "p99_put_time"), 0.004, 0.01);
    assert_close(column(row, "p90_get_time"), 0.020, 0.01);
    assert_close(column(row, "p99_get_time"), 0.020, 0.01);
    assert_close(column(row, "occupancy_rate"), 0.5, 1e-9);
    assert_close(column(row, "depth_time"), 3, 1e-9);
    assert_close(column(row, "bytes_time"), 3e6, 1e-9);
    assert_int_equal(sqlite3_step(row), SQLITE_DONE);
    sqlite3_finalize(row);

    sqlite3_prepare_v2(db, "SELECT * FROM event_stats WHERE 1=1 ORDER BY timestamp ASC", -1, &row, NULL);
    assert_int_equal(sqlite3_step(row), SQLITE_DONE);
    sqlite3_finalize(row);
    sqlite3_close(db);
}

TEST_CASE(run_and_stages_are_recorded)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer =
        open_writer(path, &(weir_sqlite_options){ .command = "make it so", .node_id = "node-7", .rank = 3 });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_end(observer, WEIR_ESTOPPED);
    int64_t run_id = weir_sqlite_run_id(writer);
    close_writer(writer);

    char sql[300];
    snprintf(
        sql, sizeof sql,
        "SELECT printf('%%s %%d %%d %%.1f %%.1f %%d %%d %%s %%d', node_id, rank, pid = %d, started, ended, status, "
        "threads, command, entries_lost) FROM run WHERE run_id = %lld",
        (int)getpid(), (long long)run_id);
    char *run = query_text(path, sql);
    assert_string_equal(run, "node-7 3 1 1000.0 1100.0 -4 10 make it so 0");
    free(run);
    char *stages = query_text(path, "SELECT group_concat(name || ' ' || kind || ' ' || concurrency || ' ' || "
                                    "queue_items || ' ' || queue_bytes || ' ' || output_order, ', ') FROM "
                                    "(SELECT * FROM stage ORDER BY rowid)");
    assert_string_equal(stages, "0:0:src source 1 2 0 completion, 0:1:decode[10] stage 10 2 1000000 input, "
                                "0:2:sink sink 1 3 0 completion");
    free(stages);
}

TEST_CASE(command_and_node_are_the_processes_own_by_default)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    observe_start(weir_sqlite_observer(writer));
    close_writer(writer);
    char host[256];
    gethostname(host, sizeof host);
    char *node = query_text(path, "SELECT node_id FROM run");
    assert_string_equal(node, host);
    free(node);
    char *command = query_text(path, "SELECT command FROM run");
    assert_non_null(strstr(command, "test_sqlite"));
    free(command);
}

TEST_CASE(sums_in_the_database_are_what_was_observed)
{
    enum { LAPS = 3000 }; /* several times the buffer */
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, &(weir_sqlite_options){ .buffer_entries = 100 });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    for (int lap = 0; lap < LAPS; lap++) {
        observe_lap(observer, lap, 4);
        observe_failure(observer, (uint64_t)lap, "a.mp4", "damaged");
    }
    observe_end(observer, WEIR_OK);
    close_writer(writer);

    assert_int_equal(query_int(path, "SELECT sum(num_tasks) FROM task_stats"), 4 * LAPS);
    assert_int_equal(query_int(path, "SELECT sum(num_failures) FROM task_stats"), LAPS);
    assert_int_equal(query_int(path, "SELECT count(*) FROM queue_stats"), 3 * LAPS);
    assert_int_equal(query_int(path, "SELECT sum(num_items) FROM queue_stats WHERE name = '0:0:src_queue'"),
                     4 * LAPS);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_failures"), LAPS);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats a JOIN task_stats b ON b.id = a.id + 1 "
                                     "WHERE b.timestamp < a.timestamp"),
                     0); /* in order */
}

TEST_CASE(a_lap_of_nothing_has_zeros)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observer.lap(observer.self, &(weir_subject_lap){ .subject = WEIR_SUBJECT_STAGE,
                                                     .kind = "stage",
                                                     .name = "0:1:decode",
                                                     .lap = &(weir_lap){ .elapsed_ns = 0 } });
    observer.lap(observer.self, &(weir_subject_lap){ .subject = WEIR_SUBJECT_QUEUE,
                                                     .kind = "queue",
                                                     .name = "0:1:decode_queue",
                                                     .lap = &(weir_lap){ .elapsed_ns = 0 } });
    close_writer(writer);
    assert_close(query_real(path, "SELECT ave_time + p90_time + p99_time FROM task_stats"), 0, 0);
    assert_close(query_real(path, "SELECT ave_put_time + ave_get_time + occupancy_rate FROM queue_stats"), 0, 0);
}

TEST_CASE(a_writer_records_one_pipeline_at_a_time)
{
    weir_sqlite_writer *writer = open_writer(in_folder("a.db"), NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_error error = { 0 };
    assert_int_equal(observer.attach(observer.self, &error), WEIR_OK);
    assert_int_equal(observer.attach(observer.self, &error), WEIR_EBUSY);
    assert_non_null(strstr(error.message, "a.db"));
    observer.detach(observer.self);
    assert_int_equal(observer.attach(observer.self, &error), WEIR_OK);
    observer.detach(observer.self);
    close_writer(writer);
}

static char *long_label(void)
{
    size_t size = 1 << 20;
    char *label = malloc(size);
    assert_non_null(label);
    memset(label, 'x', size - 1);
    label[size - 1] = '\0';
    return label;
}

TEST_CASE(labels_are_stored_byte_for_byte)
{
    char *long_one = long_label();
    const char *const labels[] = {
        "plain.mp4",
        "it's \"quoted\"; DROP TABLE run; --",
        "two\nlines\t\x01",
        "caf\xc3\xa9 \xf0\x9f\x8e\xac.mp4",
        "bad \xff\xfe.mp4",
        "overlong \xc0\xaf, surrogate \xed\xa0\x80, cut \xe2\x82",
        "",
        long_one,
    };
    const size_t num_labels = sizeof labels / sizeof labels[0];
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    for (size_t i = 0; i < num_labels; i++)
        observe_failure(observer, i, labels[i], labels[i]);
    observer.event(observer.self, &(weir_event){ .name = "bad \xff", .category = "user", .detail = NULL });
    close_writer(writer);

    sqlite3 *db = connect_to(path);
    sqlite3_stmt *row;
    sqlite3_prepare_v2(db, "SELECT label, message FROM task_failures ORDER BY seq", -1, &row, NULL);
    for (size_t i = 0; i < num_labels; i++) {
        assert_int_equal(sqlite3_step(row), SQLITE_ROW);
        const int wanted = i == 4 || i == 5 ? SQLITE_BLOB : SQLITE_TEXT; /* text is always valid UTF-8 */
        assert_int_equal(sqlite3_column_type(row, 0), wanted);
        assert_string_equal((const char *)sqlite3_column_text(row, 0), labels[i]);
        assert_string_equal((const char *)sqlite3_column_text(row, 1), labels[i]);
    }
    sqlite3_finalize(row);
    sqlite3_close(db);
    assert_int_equal(query_int(path, "SELECT event_name = x'62616420ff' FROM event_stats"), 1);
    free(long_one);
}

TEST_CASE(a_row_that_the_database_refuses_is_given_up_alone)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    execute(path, "CREATE TRIGGER refusal BEFORE INSERT ON queue_stats WHEN NEW.num_put = 77 "
                  "BEGIN SELECT raise(ABORT, 'refused'); END");
    observe_start(observer);
    observe_lap(observer, 0, 4);
    observer.lap(observer.self, &(weir_subject_lap){ .subject = WEIR_SUBJECT_QUEUE,
                                                     .kind = "queue",
                                                     .name = "0:0:src_queue",
                                                     .lap = &(weir_lap){ .elapsed_ns = 1 },
                                                     .metrics.queue = { .num_put = 77 } });
    observe_lap(observer, 1, 4);
    weir_error error = { 0 };
    assert_int_not_equal(weir_sqlite_close(writer, &error), WEIR_OK);
    assert_non_null(strstr(error.message, "1 of 13 entries"));
    assert_int_equal(query_int(path, "SELECT count(*) FROM queue_stats"), 6);
    assert_int_equal(query_int(path, "SELECT entries_lost FROM run"), 1);
}

/* -- runs */

TEST_CASE(each_pipeline_that_starts_is_a_run)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    int64_t ids[3];
    for (int i = 0; i < 3; i++) {
        observe_start(observer);
        observe_lap(observer, 0, 4);
        ids[i] = weir_sqlite_run_id(writer);
        if (i != 1) /* the second never ends */
            observe_end(observer, WEIR_OK);
    }
    close_writer(writer);
    assert_true(0 < ids[0] && ids[0] < ids[1] && ids[1] < ids[2]);
    assert_int_equal(query_int(path, "SELECT count(*) FROM run"), 3);
    assert_int_equal(query_int(path, "SELECT count(*) FROM (SELECT run_id FROM task_stats GROUP BY run_id "
                                     "HAVING count(*) = 1)"),
                     3);
    assert_int_equal(query_int(path, "SELECT run_id FROM run WHERE ended IS NULL AND status IS NULL"), ids[1]);
}

TEST_CASE(a_writer_that_saw_no_run_leaves_none)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    assert_true(weir_sqlite_run_id(writer) > 0);
    close_writer(writer);
    assert_int_equal(query_int(path, "SELECT count(*) FROM run"), 0);
}

TEST_CASE(removing_a_run_removes_what_it_recorded)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_lap(observer, 0, 4);
    observe_failure(observer, 1, "a", "b");
    close_writer(writer);
    execute(path, "PRAGMA foreign_keys = ON; DELETE FROM run");
    assert_int_equal(query_int(path,
                               "SELECT (SELECT count(*) FROM task_stats) + (SELECT count(*) FROM queue_stats) + "
                               "(SELECT count(*) FROM task_failures) + (SELECT count(*) FROM stage)"),
                     0);
}

/* -- opening */

/* Opening fails with that status, in one line that names the path and says `wanted`. */
static void assert_refused(const char *path, int status, const char *wanted)
{
    weir_sqlite_writer *writer = (weir_sqlite_writer *)-1;
    weir_error error = { 0 };
    int result =
        weir_sqlite_open(path, &(weir_sqlite_options){ .retry_limit_ns = 50 * WEIR_MILLISECOND }, &writer, &error);
    if (result != status || !strstr(error.message, wanted) || !strstr(error.message, path) ||
        strchr(error.message, '\n'))
        fail_msg("%s, not %s (%s): %s", weir_status_name(result), weir_status_name(status), wanted, error.message);
    assert_null(writer);
    assert_int_equal(error.status, status);
}

TEST_CASE(missing_folders_are_made)
{
    const char *path = in_folder("a/b c/d/e.db");
    close_writer(open_writer(path, NULL));
    close_writer(open_writer(path, NULL));
    assert_int_equal(query_int(path, "SELECT count(*) FROM run"), 0);
}

TEST_CASE(an_empty_file_is_adopted)
{
    const char *path = in_folder("empty.db");
    write_file(path, "", 0);
    close_writer(open_writer(path, NULL));
    assert_int_equal(query_int(path, "PRAGMA user_version"), WEIR_SCHEMA_VERSION);
}

TEST_CASE(special_names_of_sqlite_are_refused)
{
    static const char *const names[] = { ":memory:", "file:x?mode=memory", "file:x.db" };
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(in_folder("")), 0);
    for (int i = 0; i < 3; i++) {
        weir_sqlite_writer *writer;
        weir_error error = { 0 };
        assert_int_equal(weir_sqlite_open(names[i], NULL, &writer, &error), WEIR_EINVAL);
        assert_null(writer);
        assert_non_null(strstr(error.message, "special name of SQLite"));
        assert_int_not_equal(access(names[i], F_OK), 0);
    }
    close_writer(open_writer("./:memory:", NULL)); /* a file of this name */
    close_writer(open_writer(":memory:.db", NULL));
    assert_int_equal(access("./:memory:", F_OK), 0);
    assert_int_equal(access(":memory:.db", F_OK), 0);
    assert_int_equal(chdir(before), 0);
}

static void assert_refused_unchanged(const char *path, int status, const char *wanted)
{
    size_t size_before, size_after;
    char *before = read_file(path, &size_before);
    assert_refused(path, status, wanted);
    char *after = read_file(path, &size_after);
    assert_int_equal(size_before, size_after);
    assert_memory_equal(before, after, size_before);
    free(before);
    free(after);
}

TEST_CASE(what_is_no_database_is_refused_and_left_alone)
{
    const char *path = in_folder("notes.txt");
    const char text[] =
        "This is a text of some length that is not a database, and must be there afterwards as before: "
        "every byte of it, whatever is given as --db-path by mistake.";
    write_file(path, text, sizeof text - 1);
    assert_refused_unchanged(path, WEIR_EDATA, "not a database");
    write_file(path, "x", 1);
    assert_refused_unchanged(path, WEIR_EDATA, "not a database");
}

TEST_CASE(another_programs_database_is_refused_and_left_alone)
{
    const char *path = in_folder("other.db");
    execute(path, "CREATE TABLE run (x); INSERT INTO run VALUES (1)");
    assert_refused_unchanged(path, WEIR_EDATA, "another program");
    execute(path, "PRAGMA user_version = 1");
    assert_refused_unchanged(path, WEIR_EDATA, "another program");
    path = in_folder("versioned.db");
    execute(path, "PRAGMA user_version = 99");
    assert_refused_unchanged(path, WEIR_EDATA, "another program");
}

TEST_CASE(a_newer_schema_is_refused_and_left_alone)
{
    const char *path = in_folder("a.db");
    close_writer(open_writer(path, NULL));
    execute(path, "PRAGMA user_version = 7");
    assert_refused_unchanged(path, WEIR_EUNSUPPORTED, "schema 7");
}

TEST_CASE(what_is_no_file_is_refused)
{
    assert_refused("", WEIR_EINVAL, "no path");
    assert_int_equal(mkdir(in_folder("dir"), 0700), 0);
    assert_refused(in_folder("dir"), WEIR_EINVAL, "a folder");
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_refused(in_folder("fifo"), WEIR_EINVAL, "not a regular file");
    write_file(in_folder("file"), "", 0);
    assert_refused(in_folder("file/a.db"), WEIR_EINVAL, "cannot write to the folder");
    assert_refused(in_folder("file/b/a.db"), WEIR_EINVAL, "cannot write to the folder");
    assert_refused("/proc/no such place/a.db", WEIR_ENOTFOUND, "cannot write to the folder");
    /* root may write to that folder, which has no room for files */
    assert_refused("/proc/a.db", geteuid() == 0 ? WEIR_EIO : WEIR_EACCESS, "cannot ");
}

TEST_CASE(long_paths_are_named_by_their_end)
{
    char path[3000];
    memset(path, 'y', sizeof path);
    memcpy(path, "/proc/", 6);
    strcpy(path + sizeof path - 15, "\n/the-end.db");
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    assert_int_not_equal(weir_sqlite_open(path, NULL, &writer, &error), WEIR_OK);
    assert_non_null(strstr(error.message, "\\n/the-end.db"));
    assert_null(strchr(error.message, '\n'));
}

TEST_CASE(negative_limits_are_refused)
{
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    weir_sqlite_options options = { .retry_limit_ns = WEIR_FOREVER };
    assert_int_equal(weir_sqlite_open(in_folder("a.db"), &options, &writer, &error), WEIR_EINVAL);
    assert_int_equal(access(in_folder("a.db"), F_OK), -1);
}

/* Runs `child` in a separate process; returns the status of waitpid(). */
static int in_child(void (*child)(const char *path), const char *path)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(path);
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(pid, &result, 0), pid);
    return result;
}

#define CHILD_ASSERT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1); \
        } \
    } while (0)

/* For children: cmocka's assertions would go on with the next test there. */
static weir_sqlite_writer *open_in_child(const char *path, const weir_sqlite_options *options)
{
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    if (weir_sqlite_open(path, options, &writer, &error) != WEIR_OK)
        fprintf(stderr, "%s\n", error.message);
    CHILD_ASSERT(writer);
    return writer;
}

static void open_as_nobody(const char *path)
{
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    if (geteuid() == 0)
        CHILD_ASSERT(setgid(65534) == 0 && setuid(65534) == 0);
    int status = weir_sqlite_open(path, NULL, &writer, &error);
    if (status != WEIR_EACCESS)
        fprintf(stderr, "%s: %s\n", weir_status_name(status), error.message);
    CHILD_ASSERT(status == WEIR_EACCESS);
    CHILD_ASSERT(strstr(error.message, path));
    CHILD_ASSERT(!strchr(error.message, '\n'));
}

TEST_CASE(what_may_not_be_written_is_refused)
{
    const char *path = in_folder("a.db");
    close_writer(open_writer(path, NULL));
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(in_folder(""), 0777), 0);
    assert_int_equal(in_child(open_as_nobody, path), 0);
    assert_int_equal(chmod(in_folder(""), 0755), 0);
    if (geteuid() == 0) { /* the folder is ours, not nobody's */
        assert_int_equal(in_child(open_as_nobody, in_folder("new/b.db")), 0);
        assert_int_equal(in_child(open_as_nobody, in_folder("b.db")), 0);
    }
}

/* -- flushing */

/* Waits until a lap's entries are in queue_stats. Looks whenever something in the folder has been written, and also
   after a while. The reason is that others see a transaction only a little after its last write. ctest's time limit
   ends a wait in vain. */
static void await_lap(const char *path)
{
    enum { AGAIN_MS = 100 };
    char changes[4096];
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_true(watch >= 0 && inotify_add_watch(watch, in_folder(""), IN_MODIFY) >= 0);
    while (query_int(path, "SELECT count(*) FROM queue_stats") < 3) {
        if (poll(&(struct pollfd){ .fd = watch, .events = POLLIN }, 1, AGAIN_MS) > 0)
            assert_true(read(watch, changes, sizeof changes) > 0);
    }
    close(watch);
}

TEST_CASE(an_entry_is_written_when_its_interval_is_over)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer =
        open_writer(path, &(weir_sqlite_options){ .flush_interval_ns = 20 * WEIR_MILLISECOND });
    observe_lap(weir_sqlite_observer(writer), 0, 4);
    await_lap(path);
    close_writer(writer);
}

TEST_CASE(a_quarter_of_the_buffer_is_written_at_once)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer =
        open_writer(path, &(weir_sqlite_options){ .flush_interval_ns = 3600 * WEIR_SECOND, .buffer_entries = 16 });
    observe_lap(weir_sqlite_observer(writer), 0, 4);
    await_lap(path);
    close_writer(writer);
}

TEST_CASE(a_reader_follows_and_holds_nobody_up)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_lap(observer, 0, 4);
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    sqlite3 *reader = connect_to(path);
    run_sql(reader, "BEGIN; SELECT count(*) FROM task_stats");
    observe_lap(observer, 1, 4);
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 2);
    run_sql(reader, "COMMIT");
    sqlite3_close(reader);
    close_writer(writer);
}

static void flush_and_die(const char *path)
{
    weir_sqlite_writer *writer =
        open_in_child(path, &(weir_sqlite_options){ .flush_interval_ns = 3600 * WEIR_SECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    for (int lap = 0; lap < 500; lap++)
        observe_lap(observer, lap, 4);
    CHILD_ASSERT(weir_sqlite_flush(writer, NULL) == WEIR_OK);
    observe_lap(observer, 500, 4); /* not flushed */
    raise(SIGKILL);
}

/* Readers one after the other. Each begins before the previous one has ended. */
static struct relay {
    const char *path;
    atomic_int num_begun;
    atomic_bool is_over;
} relay;

static void *read_in_turn(void *number)
{
    sqlite3 *db = connect_to(relay.path);
    for (int turn = (int)(intptr_t)number; !relay.is_over; turn += 2) {
        while (relay.num_begun < turn && !relay.is_over)
            sched_yield();
        sqlite3_exec(db, "BEGIN; SELECT count(*) FROM task_stats", NULL, NULL, NULL);
        relay.num_begun++;
        while (relay.num_begun < turn + 2 && !relay.is_over)
            sched_yield();
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    }
    sqlite3_close(db);
    return NULL;
}

TEST_CASE(readers_that_follow_each_other_do_not_make_the_log_grow)
{
    enum { MOST_LAPS = 12000 }; /* 21 kB each */
    char log[4096];
    pthread_t readers[2];
    weir_sqlite_writer *writer = open_writer(in_folder("w.db"), &(weir_sqlite_options){ .buffer_entries = 16 });
    weir_observer observer = weir_sqlite_observer(writer);
    snprintf(log, sizeof log, "%s-wal", in_folder("w.db"));
    relay = (struct relay){ .path = in_folder("w.db") };
    observe_start(observer);
    for (intptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_in_turn, (void *)i), 0);
    struct stat info = { .st_size = 0 };
    off_t size = 0;
    bool is_begun_again = false;
    int num_laps = 0;
    while (!is_begun_again && num_laps < MOST_LAPS) {
        observe_lap(observer, num_laps++, 4);
        is_begun_again = stat(log, &info) == 0 && info.st_size < size;
        size = info.st_size;
    }
    relay.is_over = true;
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    observe_end(observer, WEIR_OK);
    close_writer(writer);
    assert_int_equal(query_int(in_folder("w.db"), "SELECT count(*) FROM task_stats"), num_laps);
    assert_true(is_begun_again);
}

TEST_CASE(what_was_flushed_survives_kill_9)
{
    const char *path = in_folder("a.db");
    int result = in_child(flush_and_die, path);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    char *check = query_text(path, "PRAGMA integrity_check");
    assert_string_equal(check, "ok");
    free(check);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 500);
    assert_int_equal(query_int(path, "SELECT count(*) FROM queue_stats"), 1500);
    assert_int_equal(query_int(path, "SELECT count(*) FROM run WHERE ended IS NULL"), 1);
    close_writer(open_writer(path, NULL)); /* and can be written on */
}

static void write_many(const char *path)
{
    weir_sqlite_writer *writer =
        open_in_child(path, &(weir_sqlite_options){ .buffer_entries = 16, .retry_limit_ns = 60 * WEIR_SECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    for (int lap = 0; lap < 300; lap++)
        observe_lap(observer, lap, 4);
    observe_end(observer, WEIR_OK);
    CHILD_ASSERT(weir_sqlite_close(writer, NULL) == WEIR_OK);
}

TEST_CASE(several_processes_write_to_one_database)
{
    enum { PROCESSES = 3 };
    const char *path = in_folder("a.db");
    pid_t pids[PROCESSES];
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) { /* they make the file, too */
        pids[i] = fork();
        if (pids[i] == 0) {
            write_many(path);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int result;
        waitpid(pids[i], &result, 0);
        assert_int_equal(result, 0);
    }
    assert_int_equal(query_int(path, "SELECT count(*) FROM run WHERE ended IS NOT NULL AND entries_lost = 0"),
                     PROCESSES);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 300 * PROCESSES);
    assert_int_equal(query_int(path, "SELECT count(*) FROM (SELECT run_id FROM queue_stats GROUP BY run_id "
                                     "HAVING count(*) = 900)"),
                     PROCESSES);
    char *check = query_text(path, "PRAGMA integrity_check");
    assert_string_equal(check, "ok");
    free(check);
}

/* -- bad times */

TEST_CASE(a_database_locked_at_opening_is_reported)
{
    const char *path = in_folder("a.db");
    close_writer(open_writer(path, NULL));
    sqlite3 *other = connect_to(path);
    run_sql(other, "BEGIN EXCLUSIVE");
    assert_refused(path, WEIR_EBUSY, "locked");
    run_sql(other, "COMMIT");
    sqlite3_close(other);
}

TEST_CASE(a_lock_that_is_released_costs_nothing)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, &(weir_sqlite_options){ .retry_limit_ns = 2 * WEIR_SECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    sqlite3 *other = connect_to(path);
    run_sql(other, "BEGIN EXCLUSIVE");
    observe_start(observer);
    for (int lap = 0; lap < 100; lap++)
        observe_lap(observer, lap, 4);
    weir_error error = { 0 };
    assert_int_equal(weir_sqlite_flush(writer, &error), WEIR_EBUSY);
    assert_non_null(strstr(error.message, path));
    run_sql(other, "COMMIT");
    sqlite3_close(other);
    close_writer(writer);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 100);
}

typedef struct feeder {
    weir_observer observer;
    sem_t begun; /* one for each lap */
} feeder;

static void *feed(void *self)
{
    feeder *f = self;
    for (int lap = 0; lap < 20; lap++) {
        sem_post(&f->begun);
        observe_lap(f->observer, lap, 4);
    }
    return NULL;
}

TEST_CASE(an_observer_call_waits_for_room_in_the_buffer)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(
        path, &(weir_sqlite_options){ .buffer_entries = ENTRIES_PER_LAP, .retry_limit_ns = WEIR_SECOND * 60 });
    feeder f = { .observer = weir_sqlite_observer(writer) };
    sem_init(&f.begun, 0, 0);
    sqlite3 *other = connect_to(path);
    run_sql(other, "BEGIN EXCLUSIVE");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
    for (int lap = 0; lap < 2; lap++) /* the second one finds no room until the lock is gone */
        assert_int_equal(sem_wait(&f.begun), 0);
    run_sql(other, "COMMIT");
    sqlite3_close(other);
    pthread_join(thread, NULL);
    sem_destroy(&f.begun);
    close_writer(writer);
    assert_int_equal(query_int(path, "SELECT count(*) FROM queue_stats"), 60);
    assert_int_equal(query_int(path, "SELECT count(*) FROM run WHERE entries_lost = 0"), 1);
}

static atomic_int num_error_lines;

static void count_error_lines(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)line;
    if (level == WEIR_LOG_ERROR)
        atomic_fetch_add(&num_error_lines, 1);
}

TEST_CASE(what_found_no_room_is_counted_reported_and_stored)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(
        path, &(weir_sqlite_options){ .buffer_entries = 10 * ENTRIES_PER_LAP, .retry_limit_ns = WEIR_SECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    atomic_store(&num_error_lines, 0);
    weir_log_set_function(count_error_lines, NULL);
    sqlite3 *other = connect_to(path);
    run_sql(other, "BEGIN EXCLUSIVE");
    observe_start(observer);            /* takes four places: the run and its stages */
    for (int lap = 0; lap < 500; lap++) /* one wait: with two thousand, the time limit would end the test */
        observe_lap(observer, lap, 4);
    observe_end(observer, WEIR_OK);
    assert_int_equal(atomic_load(&num_error_lines), 1);
    run_sql(other, "COMMIT");
    sqlite3_close(other);

    weir_error error = { 0 };
    assert_int_equal(weir_sqlite_close(writer, &error), WEIR_EBUSY);
    weir_log_set_function(NULL, NULL);
    char wanted[100];
    int lost = 500 * ENTRIES_PER_LAP - (10 * ENTRIES_PER_LAP - 4);
    snprintf(wanted, sizeof wanted, "%d of %d entries", lost, 500 * ENTRIES_PER_LAP + 5);
    assert_non_null(strstr(error.message, wanted));
    assert_non_null(strstr(error.message, path));
    assert_int_equal(query_int(path, "SELECT entries_lost FROM run WHERE ended = 1100 AND threads = 10"), lost);
    assert_int_equal(query_int(path, "SELECT (SELECT count(*) FROM task_stats) + (SELECT count(*) FROM queue_stats)"),
                     10 * ENTRIES_PER_LAP - 4);
}

TEST_CASE(closing_gives_up_after_the_limit)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, &(weir_sqlite_options){ .retry_limit_ns = 50 * WEIR_MILLISECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    sqlite3 *other = connect_to(path);
    run_sql(other, "BEGIN EXCLUSIVE");
    observe_start(observer);
    observe_lap(observer, 0, 4);
    weir_log_set_function(count_error_lines, NULL);
    weir_error error = { 0 };
    assert_int_equal(weir_sqlite_close(writer, &error), WEIR_EBUSY);
    weir_log_set_function(NULL, NULL);
    assert_non_null(strstr(error.message, "8 of 8 entries"));
    run_sql(other, "COMMIT");
    sqlite3_close(other);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 0);
}

/* Deletes it, or puts an empty one in its place: while there are entries to write, or after the last one. */
static void lose_database(bool is_replaced, bool is_at_end)
{
    const char *path = in_folder("a.db"), *other = in_folder("b.db");
    /* no use in waiting: the test would take longer than it may */
    weir_sqlite_writer *writer = open_writer(path, &(weir_sqlite_options){ .retry_limit_ns = 3600 * WEIR_SECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    if (is_at_end)
        observe_lap(observer, 0, 4);
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    if (is_replaced) {
        weir_sqlite_close(open_writer(other, NULL), NULL);
        assert_int_equal(rename(other, path), 0);
    } else {
        assert_int_equal(unlink(path), 0);
    }
    if (!is_at_end)
        observe_lap(observer, 0, 4);
    weir_log_set_function(count_error_lines, NULL);
    weir_error error = { 0 };
    assert_int_equal(weir_sqlite_close(writer, &error), WEIR_ENOTFOUND);
    weir_log_set_function(NULL, NULL);
    assert_non_null(strstr(error.message, is_at_end ? "0 of 8 entries" : "4 of 8 entries"));
    assert_non_null(strstr(error.message, "it was deleted or replaced while it was open"));
    assert_non_null(strstr(error.message, "the others are in the file that was there before"));
    assert_null(strstr(error.message, "writable"));
    assert_null(strstr(error.message, "readonly"));
    unlink(path);
    unlink(in_folder("a.db-wal"));
    unlink(in_folder("a.db-shm"));
}

TEST_CASE(a_database_that_was_removed_is_reported)
{
    for (int i = 0; i < 4; i++)
        lose_database(i & 1, i & 2);
}

/* SQLite makes the file, and then fails to make the one that ends in -wal. */
TEST_CASE(a_name_that_is_refused_leaves_no_file)
{
    char name[253];
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *path = in_folder(name);
    assert_int_not_equal(weir_sqlite_open(path, NULL, &writer, &error), WEIR_OK);
    assert_non_null(strstr(error.message, "File name too long"));
    assert_int_not_equal(access(path, F_OK), 0);
}

/* From now on no file of this process may grow beyond this. */
static void limit_files(rlim_t size_bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = size_bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void fill_the_disk(const char *path)
{
    signal(SIGXFSZ, SIG_IGN);
    weir_log_set_level(WEIR_LOG_ERROR);
    weir_sqlite_writer *writer =
        open_in_child(path, &(weir_sqlite_options){ .retry_limit_ns = 300 * WEIR_MILLISECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    weir_log_set_function(count_error_lines, NULL);
    observe_start(observer);
    limit_files(400 * 1024);
    for (int lap = 0; lap < 4000; lap++)
        observe_lap(observer, lap, 4);
    observe_end(observer, WEIR_OK);
    weir_error error = { 0 };
    CHILD_ASSERT(weir_sqlite_close(writer, &error) == WEIR_EIO);
    CHILD_ASSERT(strstr(error.message, "of 16005 entries could not be written"));
    CHILD_ASSERT(strstr(error.message, path));
    CHILD_ASSERT(atomic_load(&num_error_lines) >= 1);
}

TEST_CASE(a_full_disk_is_reported_and_the_rest_is_intact)
{
    const char *path = in_folder("a.db");
    assert_int_equal(in_child(fill_the_disk, path), 0);
    char *check = query_text(path, "PRAGMA integrity_check");
    assert_string_equal(check, "ok");
    free(check);
    int64_t num_rows =
        query_int(path, "SELECT (SELECT count(*) FROM task_stats) + (SELECT count(*) FROM queue_stats)");
    assert_true(num_rows > 0 && num_rows < 16000);
    /* The log alone would have filled its 400 kB with half of this: its room was used again. */
    assert_true(query_int(path, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size") >
                350 * 1024);
    assert_int_equal(query_int(path, "SELECT entries_lost FROM run WHERE ended = 1100"), 16000 - num_rows);
}

static void fill_the_disk_and_free_it(const char *path)
{
    signal(SIGXFSZ, SIG_IGN);
    weir_log_set_level(WEIR_LOG_ERROR);
    weir_sqlite_writer *writer = open_in_child(
        path, &(weir_sqlite_options){ .buffer_entries = 100000, .retry_limit_ns = 300 * WEIR_MILLISECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    limit_files(400 * 1024);
    for (int lap = 0; lap < 4000; lap++)
        observe_lap(observer, lap, 4);
    CHILD_ASSERT(weir_sqlite_flush(writer, NULL) != WEIR_OK); /* WEIR_EIO; on a very slow machine WEIR_ETIMEDOUT */
    limit_files(RLIM_INFINITY);
    CHILD_ASSERT(weir_sqlite_close(writer, NULL) == WEIR_OK);
}

TEST_CASE(a_full_disk_that_is_freed_costs_nothing)
{
    const char *path = in_folder("a.db");
    assert_int_equal(in_child(fill_the_disk_and_free_it, path), 0);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 4000);
    assert_int_equal(query_int(path, "SELECT count(*) FROM queue_stats"), 12000);
    assert_int_equal(query_int(path, "SELECT entries_lost FROM run"), 0);
}

static void start_a_run_on_a_full_disk(const char *path)
{
    signal(SIGXFSZ, SIG_IGN);
    weir_log_set_level(WEIR_LOG_ERROR);
    weir_sqlite_writer *writer =
        open_in_child(path, &(weir_sqlite_options){ .retry_limit_ns = 300 * WEIR_MILLISECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_end(observer, WEIR_OK);
    CHILD_ASSERT(weir_sqlite_flush(writer, NULL) == WEIR_OK);
    limit_files(1);
    observe_start(observer); /* its row goes with the transaction that fails */
    observe_lap(observer, 0, 4);
    CHILD_ASSERT(weir_sqlite_run_id(writer) == 0);
    limit_files(RLIM_INFINITY);
    CHILD_ASSERT(weir_sqlite_close(writer, NULL) == WEIR_OK);
}

TEST_CASE(a_run_that_starts_on_a_full_disk_is_there_when_it_is_freed)
{
    const char *path = in_folder("a.db");
    assert_int_equal(in_child(start_a_run_on_a_full_disk, path), 0);
    assert_int_equal(query_int(path, "SELECT count(*) FROM run"), 2);
    assert_int_equal(query_int(path, "SELECT count(*) FROM queue_stats JOIN run USING (run_id) WHERE ended IS NULL"),
                     3);
}

/* -- several writers of one file */

/* Threads of this process with that name. */
static int count_threads(const char *name)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], found[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(found, sizeof found, file))
            found[strcspn(found, "\n")] = '\0';
        if (file)
            fclose(file);
        count += strcmp(found, name) == 0;
    }
    closedir(tasks);
    return count;
}

/* Waits for threads that have been joined, but which the kernel still shows. */
static void await_threads(int count)
{
    while (count_threads("weir-database") != count)
        sched_yield();
}

static int64_t count_laps_of(const char *path, int64_t run_id)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM task_stats WHERE run_id = %" PRId64, run_id);
    return query_int(path, sql);
}

TEST_CASE(writers_of_one_file_share_a_thread_and_each_run_is_whole_when_its_writer_is_closed)
{
    enum { WRITERS = 4 };
    const char *path = in_folder("a.db"), *link = in_folder("link.db");
    weir_sqlite_writer *writers[WRITERS];
    int64_t run_ids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = open_writer(i == 2 ? link : path, NULL);
        run_ids[i] = weir_sqlite_run_id(writers[i]);
        if (i == 0)
            assert_int_equal(symlink(path, link), 0);
        observe_start(weir_sqlite_observer(writers[i]));
    }
    await_threads(1);
    weir_sqlite_writer *other = open_writer(in_folder("other.db"), NULL);
    await_threads(2);
    close_writer(other);
    for (int lap = 0; lap < 100; lap++)
        for (int i = 0; i < WRITERS; i++)
            if (lap <= 10 * i)
                observe_lap(weir_sqlite_observer(writers[i]), lap, 4);
    static const int order[WRITERS] = { 1, 3, 0, 2 };
    for (int i = 0; i < WRITERS; i++) {
        int writer = order[i];
        observe_end(weir_sqlite_observer(writers[writer]), WEIR_OK);
        close_writer(writers[writer]);
        assert_int_equal(count_laps_of(path, run_ids[writer]), 10 * writer + 1);
        assert_int_equal(query_int(path, "SELECT count(*) FROM run WHERE ended IS NOT NULL"), i + 1);
        await_threads(i < WRITERS - 1);
    }
    assert_int_equal(query_int(path, "SELECT count(DISTINCT run_id) FROM run WHERE entries_lost = 0"), WRITERS);
}

TEST_CASE(a_transaction_has_the_entries_of_all_writers_of_the_file)
{
    const weir_sqlite_options rarely = { .flush_interval_ns = 3600 * WEIR_SECOND };
    const char *path = in_folder("a.db");
    weir_sqlite_writer *one = open_writer(path, &rarely), *two = open_writer(path, &rarely);
    observe_lap(weir_sqlite_observer(one), 0, 4);
    observe_lap(weir_sqlite_observer(two), 0, 4);
    assert_int_equal(count_laps_of(path, weir_sqlite_run_id(two)), 0);
    assert_int_equal(weir_sqlite_flush(one, NULL), WEIR_OK);
    assert_int_equal(count_laps_of(path, weir_sqlite_run_id(two)), 1);
    close_writer(one);
    close_writer(two);
}

static void flush_several_and_die(const char *path)
{
    const weir_sqlite_options rarely = { .flush_interval_ns = 3600 * WEIR_SECOND };
    weir_sqlite_writer *writers[3];
    for (int i = 0; i < 3; i++) {
        writers[i] = open_in_child(path, &rarely);
        observe_start(weir_sqlite_observer(writers[i]));
        for (int lap = 0; lap < 100 * (i + 1); lap++)
            observe_lap(weir_sqlite_observer(writers[i]), lap, 4);
    }
    for (int i = 0; i < 3; i++)
        CHILD_ASSERT(weir_sqlite_flush(writers[i], NULL) == WEIR_OK);
    observe_lap(weir_sqlite_observer(writers[0]), 100, 4); /* not flushed */
    raise(SIGKILL);
}

TEST_CASE(what_several_writers_have_flushed_survives_kill_9)
{
    const char *path = in_folder("a.db");
    int result = in_child(flush_several_and_die, path);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    char *counts =
        query_text(path, "SELECT group_concat(n) FROM (SELECT count(*) AS n FROM task_stats JOIN run USING "
                         "(run_id) WHERE ended IS NULL GROUP BY run_id ORDER BY n)");
    assert_string_equal(counts, "100,200,300");
    free(counts);
    char *check = query_text(path, "PRAGMA integrity_check");
    assert_string_equal(check, "ok");
    free(check);
}

static void fill_the_disk_with_two(const char *path)
{
    signal(SIGXFSZ, SIG_IGN);
    weir_log_set_level(WEIR_LOG_ERROR);
    weir_log_set_function(count_error_lines, NULL);
    weir_sqlite_writer *writers[2];
    for (int i = 0; i < 2; i++) {
        writers[i] = open_in_child(path, &(weir_sqlite_options){ .retry_limit_ns = 300 * WEIR_MILLISECOND });
        observe_start(weir_sqlite_observer(writers[i]));
    }
    limit_files(400 * 1024);
    for (int lap = 0; lap < 2000; lap++)
        for (int i = 0; i < 2; i++)
            observe_lap(weir_sqlite_observer(writers[i]), lap, 4);
    for (int i = 0; i < 2; i++) {
        weir_error error = { 0 };
        observe_end(weir_sqlite_observer(writers[i]), WEIR_OK);
        CHILD_ASSERT(weir_sqlite_close(writers[i], &error) == WEIR_EIO);
        CHILD_ASSERT(strstr(error.message, "of 8005 entries could not be written"));
    }
}

TEST_CASE(a_full_disk_is_reported_to_each_writer_of_the_file)
{
    const char *path = in_folder("a.db");
    assert_int_equal(in_child(fill_the_disk_with_two, path), 0);
    assert_int_equal(query_int(path, "SELECT count(*) FROM run WHERE ended = 1100 AND entries_lost > 0"), 2);
    assert_int_equal(query_int(path, "SELECT count(*) FROM run WHERE entries_lost + (SELECT count(*) FROM task_stats "
                                     "WHERE run_id = run.run_id) + (SELECT count(*) FROM queue_stats "
                                     "WHERE run_id = run.run_id) = 8000"),
                     2);
}

TEST_CASE(a_writer_that_gives_up_costs_the_others_nothing)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *hasty = open_writer(path, &(weir_sqlite_options){ .retry_limit_ns = 50 * WEIR_MILLISECOND });
    weir_sqlite_writer *patient = open_writer(path, &(weir_sqlite_options){ .retry_limit_ns = 60 * WEIR_SECOND });
    sqlite3 *other = connect_to(path);
    run_sql(other, "BEGIN EXCLUSIVE");
    observe_lap(weir_sqlite_observer(hasty), 0, 4);
    observe_lap(weir_sqlite_observer(patient), 0, 4);
    weir_log_set_function(count_error_lines, NULL);
    weir_error error = { 0 };
    assert_int_equal(weir_sqlite_close(hasty, &error), WEIR_EBUSY);
    assert_non_null(strstr(error.message, "4 of 4 entries"));
    assert_refused(path, WEIR_EBUSY, "locked"); /* nor does one that may not join */
    weir_log_set_function(NULL, NULL);
    run_sql(other, "COMMIT");
    sqlite3_close(other);
    close_writer(patient);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 1);
}

#if defined(__SANITIZE_THREAD__)
#define IS_THREAD_SANITIZER true
#elif defined(__has_feature)
#define IS_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define IS_THREAD_SANITIZER false
#endif

static weir_sqlite_writer *of_the_parent;

static void use_what_is_of_the_parent(const char *path)
{
    weir_error error = { 0 };
    CHILD_ASSERT(weir_sqlite_flush(of_the_parent, &error) == WEIR_EFORKED);
    CHILD_ASSERT(strstr(error.message, "open one after fork()"));
    CHILD_ASSERT(weir_sqlite_run_id(of_the_parent) == 0);
    CHILD_ASSERT(weir_sqlite_close(of_the_parent, &error) == WEIR_EFORKED);
    weir_observer observer = weir_sqlite_observer(of_the_parent);
    CHILD_ASSERT(observer.attach(observer.self, &error) == WEIR_EFORKED);
    if (IS_THREAD_SANITIZER)
        return; /* which ends a child that starts a thread */
    weir_sqlite_writer *own = open_in_child(path, NULL);
    observe_lap(weir_sqlite_observer(own), 0, 4);
    CHILD_ASSERT(weir_sqlite_close(own, NULL) == WEIR_OK);
}

/* SQLite has still what it knew of the parent's file. */
static void record_into_the_file_of_the_parent(const char *path)
{
    weir_sqlite_writer *writer = NULL;
    weir_error error = { 0 };
    CHILD_ASSERT(weir_sqlite_open(path, NULL, &writer, &error) == WEIR_EFORKED);
    CHILD_ASSERT(!writer && strstr(error.message, path) && strstr(error.message, "another file"));
}

TEST_CASE(a_forked_child_records_into_no_file_that_its_parent_has_open)
{
    const char *path = in_folder("a.db"), *closed = in_folder("b.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    close_writer(open_writer(closed, NULL));
    assert_int_equal(in_child(record_into_the_file_of_the_parent, path), 0);
    if (!IS_THREAD_SANITIZER) {
        of_the_parent = writer;
        assert_int_equal(in_child(use_what_is_of_the_parent, closed), 0);
    }
    close_writer(writer);
}

static atomic_bool has_forked;

/* Takes SQLite's locks of the process as often as it can. */
static void *open_memories(void *unused)
{
    while (!atomic_load(&has_forked)) {
        sqlite3 *db;
        if (sqlite3_open(":memory:", &db) == SQLITE_OK)
            sqlite3_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES(randomblob(9))", NULL, NULL, NULL);
        sqlite3_close(db);
    }
    return unused;
}

/* A child that waits for a thread of the parent is killed by the alarm. */
static void record_in_memory(const char *unused)
{
    (void)unused;
    alarm(20);
    weir_sqlite_writer *own = open_in_child(NULL, &(weir_sqlite_options){ .in_memory = true });
    observe_lap(weir_sqlite_observer(own), 0, 4);
    CHILD_ASSERT(weir_sqlite_close(own, NULL) == WEIR_OK);
}

TEST_CASE(forked_children_use_sqlite_while_threads_of_the_parent_do)
{
    enum { NUM_THREADS = 3, NUM_FORKS = 40 };
    pthread_t threads[NUM_THREADS];
#ifdef SANITIZED /* a sanitizer has locks of its own, which it does not hold during a fork */
    skip();
#endif
    weir_sqlite_writer *writer = open_writer(in_folder("a.db"), NULL);
    atomic_store(&has_forked, false);
    for (int i = 0; i < NUM_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_memories, NULL), 0);
    int result = 0;
    for (int i = 0; i < NUM_FORKS && result == 0; i++)
        result = in_child(record_in_memory, NULL);
    atomic_store(&has_forked, true);
    for (int i = 0; i < NUM_THREADS; i++)
        pthread_join(threads[i], NULL);
    close_writer(writer);
    assert_int_equal(result, 0);
}

TEST_CASE(a_writer_stays_with_the_process_that_has_opened_it)
{
    const char *path = in_folder("a.db"), *other = in_folder("b.db");
    of_the_parent = open_writer(path, NULL);
    observe_lap(weir_sqlite_observer(of_the_parent), 0, 4);
    assert_int_equal(in_child(use_what_is_of_the_parent, other), 0);
    close_writer(of_the_parent);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 1);
    if (!IS_THREAD_SANITIZER)
        assert_int_equal(query_int(other, "SELECT count(*) FROM task_stats"), 1);
}

static void *record_one_run(void *path)
{
    weir_sqlite_writer *writer = open_writer(path, &(weir_sqlite_options){ .buffer_entries = 16 });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_end(observer, WEIR_OK);
    close_writer(writer);
    return NULL;
}

TEST_CASE(writers_that_open_and_close_at_the_same_time_all_work)
{
    enum { THREADS = 6, ROUNDS = 20 };
    char *path = strdup(in_folder("a.db"));
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, record_one_run, path), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    assert_int_equal(query_int(path, "SELECT count(*) FROM run WHERE ended = 1100 AND entries_lost = 0"),
                     THREADS * ROUNDS);
    await_threads(0);
    free(path);
}

TEST_CASE(closing_nothing_is_fine)
{
    assert_int_equal(weir_sqlite_close(NULL, NULL), WEIR_OK);
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
