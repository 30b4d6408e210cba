/*
 * performance_analysis from outside, as its users and their scripts see it: command line, texts, exit status, database.
 *
 * The tests share a folder with 200 files: 198 links to three tiny clips, and two that are damaged.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <sqlite3.h>

#include "tests/program.h"

enum { NUM_FILES = 200, NUM_FEW = 22, NUM_CORRUPT = 2, NUM_CLIPS = 3, MAX_ARGUMENTS = 24 };

static char *work;    /* this program's folder */
static char *dataset; /* in it: the 200 files */
static char *few;     /* in it: 22 files, two of them damaged, for tests that are not about numbers */
static char *large;   /* contains more files than a run can process during a test */
static char *db_path; /* in it; not there when a test begins */

/* -- datasets */

static void make_clip(const char *path, const char *size, int num_frames)
{
    char command[1024];
    snprintf(command, sizeof command,
             "ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=s=%s:r=25 -frames:v %d -pix_fmt yuv420p "
             "-c:v libx264 -preset ultrafast -threads 1 '%s'",
             size, num_frames, path);
    if (system(command) != 0) /* NOLINT: the test's own paths */
        fail_msg("this did not work: %s", command);
}

static void link_files(const char *folder, const char *from, const char *prefix, int first, int end, int step)
{
    for (int i = first; i < end; i += step) {
        char name[64];
        snprintf(name, sizeof name, "%s-%05d.mp4", prefix, i);
        char *path = path_in(folder, name);
        if (link(from, path) != 0)
            fail_msg("%s: %s", path, strerror(errno));
        free(path);
    }
}

static char *make_subfolder(const char *name)
{
    char *folder = path_in(work, name);
    assert_int_equal(mkdir(folder, 0700), 0);
    return folder;
}

static void make_corrupt(const char *folder)
{
    char *text = path_in(folder, "damaged-text.mp4"), *empty = path_in(folder, "damaged-empty.mp4");
    write_file(text, "This is no video.\n");
    write_file(empty, "");
    free(text);
    free(empty);
}

/* 198 good files, half of them in a folder of their own. */
static void make_dataset(char *const clips[])
{
    dataset = make_subfolder("dataset");
    char *inner = path_in(dataset, "inner");
    assert_int_equal(mkdir(inner, 0700), 0);
    for (int i = 0; i < NUM_CLIPS; i++) {
        link_files(dataset, clips[i], "clip", i, 99, NUM_CLIPS);
        link_files(inner, clips[i], "clip", 99 + i, NUM_FILES - NUM_CORRUPT, NUM_CLIPS);
    }
    make_corrupt(dataset);
    free(inner);
}

static int set_up(void **state)
{
    (void)state;
    static const char *const sizes[NUM_CLIPS] = { "64x48", "48x64", "66x50" };
    char *clips[NUM_CLIPS];
    work = make_folder();
    db_path = path_in(work, "stats.db");
    char *sources = make_subfolder("sources");
    for (int i = 0; i < NUM_CLIPS; i++) {
        clips[i] = path_in(sources, sizes[i]);
        char *with_suffix = malloc(strlen(clips[i]) + 5);
        assert_non_null(with_suffix);
        sprintf(with_suffix, "%s.mp4", clips[i]);
        free(clips[i]);
        clips[i] = with_suffix;
        make_clip(clips[i], sizes[i], 5);
    }
    make_dataset(clips);
    few = make_subfolder("few");
    link_files(few, clips[0], "clip", 0, NUM_FEW - NUM_CORRUPT, 1);
    make_corrupt(few);

    large = make_subfolder("large");
    char *longer = path_in(sources, "longer.mp4");
    make_clip(longer, "320x240", 100);
    link_files(large, longer, "clip", 0, 5000, 1);

    free(longer);
    free(sources);
    for (int i = 0; i < NUM_CLIPS; i++)
        free(clips[i]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(dataset);
    free(few);
    free(large);
    free(db_path);
    remove_folder(work);
    return 0;
}

static int remove_database(void **state)
{
    (void)state;
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", db_path, suffixes[i]);
        unlink(path);
    }
    return 0;
}

/* -- running it */

/* argv from the program's path, the usual two options and the given ones, which end with NULL. */
struct command {
    char *argv[MAX_ARGUMENTS + 1];
    int count;
};

static void add(struct command *command, const char *argument)
{
    assert_true(command->count < MAX_ARGUMENTS);
    command->argv[command->count++] = (char *)(uintptr_t)argument;
    command->argv[command->count] = NULL;
}

