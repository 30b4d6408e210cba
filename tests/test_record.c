/* Runs weir record: its inputs, options and messages. What it shares with performance_analysis is tested
   there. */
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <sqlite3.h>

#include <weir/pipeline.h>

#include "tests/clips.h"
#include "tests/program.h"

enum { MAX_ARGUMENTS = 64 };

static const char *db_path;

static int set_up(void **state)
{
    clips_set_up(state);
    clips_make_folder(clips_path("videos"));
    clips_make_folder(clips_path("more"));
    clips_make_folder(clips_path("mixed"));
    clips_make_folder(clips_path("shards"));
    db_path = clips_path("record.db");
    const char *clip = "-f lavfi -i testsrc2=s=64x48:d=2:r=10 -f lavfi -i sine=r=8000:d=2 -c:v mpeg4 -c:a aac";
    clips_make("videos/a.mp4", clip);
    clips_make("videos/b.mp4", clip);
    clips_make("more/c.mp4", clip);
    clips_make("more/d.mkv", clip);
    clips_make("mixed/a.png", "-f lavfi -i testsrc2=s=64x48 -frames:v 1");
    clips_make("mixed/B.JPG", "-f lavfi -i testsrc2=s=64x48 -frames:v 1 -f mjpeg");
    clips_write_text(clips_path("mixed/notes.txt"), "no picture");
    clips_make_folder(clips_path("others"));
    clips_write_text(clips_path("others/notes.txt"), "no video");
    char index[72] = "SQLite format 3"; /* the start of one */
    memcpy(index + sizeof index - 4, "weix", 4);
    clips_write(clips_path("index.weir"), index, sizeof index);
    clips_write(clips_path("runs.db"), index, sizeof index - 4);
    clips_write_text(clips_path("names.txt"), "a.mp4\nb.mp4\n");
    return 0;
}

static int remove_database(void **state)
{
    (void)state;
    remove(db_path);
    return 0;
}

/* Runs `weir record` with the words of `line`, in which a leading @ stands for the tests' folder and a slash. */
static void record(struct program *program, const char *line)
{
    static char words[8192];
    char *argv[MAX_ARGUMENTS + 1] = { (char *)(uintptr_t)program_path("WEIR_TOOL"), (char *)(uintptr_t) "record",
                                      (char *)(uintptr_t) "--db-path", (char *)(uintptr_t)db_path };
    int count = 4;
    size_t length = 0;
    for (; *line; line++) {
        if (*line == '@' && (length == 0 || words[length - 1] == ' '))
            length += (size_t)snprintf(words + length, sizeof words - length, "%s/", clips_path("."));
        else
            words[length++] = *line;
    }
    words[length] = '\0';
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        assert_true(count < MAX_ARGUMENTS);
        argv[count++] = word;
    }
    program_run(program, clips_path("."), argv);
}

static void run_command(struct program *program, const char *command)
{
    program_run(
        program, clips_path("."),
        (char *[]){ (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)command, NULL });
}

