/*
 * Runs the weir command: its output in each format, what it says of what it cannot use, and with which exit
 * status; and that --help, man page and completion agree.
 */
#include "tests/named_tests.h"
#include "tests/recording.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/query.h>
#include <weir/summary.h>
#include <weir/verdict.h>

enum { DONE, FAILED, REFUSED, NOTHING };

/* -- running it */

/* What the last call printed. */
static char *out, *err;

static void forget_output(void)
{
    free(out);
    free(err);
    out = err = NULL;
}

/* Runs a line of the shell in the test's folder, where `weir` is the program. */
static int shell(const char *line)
{
    const char *program = getenv("WEIR_TOOL");
    if (!program)
        fail_msg("WEIR_TOOL is not set: run this test with ctest");
    size_t size = strlen(line) + 1024;
    char *command = malloc(size);
    assert_non_null(command);
    snprintf(command, size, "cd '%s' && weir() { '%s' \"$@\"; } && { %s; } >stdout 2>stderr </dev/null",
             in_folder(""), program, line);
    int status = system(command);
    free(command);
    forget_output();
    out = read_file(in_folder("stdout"), NULL);
    err = read_file(in_folder("stderr"), NULL);
    if (!WIFEXITED(status))
        fail_msg("%s: killed", line);
    return WEXITSTATUS(status);
}

static void expect(const char *line, int wanted)
{
    int exit_status = shell(line);
    if (exit_status != wanted)
        fail_msg("%s: exit status %d, not %d:\n%s%s", line, exit_status, wanted, out, err);
}

static void assert_has(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("no \"%s\" in:\n%s", wanted, text);
}

static void assert_lacks(const char *text, const char *unwanted)
{
    if (strstr(text, unwanted))
        fail_msg("\"%s\" in:\n%s", unwanted, text);
}

/* What SQL finds in the output, ?1; to be freed. */
static char *in_output(const char *sql)
{
    sqlite3 *db = connect_to(":memory:");
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_bind_text(row, 1, out, -1, SQLITE_STATIC);
    if (sqlite3_step(row) != SQLITE_ROW)
        fail_msg("%s: %s in:\n%s", sql, sqlite3_errmsg(db), out);
    const char *text = (const char *)sqlite3_column_text(row, 0);
    char *copy = strdup(text ? text : "null");
    sqlite3_finalize(row);
    sqlite3_close(db);
    return copy;
}

static void assert_json(const char *path, const char *wanted)
{
    char sql[300];
    snprintf(sql, sizeof sql, "SELECT json_extract(?1, '%s')", path);
    char *found = in_output(sql);
    if (strcmp(found, wanted) != 0)
        fail_msg("%s is %s, not %s, in:\n%s", path, found, wanted, out);
    free(found);
}

static void assert_is_json(void)
{
    char *valid = in_output("SELECT json_valid(?1)");
    if (strcmp(valid, "1") != 0)
        fail_msg("not JSON:\n%s", out);
    free(valid);
}

/* CSV as in RFC 4180: every row has as many cells as the first. Returns the number of rows after it. */
static size_t assert_is_csv(void)
{
    size_t cells = 1, wanted = 0, rows = 0;
    bool quoted = false;
    for (const char *c = out; *c; c++) {
        if (*c == '"')
            quoted = !quoted; /* a doubled one closes and opens again */
        else if (!quoted && *c == ',')
            cells++;
        else if (!quoted && *c == '\r' && c[1] == '\n') {
            wanted = wanted ? wanted : cells;
            if (cells != wanted)
                fail_msg("row %zu has %zu cells, not %zu:\n%s", rows, cells, wanted, out);
            cells = 1;
            rows++;
            c++;
        }
    }
    assert_false(quoted);
    assert_true(rows >= 1);
    return rows - 1;
}

/* -- databases for the tests */

/*
 * job.db: two ranks on two nodes. Each with start-up, training (steps 0–9, 10–19) and evaluation, in laps of 10 s from
 * 1000 on; 4 tasks a lap, on rank 1 twice as slow; failures in two folders.
 */
static void record_job(void)
{
    static const char *const phases[] = { "startup", "train", "train", "eval" };
    for (int rank = 0; rank < 2; rank++) {
        double times[] = { 0.1 * (rank + 1), 0.1 * (rank + 1), 0.2 * (rank + 1) };
        weir_sqlite_writer *writer = recording_begin(in_folder("job.db"), rank ? "beta" : "alpha", rank, 1000);
        for (int i = 0; i < 4; i++)
            record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i,
                                                .phase = phases[i],
                                                .has_steps = i == 1 || i == 2,
                                                .first_step = 10 * (i - 1),
                                                .last_step = 10 * (i - 1) + 9,
                                                .num_tasks = 4,
                                                .num_failures = 1,
                                                .times = times });
        record_failure(writer, 1005, "/data/a/1.mp4", 0.25);
        record_failure(writer, 1015, "/data/a/2.mp4", 0.5);
        record_failure(writer, 1025, "/data/b/3.mp4", 0.75);
        record_failure(writer, 1035, "/data/b/it's \"4\",\nthe last.mp4", 1);
        record_event(writer, 1020, "stop");
        recording_end(writer, 1040);
    }
}

static int make_job(void **state)
{
    int result = make_folder(state);
    record_job();
    return result;
}

static int remove_job(void **state)
{
    forget_output();
    return remove_folder(state);
}

/* -- summary */

TEST_CASE(a_full_summary_is_the_librarys_to_the_letter)
{
    char *wanted;
    size_t size;
    FILE *memory = open_memstream(&wanted, &size);
    assert_int_equal(print_summary(memory, in_folder("job.db"), 0, weir_verdict_write_limit, NULL), WEIR_OK);
    fclose(memory);
    char line[600];
    snprintf(line, sizeof line, "weir summary --full '%s'", in_folder("job.db"));
    expect(line, DONE);
    assert_string_equal(out, wanted);
    assert_string_equal(err, "");
    free(wanted);
}

TEST_CASE(summary_takes_a_part)
{
    expect("weir summary --full job.db --run all --name decode --phase train", DONE);
    assert_has(out, "    Total tasks processed: 16\n");
    assert_has(out, "    Number of log entries: 4\n");
    assert_lacks(out, "src_queue");
    expect("weir summary --full job.db --run 1 --since +15s --until 1021", DONE);
    assert_has(out, "    Number of log entries: 2\n");
    expect("cp job.db now.db", DONE);
    execute(in_folder("now.db"), "UPDATE run SET started = 1.8e9");
    expect("weir summary --full now.db --since +99999d", NOTHING); /* not a time of 64 bits in nanoseconds */
    expect("weir summary --full job.db --since=-5s", DONE);
    assert_has(out, "    Number of log entries: 1\n");
    expect("weir summary --full job.db --node al* --run all", DONE);
    assert_has(out, "    Average task time: 0.1333s\n");
    expect("weir summary --full job.db --rank 1 --run all", DONE);
    assert_has(out, "    Average task time: 0.2667s\n");
    expect("weir summary --full job.db --start-time '1970-01-01 00:16:45' --end-time 1970-01-02", DONE);
}

TEST_CASE(summary_as_json_and_csv)
{
    expect("weir summary job.db --json", DONE);
    assert_is_json();
    assert_json("$.runs[0].node_id", "beta");
    assert_json("$.stages[0].name", "0:1:decode[10]");
    assert_json("$.stages[0].num_tasks", "16");
    assert_json("$.queues[2].name", "0:2:sink_queue");
    expect("weir summary job.db --csv", REFUSED);
    assert_has(err, "weir query --by stage --csv");
}

TEST_CASE(a_run_that_never_ended_says_so)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("live.db"), "n", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 3 });
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    expect("weir summary live.db", DONE);
    assert_has(out, "running or killed: 3 items decoded\n");
    expect("weir summary live.db --full", DONE);
    assert_has(out, "Run 1: running or killed, recorded for 10.0 s\n"); /* it says to be of another node */
    expect("cp live.db live.db-wal live.db-shm killed/ 2>&1 || { mkdir killed; cp live.db* killed/; }", DONE);
    expect("weir summary killed/live.db --full", DONE);
    assert_has(out, "    Total tasks processed: 3\n");
    assert_has(out, "Run 1: running or killed");
    expect("weir check live.db", DONE);
    recording_end(writer, 1010);
}

/* Characters of the longest line that has a space between words. */
static size_t longest_line(void)
{
    size_t longest = 0;
    for (const char *line = out; *line; line += strcspn(line, "\n") + 1) {
        size_t length = 0, end = strcspn(line, "\n"), start = strspn(line, " ");
        for (size_t i = 0; i < end; i++)
            length += ((unsigned char)line[i] & 0xc0) != 0x80;
        if (memchr(line + start, ' ', end - start) && length > longest)
            longest = length;
    }
    return longest;
}

TEST_CASE(long_lines_are_broken_on_a_terminal_only)
{
    expect("cp job.db 'a database with a long name that contains spaces.db'", DONE);
    execute(in_folder("job.db"),
            "UPDATE task_stats SET name = replace(name, 'decode', 'a decoder with a long name')");
    static const char *const lines[] = { "summary job.db --run all --full", "explain job.db", "compare job.db job.db",
                                         "fleet job.db" };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[100];
        snprintf(line, sizeof line, "weir %s", lines[i]);
        expect(line, DONE);
        assert_true(longest_line() > 62);
        snprintf(line, sizeof line, "COLUMNS=62 weir %s", lines[i]);
        expect(line, DONE); /* a pipe or a file, although COLUMNS may be exported */
        assert_true(longest_line() > 62);
    }
    if (shell("command -v script >/dev/null") != 0)
        skip();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[160];
        snprintf(line, sizeof line, "NO_COLOR=1 COLUMNS=62 script -qec \"$WEIR_TOOL %s\" /dev/null | tr -d '\\r'",
                 lines[i]);
        expect(line, DONE);
        assert_int_not_equal(out[0], '\0');
        if (longest_line() > 62)
            fail_msg("%s: %zu columns:\n%s", line, longest_line(), out);
    }
    expect(
        "COLUMNS=40 script -qec \"$WEIR_TOOL summary --full 'a database with a long name that contains spaces.db'\" "
        "/dev/null | tr -d '\\r'",
        DONE);
    assert_has(out, "\nDatabase: a database with a long name that contains spaces.db\n");
    assert_has(out, "\n    Number of log entries: 4\n");
}

/* -- query */

TEST_CASE(query_adds_up_by_what_it_is_told)
{
    expect("weir query job.db --run all --json", DONE);
    assert_is_json();
    assert_json("$[0].num_tasks", "32");
    expect("weir query job.db --by queue --json", DONE);
    assert_json("$[1].name", "0:1:decode[10]_queue");
    assert_json("$[1].num_items", "16");
    expect("weir query job.db --by run,node --json", DONE); /* all of them by default */
    assert_json("$[1].run_id", "2");
    assert_json("$[1].node_id", "beta");
    expect("weir query job.db --by phase --json", DONE);
    assert_json("$[1].phase", "train");
    assert_json("$[0].share", "0.25");
    assert_json("$[1].share", "0.5");
    assert_json("$[1].last_step", "19");
    expect("weir query job.db --by job-phase --json", DONE);
    assert_json("$[1].phase", "loop");
    assert_json("$[1].share", "0.5");
    assert_json("$[2].phase", "finish"); /* the evaluation follows the last step */
    expect("weir query job.db --by step --step-bin 10 --json", DONE);
    assert_json("$[1].first_step", "10");
    expect("weir query job.db --by time --bin 20s", DONE);
    assert_lacks(out, ".000  0:1:decode");
    weir_sqlite_writer *writer = recording_begin(in_folder("halves.db"), "n", 0, 1000);
    for (int i = 1; i <= 4; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 0.5 * i, .elapsed = 0.5, .num_tasks = 1 });
    recording_end(writer, 1002);
    expect("weir slowest halves.db --sort per-frame", NOTHING);
    assert_has(err, "no item that was recorded (item_stats) has this figure");
    expect("weir query halves.db --by time --bin 500ms", DONE); /* no two bins have the same time */
    assert_has(out, ":40.500  0:1:decode");
    expect("weir query job.db --by time --bin 20s --json", DONE);
    assert_json("$[1].time", "1020");
    assert_json("$[1].num_laps", "2");
}

TEST_CASE(query_sorts_reverses_and_cuts)
{
    expect("weir query job.db --by run --sort avg --json", DONE);
    assert_json("$[0].run_id", "2");
    expect("weir query job.db --by run --sort avg --reverse --json", DONE);
    assert_json("$[0].run_id", "1");
    expect("weir query job.db --by run --reverse --json", DONE);
    assert_json("$[0].run_id", "2");
    expect("weir query job.db --by run --sort p99 --top 1 --csv", DONE);
    assert_int_equal(assert_is_csv(), 1);
    expect("weir query job.db --by lap --csv", DONE);
    assert_int_equal(assert_is_csv(), 4);
    expect("weir query job.db --by lap --run all --sort avg --top 5 --json", DONE);
    assert_json("$[3].run_id", "2");
    assert_json("$[4].run_id", "1");
    assert_json("$[5]", "null");
    expect("weir query job.db --by lap --reverse --top 1 --json", DONE);
    assert_json("$[0].time", "1040");
    expect("weir query job.db --by lap,queue --name sink --json", DONE);
    assert_json("$[0].p50_put_time", "0.002007039"); /* the middle of its bucket */
}

TEST_CASE(query_keeps_the_best_of_many_laps)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("many.db"), "n", 0, 1000);
    for (int i = 0; i < 500; i++) {
        double time = 0.001 * (1 + i * 263 % 500); /* each from 1 to 500 ms once */
        record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i, .num_tasks = 1, .times = &time });
    }
    recording_end(writer, 6000);
    expect("weir query many.db --by lap --sort max --json", DONE);
    for (int i = 0; i < 10; i++) { /* ten without --top */
        char path[40], wanted[40];
        snprintf(path, sizeof path, "$[%d].max_time", i);
        snprintf(wanted, sizeof wanted, i ? "0.%d" : "0.5", 500 - i);
        if (i != 0 && (500 - i) % 10 == 0)
            snprintf(wanted, sizeof wanted, "0.%d", (500 - i) / 10);
        assert_json(path, wanted);
    }
    assert_json("$[10]", "null");
    expect("weir query many.db --by lap --sort max --reverse --top 3 --json", DONE);
    assert_json("$[2].max_time", "0.003");
    expect("weir query many.db --by lap", DONE); /* more than a screenful as text */
    assert_has(out, "500 ms");
}

TEST_CASE(query_lists_what_there_is)
{
    expect("weir query job.db --list nodes --json", DONE);
    assert_json("$[1].node_id", "beta");
    expect("weir query job.db --list runs --csv", DONE);
    assert_int_equal(assert_is_csv(), 2);
    expect("weir query job.db --list runs --run last --csv", DONE);
    assert_int_equal(assert_is_csv(), 1);
    expect("weir query job.db --list phases --json", DONE);
    assert_json("$[1].phase", "train");
    assert_json("$[1].last_step", "19");
    expect("weir query job.db --list stages --csv", DONE);
    assert_int_equal(assert_is_csv(), 3);
    expect("weir query job.db --list events --json", DONE);
    assert_json("$[0].name", "stop");
    expect("weir query job.db --list failures --phase train --csv", DONE);
    assert_int_equal(assert_is_csv(), 2);
    expect("weir query job.db --list items", NOTHING);
}

TEST_CASE(query_refuses_what_does_not_go_together)
{
    static const char *const lines[] = {
        "--by lap,run",
        "--by phase,job-phase",
        "--by mode,mode-transition",
        "--section after-steps --until-mode eval",
        "--by stage,queue",
        "--by stage --queues",
        "--list runs --by run",
        "--list runs --queues",
        "--bin 5s",
        "--by step --bin 5s",
        "--by time --step-bin 5",
        "--by nothing",
        "--by ''",
        "--sort speed",
        "--top 0",
        "--top many",
        "--by time --bin 0",
        "--by time --bin 5x",
        "--by step --step-bin 0",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[200];
        snprintf(line, sizeof line, "weir query job.db %s", lines[i]);
        expect(line, REFUSED);
        assert_string_equal(out, "");
        assert_has(err, "weir query: --");
    }
}

/* -- failures and slowest */

