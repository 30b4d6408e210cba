/* The summary: its text to the letter, its weights, and databases that are not as one would wish. */
#include "tests/stats_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/summary.h>
#include <weir/verdict.h>

#define EQUALS "================================================================================\n"
#define DASHES "--------------------------------------------------------------------------------\n"

/* The printed summary of a run; the caller frees it. */
static char *summary_of(const char *path, int64_t run_id)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_error error = { 0 };
    if (print_summary(out, path, run_id, weir_verdict_write_limit, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    fclose(out);
    return text;
}

static char *failures_of(const char *path, int64_t run_id, size_t at_most)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_error error = { 0 };
    if (print_failures(out, path, run_id, at_most, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    fclose(out);
    return text;
}

static void assert_text(char *text, const char *wanted)
{
    assert_string_equal(text, wanted);
    free(text);
}

static void assert_has(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("no \"%s\" in:\n%s", wanted, text);
}

static void assert_summary_has(const char *path, int64_t run_id, const char *wanted)
{
    char *text = summary_of(path, run_id);
    assert_has(text, wanted);
    free(text);
}

/* A run of two laps with 4 and 8 tasks, ended; returns its id. */
static int64_t record_run(const char *path)
{
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_lap(observer, 0, 4);
    observe_lap(observer, 1, 8);
    observe_end(observer, WEIR_OK);
    int64_t run_id = weir_sqlite_run_id(writer);
    close_writer(writer);
    return run_id;
}

TEST_CASE(text_is_the_designs_to_the_letter)
{
    const char *path = in_folder("a.db");
    record_run(path);
    char wanted[8000];
    snprintf(
        wanted, sizeof wanted,
        EQUALS
        "PIPELINE PERFORMANCE SUMMARY\n" EQUALS "📊 Task Statistics:\n" DASHES "\n"
        "  Stage: 0:1:decode[10]\n"
        "    Total tasks processed: 12\n"
        "    Total failures: 3\n"
        "    Average task time: 0.1000s\n"
        "    Success rate: 75.0%%\n"
        "    Number of log entries: 2\n"
        "    Task time min / p50 / p90 / p99 / max: 90.0 ms / 100 ms / 100 ms / 100 ms / 100 ms\n"
        "    Slot time: 50.0%% busy (80.0%% of it on a CPU), 25.0%% waiting for input, 15.0%% for a thread, "
        "10.0%% for room\n"
        "    Average time of failed tasks: 0.0100s\n"
        "    Failed tasks: 0.1%% of the slot time\n"
        "    Memory held: highest 5.00 MB\n"
        "\n"
        "📈 Queue Statistics:\n" DASHES "\n"
        "  Queue: 0:0:src_queue\n"
        "    Total items processed: 12\n"
        "    Average QPS: 3.00\n"
        "    Average put time: 0.0040s\n"
        "    Average get time: 0.0200s\n"
        "    Average occupancy rate: 50.0%%\n"
        "    Number of log entries: 2\n"
        "    Put time p50 / p90 / p99 / max: 4.00 ms / 4.00 ms / 4.00 ms / 4.00 ms\n"
        "    Get time p50 / p90 / p99 / max: 20.0 ms / 20.0 ms / 20.0 ms / 20.0 ms\n"
        "    Level: average 1.5, highest 2 of 2 items; average 1.50 MB, highest 2.00 MB\n"
        "\n"
        "  Queue: 0:1:decode[10]_queue\n"
        "    Total items processed: 9\n"
        "    Average QPS: 2.25\n"
        "    Average put time: 0.0040s\n"
        "    Average get time: 0.0200s\n"
        "    Average occupancy rate: 50.0%%\n"
        "    Number of log entries: 2\n"
        "    Put time p50 / p90 / p99 / max: 4.00 ms / 4.00 ms / 4.00 ms / 4.00 ms\n"
        "    Get time p50 / p90 / p99 / max: 20.0 ms / 20.0 ms / 20.0 ms / 20.0 ms\n"
        "    Level: average 1.5, highest 2 of 2 items; average 1.50 MB, highest 2.00 MB\n"
        "\n"
        "  Queue: 0:2:sink_queue\n"
        "    Total items processed: 9\n"
        "    Average QPS: 2.25\n"
        "    Average put time: 0.0040s\n"
        "    Average get time: 0.0200s\n"
        "    Average occupancy rate: 50.0%%\n"
        "    Number of log entries: 2\n"
        "    Put time p50 / p90 / p99 / max: 4.00 ms / 4.00 ms / 4.00 ms / 4.00 ms\n"
        "    Get time p50 / p90 / p99 / max: 20.0 ms / 20.0 ms / 20.0 ms / 20.0 ms\n"
        "    Level: average 1.5, highest 2 of 2 items; average 1.50 MB, highest 2.00 MB\n"
        "\n" EQUALS "Database: %s\n"
        "Run 1: finished after 0:01:40\n"
        "Limit: The data cannot tell what limits the run. (weir explain says what to record to find out)\n" EQUALS,
        path);
    assert_text(summary_of(path, 0), wanted);
}

/* One lap of a stage: successes of time_ns each, and failures that must not count. */
static void observe_tasks(weir_observer observer, uint64_t num_successes, int64_t time_ns, uint64_t num_failures)
{
    weir_histogram *times = calloc(1, sizeof *times);
    assert_non_null(times);
    for (uint64_t i = 0; i < num_successes; i++)
        weir_histogram_record(times, time_ns);
    weir_subject_lap lap = { .subject = WEIR_SUBJECT_STAGE,
                             .kind = "stage",
                             .name = "0:1:work",
                             .lap = &(weir_lap){ .elapsed_ns = WEIR_SECOND },
                             .metrics.task = { .num_tasks = num_successes + num_failures,
                                               .num_failures = num_failures,
                                               .success_ns = (int64_t)num_successes * time_ns,
                                               .failed_ns = (int64_t)num_failures * WEIR_SECOND,
                                               .min_ns = time_ns,
                                               .max_ns = time_ns,
                                               .run_times = times } };
    observer.lap(observer.self, &lap);
    free(times);
}

TEST_CASE(means_are_weighted_by_what_they_are_means_of)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_tasks(observer, 1, WEIR_SECOND, 99);    /* 100 tasks, one of which succeeded */
    observe_tasks(observer, 3, 2 * WEIR_SECOND, 0); /* mean of successes: 7/4 s; of laps: 1.5; by tasks: 1.03 */
    observer.lap(observer.self, &(weir_subject_lap){ .subject = WEIR_SUBJECT_QUEUE,
                                                     .kind = "queue",
                                                     .name = "q",
                                                     .capacity = 4,
                                                     .lap = &(weir_lap){ .elapsed_ns = 9 * WEIR_SECOND },
                                                     .metrics.queue = { .occupied_ns = 9 * WEIR_SECOND,
                                                                        .num_put = 1,
                                                                        .put_ns = WEIR_SECOND,
                                                                        .num_items = 3,
                                                                        .get_ns = 3 * WEIR_SECOND,
                                                                        .depth_ns = 9.0 * (double)WEIR_SECOND,
                                                                        .max_depth = 1 } });
    observer.lap(
        observer.self,
        &(weir_subject_lap){
            .subject = WEIR_SUBJECT_QUEUE,
            .kind = "queue",
            .name = "q",
            .capacity = 4,
            .lap = &(weir_lap){ .elapsed_ns = WEIR_SECOND },
            .metrics.queue = {
                .occupied_ns = 0, .num_put = 3, .put_ns = 0, .num_items = 1, .get_ns = 0, .max_depth = 1 } });
    close_writer(writer);

    char *text = summary_of(path, 0);
    assert_has(text, "    Total tasks processed: 103\n"
                     "    Total failures: 99\n"
                     "    Average task time: 1.7500s\n"
                     "    Success rate: 3.9%\n"
                     "    Number of log entries: 2\n"
                     "    Task time min / p50 / p90 / p99 / max: 1.00 s / 2.00 s / 2.00 s / 2.00 s / 2.00 s\n");
    assert_has(text, "    Total items processed: 4\n"
                     "    Average QPS: 0.40\n"
                     "    Average put time: 0.2500s\n"
                     "    Average get time: 0.7500s\n"
                     "    Average occupancy rate: 90.0%\n"
                     "    Number of log entries: 2\n"
                     "    Level: average 0.9, highest 1 of 4 items\n");
    free(text);
}

/* The line is SPDL's, in seconds; such a short average is printed again with its unit. */
TEST_CASE(short_times_have_a_unit)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    observe_tasks(weir_sqlite_observer(writer), 3, 3550, 0);
    close_writer(writer);
    char *text = summary_of(path, 0);
    assert_has(text, "    Average task time: 0.0000s\n");
    assert_has(text, " us / 3.55 us; average 3.55 us\n");
    free(text);
}