static double query(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(db_path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    double number = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

/* The run succeeds with that many files decoded. */
static void expect_files(const char *line, int num_files)
{
    struct program program;
    remove_database(NULL);
    record(&program, line);
    if (program.status != 0)
        fail_msg("%s: %d: %s", line, program.status, program.err);
    int found = (int)query("SELECT sum(num_tasks - num_failures) FROM task_stats WHERE name LIKE '%:decode%'");
    if (found != num_files)
        fail_msg("%s: %d files, not %d", line, found, num_files);
    if (num_files > 0 && !strstr(line, "--quiet") && !strstr(program.out, "\nLIMIT  ")) /* even if not known */
        fail_msg("%s: no limit: %s", line, program.out);
    program_free(&program);
}

static void expect_refusal(const char *line, const char *expected)
{
    struct program program;
    remove_database(NULL);
    record(&program, line);
    if (program.status != 2 || strncmp(program.err, "weir record: ", 13) != 0 || !strstr(program.err, expected))
        fail_msg("%s: %d: %s", line, program.status, program.err);
    assert_ptr_equal(strchr(program.err, '\n'), program.err + strlen(program.err) - 1); /* one line */
    assert_string_equal(program.out, "");
    assert_int_not_equal(access(db_path, F_OK), 0);
    program_free(&program);
}

/* -- inputs */

TEST_CASE(folders_files_lists_and_urls_are_decoded_together)
{
    char line[8192];
    clips_write_text(clips_path("stdin.txt"), "");
    expect_files("@videos", 2);
    expect_files("@videos @more", 4);
    expect_files("@videos @more --glob *.mp4", 3);
    expect_files("@videos @more --glob *.@(mp4|mkv)", 4);
    expect_files("@more/d.mkv", 1);
    expect_files("@videos @more/d.mkv", 3);
    snprintf(line, sizeof line, "file://%s", clips_path("videos/a.mp4"));
    expect_files(line, 1);
    snprintf(line, sizeof line, "%s\r\n\n%s\n%s", clips_path("videos/a.mp4"), clips_path("more/d.mkv"),
             clips_path("more/c.mp4"));
    clips_write_text(clips_path("list.txt"), line);
    expect_files("--list @list.txt", 3);
    expect_files("@videos --list @list.txt", 5);
}

static void expect_clips(const char *line, int num_clips, int num_frames)
{
    expect_files(line, num_clips);
    int found = (int)query("SELECT sum(num_frames) FROM item_stats");
    if (found != num_frames)
        fail_msg("%s: %d frames, not %d", line, found, num_frames);
}

/* 10 frames each second. The same rows in each format; relative paths are relative to the list. */
TEST_CASE(a_list_with_columns_names_parts_of_files)
{
    clips_make("ten.mp4", "-f lavfi -i testsrc2=s=64x48:d=4:r=10 -c:v mpeg4");
    clips_write_text(clips_path("parts.csv"),
                     "\xef\xbb\xbflabel,path,start,who,end\r\nx,ten.mp4,1,me,2\r\ny,ten.mp4,1.5,"
                     "\"you, too\",\r\n,ten.mp4,,,0.3\r\n");
    clips_write_text(clips_path("parts.tsv"), "path\tstart\tend\nten.mp4\t1\t2\nten.mp4\t1.5\t\nten.mp4\t\t0.3\n");
    clips_write_text(clips_path("parts.jsonl"), "{\"path\":\"ten.mp4\",\"start\":1,\"end\":2,\"who\":1}\n{\"path\":"
                                                "\"ten.mp4\",\"start\":1.5}\n{\"path\":\"ten.mp4\",\"end\":0.3}\n");
    clips_write_text(clips_path("parts.txt"), "path,start,end\nten.mp4,1,2\nten.mp4,1.5,\nten.mp4,,0.3\n");
    expect_clips("--list @parts.csv --all-items", 3, 10 + 25 + 3);
    assert_int_equal(rename(db_path, clips_path("parts.db")), 0);
    expect_files("--list @parts.csv --resume @parts.db --quiet", 0);
    expect_clips("--list @parts.tsv --all-items", 3, 38);
    expect_clips("--list @parts.jsonl --all-items", 3, 38);
    expect_clips("--list @parts.txt --all-items", 3, 38);
    expect_clips("--list @parts.txt --all-items --clip 4 --stride 2 --short last", 3, 12);
    expect_clips("--list @parts.txt --all-items --epochs 2", 6, 76);
    expect_clips("--list @parts.txt --all-items " ISOLATE, 3, 38);
}

TEST_CASE(a_list_with_columns_that_cannot_be_used_is_refused)
{
    clips_write_text(clips_path("back.csv"), "path,start,end\nten.mp4,2,1\n");
    clips_write_text(clips_path("word.csv"), "path,start\nten.mp4,soon\n");
    clips_write_text(clips_path("name.csv"), "name,start\nten.mp4,1\n");
    clips_write_text(clips_path("part.csv"), "path,start\nten.mp4,1\n");
    expect_refusal("--list @back.csv", "back.csv, line 2: the end is not after the start");
    expect_refusal("--list @word.csv", "\"start\" is \"soon\", not a number of seconds");
    expect_refusal("--list @name.csv", "name.csv, line 1: no column \"path\"");
    expect_refusal("--list @part.csv --images", "cannot be combined with --images");
    expect_refusal("--list @part.csv @videos", "cannot be combined with a folder");
}

TEST_CASE(a_file_for_each_thread_is_decoded_at_a_time)
{
    const char *slots = "SELECT concurrency FROM stage WHERE name LIKE '0:1:decode%'";
    expect_files("@videos", 2);
    assert_int_equal(query(slots), weir_cpu_budget());
    expect_files("@videos --threads 3", 2);
    assert_int_equal(query(slots), 3);
    expect_files("@videos --threads 3 --concurrency 5", 2);
    assert_int_equal(query(slots), 5);
}

TEST_CASE(epochs_repeat_the_files)
{
    expect_files("@videos --epochs 3", 6);
}

TEST_CASE(images_are_found_by_their_usual_endings)
{
    expect_files("@mixed --images", 2);
    expect_files("@mixed --images --glob *.png --width 20 --height 30 --pixel gray8 --layout nchw", 1);
    assert_int_equal(query("SELECT max(max_bytes) < 20 * 30 * 2 + 1000 FROM queue_stats"), 1);
}

TEST_CASE(audio_is_decoded_at_the_rate_asked_for)
{
    expect_files("@videos --audio --sample-rate 16000 --channels 1 --planar", 2);
    assert_int_equal(query("SELECT count(*) FROM item_stats WHERE codec = 'aac'"), 2);
}

TEST_CASE(archives_are_read)
{
    char command[8192];
    snprintf(command, sizeof command, "tar -cf '%s' -C '%s' a.mp4 b.mp4", clips_path("shards/one.tar"),
             clips_path("videos"));
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    struct program program;
    record(&program, "@shards --tar");
    if (program.status == 2 && strstr(program.err, "libarchive")) {
        print_message("skipped: %s", program.err);
        skip();
    }
    program_free(&program);
    expect_files("@shards --tar", 2);
    expect_files("@shards/one.tar --tar --glob a*", 1);
}

/* -- options */

TEST_CASE(frames_are_sampled_as_in_weir_frames)
{
    expect_files("@videos --count 3", 2);
    assert_int_equal(query("SELECT sum(num_frames) FROM item_stats"), 6);
    expect_files("@videos --at 1.5,0.5", 2); /* they do not rise: in one chunk */
    assert_int_equal(query("SELECT sum(num_frames) FROM item_stats"), 4);
    expect_files("@videos --window 0.5:1.5 --every 2 --chunk-frames 2", 2);
    assert_int_equal(query("SELECT sum(num_items) FROM queue_stats WHERE name LIKE '%sink_queue'"), 6);
}

TEST_CASE(every_option_of_the_pipeline_is_taken)
{
    expect_files(
        "@videos --sorted --concurrency 2 --threads 1 --queue-items 7 --queue-bytes 1M --source-queue-items 5 "
        "--sink-queue-items 4 --order input --deadline 1h --max-failures 50% --log-interval 0.5 --rank 0 --world 1 "
        "--all-items --quiet --scaler exact --resize crop --strict --max-frames 99 --max-pixels 999999 "
        "--max-bytes 1G --max-duration 1h --io-timeout 5s",
        2);
    assert_int_equal(query("SELECT count(*) FROM stage WHERE queue_items = 7 AND queue_bytes = 1048576 AND "
                           "output_order = 'input' AND concurrency = 2 AND name = '0:1:decode[2]'"),
                     1);
    assert_int_equal(query("SELECT count(*) FROM stage WHERE queue_items IN (5, 4)"), 2);
}

/* With --resume as many rows are left out as were decoded. */
TEST_CASE(a_row_that_is_repeated_is_an_item_of_its_own)
{
    char lines[2048];
    const char *path = clips_path("videos/a.mp4");
    clips_write_text(clips_path("first.txt"), path);
    snprintf(lines, sizeof lines, "%s\n%s\n%s\n", path, path, path);
    clips_write_text(clips_path("thrice.txt"), lines);
    expect_files("--list @thrice.txt --all-items", 3);
    assert_int_equal(rename(db_path, clips_path("all.db")), 0);
    expect_files("--list @first.txt --all-items", 1);
    assert_int_equal(rename(db_path, clips_path("once.db")), 0);
    expect_files("--list @thrice.txt --resume @once.db", 2);
    expect_files("--list @thrice.txt --resume @all.db --quiet", 0);
}

TEST_CASE(child_processes_decode_the_same)
{
    expect_files("@videos --count 3 " ISOLATE " --isolate-memory 4G --deadline 1h", 2);
    assert_int_equal(query("SELECT sum(num_frames) FROM item_stats"), 6);
    expect_files("@mixed --images " ISOLATE, 2);
    expect_files("@videos --audio " ISOLATE, 2);
}

TEST_CASE(a_run_in_which_every_file_fails_has_failed)
{
    struct program program;
    clips_make_folder(clips_path("broken"));
    clips_write_text(clips_path("broken/a.mp4"), "no video");
    clips_write_text(clips_path("broken/b.mp4"), "no video either");
    record(&program, "@broken");
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.out, "broken: 0 of 2 files decoded in "));
    assert_non_null(strstr(program.out, "\nFAILED 2   "));
    assert_non_null(strstr(program.out, " failures --db "));
    assert_null(strstr(program.out, " explain "));
    assert_non_null(strstr(program.err, "weir record: nothing could be decoded (2 failed)\n"));
    program_free(&program);
    char command[1024];
    snprintf(command, sizeof command, "'%s' whatif '%s'", program_path("WEIR_TOOL"), db_path);
    run_command(&program, command);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "weir whatif: no item was delivered"));
    program_free(&program);
    expect_files("@broken @videos", 2); /* a part of them may fail */
}

