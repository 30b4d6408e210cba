/* weir frames, as a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/clips.h"
#include "tests/program.h"

enum { MAX_ARGUMENTS = 16, NPY_HEADER_BYTES = 192 };

static const char clip_arguments[] = "-f lavfi -i testsrc2=s=160x120:d=1:r=10 -c:v mpeg4 -bf 2";

/* Runs `weir frames` with the words of `arguments`; %s in it is the path. */
static void frames(struct program *program, const char *path, const char *arguments)
{
    char words[1024];
    char *argv[MAX_ARGUMENTS] = { (char *)program_path("WEIR_TOOL"), "frames", (char *)path };
    int num_words = 3;
    snprintf(words, sizeof words, "%s", arguments);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        assert_true(num_words < MAX_ARGUMENTS - 1);
        argv[num_words++] = word;
    }
    program_run(program, clips_path("."), argv);
}

static void assert_says(const char *text, const char *expected)
{
    if (!strstr(text, expected))
        fail_msg("no \"%s\" in:\n%s", expected, text);
}

static void the_array_holds_ffmpegs_bytes(void **state)
{
    (void)state;
    struct program program;
    size_t expected_bytes;
    char arguments[1024];
    const char *clip = clips_make("a.mp4", clip_arguments);
    const char *npy = clips_path("a.npy");
    snprintf(arguments, sizeof arguments, "--width 64 --height 48 --resize stretch --scaler exact -o %s", npy);
    frames(&program, clip, arguments);
    if (program.status != 0)
        fail_msg("%s", program.err);
    assert_string_equal(program.out, "");
    program_free(&program);

    uint8_t *expected = clips_decode(clip, "scale=64:48:flags=bicubic,format=rgb24", &expected_bytes);
    FILE *file = fopen(npy, "rb");
    assert_non_null(file);
    uint8_t *got = malloc(NPY_HEADER_BYTES + expected_bytes + 1);
    assert_non_null(got);
    assert_int_equal(fread(got, 1, NPY_HEADER_BYTES + expected_bytes + 1, file), NPY_HEADER_BYTES + expected_bytes);
    fclose(file);
    assert_memory_equal(got + NPY_HEADER_BYTES, expected, expected_bytes);
    got[NPY_HEADER_BYTES - 1] = '\0';
    assert_says((char *)got + 10, "(10, 48, 64, 3, )");
    free(got);
    free(expected);
}

static void info_tells_what_the_file_is(void **state)
{
    (void)state;
    struct program program;
    const char *clip = clips_make("a.mp4", clip_arguments);
    frames(&program, clip, "--width 80 --pix-fmt gray8 --layout nchw");
    assert_int_equal(program.status, 0);
    assert_says(program.out, "codec      mpeg4");
    assert_says(program.out, "160x120 in the file, 80x120 here");
    assert_says(program.out, "gray8, nchw");
    assert_says(program.out, "frames     10, 96000 bytes");
    assert_says(program.out, "damage     0 packets");
    program_free(&program);

    frames(&program, clip, "--json");
    assert_int_equal(program.status, 0);
    assert_says(program.out, "\"codec\": \"mpeg4\"");
    assert_says(program.out, "{\"frame\": 9, \"pts\": 9216, \"time\": 0.9}");
    assert_says(program.out, "\"num_frames\": 10, \"num_bytes\": 576000, \"num_errors\": 0");
    program_free(&program);

    frames(&program, clip, "--csv");
    assert_int_equal(program.status, 0);
    assert_int_equal(strncmp(program.out, "frame,pts,time", 14), 0);
    program_free(&program);
}

static void assert_refused(const char *path, const char *arguments, const char *said)
{
    struct program program;
    frames(&program, path, arguments);
    if (program.status != 2)
        fail_msg("%s %s: exit status %d", path, arguments, program.status);
    assert_says(program.err, said);
    assert_string_equal(program.out, "");
    program_free(&program);
}

static void mistakes_are_told_in_one_line(void **state)
{
    (void)state;
    const char *clip = clips_make("a.mp4", clip_arguments);
    char text_said[4200];
    const char *text = clips_path("text.mp4");
    const char *npy = clips_path("none.npy");
    char arguments[1024];
    clips_write_text(text, "this is no video");
    snprintf(text_said, sizeof text_said, "weir frames: %s: cannot open", text);
    snprintf(arguments, sizeof arguments, "-o %s", npy);
    assert_refused(text, arguments, text_said);
    assert_int_not_equal(access(npy, F_OK), 0);
    assert_refused(clips_path("missing.mp4"), "", "No such file");
    assert_refused(clip, "--width 0", "--width");
    assert_refused(clip, "--width 40000", "--width");
    assert_refused(clip, "--resize none --width 64", "--resize none");
    assert_refused(clip, "--pix-fmt cmyk", "--pix-fmt");
    assert_refused(clip, "-o /nowhere/at/all.npy", "/nowhere/at/all.npy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_array_holds_ffmpegs_bytes),
        cmocka_unit_test(info_tells_what_the_file_is),
        cmocka_unit_test(mistakes_are_told_in_one_line),
    };
    return cmocka_run_group_tests(tests, clips_set_up, clips_tear_down);
}
