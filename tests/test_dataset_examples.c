/* The examples without a separate test: each does what its comment says. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/clips.h"
#include "tests/program.h"
#include "tests/test_case.h"

static int set_up(void **state)
{
    clips_set_up(state);
    clips_make_folder(clips_path("clips"));
    clips_make("clips/a.mp4",
               "-f lavfi -i color=white:s=64x48:d=1:r=10 -f lavfi -i sine=r=8000:d=1 -c:v mpeg4 -c:a aac");
    clips_make("clips/b.mp4", "-f lavfi -i color=black:s=64x48:d=2:r=10 -c:v mpeg4");
    clips_make("clips/c.png", "-f lavfi -i color=white:s=32x32 -frames:v 1");
    return 0;
}

/* Runs the program named by the environment variable with the folder of clips and two more arguments (may be
   NULL). */
static void run(struct program *program, const char *variable, const char *folder, const char *second,
                const char *third)
{
    char *argv[] = { (char *)(uintptr_t)program_path(variable), (char *)(uintptr_t)folder, (char *)(uintptr_t)second,
                     (char *)(uintptr_t)third, NULL };
    program_run(program, clips_path("."), argv);
}

static void expect_success(const char *variable, const char *folder, const char *second, const char *third,
                           const char *const expected[])
{
    struct program program;
    run(&program, variable, folder, second, third);
    if (program.status != 0)
        fail_msg("%s: %d: %s", variable, program.status, program.err);
    for (size_t i = 0; expected[i]; i++)
        if (!strstr(program.out, expected[i]))
            fail_msg("%s: no \"%s\" in: %s", variable, expected[i], program.out);
    program_free(&program);
}

#define TEXTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void expect_refusal(const char *variable)
{
    struct program program;
    run(&program, variable, clips_path("nowhere"), NULL, NULL);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "nowhere"));
    program_free(&program);
}

TEST_CASE(frames_prints_time_and_brightness_without_a_pipeline)
{
    struct program program;
    expect_success("FRAMES", clips_path("clips/b.mp4"), "2", NULL,
                   TEXTS("   0.500 s: mean 0.0\n", "   1.500 s: mean 0.0\n"));
    run(&program, "FRAMES", clips_path("nowhere"), NULL, NULL);
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.err, "nowhere"));
    program_free(&program);
}

TEST_CASE(frames_says_how_it_is_called)
{
    static const char *const wrong[][3] = {
        { NULL },          { "a.mp4", "" },      { "a.mp4", "0" },     { "a.mp4", "-3" },
        { "a.mp4", "3x" }, { "a.mp4", "10001" }, { "a.mp4", "3", "4" }
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct program program;
        char *folder = make_folder();
        char *argv[] = { (char *)(uintptr_t)program_path("FRAMES"), (char *)(uintptr_t)wrong[i][0],
                         (char *)(uintptr_t)wrong[i][1], (char *)(uintptr_t)wrong[i][2], NULL };
        program_run(&program, folder, argv);
        assert_int_equal(program.status, 2);
        assert_non_null(strstr(program.err, "usage: frames VIDEO [COUNT]"));
        program_free(&program);
        remove_folder(folder);
    }
}

TEST_CASE(images_prints_the_brightness_of_each)
{
    expect_success("IMAGES", clips_path("clips"), NULL, NULL, TEXTS("c.png: png of 32x32, mean 255.0\n"));
    expect_refusal("IMAGES");
}

TEST_CASE(audio_prints_length_and_loudness)
{
    expect_success("AUDIO", clips_path("clips"), "a.mp4", NULL,
                   TEXTS("a.mp4: ", " samples at 16000 Hz (aac at 8000 Hz)"));
    expect_refusal("AUDIO");
}

TEST_CASE(tar_reads_samples_with_their_class)
{
    char command[8192];
    clips_make_folder(clips_path("shards"));
    clips_write_text(clips_path("clips/a.cls"), "seven\n");
    snprintf(command, sizeof command, "tar -cf '%s' -C '%s' a.cls a.mp4 b.mp4", clips_path("shards/one.tar"),
             clips_path("clips"));
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    struct program program;
    run(&program, "TAR", clips_path("shards"), NULL, NULL);
    if (program.status == 2 && strstr(program.err, "libarchive")) {
        print_message("skipped: %s", program.err);
        skip();
    }
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.out, "one.tar!a.mp4: 8 frames, class \"seven\"\n"));
    assert_non_null(strstr(program.out, "one.tar!b.mp4: 8 frames, class \"\"\n"));
    program_free(&program);
}

TEST_CASE(urls_decodes_each_and_fails_if_one_does)
{
    char good[4200], bad[4200];
    snprintf(good, sizeof good, "file://%s", clips_path("clips/b.mp4"));
    snprintf(bad, sizeof bad, "file://%s", clips_path("clips/none.mp4"));
    expect_success("URLS", good, NULL, NULL, TEXTS("b.mp4: 16 frames of mpeg4\n"));
    struct program program;
    run(&program, "URLS", good, bad, NULL);
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.out, "b.mp4: 16 frames"));
    program_free(&program);
}

TEST_CASE(observer_is_told_of_laps_failures_and_the_end)
{
    clips_make_folder(clips_path("broken"));
    clips_write_text(clips_path("broken/x.mp4"), "no video");
    expect_success("OBSERVER", clips_path("clips"), NULL, NULL,
                   TEXTS("0:1:decode[4]: ", " tasks in ", "done after 2 tasks\n"));
    expect_success("OBSERVER", clips_path("broken"), NULL, NULL, TEXTS("failed: ", "x.mp4: "));
    expect_refusal("OBSERVER");
}

TEST_CASE(slowest_stage_prints_the_pipeline_and_measures_each_stage)
{
    expect_success("SLOWEST_STAGE", clips_path("clips"), NULL, NULL,
                   TEXTS("src: source directory, queue of 2 items, 1 thread of its own\n",
                         "decode: decode, 4 slots, queue of 2 items\nsink: queue of 3 items\n", "decode     1 slots",
                         "decode     4 slots", " is the slowest: give it other slots, or make it cheaper.\n"));
}

TEST_CASE(processes_share_the_files_and_end_in_one_database)
{
    const char *db_path = clips_path("processes.db");
    expect_success("PROCESSES", clips_path("clips"), "3", db_path,
                   TEXTS("rank 0: 1 files\n", "rank 1: 1 files\n", "rank 2: 0 files\n"));
    char command[8192];
    snprintf(command, sizeof command, "'%s' query '%s' --list runs --json", program_path("WEIR_TOOL"), db_path);
    char *argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", command, NULL };
    struct program program;
    program_run(&program, clips_path("."), argv);
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.out, "\"rank\": 2"));
    program_free(&program);
}

TEST_CASE(brightness_measures_and_leaves_out_the_dark)
{
    expect_success("BRIGHTNESS", clips_path("clips"), NULL, NULL,
                   TEXTS("a.mp4: 10 frames, mean 25", "b.mp4: 20 frames, mean 0.0\n"));
    struct program program;
    run(&program, "BRIGHTNESS", clips_path("clips"), "100", NULL);
    assert_int_equal(program.status, 0);
    assert_null(strstr(program.out, "b.mp4"));
    program_free(&program);
    run(&program, "BRIGHTNESS", clips_path("clips"), "300", NULL);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "the minimum brightness is 300"));
    program_free(&program);
}

TEST_MAIN(NULL, NULL, set_up, clips_tear_down)