/* The number of files may be known only when they have all failed: it was told after the end, and counted as
   lost. */
TEST_CASE(a_run_that_ends_at_once_has_lost_no_events)
{
    enum { NUM_TRIES = 10 };
    clips_write_text(clips_path("short.mp4"), "no video");
    for (int i = 0; i < NUM_TRIES; i++) {
        struct program program;
        record(&program, "@short.mp4");
        assert_null(strstr(program.err, "not reported to observers"));
        program_free(&program);
    }
}

TEST_CASE(the_default_size_gives_way_to_resize_none)
{
    expect_files("@videos/a.mp4 --first 1", 1);
    double bytes = query("SELECT max(max_bytes) FROM queue_stats");
    assert_true(bytes >= 128 * 128 * 3 && bytes < 128 * 128 * 3 + 2000);
    expect_files("@videos/a.mp4 --first 1 --resize none", 1);
    bytes = query("SELECT max(max_bytes) FROM queue_stats");
    assert_true(bytes >= 64 * 48 * 3 && bytes < 64 * 48 * 3 + 2000);
}

/* -- messages */

/* A descriptor for each folder on the way would leave none for the decoder. */
TEST_CASE(a_deep_tree_takes_one_descriptor)
{
    enum { DEPTH = 60, DESCRIPTORS = 40 };
    char path[4096];
    int length = snprintf(path, sizeof path, "%s", clips_path("deep"));
    clips_make_folder(path);
    for (int i = 0; i < DEPTH; i++) {
        length += snprintf(path + length, sizeof path - (size_t)length, "/d");
        clips_make_folder(path);
    }
    const char *clip = "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v mpeg4";
    clips_make("deep/a.mp4", clip);
    snprintf(path + length, sizeof path - (size_t)length, "/b.mp4");
    assert_int_equal(rename(clips_make("deepest.mp4", clip), path), 0);
    struct rlimit before, few;
    getrlimit(RLIMIT_NOFILE, &before);
    few = (struct rlimit){ DESCRIPTORS, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    expect_files("@deep", 2);
    expect_files("@deep --sorted", 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void expect_damage(const char *line, int status, int num_failures, const char *expected)
{
    struct program program;
    remove_database(NULL);
    record(&program, line);
    if (program.status != status || !strstr(program.out, expected))
        fail_msg("%s: %d: %s%s", line, program.status, program.out, program.err);
    assert_int_equal(query("SELECT sum(num_failures) FROM task_stats WHERE name LIKE '%:decode%'"), num_failures);
    program_free(&program);
}

/* Others are recorded by chance, or where they are slow. */
TEST_CASE(what_a_cut_has_cost_is_recorded_and_said)
{
    struct program program;
    char command[9000];
    clips_make_folder(clips_path("cut"));
    const char *whole = clips_make("whole.mp4", "-f lavfi -i testsrc2=s=176x144:d=1:r=30 -c:v libx264 -g 6 -pix_fmt "
                                                "yuv420p -movflags faststart");
    if (!whole)
        skip();
    clips_cut(whole, "cut/cut.mp4", 30000);
    expect_damage("@cut @videos", 0, 0, "\n1 item succeeded with damage: ");
    assert_int_equal(query("SELECT count(*) FROM item_stats WHERE label LIKE '%/cut.mp4' AND chosen = 'damaged' "
                           "AND num_missing > 0 AND num_missing + num_frames = 30"),
                     1);
    assert_int_equal(query("SELECT sum(num_missing + num_errors) FROM item_stats WHERE chosen <> 'damaged'"), 0);
    snprintf(command, sizeof command, "exec '%s' slowest '%s' --sort damage --csv", program_path("WEIR_TOOL"),
             db_path);
    run_command(&program, command);
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.out, "/cut.mp4"));
    assert_null(strstr(program.out, "/a.mp4"));
    program_free(&program);

    expect_damage("@cut @videos " ISOLATE, 0, 0, "\n1 item succeeded with damage: ");
    expect_damage("@cut @videos --strict", 0, 1, "\nFAILED 1   ");
    expect_damage("@cut @videos --min-share 0.99", 0, 1, "\nFAILED 1   ");
    expect_damage("@videos", 0, 0, "");
    run_command(&program, command);
    assert_int_equal(program.status, 3); /* nothing found */
    assert_non_null(strstr(program.err, "no item that was recorded (item_stats) has damage"));
    program_free(&program);
}

/* The log goes to a pipe that nobody reads. */
TEST_CASE(a_closed_stderr_does_not_end_the_run)
{
    int ends[2];
    struct program program;
    char *argv[] = { (char *)(uintptr_t)program_path("WEIR_TOOL"),
                     (char *)(uintptr_t) "record",
                     (char *)(uintptr_t) "--db-path",
                     (char *)(uintptr_t)db_path,
                     (char *)(uintptr_t) "--verbose",
                     (char *)(uintptr_t)clips_path("videos"),
                     NULL };
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    program_start(&program, clips_path("."), argv, ends[1]);
    close(ends[1]);
    program_wait(&program, clips_path("."));
    assert_int_equal(program.status, 0);
    program_free(&program);
    assert_int_equal(query("SELECT count(*) FROM run WHERE ended IS NOT NULL"), 1);
}

/* The pool's threads are started while the pipeline is built. */
static bool has_pool(pid_t pid)
{
    char pattern[64], name[32] = "";
    glob_t found;
    bool has_any = false;
    snprintf(pattern, sizeof pattern, "/proc/%d/task/*/comm", (int)pid);
    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        has_any |= file && fgets(name, sizeof name, file) && strncmp(name, "weir/", 5) == 0;
        if (file)
            fclose(file);
    }
    globfree(&found);
    return has_any;
}

