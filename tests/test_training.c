/* The example of a training loop: batches, epochs, and frames that the seed decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program.h"

enum { NUM_CLIPS = 6 };

static char *work; /* with the clips in it */

static int set_up(void **state)
{
    (void)state;
    work = make_folder();
    for (int i = 0; i < NUM_CLIPS; i++) {
        char command[1024];
        snprintf(command, sizeof command,
                 "ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=s=64x48:r=25 -frames:v 60 -pix_fmt yuv420p "
                 "'%s/clip-%d.mp4'",
                 work, i);
        if (system(command) != 0) /* NOLINT: the test's own path */
            return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_folder(work);
    return 0;
}

static void run(struct program *program, const char *folder, const char *seed)
{
    char *argv[] = { (char *)(uintptr_t)program_path("TRAINING"), (char *)(uintptr_t)folder, (char *)(uintptr_t)seed,
                     NULL };
    program_run(program, work, argv);
}

static void no_batch_crosses_the_end_of_an_epoch(void **state)
{
    (void)state;
    struct program program;
    run(&program, work, "1");
    assert_int_equal(program.status, 0);
    static const char *const starts[] = { "batch of 4, up to ", "batch of 2, up to ", "end of epoch 1",
                                          "batch of 4, up to ", "batch of 2, up to ", "end of epoch 2" };
    const char *line = program.out;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (strncmp(line, starts[i], strlen(starts[i])) != 0)
            fail_msg("line %zu: %s", i + 1, line);
        line = strchr(line, '\n') + 1;
    }
    assert_string_equal(line, "");
    program_free(&program);
}

static void the_seed_decides_which_frames(void **state)
{
    (void)state;
    struct program first, again, other;
    run(&first, work, "1");
    run(&again, work, "1");
    run(&other, work, "2");
    assert_string_equal(first.out, again.out);
    assert_string_not_equal(first.out, other.out);
    program_free(&first);
    program_free(&again);
    program_free(&other);
}

static void a_missing_folder_is_named(void **state)
{
    (void)state;
    struct program program;
    run(&program, "/nowhere/at/all", NULL);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "/nowhere/at/all"));
    program_free(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_batch_crosses_the_end_of_an_epoch),
        cmocka_unit_test(the_seed_decides_which_frames),
        cmocka_unit_test(a_missing_folder_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
