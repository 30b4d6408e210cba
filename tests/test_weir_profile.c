/* weir profile, as a program. What it measures is in test_profile.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include "tests/clips.h"
#include "tests/program.h"

enum { MAX_ARGUMENTS = 32 };

static const char *make_folder_of_three(void)
{
    static const char *folder;
    if (folder)
        return folder;
    folder = clips_path("three");
    clips_make_folder(folder);
    static const char arguments[] = "-f lavfi -i testsrc2=s=64x48:d=0.2:r=10 -c:v mpeg4";
    assert_non_null(clips_make("three/a.mp4", arguments));
    assert_non_null(clips_make("three/b.mp4", arguments));
    clips_write_text(clips_path("three/c.mp4"), "this is no video");
    return folder;
}

/* Runs `weir profile ARGUMENTS`; a word that begins with "three" is a path in the folder of the clips. */
static void profile(struct program *program, const char *arguments)
{
    char words[1024];
    char *argv[MAX_ARGUMENTS] = { (char *)program_path("WEIR_TOOL"), "profile" };
    int num_words = 2;
    make_folder_of_three();
    snprintf(words, sizeof words, "%s", arguments);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        assert_true(num_words < MAX_ARGUMENTS - 1);
        argv[num_words++] = strncmp(word, "three", 5) == 0 ? (char *)clips_path(word) : word;
    }
    program_run(program, clips_path("."), argv);
}

static void assert_has(const char *text, const char *expected)
{
    if (!strstr(text, expected))
        fail_msg("no \"%s\" in:\n%s", expected, text);
}

/* The value of a key in the object of a stage with so many slots. */
static double number_of(const char *json, const char *stage, int slots, const char *key)
{
    char wanted[64], name[64];
    snprintf(wanted, sizeof wanted, "\"slots\": %d,", slots);
    snprintf(name, sizeof name, "\"stage\": \"%s\",", stage);
    for (const char *object = strstr(json, name); object; object = strstr(object + 1, name)) {
        const char *end = strchr(object, '}');
        const char *found = strstr(object, wanted);
        if (!found || !end || found > end)
            continue;
        snprintf(name, sizeof name, "\"%s\": ", key);
        found = strstr(object, name);
        assert_true(found && found < end);
        return strtod(found + strlen(name), NULL);
    }
    fail_msg("no %s with %d slots in:\n%s", stage, slots, json);
    return 0;
}

/* In the program, and in child processes, whose config is copied in another way. */
TEST_CASE(each_number_of_slots_decodes_the_same_files_and_counts_what_fails)
{
    static const char *const ways[] = { "three --slots 1,3 --concurrency 3 --items 3 --json",
                                        "three --slots 1,3 --concurrency 3 --items 3 --json " ISOLATE };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct program program = { 0 };
        profile(&program, ways[i]);
        if (program.status != 0)
            fail_msg("%s: %d: %s", ways[i], program.status, program.err);
        for (int slots = 1; slots <= 3; slots += 2) {
            assert_true(number_of(program.out, "decode", slots, "num_inputs") == 3);
            assert_true(number_of(program.out, "decode", slots, "num_tasks") == 3);
            assert_true(number_of(program.out, "decode", slots, "num_failures") == 1);
            assert_true(number_of(program.out, "decode", slots, "num_results") == 2);
            assert_true(number_of(program.out, "decode", slots, "items_per_s") > 0);
        }
        assert_true(number_of(program.out, "src", 1, "num_results") == 3);
        bool is_decode = number_of(program.out, "decode", 3, "source_items_per_s") <
                         number_of(program.out, "src", 1, "source_items_per_s");
        assert_has(program.out, is_decode ? "{\"slowest\": \"decode\", " : "{\"slowest\": \"src\", ");
        program_free(&program);
    }
}

TEST_CASE(people_get_a_table_and_a_sentence)
{
    struct program program = { 0 };
    profile(&program, "three three/a.mp4 --run 1ms"); /* a folder and a file: two sources, and a merge */
    assert_int_equal(program.status, 0);
    assert_has(program.out, "items/s alone");
    assert_has(program.out, "\nThe slowest is ");
    assert_has(program.out, "as it is set: alone it handles ");
    program_free(&program);
    profile(&program, "three --run 1ms --slots 2 --csv");
    assert_int_equal(program.status, 0);
    assert_has(program.out, "stage,op,kind,slots,");
    assert_has(program.out, "\ndecode,decode,stage,2,");
    program_free(&program);
}

TEST_CASE(a_folder_of_which_all_files_fail_has_no_rate_and_the_exit_status_1)
{
    struct program program = { 0 };
    make_folder_of_three();
    profile(&program, "three/c.mp4 three/c.mp4 --run 1ms");
    assert_int_equal(program.status, 1);
    assert_null(strstr(program.out, "The slowest"));
    assert_has(program.err, "decode: 2 of 2");
    assert_has(program.err, " tasks failed; the first: ");
    assert_has(program.err, "c.mp4: ");
    program_free(&program);
}

/* The limit is looked at 50 times a second, and so many measurements take longer. */
TEST_CASE(after_its_time_limit_it_ends_without_a_sentence)
{
    struct program program = { 0 };
    profile(&program,
            "three --items 3 --time-limit 1ms --slots 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
            "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
    assert_int_equal(program.status, 1);
    assert_has(program.err, "takes longer than its limit of 0.001 s");
    assert_null(strstr(program.out, "The slowest"));
    program_free(&program);
}

TEST_CASE(mistakes_are_told_in_one_line)
{
    static const struct {
        const char *arguments, *said;
    } mistakes[] = {
        { "", "weir profile: a folder, a file, a URL or --list FILE is missing" },
        { "missing", "weir profile: missing: No such file or directory" },
        { "three --slots 1,0", "--slots: \"1,0\" is not a list of numbers from 1 to 65536" },
        { "three --slots 1,,2", "--slots: \"1,,2\" is not a list" },
        { "three --db-path run.db", "--db-path" }, /* an option of weir record that says nothing of a stage */
        { "three --threads 2", "--threads" },
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct program program = { 0 };
        profile(&program, mistakes[i].arguments);
        assert_int_equal(program.status, 2);
        assert_has(program.err, mistakes[i].said);
        program_free(&program);
    }
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
