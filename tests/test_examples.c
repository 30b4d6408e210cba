/* The small examples: what they print. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/program.h"
#include "tests/test_case.h"

TEST_CASE(the_event_loop_gets_everything_and_is_not_held_up)
{
    char *work = make_folder();
    char *argv[] = { (char *)(uintptr_t)program_path("EVENT_LOOP"), "50", NULL };
    struct program program;
    program_run(&program, work, argv);
    assert_int_equal(program.status, 0);
    assert_string_equal(program.out, "sum: 2450\n");
    assert_null(strstr(program.err, "came 0 times"));
    program_free(&program);
    remove_folder(work);
}

/* ---- what the environment asks for ---------------------------------------------------------------------------------- */

/* Runs a program that links nothing but the engine, with these variables. */
static void run_with(const char *work, const char *database, const char *trace, struct program *program)
{
    char *argv[] = { (char *)(uintptr_t)program_path("EVENT_LOOP"), "50", NULL };
    setenv("WEIR_RECORD", database, 1);
    setenv("WEIR_TRACE", trace, 1);
    program_run(program, work, argv);
    unsetenv("WEIR_RECORD");
    unsetenv("WEIR_TRACE");
    assert_int_equal(program->status, 0);
    assert_string_equal(program->out, "sum: 2450\n");
}

static void assert_answers(const char *work, const char *command, const char *subject, const char *option,
                           const char *expected)
{
    char *argv[] = { (char *)(uintptr_t)program_path("WEIR_TOOL"), (char *)(uintptr_t)command,
                     (char *)(uintptr_t)subject, (char *)(uintptr_t)option, NULL };
    struct program program;
    program_run(&program, work, argv);
    if (program.status != 0 || !strstr(program.out, expected))
        fail_msg("%s %s is not in:\n%s%s", command, expected, program.out, program.err);
    program_free(&program);
}

TEST_CASE(the_environment_makes_any_program_record_and_trace)
{
    char *work = make_folder(), *database = path_in(work, "new/runs.db"), *trace = path_in(work, "t-{rank}.json");
    char *first = path_in(work, "t-0.json"), *second = path_in(work, "t-0.2.json");
    for (int i = 0; i < 2; i++) {
        struct program program;
        run_with(work, database, trace, &program);
        assert_null(strstr(program.err, "warning"));
        program_free(&program);
    }
    assert_answers(work, "query", database, "--list=runs", "\n  2  ");
    assert_answers(work, "summary", database, "--full", "Total items processed: 50");
    assert_answers(work, "trace", first, "--json", "\"complete\": true");
    assert_answers(work, "trace", second, "--json", "\"complete\": true");
    free(first);
    free(second);
    free(database);
    free(trace);
    remove_folder(work);
}

/* Runs the program until a sample of its stage is there: a run may get little CPU time. */
TEST_CASE(the_environment_makes_any_program_record_its_functions)
{
    enum { MOST_RUNS = 100 };
    bool is_there = false;
    char *work = make_folder(), *database = path_in(work, "runs.db"), *trace = path_in(work, "t.json");
    setenv("WEIR_STACKS", "1", 1);
    for (int i = 1; i <= MOST_RUNS && !is_there; i++) {
        struct program program;
        run_with(work, database, trace, &program);
        assert_null(strstr(program.err, "warning"));
        program_free(&program);
        char *argv[] = { (char *)(uintptr_t)program_path("WEIR_TOOL"),
                         "query",
                         database,
                         "--by",
                         "function",
                         "--run",
                         "all",
                         "--csv",
                         NULL };
        program_run(&program, work, argv);
        is_there = strstr(program.out, "\nwork,");
        program_free(&program);
    }
    unsetenv("WEIR_STACKS");
    assert_true(is_there);
    free(trace);
    free(database);
    remove_folder(work);
}

TEST_CASE(what_cannot_be_recorded_is_told_and_the_program_goes_on)
{
    char *work = make_folder(), *letter = path_in(work, "letter.txt"), *nowhere = path_in(work, "letter.txt/t.json");
    struct program program;
    write_file(letter, "dear reader\n");
    run_with(work, letter, nowhere, &program);
    assert_non_null(strstr(program.err, "WEIR_RECORD: "));
    assert_non_null(strstr(program.err, "letter.txt"));
    assert_non_null(strstr(program.err, "WEIR_TRACE: cannot write trace "));
    program_free(&program);
    char *text = read_file(letter);
    assert_string_equal(text, "dear reader\n");
    free(text);
    free(letter);
    free(nowhere);
    remove_folder(work);
}

TEST_CASE(the_pipeline_in_cpp_keeps_the_order_and_counts_failures)
{
    if (!getenv("PIPELINE")) /* no C++ compiler */
        skip();
    char *work = make_folder();
    char *argv[] = { (char *)(uintptr_t)program_path("PIPELINE"), NULL };
    struct program program;
    program_run(&program, work, argv);
    assert_int_equal(program.status, 0);
    static const char first[] = "number 2: 2\nnumber 3: 3\nnumber 4: 2\n", last[] = "number 999: 37\n2 failed\n";
    assert_memory_equal(program.out, first, sizeof first - 1);
    assert_string_equal(program.out + strlen(program.out) - sizeof last + 1, last);
    assert_non_null(strstr(program.err, "number 1: 1 has no prime factor (WEIR_EEXCEPTION)"));
    program_free(&program);
    remove_folder(work);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
