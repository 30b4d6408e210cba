/* The example of a training loop: an index, shares, epochs, and batches that the seed decides. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/program.h"
#include "tests/test_case.h"

enum { NUM_CLIPS = 6 };

static char *work; /* with the clips in it, and their index */
static char *clips_index;

static int set_up(void **state)
{
    (void)state;
    char command[1024];
    work = make_folder();
    clips_index = path_in(work, "clips.weir");
    for (int i = 0; i < NUM_CLIPS; i++) {
        snprintf(
            command, sizeof command,
            "mkdir -p '%s/c%d' && ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=s=64x48:r=25 -frames:v 60 "
            "-pix_fmt yuv420p '%s/c%d/clip-%d.mp4'",
            work, i % 2, work, i % 2, i);
        if (system(command) != 0) /* NOLINT: the test's own path */
            return -1;
    }
    snprintf(command, sizeof command, "'%s' index '%s' -o '%s'", program_path("WEIR_TOOL"), work, clips_index);
    return system(command); /* NOLINT: the test's own path */
}

static int tear_down(void **state)
{
    (void)state;
    free(clips_index);
    remove_folder(work);
    return 0;
}

static void run(struct program *program, const char *index, const char *seed)
{
    char *argv[] = { (char *)(uintptr_t)program_path("TRAINING"), (char *)(uintptr_t)index, (char *)(uintptr_t)seed,
                     NULL };
    program_run(program, work, argv);
}

/* Counts the clips of one epoch in the output; returns how many lines there were. */
static int count_clips(const char *out, int epoch, int counts[NUM_CLIPS])
{
    char wanted[32];
    int num_lines = 0;
    snprintf(wanted, sizeof wanted, "epoch %d:", epoch);
    for (const char *line = strstr(out, wanted); line; line = strstr(line + 1, wanted)) {
        const char *end = strchr(line, '\n');
        num_lines++;
        for (const char *clip = strstr(line, "clips ") + 5; clip < end && *clip == ' ';) {
            int id = -1, label = -1, length = 0;
            if (sscanf(clip, " %d (class %d)%n", &id, &label, &length) != 2)
                fail_msg("%s", line);
            assert_in_range(id, 0, NUM_CLIPS - 1);
            assert_int_equal(label, id < NUM_CLIPS / 2 ? 0 : 1); /* by path: c0 comes first */
            counts[id]++;
            clip += length;
        }
    }
    return num_lines;
}

TEST_CASE(each_epoch_has_each_clip_once)
{
    struct program program;
    run(&program, clips_index, "1");
    assert_int_equal(program.status, 0);
    for (int epoch = 0; epoch < 3; epoch++) {
        int counts[NUM_CLIPS] = { 0 };
        assert_int_equal(count_clips(program.out, epoch, counts), 2); /* a batch of 4 and one of 2 */
        for (int i = 0; i < NUM_CLIPS; i++)
            assert_int_equal(counts[i], 1);
    }
    program_free(&program);
}

TEST_CASE(ranks_share_each_epoch)
{
    int counts[3][NUM_CLIPS] = { 0 };
    setenv("WORLD_SIZE", "4", 1);
    for (int rank = 0; rank < 4; rank++) {
        char text[8];
        struct program program;
        snprintf(text, sizeof text, "%d", rank);
        setenv("RANK", text, 1);
        run(&program, clips_index, "1");
        assert_int_equal(program.status, 0);
        for (int epoch = 0; epoch < 3; epoch++)
            assert_int_equal(count_clips(program.out, epoch, counts[epoch]), 1); /* two clips for each */
        program_free(&program);
    }
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 0, sum = 0; i < NUM_CLIPS; i++) {
            assert_in_range(counts[epoch][i], 1, 2); /* padded to 8 */
            sum += counts[epoch][i];
            assert_true(i < NUM_CLIPS - 1 || sum == 8);
        }
}

TEST_CASE(the_seed_decides_all)
{
    struct program first, again, other;
    run(&first, clips_index, "1");
    run(&again, clips_index, "1");
    run(&other, clips_index, "2");
    assert_string_equal(first.out, again.out);
    assert_string_not_equal(first.out, other.out);
    program_free(&first);
    program_free(&again);
    program_free(&other);
}

static void run_saved(struct program *program, const char *index, char *save)
{
    char *argv[] = { (char *)(uintptr_t)program_path("TRAINING"), (char *)(uintptr_t)index, "1", save, NULL };
    program_start(program, work, argv, -1);
}

/* Waits until the rank has stored a step. */
static void await_step(const char *path)
{
    bool has_step = false;
    while (!has_step) {
        char *text = access(path, R_OK) == 0 ? read_file(path) : NULL;
        has_step = text && strstr(text, "rank 0/1");
        free(text);
        sched_yield();
    }
}

