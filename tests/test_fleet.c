/* weir fleet: the ranks of a made-up job. */
#include "tests/recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUM_LAPS = 20 };

/* Rank `rank`: 20 laps of 10 s with a number of items each; from lap `slow_from` on with another number. */
static void record_rank(const char *name, int32_t rank, uint64_t num_items, int slow_from, uint64_t num_slow,
                        int num_laps)
{
    weir_sqlite_writer *writer = recording_begin(in_folder(name), "node-a", rank, 1000);
    for (int i = 0; i < num_laps; i++)
        record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i, .num_tasks = i < slow_from ? num_items : num_slow });
    if (num_laps == NUM_LAPS)
        recording_end(writer, 1200);
    else
        close_writer(writer);
}

/* Four ranks; rank 2 is slower from half-time on. */
static void record_job(void)
{
    for (int32_t rank = 0; rank < 4; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank%d.db", rank);
        record_rank(name, rank, 100, rank == 2 ? 10 : NUM_LAPS, 50, NUM_LAPS);
    }
}

/* What `weir fleet arguments` writes to stdout and stderr. */
static char *run(const char *arguments, int expected_status)
{
    static char text[1 << 16];
    char command[2048];
    snprintf(command, sizeof command, "'%s' fleet %s 2>&1", getenv("WEIR_TOOL"), arguments);
    FILE *program = popen(command, "r"); /* NOLINT: the test's own command */
    assert_non_null(program);
    text[fread(text, 1, sizeof text - 1, program)] = '\0';
    int status = pclose(program);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected_status)
        fail_msg("status %d: %s", status, text);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

TEST_CASE(a_straggler_is_named_since_it_is_slow)
{
    record_job();
    execute(in_folder("rank2.db"), "UPDATE task_stats SET cpu_time = 1, busy_time = 90");
    for (int32_t rank = 0; rank < 4; rank++)
        if (rank != 2) {
            char name[32];
            snprintf(name, sizeof name, "rank%d.db", rank);
            execute(in_folder(name), "UPDATE task_stats SET cpu_time = 1, busy_time = 10");
        }
    char folder[1024];
    snprintf(folder, sizeof folder, "'%s'", in_folder(""));
    char *text = run(folder, 0);
    assert_has(text, "4 ranks; median 10.00 items/s; the slowest rank is 25.0 % slower than the fastest; the first "
                     "ended 0.0 s before the last");
    assert_has(text, "rank 2 is 25 % slower: its disk or network");
    char arguments[1100];
    snprintf(arguments, sizeof arguments, "%s --json", folder);
    text = run(arguments, 0);
    assert_has(text,
               "\"rank\": 2, \"node\": \"node-a\", \"state\": \"finished\", \"num_items\": 1500, \"rate\": 7.5, "
               "\"slower\": 0.25");
    assert_has(text, "\"slower_since\": 1100,");
    assert_has(text, "\"rank\": 3, \"node\": \"node-a\", \"state\": \"finished\", \"num_items\": 2000");
    snprintf(arguments, sizeof arguments, "%s --slower 30", folder);
    assert_null(strstr(run(arguments, 0), "% slower:"));
    execute(in_folder("rank0.db"), "UPDATE queue_stats SET num_items = 3 * num_items");
    assert_null(strstr(run(folder, 0), " -")); /* "-200.0 %" slower */
}

/* With an even number, it is the mean of the two in the middle. The ranks are not in the order of their rates. */
TEST_CASE(the_median_is_that_of_1_2_3_and_10_ranks)
{
    static const struct {
        int num;
        const char *median;
    } cases[] = { { 1, "1 rank; median 10.00 items/s" },
                  { 2, "2 ranks; median 11.00 items/s" },
                  { 3, "3 ranks; median 12.00 items/s" },
                  { 10, "10 ranks; median 19.00 items/s" } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char paths[2048] = "";
        for (int rank = 0; rank < cases[i].num; rank++) {
            char name[32];
            snprintf(name, sizeof name, "of%d-rank%d.db", cases[i].num, rank);
            uint64_t order = (uint64_t)(7 * rank % cases[i].num);
            record_rank(name, rank, 100 + 20 * order, NUM_LAPS, 0, NUM_LAPS);
            size_t used = strlen(paths);
            snprintf(paths + used, sizeof paths - used, "'%s' ", in_folder(name));
        }
        assert_has(run(paths, 0), cases[i].median);
    }
}