TEST_CASE(a_signal_while_the_pipeline_is_built_stops_the_run)
{
    char *argv[] = { (char *)(uintptr_t)program_path("WEIR_TOOL"),
                     (char *)(uintptr_t) "record",
                     (char *)(uintptr_t) "--db-path",
                     (char *)(uintptr_t)db_path,
                     (char *)(uintptr_t) "--epochs",
                     (char *)(uintptr_t) "1000000",
                     (char *)(uintptr_t)clips_path("videos"),
                     NULL };
    for (int i = 0; i < 20; i++) {
        struct program program;
        program_start(&program, clips_path("."), argv, -1);
        while (!has_pool(program.pid) && !program_has_ended(&program))
            sched_yield();
        kill(program.pid, SIGINT);
        program_wait(&program, clips_path("."));
        assert_int_equal(program.status, 128 + SIGINT);
        assert_non_null(strstr(program.out, "stopped after "));
        program_free(&program);
    }
    assert_int_equal(query("SELECT count(*) FROM run WHERE ended IS NOT NULL"), 20);
}

/* Starts a run that goes on until a signal, with an option for which `path` is written, and waits for its threads. */
static void start_endless(struct program *program, const char *option, const char *path, const char *more)
{
    char *argv[] = { (char *)(uintptr_t)program_path("WEIR_TOOL"),
                     (char *)(uintptr_t) "record",
                     (char *)(uintptr_t) "--db-path",
                     (char *)(uintptr_t)db_path,
                     (char *)(uintptr_t) "--epochs",
                     (char *)(uintptr_t) "1000000",
                     (char *)(uintptr_t)clips_path("videos"),
                     (char *)(uintptr_t)option,
                     (char *)(uintptr_t)path,
                     (char *)(uintptr_t)more,
                     NULL };
    program_start(program, clips_path("."), argv, -1);
    while (!has_pool(program->pid) && !program_has_ended(program))
        sched_yield();
}