TEST_CASE(failures_are_grouped_by_reason_and_folder)
{
    execute(in_folder("job.db"), "UPDATE task_failures SET message = 'frame ' || id || ' of ' || label || ' is bad' "
                                 "WHERE label LIKE '/data/a/%'");
    expect("weir failures job.db --json", DONE);
    assert_is_json();
    assert_json("$.failures", "4");
    assert_json("$.reasons[0].count", "2"); /* numbers and labels do not make separate reasons */
    assert_json("$.reasons[1].count", "2");
    assert_json("$.reasons[2]", "null");
    assert_json("$.reasons[0].status", "WEIR_EDATA");
    assert_json("$.reasons[0].library_code", "-22");
    assert_json("$.folders[0].folder", "/data/a");
    assert_json("$.folders[1].example", "/data/b/3.mp4");
    expect("weir failures job.db --run all --csv", DONE);
    assert_int_equal(assert_is_csv(), 4);
    expect("weir failures job.db --top 1 --csv", DONE);
    assert_int_equal(assert_is_csv(), 2);
    expect("weir failures job.db", DONE);
    assert_has(out, "4 failures\n");
    assert_lacks(out, " more; ");
    weir_sqlite_writer *writer = recording_begin(in_folder("many.db"), "node", 0, 1000);
    for (int i = 0; i < 50; i++) {
        char label[40];
        snprintf(label, sizeof label, "/data/%d/x.mp4", i);
        record_failure(writer, 1001 + i, label, 0.1);
    }
    recording_end(writer, 1100);
    expect("weir failures many.db", DONE);
    assert_has(out, "(and 30 more; --top N shows N of them)\n");
    expect("weir failures many.db --csv", DONE);
    assert_true(assert_is_csv() >= 51);
}

/* A run without failures must not stop a script. */
TEST_CASE(that_nothing_failed_is_an_answer)
{
    execute(in_folder("job.db"), "DELETE FROM task_failures");
    expect("weir failures job.db", DONE);
    assert_string_equal(out, "No failures.\n");
    assert_string_equal(err, "");
    expect("weir failures job.db --list --run 1", DONE);
    assert_string_equal(out, "");
    expect("weir failures job.db --json", DONE);
    assert_json("$.failures", "0");
    expect("weir failures job.db --name decode", NOTHING);
    assert_has(err, "no failures match the filters");
    expect("weir failures job.db --run 7", NOTHING);
}

TEST_CASE(failed_labels_are_listed_for_scripts)
{
    expect("weir failures job.db --list --until 1030", DONE);
    assert_string_equal(out, "/data/a/1.mp4\n/data/a/2.mp4\n/data/b/3.mp4\n");
    expect("weir failures job.db --list --null | xargs -0 -n1 printf '<%s>'", DONE);
    assert_has(out, "it's \"4\",\nthe last.mp4>");
    expect("weir failures job.db --list --json", REFUSED);
    expect("weir failures job.db --null", REFUSED);
    expect("weir failures job.db --since 1036", NOTHING);
    assert_has(err, "no failure");
}

TEST_CASE(slowest_knows_items_failures_and_laps)
{
    expect("weir slowest job.db --json", DONE);
    assert_json("$[0].kind", "failure");
    assert_json("$[0].elapsed", "1");
    assert_json("$[3].kind", "lap");
    assert_json("$[3].elapsed", "0.4");
    expect("weir slowest job.db --of items", NOTHING);
    assert_has(err, "item_stats");
    expect("weir slowest job.db --of failures --top 2 --csv", DONE);
    assert_int_equal(assert_is_csv(), 2);
    expect("weir slowest job.db", DONE);
    assert_has(out, "only the longest of each lap is known");
    execute(in_folder("job.db"), "INSERT INTO item_stats SELECT NULL, 1005, 2, '0:1:decode[10]', 1, 'bare.wav', 9.5, "
                                 "'', 0, 0, 0, 0, 0, 0, 0, 0, 'all', 0, 0, '', 0, '{\"upload_time\": 0.5}'");
    expect("weir slowest job.db --json", DONE);
    assert_json("$[0].label", "bare.wav");
    assert_json("$[0].parts", "{\"upload_time\": 0.5}");
    assert_json("$[0].width", "null"); /* 0 = not known */
    assert_json("$[0].decode_time", "null");
    expect("weir slowest job.db --of items", DONE);
    assert_lacks(out, "width");
    assert_has(out, "{\"upload_time\": 0.5}");
    expect("weir query job.db --list items --json", DONE);
    assert_json("$[0].parts", "{\"upload_time\": 0.5}");
    execute(in_folder("job.db"),
            "DROP TABLE item_stats;"
            "CREATE TABLE item_stats (id INTEGER PRIMARY KEY, timestamp REAL, run_id INTEGER, name TEXT, label TEXT, "
            "elapsed REAL, codec TEXT, width INTEGER, height INTEGER);"
            "INSERT INTO item_stats VALUES (1, 1005, 2, '0:1:decode[10]', 'big.mp4', 9.5, 'hevc', 3840, 2160),"
            " (2, 1015, 2, '0:1:decode[10]', 'small.mp4', 0.5, 'h264', 320, 240)");
    expect("weir slowest job.db --json", DONE);
    assert_json("$[0].label", "big.mp4");
    assert_json("$[0].width", "3840");
    assert_json("$[0].num_frames", "null");
    assert_json("$[1].kind", "failure"); /* among the failures, by time */
    assert_lacks(out, "\"lap\"");
    execute(in_folder("job.db"),
            "INSERT INTO item_stats (timestamp, run_id, name, label, elapsed, codec, width, height)"
            " SELECT 1015, 2, '0:1:decode[10]', 'x', 0.4, 'h264', 320, 240 FROM task_stats LIMIT 2");
    expect("weir slowest job.db --of items --top 2", DONE);
    assert_has(out, "hevc");
    char *first_line = strchr(out, '\n');
    assert_true(strstr(out, "label") && strstr(out, "label") < first_line); /* beside the time */
}

TEST_CASE(slowest_sorts_items_by_where_their_time_went)
{
    static const char *const firsts[][2] = {
        { "time", "a.mp4" },   { "open", "b.mp4" },      { "demux", "c.mp4" },
        { "decode", "a.mp4" }, { "scale", "a.mp4" },     { "bytes", "b.mp4" },
        { "frames", "c.mp4" }, { "per-frame", "b.mp4" }, { "damage", "b.mp4" },
    };
    execute(in_folder("job.db"), "INSERT INTO item_stats VALUES"
                                 " (1, 1005, 2, '0:1:decode[10]', 1, 'a.mp4', 4, 'h264', 64, 48, 100, 10, 0.1, 0.2, "
                                 "3, 0.5, 'all', 0, 0, '', 0, ''),"
                                 " (2, 1005, 2, '0:1:decode[10]', 2, 'b.mp4', 2, 'h264', 64, 48, 1, 1000, 1, 0.1, "
                                 "0.5, 0.3, 'all', 7, 2, '', 0, ''),"
                                 " (3, 1005, 2, '0:1:decode[10]', 3, 'c.mp4', 3, 'hevc', 64, 48, 300, 500, 0.2, 2, "
                                 "0.3, 0, 'all', 0, 1, '', 0, '')");
    expect("weir slowest job.db --of items", DONE);
    assert_lacks(out, "parts"); /* none has any */
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        char line[100];
        snprintf(line, sizeof line, "weir slowest job.db --sort %s --json", firsts[i][0]);
        expect(line, DONE);
        assert_json("$[0].label", firsts[i][1]);
    }
    expect("weir slowest job.db --sort bytes --json", DONE);
    assert_json("$[1].label", "c.mp4");
    assert_json("$[2].label", "a.mp4");
    assert_json("$[3]", "null"); /* failures have no size */
    expect("weir slowest job.db --sort scale --csv", DONE);
    assert_int_equal(assert_is_csv(), 2); /* of c.mp4 it is not known */
    expect("weir slowest job.db --sort damage --csv", DONE);
    assert_int_equal(assert_is_csv(), 2); /* a.mp4 has none */
    expect("weir slowest job.db --sort open --top 1 --csv", DONE);
    assert_int_equal(assert_is_csv(), 1);
    expect("weir slowest job.db --sort open --of laps", REFUSED);
    assert_has(err, "failures and laps can only be sorted by time");
    expect("weir slowest job.db --run 1 --sort open", NOTHING);
}

/* -- explain */

/* The slots of the recorded stage are busy for 60 % of the time, which limits nothing clearly. */
static void keep_slots_busy(const char *name)
{
    execute(
        in_folder(name),
        "DELETE FROM roll; UPDATE task_stats SET busy_time = 1.5 * busy_time, wait_in_time = 0, wait_out_time = 0");
}

TEST_CASE(explain_says_what_limits_and_what_would_help)
{
    expect("weir explain job.db", DONE);
    assert_has(out, "Limit: The data cannot tell what limits the run.");
    assert_has(out, "Why:\n  * 0:1:decode[10] (10 slots): busy for 60 % of the time");
    keep_slots_busy("job.db");
    expect("weir explain job.db", DONE);
    assert_has(out, "Limit: The slots of 0:1:decode[10]: ");
    assert_has(out, "Confidence: ");
    expect("weir explain job.db --json", DONE);
    assert_is_json();
    assert_json("$.kind", "slots");
    assert_json("$.name", "0:1:decode[10]");
    assert_json("$.other", "null");
    expect("weir explain job.db --phase train --run all --json", DONE);
    assert_json("$.certainty", "likely");
    assert_json("$.evidence[2]", "only 8 items were delivered in the part of the run that counts");
    expect("weir explain job.db --csv", REFUSED);
    expect("cp job.db none.db", DONE);
    execute(in_folder("none.db"), "UPDATE queue_stats SET num_items = 0, num_put = 0");
    expect("weir explain none.db", DONE); /* stopped before anything was delivered */
    assert_has(out, "\nConfidence: unsure\n");
    assert_lacks(out, "inf");
    expect("weir summary none.db", DONE);
    assert_has(out, " (unsure: hardly an item was delivered)\n");
    assert_lacks(out, "inf");
    expect("weir explain job.db --name 0:1:decode", REFUSED);
    expect("weir explain job.db --since 2030-01-01", NOTHING);
}

/* -- compare, merge, check */

/* Eight equal laps, changed by the statements. */
static void record_equal_laps(const char *name, uint64_t num_tasks, const char *sql)
{
    const char *path = in_folder(name);
    weir_sqlite_writer *writer = recording_begin(path, "n", 0, 1000);
    for (int i = 0; i < 8; i++)
        record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i, .num_tasks = num_tasks });
    recording_end(writer, 1080);
    execute(path, sql);
}

TEST_CASE(compare_finds_the_difference_and_how_sure_it_is)
{
    for (int side = 0; side < 2; side++) {
        weir_sqlite_writer *writer = recording_begin(in_folder(side ? "b.db" : "a.db"), "n", 0, 1000);
        for (int i = 0; i < 30; i++) {
            uint64_t n = (uint64_t)(side ? 80 : 100) + (uint64_t)(i * 7 % 5);
            double times[120];
            for (uint64_t j = 0; j < n; j++)
                times[j] = (side ? 0.75 : 0.6) + 0.001 * (double)((i + (int)j) % 3);
            record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i, .num_tasks = n, .times = times });
        }
        recording_end(writer, 1300);
        keep_slots_busy(side ? "b.db" : "a.db");
    }
    expect("COLUMNS=80 weir compare a.db b.db", DONE);
    assert_has(out, "A: a.db, run 1\nB: b.db, run 1\n");
    const char *worse = strstr(out, "  worse\n"); /* at the end of the row, in the first section of the table */
    assert_true(worse && strstr(out, "95 % range\n") > worse);
    expect("weir compare a.db b.db --json", DONE);
    assert_is_json();
    assert_json("$.limit_a.kind", "slots");
    assert_json("$.limit_moved", "0");
    assert_json("$.limit_b.stage", "0:1:decode[10]");
    static const char *const wanted[][2] = {
        { "tasks_per_s", "worse" }, { "ave_time", "worse" }, { "p99_time", "worse" }, { "busy_share", "same" }
    };
    for (size_t i = 0; i < 4; i++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "SELECT j.value ->> 'verdict' FROM json_each(?1, '$.metrics') j WHERE j.value ->> 'metric' = '%s'",
                 wanted[i][0]);
        char *verdict = in_output(sql);
        assert_string_equal(verdict, wanted[i][1]);
        free(verdict);
    }
    char *holds =
        in_output("SELECT j.value ->> 'low' BETWEEN -0.21 AND -0.197 AND j.value ->> 'high' BETWEEN -0.196 AND -0.18 "
                  "FROM json_each(?1, '$.metrics') j WHERE j.value ->> 'metric' = 'tasks_per_s'");
    assert_string_equal(holds, "1");
    free(holds);
    expect("weir compare a.db b.db", DONE);
    assert_has(out,
               "B delivers 19.6 % fewer items per second than A (8.20 instead of 10.20; 95 % confidence interval: ");
    assert_has(out, "The largest change at 0:1:decode is the time per task: ");
    expect("weir compare a.db a.db", DONE);
    assert_has(out, "no clear difference");
    expect("weir compare a.db b.db --csv", DONE);
    assert_true(assert_is_csv() > 10);
}

/* Each run is steady, but the runs of one side differ as much as the sides do. */
TEST_CASE(compare_of_several_runs_includes_what_varies_between_them)
{
    for (int i = 0; i < 2; i++) {
        record_equal_laps("a.db", i ? 120 : 100, "");
        record_equal_laps("b.db", i ? 150 : 130, "");
    }
    expect("weir compare a.db b.db", DONE);
    assert_has(out, "B delivers 25.0 % more items per second than A");
    expect("weir compare a.db b.db --run all", DONE);
    assert_has(out, "no clear difference");
}

/* The rows of the table below the text; the first one has the headings. */
static int num_rows(void)
{
    int count = 0;
    for (const char *line = strstr(out, "95 % range\n");
         line && (line = strchr(line, '\n')) && line[1] && line[1] != '('; line++)
        count++;
    return count;
}

TEST_CASE(compare_shows_the_throughput_and_what_differs_most_clearly)
{
    record_equal_laps("a.db", 100, "");
    record_equal_laps("b.db", 100, "");
    expect("weir compare a.db b.db", DONE);
    assert_int_equal(num_rows(), 1);
    assert_has(out, "items_per_s");
    record_equal_laps("b.db", 100, "UPDATE queue_stats SET occupied_time = occupied_time + 0.004");
    expect("weir compare a.db b.db --run last", DONE); /* which rounds to +0.0 points */
    assert_int_equal(num_rows(), 1);
    record_equal_laps("b.db", 55,
                      "UPDATE task_stats SET busy_time = busy_time / 2, wait_in_time = 2 * wait_in_time, "
                      "wait_out_time = 3 * wait_out_time, cpu_time = cpu_time / 3");
    expect("weir compare a.db b.db", DONE);
    assert_int_equal(num_rows(), 8);
    assert_has(out, "items_per_s");
    expect("weir compare a.db b.db --all", DONE);
    assert_true(num_rows() > 20);
}

TEST_CASE(compare_of_one_database_takes_its_last_two_runs)
{
    for (int i = 1; i <= 3; i++)
        record_equal_laps("three.db", 100 * (uint64_t)i, "");
    expect("weir compare three.db", DONE);
    assert_has(out, "A: three.db, run 2\nB: three.db, run 3\n");
    assert_has(out, "B delivers 50.0 % more items per second than A");
    expect("weir summary three.db --run previous --full", DONE);
    assert_has(out, "Run 2: ");
    execute(in_folder("three.db"),
            "DELETE FROM task_stats WHERE run_id = 2; DELETE FROM queue_stats WHERE run_id = 2");
    expect("weir compare three.db", DONE);
    assert_has(out, "A: three.db, run 1\nB: three.db, run 3\n");
    record_equal_laps("single.db", 100, "");
    expect("weir compare single.db", REFUSED);
    assert_has(err, "single.db holds no run before the last one; record another run, or name a second database");
}

/* The process gets a quarter of the CPU time, and the rest is other programs' or idle. */
static void record_with_others(const char *name, double own_s, double others_s, uint64_t num_tasks)
{
    char sql[800];
    snprintf(
        sql, sizeof sql,
        "DELETE FROM process_stats; DELETE FROM machine_stats;"
        "INSERT INTO process_stats (timestamp, run_id, elapsed, name, cpu_time) SELECT timestamp, run_id, elapsed, "
        "'0:process', %g FROM task_stats;"
        "INSERT INTO machine_stats (timestamp, run_id, elapsed, name, other_cpu_time, idle_time, stolen_time) SELECT "
        "timestamp, run_id, elapsed, '0:machine', %g, %g, 0 FROM task_stats",
        own_s, others_s, 40 - own_s - others_s);
    record_equal_laps(name, num_tasks, sql);
}

TEST_CASE(compare_says_what_other_programs_took)
{
    record_with_others("a.db", 38, 1, 100);
    record_with_others("b.db", 10, 29, 27);
    expect("weir compare a.db b.db", DONE);
    assert_has(out, "B delivers 73.0 % fewer items per second than A");
    assert_has(
        out,
        "Other programs took most of the difference: they use 2.90 CPUs beside B, and 0.10 beside A; the CPU time "
        "of an item changes by -2.5 %.");
    expect("weir compare b.db a.db", DONE);
    assert_has(out, "they use 0.10 CPUs beside B, and 2.90 beside A; the CPU time of an item changes by +2.6 %.");
    record_with_others("b.db", 10, 2, 27); /* it waits, and the CPUs are idle */
    expect("weir compare a.db b.db", DONE);
    assert_null(strstr(out, "Other programs"));
    record_with_others("b.db", 10, 29, 100); /* no slower */
    expect("weir compare a.db b.db", DONE);
    assert_null(strstr(out, "Other programs"));
}

