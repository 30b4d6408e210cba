/* Database maintenance: merging without duplicates, checking that finds each fault, schemas. */
#include "tests/recording.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/query.h>
#include <weir/summary.h>

/* -- merging */

static weir_merged merge(const char *to, const char *from)
{
    weir_merged merged;
    weir_error error = { 0 };
    if (weir_database_merge(to, from, &merged, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return merged;
}

static void assert_merged(weir_merged merged, int64_t added, int64_t replaced, int64_t present, int64_t skipped)
{
    assert_int_equal(merged.added, added);
    assert_int_equal(merged.replaced, replaced);
    assert_int_equal(merged.present, present);
    assert_int_equal(merged.skipped, skipped);
}

/* A run of two laps with 4 and 8 tasks, one failure and one event. */
static void record_rank(const char *path, int rank)
{
    weir_sqlite_writer *writer = recording_begin(path, "node", rank, 1000 + rank);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4, .phase = "train", .has_steps = true });
    record_lap(writer, &(invented_lap){ .at = 1020, .num_tasks = 8, .num_failures = 1 });
    record_failure(writer, 1015, "\xff\n", 0.5); /* no UTF-8: it is a blob in the database */
    record_event(writer, 1016, "e");
    recording_end(writer, 1020);
}

TEST_CASE(runs_of_several_databases_come_into_one)
{
    char to[300], rank0[300], rank1[300];
    snprintf(to, sizeof to, "%s", in_folder("new/job.db"));
    snprintf(rank0, sizeof rank0, "%s", in_folder("rank0.db"));
    snprintf(rank1, sizeof rank1, "%s", in_folder("rank1.db"));
    record_rank(rank0, 0);
    record_rank(rank1, 1);
    assert_merged(merge(to, rank0), 1, 0, 0, 0);
    assert_merged(merge(to, rank1), 1, 0, 0, 0);
    assert_int_equal(query_int(to, "SELECT count(*) FROM run"), 2);
    assert_int_equal(query_int(to, "SELECT sum(num_tasks) FROM task_stats WHERE run_id = 2"), 12);
    assert_int_equal(query_int(to, "SELECT count(*) FROM queue_stats"), 12);
    assert_int_equal(query_int(to, "SELECT count(*) FROM stage"), 6);
    assert_int_equal(query_int(to, "SELECT count(*) FROM task_failures WHERE typeof(label) = 'blob'"), 2);
    assert_int_equal(query_int(to, "SELECT count(*) FROM event_stats"), 2);
    assert_int_equal(query_int(to, "SELECT count(*) FROM task_stats WHERE phase = 'train' AND last_step = 0"), 2);
    execute(rank0, "DELETE FROM run"); /* what was copied is its own */
    assert_int_equal(query_int(to, "SELECT sum(num_tasks) FROM task_stats"), 24);
}

TEST_CASE(a_merged_run_has_all_that_was_recorded_of_it)
{
    static const char columns[] = "SELECT group_concat(name, ' || char(10) || ') FROM pragma_table_info('run') "
                                  "WHERE name NOT IN ('run_id', 'ended', 'status')";
    char from[300], to[300], sql[400];
    snprintf(from, sizeof from, "%s", in_folder("rank0.db"));
    snprintf(to, sizeof to, "%s", in_folder("job.db"));
    weir_sqlite_options options = { .rank = 1, .world = 4, .job = "job" };
    weir_sqlite_writer *writer = open_writer(from, &options);
    observe_start(weir_sqlite_observer(writer));
    close_writer(writer);
    assert_merged(merge(to, from), 1, 0, 0, 0);
    char *names = query_text(from, columns);
    snprintf(sql, sizeof sql, "SELECT %s FROM run", names);
    char *recorded = query_text(from, sql), *merged = query_text(to, sql);
    assert_string_equal(merged, recorded);
    assert_non_null(strstr(merged, "CPUs"));
    free(names);
    free(recorded);
    free(merged);
}