static struct command command_for(const char *folder, const char *const options[])
{
    struct command command = { .count = 0 };
    add(&command, program_path("PERFORMANCE_ANALYSIS"));
    if (folder) {
        add(&command, "--dataset-dir");
        add(&command, folder);
        add(&command, "--db-path");
        add(&command, db_path);
    }
    for (int i = 0; options && options[i]; i++)
        add(&command, options[i]);
    return command;
}

#define OPTIONS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void run(struct program *program, const char *folder, const char *const options[])
{
    struct command command = command_for(folder, options);
    program_run(program, work, command.argv);
}

/* Its sibling with all options, `weir record DIR`. */
static void run_record(struct program *program, const char *folder, const char *const options[])
{
    struct command command = { .count = 0 };
    add(&command, program_path("WEIR_TOOL"));
    add(&command, "record");
    add(&command, folder);
    add(&command, "--db-path");
    add(&command, db_path);
    for (int i = 0; options[i]; i++)
        add(&command, options[i]);
    program_run(program, work, command.argv);
}

/* -- the database */

/* The first column of the first row. */
static double query_number(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(db_path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    if (sqlite3_step(statement) != SQLITE_ROW)
        fail_msg("%s: no row", sql);
    double number = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

static int query_count(const char *sql)
{
    return (int)query_number(sql);
}

/* -- lines */

/* In a pattern # stands for a whole number, @ for one digit and ~ for any number of digits; all else stands for itself. */
static bool matches(const char *line, const char *pattern)
{
    for (; *pattern; pattern++) {
        bool is_digit = *line >= '0' && *line <= '9';
        if (*pattern == '~') {
            line += strspn(line, "0123456789");
        } else if (*pattern == '#' || *pattern == '@') {
            if (!is_digit)
                return false;
            do
                line++;
            while (*pattern == '#' && *line >= '0' && *line <= '9');
        } else if (*line++ != *pattern) {
            return false;
        }
    }
    return *line == '\0';
}

static bool is_of_block(const char *line)
{
    return strncmp(line, "    ", 4) == 0;
}

/* Takes the next line off the text; NULL at its end. */
static char *take_line(char **text)
{
    if (**text == '\0')
        return NULL;
    char *line = *text, *end = strchr(line, '\n');
    if (!end)
        fail_msg("no newline at the end: %s", line);
    *end = '\0';
    *text = end + 1;
    return line;
}

/* The next line must match; lines of our own may stand before it where it ends a block. */
static void expect_line(char **text, const char *pattern)
{
    char *line = take_line(text);
    while (line && !is_of_block(pattern) && is_of_block(line))
        line = take_line(text);
    if (!line || !matches(line, pattern))
        fail_msg("expected: %s\nfound:    %s", pattern, line ? line : "(the end)");
}

#define RULE      "================================================================================"
#define THIN_RULE "--------------------------------------------------------------------------------"

static void expect_queue(char **text, const char *name)
{
    char title[320];
    snprintf(title, sizeof title, "  Queue: %s", name);
    expect_line(text, "");
    expect_line(text, title);
    expect_line(text, "    Total items processed: #");
    expect_line(text, "    Average QPS: #.@@");
    expect_line(text, "    Average put time: #.@@@@~s");
    expect_line(text, "    Average get time: #.@@@@~s");
    expect_line(text, "    Average occupancy rate: #.@%");
    expect_line(text, "    Number of log entries: #");
}

/* Blocks and notes of our own follow SPDL's. */
static void skip_to(char **text, const char *wanted)
{
    char *line = take_line(text);
    while (line && strcmp(line, wanted) != 0)
        line = take_line(text);
    if (!line)
        fail_msg("no line %s", wanted);
}

/* The summary, line for line as in the design. Leaves *text after its last rule. */
static void expect_summary(char **text, const char *stage, int num_tasks, int num_failures)
{
    char line[256];
    expect_line(text, RULE);
    expect_line(text, "PIPELINE PERFORMANCE SUMMARY");
    expect_line(text, RULE);
    expect_line(text, "📊 Task Statistics:");
    expect_line(text, THIN_RULE);
    expect_line(text, "");
    snprintf(line, sizeof line, "  Stage: %s", stage);
    expect_line(text, line);
    snprintf(line, sizeof line, "    Total tasks processed: %d", num_tasks);
    expect_line(text, line);
    snprintf(line, sizeof line, "    Total failures: %d", num_failures);
    expect_line(text, line);
    expect_line(text, num_tasks > num_failures ? "    Average task time: #.@@@@~s" : "    Average task time: n/a");
    expect_line(text, "    Success rate: #.@%");
    expect_line(text, "    Number of log entries: #");
    expect_line(text, "");
    expect_line(text, "📈 Queue Statistics:");
    expect_line(text, THIN_RULE);
    expect_queue(text, "0:0:src_queue");
    snprintf(line, sizeof line, "%s_queue", stage);
    expect_queue(text, line);
    expect_queue(text, "0:2:sink_queue");
    skip_to(text, "🔀 Sources, Routes, Merges and Sinks:");
    expect_line(text, THIN_RULE);
    expect_line(text, "");
    expect_line(text, "  Source: 0:0:src");
    skip_to(text, RULE);
    snprintf(line, sizeof line, "Database: %s", db_path);
    expect_line(text, line);
    skip_to(text, RULE);
}

/* -- records and output */

static void expect_exact_totals(const char *concurrency, const char *log_interval)
{
    char stage[64];
    bool one = strcmp(concurrency, "1") == 0;
    snprintf(stage, sizeof stage, one ? "0:1:decode" : "0:1:decode[%s]", concurrency);

    struct program program;
    remove_database(NULL);
    run(&program, dataset, OPTIONS("--concurrency", concurrency, "--log-interval", log_interval));
    assert_int_equal(program.status, 0);
    char *rest = program.out;
    expect_summary(&rest, stage, NUM_FILES, NUM_CORRUPT);
    assert_int_equal(query_count("SELECT sum(num_tasks) FROM task_stats"), NUM_FILES);
    assert_int_equal(query_count("SELECT sum(num_failures) FROM task_stats"), NUM_CORRUPT);
    assert_int_equal(query_count("SELECT count(*) FROM task_failures"), NUM_CORRUPT);
    assert_int_equal(query_count("SELECT sum(num_items) FROM queue_stats WHERE name = '0:0:src_queue'"), NUM_FILES);
    assert_int_equal(query_count("SELECT sum(num_items) FROM queue_stats WHERE name = '0:2:sink_queue'"),
                     NUM_FILES - NUM_CORRUPT);
    program_free(&program);
}

TEST_CASE(totals_and_summary_are_exact_in_a_run_shorter_than_a_lap)
{
    expect_exact_totals("1", "60");
    assert_in_range(query_count("SELECT count(*) FROM task_stats"), 1, 2); /* the first lap ends after a second */
    expect_exact_totals("4", "60");
    expect_exact_totals("10", "60");
}

TEST_CASE(totals_and_summary_are_exact_at_laps_of_a_second)
{
    expect_exact_totals("1", "1");
    expect_exact_totals("4", "1");
    expect_exact_totals("10", "1");
}

TEST_CASE(totals_and_summary_are_exact_over_many_laps)
{
    expect_exact_totals("4", "0.02");
    assert_true(query_count("SELECT count(*) FROM task_stats") > 1);
}

/* Files stay tasks; what comes out of them are more items. */
TEST_CASE(long_videos_come_in_chunks)
{
    enum { NUM_LONG = 3, NUM_FRAMES = 1030, NUM_CHUNKS = 3 };
    char *folder = make_subfolder("long");
    char *clip = path_in(work, "1030.mp4");
    make_clip(clip, "32x32", NUM_FRAMES);
    link_files(folder, clip, "long", 0, NUM_LONG, 1);
    make_corrupt(folder);

    struct program program;
    remove_database(NULL);
    run(&program, folder, OPTIONS("--width", "16", "--height", "16"));
    assert_int_equal(program.status, 0);
    char *rest = program.out;
    expect_summary(&rest, "0:1:decode[10]", NUM_LONG + NUM_CORRUPT, NUM_CORRUPT);
    assert_int_equal(query_count("SELECT sum(num_items) FROM queue_stats WHERE name = '0:2:sink_queue'"),
                     NUM_LONG * NUM_CHUNKS);
    program_free(&program);

    remove_database(NULL);
    run_record(&program, folder, OPTIONS("--width", "16", "--height", "16", "--chunk-frames", "1030"));
    assert_int_equal(query_count("SELECT sum(num_items) FROM queue_stats WHERE name = '0:2:sink_queue'"), NUM_LONG);
    program_free(&program);
    free(clip);
    free(folder);
}

TEST_CASE(failed_files_are_listed_with_their_reason_below_the_summary)
{
    struct program program;
    run(&program, few, OPTIONS("--concurrency", "4"));
    assert_int_equal(program.status, 0);
    char *rest = program.out;
    expect_summary(&rest, "0:1:decode[4]", NUM_FEW, NUM_CORRUPT);
    assert_non_null(strstr(rest, "/damaged-text.mp4"));
    assert_non_null(strstr(rest, "/damaged-empty.mp4"));
    assert_non_null(strstr(rest, "Invalid data found"));
    program_free(&program);
}

TEST_CASE(no_more_than_ten_failed_files_are_listed)
{
    char *folder = make_subfolder("damaged"), *source = path_in(dataset, "damaged-text.mp4");
    link_files(folder, source, "bad", 0, 25, 1);
    struct program program;
    run(&program, folder, NULL);
    assert_int_equal(program.status, 1); /* all of them have failed */
    char *rest = program.out;
    expect_summary(&rest, "0:1:decode[10]", 25, 25);
    int listed = 0;
    for (const char *at = rest; (at = strstr(at, "/bad-")); at++)
        listed++;
    assert_int_equal(listed, 10);
    program_free(&program);
    free(source);
    free(folder);
}

/* What SPDL's own reader asks, and the columns it takes from the answer by name. */
TEST_CASE(spdl_reads_the_database)
{
    struct program program;
    run(&program, few, OPTIONS("--concurrency", "4"));
    assert_int_equal(program.status, 0);
    program_free(&program);

    static const char *const selects[] = {
        "SELECT timestamp, name, num_tasks, num_failures, ave_time, p90_time, p99_time FROM (SELECT * FROM "
        "task_stats "
        "WHERE 1=1 ORDER BY timestamp DESC)",
        "SELECT timestamp, name, elapsed, num_items, ave_put_time, ave_get_time, p90_put_time, p99_put_time, "
        "p90_get_time, p99_get_time, occupancy_rate FROM (SELECT * FROM queue_stats WHERE 1=1 ORDER BY timestamp "
        "DESC)",
        "SELECT timestamp, event_name FROM (SELECT * FROM event_stats WHERE 1=1 ORDER BY timestamp DESC)",
    };
    char count[512];
    for (size_t i = 0; i < sizeof selects / sizeof selects[0]; i++) {
        snprintf(count, sizeof count, "SELECT count(*) FROM (%s)", selects[i]);
        assert_true(query_count(count) >= (i == 0 ? 1 : i == 1 ? 3 : 0));
    }
    time_t now = time(NULL);
    double timestamp = query_number("SELECT timestamp FROM task_stats WHERE typeof(timestamp) = 'real'");
    assert_true(timestamp > (double)now - 3600 && timestamp < (double)now + 60);
    assert_true(query_number("SELECT max(occupancy_rate) FROM queue_stats") <= 1.0);
}

TEST_CASE(one_database_holds_many_runs_and_the_summary_is_of_the_last)
{
    struct program program;
    run(&program, few, OPTIONS("--concurrency", "4"));
    program_free(&program);
    run(&program, few, OPTIONS("--concurrency", "2", "--glob", "damaged-*"));
    char *rest = program.out;
    expect_summary(&rest, "0:1:decode[2]", NUM_CORRUPT, NUM_CORRUPT);
    assert_int_equal(query_count("SELECT count(*) FROM run"), 2);
    assert_int_equal(query_count("SELECT sum(num_tasks) FROM task_stats"), NUM_FEW + NUM_CORRUPT);
    program_free(&program);
}

TEST_CASE(stderr_has_the_log_and_stdout_only_the_summary)
{
    struct program program;
    run(&program, few, NULL);
    assert_non_null(strstr(program.err, "damaged-text.mp4"));
    assert_null(strstr(program.err, "SUMMARY"));
    assert_null(strchr(program.err, '\033'));
    assert_null(strchr(program.err, '\r'));
    assert_ptr_equal(strstr(program.out, RULE), program.out);
    program_free(&program);

    run(&program, few, OPTIONS("--quiet"));
    assert_ptr_equal(strstr(program.err, "performance_analysis: "), program.err);
    assert_non_null(strstr(program.err, " files failed; weir failures "));
    assert_string_equal(program.out, "");
    program_free(&program);
}

TEST_CASE(verbose_logs_the_figures_of_each_lap)
{
    struct program program;
    run(&program, few, OPTIONS("--verbose"));
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.err, "0:1:decode[10]_queue"));
    program_free(&program);
}

