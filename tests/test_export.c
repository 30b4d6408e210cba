/* Runs weir export: its output, and its messages if there is nothing to export. */
#include "tests/stats_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AWKWARD "it's \"quoted\",\nin two lines \\ \xff"

/* Runs `weir export` with these arguments, in the test's folder; stdout goes to "out", stderr to "err". */
static int export(const char *arguments)
{
    const char *program = getenv("WEIR_TOOL");
    if (!program)
        fail_msg("WEIR_TOOL is not set: run this test with ctest");
    char command[2048];
    snprintf(command, sizeof command, "cd '%s' && exec '%s' export %s >out 2>err", in_folder(""), program, arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_export(const char *arguments, int exit_status)
{
    int got = export(arguments);
    if (got != exit_status) {
        char *said = read_file(in_folder("err"), NULL);
        fail_msg("export %s: exit status %d: %s", arguments, got, said);
    }
}

static void assert_holds(const char *name, const char *text)
{
    char *all = read_file(in_folder(name), NULL);
    if (!strstr(all, text))
        fail_msg("%s: no %s in\n%s", name, text, all);
    free(all);
}

static void assert_lacks(const char *name, const char *text)
{
    char *all = read_file(in_folder(name), NULL);
    if (strstr(all, text))
        fail_msg("%s: %s in\n%s", name, text, all);
    free(all);
}

/* The value that SQLite's JSON functions find at a path; to be freed. */
static char *json_at(const char *name, const char *path)
{
    char *text = read_file(in_folder(name), NULL), *value = NULL;
    sqlite3 *db = connect_to(":memory:");
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT json_extract(?, ?)", -1, &row, NULL), SQLITE_OK);
    sqlite3_bind_text(row, 1, text, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 2, path, -1, SQLITE_STATIC);
    if (sqlite3_step(row) != SQLITE_ROW)
        fail_msg("%s, %s: %s\n%s", name, path, sqlite3_errmsg(db), text);
    const char *found = (const char *)sqlite3_column_text(row, 0);
    value = strdup(found ? found : "null");
    sqlite3_finalize(row);
    sqlite3_close(db);
    free(text);
    return value;
}

static void assert_json(const char *name, const char *path, const char *expected)
{
    char *value = json_at(name, path);
    assert_string_equal(value, expected);
    free(value);
}

static weir_sqlite_writer *record(const char *name, int num_laps)
{
    weir_sqlite_options options = { .node_id = "node", .command = "program" };
    weir_sqlite_writer *writer = open_writer(in_folder(name), &options);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    for (int i = 0; i < num_laps; i++)
        observe_lap(observer, i, 100);
    return writer;
}

static void record_whole_run(const char *name)
{
    weir_sqlite_writer *writer = record(name, 2);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_event event = { .unix_ns = 1003 * WEIR_SECOND, .name = AWKWARD, .category = "user", .detail = AWKWARD };
    observer.event(observer.self, &event);
    observe_failure(observer, 7, AWKWARD, "no \"moov\"\r\natom");
    observe_end(observer, WEIR_OK);
    close_writer(writer);
}

static bool promtool_is_there(void)
{
    bool there = system("promtool --version >/dev/null 2>&1") == 0;
    if (!there)
        print_message("promtool is not installed (Debian: prometheus): not checked by it\n");
    return there;
}

TEST_CASE(openmetrics_tells_sums_and_promtool_accepts_it)
{
    record_whole_run("a.db");
    record_whole_run("a.db");
    assert_export("a.db --format openmetrics --run all -o weir.prom", 0);
    assert_holds("weir.prom", "\nweir_stage_time_seconds_count{node=\"node\",rank=\"0\",run=\"1\","
                              "stage=\"0:1:decode[10]\",kind=\"stage\"} 150\n");
    assert_holds("weir.prom", "\nweir_stage_time_seconds_bucket{node=\"node\",rank=\"0\",run=\"2\","
                              "stage=\"0:1:decode[10]\",kind=\"stage\",le=\"0.134217727\"} 150\n");
    assert_holds("weir.prom", "\nweir_stage_failures_total{node=\"node\",rank=\"0\",run=\"2\","
                              "stage=\"0:1:decode[10]\",kind=\"stage\"} 50\n");
    assert_holds("weir.prom", "\nweir_events_total{node=\"node\",rank=\"0\",run=\"2\",event=\"it's \\\"quoted\\\",\\n"
                              "in two lines \\\\ \\\\xff\",category=\"user\"} 1\n");
    assert_holds("weir.prom", "\n# EOF\n");
    assert_export("a.db --format openmetrics --run last", 0);
    assert_lacks("out", "run=\"1\"");
    if (!promtool_is_there())
        skip();
    char command[1024];
    snprintf(command, sizeof command, "promtool check metrics <'%s'", in_folder("weir.prom"));
    assert_int_equal(system(command), 0);
}

TEST_CASE(openmetrics_by_lap_is_history_that_prometheus_imports)
{
    record_whole_run("a.db");
    assert_export("a.db --format openmetrics --laps -o weir.om", 0);
#define DECODE "{node=\"node\",rank=\"0\",run=\"1\",stage=\"0:1:decode[10]\",kind=\"stage\""
    assert_holds("weir.om", "\nweir_stage_time_seconds_count" DECODE "} 75 1002.000\n");
    assert_holds("weir.om", "\nweir_stage_time_seconds_count" DECODE "} 150 1004.000\n");
    assert_holds("weir.om", "\nweir_stage_time_seconds_sum" DECODE "} 15 1004.000\n");
    assert_holds("weir.om", "\nweir_stage_time_percentile_seconds" DECODE ",percentile=\"99\"} ");
    assert_holds("weir.om", "\nweir_stage_busy_seconds_total" DECODE "} 20 1004.000\n");
    assert_holds("weir.om", "\nweir_queue_depth_seconds_total{node=\"node\",rank=\"0\",run=\"1\","
                            "queue=\"0:2:sink_queue\"} 6 1004.000\n");
    assert_holds("weir.om", "\n# EOF\n");
    assert_export("a.db --format json --laps", 2);
    assert_holds("err", "--laps");
    if (!promtool_is_there())
        skip();
    char command[1024];
    snprintf(command, sizeof command, "promtool tsdb create-blocks-from openmetrics '%s' '%s' >'%s' 2>&1",
             in_folder("weir.om"), in_folder("data"), in_folder("out"));
    assert_int_equal(system(command), 0);
}

/* The laps of an interval (by mode and phase) end at almost the same time. A reader keeps whole milliseconds, and one
   sample of each. */
TEST_CASE(laps_that_end_in_one_millisecond_are_one_sample_with_all_of_them)
{
    record_whole_run("a.db");
    execute(in_folder("a.db"), "UPDATE task_stats SET timestamp = 1004 - 0.0002 * (2 - id)");
    assert_export("a.db --format openmetrics --laps -o weir.om", 0);
    assert_lacks("weir.om", "\nweir_stage_time_seconds_count" DECODE "} 75 ");
    assert_holds("weir.om", "\nweir_stage_time_seconds_count" DECODE "} 150 1004.000\n");
    execute(in_folder("a.db"), "UPDATE task_stats SET timestamp = 1004 - 0.002 * (2 - id)");
    assert_export("a.db --format openmetrics --laps --force -o weir.om", 0);
    assert_holds("weir.om", "\nweir_stage_time_seconds_count" DECODE "} 75 1003.998\n");
    assert_holds("weir.om", "\nweir_stage_time_seconds_count" DECODE "} 150 1004.000\n");
}

/* The latency of a queue that is not the sink's is not known: no histogram with a sum that is not a number. */
TEST_CASE(openmetrics_has_no_figure_that_is_not_known)
{
    record_whole_run("a.db");
    execute(in_folder("a.db"), "UPDATE queue_stats SET latency_time = iif(name = '0:2:sink_queue', 1, NULL)");
    assert_export("a.db --format openmetrics -o weir.prom", 0);
    assert_lacks("weir.prom", "NaN");
    assert_lacks("weir.prom",
                 "weir_queue_latency_seconds_count{node=\"node\",rank=\"0\",run=\"1\",queue=\"0:0:src_queue\"}");
    assert_holds("weir.prom",
                 "weir_queue_latency_seconds_count{node=\"node\",rank=\"0\",run=\"1\",queue=\"0:2:sink_queue\"}");
}

/* A sum that is not known has no histogram, unless there is nothing to sum. */
TEST_CASE(openmetrics_has_no_histogram_whose_sum_is_not_known)
{
#define SRC "{node=\"node\",rank=\"0\",run=\"1\",queue=\"0:0:src_queue\"} "
    record_whole_run("a.db");
    execute(in_folder("a.db"), "UPDATE queue_stats SET put_time = NULL");
    execute(
        in_folder("a.db"),
        "UPDATE queue_stats SET get_time = NULL, get_histogram = NULL, num_items = 0 WHERE name = '0:0:src_queue'");
    assert_export("a.db --format openmetrics -o weir.prom", 0);
    assert_lacks("weir.prom", "weir_queue_put_time_seconds_count" SRC);
    assert_lacks("weir.prom", "weir_queue_latency_seconds_count" SRC);
    assert_holds("weir.prom", "\nweir_queue_get_time_seconds_count" SRC "0\n");
    execute(in_folder("a.db"), "UPDATE queue_stats SET num_items = 1 WHERE name = '0:0:src_queue'");
    execute(in_folder("a.db"), "DELETE FROM queue_stats WHERE name = '0:0:src_queue' AND timestamp > 1003");
    assert_export("a.db --format openmetrics --force -o weir.prom", 0);
    assert_lacks("weir.prom", "weir_queue_get_time_seconds_count" SRC);
}

TEST_CASE(json_holds_every_record)
{
    record_whole_run("a.db");
    assert_export("a.db --format json", 0);
    assert_json("out", "$.database", "a.db");
    assert_json("out", "$.runs[0].status", "WEIR_OK");
    assert_json("out", "$.stages[1].name", "0:1:decode[10]");
    assert_json("out", "$.tasks[1].num_tasks", "100");
    assert_json("out", "$.tasks[2].num_tasks", "null");
    assert_json("out", "$.queues[5].name", "0:2:sink_queue");
    assert_json("out", "$.queues[5].occupancy_rate", "0.5");
    assert_json("out", "$.failures[0].status", "WEIR_EDATA");
    assert_json("out", "$.failures[0].message", "no \"moov\"\r\natom");
    assert_json("out", "$.items[0]", "null");
    assert_holds("out", "\"it's \\\"quoted\\\",\\nin two lines \\\\ \\\\xff\"");

    assert_export("a.db --format json --table queues --name sink_queue", 0);
    assert_json("out", "$[1].name", "0:2:sink_queue");
    assert_json("out", "$[2].name", "null");
}

TEST_CASE(csv_is_a_file_for_each_table)
{
    record_whole_run("a.db");
    assert_export("a.db --format csv -o tables", 0);
    assert_holds("tables/tasks.csv", "id,run_id,timestamp,elapsed,name,");
    assert_holds("tables/tasks.csv", "\r\n1,1,1002,2,0:1:decode[10],");
    assert_holds("tables/events.csv", ",\"it's \"\"quoted\"\",\nin two lines \\ \\xff\",user,");
    assert_holds("tables/failures.csv", ",WEIR_EDATA,-1094995529,\"no \"\"moov\"\"\r\natom\"\r\n");
    assert_holds("tables/runs.csv", "run_id,");
    assert_holds("tables/items.csv", "id,run_id,");
    assert_export("a.db --format csv -o tables", 0); /* again, into the same folder */

    assert_export("a.db --format csv --table runs", 0);
    assert_holds("out", ",1000,1100,100,finished,WEIR_OK,10,0,");
    assert_holds("out", ",program,");
    assert_export("a.db --format csv", 2);
    assert_holds("err", "--table");
}

TEST_CASE(tensorboard_is_written)
{
    record_whole_run("a.db");
    assert_export("a.db --format tensorboard", 2);
    assert_holds("err", "-o");
    assert_export("a.db --format tensorboard -o logs", 0);
    assert_int_equal(access(in_folder("logs/run-1"), F_OK), 0);
}

TEST_CASE(killed_run_has_no_end)
{
    close_writer(record("a.db", 1));
    assert_export("a.db --format openmetrics", 0);
    assert_lacks("out", "\nweir_run_end_timestamp_seconds{");
    assert_lacks("out", "\nweir_run_status{");
    assert_holds("out", "\nweir_run_start_timestamp_seconds{");
    assert_export("a.db --format json", 0);
    assert_json("out", "$.runs[0].ended", "null");
    assert_json("out", "$.runs[0].status", "null");
}

TEST_CASE(database_being_written_is_exported_up_to_now)
{
    weir_sqlite_writer *writer = record("a.db", 3);
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    assert_export("a.db --format openmetrics", 0);
    assert_holds("out", "stage=\"0:1:decode[10]\",kind=\"stage\"} 225\n");
    observe_lap(weir_sqlite_observer(writer), 3, 100);
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    assert_export("a.db --format openmetrics", 0);
    assert_holds("out", "stage=\"0:1:decode[10]\",kind=\"stage\"} 300\n");
    assert_export("a.db --format csv -o tables", 0);
    close_writer(writer);
}

/* Nothing is written then, and an older file stays as it was. */
TEST_CASE(nothing_to_export_is_said)
{
    record_whole_run("a.db");
    write_file(in_folder("kept"), "old", 3);
    assert_export("a.db --format json -o kept --until 900", 3);
    assert_holds("err", "no records match the filters");
    assert_export("a.db --format json --between-steps 900000:900001", 3);
    assert_holds("err", "no records match the filters");
    assert_export("a.db --format json -o kept --run 7", 3);
    assert_export("missing.db --format json -o kept", 2);
    assert_holds("err", "missing.db");
    execute(in_folder("a.db"), "PRAGMA foreign_keys = ON; DELETE FROM run");
    assert_export("a.db --format openmetrics -o kept", 3);
    assert_export("a.db --format csv -o tables", 3);
    assert_holds("kept", "old");
    assert_int_not_equal(access(in_folder("tables"), F_OK), 0);

    write_file(in_folder("empty.db"), "", 0);
    assert_int_not_equal(export("empty.db --format json -o kept"), 0);
    assert_holds("err", "empty.db");
    write_file(in_folder("text.db"), "this is no database, but a text of some length", 46);
    assert_export("text.db --format json -o kept", 2);
    assert_holds("err", "text.db");
    assert_holds("kept", "old");
}

TEST_CASE(damaged_rows_are_an_error_and_write_nothing)
{
    record_whole_run("a.db");
    write_file(in_folder("kept"), "old", 3);
    execute(in_folder("a.db"), "UPDATE task_stats SET histogram = x'07', num_tasks = 'many', name = x'ff0a22'");
    int exit_status = export("a.db --format openmetrics -o kept");
    assert_in_range(exit_status, 0, 2);
    if (exit_status != 0)
        assert_holds("kept", "old");
    assert_export("a.db --format openmetrics --laps -o kept", exit_status);
    assert_in_range(export("a.db --format json"), 0, 2);
    assert_in_range(export("a.db --format csv -o tables"), 0, 2);
}

TEST_CASE(places_that_cannot_be_written_are_named)
{
    record_whole_run("a.db");
    assert_export("a.db --format json -o missing/a.json", 2);
    assert_holds("err", "missing/a.json");
    assert_export("a.db --format csv -o a.db", 2);
    assert_holds("err", "a.db");
    assert_export("a.db --format csv -o missing/tables", 2);
    assert_export("a.db", 2);
    assert_holds("err", "--format is missing: openmetrics, tensorboard, csv or json");
    assert_export("a.db --format xml", 2);
    assert_export("a.db --format openmetrics --table runs", 2);
    assert_holds("err", "--table: only for csv and json");
    assert_export("a.db --format csv --laps -o tables", 2);
    assert_holds("err", "--laps: only for openmetrics");
    if (access("/dev/full", W_OK) == 0) {
        assert_export("a.db --format json -o /dev/full", 1);
        assert_holds("err", "/dev/full");
    }
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