TEST_CASE(merged_twice_nothing_counts_twice)
{
    char to[300], from[300];
    snprintf(to, sizeof to, "%s", in_folder("job.db"));
    snprintf(from, sizeof from, "%s", in_folder("rank.db"));
    record_rank(from, 0);
    assert_merged(merge(to, from), 1, 0, 0, 0);
    assert_merged(merge(to, from), 0, 0, 1, 0);
    assert_int_equal(query_int(to, "SELECT sum(num_tasks) FROM task_stats"), 12);
    record_rank(from, 1); /* a second run in the same file */
    assert_merged(merge(to, from), 1, 0, 1, 0);
    assert_merged(merge(from, to), 0, 0, 2, 0); /* and back */
    assert_int_equal(query_int(to, "SELECT sum(num_tasks) FROM task_stats"), 24);
}

/* The signal waits from the beginning; the merge finds it while it copies. */
TEST_CASE(an_interrupt_ends_a_merge_into_a_new_database_and_leaves_nothing)
{
    char to[300], from[300];
    sigset_t interrupt, before;
    weir_merged merged;
    weir_error error = { 0 };
    snprintf(to, sizeof to, "%s", in_folder("new.db"));
    snprintf(from, sizeof from, "%s", in_folder("long.db"));
    weir_sqlite_writer *writer = recording_begin(from, "node", 0, 1000);
    for (int i = 0; i < 400; i++)
        record_lap(writer, &(invented_lap){ .at = 1010 + i, .num_tasks = 4 });
    recording_end(writer, 2000);

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    raise(SIGINT);
    assert_int_equal(weir_database_merge(to, from, &merged, &error), WEIR_ESTOPPED);
    assert_int_equal(sigwaitinfo(&interrupt, NULL), SIGINT);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_not_equal(access(to, F_OK), 0);
    assert_int_equal(merged.added, 0);
    assert_merged(merge(to, from), 1, 0, 0, 0);
}