TEST_CASE(what_files_cost_is_recorded_for_the_slowest_and_some_others_or_for_all)
{
    struct program program;
    const char *whole = "SELECT count(*) FROM item_stats WHERE name = '0:1:decode[10]' AND label LIKE '%.mp4' AND "
                        "codec = 'h264' AND width > 0 AND height > 0 AND num_frames = 5 AND size_bytes > 0 AND "
                        "open_time > 0 AND demux_time > 0 AND decode_time > 0 AND scale_time > 0 AND "
                        "open_time + demux_time + decode_time + scale_time <= elapsed";
    run(&program, few, NULL);
    assert_int_equal(program.status, 0);
    program_free(&program);
    int64_t laps = query_count("SELECT count(*) FROM task_stats"); /* two if it takes longer than a second */
    assert_in_range(query_count(whole), 10, 20 * laps);            /* a sampled one may be among the slowest */
    assert_in_range(query_count("SELECT count(*) FROM item_stats WHERE chosen = 'slowest'"), 10, 10 * laps);
    assert_int_equal(query_count("SELECT count(*) FROM item_stats"), query_count(whole));

    remove_database(state);
    run_record(&program, few, OPTIONS("--all-items", "--concurrency", "10"));
    assert_int_equal(program.status, 0);
    program_free(&program);
    assert_int_equal(query_count(whole), NUM_FEW - NUM_CORRUPT);
    assert_int_equal(query_count("SELECT count(DISTINCT label) FROM item_stats WHERE chosen = 'all'"),
                     NUM_FEW - NUM_CORRUPT);
}