TEST_CASE(compare_lists_the_settings_that_differ)
{
    record_equal_laps("a.db", 100, "");
    record_equal_laps("b.db", 100, "");
    expect("weir compare a.db b.db", DONE);
    assert_has(out, "All settings in the recordings are the same.\n");
    execute(in_folder("a.db"), "UPDATE run SET command = '/bin/weir record videos --first 16 -q --db-path a.db'");
    execute(in_folder("b.db"), "UPDATE run SET command = 'weir record other -q --epochs 3 --db-path b.db --trace t'");
    expect("weir compare a.db b.db", DONE); /* another job */
    assert_lacks(out, "All settings");
    assert_has(out, "Only the command of A has: videos --first 16\nOnly the command of B has: other --epochs 3\n");
    expect("weir compare a.db b.db --json", DONE);
    assert_is_json();
    assert_json("$.settings[1].a", "--first 16");
    assert_json("$.settings[1].b", "null");
    execute(in_folder("a.db"), "UPDATE run SET command = 'weir record'");
    execute(in_folder("b.db"), "UPDATE run SET command = 'weir record'");
    execute(in_folder("b.db"), "UPDATE stage SET name = '0:1:other' WHERE name = '0:1:decode[10]'");
    expect("weir compare a.db b.db", DONE); /* nothing is known of one stage of each */
    assert_lacks(out, "All settings");
    execute(in_folder("b.db"),
            "UPDATE stage SET name = '0:1:decode[10]' WHERE name = '0:1:other';"
            "UPDATE stage SET concurrency = 4, threads = 3, output_order = 'input', queue_bytes = 1000, "
            "name = '0:1:decode[4]' WHERE name = '0:1:decode[10]';"
            "UPDATE task_stats SET name = '0:1:decode[4]'; "
            "UPDATE queue_stats SET name = '0:1:decode[4]_queue' WHERE name = '0:1:decode[10]_queue'");
    for (int side = 0; side < 2; side++) { /* of the pipeline, and of a stage */
        char sql[300];
        snprintf(sql, sizeof sql,
                 "INSERT INTO pool_stats (timestamp, name, run_id, elapsed, num_threads, busy_time, idle_time) VALUES"
                 "(1080, '0:pool', 1, 10, %d, 9, 1), (1080, '0:1:decode[%d]_pool', 1, 10, 3, 9, 21)",
                 side ? 8 : 4, side ? 4 : 10);
        execute(in_folder(side ? "b.db" : "a.db"), sql);
    }
    expect("weir compare a.db b.db", DONE);
    assert_lacks(out, "]_pool"); /* those of a stage are one, too */
    assert_has(out,
               "Settings of B that differ: 0:1:decode.concurrency 4 instead of 10, threads 3 instead of none of its "
               "own, queue_bytes 1000 instead of unlimited, output_order input instead of completion; threads 8 "
               "instead of 4.\n");
    expect("weir compare a.db b.db --json", DONE);
    assert_is_json();
    assert_json("$.settings[0].name", "0:1:decode");
    assert_json("$.settings[0].setting", "concurrency");
    assert_json("$.settings[0].a", "10");
    assert_json("$.settings[3].b", "input");
}

/* In A decode is busy all the time; in B its tasks are short, and it waits for the consumer. */
TEST_CASE(compare_says_why_the_limit_has_moved)
{
    record_equal_laps(
        "a.db", 100,
        "UPDATE task_stats SET busy_time = 100, wait_thread_time = 0, wait_in_time = 0, wait_out_time = 0");
    record_equal_laps(
        "b.db", 100,
        "UPDATE task_stats SET busy_time = 10, wait_thread_time = 0, wait_in_time = 0, wait_out_time = 90;"
        "UPDATE queue_stats SET occupancy_rate = 1, occupied_time = elapsed");
    expect("weir compare a.db b.db", DONE);
    assert_has(out, "Limit of B: The consumer");
    assert_has(out, "The limit has moved: 0:1:decode with all its slots busy can deliver 900 % more in B than in A.\n"
                    "The largest change at 0:1:decode is the time per task: 100 ms instead of 1.00 s");
}

/* Tasks that took 1 s at ten slots, when the first one took 0.1 s, take `alone_s` at one slot. */
static void record_experiment(double alone_s)
{
    for (int side = 0; side < 2; side++) {
        const char *path = in_folder(side ? "b.db" : "a.db");
        remove(path);
        weir_sqlite_writer *writer = recording_begin(path, "n", 0, 1000);
        double times[100];
        for (int i = 0; i < 100; i++)
            times[i] = side ? alone_s : i ? 1 : 0.1;
        for (int i = 0; i < 8; i++)
            record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i,
                                                .num_tasks = side ? (uint64_t)(10 / alone_s) : 100,
                                                .times = times });
        recording_end(writer, 1080);
        execute(path, side ? "UPDATE task_stats SET name = '0:1:decode', busy_time = 10, wait_thread_time = 0, "
                             "wait_in_time = 0, wait_out_time = 0;"
                             "UPDATE stage SET name = '0:1:decode', concurrency = 1 WHERE kind = 'stage'"
                           : "UPDATE task_stats SET busy_time = 99, wait_thread_time = 0, wait_in_time = 1, "
                             "wait_out_time = 0");
        execute(path, "UPDATE task_stats SET cpu_time = 0, min_time = 0.1; UPDATE queue_stats SET occupancy_rate = "
                      "0, occupied_time = 0");
    }
}

TEST_CASE(compare_says_what_an_experiment_shows)
{
    record_experiment(0.1);
    expect("weir explain a.db", DONE);
    assert_has(out, "Limit: The slots of 0:1:decode[10]: all of them are busy, mostly with waiting\n");
    assert_has(out, "To find out: ");
    expect("weir compare a.db b.db", DONE); /* nothing was suspected */
    assert_has(out, "With 10 slots of 0:1:decode instead of 1, its tasks take +8");
    assert_has(out, "the stage waits for something that does not get faster, so more slots do not help.");
    expect("weir compare b.db a.db --json", DONE);
    assert_is_json();
    assert_has(out, "\"experiment\": \"With 10 slots of 0:1:decode instead of 1, its tasks take +8");
    record_experiment(1);
    expect("weir compare a.db b.db", DONE);
    assert_has(out, "+900 % items per second are delivered (95 %: +900 to +900 %): more of them helps.");
    record_experiment(0.3);
    expect("weir compare a.db b.db", DONE);
    assert_has(out, "more of them helps, but less and less");
}

/* Ten slots on a few threads are busy for much of their time, and yet it is not slots that are missing. */
TEST_CASE(compare_tells_too_few_threads_from_a_slow_stage)
{
    record_equal_laps("a.db", 100,
                      "UPDATE task_stats SET busy_time = 0.51 * 10 * elapsed, "
                      "wait_thread_time = 0.49 * 10 * elapsed, wait_in_time = 0, wait_out_time = 0");
    expect("weir compare a.db a.db", DONE);
    assert_has(out, "Limit of A: The threads: 0:1:decode[10] keeps them busy, and slots with work wait for one.");
    assert_has(out, "The limit is the same.");
    assert_lacks(out, "-0.0 %");
}

/* An additional stage changes the numbers of the stages after it. */
TEST_CASE(compare_knows_stages_that_have_moved)
{
    static const char *const busy =
        "UPDATE task_stats SET busy_time = 100, wait_thread_time = 0, wait_in_time = 0, wait_out_time = 0";
    record_equal_laps("a.db", 100, busy);
    record_equal_laps("b.db", 50, busy);
    execute(in_folder("b.db"), "UPDATE task_stats SET name = '0:1:fetch[10]';"
                               "UPDATE stage SET name = '0:1:fetch[10]' WHERE kind = 'stage';"
                               "UPDATE stage SET name = '0:3:sink' WHERE kind = 'sink';"
                               "UPDATE queue_stats SET name = '0:3:sink_queue' WHERE name = '0:2:sink_queue'");
    expect("weir compare a.db b.db", DONE);
    assert_has(out, "B delivers 50.0 % fewer items per second than A (5.00 instead of 10.00");
    assert_has(out, "B is slower because of 0:1:fetch[10], which A does not have.");
    assert_has(out, "\nsink_queue ");
    assert_lacks(out, "0:2:sink_queue");
    expect("weir compare b.db a.db", DONE);
    assert_has(out, "A is slower because of 0:1:fetch[10], which B does not have.");
    expect("weir compare b.db a.db --json", DONE);
    assert_is_json();
}

/* +15s is after the start of each of the two. */
TEST_CASE(compare_takes_times_after_the_start_of_each_run)
{
    for (int run = 0; run < 2; run++) {
        double start = run ? 5000 : 1000;
        weir_sqlite_writer *writer = recording_begin(in_folder("two.db"), "n", 0, start);
        for (int i = 1; i <= 4; i++)
            record_lap(writer, &(invented_lap){ .at = start + 10 * i, .num_tasks = i == 1 ? 100 : 4 });
        recording_end(writer, start + 40);
    }
    expect("weir compare two.db two.db --run 1 --run-b 2 --since +15s --json", DONE);
    char *rate = in_output("SELECT json_extract(value, '$.b') FROM json_each(?1, '$.metrics') WHERE "
                           "json_extract(value, '$.name') || json_extract(value, '$.metric') = "
                           "'0:1:decodetasks_per_s'");
    assert_string_equal(rate, "0.4");
    free(rate);
}

TEST_CASE(compare_says_when_laps_are_too_few)
{
    expect("weir compare job.db job.db --run 1 --run-b 2 --phase train", DONE);
    assert_has(out, "too few laps");
    expect("weir compare job.db job.db --run-b 9", NOTHING);
    assert_has(err, "holds no run 9");
    expect("weir compare job.db job.db --since 5000", NOTHING);
}

TEST_CASE(merge_and_check_do_what_they_say)
{
    expect("weir merge out.db job.db job.db", DONE);
    expect("weir query out.db --list runs --run all --csv", DONE);
    assert_int_equal(assert_is_csv(), 2);
    expect("weir merge out.db job.db --json", DONE);
    assert_json("$[0].present", "2");
    expect("weir merge out.db out.db", REFUSED);
    expect("weir merge new.db job.db nothing.db", REFUSED);
    assert_int_not_equal(access(in_folder("new.db"), F_OK), 0); /* nothing was done */
    expect("weir check out.db --json", DONE);
    assert_is_json();
    expect("weir check out.db -v --csv", DONE);
    assert_true(assert_is_csv() >= 12);
    execute(in_folder("out.db"), "DELETE FROM task_failures WHERE id = 1");
    expect("weir check out.db", FAILED);
    assert_has(out, "1 fault\n");
    execute(in_folder("out.db"), "PRAGMA user_version = 4");
    expect("weir check out.db", REFUSED);
    assert_has(err, "has schema 4 of an earlier weir");
}

/* -- bad input */

static const char *const readers[] = { "summary",  "query",   "query --by lap", "query --list runs",
                                       "failures", "slowest", "check",          "whatif" };

TEST_CASE(what_is_no_database_is_refused_by_every_subcommand)
{
    execute(in_folder("other.db"), "CREATE TABLE run (x)");
    close_writer(open_writer(in_folder("newer.db"), NULL));
    execute(in_folder("newer.db"), "PRAGMA user_version = 77");
    expect("{ echo noise; head -c 5000 /dev/urandom; } >noise.db; : >empty.db; mkdir folder.db", DONE);
    expect("printf '{\"traceEvents\": [' >trace.json; gzip -k trace.json", DONE);
    static const struct {
        const char *path, *said;
    } cases[] = {
        { "nothing.db", "there is no database" },
        { "noise.db", "file is not a database" },
        { "empty.db", "is empty" },
        { "other.db", "another program" },
        { "newer.db", "use a newer weir" },
        { "folder.db", "it is a folder" },
        { "trace.json", "weir trace shows it" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[200];
        for (size_t j = 0; j < sizeof readers / sizeof readers[0]; j++) {
            snprintf(line, sizeof line, "weir %s %s", readers[j], cases[i].path);
            expect(line, REFUSED);
            assert_string_equal(out, "");
            assert_has(err, cases[i].said);
            assert_has(err, cases[i].path);
            assert_true(strchr(err, '\n') == err + strlen(err) - 1); /* one line */
        }
        snprintf(line, sizeof line, "weir compare job.db %s", cases[i].path);
        expect(line, REFUSED);
        snprintf(line, sizeof line, "weir merge out.db %s", cases[i].path);
        expect(line, REFUSED);
    }
    expect("weir explain trace.json.gz", REFUSED);
    assert_has(err, "weir trace shows it");
    expect("weir trace job.db", REFUSED);
    assert_has(err, "job.db: a database, not a trace; weir summary");
}

TEST_CASE(what_is_damaged_is_told_with_what_helps)
{
    execute(in_folder("lacking.db"), "PRAGMA application_id = 2003134834; PRAGMA user_version = 6;"
                                     "CREATE TABLE run (run_id)");
    expect("weir summary lacking.db", FAILED);
    assert_has(err, "no such column");
    assert_has(err, "weir check shows what is wrong with it");
    expect("weir check lacking.db", FAILED);
    assert_has(out, "fault");
    expect("cp job.db cut.db; truncate -s 20000 cut.db; weir summary cut.db", REFUSED);
    assert_has(err, "malformed");
    assert_has(err, ".recover");
    /* what can be opened, and not be read to its end, is not a wrong argument: something may have been done */
    char line[200];
    int64_t page = query_int(in_folder("job.db"), "SELECT rootpage FROM sqlite_schema WHERE name = 'task_stats'");
    expect("yes no page | head -c 4096 >text", DONE);
    snprintf(line, sizeof line, "cp job.db torn.db; dd if=text of=torn.db bs=4096 seek=%d count=1 conv=notrunc",
             (int)page - 1);
    expect(line, DONE);
    expect("weir summary torn.db", FAILED);
    assert_has(err, "malformed");
    expect("weir export torn.db --format json", FAILED);
    expect("weir query torn.db --by lap", FAILED);
    expect("weir check torn.db", FAILED);
    expect("weir merge whole.db torn.db", FAILED);
}

TEST_CASE(a_run_without_steps_is_said_to_have_none)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "n", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 1 });
    recording_end(writer, 1010);
    expect("weir query a.db --by step", NOTHING);
    assert_has(err, "no lap that matches the filters has a step; programs mark steps with weir_pipeline_mark_step()");
}

TEST_CASE(where_nothing_fulfils_the_conditions_it_is_said)
{
    close_writer(open_writer(in_folder("none.db"), NULL)); /* a database without a run */
    static const char *const lines[] = {
        "summary job.db --since 1 --until 2",
        "summary job.db --name nobody",
        "summary job.db --run 7",
        "query job.db --phase holiday",
        "query job.db --steps 1000:2000",
        "query job.db --by step --node gamma",
        "failures job.db --name nobody",
        "slowest job.db --until 5",
        "summary none.db",
        "query none.db",
        "failures none.db",
        "query none.db --by lap --run all",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[200];
        snprintf(line, sizeof line, "weir %s", lines[i]);
        expect(line, NOTHING);
        assert_has(err, "weir ");
        snprintf(line, sizeof line, "weir %s --json", lines[i]);
        expect(line, NOTHING);
        if (*out)
            assert_is_json(); /* an empty table is one, too */
    }
    expect("weir query job.db --node alpha", NOTHING); /* the last run is one of beta */
    assert_has(err, "--run all selects the nodes and ranks of all runs");
    expect("weir query job.db --rank 0 --run 2", NOTHING);
    assert_lacks(err, "--run all");
    expect("weir query job.db --node alpha --run all", DONE);
}

/* -- numbers */

TEST_CASE(numbers_read_back_as_the_same_numbers)
{
    static const char *const numbers[] = { "0.1", "1e-09", "0.00000015", "4.5", "123456.123456789", "0.333333333" };
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "n", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 1 });
    recording_end(writer, 1010);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char sql[200];
        snprintf(sql, sizeof sql, "UPDATE queue_stats SET elapsed = %s", numbers[i]);
        execute(in_folder("a.db"), sql);
        expect("weir export a.db --format json --table queues", DONE);
        snprintf(sql, sizeof sql, "SELECT json_extract(?1, '$[0].elapsed') = %s", numbers[i]);
        char *same = in_output(sql);
        if (strcmp(same, "1") != 0)
            fail_msg("%s in:\n%s", numbers[i], out);
        free(same);
        expect("weir export a.db --format csv --table queues | cut -d, -f4 | tail -1", DONE);
        assert_true(strtod(out, NULL) == strtod(numbers[i], NULL));
    }
}

/* -- watch; test_pictures.c has more of it */

static void assert_fits(size_t width);

TEST_CASE(watch_shows_stages_and_queues)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "elsewhere", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4 });
    recording_end(writer, 1010);
    expect("weir watch a.db --once", DONE);
    assert_has(out, "Stages: tasks and failed so far; the rest is of the latest lap\n"
                    "stage           tasks  failed  per s");
    assert_has(out, "queue                 items  per s");
    expect("weir watch a.db --once --run all", REFUSED);
    assert_has(err, "one run is shown at a time");
}