TEST_CASE(a_run_that_went_on_is_replaced)
{
    char to[300], from[300];
    snprintf(to, sizeof to, "%s", in_folder("job.db"));
    snprintf(from, sizeof from, "%s", in_folder("live.db"));
    weir_sqlite_writer *writer = recording_begin(from, "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4 });
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    assert_merged(merge(to, from), 1, 0, 0, 0); /* while its writer is open */
    assert_merged(merge(to, from), 0, 0, 1, 0);
    record_lap(writer, &(invented_lap){ .at = 1020, .num_tasks = 8 });
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    assert_merged(merge(to, from), 0, 1, 0, 0);
    recording_end(writer, 1020);
    assert_merged(merge(to, from), 0, 1, 0, 0); /* now it has ended */
    assert_merged(merge(to, from), 0, 0, 1, 0);
    assert_int_equal(query_int(to, "SELECT count(*) FROM run"), 1);
    assert_int_equal(query_int(to, "SELECT sum(num_tasks) FROM task_stats"), 12);
    assert_int_equal(query_int(to, "SELECT count(*) FROM queue_stats"), 6);
    assert_int_equal(query_int(to, "SELECT count(*) FROM stage"), 3);
}

TEST_CASE(the_last_run_is_the_one_that_started_last)
{
    char to[300];
    snprintf(to, sizeof to, "%s", in_folder("job.db"));
    record_rank(to, 1);
    record_rank(in_folder("rank0.db"), 0); /* started before that, and gets a higher number */
    assert_merged(merge(to, in_folder("rank0.db")), 1, 0, 0, 0);
    weir_recording *recording;
    weir_run_record run;
    assert_int_equal(weir_recording_open(to, &recording, NULL), WEIR_OK);
    assert_int_equal(weir_recording_find_run(recording, WEIR_LAST_RUN, &run, NULL), WEIR_OK);
    assert_int_equal(run.run_id, 1);
    assert_int_equal(run.rank, 1);
    weir_recording_close(recording);
}

TEST_CASE(what_spdl_does_not_store_is_not_known)
{
    char path[300];
    weir_recording *recording;
    weir_totals totals;
    snprintf(path, sizeof path, "%s", in_folder("spdl.db"));
    execute(path,
            "CREATE TABLE task_stats (id INTEGER PRIMARY KEY, timestamp REAL, name TEXT, num_tasks INTEGER, "
            "num_failures INTEGER, ave_time REAL, p90_time REAL, p99_time REAL); "
            "CREATE TABLE queue_stats (id INTEGER PRIMARY KEY, timestamp REAL, name TEXT, elapsed REAL, num_items "
            "INTEGER, ave_put_time REAL, ave_get_time REAL, p90_put_time REAL, p99_put_time REAL, p90_get_time "
            "REAL, p99_get_time REAL, occupancy_rate REAL); "
            "CREATE TABLE event_stats (id INTEGER PRIMARY KEY, timestamp REAL, event_name TEXT); "
            "INSERT INTO queue_stats VALUES (1, 1010, 'q', 10, 4, 0.1, 0.2, 0, 0, 0, 0, 0.5)");
    assert_int_equal(weir_recording_open(path, &recording, NULL), WEIR_OK);
    assert_int_equal(weir_totals_read(recording, NULL, NULL, &totals, NULL), WEIR_OK);
    assert_true(isnan(total_value(&totals.of[WEIR_SUBJECT_QUEUE].all[0], "ave_depth")));
    assert_true(isnan(total_value(&totals.of[WEIR_SUBJECT_QUEUE].all[0], "max_depth")));
    assert_true(total_value(&totals.of[WEIR_SUBJECT_QUEUE].all[0], "occupancy_rate") == 0.5);
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

TEST_CASE(what_never_started_is_left_out)
{
    char from[300];
    snprintf(from, sizeof from, "%s", in_folder("never.db"));
    close_writer(open_writer(from, NULL));
    execute(from, "INSERT INTO run (node_id, rank, pid, started, command, version) VALUES ('n', 0, 1, 1, 'c', 'v')");
    assert_merged(merge(in_folder("job.db"), from), 0, 0, 0, 1);
    assert_int_equal(query_int(in_folder("job.db"), "SELECT count(*) FROM run"), 0);
}

TEST_CASE(a_database_is_not_merged_into_itself)
{
    weir_merged merged;
    weir_error error = { 0 };
    record_rank(in_folder("a.db"), 0);
    assert_int_equal(link(in_folder("a.db"), in_folder("same.db")), 0);
    assert_int_equal(weir_database_merge(in_folder("same.db"), in_folder("a.db"), &merged, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "into itself"));
    assert_int_equal(query_int(in_folder("a.db"), "SELECT count(*) FROM run"), 1);
}

TEST_CASE(what_cannot_be_read_whole_leaves_the_target_as_it_was)
{
    char to[300], from[300];
    snprintf(to, sizeof to, "%s", in_folder("job.db"));
    snprintf(from, sizeof from, "%s", in_folder("bad.db"));
    record_rank(to, 0);
    record_rank(from, 1);
    /* one run that can be copied, and one whose row the target refuses */
    execute(from,
            "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, 'num_tasks INTEGER NOT NULL', "
            "'num_tasks INTEGER') WHERE name = 'task_stats'");
    execute(from,
            "INSERT INTO run SELECT 2, 'other', 0, 1, 2000, NULL, NULL, 1, 'c', 'v', 0, '', 1, ''; INSERT INTO "
            "task_stats "
            "(timestamp, name, num_tasks, num_failures, ave_time, p90_time, p99_time, run_id, elapsed, histogram) "
            "SELECT timestamp, name, NULL, 0, 0, 0, 0, 2, elapsed, histogram FROM task_stats LIMIT 1");
    weir_merged merged;
    weir_error error = { 0 };
    assert_int_not_equal(weir_database_merge(to, from, &merged, &error), WEIR_OK);
    assert_non_null(strstr(error.message, "job.db"));
    assert_merged(merged, 0, 0, 0, 0);
    assert_int_equal(query_int(to, "SELECT count(*) FROM run"), 1);
    assert_int_equal(query_int(to, "SELECT sum(num_tasks) FROM task_stats"), 12);
}

/* -- checking */

typedef struct findings {
    int num_faults, num_notes, num_ok;
    char checks[1000]; /* of the faults, each once */
    char texts[8000];  /* of the faults and notes */
} findings;

static void count_finding(void *self, const weir_finding *finding)
{
    findings *found = self;
    if (finding->level == WEIR_FINDING_OK) {
        found->num_ok++;
        return;
    }
    size_t length = strlen(found->texts);
    snprintf(found->texts + length, sizeof found->texts - length, "%s\n", finding->text);
    if (finding->level == WEIR_FINDING_NOTE) {
        found->num_notes++;
        return;
    }
    found->num_faults++;
    length = strlen(found->checks);
    if (!strstr(found->checks, finding->check))
        snprintf(found->checks + length, sizeof found->checks - length, "%s ", finding->check);
}

static findings check(const char *path)
{
    findings found = { 0 };
    weir_recording *recording;
    weir_error error = { 0 };
    if (weir_recording_open(path, &recording, &error) != WEIR_OK ||
        weir_database_check(recording, false, count_finding, &found, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_recording_close(recording);
    return found;
}

TEST_CASE(what_a_run_has_written_has_no_fault)
{
    record_rank(in_folder("a.db"), 0);
    findings found = check(in_folder("a.db"));
    assert_string_equal(found.texts, "");
    assert_int_equal(found.num_ok, 11);
}

TEST_CASE(each_fault_is_found)
{
    static const struct {
        const char *sql, *checks, *text;
    } cases[] = {
        { "UPDATE task_stats SET num_tasks = 5 WHERE id = 1", "histograms ", "holds 4 times, and 5 were counted" },
        { "UPDATE task_stats SET histogram = x'02' WHERE id = 1", "histograms ", "row 1 of task_stats has no valid" },
        { "UPDATE task_stats SET success_time = 2 * success_time WHERE id = 1", "histograms ",
          "row 1 of task_stats: the times of histogram are not 0.2 s on the average" },
        { "UPDATE queue_stats SET get_histogram = x'' WHERE id = 2", "histograms ", "has no valid get_histogram" },
        { "UPDATE task_stats SET busy_time = 0 WHERE id = 2", "slots ", "add up to 40.000 s" },
        { "UPDATE task_stats SET timestamp = timestamp + 5 WHERE id = 2", "laps ", "5.000 s are missing" },
        { "UPDATE queue_stats SET timestamp = timestamp - 5 WHERE id = 5", "laps ", "5.000 s are recorded twice" },
        { "CREATE TEMP TABLE copy AS SELECT * FROM queue_stats WHERE id = 4; UPDATE copy SET id = NULL; "
          "INSERT INTO queue_stats SELECT * FROM copy",
          "laps ", "10.000 s are recorded twice" },
        { "DELETE FROM task_failures", "failures ", "1 tasks failed, and 0 failures are recorded" },
        { "UPDATE queue_stats SET num_put = 9, put_histogram = (SELECT put_histogram FROM queue_stats WHERE id = 4) "
          "WHERE id = 4",
          "histograms queues ", "of 13 items put in 12 were taken out" },
        { "UPDATE queue_stats SET occupied_time = 1.5 * elapsed WHERE id = 1", "queues ", "an occupancy of 1.5" },
        { "UPDATE run SET entries_lost = 3", "run ", "3 entries could not be written" },
        { "INSERT INTO event_stats VALUES (NULL, 1, 'e', 44, '', '')", "references ",
          "event_stats belongs to a run" },
        { "INSERT INTO stack VALUES (1, 1, 0, 'f'); INSERT INTO stack_stats (run_id, stack, num_samples) VALUES (1, "
          "7, 1)",
          "stacks ", "row 1 of stack_stats: stack 7 is not there" },
        { "INSERT INTO stack VALUES (1, 1, 0, 'f'), (1, 2, 1, 'g'), (1, 3, 5, 'h'), (1, 5, 1, 'i')", "stacks ",
          "stack 3: its caller 5 is not there" },
        { "ALTER TABLE task_failures RENAME COLUMN label TO path", "schema ", "task_failures has no column label" },
        { "DROP TABLE queue_stats", "schema ", "queue_stats has no column id" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = in_folder("a.db");
        record_rank(path, 0);
        execute(path, "DELETE FROM roll"); /* test_rolls.c has their faults */
        execute(path, cases[i].sql);
        findings found = check(path);
        if (strcmp(found.checks, cases[i].checks) != 0 || !strstr(found.texts, cases[i].text))
            fail_msg("after %s: %s: %s", cases[i].sql, found.checks, found.texts);
        assert_int_equal(unlink(path), 0);
    }
}

TEST_CASE(a_metric_that_was_added_since_is_no_fault)
{
    record_rank(in_folder("a.db"), 0);
    execute(in_folder("a.db"), "ALTER TABLE queue_stats DROP COLUMN latency_histogram");
    findings found = check(in_folder("a.db"));
    assert_string_equal(found.texts, "not checked: no such column: latency_histogram\n");
    assert_int_equal(found.num_faults, 0);
}

/* The clock of the wall is read a moment after a lap was cut; on a busy machine that moment may be long. */
TEST_CASE(timestamps_may_be_a_little_late)
{
    const char *path = in_folder("a.db");
    record_rank(path, 0);
    execute(path, "UPDATE task_stats SET timestamp = timestamp + 0.2 WHERE id = 1;"
                  "UPDATE queue_stats SET timestamp = timestamp + 0.2 WHERE id <= 3");
    assert_string_equal(check(path).texts, "");
}

/* The summary says so, and the duration is still in seconds. */
static void assert_clock_was_set(const char *path)
{
    char text[8192] = "";
    weir_recording *recording;
    assert_int_equal(weir_recording_open(path, &recording, NULL), WEIR_OK);
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_int_equal(weir_summary_write(out, recording, NULL, NULL, NULL, NULL), WEIR_OK);
    fclose(out);
    weir_recording_close(recording);
    assert_non_null(strstr(text, " s (the clock was set during the run)"));
}

/* The laps before it were an hour later. */
TEST_CASE(a_clock_that_was_set_is_no_fault)
{
    const char *path = in_folder("a.db");
    record_rank(path, 0);
    execute(path, "UPDATE task_stats SET timestamp = timestamp + 3600 WHERE id = 1;"
                  "UPDATE queue_stats SET timestamp = timestamp + 3600 WHERE id <= 3;"
                  "UPDATE run SET started = started + 3600;"
                  "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail)"
                  " VALUES (1000, 'clock_set', 1, 'pipeline', '-3600.000 s')");
    assert_string_equal(check(path).texts, "");
    assert_clock_was_set(path);
}

TEST_CASE(a_clock_that_was_set_back_again_is_told)
{
    const char *path = in_folder("a.db");
    record_rank(path, 0);
    execute(path, "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail)"
                  " VALUES (1000, 'clock_set', 1, 'pipeline', '-3600.000 s'),"
                  " (1000, 'clock_set', 1, 'pipeline', '+3600.000 s')");
    assert_clock_was_set(path);
}

TEST_CASE(short_laps_reported_twice_are_found)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "node", 0, 1000);
    for (int i = 0; i < 2; i++)
        record_lap(writer, &(invented_lap){ .at = 1000.1, .elapsed = 0.1, .num_tasks = 4 });
    recording_end(writer, 1001);
    assert_string_equal(check(path).checks, "laps ");
}

TEST_CASE(many_faults_of_a_kind_are_counted)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "node", 0, 1000);
    for (int i = 1; i <= 40; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = 1 });
    recording_end(writer, 1400);
    execute(path, "UPDATE task_stats SET busy_time = 0");
    findings found = check(path);
    assert_int_equal(found.num_faults, 6);
    assert_non_null(strstr(found.texts, "and 35 more of this kind"));
}