TEST_CASE(percentiles_come_from_all_laps_together)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_tasks(observer, 95, 10 * WEIR_MILLISECOND, 0);
    observe_tasks(observer, 5, WEIR_SECOND, 0);
    close_writer(writer);
    assert_summary_has(path, 0, "max: 10.0 ms / 10.0 ms / 10.0 ms / 1.00 s / 1.00 s\n");
}

TEST_CASE(each_run_of_a_file_has_its_own_summary)
{
    const char *path = in_folder("a.db");
    int64_t first = record_run(path);
    weir_sqlite_writer *writer = open_writer(path, NULL);
    observe_start(weir_sqlite_observer(writer));
    observe_lap(weir_sqlite_observer(writer), 0, 100);
    observe_end(weir_sqlite_observer(writer), WEIR_OK);
    int64_t second = weir_sqlite_run_id(writer);
    close_writer(writer);

    assert_summary_has(path, first, "    Total tasks processed: 12\n");
    assert_summary_has(path, second, "    Total tasks processed: 100\n");
    assert_summary_has(path, 0, "    Total tasks processed: 100\n");

    weir_error error = { 0 };
    assert_int_equal(print_summary(stdout, path, 77, NULL, &error), WEIR_ENOTFOUND);
    assert_has(error.message, "no run 77");
    assert_has(error.message, path);
}