TEST_CASE(watch_shows_cpus_memory_frames_and_the_slowest_file)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "elsewhere", 0, 1000);
    for (int i = 1; i <= 4; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = 40 });
    record_event(writer, 1039, "stall");
    recording_end(writer, 1040);
    execute(in_folder("a.db"),
            "INSERT INTO process_stats (timestamp, elapsed, name, run_id, cpu_time, resident_bytes, num_cpus)"
            " VALUES (1040, 10, '0:process', 1, 15, 2e8, 4);"
            "INSERT INTO item_stats (timestamp, run_id, name, seq, label, elapsed, num_frames, chosen) VALUES"
            " (1035, 1, '0:1:decode[10]', 1, 'a.mp4', 0.5, 50, 'sample'),"
            " (1036, 1, '0:1:decode[10]', 2, 'slow.mp4', 2.5, 900, 'slowest');"
            "INSERT INTO counter_stats (timestamp, elapsed, name, run_id, kind, num_updates, last_value, known_time, "
            "increase) VALUES (1030, 10, 'weir/frames', 1, 'total', 40, 1100, 10, 1000),"
            " (1040, 10, 'weir/frames', 1, 'total', 40, 5690, 10, 4590)");
    execute(in_folder("a.db"), "UPDATE run SET ended = NULL");
    expect("weir watch a.db --once", DONE); /* sampled items have fewer frames than most */
    assert_has(out, "\n  4 files/s   459 frames/s   1.50 of 4 CPUs   200 MB memory\n");
    assert_has(out, "slowest of the latest laps: 2.50 s in slow.mp4\n");
    assert_has(out, "running for long");
    execute(in_folder("a.db"), "UPDATE run SET ended = 1040");
    expect("weir watch a.db --once", DONE); /* of an ended run the head is that of the summary */
    assert_has(out, "\n  4 files/s   280 frames/s   1.50 of 4 CPUs\n");
    assert_lacks(out, "running for long");
}

TEST_CASE(watch_tells_a_killed_run_from_one_that_goes_on)
{
    weir_sqlite_writer *writer = open_writer(in_folder("a.db"), NULL);
    weir_run_info info = { .start_unix_ns = 1000 * WEIR_SECOND, .threads = 1 };
    weir_observer observer = weir_sqlite_observer(writer);
    observer.run_start(observer.self, &info);
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    expect("weir watch a.db --once", DONE);
    assert_has(out, "running for ");
    expect("weir query a.db", NOTHING);
    assert_has(err, "no such records in this run");
    expect("weir summary a.db", NOTHING);
    assert_has(err, "run 1 has recorded no lap; its state is: running\n");
    /* a process that has ended */
    expect("sh -c 'echo $$'", DONE);
    char sql[100];
    snprintf(sql, sizeof sql, "UPDATE run SET pid = %d", atoi(out));
    execute(in_folder("a.db"), sql);
    expect("weir watch a.db --once", DONE);
    assert_has(out, "killed: its process ");
    expect("weir summary a.db", NOTHING);
    assert_has(err, "run 1 has recorded no lap; its state is: killed\n");
    execute(in_folder("a.db"), "UPDATE run SET node_id = 'elsewhere'");
    expect("weir watch a.db --once", DONE);
    assert_has(out, "running or killed: ");
    close_writer(writer);
}

/* Rates of 1, 2, 4 and 8 items per second are an eighth, a quarter, a half and all of seven steps. */
static void record_growth(void)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "elsewhere", 0, 1000);
    for (int i = 1; i <= 4; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = 5u << i });
    recording_end(writer, 1040);
}

/* What was before the last minute, and before the laps of the limit, is not shown. */
TEST_CASE(watch_draws_the_history_of_the_rate)
{
    record_growth();
    expect("LC_ALL=C.UTF-8 weir watch a.db --once", DONE);
    assert_has(out, "\n  last 40.0 s   items/s ▂▃▅█ up to 8.0\n");
    expect("LC_ALL=C weir watch a.db --once", DONE);
    assert_has(out, "\n  last 40.0 s   items/s .-=# up to 8.0\n");
    for (const char *c = out; *c; c++)
        assert_true((unsigned char)*c < 0x80);
    weir_sqlite_writer *writer = recording_begin(in_folder("long.db"), "elsewhere", 0, 1000);
    for (int i = 1; i <= 30; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = i <= 6 ? 800 : 40 });
    recording_end(writer, 1300);
    expect("LC_ALL=C weir watch long.db --once", DONE);
    assert_has(out, "\n  last 0:04:00   items/s ######################## up to 4.0\n");
}

TEST_CASE(watch_has_bars_and_history_where_the_terminal_has_room)
{
    static const struct {
        int width;
        bool has_bar, has_history;
    } cases[] = { { 60, true, false }, { 80, true, false }, { 200, true, true } };
    record_growth();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[100];
        snprintf(line, sizeof line, "COLUMNS=%d LC_ALL=C.UTF-8 weir watch a.db --once", cases[i].width);
        expect(line, DONE);
        assert_fits((size_t)cases[i].width);
        assert_true((strstr(out, "stage           busy ") != NULL) == cases[i].has_bar);
        assert_true((strstr(out, "busy before") != NULL) == cases[i].has_history);
    }
    assert_has(out, "level before");
    expect("weir watch a.db --once", DONE); /* on no terminal, tables have figures only */
    assert_lacks(out, "stage           busy ");
}

TEST_CASE(watch_prints_its_state_as_json)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "elsewhere", 0, 1000);
    for (int i = 1; i <= 4; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = 4, .num_failures = i == 4 });
    record_failure(writer, 1036, "bad \"1\".mp4", 0.1);
    recording_end(writer, 1040);
    expect("weir watch a.db --once --json", DONE);
    assert_is_json();
    assert_json("$.run_id", "1");
    assert_json("$.state", "finished");
    assert_json("$.elapsed", "40");
    assert_json("$.last_lap_time", "1040");
    assert_json("$.failures", "1");
    assert_has(out, "bad \\\"1\\\".mp4");
    assert_json("$.expected", "null");
    assert_json("$.remaining", "null");
    assert_json("$.stages[0].num_tasks", "16");
    assert_json("$.last_lap.stages[0].num_tasks", "4");
    assert_json("$.last_lap.queues[0].num_laps", "1");
    execute(in_folder("a.db"), "UPDATE queue_stats SET num_items = 3 * num_items");
    expect("weir watch a.db --once --json", DONE);
    assert_json("$.done", "16"); /* files, although each was delivered in three chunks */
    expect("weir watch a.db --json", REFUSED);
    assert_has(err, "--json: only with --once");
}

/* -- plot; test_pictures.c has more of it */

/* Draws a.db; the picture is the output then, and no warning was printed. */
static void plot(const char *options)
{
    char line[300];
    snprintf(line, sizeof line, "weir plot a.db -o a.svg --force %s >/dev/null && cat a.svg", options);
    expect(line, DONE);
    assert_string_equal(err, "");
}

/* Whether tags are closed in their order, attributes are in quotes, and only the five entities of XML are used. */
static bool is_well_formed(const char *xml)
{
    char open[50][20];
    int depth = 0;
    const char *at = strchr(xml, '\n') + 1; /* behind <?xml …?> */
    for (; *at; at++) {
        char name[20] = "";
        if (*at == '&' && strncmp(at, "&lt;", 4) != 0 && strncmp(at, "&gt;", 4) != 0 &&
            strncmp(at, "&amp;", 5) != 0 && strncmp(at, "&quot;", 6) != 0)
            return false;
        if (*at != '<')
            continue;
        const char *end = at;
        for (bool is_quoted = false; *end && (is_quoted || *end != '>'); end++) {
            is_quoted ^= *end == '"';
            if (end > at && *end == '<')
                return false;
        }
        bool is_end = at[1] == '/';
        if (!*end || sscanf(at + 1 + is_end, "%19[a-zA-Z]", name) != 1 || depth >= 50)
            return false;
        if (is_end && (depth == 0 || strcmp(open[--depth], name) != 0))
            return false;
        if (!is_end && end[-1] != '/')
            strcpy(open[depth++], name);
        at = end;
    }
    return depth == 0;
}

/* A graph of the picture: its axes, and one of its curves. */
struct drawn {
    double x0, x1, t0, t1, y0, y1, v0, v1;
    char *path; /* of the curve, NULL = there is none of that name; to be freed */
};

static struct drawn find_curve(const char *name)
{
    struct drawn found = { .path = NULL };
    char begin[200], quoted[160];
    snprintf(quoted, sizeof quoted, "data-n=\"%s\" d=\"", name);
    snprintf(begin, sizeof begin, "data-x=\"");
    for (const char *graph = strstr(out, begin); graph; graph = strstr(graph + 1, begin)) {
        const char *next = strstr(graph + 1, begin), *curve = strstr(graph, quoted);
        if (!curve || (next && curve > next))
            continue;
        sscanf(graph + 8, "%lf %lf %lf %lf %lf %lf %lf %lf", &found.x0, &found.x1, &found.t0, &found.t1, &found.y0,
               &found.y1, &found.v0, &found.v1);
        curve += strlen(quoted);
        found.path = strndup(curve, strcspn(curve, "\""));
        return found;
    }
    return found;
}

static size_t count_letters(const char *text, const char *letters)
{
    size_t count = 0;
    for (; *text; text++)
        count += strchr(letters, *text) != NULL;
    return count;
}

static size_t count_text(const char *text, const char *wanted)
{
    size_t count = 0;
    for (; (text = strstr(text, wanted)); text++)
        count++;
    return count;
}

/* The highest and the lowest value of a curve of steps, by its pixels. */
static void read_values(const struct drawn *drawn, double *low, double *high)
{
    double x, y;
    *low = INFINITY;
    *high = -INFINITY;
    for (const char *at = drawn->path; *at; at++) {
        if ((*at != 'M' || sscanf(at + 1, "%lf %lf", &x, &y) != 2) && (*at != 'V' || sscanf(at + 1, "%lf", &y) != 1))
            continue;
        double value = drawn->v0 + (y - drawn->y0) / (drawn->y1 - drawn->y0) * (drawn->v1 - drawn->v0);
        *low = fmin(*low, value);
        *high = fmax(*high, value);
    }
}

/* weir record's first lap is of 1 s, the next ones of the interval; those of short phases and modes are short, too. The rate of
   the short one is ten times that of the others. Held constant: one stage, tasks of equal time. */
TEST_CASE(plot_cuts_off_no_lap_that_can_be_read)
{
    static const double lengths[][4] = { { 1, 8 },      { 1, 60, 30 },     { 1, 60, 60, 40 }, { 10, 10, 10, 6 },
                                         { 5, 60, 60 }, { 60, 2, 60, 60 }, { 3, 3 } };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        double at = 1000, shortest = INFINITY, low, high;
        unlink(in_folder("a.db"));
        weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, at);
        for (size_t j = 0; j < 4 && lengths[i][j] > 0; j++)
            shortest = fmin(shortest, lengths[i][j]);
        for (size_t j = 0; j < 4 && lengths[i][j] > 0; j++) {
            at += lengths[i][j];
            uint64_t per_s = lengths[i][j] == shortest ? 20 : 2;
            record_lap(
                writer,
                &(invented_lap){ .at = at, .elapsed = lengths[i][j], .num_tasks = per_s * (uint64_t)lengths[i][j] });
        }
        recording_end(writer, at);
        plot("");
        struct drawn drawn = find_curve("0:2:sink_queue");
        assert_non_null(drawn.path);
        read_values(&drawn, &low, &high);
        assert_true(drawn.v1 > 20 && fabs(high - 20) < 0.1); /* below the end of the axis, where it belongs */
        free(drawn.path);
    }
}

/* The rate of a lap that was cut short would be a spike: here 40 per second instead of 0.4. */
TEST_CASE(plot_takes_no_scale_from_a_short_last_lap)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    for (int lap = 1; lap <= 5; lap++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * lap, .num_tasks = 4 });
    record_lap(writer, &(invented_lap){ .at = 1051, .elapsed = 1, .num_tasks = 40 });
    recording_end(writer, 1051);
    plot("");
    struct drawn drawn = find_curve("0:2:sink_queue");
    assert_true(drawn.v1 > 0.4 && drawn.v1 < 0.5);
    free(drawn.path);
}

/* 2,000 laps of one second; one has a hundred times as many items, one has none. */
static void record_spike(void)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    for (int i = 1; i <= 2000; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + i,
                                            .elapsed = 1,
                                            .num_tasks = i == 777    ? 400
                                                         : i == 1234 ? 0
                                                                     : 3 + (uint64_t)(i / 7 % 3),
                                            .phase = i > 1000 ? "eval" : "train" });
    recording_end(writer, 3000);
}

TEST_CASE(a_curve_has_no_more_points_than_pixels_and_keeps_spikes)
{
    record_spike();
    plot("");
    struct drawn drawn = find_curve("0:2:sink_queue");
    assert_in_range(count_letters(drawn.path, "MLHV"), 200, (unsigned)(drawn.x1 - drawn.x0));
    free(drawn.path);
    assert_has(out, "0:2:sink_queue: lowest 0, highest 400");
    /* the band reaches both, at their pixels */
    char top[40], foot[40];
    snprintf(top, sizeof top, "%.2f", drawn.y0 + 400 / drawn.v1 * (drawn.y1 - drawn.y0));
    snprintf(foot, sizeof foot, " %.0f", drawn.y0);
    const char *band = strstr(out, "<path class=\"b b0\"");
    assert_non_null(band);
    char *path = strndup(band, strcspn(band, ">"));
    assert_has(path, top);
    assert_has(path, foot);
    free(path);
    assert_in_range(strlen(out), 5000, 200000);
    plot("--all");
    assert_in_range(strlen(out), 20000, 1500000);
}

TEST_CASE(pictures_are_well_formed_whatever_the_names_are)
{
    static const char *const names[] = { "<b>&\"'",      "a\\nb\x1b[1m", "\xff\xc3(",
                                         "\xef\xbf\xbe", "训练/损失 é",  "]]>--></text>" };
    record_spike();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sqlite3 *db = connect_to(in_folder("a.db"));
        char *sql = sqlite3_mprintf("UPDATE queue_stats SET phase = %Q, name = '0:2:' || %Q WHERE name LIKE '0:2:%%';"
                                    "UPDATE task_stats SET name = '0:1:' || %Q;"
                                    "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail) VALUES"
                                    " (1500, %Q, 1, 'user', ''), (1600, %Q || '_start', 1, 'user', ''),"
                                    " (1700, %Q || '_stop', 1, 'user', '')",
                                    names[i], names[i], names[i], names[i], names[i], names[i]);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_free(sql);
        sqlite3_close(db);
        plot("--all");
        if (!is_well_formed(out))
            fail_msg("name %zu: not well-formed", i);
        for (const char *c = out; *c; c++)
            assert_true((unsigned char)*c >= ' ' || *c == '\n');
        assert_lacks(out, "\xff");
        assert_lacks(out, "\xef\xbf\xbe");
        assert_lacks(out, "<b>");
    }
}

TEST_CASE(plot_marks_events_by_name)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4 });
    record_event(writer, 1001, "expected_items");
    record_event(writer, 1001, "trace_file");
    record_event(writer, 1002, "gc");
    record_event(writer, 1003, "disk's full");
    recording_end(writer, 1010);
    plot("");
    assert_has(out, ">gc</text>");
    assert_has(out, ">disk's full</text>");
    assert_has(out, "<title>disk's full at 3 seconds</title>");
    assert_lacks(out, "expected_items");
    assert_lacks(out, "trace_file");
}

/* There is room for a few names at one place: the others are listed. */
TEST_CASE(plot_drops_no_name_of_an_event)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4 });
    for (int i = 0; i < 30; i++) {
        char name[20];
        snprintf(name, sizeof name, "saved model %d", i);
        record_event(writer, 1005, name);
    }
    for (int i = 0; i < 70; i++)
        record_event(writer, 1005.5, "epoch");
    recording_end(writer, 1010);
    plot("");
    for (int i = 0; i < 30; i++) {
        char name[20];
        snprintf(name, sizeof name, "saved model %d", i);
        assert_has(out, name);
    }
    assert_has(out, ">More events: saved model 4 at 5 seconds, ");
    assert_has(out, "epoch × 70, the first at 5.5 seconds");
}