TEST_CASE(figures_go_to_prometheus_and_tensorboard_too)
{
    struct program program;
    char *metrics = path_in(work, "weir.prom"), *log = path_in(work, "log"), count[128];
    run_record(&program, few, OPTIONS("--openmetrics", metrics, "--concurrency", "10"));
    assert_int_equal(program.status, 0);
    program_free(&program);
    snprintf(count, sizeof count, "stage=\"0:1:decode[10]\",kind=\"stage\"} %d\n",
             query_count("SELECT sum(num_tasks - num_failures) FROM task_stats"));
    char *text = read_file(metrics);
    assert_non_null(strstr(strstr(text, "\nweir_stage_time_seconds_count"), count));
    free(text);

    run_record(&program, few, OPTIONS("--tensorboard", log));
    assert_int_equal(program.status, 0);
    assert_int_equal(access(log, F_OK), 0);
    program_free(&program);
    free(metrics);
    free(log);
}

TEST_CASE(too_many_failures_fail_the_run_and_the_summary_comes_all_the_same)
{
    struct program program;
    run(&program, few, OPTIONS("--max-failures", "1"));
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.err, "performance_analysis: the run failed: 0:1:decode[10]"));
    assert_non_null(strstr(program.out, "PIPELINE PERFORMANCE SUMMARY"));
    program_free(&program);

    remove_database(NULL);
    run(&program, few, OPTIONS("--max-failures", "2"));
    assert_int_equal(program.status, 0);
    program_free(&program);
}