/* Ranks 0 to 3 of "first", and later ranks 0 and 1 of "second", as a resume with fewer ranks has them. */
TEST_CASE(jobs_in_one_folder_are_not_mixed)
{
    char arguments[2048];
    record_job();
    for (int32_t rank = 0; rank < 4; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank%d.db", rank);
        execute(in_folder(name), "UPDATE run SET job = 'first', world = 4");
        if (rank >= 2)
            continue;
        weir_sqlite_writer *writer = recording_begin(in_folder(name), "node-a", rank, 5000);
        record_lap(writer, &(invented_lap){ .at = 5010, .num_tasks = 80 });
        recording_end(writer, 5010);
        execute(in_folder(name), "UPDATE run SET job = 'second', world = 2 WHERE started = 5000");
    }
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "\n2 ranks; median 8.00 items/s");
    assert_has(text, "1 other job is in these databases (--job compares it): first\n");
    assert_null(strstr(text, "missing"));
    snprintf(arguments, sizeof arguments, "'%s' --job 'f*'", in_folder(""));
    assert_has(run(arguments, 0), "\n4 ranks; median 10.00 items/s");
    snprintf(arguments, sizeof arguments, "'%s' --job third", in_folder(""));
    assert_has(run(arguments, 3), "no run of such a job");
}

/* Two jobs that the launcher did not name: the gap between them tells them apart. */
TEST_CASE(an_earlier_job_without_a_name_is_another_one)
{
    char arguments[2048];
    record_rank("a.db", 0, 100, NUM_LAPS, 0, NUM_LAPS);
    record_rank("b.db", 1, 100, NUM_LAPS, 0, NUM_LAPS);
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node-a", 0, 5000);
    record_lap(writer, &(invented_lap){ .at = 5010, .num_tasks = 80 });
    recording_end(writer, 5010);
    execute(in_folder("a.db"), "UPDATE run SET world = 2");
    execute(in_folder("b.db"), "UPDATE run SET world = 2");
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "\n1 rank; median 8.00 items/s");
    assert_has(text, "rank 1 is missing");
}

TEST_CASE(a_rank_that_was_stopped_has_not_ended_well)
{
    char arguments[2048], sql[128];
    record_job();
    snprintf(sql, sizeof sql, "UPDATE run SET status = %d", WEIR_ESTOPPED);
    execute(in_folder("rank1.db"), sql);
    snprintf(sql, sizeof sql, "UPDATE run SET status = %d", WEIR_EIO);
    execute(in_folder("rank3.db"), sql);
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "\nrank 1 was stopped\n");
    assert_has(text, "\nrank 3 failed\n");
    snprintf(arguments, sizeof arguments, "'%s' --csv", in_folder(""));
    text = run(arguments, 0);
    assert_has(text, "\n0,node-a,finished,");
    assert_has(text, "\n1,node-a,stopped,");
    assert_has(text, "\n3,node-a,failed,");
}

/* 2 items where others have 3 are a third less, and no sign of anything. */
TEST_CASE(a_few_items_make_no_straggler)
{
    char arguments[2048];
    for (int32_t rank = 0; rank < 4; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank%d.db", rank);
        record_rank(name, rank, rank == 2 ? 0 : 1, 0, 0, 3);
        execute(in_folder(name), "UPDATE task_stats SET cpu_time = 1, busy_time = 9");
        execute(in_folder(name), "UPDATE queue_stats SET num_items = 1");
    }
    execute(in_folder("rank2.db"), "UPDATE queue_stats SET num_items = 0 WHERE timestamp > 1025");
    execute(in_folder("rank2.db"), "UPDATE task_stats SET busy_time = 30");
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "33.3 %"); /* it is printed, but not judged */
    assert_null(strstr(text, "slower: "));
    for (int32_t rank = 0; rank < 4; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank%d.db", rank);
        execute(in_folder(name), "UPDATE queue_stats SET num_items = 1000 * num_items");
    }
    assert_has(run(arguments, 0), "rank 2 is 33 % slower: its disk or network");
}