/* In each panel, from start to stop. What is not ended, or begins again before, remains a line. */
TEST_CASE(plot_shades_pauses_and_lists_the_longest)
{
    static const struct {
        double at;
        const char *name;
    } events[] = { { 1001, "gc_start" },    { 1001.5, "io/begin" }, { 1002, "gc_stop" }, { 1003, "gc_start" },
                   { 1003.25, "gc_start" }, { 1003.5, "gc_stop" },  { 1005, "io/end" },  { 1006, "gc_stop" },
                   { 1007, "gcx_start" },   { 1008, "gc_stop" },    { 1009, "start" } };
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1005, .elapsed = 5, .num_tasks = 4 });
    record_lap(writer, &(invented_lap){ .at = 1010, .elapsed = 5, .num_tasks = 40 });
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        record_event(writer, events[i].at, events[i].name);
    recording_end(writer, 1010);
    plot("--all");
    assert_has(out, ">3 pauses, 4.75 s in all. Longest: io 3.5 s at 1.5 seconds, gc 1 s at 1 seconds, gc 0.25 s at "
                    "3.25 seconds</text>");
    assert_has(out, "<title>io: 3.50 s at 1.5 seconds</title>");
    size_t num_panels = 0;
    for (const char *at = strstr(out, ">Stages</text>"); (at = strstr(at, "data-x=\"")); at++) {
        double x0, x1;
        char begin[40], end[40];
        sscanf(at + 8, "%lf %lf", &x0, &x1);
        snprintf(begin, sizeof begin, "M%g ", round(100 * (x0 + 0.15 * (x1 - x0))) / 100);
        snprintf(end, sizeof end, "H%gV", round(100 * (x0 + 0.5 * (x1 - x0))) / 100);
        const char *pauses = strstr(at, "<path class=\"p\" d=\"");
        assert_non_null(pauses);
        char *path = strndup(pauses, strcspn(pauses, ">"));
        assert_has(path, begin);
        assert_has(path, end);
        free(path);
        num_panels++;
    }
    assert_in_range(num_panels, 2, 100);
    assert_has(out, ">gc_start</text>");
    assert_has(out, ">gcx_start</text>");
    assert_lacks(out, ">io/end<");
}

TEST_CASE(plot_has_no_panel_of_what_does_not_change)
{
    for (int i = 0; i < 2; i++) {
        unlink(in_folder("a.db"));
        weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
        for (int lap = 1; lap <= 4; lap++)
            record_lap(writer, &(invented_lap){ .at = 1000 + 10 * lap,
                                                .num_tasks = i && lap == 2 ? 8 : 4,
                                                .times = i && lap == 3 ? (double[]){ 1, 2, 3, 4 } : NULL });
        recording_end(writer, 1040);
        plot("");
        assert_has(out, ">Items per second</text>"); /* the first picture is always there, alone */
        assert_lacks(out, "mean run time");
        plot("--all");
        i ? assert_has(out, ">average: mean run time of successful tasks</text>")
          : assert_lacks(out, "mean run time");
        i ? assert_has(out, ">per s: items taken out per second</text>") : assert_lacks(out, "per s: items");
        assert_lacks(out, "mean number of bytes"); /* the same in all laps */
    }
}

/* A database with laps of stages and queues, one span, one marker and three counters, one of which has two values. */
static void record_spans(void)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    for (int lap = 1; lap <= 4; lap++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * lap, .num_tasks = 4 });
    recording_end(writer, 1040);
    execute(
        in_folder("a.db"),
        "INSERT INTO span_stats (timestamp, elapsed, name, run_id, kind, num_spans, total_time, min_time, max_time)"
        " VALUES (1010, 10, 'io/read', 1, 'span', 20, 5, 0.1, 0.5), (1040, 10, 'io/read', 1, 'span', 20, 5, 0, 1),"
        " (1010, 10, 'io/save', 1, 'marker', 3, 0, 0, 0);"
        "INSERT INTO counter_stats (timestamp, elapsed, name, run_id, num_updates, last_value, min_value,"
        " max_value, value_time, known_time) VALUES (1010, 10, 'train/loss/a', 1, 5, 0.5, 0.25, 0.75, 6, 10),"
        " (1020, 10, 'train/loss/a', 1, 5, 0.5, 0.25, 0.75, 6, 10), (1010, 10, 'train/loss/b', 1, 1, 2, 2, 2, 2, 1),"
        " (1010, 10, 'disk''s/left', 1, 1, -7, -7, -7, -70, 10)");
}

/* Where there is none in the middle, the curve is interrupted. */
TEST_CASE(plot_draws_spans_and_a_panel_for_each_counter)
{
    record_spans();
    execute(in_folder("a.db"), "UPDATE span_stats SET num_spans = 40 WHERE timestamp = 1040");
    plot("--all");
    assert_has(out, ">average: mean time of a span</text>");
    assert_has(out, ">io/read</text>");
    struct drawn drawn = find_curve("io/read");
    double low, high;
    read_values(&drawn, &low, &high);
    assert_true(fabs(low - 2) < 0.03 && fabs(high - 4) < 0.03); /* 20 and 40 in 10 s */
    assert_int_equal(count_letters(drawn.path, "M"), 2);
    assert_has(out, "io/read: lowest 125 ms, highest 250 ms");
    assert_has(out, "io/save: lowest 0.3, highest 0.3"); /* the marker, which takes no time */
    assert_lacks(out, ">train/loss/a</text>");           /* it does not change */
    free(drawn.path);
    execute(in_folder("a.db"), "UPDATE counter_stats SET value_time = 12 WHERE name = 'train/loss/a' AND timestamp = "
                               "1020; INSERT INTO counter_stats (timestamp, elapsed, name, run_id, num_updates, "
                               "last_value, min_value, max_value, value_time, known_time) VALUES (1020, 10, "
                               "'disk''s/left', 1, 1, -9, -9, -9, -90, 10)");
    plot("--all");
    assert_has(out, ">train/loss/a</text>"); /* each value has a scale of its own */
    assert_has(out, ">disk's/left</text>");
    drawn = find_curve("disk's/left");
    assert_true(drawn.v0 < -9 && drawn.v0 > -10 && drawn.v1 > -7 && drawn.v1 < -6);
    free(drawn.path);
    execute(in_folder("a.db"), "UPDATE counter_stats SET value_time = 6 WHERE value_time = 12; DELETE FROM "
                               "counter_stats WHERE last_value = -9");
    expect("weir query a.db --by counter", DONE);
    assert_has(out, "\ntrain/loss/a  level     2       10   0.5  0.25   0.6  0.75\n");
}

/* The mean of a total, or its growth in laps of different lengths, would say nothing. */
TEST_CASE(totals_are_shown_by_growth_and_rate_and_levels_by_mean)
{
    record_spans();
    execute(in_folder("a.db"),
            "INSERT INTO counter_stats (timestamp, elapsed, name, run_id, kind, num_updates, last_value, known_time, "
            "increase) VALUES (1010, 10, 'weir/frames', 1, 'total', 9, 1000, 10, 1000),"
            " (1030, 20, 'weir/frames', 1, 'total', 9, 7000, 20, 6000)");
    expect("weir query a.db --by counter --name weir/frames", DONE);
    assert_has(out, "\nweir/frames  total     2       18  7000    7000  233.333\n");
    expect("weir query a.db --by counter --sort total --top 1", DONE);
    assert_has(out, "\nweir/frames  total ");
    expect("weir summary a.db --full", DONE);
    assert_has(out, "  Total: weir/frames\n    Growth: 7000, 233.333 per second; last 7000; 18 updates\n");
    assert_has(out, "  Level: train/loss/a\n    Last: 0.5, min 0.25, mean 0.6, max 0.75; 10 updates\n");
    expect("weir summary a.db", DONE);
    assert_has(out, "   233 frames/s");
    plot("--all");
    assert_has(out, ">weir/frames per s</text>");
    assert_has(out, "weir/frames: lowest 100, highest 300");
    expect("weir export a.db -f csv --table counters", DONE);
    assert_has(out, "weir/frames");
    expect("weir report a.db -o -", DONE);
    assert_lacks(out, ">4000<"); /* a mean of the total */
    assert_has(out, "233.333");
}

/* Chinese and Japanese characters have two columns, combining marks none, whatever the locale is. */
TEST_CASE(columns_of_tables_are_aligned_behind_wide_names)
{
    record_spans();
    execute(in_folder("a.db"), "UPDATE counter_stats SET name = '训练/损失' WHERE name = 'train/loss/a';"
                               "UPDATE counter_stats SET name = 'e\xcc\x81/ﾊﾟ' WHERE name = 'train/loss/b'");
    static const char *const locales[] = { "C", "C.UTF-8", "POSIX" };
    for (size_t i = 0; i < 3; i++) {
        char line[100];
        snprintf(line, sizeof line, "LC_ALL=%s weir query a.db --by counter", locales[i]);
        expect(line, DONE);
        assert_has(out, "counter      kind   laps");
        assert_has(out, "\n训练/损失    level     2");
        assert_has(out, "\ne\xcc\x81/ﾊﾟ         level     1");
        assert_has(out, "\ndisk's/left  level     1");
    }
}

TEST_CASE(plot_says_how_many_spans_and_counters_it_leaves_out)
{
    record_spans();
    execute(in_folder("a.db"),
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 16)"
            " INSERT INTO span_stats (timestamp, elapsed, name, run_id, kind, num_spans, total_time, min_time,"
            " max_time) SELECT 1010, 10, 'many/s' || i, 1, 'span', 1, i, i, i FROM n;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 16)"
            " INSERT INTO counter_stats (timestamp, elapsed, name, run_id, num_updates, last_value, min_value,"
            " max_value, value_time, known_time) SELECT 1010, 10, 'many/c' || i, 1, 1, i, i, i, i, 1 FROM n");
    execute(in_folder("a.db"), "UPDATE span_stats SET num_spans = 40 WHERE timestamp = 1040;"
                               "UPDATE counter_stats SET value_time = 12 WHERE value_time = 6 AND timestamp = 1020");
    plot("--all");
    assert_has(out, ">4 more: see --name<"); /* of 18 spans, and of 19 counters; the longest spans are drawn */
    assert_has(out, ">5 more: see --name<");
    assert_has(out, ">many/s16<");
    assert_lacks(out, ">many/s2<");
}

TEST_CASE(plot_shades_phases)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .phase = "train", .num_tasks = 4 });
    record_lap(writer, &(invented_lap){ .at = 1020, .phase = "eval", .num_tasks = 4 });
    recording_end(writer, 1020);
    plot("");
    assert_has(out, ">train</text>");
    assert_has(out, ">eval</text>");
    assert_has(out, "<title>train: 0 to 10 seconds</title>");
    assert_has(out, "<title>eval: 10 to 20 seconds</title>");
}

/* Phases that change in each lap have about as many elements as there are pixels. */
TEST_CASE(plot_draws_many_phases_as_fewer)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    for (int i = 1; i <= 4000; i++)
        record_lap(writer, &(invented_lap){
                               .at = 1000 + i, .elapsed = 1, .num_tasks = 4, .phase = i % 2 ? "train" : "eval" });
    recording_end(writer, 5000);
    plot("");
    assert_in_range(count_text(out, "<title>train: "), 100, 1000);
    assert_in_range(strlen(out), 1000, 500000);
}

TEST_CASE(a_run_of_a_millisecond_has_a_report)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1700000000);
    record_lap(writer, &(invented_lap){ .at = 1700000000.001, .elapsed = 0.001, .num_tasks = 1 });
    recording_end(writer, 1700000000.001);
    expect("weir report a.db -o a.html", DONE);
    expect("weir plot a.db -o a.svg", DONE);
}

TEST_CASE(a_plot_does_not_depend_on_the_locale)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4 });
    recording_end(writer, 1010);
    expect("LC_ALL=C weir plot a.db -o c.svg", DONE);
    assert_string_equal(err, "");
    expect("LC_ALL=C.UTF-8 weir plot a.db -o utf8.svg && cmp c.svg utf8.svg", DONE);
    assert_string_equal(err, "");
}

TEST_CASE(plot_and_report_show_the_process_and_the_machine)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_lap lap = {
        .end_unix_ns = 1010 * WEIR_SECOND, .elapsed_ns = 10 * WEIR_SECOND, .num_joined = 1, .position.phase = ""
    };
    weir_subject_lap process = {
        .subject = WEIR_SUBJECT_PROCESS,
        .kind = "process",
        .lap = &lap,
        .name = "0:process",
        .capacity = 4,
        .metrics.process = { .cpu_ns = 20 * WEIR_SECOND, .resident_bytes = 300000000, .read_bytes = 50000000 }
    };
    weir_subject_lap machine = { .subject = WEIR_SUBJECT_MACHINE,
                                 .kind = "machine",
                                 .lap = &lap,
                                 .name = "0:machine",
                                 .metrics.machine = { .other_cpu_ns = 15 * WEIR_SECOND,
                                                      .io_pressure_ns = 5 * WEIR_SECOND } };
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4 });
    observer.lap(observer.self, &process);
    observer.lap(observer.self, &machine);
    recording_end(writer, 1010);
    plot("");
    static const char *const texts[] = { ">CPUs</text>", "this process: lowest 2, highest 2",
                                         "other programs: lowest 1.5, highest 1.5", "of 4" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_has(out, texts[i]);
    expect("weir report a.db -o a.html && cat a.html", DONE);
    assert_has(out, "<h2>Process</h2>");
    assert_has(out, "<h2>Machine</h2>");
}

TEST_CASE(plot_draws_nothing_of_what_there_is_nothing_of)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4 });
    recording_end(writer, 1010);
    plot("--all --name sink");
    assert_has(out, "Items per second");
    assert_lacks(out, "run time");
    assert_lacks(out, ">Time of the slots<");
    assert_lacks(out, ">CPUs<");
    assert_lacks(out, "0:0:src_queue");
}

TEST_CASE(plot_names_every_stage_however_many)
{
    for (int i = 0; i < 5; i++) {
        weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", i, 1000 + 100 * i);
        record_lap(writer, &(invented_lap){ .at = 1010 + 100 * i, .num_tasks = 4 });
        recording_end(writer, 1010 + 100 * i);
    }
    plot("--run all --name '*_queue'");
    for (int i = 1; i <= 5; i++) {
        char name[60];
        snprintf(name, sizeof name, ">run %d 0:2:sink_queue</text>", i);
        assert_has(out, name);
        const char *label = strstr(out, name);
        while (strncmp(label, "<text", 5) != 0)
            label--;
        assert_in_range(atoi(strstr(label, "x=\"") + 3), 1, 1000 - 100); /* within the picture */
    }
}

TEST_CASE(plot_tells_runs_apart)
{
    for (int i = 0; i < 2; i++) {
        weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node", i, 1000 + 100 * i);
        record_lap(writer, &(invented_lap){ .at = 1010 + 100 * i, .num_tasks = 4 });
        recording_end(writer, 1010 + 100 * i);
    }
    plot("--run all");
    assert_has(out, "run 1 0:1:decode[10]");
    assert_has(out, "run 2 0:1:decode[10]");
    assert_has(out, "2 runs");
}

TEST_CASE(wrong_options_are_refused_with_their_name)
{
    static const struct {
        const char *line, *said;
    } cases[] = {
        { "", "Usage: weir" },
        { "sumary job.db", "sumary: no such subcommand" },
        { "--nothing", "--nothing: no such option" },
        { "--verison", "did you mean --version?" },
        { "summary job.db -run 1", "-run: no such option; did you mean --run?" },
        { "summary ''", "an argument is empty (\"\"); usage: weir summary [DB]" },
        { "help sumary", "sumary: no such subcommand" },
        { "summary", "there is no database pipeline_stats.db" },
        { "summary job.db --db other.db", "job.db: not with --db" },
        { "summary job.db other.db", "other.db: one argument too many" },
        { "compare job.db --run 1", "one database: --run-b selects the other one of its runs" },
        { "merge job.db", "usage: weir merge" },
        { "summary job.db --nothing", "--nothing: no such option" },
        { "summary job.db -x", "-x: no such option" },
        { "summary job.db --run", "--run: a value is missing" },
        { "summary job.db --run 0", "--run: \"0\" is not the number of a run" },
        { "summary job.db --run first", "\"first\" is not" },
        { "summary job.db --name ''", "--name: \"\" is not" },
        { "summary job.db --since yesterday", "--since: \"yesterday\" is not a time" },
        { "summary job.db --since -5y", "--since: \"-5y\" is not a time" },
        { "summary job.db --since 1e10", "--since: \"1e10\" is not a time" },
        { "summary job.db --since 2924-05-01", "--since: \"2924-05-01\" is not a time" },
        { "summary job.db --since 1924-05-01", "--since: \"1924-05-01\" is not a time" },
        { "summary job.db --rank 4294967296", "--rank: \"4294967296\" is not a whole number from 0 to 2147483647" },
        { "record videos --rank 4294967296", "--rank: \"4294967296\" is not a whole number from 0 to 2147483647" },
        { "summary job.db --until +1e300d", "--until: \"+1e300d\" is not a time" },
        { "query job.db --by time --bin 1e300", "--bin: \"1e300\" is not a time span" },
        { "summary job.db --since 20 --until 10", "--until: the end of the range" },
        { "summary job.db --steps 5:1", "--steps: \"5:1\" is not" },
        { "summary job.db --steps :", "--steps: \":\" is not" },
        { "summary job.db --rank one", "--rank: \"one\" is not" },
        { "summary job.db --json=yes", "takes no value" },
        { "summary job.db --json --csv", "--csv: not with --json" },
        { "query job.db --from yesterday", "a phase with --from-phase, a mode with --from-mode" },
        { "query job.db --list runs --by lap", "--list: not with --by" },
        { "query job.db --every-time", "--every-time: only with --from-phase or --from-mode" },
        { "failures job.db --null", "--null: only with --list" },
        { "failures job.db --list --null --json", "--list: not with --json" },
        { "trace job.db -o x.json --top 3", "--output: not with --top" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[200];
        snprintf(line, sizeof line, "weir %s", cases[i].line);
        expect(line, REFUSED);
        assert_has(*err ? err : out, cases[i].said);
    }
}

TEST_CASE(names_with_quotes_and_newlines_stay_in_their_place)
{
    execute(
        in_folder("job.db"),
        "DELETE FROM roll; UPDATE task_stats SET name = '0:1:it''s \"a\",' || char(10) || 'b' || char(27) || '[10]';"
        "UPDATE run SET node_id = x'ff22', command = 'a' || char(10) || '\"b\"'");
    static const char *const lines[] = { "query job.db --by run,node", "query job.db", "query job.db --list runs",
                                         "compare job.db job.db", "slowest job.db" };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[200];
        snprintf(line, sizeof line, "weir %s --json", lines[i]);
        expect(line, DONE);
        assert_is_json();
        snprintf(line, sizeof line, "weir %s --csv", lines[i]);
        expect(line, DONE);
        assert_true(assert_is_csv() > 0);
        snprintf(line, sizeof line, "weir %s", lines[i]);
        expect(line, DONE);
        assert_null(strchr(out, 27));
    }
    expect("weir query job.db --by run,node --json", DONE);
    assert_json("$[0].name", "0:1:it's \"a\",\nb\x1b[10]");
    assert_has(out, "\"\\\\xff\\\"\""); /* a byte that is not UTF-8: many readers refuse half a surrogate */
    expect("weir query job.db", DONE);
    assert_has(out, "0:1:it's \"a\",\\nb\\x1b[10]");
}