TEST_CASE(a_summary_that_cannot_be_written_is_an_error)
{
    if (access("/dev/full", W_OK) != 0)
        skip();
    struct command shell = { .count = 0 };
    char line[4096];
    snprintf(line, sizeof line, "'%s' --dataset-dir '%s' --db-path '%s' >/dev/full",
             program_path("PERFORMANCE_ANALYSIS"), few, db_path);
    add(&shell, "/bin/sh");
    add(&shell, "-c");
    add(&shell, line);
    struct program program;
    program_run(&program, work, shell.argv);
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.err, "performance_analysis: no summary: cannot print: No space left"));
    program_free(&program);
}

/* -- rejected arguments */

/* One line on stderr that holds `expected`, exit status 2, no summary, no database. */
static void expect_refusal(const char *folder, const char *const options[], const char *expected)
{
    struct program program;
    run(&program, folder, options);
    if (!strstr(program.err, expected))
        fail_msg("expected: %s\nfound:    %s", expected, program.err);
    assert_int_equal(program.status, 2);
    assert_ptr_equal(strstr(program.err, "performance_analysis: "), program.err);
    char *newline = strchr(program.err, '\n');
    assert_non_null(newline);
    assert_string_equal(newline, "\n");
    assert_string_equal(program.out, "");
    assert_int_equal(access(db_path, F_OK), -1);
    program_free(&program);
}