/* The test's time limit ends it. */
static void wait_for_file(const struct program *program, const char *path)
{
    int watch = folder_watch_begin(clips_path("."));
    while (access(path, F_OK) != 0 && !program_has_ended(program))
        folder_watch_wait(watch);
    close(watch);
}

TEST_CASE(a_signal_asks_for_the_trace_that_waits_for_something_to_happen)
{
    struct program program;
    char *trace = strdup(clips_path("asked.json"));
    start_endless(&program, "--trace", trace, "--trace-last=1m");
    assert_int_not_equal(access(trace, F_OK), 0);
    kill(program.pid, SIGUSR2);
    wait_for_file(&program, trace);
    kill(program.pid, SIGINT);
    program_wait(&program, clips_path("."));
    assert_int_equal(program.status, 128 + SIGINT);
    assert_int_equal(access(trace, F_OK), 0);
    program_free(&program);
    free(trace);
}

TEST_CASE(metrics_that_cannot_be_written_at_the_end_fail_the_run)
{
    struct program program;
    char *folder = strdup(clips_path("gone")), *other = strdup(clips_path("moved")), path[4200];
    clips_make_folder(folder);
    snprintf(path, sizeof path, "%s/m.prom", folder);
    start_endless(&program, "--openmetrics", path, "--log-interval=0.05");
    assert_int_equal(rename(folder, other), 0);
    kill(program.pid, SIGINT);
    program_wait(&program, clips_path("."));
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.err, "cannot write the metrics to "));
    program_free(&program);
    free(folder);
    free(other);
}