TEST_CASE(output_that_cannot_be_written_is_a_failure)
{
    if (access("/dev/full", W_OK) != 0)
        skip();
    expect("weir summary job.db >/dev/full", FAILED);
    expect("weir query job.db --by lap --csv >/dev/full", FAILED);
    expect("weir failures job.db --json >/dev/full", FAILED);
}

TEST_CASE(a_plot_that_cannot_be_written_is_a_failure_and_leaves_nothing)
{
#ifdef COUNTS_LINES
    skip(); /* the counts of lines are files that the limit would cut, too */
#endif
    if (access("/dev/full", W_OK) != 0)
        skip();
    expect("weir plot job.db -o - >/dev/full", FAILED);
    assert_has(err, "cannot print");
    record_spike();
    expect("(ulimit -f 100; weir plot a.db --all -o cut.svg)", FAILED);
    assert_has(err, "cannot write cut.svg: ");
    expect("(ulimit -f 1; weir plot job.db --all -o cut.svg)", FAILED);
    expect("test ! -e cut.svg", DONE);
}

TEST_CASE(a_merge_that_cannot_be_written_leaves_no_empty_database)
{
#ifdef COUNTS_LINES
    skip(); /* the counts of lines are files that the limit would cut, too */
#endif
    /* not 0: ThreadSanitizer writes a few bytes when it starts */
    expect("(ulimit -f 1; weir merge full.db job.db)", FAILED);
    expect("test ! -e full.db", DONE);
}

TEST_CASE(readers_leave_no_files_beside_a_closed_database)
{
    expect("cp job.db alone.db && weir summary alone.db", DONE);
    expect("weir query alone.db --by run && weir failures alone.db", DONE);
    expect("ls alone.db*", DONE);
    assert_string_equal(out, "alone.db\n");
}

TEST_CASE(laps_are_told_apart_by_their_offset)
{
    static const char *const lines[] = { "weir query job.db --by lap --json",
                                         "weir query job.db --by lap --sort max --json" };
    for (size_t i = 0; i < 2; i++) {
        expect(lines[i], DONE);
        char *wrong = in_output("SELECT count(*) || ' of ' || (count(*) > 0) FROM json_each(?1) WHERE value ->> "
                                "'$.offset' IS NULL OR value ->> '$.offset' <= 0");
        assert_string_equal(wrong, "0 of 0");
        free(wrong);
    }
    expect("COLUMNS=60 weir query job.db --by lap", DONE);
    assert_has(out, " after  ");
}

TEST_CASE(reasons_of_failures_are_whole_in_a_narrow_terminal)
{
    expect("cp job.db narrow.db", DONE);
    execute(
        in_folder("narrow.db"),
        "UPDATE task_failures SET message = 'cannot open: the index at the end of the file is missing or damaged', "
        "label = '/data/a folder/with a very long name of a file that would not fit into the terminal.mp4'");
    expect("COLUMNS=60 weir failures --run all narrow.db", DONE);
    assert_has(out, "  cannot open: the index at the end of the file is\n          missing or damaged (");
    assert_has(
        out, "\n          /data/a folder/with a very long name of a file that would not fit into the terminal.mp4\n");
    assert_has(out, " %)\n");
}

TEST_CASE(an_index_is_no_database)
{
    expect("printf 'SQLite format 3\\0%052d' 0 >clips.weir && printf weix >>clips.weir", DONE);
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        char line[200];
        snprintf(line, sizeof line, "weir %s clips.weir", readers[i]);
        expect(line, REFUSED);
        assert_has(err, "clips.weir: an index of a dataset, not a database of statistics; weir index shows it");
    }
}

/* Run 1 of the machine that recorded it was started elsewhere. */
TEST_CASE(relative_labels_say_where_they_begin)
{
    expect("cp job.db away.db", DONE);
    execute(in_folder("away.db"),
            "UPDATE task_failures SET label = 'videos/' || label; UPDATE item_stats SET label = 'videos/' || label;"
            "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail) "
            "SELECT 1000, 'working_directory', run_id, 'pipeline', '/data' FROM run");
    expect("weir summary away.db", DONE);
    assert_has(out, "\nFiles are relative to /data.\n");
}

TEST_CASE(without_a_name_it_is_the_database_that_record_writes)
{
    expect("mkdir -p fresh && cp job.db fresh/pipeline_stats.db && cp job.db fresh/other.db", DONE);
    static const char *const commands[] = { "summary",      "explain",
                                            "query",        "failures",
                                            "slowest",      "check",
                                            "fleet",        "export --format json",
                                            "watch --once", "compare --run 1 --run-b 2" };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char line[200], *named;
        snprintf(line, sizeof line, "cd fresh && weir %s", commands[i]);
        expect(line, DONE);
        named = strdup(out);
        snprintf(line, sizeof line, "cd fresh && weir %s --db pipeline_stats.db", commands[i]);
        expect(line, DONE);
        assert_string_equal(out, named);
        free(named);
    }
    expect("cd fresh && weir summary --db other.db", DONE);
    assert_has(out, "Run 2 in other.db.\nMore: ");
    assert_has(out, "explain --db other.db (");
}

/* The planted files are not libraries: a program that finds one of them does not start. The second run looks
   there. */
/* They are 150 and take longer to load than most commands to run. */
TEST_CASE(commands_that_decode_nothing_load_no_ffmpeg)
{
    expect("LD_TRACE_LOADED_OBJECTS=1 weir summary", DONE);
    assert_has(out, "libc.so");
    assert_lacks(out, "libavcodec");
    expect("weir --help", DONE); /* lists all of them */
    assert_has(out, "\n  record      decode a dataset");
    expect("LD_DEBUG=files weir --help 2>&1", DONE);
    assert_lacks(out, "libavcodec");
    expect("weir help index", DONE);
    assert_has(out, "Usage: weir index ");
    expect("weir frames --help", DONE); /* in the other program */
    assert_has(out, "Usage: weir frames");
}

TEST_CASE(libraries_are_not_looked_for_in_the_current_folder)
{
    expect("mkdir planted && cd planted && for name in $(ldd \"$WEIR_TOOL\" | sed -n 's/^[[:space:]]*\\([^/ ]*\\) "
           "=>.*/\\1/p'); do "
           "echo planted >$name; done && ls libweir-engine.* && weir --version",
           DONE);
    expect("cd planted && export LD_LIBRARY_PATH=: && weir --version", 127);
}

/* Where schemas are trusted, SQLite calls the function, and refuses for another reason. */
TEST_CASE(functions_in_the_schema_of_a_database_are_not_called)
{
    expect("cp job.db hostile.db", DONE);
    execute(in_folder("hostile.db"),
            "ALTER TABLE task_failures RENAME TO real_failures;"
            "CREATE VIEW task_failures AS SELECT *, load_extension('nothing') FROM real_failures");
    expect("weir failures hostile.db --run all", FAILED);
    assert_has(err, "unsafe use of load_extension()");
}

/* While a writer runs: every answer shows one moment, and the writer is not delayed. */
TEST_CASE(a_database_that_is_being_written_is_read)
{
    weir_sqlite_writer *writer = recording_begin(in_folder("live.db"), "n", 0, 1000);
    for (int i = 1; i <= 5; i++) {
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = 2 });
        record_failure(writer, 1000 + 10 * i, "x.mp4", 0.1);
        assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
        char wanted[80];
        snprintf(wanted, sizeof wanted, ": %d of %d files decoded, %d failed\n", 2 * i, 3 * i, i); /* in no lap yet */
        expect("weir summary live.db", DONE);
        assert_has(out, wanted);
        expect("weir query live.db --by lap --csv", DONE);
        assert_int_equal(assert_is_csv(), (size_t)i);
        expect("weir failures live.db", DONE);
        expect("weir slowest live.db", DONE);
        expect("weir compare live.db live.db", DONE);
        expect("weir check live.db", DONE);
        expect("weir merge copy.db live.db", DONE);
    }
    recording_end(writer, 1050);
}

/* -- documentation of the commands */