TEST_CASE(what_takes_longer_is_the_reason)
{
    static const struct {
        int busy, cpu, delay; /* of rank 2; 11, 10 and 0 of the others */
        const char *reason;
    } cases[] = {
        { 31, 30, 0, "its CPU: the same work takes more CPU time" },
        { 31, 10, 20, "its CPUs are busy: threads wait for one" },
        { 31, 10, 5, "its disk or network: tasks wait while they run" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char arguments[2048], expected[200];
        record_job();
        for (int32_t rank = 0; rank < 4; rank++) {
            char name[32], sql[300];
            bool is_slow = rank == 2;
            snprintf(name, sizeof name, "rank%d.db", rank);
            snprintf(sql, sizeof sql,
                     "UPDATE task_stats SET cpu_time = %d, busy_time = %d; INSERT INTO pool_stats (timestamp, name, "
                     "run_id, "
                     "elapsed, run_delay_time) SELECT timestamp, '0:pool', run_id, elapsed, %d FROM task_stats",
                     is_slow ? cases[i].cpu : 10, is_slow ? cases[i].busy : 11, is_slow ? cases[i].delay : 0);
            execute(in_folder(name), sql);
        }
        snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
        snprintf(expected, sizeof expected, "rank 2 is 25 %% slower: %s\n", cases[i].reason);
        assert_has(run(arguments, 0), expected);
        for (int32_t rank = 0; rank < 4; rank++) {
            char name[32];
            snprintf(name, sizeof name, "rank%d.db", rank);
            unlink(in_folder(name));
        }
    }
}

TEST_CASE(ranks_that_died_or_are_missing_are_named)
{
    char arguments[2048];
    record_rank("a.db", 0, 100, NUM_LAPS, 0, NUM_LAPS);
    record_rank("b.db", 1, 100, NUM_LAPS, 0, 8); /* killed after 80 s */
    record_rank("c.db", 3, 100, NUM_LAPS, 0, NUM_LAPS);
    execute(in_folder("a.db"), "UPDATE run SET world = 2"); /* too few: there is a rank 3 */
    execute(in_folder("b.db"), "UPDATE run SET world = 2");
    execute(in_folder("c.db"), "UPDATE run SET world = 2");
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "rank 1 is silent: it has not ended, but has recorded nothing for the last 120 s");
    assert_has(text, "rank 2 is missing");
}

TEST_CASE(a_rank_may_be_a_label)
{
    char arguments[2048];
    record_rank("a.db", 59999, 100, NUM_LAPS, 0, NUM_LAPS); /* alone: its world is 1 */
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "1 rank; median 10.00 items/s\n");
    assert_null(strstr(text, "missing"));
}

TEST_CASE(a_negative_rank_hides_no_other)
{
    char arguments[2048];
    record_rank("a.db", -1, 100, NUM_LAPS, 0, NUM_LAPS);
    record_rank("b.db", 0, 100, NUM_LAPS, 0, NUM_LAPS);
    record_rank("c.db", 2, 100, NUM_LAPS, 0, NUM_LAPS);
    static const char *const names[] = { "a.db", "b.db", "c.db" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        execute(in_folder(names[i]), "UPDATE run SET world = 3");
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "rank 1 is missing");
    assert_null(strstr(text, "missing: no database has a run of them"));
}

