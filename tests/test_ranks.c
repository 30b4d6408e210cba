/* weir record on several processes, with the environment of each launcher set by hand. */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <sqlite3.h>

#include "tests/clips.h"
#include "tests/program.h"

enum { NUM_CLIPS = 7, NUM_RANKS = 3, MAX_WORDS = 24 };

static const char *const launchers[][2] = {
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
    { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" },
    { "RANK", "WORLD_SIZE" },
};

static struct program ranks[NUM_RANKS];
static char *folders[NUM_RANKS]; /* of their output */
static int num_jobs;

static int set_up(void **state)
{
    clips_set_up(state);
    clips_make_folder(clips_path("videos"));
    clips_make_folder(clips_path("videos/sub"));
    for (int i = 0; i < NUM_CLIPS; i++) {
        char name[64];
        snprintf(name, sizeof name, "videos/%s%d.mp4", i % 2 ? "sub/" : "", i);
        clips_make(name, "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v mpeg4");
    }
    for (int rank = 0; rank < NUM_RANKS; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank%d", rank);
        folders[rank] = strdup(clips_path(name));
        clips_make_folder(folders[rank]);
    }
    return 0;
}

static int tear_down(void **state)
{
    program_end_left();
    for (int rank = 0; rank < NUM_RANKS; rank++)
        free(folders[rank]);
    return clips_tear_down(state);
}

/* Each test has databases and a job of its own. */
static int begin_job(void **state)
{
    (void)state;
    char name[32];
    snprintf(name, sizeof name, "job %d", ++num_jobs);
    setenv("WEIR_JOB", name, 1);
    return 0;
}

static const char *db_path(const char *rank)
{
    char name[64];
    snprintf(name, sizeof name, "job%d%s%s.db", num_jobs, *rank ? ".rank" : "", rank);
    return clips_path(name);
}

/* Starts `weir record line` as a rank of a world, with the variables of a launcher; @ begins a path in the folder of
   the tests. Its database is that of the job. */
static void start(int rank, int world, int launcher, const char *line)
{
    static char words[MAX_WORDS][4200];
    char *argv[MAX_WORDS + 6], copy[1024], number[16];
    const char *first[] = { program_path("WEIR_TOOL"), "record", "--db-path", db_path(""), "--concurrency", "1" };
    int count = 0;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        argv[count++] = (char *)(uintptr_t)first[i];
    snprintf(copy, sizeof copy, "%s", line);
    int used = 0;
    for (char *word = strtok(copy, " "); word && used < MAX_WORDS - 1; word = strtok(NULL, " "), used++) {
        snprintf(words[used], sizeof words[used], "%s", *word == '@' ? clips_path(word + 1) : word);
        argv[count++] = words[used];
    }
    argv[count] = NULL;
    snprintf(number, sizeof number, "%d", rank);
    setenv(launchers[launcher][0], number, 1);
    snprintf(number, sizeof number, "%d", world);
    setenv(launchers[launcher][1], number, 1);
    program_start(&ranks[rank], folders[rank], argv, -1);
    unsetenv(launchers[launcher][0]);
    unsetenv(launchers[launcher][1]);
}

static struct program *wait_for(int rank, int expected_status)
{
    program_wait(&ranks[rank], folders[rank]);
    if (ranks[rank].status != expected_status)
        fail_msg("rank %d: status %d: %s", rank, ranks[rank].status, ranks[rank].err);
    return &ranks[rank];
}

/* A number from a database; 0 if it is not there yet. */
static double query(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement = NULL;
    double number = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

/* Waits until the query returns at least that, and leaves the CPUs to the ranks meanwhile. The test's time limit ends
   it. */
static void wait_until(const char *path, const char *sql, double least)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    int watch = folder_watch_begin(folder);
    while (query(path, sql) < least)
        folder_watch_wait(watch);
    close(watch);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void expect_in(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

/* -- shares */

/* What the ranks list, one after the other. */
static void list_shares(int world, int launcher, const char *line, char text[1 << 14])
{
    *text = '\0';
    for (int rank = 0; rank < world; rank++) {
        start(rank, world, launcher, line);
        strcat(text, wait_for(rank, 0)->out);
        program_free(&ranks[rank]);
    }
}

static void expect_each_clip_once(const char *text)
{
    assert_int_equal(count_of(text, "\n"), NUM_CLIPS);
    for (int i = 0; i < NUM_CLIPS; i++) {
        char name[64];
        snprintf(name, sizeof name, "/%d.mp4\n", i);
        if (count_of(text, name) != 1)
            fail_msg("%s in: %s", name, text);
    }
}

TEST_CASE(shares_are_disjoint_complete_and_the_same_under_each_launcher)
{
    char first[1 << 14], other[1 << 14];
    list_shares(NUM_RANKS, 0, "@videos --dry-run", first);
    expect_each_clip_once(first);
    for (int launcher = 1; launcher < 3; launcher++) {
        list_shares(NUM_RANKS, launcher, "@videos --dry-run", other);
        assert_string_equal(first, other);
    }
    clips_write_text(clips_path("list.txt"), first);
    for (int world = 1; world <= NUM_RANKS; world++) {
        list_shares(world, 2, "--list @list.txt --dry-run", other);
        expect_each_clip_once(other);
    }
}

/* -- the end */

TEST_CASE(rank_0_prints_one_summary_of_all)
{
    for (int rank = 0; rank < NUM_RANKS; rank++) {
        setenv("OMPI_COMM_WORLD_LOCAL_RANK", rank ? "1" : "0", 1);
        start(rank, NUM_RANKS, 0, "@videos --trace @trace{rank}-{local_rank}-of-{world_size}.{batch}.json");
    }
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    for (int rank = 0; rank < NUM_RANKS; rank++)
        wait_for(rank, 0);
    for (int rank = 0; rank < NUM_RANKS; rank++) {
        char name[32];
        snprintf(name, sizeof name, "trace%d-%d-of-3.0.json", rank, rank > 0);
        assert_int_equal(access(clips_path(name), F_OK), 0);
    }
    assert_int_equal(count_of(ranks[0].out, "3 runs of "), 1);
    expect_in(ranks[0].out, ": 7 files decoded\n");
    expect_in(ranks[0].out, db_path(""));
    for (int rank = 1; rank < NUM_RANKS; rank++) {
        assert_string_equal(ranks[rank].out, "");
        assert_int_equal(count_of(ranks[rank].err, "\n"), 1);
        expect_in(ranks[rank].err, rank == 1 ? "weir record: rank 1 of 3: 2 files, 0 failed; recorded in "
                                             : "weir record: rank 2 of 3: 2 files, 0 failed; recorded in ");
    }
    assert_int_equal(query(db_path(""), "SELECT count(DISTINCT rank) FROM run"), NUM_RANKS);
    assert_int_equal(query(db_path(""), "SELECT count(DISTINCT label) FROM item_stats"), NUM_CLIPS);
    assert_int_equal(query(db_path(""), "SELECT count(*) FROM run WHERE world = 3 AND job LIKE 'job %'"), NUM_RANKS);
    for (int rank = 0; rank < NUM_RANKS; rank++)
        program_free(&ranks[rank]);
}

/* Launchers end all ranks when one of them fails, so only rank 0 says it. */
/* A path of its own, and its number in the labels; the name of a trace may say where the rank goes. */
TEST_CASE(each_rank_writes_its_own_exports)
{
    static const char *const wanted[] = { "own.rank1.prom", "log/rank1", "own.rank1.json", "own1.json" };
    for (int i = 0; i < 2; i++) {
        start(1, 2, 0,
              i == 0 ? "@videos --openmetrics @own.prom --tensorboard @log --trace @own.json"
                     : "@videos --trace @own{rank}.json");
        wait_for(1, 0);
        program_free(&ranks[1]);
    }
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (access(clips_path(wanted[i]), F_OK) != 0)
            fail_msg("no %s", wanted[i]);
    char *metrics = read_file(clips_path("own.rank1.prom"));
    expect_in(metrics, ",rank=\"1\"");
    assert_null(strstr(metrics, ",rank=\"0\""));
    free(metrics);
}

TEST_CASE(a_job_in_which_every_file_fails_has_failed)
{
    clips_make_folder(clips_path("broken"));
    clips_write_text(clips_path("broken/a.mp4"), "no video");
    clips_write_text(clips_path("broken/b.mp4"), "no video either");
    for (int rank = 0; rank < 2; rank++)
        start(rank, 2, 0, "@broken");
    wait_for(1, 0);
    wait_for(0, 1);
    expect_in(ranks[0].err, "weir record: rank 0: nothing could be decoded (2 failed)\n");
    program_free(&ranks[0]);
    program_free(&ranks[1]);
}

/* Rank 1 of 2 waits for a server that does not answer when it is killed. */
TEST_CASE(a_killed_rank_is_named_and_its_files_can_be_resumed)
{
    char text[1 << 14], url[64], line[256];
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(server, 8), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&address, &length), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/clip.mp4\n", ntohs(address.sin_port));
    int used = 0;
    for (int i = 0; i < 6; i += 2)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s/%d.mp4\n", clips_path("videos"), i);
    snprintf(text + used, sizeof text - (size_t)used, "%s", url);
    clips_write_text(clips_path("urls.txt"), text);
    start(1, 2, 1, "--list @urls.txt --io-timeout 1h");
    wait_until(db_path("1"), "SELECT count(*) FROM item_stats", 1);
    wait_until(db_path("1"), "SELECT count(*) FROM event_stats WHERE event_name = 'expected_items'", 1);
    start(0, 2, 1, "--list @urls.txt");
    wait_until(db_path("0"), "SELECT count(*) FROM run WHERE ended > 0", 1);
    kill(ranks[1].pid, SIGKILL);
    wait_for(1, -SIGKILL);
    wait_for(0, 1);
    close(server);
    expect_in(ranks[0].out, " of 4 files decoded; 1 of the runs has not ended\n");
    expect_in(ranks[0].err, "weir record: rank 0: rank 1 was killed (process ");
    snprintf(text, sizeof text, "weir record: rank 0: rank 1: 1 file is not finished:\n  %s", url);
    expect_in(ranks[0].err, text);
    expect_in(ranks[0].err, "run the same command with --resume ");
    program_free(&ranks[0]);
    program_free(&ranks[1]);

    snprintf(line, sizeof line, "--list @urls.txt --dry-run --resume @job%d.db", num_jobs);
    list_shares(2, 1, line, text);
    assert_string_equal(text, url);
    snprintf(line, sizeof line, "--list @urls.txt --epochs 1 --resume @job%d.db", num_jobs);
    start(0, 1, 1, line);
    expect_in(wait_for(0, 1)->out, ": 0 of 1 file decoded in "); /* no server: an end, too */
    program_free(&ranks[0]);
    snprintf(line, sizeof line, "--list @urls.txt --dry-run --resume @job%d.db", num_jobs);
    list_shares(2, 1, line, text);
    assert_string_equal(text, "");
    snprintf(line, sizeof line, "--list @urls.txt --dry-run --resume @job%d.db --retry-failed", num_jobs);
    list_shares(2, 1, line, text);
    assert_string_equal(text, url);
}

/* Rank 0 was killed before it merged: a resume on fewer ranks, or in one process, has what all ranks recorded. */
TEST_CASE(a_resume_with_fewer_ranks_keeps_what_the_others_recorded)
{
    char line[64];
    for (int rank = 0; rank < NUM_RANKS; rank++)
        start(rank, NUM_RANKS, 0, "@videos");
    for (int rank = 0; rank < NUM_RANKS; rank++)
        wait_for(rank, 0);
    for (int rank = 0; rank < NUM_RANKS; rank++)
        program_free(&ranks[rank]);
    snprintf(line, sizeof line, "@videos --resume @job%d.db", num_jobs);
    for (int world = 2; world >= 1; world--) {
        assert_int_equal(unlink(db_path("")), 0);
        for (int rank = world - 1; rank >= 0; rank--)
            start(rank, world, 0, line);
        for (int rank = world - 1; rank >= 0; rank--) {
            wait_for(rank, 0);
            program_free(&ranks[rank]);
        }
        assert_int_equal(query(db_path(""), "SELECT count(*) FROM run WHERE world = 3"), NUM_RANKS);
        assert_int_equal(query(db_path(""), "SELECT sum(num_tasks) FROM task_stats"), NUM_CLIPS);
    }
}

TEST_CASE(files_that_no_rank_has_decoded_are_named)
{
    start(1, 2, 2, "@videos/sub"); /* as if its folder were not the same: its only share is sub/3.mp4 */
    start(0, 2, 2, "@videos");
    wait_for(1, 0);
    wait_for(0, 1);
    expect_in(ranks[0].err,
              "rank 0: 2 files are not finished: the folder has changed, or the ranks see different folders:\n");
    program_free(&ranks[0]);
    program_free(&ranks[1]);
}

TEST_CASE(rank_0_does_not_wait_for_ever)
{
    start(0, 2, 2, "@videos --wait 0.1");
    struct program *program = wait_for(0, 1);
    expect_in(program->out, ": 4 files decoded in ");
    expect_in(program->err, "rank 1 has no run in its database (");
    expect_in(program->err, "rank 1: 3 files are not finished:\n");
    program_free(program);
}

TEST_CASE(a_signal_ends_all_ranks_with_their_last_lap)
{
    for (int rank = 0; rank < 2; rank++)
        start(rank, 2, 0, "@videos --epochs 1000000 --log-interval 1h");
    for (int rank = 0; rank < 2; rank++)
        wait_until(db_path(rank ? "1" : "0"), "SELECT count(*) FROM item_stats", 1);
    for (int rank = 0; rank < 2; rank++)
        kill(ranks[rank].pid, SIGTERM);
    for (int rank = 0; rank < 2; rank++) {
        wait_for(rank, 128 + SIGTERM);
        const char *path = db_path(rank ? "1" : "0");
        assert_true(query(path, "SELECT count(*) FROM run WHERE ended > 0"));
        assert_true(query(path, "SELECT (SELECT sum(num_tasks - num_failures) FROM task_stats) = "
                                "(SELECT count(*) FROM item_stats)"));
        program_free(&ranks[rank]);
    }
}

/* -- bad input */

static void expect_refusal(int rank, int world, const char *line, const char *expected)
{
    start(rank, world, 2, line);
    program_wait(&ranks[rank], folders[rank]);
    if (ranks[rank].status != 2 || !strstr(ranks[rank].err, expected) || count_of(ranks[rank].err, "\n") != 1)
        fail_msg("%s: %d: %s", line, ranks[rank].status, ranks[rank].err);
    program_free(&ranks[rank]);
}

TEST_CASE(bad_worlds_and_databases_are_refused_in_a_line)
{
    expect_refusal(0, 0, "@videos", "WORLD_SIZE=0: it must be at least 1; or use --world 1 ");
    expect_refusal(2, 2, "@videos", "RANK=2 and WORLD_SIZE=2: ranks are 0 to 1");
    expect_refusal(1, 2, "--list -", "rank 1: --list -: not with several processes");
    expect_refusal(0, 1, "@videos --world 2", "--world: give the --rank of this process, too");
    expect_refusal(0, 1, "@videos --world 2 --rank 2", "--rank: with --world 2, ranks are 0 to 1");
    expect_refusal(0, 1, "@videos --resume @none.db", "--resume: ");
    expect_refusal(0, 1, "@videos --resume @none.db --epochs 2", "--resume: not with --epochs");
    expect_refusal(0, 1, "@videos --retry-failed", "--retry-failed: only with --resume");
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return test_cases_run(begin_job, NULL, set_up, tear_down);
}