/* The next option of a help text, as "--name"; NULL = none. */
static const char *next_option(const char *help, char name[64])
{
    const char *line = help;
    while ((line = strstr(line, "\n  -"))) {
        const char *dashes = strstr(line, "--");
        size_t length = dashes ? 2 + strspn(dashes + 2, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;
        line += 3;
        if (length > 2 && length < 64) {
            memcpy(name, dashes, length);
            name[length] = '\0';
            return line;
        }
    }
    return NULL;
}

/* "\-\-name" */
static void escape(const char *name, char *escaped)
{
    for (; *name; name++) {
        if (*name == '-')
            *escaped++ = '\\';
        *escaped++ = *name;
    }
    *escaped = '\0';
}

/* The first words of each subcommand in the list of `weir --help`; to be freed. */
static char *subcommands(void)
{
    expect("weir --help | sed -n '/^Subcommands:/,/^$/s/^  \\([a-z]*\\)  .*/\\1/p'", DONE);
    return strdup(out);
}

TEST_CASE(help_man_pages_and_completion_agree)
{
    expect("weir --completion", DONE);
    char *completion = strdup(out), *names = subcommands();
    expect("weir --manual", DONE);
    char *manual = strdup(out);
    int num_subcommands = 0, num_options = 0;
    for (char *name = strtok(names, "\n"); name; name = strtok(NULL, "\n")) {
        char line[100], option[64], escaped[128];
        num_subcommands++;
        snprintf(line, sizeof line, "weir\\-%s (1)\n", name);
        assert_has(manual, line);
        snprintf(line, sizeof line, "weir --manual %s", name);
        expect(line, DONE);
        char *page = strdup(out);
        assert_has(page, "\n.SH EXAMPLES\n");
        snprintf(line, sizeof line, "weir %s --help", name);
        expect(line, DONE);
        assert_has(out, "\nExamples:\n");
        assert_has(out, "Exit status: 0 done;");
        for (const char *at = out; (at = next_option(at, option));) {
            num_options++;
            escape(option, escaped);
            if (!strstr(page, escaped))
                fail_msg("the man page of %s lacks %s", name, option);
            char as_name[100], as_alias[100];
            snprintf(as_name, sizeof as_name, "\n%s\t%s\t", name, option);
            snprintf(as_alias, sizeof as_alias, "\t%s\t", option);
            if (!strstr(completion, as_name) && !strstr(completion, as_alias))
                fail_msg("the completion of %s lacks %s", name, option);
        }
        free(page);
    }
    assert_true(num_subcommands >= 7 && num_options > 70);
    expect("weir record --help", DONE);
    assert_has(out, "\nOptions:\n  -h, --help ");
    assert_has(out, "\n\nPipeline:\n  --concurrency N ");
    assert_has(out, "\n\nWhich frames:\n  --at TIMES ");
    expect("weir --manual sumary", REFUSED);
    assert_has(err, "did you mean summary?");
    free(manual);
    free(completion);
    free(names);
}

TEST_CASE(man_pages_are_well_formed)
{
    if (shell("command -v man >&2 && command -v groff") != DONE)
        skip();
    expect("weir --manual >weir.1 && man --warnings=all -l weir.1 | cat", DONE);
    assert_string_equal(err, "");
    assert_has(out, "EXIT STATUS");
    char *names = subcommands();
    for (char *name = strtok(names, "\n"); name; name = strtok(NULL, "\n")) {
        char line[100];
        snprintf(line, sizeof line, "weir --manual %s >page.1 && man --warnings=all -l page.1 | cat", name);
        expect(line, DONE);
        assert_string_equal(err, "");
        snprintf(line, sizeof line, "  weir %s ", name);
        assert_has(out, line);
    }
    free(names);
}

#define COMPLETION "weir --completion | awk -v shell=%s -f \"$OLDPWD/tools/main/completion.awk\" >weir.%s && "

/* The completions of bash after these words. */
static void complete(const char *words, int index)
{
    char line[600];
    snprintf(line, sizeof line,
             COMPLETION "bash -c 'compopt() { :; }; . ./weir.bash; COMP_WORDS=(%s); COMP_CWORD=%d; _weir; "
                        "echo \"${COMPREPLY[@]}\"'",
             "bash", "bash", words, index);
    expect(line, DONE);
}

/* The completions of fish at the end of a line. */
static void complete_fish(const char *words)
{
    char line[600];
    snprintf(line, sizeof line, COMPLETION "HOME=. fish --no-config -c 'source weir.fish; complete -C \"%s\"'",
             "fish", "fish", words);
    expect(line, DONE);
}

TEST_CASE(fish_completes_subcommands_options_and_choices)
{
    if (shell("command -v fish") != DONE)
        skip();
    complete_fish("weir su");
    assert_string_equal(out, "summary\tprint the metrics of a run\n");
    complete_fish("weir summary job.db --ph");
    assert_has(out, "--phase\t");
    complete_fish("weir query job.db --sort p");
    assert_has(out, "p99");
    assert_lacks(out, "avg");
    complete_fish("weir query job");
    assert_has(out, "job.db");
}

/* Prints what weir's function for zsh passes to zsh's own functions. Those complete in a terminal only. */
static void complete_zsh(const char *words, int index)
{
    char line[700];
    snprintf(line, sizeof line,
             COMPLETION "zsh -f -c '_describe() { print -l -- $commands }; _arguments() { print -l -- \"$@\" }; "
                        "words=(%s); CURRENT=%d; source ./weir.zsh'",
             "zsh", "zsh", words, index);
    expect(line, DONE);
}

TEST_CASE(zsh_completes_subcommands_options_and_choices)
{
    if (shell("command -v zsh") != DONE)
        skip();
    complete_zsh("weir su", 2);
    assert_has(out, "summary:print the metrics of a run\n");
    complete_zsh("weir query job.db --sort p", 5);
    assert_has(out, "\n--queues[show queues instead of stages]\n");
    assert_has(out, "\n--sort=[largest first]:value:(none avg p50 ");
    assert_has(out, "\n*:file:_files\n");
}

TEST_CASE(bash_completes_subcommands_options_and_choices)
{
    if (shell("command -v bash") != DONE)
        skip();
    complete("weir su", 1);
    assert_string_equal(out, "summary\n");
    complete("weir summary job.db --ph", 3);
    assert_string_equal(out, "--phase\n");
    complete("weir query job.db --sort p", 4);
    assert_string_equal(out, "p50 p90 p99\n");
    complete("weir query job", 2);
    assert_has(out, "job.db");
    complete("weir summary job.db --run l", 4);
    assert_string_equal(out, "last\n");
}

/* HELP is written for what has no sample in this recording, such as frames. */
TEST_CASE(the_grafana_dashboards_and_alerts_ask_for_metrics_that_are_exported)
{
    expect("cat \"$OLDPWD/tools/grafana/ranks.json\"", DONE);
    assert_json("$.uid", "weir-ranks");
    expect("cat \"$OLDPWD/tools/grafana/machine.json\"", DONE);
    assert_json("$.uid", "weir-machine");
    expect("weir export job.db --format openmetrics >metrics && "
           "for name in $(grep -oh 'weir_[a-z_]*' \"$OLDPWD\"/tools/grafana/* | sort -u); do "
           "grep -q \"^# HELP $name \" metrics || echo $name; done",
           DONE);
    assert_string_equal(out, "");
}

/* Silent where a run delivers, and once it has ended: the file says what is held constant. */
TEST_CASE(alerts_fire_where_nothing_is_delivered_or_failures_are_the_limit)
{
    if (shell("command -v promtool") != DONE)
        skip();
    expect("promtool test rules \"$OLDPWD/tests/alerts_test.yml\"", DONE);
}

/* The figures of the summary: one run, the whole of it. */
TEST_CASE(exported_rates_and_the_limit_are_those_of_the_other_commands)
{
    char wanted[300];
    expect("weir explain job.db --json", DONE);
    char *kind = in_output("SELECT json_extract(?1, '$.kind')"),
         *name = in_output("SELECT json_extract(?1, '$.name')");
    expect("weir query job.db --queues --json", DONE);
    char *rate = in_output("SELECT json_extract(value, '$.items_per_s') FROM json_each(?1) WHERE json_extract(value, "
                           "'$.name') = '0:2:sink_queue'");
    expect("weir export job.db --format openmetrics", DONE);
    snprintf(wanted, sizeof wanted, ",kind=\"%s\",stage=\"%s\"} 1\n", kind, name);
    assert_has(out, "\n# TYPE weir_limit gauge\nweir_limit{node=\"");
    assert_has(out, wanted);
    snprintf(wanted, sizeof wanted, "\nweir_items_per_second{node=\"beta\",rank=\"1\",run=\"2\"} %.15g\n",
             strtod(rate, NULL));
    assert_has(out, wanted);
    expect("weir export job.db --format openmetrics --name decode", DONE); /* a part of the stages has neither */
    assert_lacks(out, "weir_limit");
    assert_lacks(out, "weir_items_per_second");
    free(kind);
    free(name);
    free(rate);
}

TEST_CASE(help_is_printed_whichever_way_it_is_asked_for)
{
    expect("weir --help", DONE);
    assert_has(out, "\n  summary ");
    expect("weir help summary", DONE);
    char *help = strdup(out);
    expect("weir summary --help", DONE);
    assert_string_equal(out, help);
    expect("weir summary -h nothing.db", DONE);
    assert_string_equal(out, help);
    expect("weir --version", DONE);
    assert_has(out, "weir ");
    free(help);
}

/* -- SPDL's own databases */

static void make_spdl(const char *path)
{
    sqlite3 *db = connect_to(path);
    run_sql(db,
            "CREATE TABLE task_stats (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp REAL, name TEXT, num_tasks "
            "INTEGER, num_failures INTEGER, ave_time REAL, p90_time REAL, p99_time REAL);"
            "CREATE TABLE queue_stats (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp REAL, name TEXT, elapsed "
            "REAL, num_items INTEGER, ave_put_time REAL, ave_get_time REAL, p90_put_time REAL, p99_put_time REAL, "
            "p90_get_time REAL, p99_get_time REAL, occupancy_rate REAL);"
            "CREATE TABLE event_stats (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp REAL, event_name TEXT);"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6) "
            "INSERT INTO task_stats SELECT NULL, 1000.002 + 60 * i, '0:1:decode[10]', 100, 4, 0.4, 0.5, 0.6 FROM n;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6) "
            "INSERT INTO queue_stats SELECT NULL, 1000 + 60 * i, '0:2:sink_queue', 60, 96, 0.01, 0.02, 0.02, 0.03, "
            "0.03, 0.04, 0.75 FROM n;");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

TEST_CASE(databases_of_spdl_have_their_percentiles_in_every_lap)
{
    make_spdl(in_folder("spdl.db"));
    expect("weir query spdl.db --by lap --json", DONE);
    assert_json("$[0].p90_time", "0.5");
    assert_json("$[5].p99_time", "0.6");
    assert_json("$[0].p50_time", "null");
    expect("weir query spdl.db --by lap,queue --csv", DONE);
    expect("weir query spdl.db --list queues --json", DONE);
    assert_json("$[2].p99_get_time", "0.04");
    expect("weir query spdl.db --json", DONE);
    assert_json("$[0].p90_time", "null"); /* six laps have no common one */
    expect("weir merge idle.db job.db", DONE);
    execute(in_folder("idle.db"), "UPDATE task_stats SET num_tasks = 0, num_failures = 0, success_time = 0,"
                                  " histogram = x'01', p90_time = 0");
    expect("weir query idle.db --by lap --json", DONE);
    assert_json("$[0].p90_time", "null"); /* of no tasks */
}

TEST_CASE(what_spdl_did_not_record_is_not_shown_as_zero)
{
    make_spdl(in_folder("spdl.db"));
    expect("weir export spdl.db --format openmetrics", DONE);
    assert_has(out, "le=\"+Inf\"} 576");
    assert_null(
        strstr(out, "_bucket{node=\"\",rank=\"0\",run=\"1\",stage=\"0:1:decode[10]\",kind=\"stage\",le=\"0."));
    expect("weir watch spdl.db --once", DONE);
    assert_lacks(out, "busy"); /* shares of slots are not known */
    assert_null(strstr(out, "0.0/0"));
    expect("weir query spdl.db --by queue --json", DONE);
    assert_json("$[0].capacity", "null");
    assert_null(strstr(out, "capacity_items"));
    expect("weir query spdl.db --list runs --json", DONE);
    assert_json("$[0].pid", "null");
    assert_json("$[0].entries_lost", "null");
    expect("weir query spdl.db --list stages --json", DONE);
    assert_json("$[0].concurrency", "null");
    assert_json("$[0].queue_bytes", "null");
    expect("weir query spdl.db --by transition --json", DONE);
    assert_json("$[1]", "null"); /* the laps of a stage end 2 ms after those of the queues */
    expect("weir query spdl.db --sql", DONE);
    assert_has(out, "-- For the file that weir merge makes of this one: ");
    expect("weir fleet spdl.db --json", DONE);
    assert_json("$[0].num_items", "576");
    assert_json("$[0].state", "ended");
}

TEST_CASE(runs_of_spdl_are_merged_with_runs_of_weir)
{
    make_spdl(in_folder("spdl.db"));
    expect("weir merge both.db job.db spdl.db --json", DONE);
    assert_json("$[1].added", "1");
    expect("weir merge both.db spdl.db --json", DONE);
    assert_json("$[0].present", "1");
    expect("weir query both.db --by run --run all --name decode --json", DONE);
    assert_has(out, "\"num_tasks\": 600");
    assert_has(out, "\"ave_time\": 0.4,");
    expect("weir check both.db", DONE);
}

TEST_CASE(files_of_spdl_may_have_tasks_or_events_only)
{
    make_spdl(in_folder("spdl.db"));
    expect("cp spdl.db events.db", DONE);
    execute(in_folder("spdl.db"), "DELETE FROM queue_stats");
    expect("weir query spdl.db --by lap --json", DONE);
    assert_json("$[1].elapsed", "60");
    expect("weir query spdl.db --by lap", DONE);
    assert_lacks(out, "1060 s"); /* since 1970 */
    expect("weir merge tasks.db spdl.db --json", DONE);
    assert_json("$[0].added", "1");
    execute(in_folder("events.db"),
            "DELETE FROM queue_stats; DELETE FROM task_stats; INSERT INTO event_stats VALUES (1, "
            "1060, 'checkpoint')");
    expect("weir query events.db --list runs --json", DONE);
    assert_json("$[0].started", "1060");
    expect("weir query events.db --list events --json", DONE);
    assert_json("$[0].name", "checkpoint");
}

/* As SPDL's SQLiteStatsWriter does it: its own CREATE TABLE IF NOT EXISTS, and INSERTs of its own columns. */
TEST_CASE(a_writer_of_spdl_can_use_our_database)
{
    static const char rows[] =
        "INSERT INTO task_stats (timestamp, name, num_tasks, num_failures, ave_time, p90_time, p99_time) SELECT "
        "timestamp, "
        "name, num_tasks, num_failures, ave_time, p90_time, p99_time FROM own.task_stats; INSERT INTO queue_stats "
        "(timestamp, name, elapsed, num_items, ave_put_time, ave_get_time, p90_put_time, p99_put_time, p90_get_time, "
        "p99_get_time, occupancy_rate) SELECT timestamp, name, elapsed, num_items, ave_put_time, ave_get_time, "
        "p90_put_time, p99_put_time, p90_get_time, p99_get_time, occupancy_rate FROM own.queue_stats";
    char sql[3000];
    make_spdl(in_folder("spdl.db"));
    execute(in_folder("spdl.db"), "UPDATE task_stats SET timestamp = timestamp + 1000 WHERE id > 3");
    expect("weir merge gap.db job.db", DONE);
    snprintf(sql, sizeof sql, "ATTACH '%s' AS own; %s", in_folder("spdl.db"), rows);
    execute(in_folder("gap.db"), sql);
    expect("weir query gap.db --run 3 --by lap --csv > theirs; weir query spdl.db --by lap --csv > own; "
           "cut -d, -f4- theirs > a; cut -d, -f4- own > b; cmp a b",
           DONE);
    expect("weir merge twice.db gap.db; weir query twice.db --list runs --run all --json", DONE);
    assert_has(out, "SPDL");
    execute(in_folder("twice.db"), sql); /* another writer: not of the run that was merged */
    expect("weir query twice.db --by run --run all --name decode --json", DONE);
    assert_json("$[3].num_tasks", "600");

    expect("weir merge ours.db job.db", DONE);
    execute(in_folder("ours.db"),
            "INSERT INTO queue_stats (timestamp, name, elapsed, num_items, ave_put_time, ave_get_time, p90_put_time,"
            " p99_put_time, p90_get_time, p99_get_time, occupancy_rate) VALUES"
            " (1060, '0:0:src_queue', 60, 96, 0.01, 0.02, 0.02, 0.03, 0.03, 0.04, 0.75),"
            " (1120, '0:0:src_queue', 60, 96, 0.01, 0.02, 0.02, 0.03, 0.03, 0.04, 0.25);"
            "INSERT INTO task_stats (timestamp, name, num_tasks, num_failures, ave_time, p90_time, p99_time) VALUES"
            " (1060, '0:1:decode[10]', 100, 4, 0.4, 0.5, 0.6), (1120, '0:1:decode[10]', 100, 4, 0.2, 0.5, 0.6);"
            "INSERT INTO event_stats (timestamp, event_name) VALUES (1061, 'checkpoint');");
    expect("weir query ours.db --list runs --run all --csv", DONE);
    assert_has(out, "SPDL");
    expect("weir query ours.db --run 3 --json", DONE);
    assert_json("$[0].num_tasks", "200");
    assert_has(out, "\"ave_time\": 0.3,");
    expect("weir query ours.db --run 3 --by queue --json", DONE);
    assert_json("$[0].occupancy_rate", "0.5");
    assert_json("$[0].elapsed", "120");
    expect("weir query ours.db --run 3 --list events --json", DONE);
    assert_json("$[0].name", "checkpoint");
    expect("weir check ours.db", DONE);
}

/* Of all the selected time, also of laps without a frame. */
TEST_CASE(the_rate_of_frames_is_over_the_selection)
{
    record_spans();
    execute(
        in_folder("a.db"),
        "INSERT INTO span_stats (timestamp, elapsed, name, run_id, kind, num_spans, total_time, min_time, max_time)"
        " VALUES (1010, 10, 'display/frame', 1, 'frame', 240, 9, 0, 1), (1040, 10, 'display/frame', 1, 'frame', 60, "
        "9,"
        " 0, 1)");
    expect("weir query a.db --by span --name frame --json", DONE);
    assert_json("$[0].kind", "frame");
    assert_json("$[0].spans_per_s", "7.5");
    expect("weir query a.db --by span --name frame --until +20s --json", DONE);
    assert_json("$[0].spans_per_s", "12");
    expect("weir query a.db --by span --name frame --since +30s --json", DONE);
    assert_json("$[0].spans_per_s", "6");
}

/* ---- the tables of equivalents ---------------------------------------------------------------------------------- */

/* A word of a snippet; "A:B" and so on stand for values. */
static void append_word(char *line, size_t size, const char *word)
{
    static const char *const values[][2] = {
        { "A:B", "0:19" }, { "P", "train" }, { "Q", "eval" }, { "N", "1" }, { "GLOB", "'*'" }
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(word, values[i][0]) == 0) {
            word = values[i][1];
            break;
        }
    size_t length = strlen(line);
    snprintf(line + length, size - length, " %s", word);
}

/* An option that is named without its value gets one. */
static void append_value(char *line, size_t size, const char *option, const char *next)
{
    static const char *const values[][2] = {
        { "--since", "+0s" },
        { "--until", "+1h" },
        { "--run", "all" },
        { "--rank", "1" },
        { "--phase", "train" },
        { "--name", "'*'" },
        { "--mode", "'*'" },
        { "--top", "3" },
        { "--from-phase", "eval" },
        { "--until-phase", "eval" },
        { "--from-mode", "eval" },
        { "--until-mode", "eval" },
        { "--every-time", "--from-phase eval" },
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(option, values[i][0]) == 0 && (!next || strncmp(next, "--", 2) == 0))
            append_word(line, size, values[i][1]);
}

/* It is taken, whatever there is in the database. */
static void run_snippet(char *snippet)
{
    char line[500] = "weir query job.db", *rest, *next;
    for (char *word = strtok_r(snippet, " ", &rest); word; word = next) {
        next = strtok_r(NULL, " ", &rest);
        append_word(line, sizeof line, word);
        append_value(line, sizeof line, word, next);
    }
    size_t length = strlen(line);
    snprintf(line + length, sizeof line - length, " || [ $? -eq %d ]", NOTHING);
    expect(line, DONE);
}

/* Runs what stands in code and begins with an option. Returns how many there were. */
static int run_snippets(char *line)
{
    int count = 0;
    char *end;
    for (char *at = strchr(line, '`'); at && (end = strchr(at + 1, '`')); at = strchr(end + 1, '`')) {
        *end = '\0';
        if (strncmp(at + 1, "--", 2) != 0)
            continue;
        run_snippet(at + 1);
        count++;
    }
    return count;
}

/* Of the tables from `heading` on: a row names tests that are there, or says that there is nothing. The options that stand
   for calls of smdebug are taken as they stand. Returns how many rows there are. */
static int check_equivalents(const char *document, const char *heading, int *num_snippets)
{
    char *text = named_tests_read(document), *tables = strstr(text, heading), *rest;
    int num_rows = 0;
    bool is_of_query = false;
    assert_non_null(tables);
    for (char *line = strtok_r(tables, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        is_of_query |= strncmp(line, "| smdebug ", 10) == 0;
        if (line[0] != '|' || strstr(line, "| --- |") || strstr(line, "| weir | test |"))
            continue;
        num_rows++;
        if (named_tests_check(document, line) == 0 && !strstr(line, "| not here: "))
            fail_msg("%s: no test in: %s", document, line);
        *num_snippets += is_of_query ? run_snippets(line) : 0;
    }
    free(text);
    return num_rows;
}

TEST_CASE(each_row_of_the_tables_of_equivalents_has_a_test)
{
    int num_snippets = 0;
    assert_true(check_equivalents("docs/trace-files.md", "## For those who know Composer", &num_snippets) >= 25);
    assert_int_equal(num_snippets, 0);
    assert_true(check_equivalents("docs/tracing.md", "## For those who know MXNet", &num_snippets) >= 50);
    assert_true(num_snippets >= 40);
}

/* In text, where a percentile of few values could be taken for one of many. */
TEST_CASE(percentiles_of_few_values_are_said_to_be_their_largest)
{
    static const struct {
        uint64_t num_tasks;
        bool is_said;
    } runs[] = { { 5, true }, { 99, true }, { 100, false }, { 0, false } };
    char line[100];
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        double times[100];
        for (size_t j = 0; j < 100; j++)
            times[j] = 0.001 * (double)(j + 1);
        weir_sqlite_writer *writer = recording_begin(in_folder("few.db"), "a", 0, 1000 + 100 * (double)i);
        record_lap(writer,
                   &(invented_lap){ .at = 1010 + 100 * (double)i, .num_tasks = runs[i].num_tasks, .times = times });
        recording_end(writer, 1010 + 100 * (double)i);
        expect("weir query few.db --json", DONE);
        snprintf(line, sizeof line, "%d", runs[i].is_said || runs[i].num_tasks == 0);
        char *is_largest = in_output("SELECT coalesce(abs(json_extract(?1, '$[0].p99_time') - json_extract(?1,"
                                     " '$[0].max_time')) < 1e-9, 1)");
        assert_string_equal(is_largest, line);
        free(is_largest);
        for (int by_lap = 0; by_lap < 2; by_lap++) {
            expect(by_lap ? "COLUMNS=120 weir query few.db --by lap" : "COLUMNS=120 weir query few.db", DONE);
            assert_int_equal(strstr(out, "p99 of fewer than 100, is the largest") != NULL, runs[i].is_said);
        }
        expect("COLUMNS=120 weir query few.db --csv", DONE);
        assert_lacks(out, "fewer");
    }
}

static void report_as_spdl(const char *path, const char *events)
{
    char sql[300];
    snprintf(sql, sizeof sql, "INSERT INTO event_stats (timestamp, event_name) VALUES %s", events);
    execute(path, sql);
}

/* Those that come when no run is open are a run of their own; the default is still the run that has laps. */
TEST_CASE(events_of_spdls_writer_belong_to_the_run_that_is_open)
{
    const char *path = in_folder("events.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010 });
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    report_as_spdl(path, "(1005, 'gc_start')");
    recording_end(writer, 1020);
    report_as_spdl(path, "(1006, 'gc_stop'), (1021, 'after'), (1022, 'later')");
    expect("weir query events.db --list events --json", DONE);
    assert_json("$[0].name", "gc_start");
    assert_json("$[1].name", "gc_stop");
    assert_json("$[2].name", "null");
    expect("weir query events.db --list events --run all --csv | tail -n +2 | wc -l", DONE);
    assert_string_equal(out, "4\n");
    expect("weir query events.db --list runs --csv | grep -c SPDL", DONE);
    assert_string_equal(out, "1\n");
    expect("weir check events.db", DONE);
}

/* SPDL 0.8 calls the queue behind a stage as the stage. */
TEST_CASE(compare_pairs_queues_of_spdl_with_ours)
{
    const char *path = in_folder("theirs.db");
    make_spdl(path);
    execute(path, "UPDATE queue_stats SET name = '0:1:decode[4]'");
    expect("weir compare job.db theirs.db --all --json", DONE);
    char *both =
        in_output("SELECT count(*) FROM json_each(json_extract(?1, '$.metrics')) m WHERE m.value ->> 'name' ="
                  " '0:1:decode_queue' AND m.value ->> 'metric' = 'items_per_s' AND m.value ->> 'a' > 0 AND"
                  " m.value ->> 'b' > 0");
    assert_string_equal(both, "1");
    free(both);
}

TEST_CASE(databases_of_spdl_are_read_and_said_to_lack_something)
{
    make_spdl(in_folder("spdl.db"));
    expect("weir summary spdl.db", DONE);
    assert_has(out, "576 of 600 items decoded in ");
    assert_has(out, "Note: recorded by SPDL");
    expect("weir summary --full spdl.db", DONE);
    assert_has(out, "    Total tasks processed: 600\n    Total failures: 24\n    Average task time: 0.4000s\n"
                    "    Success rate: 96.0%\n    Number of log entries: 6\n");
    assert_has(out, "    Average QPS: 1.60\n");
    assert_has(out, "    Average occupancy rate: 75.0%\n");
    assert_has(out, "Note: recorded by SPDL");
    expect("weir query spdl.db --json", DONE);
    assert_json("$[0].num_tasks", "600");
    assert_json("$[0].busy_share", "null");
    expect("weir query spdl.db --by queue --name sink", DONE);
    expect("weir compare spdl.db spdl.db", DONE);
    assert_has(err, "recorded by SPDL");
    expect("weir slowest spdl.db || true", DONE);
    expect("weir failures spdl.db", NOTHING); /* it does not store them: that is not none */
    assert_has(err, "recorded by SPDL");
    expect("weir check spdl.db", REFUSED);
    assert_has(err, "recorded by SPDL");
    expect("weir plot spdl.db", DONE);
    assert_has(out, "spdl.svg"); /* the default of -o */
    assert_has(err, "recorded by SPDL");
}

/* -- widths and colours */

static void assert_fits(size_t width)
{
    for (const char *line = out; *line;) {
        size_t columns = 0;
        const char *c = line;
        for (; *c && *c != '\n'; c++)
            columns += ((unsigned char)*c & 0xc0) != 0x80;
        if (columns > width)
            fail_msg("%zu columns, not %zu: %.*s", columns, width, (int)(c - line), line);
        line = c + (*c == '\n');
    }
}

TEST_CASE(tables_fit_the_terminal)
{
    static const char *const lines[] = {
        "query job.db",
        "query job.db --by lap",
        "query job.db --by queue,phase",
        "query job.db --list runs",
        "query job.db --list tasks",
        "slowest job.db",
        "failures job.db",
        "watch job.db --once",
        "check --help",
        "--help",
    };
    static const int widths[] = { 60, 80, 200 };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (size_t j = 0; j < 3; j++) {
            char line[200];
            snprintf(line, sizeof line, "COLUMNS=%d weir %s", widths[j], lines[i]);
            expect(line, DONE);
            assert_fits((size_t)widths[j]);
        }
    expect("COLUMNS=80 weir query job.db", DONE);
    assert_has(out, "busy"); /* nothing is omitted */
    expect("weir query job.db | wc -l", DONE);
    assert_int_equal(atoi(out), 2); /* a pipe has no width */
}

TEST_CASE(narrow_tables_cut_nothing_and_say_once_what_is_the_same_in_all_rows)
{
    static const char label[] = "/data/a_folder/with_a_very_long_name/of_a_file_that_would_not_fit.mp4";
    expect("cp job.db narrow.db", DONE);
    execute(in_folder("narrow.db"), "UPDATE task_failures SET label = '/data/a_folder/with_a_very_long_name/"
                                    "of_a_file_that_would_not_fit.mp4', message = 'the index at the end of the file "
                                    "is missing or damaged', status = -74, library_code = -5");
    static const int widths[] = { 60, 80, 200 };
    for (size_t i = 0; i < 3; i++) {
        char line[200];
        snprintf(line, sizeof line, "COLUMNS=%d weir query narrow.db --run all --list failures --json", widths[i]);
        expect(line, DONE);
        assert_has(out, "\"library_code\": -5"); /* what programs read has all columns */
        snprintf(line, sizeof line, "COLUMNS=%d weir query narrow.db --run all --list failures", widths[i]);
        expect(line, DONE);
        assert_int_equal(strncmp(out, "In all rows: ", 13), 0);
        assert_has(out, label);
        assert_null(strstr(out, "…"));
        assert_null(strchr(out, '~'));
    }
    execute(in_folder("narrow.db"), "DELETE FROM task_failures WHERE id > (SELECT min(id) FROM task_failures)");
    expect("COLUMNS=60 weir query narrow.db --run all --list failures", DONE); /* one row: all of it is a sentence */
    assert_has(out, label);
    assert_null(strstr(out, "In all rows"));
    size_t counts[2] = { 0 };
    for (size_t i = 0; i < 2; i++) {
        expect(i == 0 ? "COLUMNS=200 weir compare job.db job.db --all"
                      : "COLUMNS=60 weir compare job.db job.db --all",
               DONE);
        for (const char *at = out; (at = strstr(at, " successes_per_s ")) != NULL; at++)
            counts[i]++;
    }
    assert_true(counts[1] > counts[0] && counts[0] > 0 &&
                counts[1] % counts[0] == 0); /* each section names the metric */
    execute(
        in_folder("narrow.db"),
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 449) INSERT INTO task_failures "
        "(run_id, timestamp, name, label, message, status) SELECT run_id, timestamp, name, label, message, status "
        "FROM task_failures, n");
    expect("COLUMNS=80 weir query narrow.db --run all --list failures", DONE); /* 450 rows: 200, 200 and 50 */
    size_t num_reported = 0;
    for (const char *at = out; (at = strstr(at, "In these rows: ")) != NULL; at++)
        num_reported++;
    assert_int_equal(num_reported, 3);
    expect("COLUMNS=60 weir watch job.db --once", DONE);
    assert_null(strstr(out, "In all rows")); /* columns of a screen that changes stay where they are */
}

TEST_CASE(colours_are_for_terminals_that_want_them)
{
    expect("weir query job.db", DONE);
    assert_null(strchr(out, '\033'));
    expect("command -v script >/dev/null && ! script -qec true /dev/null && exit 9; true", DONE);
    if (shell("command -v script >/dev/null") != 0)
        skip();
    expect("TERM=xterm script -qec \"$WEIR_TOOL query job.db\" /dev/null", DONE);
    assert_non_null(strchr(out, '\033'));
    expect("NO_COLOR=1 TERM=xterm script -qec \"$WEIR_TOOL query job.db\" /dev/null", DONE);
    assert_null(strchr(out, '\033'));
}

/* -- the live screen of weir watch, which a module has */

static void skip_without_terminal_or_ncurses(void)
{
    if (shell("command -v script >/dev/null && script -qec true /dev/null") != 0 ||
        shell("find \"${WEIR_TOOL%/*}\"/../lib* -name weir-ncurses.so | grep -q .") != 0)
        skip();
}

TEST_CASE(watch_shows_a_live_screen_until_the_user_quits)
{
    skip_without_terminal_or_ncurses();
    expect("printf hq | TERM=xterm script -qec \"$WEIR_TOOL watch job.db\" /dev/null", DONE);
    assert_has(out, "1-9 open, p pause, h help, q quit");
    assert_has(out, "stops and resumes the updates"); /* the help of the keys */
    /* ncurses does not free what it has made for such a terminal */
    expect("ASAN_OPTIONS=detect_leaks=0 TERM=no-such script -qec \"$WEIR_TOOL watch job.db\" /dev/null", REFUSED);
    assert_has(out, "unknown terminal (TERM=no-such): use --once");
}

/* Held constant: a terminal of 80 columns. Two rows of each table fit into the least height that is tried. */
TEST_CASE(watch_counts_the_rows_that_do_not_fit)
{
    skip_without_terminal_or_ncurses();
    execute(in_folder("job.db"),
            "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 12) INSERT "
            "INTO queue_stats (timestamp, name, elapsed, num_items, ave_put_time, ave_get_time, p90_put_time, "
            "p99_put_time, p90_get_time, p99_get_time, occupancy_rate, run_id) SELECT timestamp, "
            "'0:' || i || ':more_queue', elapsed, 0, 0, 0, 0, 0, 0, 0, 0, run_id FROM queue_stats, n "
            "WHERE name = '0:2:sink_queue'");
    expect("printf q | TERM=xterm script -qec \"stty rows 24 cols 80; $WEIR_TOOL watch job.db\" /dev/null", DONE);
    assert_has(out, " more");
    assert_lacks(out, "more lines");
    assert_lacks(out, "0:12:more_queue");
    expect("printf q | TERM=xterm script -qec \"stty rows 60 cols 80; $WEIR_TOOL watch job.db\" /dev/null", DONE);
    assert_has(out, "0:12:more_queue");
    assert_lacks(out, " more");
    expect("printf q | TERM=xterm script -qec \"stty rows 10 cols 80; $WEIR_TOOL watch job.db\" /dev/null", DONE);
    assert_has(out, "more lines");
    execute(in_folder("job.db"), "DELETE FROM queue_stats WHERE name LIKE '%more_queue'");
}

TEST_CASE(watch_has_colours_where_the_terminal_wants_them)
{
    skip_without_terminal_or_ncurses();
    static const char *const lines[][2] = { { "watch job.db --once", "\033[1m" }, { "watch job.db", "0;1m" } };
    for (size_t i = 0; i < 2; i++) {
        char line[200];
        snprintf(line, sizeof line, "printf q | TERM=xterm script -qec \"$WEIR_TOOL %s\" /dev/null", lines[i][0]);
        expect(line, DONE);
        assert_has(out, lines[i][1]); /* bold */
        assert_has(out, "\033[32m");
        snprintf(line, sizeof line, "printf q | NO_COLOR=1 TERM=xterm script -qec \"$WEIR_TOOL %s\" /dev/null",
                 lines[i][0]);
        expect(line, DONE);
        assert_lacks(out, lines[i][1]);
        assert_lacks(out, "\033[32m");
    }
}

TEST_CASE(watch_without_ncurses_names_the_package_and_the_way_out)
{
    skip_without_terminal_or_ncurses();
    /* a copy of the program has no module beside it, and then one that cannot be loaded */
    expect("mkdir -p alone && cp \"$WEIR_TOOL\" alone/weir", DONE);
#define COPY "COLUMNS=400 LD_LIBRARY_PATH=$(dirname \"$(ldd \"$WEIR_TOOL\" | awk '/libweir-stats/ { print $3 }')\") "
    expect(COPY "TERM=xterm script -qec 'alone/weir watch job.db' /dev/null", REFUSED);
    assert_has(out,
               "cannot load the screen with ncurses (Debian: libncursesw6): weir-ncurses.so is not there; install "
               "weir again; --once prints the state without it");
    expect("echo broken >alone/weir-ncurses.so", DONE);
    expect(COPY "TERM=xterm script -qec 'alone/weir watch job.db' /dev/null", REFUSED);
    assert_has(out, "cannot load the screen with ncurses (Debian: libncursesw6): ");
    assert_has(out, "alone/weir-ncurses.so: ");
    assert_has(out, "; --once prints the state without it");
    expect(COPY "alone/weir watch job.db --once", DONE);
#undef COPY
}

/* -- report */

TEST_CASE(a_report_is_one_file_that_needs_nothing_else)
{
    execute(in_folder("job.db"), "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail) "
                                 "SELECT started, 'working_directory', run_id, 'pipeline', '/where/it/ran' FROM run");
    expect("weir report job.db", DONE);
    execute(in_folder("job.db"), "DELETE FROM event_stats WHERE event_name = 'working_directory'");
    assert_has(out, "job.html\n"); /* the default of -o */
    expect("cat job.html", DONE);
    assert_has(out, "<!DOCTYPE html>");
    assert_has(out, "<h2>What limits it</h2>");
    assert_has(out, "Limit: ");
    assert_has(out, "0:1:decode[10]");
    assert_has(out, "<h2>Settings</h2>");
    assert_has(out, "<th class=\"words\">Start</th>");
    assert_has(out, "<th class=\"words\">Folder</th><td class=\"words\">/where/it/ran</td>");
    assert_has(out, "prefers-color-scheme:dark");
    assert_has(out, "<h2>Pipeline</h2>\n<div class=\"flow\">");
    assert_has(out, "Failures");
    static const char *const elsewhere[] = {
        "src=", "href='h", "href=\"", "<script src", "url(", "@import", "http://"
    };
    char *without_namespace = in_output("SELECT replace(?1, 'xmlns=\"http://www.w3.org/2000/svg\"', '')");
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        assert_lacks(without_namespace, elsewhere[i]);
    free(without_namespace);
    expect("weir report job.db -o - | head -c 15", DONE);
    assert_has(out, "<!DOCTYPE html>");
    expect("weir report job.db -o /proc/nothing/x.html", REFUSED);
    record_spans();
    expect("weir report a.db && cat a.html", DONE);
    assert_has(out, "<h2>Spans, frames and markers</h2>");
}

/* The picture, the slowest items, then the verdict; what is long is folded. Each picture is there for a screen and for a
   phone. */
TEST_CASE(a_report_shows_the_answer_first_and_folds_the_rest)
{
    record_spike();
    execute(in_folder("a.db"), "INSERT INTO item_stats (timestamp, name, run_id, elapsed, seq, label) VALUES "
                               "(1500, '0:1:decode[10]', 1, 2.5, 1, 'a <slow> one.mp4')");
    expect("weir report a.db -o order.html && cat order.html", DONE);
    static const char *const parts[] = { "<h2>The run over time</h2>",
                                         "<div class=\"for-screen\">\n<svg",
                                         "<div class=\"for-phone\">\n<svg",
                                         "<h2>Slowest items</h2>",
                                         "a &lt;slow&gt; one.mp4",
                                         "<h2>What limits it</h2>",
                                         "<h2>Pipeline</h2>",
                                         "<summary><h2>Settings</h2>",
                                         "<summary><h2>Stages</h2>",
                                         "<summary><h2>Stages over time</h2>",
                                         "<script>" };
    const char *at = out;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *found = strstr(at, parts[i]);
        if (!found)
            fail_msg("no %s, or not behind what precedes it", parts[i]);
        at = found;
    }
    assert_int_equal(count_text(out, "<details>"), count_text(out, "</details>"));
    assert_int_equal(count_text(out, "<svg"), count_text(out, "</svg>"));
    assert_has(out, "viewBox=\"0 0 1000 ");
    assert_has(out, "viewBox=\"0 0 380 ");
}

TEST_CASE(pictures_are_svg_or_html)
{
    expect("weir plot job.db -o a.svg >/dev/null && cat a.svg", DONE);
    assert_has(out, "<?xml version=\"1.0\"");
    assert_has(out, ">seconds</text>");
    assert_has(out, "prefers-color-scheme:dark");
    assert_true(is_well_formed(out));
    record_spike();
    expect("weir plot a.db -o a.html --all && cat a.html", DONE);
    assert_has(out, "<!DOCTYPE html>");
    assert_has(out, "<script>");
    assert_has(out, ">per s: tasks that ended per second<");
    expect("weir plot job.db -o a.pdf", REFUSED);
    assert_has(err, "a.pdf: pictures are .svg or .html; write a .svg");
    expect("echo text >kept.svg && weir plot job.db -o kept.svg", REFUSED);
    assert_has(err, "kept.svg");
    expect("cat kept.svg", DONE);
    assert_string_equal(out, "text\n");
}

int main(void)
{
    setenv("TZ", "UTC", 1); /* times of the calendar are local ones */
    weir_log_set_level(WEIR_LOG_ERROR);
    return test_cases_run(make_job, remove_job, NULL, NULL);
}