TEST_CASE(wrong_numbers_are_refused_by_name)
{
    static const char *const whole[] = { "0", "-1", "", "ten", "4x", " 4", "+4", "1e3", "99999999999999999999" };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "--concurrency: \"%s\" is not a whole number from 1 to", whole[i]);
        expect_refusal(dataset, OPTIONS("--concurrency", whole[i]), expected);
    }
    static const char *const durations[] = { "0", "-1", "", "soon", "1y", "nan", "inf", "1e300" };
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "--log-interval: \"%s\" is not a number of seconds", durations[i]);
        expect_refusal(dataset, OPTIONS("--log-interval", durations[i]), expected);
    }
    expect_refusal(dataset, OPTIONS("--max-failures", "101%"), "--max-failures: \"101%\" is not");
    expect_refusal(dataset, OPTIONS("--max-failures", "%"), "--max-failures: \"%\" is not");
    expect_refusal(dataset, OPTIONS("--width", "40000"), "--width: \"40000\" is not a whole number from 1 to 32767");
}

TEST_CASE(wrong_options_are_refused_by_name)
{
    expect_refusal(NULL, NULL, "--dataset-dir DIR is missing");
    expect_refusal(NULL, OPTIONS("--dataset-dir"), "--dataset-dir: a value is missing");
    expect_refusal(NULL, OPTIONS("--dataset-dir", ""), "--dataset-dir: \"\" is not");
    expect_refusal(dataset, OPTIONS("--conurrency", "4"),
                   "--conurrency: no such option; did you mean --concurrency?");
    expect_refusal(dataset, OPTIONS("-x"), "-x: no such option");
    expect_refusal(dataset, OPTIONS("videos"), "videos: not an option");
}

TEST_CASE(a_folder_that_is_missing_or_no_folder_is_refused_by_name)
{
    char *missing = path_in(work, "no-such-folder"), *file = path_in(dataset, "damaged-text.mp4");
    expect_refusal(missing, NULL, missing);
    expect_refusal(file, NULL, file);
    free(missing);
    free(file);
}

TEST_CASE(a_folder_without_a_video_is_refused_by_name)
{
    char *empty = make_subfolder("empty"), *notes = path_in(empty, "notes.txt");
    write_file(notes, "no video here\n");
    expect_refusal(empty, NULL, empty);
    expect_refusal(empty, NULL, "matches *.mp4; it has 1 other file: 1 .txt (see --glob)");
    char *upper = path_in(empty, "a.MP4"), *other = path_in(empty, "b.mkv");
    write_file(upper, "");
    write_file(other, "");
    expect_refusal(empty, NULL, "matches *.mp4; it has 2 other videos: 1 .mkv, 1 .MP4 (see --glob)");
    free(upper);
    free(other);
    free(notes);
    free(empty);
}

TEST_CASE(a_database_that_cannot_be_written_is_refused_by_name)
{
    char *text = path_in(work, "text.db");
    write_file(text, "This is no database, and it is long enough to be looked at as one, page header and all. "
                     "It must not be changed.\n");
    expect_refusal(dataset, OPTIONS("--db-path", text), text);
    expect_refusal(dataset, OPTIONS("--db-path", "/proc/no/such.db"), "/proc/no");
    expect_refusal(dataset, OPTIONS("--db-path", dataset), dataset);
    char *kept = read_file(text);
    assert_non_null(strstr(kept, "must not be changed"));
    free(kept);
    free(text);
}

TEST_CASE(the_databases_folders_are_made)
{
    char *deep = path_in(work, "a/b/c.db");
    struct program program;
    run(&program, few, OPTIONS("--db-path", deep));
    assert_int_equal(program.status, 0);
    assert_int_equal(access(deep, R_OK), 0);
    assert_non_null(strstr(program.err, "/a\n"));
    assert_non_null(strstr(program.err, "created the folder "));
    program_free(&program);
    free(deep);
}

TEST_CASE(help_and_version_go_to_stdout)
{
    struct program program;
    run(&program, NULL, OPTIONS("--help"));
    assert_int_equal(program.status, 0);
    assert_string_equal(program.err, "");
    static const char *const reported[] = { "--dataset-dir DIR", "--db-path FILE", "--log-interval SECONDS",
                                            "--concurrency N", "Exit status:" };
    for (size_t i = 0; i < sizeof reported / sizeof reported[0]; i++)
        assert_non_null(strstr(program.out, reported[i]));
    program_free(&program);

    run(&program, NULL, OPTIONS("--version"));
    assert_int_equal(program.status, 0);
    assert_true(matches(program.out, "performance_analysis #.#.#\n"));
    program_free(&program);
}