TEST_CASE(a_failure_writes_the_trace_of_the_time_before_it)
{
    struct program program;
    clips_make_folder(clips_path("damaged"));
    clips_write_text(clips_path("damaged/text.mp4"), "no video");
    record(&program, "@damaged @videos --trace @{rank}.json.gz --trace-last 1m --quiet");
    if (strstr(program.err, "no zlib"))
        skip();
    if (program.status != 0)
        fail_msg("%d: %s", program.status, program.err);
    program_free(&program);
    program_run(&program, clips_path("."),
                (char *[]){ (char *)(uintptr_t)program_path("WEIR_TOOL"), (char *)(uintptr_t) "trace",
                            (char *)(uintptr_t)clips_path("0.json.gz"), (char *)(uintptr_t) "--json", NULL });
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.out, "\"complete\": true, \"gaps\": 0, \"failures\": 1, \"stalls\": 0"));
    program_free(&program);
    program_run(&program, clips_path("."),
                (char *[]){ (char *)(uintptr_t)program_path("WEIR_TOOL"), (char *)(uintptr_t) "query",
                            (char *)(uintptr_t)db_path, (char *)(uintptr_t) "--list", (char *)(uintptr_t) "contents",
                            (char *)(uintptr_t) "--name", (char *)(uintptr_t) "trace", (char *)(uintptr_t) "--csv",
                            NULL });
    assert_non_null(strstr(program.out, "\ntrace,,"));
    assert_non_null(strstr(program.out, "/0.json.gz")); /* of @{rank}.json.gz, which is there */
    program_free(&program);
    remove_database(NULL);
    record(&program, "@videos --trace @none.json.gz --trace-last 1m --quiet"); /* no reason to write one */
    assert_int_equal(program.status, 0);
    assert_int_not_equal(access(clips_path("none.json.gz"), F_OK), 0);
    program_free(&program);
}

TEST_CASE(the_end_names_the_next_commands)
{
    struct program program;
    char hint[4200];
    record(&program, "@videos");
    snprintf(hint, sizeof hint, "\nMore: %s explain --db %s (also: slowest, summary --full)\n",
             program_path("WEIR_TOOL"), db_path);
    assert_non_null(strstr(program.out, hint));
    assert_string_equal(program.err, "");
    program_free(&program);

    clips_write_text(clips_path("videos/broken.mp4"), "no video");
    record(&program, "@videos");
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.out, ": 2 of 3 files decoded in "));
    assert_non_null(strstr(program.out, " (also: failures, slowest, summary --full)\n"));
    assert_non_null(strstr(program.out, "moov atom not found) (1)\n           broken.mp4\n"));
    assert_int_equal(
        query("SELECT count(*) FROM event_stats WHERE event_name = 'working_directory' AND detail LIKE '/%'"), 2);
    assert_int_equal(
        query("SELECT last_value FROM counter_stats WHERE name = 'weir/frames' ORDER BY id DESC LIMIT 1"), 40);
    program_free(&program);
    record(&program, "@videos --quiet");
    assert_string_equal(program.out, "");
    assert_ptr_equal(strstr(program.err, "weir record: 1 of 3 files failed; weir failures "), program.err);
    program_free(&program);
    clips_write_text(clips_path("broken.tar"), "no archive");
    record(&program, "@broken.tar --tar --quiet");
    assert_non_null(strstr(program.err, "1 of 1 files failed"));
    program_free(&program);
    record(&program, "@videos --quiet --glob [ab].mp4");
    assert_string_equal(program.out, "");
    assert_string_equal(program.err, "");
    program_free(&program);
    record(&program, "@videos --max-failures 0");
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.err, "weir record: the run failed: "));
    program_free(&program);
    remove(clips_path("videos/broken.mp4"));
}

/* The last read of a pseudo-terminal whose other side is closed fails, after those that return what was written. */
TEST_CASE(a_list_whose_reading_breaks_off_is_refused)
{
    struct program program;
    char command[1024];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0)
        skip();
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    int other = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(other >= 0);
    assert_true(dprintf(other, "%s\n", clips_path("videos/a.mp4")) > 0);
    close(other);
    assert_int_equal(dup2(master, 9), 9); /* shells take one digit */
    snprintf(command, sizeof command, "exec '%s' record --list - --db-path '%s' --quiet <&9",
             program_path("WEIR_TOOL"), db_path);
    run_command(&program, command);
    close(master);
    close(9);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "weir record: --list: -: Input/output error"));
    program_free(&program);
}