static void damage_last_page(const char *path)
{
    enum { PAGE = 4096 };
    static const char garbage[PAGE] = { 'x' };
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -PAGE, SEEK_END), 0);
    assert_int_equal(fwrite(garbage, 1, PAGE, file), PAGE);
    assert_int_equal(fclose(file), 0);
}

/* Its first run can be read, a later one cannot. */
TEST_CASE(a_database_that_is_left_out_adds_nothing)
{
    char arguments[2048];
    record_rank("a.db", 0, 100, NUM_LAPS, 0, NUM_LAPS);
    record_rank("b.db", 7, 100, NUM_LAPS, 0, NUM_LAPS);
    execute(in_folder("b.db"), "CREATE TEMP TABLE copy AS SELECT * FROM run;"
                               "UPDATE copy SET run_id = NULL, started = 2000, world = 9;"
                               "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
                               "INSERT INTO run SELECT copy.* FROM copy, n");
    execute(in_folder("b.db"), "PRAGMA journal_mode = DELETE");
    damage_last_page(in_folder("b.db"));
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "left out: ");
    assert_has(text, "\n1 rank; ");
    assert_null(strstr(text, "missing"));
}

TEST_CASE(all_ranks_of_the_job_are_expected)
{
    char arguments[2048];
    record_rank("a.db", 0, 100, NUM_LAPS, 0, NUM_LAPS);
    record_rank("b.db", 4, 100, NUM_LAPS, 0, NUM_LAPS);
    execute(in_folder("a.db"), "UPDATE run SET world = 8");
    execute(in_folder("b.db"), "UPDATE run SET world = 8");
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    char *text = run(arguments, 0);
    assert_has(text, "2 ranks; ");
    assert_has(text, "ranks 1 to 3 are missing");
    assert_has(text, "ranks 5 to 7 are missing");
    snprintf(arguments, sizeof arguments, "'%s' --json", in_folder(""));
    assert_has(run(arguments, 0), "\"rank\": 7, \"node\": null, \"state\": \"missing\", \"num_items\": null");
    execute(in_folder("a.db"), "UPDATE run SET world = 4000000000"); /* damaged */
    execute(in_folder("b.db"), "UPDATE run SET world = 4000000000");
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    assert_null(strstr(run(arguments, 0), "5 to"));
}

TEST_CASE(a_folder_may_have_files_that_are_no_databases)
{
    char command[2048];
    snprintf(command, sizeof command, "cd '%s' && echo notes >notes.db && : >empty.db", in_folder(""));
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    execute(in_folder("other.db"), "CREATE TABLE t (a)");
    snprintf(command, sizeof command, "'%s'", in_folder(""));
    assert_has(run(command, 2), "no database of weir in ");
    record_rank("rank0.db", 0, 100, NUM_LAPS, 0, NUM_LAPS);
    char *text = run(command, 0);
    assert_has(text, "left out: ");
    assert_has(text, "notes.db");
    assert_has(text, "empty.db");
    assert_has(text, "other.db");
    assert_has(text, "1 rank; ");
    snprintf(command, sizeof command, "'%s'", in_folder("notes.db"));
    assert_has(run(command, 2), "notes.db");
}

TEST_CASE(the_last_run_of_a_rank_counts)
{
    char arguments[2048];
    record_rank("a.db", 0, 10, NUM_LAPS, 0, NUM_LAPS);
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "node-a", 0, 5000);
    record_lap(writer, &(invented_lap){ .at = 5010, .num_tasks = 77 });
    recording_end(writer, 5010);
    snprintf(arguments, sizeof arguments, "'%s' --csv", in_folder("a.db"));
    assert_has(run(arguments, 0), "0,node-a,finished,77,7.7,");
}

TEST_CASE(bad_input_gets_one_line)
{
    char arguments[2048];
    assert_has(run("/nowhere/at/all.db", 2), "/nowhere/at/all.db");
    snprintf(arguments, sizeof arguments, "'%s'", in_folder(""));
    assert_has(run(arguments, 2), "no *.db file in the folder");
    assert_has(run("a.db --slower -3", 2), "--slower");
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
