/* The shortest pipeline: its output, and the README shows the same program. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/program.h"
#include "tests/test_case.h"

static void run(struct program *program, const char *work, const char *folder)
{
    char *argv[] = { (char *)(uintptr_t)program_path("MINIMAL"), (char *)(uintptr_t)folder, NULL };
    program_run(program, work, argv);
}

TEST_CASE(minimal_prints_a_line_for_each_video)
{
    char *work = make_folder(), *clip = path_in(work, "clip.mp4"), command[1024], expected[1024];
    snprintf(command, sizeof command,
             "ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=s=64x48:r=25 -frames:v 7 -pix_fmt yuv420p '%s'",
             clip);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */

    struct program program;
    run(&program, work, work);
    snprintf(expected, sizeof expected, "%s: 7 frames of 128x128\n", clip);
    assert_string_equal(program.out, expected);
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.err, "0:1:"));
    program_free(&program);
    free(clip);
    remove_folder(work);
}

TEST_CASE(minimal_names_a_folder_that_is_missing)
{
    char *work = make_folder(), *missing = path_in(work, "missing");
    struct program program;
    run(&program, work, missing);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, missing));
    program_free(&program);
    free(missing);
    remove_folder(work);
}

TEST_CASE(minimal_names_what_a_folder_has_that_has_no_video)
{
    char *work = make_folder(), *folder = path_in(work, "notes"), command[1024], expected[1024];
    snprintf(command, sizeof command, "mkdir '%s' && touch '%s/a.txt'", folder, folder);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    struct program program;
    run(&program, work, folder);
    snprintf(expected, sizeof expected, "\nminimal: no video in %s or its subfolders; it has 1 other file: 1 .txt\n",
             folder);
    assert_string_equal(program.out, "");
    assert_int_equal(program.status, 1);
    if (!strstr(program.err, expected))
        fail_msg("%s is not in: %s", expected, program.err);
    program_free(&program);
    free(folder);
    remove_folder(work);
}

/* Tests run in the repository's folder. */
TEST_CASE(the_readme_shows_minimal_as_it_is)
{
    char *readme = read_file("README.md"), *minimal = read_file("examples/minimal.c");
    char *snippet = strstr(readme, "```c\n");
    assert_non_null(snippet);
    snippet += strlen("```c\n");
    char *end = strstr(snippet, "```\n");
    assert_non_null(end);
    *end = '\0';
    assert_string_equal(snippet, minimal);

    int num_lines = 0;
    for (const char *at = minimal; (at = strchr(at, '\n')); at++)
        num_lines++;
    assert_in_range(num_lines, 1, 59);
    free(readme);
    free(minimal);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