/* -- Ctrl-C */

/* Reads from fd until the text has been seen, and returns all that was read. NULL: until the other end is closed. */
static char *read_until(int fd, const char *wanted)
{
    size_t size = 0, capacity = 1 << 20;
    char *text = malloc(capacity);
    assert_non_null(text);
    text[0] = '\0';
    while (!wanted || !strstr(text, wanted)) {
        ssize_t got = read(fd, text + size, capacity - size - 1);
        if (got <= 0 && !wanted)
            break;
        if (got <= 0)
            fail_msg("\"%s\" never came; only:\n%s", wanted, text);
        size += (size_t)got;
        text[size] = '\0';
        assert_true(size < capacity - 1);
    }
    return text;
}

/* Reads until a lap is reported in which a file was decoded. Log lines arrive whole. */
static void read_until_tasks_end(int tells)
{
    static const char decode[] = ":decode[10]: ";
    bool none = true;
    while (none) {
        char *text = read_until(tells, decode);
        const char *number = strstr(text, decode) + strlen(decode);
        none = *number < '1' || *number > '9';
        free(text);
    }
}

/*
 * Starts a run on the large folder and returns when it has reported a lap with tasks, in the middle of the run.
 * *tells is where its stderr can be read on; to be closed. shell (NULL = none): a command line that ends in exec
 * "$@".
 */
static void start_large_run(struct program *program, const char *shell, int *tells)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct command run = command_for(large, OPTIONS("--log-interval", "0.2", "--verbose")), command = { .count = 0 };
    if (shell) {
        add(&command, "/bin/sh");
        add(&command, "-c");
        add(&command, shell);
        add(&command, "sh");
    }
    for (int i = 0; i < run.count; i++)
        add(&command, run.argv[i]);
    program_start(program, work, command.argv, ends[1]);
    close(ends[1]);
    read_until_tasks_end(ends[0]);
    *tells = ends[0];
}