TEST_CASE(a_run_under_way_is_summed_up_and_said_to_be)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_lap(observer, 0, 4);
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    char wanted[1000];
    snprintf(wanted, sizeof wanted, EQUALS "Database: %s\nRun %lld: running for ", path,
             (long long)weir_sqlite_run_id(writer));
    char *text = summary_of(path, 0);
    assert_has(text, "    Total tasks processed: 4\n");
    assert_has(text, wanted);
    free(text);
    close_writer(writer);
}

TEST_CASE(lost_entries_are_said)
{
    const char *path = in_folder("a.db");
    record_run(path);
    execute(path, "UPDATE run SET entries_lost = 5");
    assert_summary_has(path, 0, "\n5 entries could not be written: the metrics above lack them.\n" EQUALS);
    execute(path, "UPDATE run SET entries_lost = 1");
    assert_summary_has(path, 0, "\n1 entry could not be written: the metrics above lack it.\n" EQUALS);
}

TEST_CASE(damage_is_added_up_by_run)
{
    const char *path = in_folder("a.db");
    int64_t first = record_run(path), second = record_run(path);
    execute(path, "INSERT INTO item_stats (run_id, name, num_missing, num_errors) VALUES (1, '0:0:x', 2, 0), "
                  "(1, '0:0:x', 0, 0), (1, '0:0:x', 0, 1), (2, '0:0:x', 9e18, -1), (2, '0:0:x', 9e18, '')");
    assert_summary_has(path, first, "\n2 items succeeded with damage: 2 frames lost, 1 error (");
    assert_summary_has(path, second, "\n2 items succeeded with damage: 9223372036854775807 frames lost, 0 errors (");
    execute(path, "ALTER TABLE item_stats DROP COLUMN num_missing");
    char *text = summary_of(path, second);
    assert_null(strstr(text, "damage"));
    free(text);
}