TEST_CASE(names_of_failed_files_are_not_broken_on_a_terminal)
{
    struct program program;
    char command[1024];
    run_command(&program, "command -v script >/dev/null");
    bool has_script = program.status == 0;
    program_free(&program);
    if (!has_script)
        skip();
    clips_make_folder(clips_path("spaces"));
    clips_write_text(clips_path("spaces/a  name with   spaces that is much longer than a line of forty columns.mp4"),
                     "");
    snprintf(command, sizeof command, "COLUMNS=40 script -qec \"'%s' record '%s' '%s' --db-path '%s'\" /dev/null",
             program_path("WEIR_TOOL"), clips_path("videos"), clips_path("spaces"), db_path);
    run_command(&program, command);
    if (!strstr(program.out, "/a  name with   spaces that is much longer than a line of forty columns.mp4"))
        fail_msg("%s", program.out);
    program_free(&program);
}

TEST_CASE(headspace_says_what_loading_costs_a_step)
{
    struct program program;
    record(&program, "@videos --headspace 1ms"); /* as many epochs as it takes */
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.out, "Headspace: loading costs you "));
    assert_non_null(strstr(program.out, "(50 steps each)"));
    program_free(&program);
    assert_int_equal(query("SELECT count(*) FROM event_stats WHERE event_name = 'headspace' AND detail LIKE "
                           "'loading costs you %'"),
                     1);
    assert_int_equal(
        query("SELECT count(*) > 0 AND sum(num_items) = 0 FROM queue_stats WHERE phase = 'replay' AND name "
              "LIKE '%sink_queue'"),
        1);
    assert_int_equal(query("SELECT max(last_value) <= (SELECT sum(num_items) FROM queue_stats WHERE name LIKE "
                           "'%sink_queue') * (SELECT max(num_frames) FROM item_stats) FROM counter_stats"),
                     1); /* frames of replayed results do not count either */

    remove_database(NULL);
    record(&program, "@videos --headspace 1ms --epochs 1");
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.err, "the pipeline must make at least 62 results (without --epochs"));
    program_free(&program);

    remove_database(NULL);
    clips_make_folder(clips_path("no-videos"));
    clips_write_text(clips_path("no-videos/a.mp4"), "no video");
    record(&program, "@no-videos --headspace 1ms");
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.err, "nothing could be decoded"));
    assert_null(strstr(program.err, "--headspace"));
    program_free(&program);
}

TEST_CASE(a_tuned_run_decodes_all_files)
{
    static const char line[] =
        "@videos --tune --cpu 100% --memory 64G --concurrency 1 --threads 1 --log-interval 0.05 --epochs 20";
    expect_files(line, 40);
    struct program program;
    record(&program, line);
    assert_non_null(strstr(program.out, "\nTuner: "));
    program_free(&program);

    char command[4200]; /* stdout and stderr in one */
    snprintf(command, sizeof command, "'%s' record '%s' --tune --db-path '%s' 2>&1", program_path("WEIR_TOOL"),
             clips_path("videos"), db_path);
    run_command(&program, command);
    const char *tuner = strstr(program.out, "\nTuner: "), *more = strstr(program.out, "\nMore: ");
    if (!tuner || !more || more > tuner)
        fail_msg("%s", program.out);
    program_free(&program);
}

#ifndef SANITIZED_THREADS /* minutes there: see test_explain_live.c */
/* One clip; and a clip beside two folders, of which one is empty: several sources, and one that ends for good. They are
   repeated until the experiment is done. Both are much less than the slots can hold. */
TEST_CASE(an_experiment_measures_what_limits_the_run_and_not_its_own_repetitions)
{
    static const char *const inputs[] = { "@videos/a.mp4", "@empty @videos/a.mp4 @videos" };
    struct program program;
#ifdef SANITIZED
    skip(); /* it measures, which takes its time in each build, and is a matter of time there */
#endif
    clips_make_folder(clips_path("empty"));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        char options[256];
        snprintf(options, sizeof options, "%s --explain --concurrency 4 --threads 2 --width 16 --height 16",
                 inputs[i]);
        record(&program, options);
        const char *limit = strstr(program.out, "\n\nLimit: ");
        if (program.status != 0 || !limit || !strstr(limit, "Confidence: ") || strstr(program.out, "epoch"))
            fail_msg("%s: %s%s", inputs[i], program.out, program.err);
        program_free(&program);
    }
}
#endif