static void expect_stop_in_good_order(const char *shell, int signal_number)
{
    struct program program;
    int tells;
    remove_database(NULL);
    start_large_run(&program, shell, &tells);
    assert_int_equal(kill(program.pid, signal_number), 0);
    free(read_until(tells, NULL));
    program_wait(&program, work);
    close(tells);

    assert_int_equal(program.status, 128 + signal_number);
    int num_tasks = query_count("SELECT sum(num_tasks) FROM task_stats");
    int num_failures = query_count("SELECT sum(num_failures) FROM task_stats");
    int taken = query_count("SELECT sum(num_items) FROM queue_stats WHERE name = '0:0:src_queue'");
    int put = query_count("SELECT sum(num_put) FROM queue_stats WHERE name = '0:1:decode[10]_queue'");
    char *rest = program.out;
    expect_summary(&rest, "0:1:decode[10]", num_tasks, num_failures);
    assert_string_equal(rest, "");
    assert_true(num_tasks > 0 && num_tasks < 5000);
    assert_int_equal(num_failures, 0);
    assert_in_range(num_tasks - put, 0, 10);
    assert_in_range(taken - num_tasks, 0, 10);
    assert_int_equal(
        query_count("SELECT count(*) FROM run WHERE status = -4 /* WEIR_ESTOPPED */ AND ended >= started"), 1);
    assert_int_equal(query_count("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
    program_free(&program);
}

TEST_CASE(ctrl_c_stops_within_a_second_and_prints_the_summary)
{
    expect_stop_in_good_order(NULL, SIGINT);
}

TEST_CASE(sigterm_stops_as_ctrl_c_does)
{
    expect_stop_in_good_order(NULL, SIGTERM);
}

/* A script's background jobs start with SIGINT ignored. */
TEST_CASE(sigint_stops_where_it_was_ignored_at_the_start)
{
    expect_stop_in_good_order("trap '' INT; exec \"$@\"", SIGINT);
}

TEST_CASE(sigusr1_prints_a_snapshot_and_the_run_goes_on)
{
    struct program program;
    int tells;
    start_large_run(&program, NULL, &tells);
    for (int i = 0; i < 2; i++) {
        kill(program.pid, SIGUSR1);
        char *seen = read_until(tells, "pipeline: running\n");
        assert_null(strstr(seen, "stopped"));
        free(seen);
    }
    kill(program.pid, SIGINT);
    free(read_until(tells, NULL));
    program_wait(&program, work);
    assert_int_equal(program.status, 128 + SIGINT);
    assert_null(strstr(program.out, "pipeline: "));
    close(tells);
    program_free(&program);
}

/* timeout(1) signals the process, and then its group. */
TEST_CASE(a_signal_that_comes_twice_does_not_kill_the_summary)
{
    for (int i = 0; i < 5; i++) { /* two threads may take them at the same time */
        struct program program;
        int tells;
        start_large_run(&program, NULL, &tells);
        kill(program.pid, SIGSTOP);
        kill(program.pid, SIGTERM);
        kill(program.pid, SIGINT);
        kill(program.pid, SIGCONT);
        free(read_until(tells, NULL));
        program_wait(&program, work);
        assert_true(program.status == 128 + SIGTERM || program.status == 128 + SIGINT);
        assert_non_null(strstr(program.out, "Total tasks processed: "));
        close(tells);
        program_free(&program);
        remove_database(NULL);
    }
}

/* The database is locked, so that the end has to wait. */
TEST_CASE(a_second_ctrl_c_kills)
{
    struct program program;
    int tells;
    start_large_run(&program, NULL, &tells);
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(db_path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    kill(program.pid, SIGINT);
    free(read_until(tells, "stopped; everything so far is recorded"));
    struct pollfd end = { .fd = tells }; /* which is hung up when the program has ended */
    do
        kill(program.pid, SIGINT);
    while (poll(&end, 1, 10) == 0);
    program_wait(&program, work);
    assert_int_equal(program.status, -SIGINT);
    assert_string_equal(program.out, "");
    sqlite3_close(db);
    close(tells);
    program_free(&program);
}

/* -- progress line */

/* A terminal of 100 columns; returns its master, and the end for the program in *slave. */
static int open_terminal(int *slave)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0);
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    *slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(*slave >= 0);
    struct winsize size = { .ws_row = 25, .ws_col = 100 };
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    return master;
}

/* What stands on the screen after the text, control sequences carried out: CR, newline, erase to the end of the line. */
static char *on_screen(const char *text)
{
    char *screen = malloc(strlen(text) + 1);
    assert_non_null(screen);
    size_t line = 0, column = 0, length = 0; /* start of the last line, cursor in it, its length */
    for (; *text; text++) {
        if (*text == '\r') {
            column = 0;
        } else if (*text == '\n') {
            screen[line + length] = '\n';
            line += length + 1;
            column = length = 0;
        } else if (strncmp(text, "\033[K", 3) == 0) {
            length = column;
            text += 2;
        } else {
            assert_int_not_equal(*text, '\033');
            screen[line + column++] = *text;
            length = column > length ? column : length;
        }
    }
    screen[line + length] = '\0';
    return screen;
}

TEST_CASE(a_terminal_shows_progress_that_never_mixes_with_the_log)
{
    int slave, master = open_terminal(&slave);
    setenv("TERM", "xterm", 1);
    struct command command = command_for(large, OPTIONS("--verbose", "--log-interval", "0.5"));
    struct program program;
    program_start(&program, work, command.argv, slave);
    close(slave);

    /* The line, log lines while it stands, the line again, the end. */
    char *parts[] = { read_until(master, "/s  ETA "), read_until(master, "0:2:sink_queue"),
                      read_until(master, "/s  ETA "), NULL };
    kill(program.pid, SIGINT);
    parts[3] = read_until(master, NULL);
    program_wait(&program, work);
    close(master);

    size_t size = 1;
    for (int i = 0; i < 4; i++)
        size += strlen(parts[i]);
    char *all = calloc(size, 1);
    assert_non_null(all);
    for (int i = 0; i < 4; i++) {
        strcat(all, parts[i]);
        free(parts[i]);
    }
    assert_non_null(strstr(all, " of 5000 ("));
    char *screen = on_screen(all), *left = screen, *line;
    while ((line = take_line(&left)))
        if (strncmp(line, "weir: ", 6) != 0 && *line)
            fail_msg("neither log nor erased: %s", line);
    assert_null(strstr(program.out, "ETA"));
    assert_null(strchr(program.out, '\033'));
    free(screen);
    free(all);
    program_free(&program);
}

static int end_program(void **state)
{
    (void)state;
    program_end_left();
    return 0;
}

TEST_MAIN(remove_database, end_program, set_up, tear_down)