TEST_CASE(a_run_without_laps_has_the_frame)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    observe_start(weir_sqlite_observer(writer));
    observe_end(weir_sqlite_observer(writer), WEIR_ESTOPPED);
    close_writer(writer);
    char wanted[1000];
    snprintf(wanted, sizeof wanted,
             EQUALS "PIPELINE PERFORMANCE SUMMARY\n" EQUALS "📊 Task Statistics:\n" DASHES
                    "\n📈 Queue Statistics:\n" DASHES "\n" EQUALS
                    "Database: %s\nRun 1: stopped after 0:01:40\n" EQUALS,
             path);
    assert_text(summary_of(path, 0), wanted);
}

TEST_CASE(stages_come_in_the_order_of_the_pipeline)
{
    const char *path = in_folder("a.db");
    weir_stage_info stages[12];
    char names[12][40], queue_names[12][48];
    for (unsigned i = 0; i < 12; i++) { /* "0:10:…" comes before "0:2:…" in the alphabet */
        snprintf(names[i], sizeof names[i], "0:%u:s", i);
        snprintf(queue_names[i], sizeof queue_names[i], "0:%u:s_queue", i);
        stages[i] = (weir_stage_info){ names[i],
                                       queue_names[i],
                                       i == 0 ? "source" : i == 11 ? "sink" : "stage",
                                       1,
                                       2,
                                       0,
                                       "completion",
                                       "",
                                       "",
                                       0,
                                       0 };
    }
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observer.run_start(observer.self, &(weir_run_info){ .stages = stages, .num_stages = 12 });
    for (int i = 11; i >= 0; i--) { /* reported in the wrong order */
        observer.lap(observer.self, &(weir_subject_lap){ .subject = WEIR_SUBJECT_QUEUE,
                                                         .kind = "queue",
                                                         .name = queue_names[i],
                                                         .lap = &(weir_lap){ .elapsed_ns = 0 } });
        if (i > 0 && i < 11)
            observer.lap(observer.self, &(weir_subject_lap){ .subject = WEIR_SUBJECT_STAGE,
                                                             .kind = "stage",
                                                             .name = names[i],
                                                             .lap = &(weir_lap){ .elapsed_ns = 0 } });
    }
    close_writer(writer);

    char *text = summary_of(path, 0);
    const char *at = text;
    for (int i = 1; i < 11; i++) {
        char wanted[640];
        snprintf(wanted, sizeof wanted, "  Stage: %s\n", names[i]);
        at = strstr(at, wanted);
        assert_non_null(at);
    }
    for (int i = 0; i < 12; i++) {
        char wanted[640];
        snprintf(wanted, sizeof wanted, "  Queue: %s\n", queue_names[i]);
        at = strstr(at, wanted);
        assert_non_null(at);
    }
    free(text);
}

/* -- failures */

TEST_CASE(failures_are_listed_up_to_a_number)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_failure(observer, 3, "/data/a \"b\".mp4", "moov atom not found");
    observe_failure(observer, 4, "/data/two\nlines\x1b[31m.mp4", "bad\tdata");
    observe_failure(observer, 5, "", "");
    observe_failure(observer, 6, "bad \xff.mp4", "x");
    observe_end(observer, WEIR_OK);
    int64_t run_id = weir_sqlite_run_id(writer);
    close_writer(writer);

    assert_text(failures_of(path, 0, 10),
                "Failures: 4\n"
                "  /data/a \"b\".mp4: moov atom not found (0:1:decode[10], WEIR_EDATA)\n"
                "  /data/two\\nlines\\x1b[31m.mp4: bad\\x09data (0:1:decode[10], WEIR_EDATA)\n"
                "  item 5: damaged or unusable data (0:1:decode[10], WEIR_EDATA)\n"
                "  bad \\xff.mp4: x (0:1:decode[10], WEIR_EDATA)\n");
    char wanted[400];
    snprintf(wanted, sizeof wanted,
             "Failures: 4\n"
             "  /data/a \"b\".mp4: moov atom not found (0:1:decode[10], WEIR_EDATA)\n"
             "  and 3 more in the table task_failures, run %lld\n",
             (long long)run_id);
    assert_text(failures_of(path, run_id, 1), wanted);
}