TEST_CASE(a_run_with_too_little_for_an_experiment_says_so_and_is_no_failure)
{
    struct program program;
    record(&program, "@videos --explain --epochs 1 --width 16 --height 16");
    if (program.status != 0 || !strstr(program.out, " files decoded") ||
        !strstr(program.out, "\n\nLimit: not measured: the run came to its end before anything was measured"))
        fail_msg("%s%s", program.out, program.err);
    program_free(&program);
}

/* The files would be repeated for ever. */
TEST_CASE(an_experiment_on_files_that_all_fail_ends_with_them)
{
    struct program program;
    clips_make_folder(clips_path("unusable"));
    clips_write_text(clips_path("unusable/text.mp4"), "no video");
    record(&program, "@unusable --explain");
    assert_int_equal(program.status, 1);
    assert_null(strstr(program.out, "Limit: "));
    program_free(&program);
}

TEST_CASE(mistakes_are_refused_in_one_line_before_any_work)
{
    static const char *const wrong[][2] = {
        { "", "a folder, a file, a URL or --list FILE is missing" },
        { "@nowhere", "nowhere: No such file or directory" },
        { "@videos --glob *.none", "matches *.none; it has 2 other videos: 2 .mp4 (see --glob)" },
        { "@shards --images", "no image in " },
        { "@others", "no video in " },
        { "@others --glob *.mp4", "it has 1 other file: 1 .txt (see --glob)" },
        { "--list @nowhere", "--list: " },
        { "--list @stdin.txt", "no path in it" },
        { "--list @nul.txt", "nul.txt: line 2: it has a NUL byte" },
        { "@videos --concurency 3", "did you mean --concurrency?" },
        { "@videos --scaler quick", "--scaler: \"quick\" is not default, exact or fast" },
        { "@videos --audio --images", "--audio: not with --images" },
        { "@videos --channels 2", "only with --audio" },
        { "@videos --isolate-memory 1G", "only with --isolate" },
        { "@videos --images --count 3", "--count: not with --images" },
        { "@videos --images --loop-filter none", "--loop-filter: not with --images" },
        { "@videos --audio --lowres 1", "--lowres: not with --audio" },
        { "@videos --audio --width 9", "--width: not with --audio" },
        { "@videos --images --chunk-frames 9", "--chunk-frames: not with --images" },
        { "@videos --tar-glob *.tgz", "--tar-glob: only with --tar" },
        { "@videos --trace-size 9M", "--trace-size: only with --trace" },
        { "@videos --quiet --verbose", "--verbose: not with --quiet" },
        { "@videos --rank 3", "--rank 3: give --world, too" },
        { "@index.weir", "index.weir: an index of a dataset, not a video" },
        { "@runs.db", "runs.db: a database, not a video; weir summary and weir explain read it" },
        { "@names.txt", "names.txt: text, not a video; if it names files to decode: --list " },
        { "--dataset-dir @videos",
          "--dataset-dir: no such option (see --help); usage: weir record DIR|FILE|URL... [options]" },
        { "@videos --rank 4294967296", "--rank: \"4294967296\" is not" },
        { "@videos --lowres 4", "--lowres" },
        { "@videos --cpu 40%", "--cpu: only with --tune" },
        { "@videos --tune --cpu 140%", "a percentage" },
        { "@videos --tune --headspace 1s", "--tune: not with --headspace" },
        { "@videos --headspace 1s --resume @nowhere", "--headspace: not with --resume" },
        { "@videos --trace-last 1m", "--trace-last: only with --trace" },
        { "@videos --resize none --width 9", "--resize none: not with --width" },
        { "@videos --count 3 --every 2", "--count: not with --every" },
        { "@videos --db-path /proc/no/such.db", "--db-path: " },
        { "@videos --openmetrics /proc/no/weir.prom", "--openmetrics: " },
        { "@videos --tensorboard /proc/no/log", "--tensorboard: " },
        { "@videos --trace /dev/full", "/dev/full: not a regular file" },
        { "@videos --trace @videos", "Is a directory" },
        { "@videos -width 9", "-width: no such option; did you mean --width?" },
    };
    clips_write_text(clips_path("stdin.txt"), "\n\n");
    clips_write(clips_path("nul.txt"), "a\nb\0c\n", 6);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_refusal(wrong[i][0], wrong[i][1]);

    struct program program;
    char command[1024];
    snprintf(command, sizeof command, "'%s' record ''", program_path("WEIR_TOOL"));
    run_command(&program, command);
    assert_int_equal(program.status, 2);
    assert_ptr_equal(strstr(program.err, "weir record: an argument is empty (\"\"); usage: weir record DIR"),
                     program.err);
    program_free(&program);
}

TEST_MAIN(remove_database, NULL, set_up, clips_tear_down)