TEST_CASE(a_run_that_has_not_ended_is_a_note)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4 });
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    findings found = check(path);
    assert_int_equal(found.num_faults, 0);
    assert_int_equal(found.num_notes, 1);
    assert_non_null(strstr(found.texts, "has not ended"));
    recording_end(writer, 1010);
}

/* Slots that come and go leave no fixed sum to compare with. */
TEST_CASE(a_change_of_concurrency_is_no_fault)
{
    const char *path = in_folder("a.db");
    record_rank(path, 0);
    execute(path,
            "UPDATE task_stats SET busy_time = 1; UPDATE event_stats SET event_name = 'concurrency'; DELETE FROM"
            " roll");
    assert_int_equal(check(path).num_faults, 0);
}

TEST_CASE(a_damaged_file_is_reported)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "node", 0, 1000);
    for (int i = 1; i <= 200; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = 1 });
    recording_end(writer, 3000);
    size_t size;
    char *bytes = read_file(path, &size);
    memset(bytes + size / 4 * 3, 0xa5, 4096); /* behind the schema */
    write_file(path, bytes, size);
    free(bytes);

    findings found = { 0 };
    weir_recording *recording;
    assert_int_equal(weir_recording_open(path, &recording, NULL), WEIR_OK);
    int status = weir_database_check(recording, false, count_finding, &found, NULL);
    assert_true(status == WEIR_OK || status == WEIR_EDATA);
    assert_non_null(strstr(found.checks, "integrity"));
    weir_recording_close(recording);
}

int main(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    return test_cases_run(make_folder, remove_folder, NULL, NULL);
}