TEST_CASE(without_failures_nothing_is_listed)
{
    const char *path = in_folder("a.db");
    record_run(path);
    assert_text(failures_of(path, 0, 10), "");
}

/* -- databases that are not as one would wish */

static void assert_unreadable(const char *path, int status, const char *wanted)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < 2; i++) {
        weir_error error = { 0 };
        int result = i ? print_summary(out, path, 0, NULL, &error) : print_failures(out, path, 0, 10, &error);
        if (result != status || !strstr(error.message, wanted) || !strstr(error.message, path))
            fail_msg("%s, not %s (%s): %s", weir_status_name(result), weir_status_name(status), wanted,
                     error.message);
    }
    fclose(out);
    assert_string_equal(text, "");
    free(text);
}

TEST_CASE(what_holds_no_run_of_ours_is_named)
{
    static const char text[] = "not a database, but long enough to be taken for the header of one, a hundred bytes, "
                               "and a little more than that";
    assert_unreadable(in_folder("missing.db"), WEIR_ENOTFOUND, "there is no database");
    assert_unreadable(in_folder("missing/a.db"), WEIR_ENOTFOUND, "there is no database");
    assert_unreadable("", WEIR_EINVAL, "no path");
    assert_unreadable(in_folder(""), WEIR_EINVAL, "a folder");
    write_file(in_folder("empty.db"), "", 0);
    assert_unreadable(in_folder("empty.db"), WEIR_EDATA, "is empty");
    write_file(in_folder("a.txt"), text, sizeof text - 1);
    assert_unreadable(in_folder("a.txt"), WEIR_EDATA, "not a database");
    execute(in_folder("other.db"), "CREATE TABLE task_stats (id, name)");
    assert_unreadable(in_folder("other.db"), WEIR_EDATA, "another program");
    close_writer(open_writer(in_folder("a.db"), NULL));
    assert_unreadable(in_folder("a.db"), WEIR_ENOTFOUND, "no run");
    execute(in_folder("a.db"), "PRAGMA user_version = 99");
    assert_unreadable(in_folder("a.db"), WEIR_EUNSUPPORTED, "schema 99");
}

TEST_CASE(a_damaged_histogram_is_reported_with_its_row)
{
    const char *path = in_folder("a.db");
    record_run(path);
    execute(path, "UPDATE queue_stats SET put_histogram = x'0102' WHERE id = 3");
    weir_error error = { 0 };
    assert_int_equal(print_summary(stdout, path, 0, NULL, &error), WEIR_EDATA);
    assert_has(error.message, "row 3 of queue_stats has no valid put_histogram");
}

TEST_CASE(nothing_is_printed_of_what_cannot_be_read)
{
    const char *path = in_folder("a.db");
    FILE *out = tmpfile();
    weir_error error = { 0 };
    assert_non_null(out);
    record_run(path);
    execute(path, "DROP TABLE stage");
    assert_int_not_equal(print_summary(out, path, 0, weir_verdict_write_limit, &error), WEIR_OK);
    assert_has(error.message, "stage");
    assert_int_equal(ftell(out), 0);
    fclose(out);
}

TEST_CASE(what_cannot_be_printed_is_reported)
{
    const char *path = in_folder("a.db");
    record_run(path);
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        print_message("no /dev/full here\n");
        skip();
    }
    weir_error error = { 0 };
    assert_int_equal(print_summary(full, path, 0, NULL, &error), WEIR_EIO);
    fclose(full);
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