TEST_CASE(a_killed_run_goes_on_where_it_was)
{
    struct program program;
    char *save = path_in(work, "save"), *path = path_in(work, "save.0");
    for (int kills = 0; kills < 2; kills++) {
        run_saved(&program, clips_index, save);
        await_step(path);
        kill(program.pid, SIGKILL); /* or it has just ended */
        program_wait(&program, work);
        program_free(&program);
    }
    run_saved(&program, clips_index, save);
    program_wait(&program, work);
    assert_int_equal(program.status, 0);
    char *text = read_file(path);
    for (int epoch = 0; epoch < 3; epoch++) {
        int counts[NUM_CLIPS] = { 0 };
        count_clips(text, epoch, counts);
        for (int i = 0; i < NUM_CLIPS; i++)
            assert_int_equal(counts[i], 1);
    }
    free(text);
    program_free(&program);
    free(path);
    free(save);
}

TEST_CASE(a_checkpoint_of_other_clips_is_refused)
{
    struct program program;
    char command[1024], *save = path_in(work, "save"), *other = path_in(work, "other.weir");
    run_saved(&program, clips_index, save);
    program_wait(&program, work);
    program_free(&program);
    snprintf(command, sizeof command, "'%s' index '%s/c0' -o '%s'", program_path("WEIR_TOOL"), work, other);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    run_saved(&program, other, save);
    program_wait(&program, work);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "training: the checkpoint is of another dataset: it has dataset="));
    program_free(&program);
    free(other);
    free(save);
}

/* It is not a failure that the rank has no checkpoint of its own; any other that was asked for and is missing is one.
   So is a folder that is missing, which is found when the first checkpoint is stored. */
TEST_CASE(a_failure_behind_a_missing_own_checkpoint_is_named)
{
    static const char *const words[][3] = { { "fresh", "old.0" }, { "fresh", "first.0", "old.1" }, { "none/fresh" } };
    static const char *const failed[] = { "old.0", "old.1", "none/fresh.0" };
    static const char *const causes[] = { "cannot read", "cannot read", "cannot write" };
    struct program program;
    char *first = path_in(work, "first");
    run_saved(&program, clips_index, first);
    program_wait(&program, work);
    assert_int_equal(program.status, 0);
    program_free(&program);
    free(first);
    for (size_t i = 0; i < sizeof failed / sizeof *failed; i++) {
        char *argv[8] = { (char *)(uintptr_t)program_path("TRAINING"), clips_index, (char *)(uintptr_t) "1" };
        for (size_t k = 0; k < 3 && words[i][k]; k++)
            argv[3 + k] = path_in(work, words[i][k]);
        program_run(&program, work, argv);
        assert_int_not_equal(program.status, 0);
        if (!strstr(program.err, failed[i]) || !strstr(program.err, causes[i]) ||
            (i < 2 && strstr(program.err, "fresh")))
            fail_msg("%s", program.err);
        program_free(&program);
        for (size_t k = 3; argv[k]; k++)
            free(argv[k]);
    }
}

TEST_CASE(bad_input_gets_one_line)
{
    struct program program;
    run(&program, "/nowhere/at/all.weir", NULL);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "/nowhere/at/all.weir"));
    program_free(&program);
    setenv("RANK", "2", 1);
    setenv("WORLD_SIZE", "2", 1);
    run(&program, clips_index, NULL);
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "RANK=2 and WORLD_SIZE=2"));
    program_free(&program);
}

/* Two of the six are no longer those of the index: the four that are left would make one batch of 4. */
TEST_CASE(clips_that_have_changed_cost_no_step)
{
    struct program program;
    char command[1024];
    snprintf(command, sizeof command, "touch -d '2001-01-01' '%s'/c0/clip-0.mp4 '%s'/c1/clip-3.mp4", work, work);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    run(&program, clips_index, "1");
    assert_int_equal(program.status, 0);
    for (int epoch = 0; epoch < 3; epoch++) {
        int counts[NUM_CLIPS] = { 0 }, num_clips = 0;
        assert_int_equal(count_clips(program.out, epoch, counts), 2);
        for (int i = 0; i < NUM_CLIPS; i++)
            num_clips += counts[i];
        assert_int_equal(num_clips, NUM_CLIPS);
        assert_int_equal(counts[0], 0); /* c0 comes first: clips 0, 2, 4, 1, 3 and 5 */
        assert_int_equal(counts[4], 0);
    }
    program_free(&program);
}

/* Last, as the clips are no longer those of the index. */
TEST_CASE(clips_that_have_all_changed_fail_the_job)
{
    struct program program;
    char command[1024];
    snprintf(command, sizeof command, "touch -d '2001-01-01' '%s'/c*/*.mp4", work);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    run(&program, clips_index, "1");
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.err, "training: all 6 items that could be in this place have failed"));
    assert_non_null(strstr(program.err, "changed"));
    program_free(&program);
}

TEST_MAIN(NULL, NULL, set_up, tear_down)
