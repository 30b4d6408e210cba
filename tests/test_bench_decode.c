/* Runs weir-bench decode and peers on a tiny folder: clips, one with sound, and no video. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench_run.h"
#include "tests/test_case.h"

static char *clips; /* the folder */

static void make_clip(const char *name, const char *arguments)
{
    char command[1024];
    snprintf(command, sizeof command, "ffmpeg -nostdin -loglevel error -y %s '%s/%s'", arguments, clips, name);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
}

static int make_folders(void **state)
{
    bench_set_up(state);
    clips = path_in(bench_folder(), "clips");
    assert_int_equal(mkdir(clips, 0700), 0);
    make_clip("small.mp4", "-f lavfi -i testsrc2=s=160x120:r=25 -f lavfi -i sine=r=8000 -frames:v 8 -shortest "
                           "-c:v mpeg4 -g 4 -bf 0 -pix_fmt yuv420p -c:a aac");
    make_clip("large.mp4", "-f lavfi -i testsrc2=s=640x480:r=25 -frames:v 8 -c:v mpeg4 -g 4 -bf 0 -pix_fmt yuv420p");
    char *broken = path_in(clips, "broken.mp4");
    write_file(broken, "no video at all");
    free(broken);
    return 0;
}

static int remove_folders(void **state)
{
    free(clips);
    return bench_tear_down(state);
}

static char *decode(struct program *program, const char *options)
{
    char line[1024];
    snprintf(line, sizeof line, "%s --dataset-dir %s --runs 1 --width 64 --height 48", options, clips);
    return bench_run_for_json(program, line);
}

/* Each way draws from each file; what is not a video is left out, with a message. */
TEST_CASE(draws_measures_each_way_for_each_file)
{
    struct program program;
    char line[1024];
    snprintf(line, sizeof line, "draws --runs 1 --draws 2 --glob [sl]*.mp4 --dataset-dir %s", clips);
    char *json = bench_run_for_json(&program, line);
    bench_assert_report(json, "draws");
    int num_rows = bench_count_rows(json, "1");
    assert_true(num_rows >= 4 && num_rows % 4 == 0);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.cpu_s_per_draw') > 0"), num_rows);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.what') = 'kept open'"), num_rows / 4);
    free(json);
    program_free(&program);
}

TEST_CASE(decode_finds_the_same_pictures_as_the_bare_loop)
{
    struct program program;
    char *json = decode(&program, "decode --concurrency 2 --verify");
    bench_assert_report(json, "decode");
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.group') = 'versus_bare' AND "
                                            "json_extract(row, '$.files') = 3 AND "
                                            "json_extract(row, '$.clips_per_cpu_s') > 0"),
                     2);
    free(json);
    program_free(&program);
}

/* Replaces Python: one peer is available and reports its results; the others cannot be imported. */
TEST_CASE(peers_that_are_there_are_measured_and_the_others_named)
{
    struct program program;
    char *python = path_in(bench_folder(), "python"), line[512];
    write_file(python, "#!/bin/sh\n"
                       "if [ \"$1\" = -c ]; then [ \"$2\" = 'import av' ]; exit; fi\n"
                       "[ \"$1 $2\" = 'the-script pyav' ] && [ -s \"$7\" ] && echo 2 32 1 0.5 0.25 1000000\n");
    assert_int_equal(chmod(python, 0700), 0);
    snprintf(line, sizeof line, "peers --concurrency 1 --python %s --script the-script", python);
    char *json = decode(&program, line);
    bench_assert_report(json, "peers");
    assert_non_null(strstr(program.out, "spdl is left out: "));
    assert_non_null(strstr(program.out, "torchcodec is left out: "));
    assert_non_null(strstr(program.out, "weir over the best of the others, pyav: "));
    assert_non_null(strstr(program.out, "not the same work: pyav decoded 32 frames, weir 16\n"));
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.what') = 'pyav' AND json_extract(row, '$.job') = "
                                            "'all' AND json_extract(row, '$.frames_share') = 2"),
                     1);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.what') = 'pyav' AND "
                                            "json_extract(row, '$.clips_per_cpu_s') = 8 AND "
                                            "json_extract(row, '$.clips_per_s') = 4 AND "
                                            "json_extract(row, '$.weir_over_this_per_cpu_s') > 0"),
                     4); /* jobs */
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.what') = 'weir' AND "
                                            "json_extract(row, '$.class') IS NULL AND json_extract(row, '$.job') = "
                                            "'uniform16' AND json_extract(row, '$.frames') = 32"),
                     1);
    free(json);
    free(python);
    program_free(&program);
}

/* The script is found from any folder, and a peer that fails says why. */
TEST_CASE(the_script_of_the_peers_is_found_from_any_folder)
{
    struct program program;
    char *python = path_in(bench_folder(), "python"), *before = getcwd(NULL, 0), line[512];
    write_file(python, "#!/bin/sh\n"
                       "if [ \"$1\" = -c ]; then [ \"$2\" = 'import av' ]; exit; fi\n"
                       "[ -r \"$1\" ] && [ $3 = all ] && echo 2 32 1 0.5 0.25 1000000 && exit\n"
                       "echo \"the reason for $3\" >&2 && exit 1\n");
    assert_int_equal(chmod(python, 0700), 0);
    snprintf(line, sizeof line, "peers --concurrency 1 --python %s --dataset-dir %s --runs 1", python, clips);
    assert_int_equal(chdir(bench_folder()), 0);
    bench_run(&program, line);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(program.status, 1);
    assert_non_null(strstr(program.out, "weir over the best of the others, pyav: "));
    assert_non_null(strstr(program.err, "the reason for first16"));
    assert_non_null(strstr(program.err, "first16: pyav failed"));
    program_free(&program);
    free(before);
    free(python);
}

TEST_CASE(wrong_options_and_folders_are_told_before_any_work)
{
    static const char *const wrong[][2] = {
        { "decode", "--dataset-dir DIR is missing" },
        { "peers", "--dataset-dir DIR is missing" },
        { "decode --dataset-dir /nowhere/at/all", "/nowhere/at/all" },
        { "decode --dataset-dir tests --glob *.none-such", "no file in tests or its subfolders matches *.none-such" },
        { "decode --dataset-dir . --scaler fast --verify", "--verify compares the pixels of --scaler exact only" },
        { "decode --dataset-dir . --runs 1001", "--runs: \"1001\" is not a whole number from 1 to 1000" },
        { "decode --dataset-dir . --width 40000", "--width: \"40000\" is not a whole number from 1 to 32767" },
        { "decode --dataset-dir . --verify=yes", "--verify=yes: takes no value" },
        { "decode --dataset-dir . --scaler quick", "--scaler: \"quick\" is not default, exact or fast" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct program program;
        bench_run(&program, wrong[i][0]);
        assert_int_equal(program.status, 2);
        assert_string_equal(program.out, "");
        if (!strstr(program.err, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], program.err);
        program_free(&program);
    }
}

TEST_MAIN(NULL, NULL, make_folders, remove_folders)
