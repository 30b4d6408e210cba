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
TEST_CASE(the_environment_makes_any_program_write_its_stacks)
{
    enum { MOST_RUNS = 100 };
    char *work = make_folder(), *first = path_in(work, "stacks.txt"), *text = NULL;
    char *argv[] = { (char *)(uintptr_t)program_path("EVENT_LOOP"), "50", NULL };
    for (int i = 1; i <= MOST_RUNS && !(text && strstr(text, ";work")); i++) {
        struct program program;
        char name[32] = "stacks.txt";
        if (i > 1)
            snprintf(name, sizeof name, "stacks.%d.txt", i); /* what is there stays */
        setenv("WEIR_STACKS", first, 1);
        program_run(&program, work, argv);
        unsetenv("WEIR_STACKS");
        assert_int_equal(program.status, 0);
        program_free(&program);
        free(text);
        char *path = path_in(work, name);
        text = read_file(path);
        free(path);
    }
    assert_non_null(strstr(text, ";work"));
    free(text);
    free(first);
    remove_folder(work);
}

TEST_CASE(stacks_are_a_table_of_functions_folded_or_a_flame_graph)
{
    char *work = make_folder(), *stacks = path_in(work, "known.txt"), *picture = path_in(work, "flames.svg");
    write_file(stacks, "# weir stacks: second;thread;functions samples\n"
                       "000000;main;main;take;copy 3\n000001;main;main;take;take 2\n000001;pool;run<int> 5\n"
                       "000002;pool;ru");
    assert_answers(work, "trace", stacks, "--csv", "take,5,0.5,2,0.2");
    assert_answers(work, "trace", stacks, "--csv", "main,5,0.5,0,0");
    assert_answers(work, "trace", stacks, "--folded",
                   "main;main;take;copy 3\nmain;main;take;take 2\npool;run<int> 5\n");
    assert_answers(work, "trace", stacks, "--until=1s", "3 samples");
    assert_answers(work, "trace", stacks, "--since=1s", "7 samples");
    char option[512];
    snprintf(option, sizeof option, "--output=%s", picture);
    assert_answers(work, "trace", stacks, option, "");
    char *drawn = read_file(picture);
    assert_non_null(strstr(drawn, "<title>run&#60;int&#62;: 5 samples, 50.0 %</title><rect x=\"600.0\""));
    free(drawn);
    free(picture);
    free(stacks);
    remove_folder(work);
}

/* The file may be anybody's. Names in a line are read one by one, so a line is as deep as it is long. */
TEST_CASE(stacks_that_make_no_sense_are_passed_over)
{
    enum { DEPTH = 300000 };
    char *work = make_folder(), *stacks = path_in(work, "odd.txt");
    FILE *file = fopen(stacks, "w");
    assert_non_null(file);
    fputs("# weir stacks: second;thread;functions samples\n", file);
    fwrite("\0;a;b 9\n", 1, 8, file);  /* nothing is before its end */
    fwrite("1;a\0;b 9\n", 1, 9, file); /* more is behind its end */
    /* more than can be shown, the largest count, and one that cannot be added to it */
    fputs("1;main;take 9223372036854775808\n1;main;take 9223372036854775807\n1;main;take 1\n", file);
    fputs("99999999999999999999999;main 1\n;\n \n1; 1\n", file);
    fclose(file);
    assert_answers(work, "trace", stacks, "--csv", "take,9223372036854775807,");
    write_file(stacks, "# weir stacks: second;thread;functions samples\n");
    file = fopen(stacks, "a");
    assert_non_null(file);
    fputs("1;main", file);
    for (int i = 0; i < DEPTH; i++)
        fputs(";f", file);
    fputs(" 5\n", file);
    fclose(file);
    assert_answers(work, "trace", stacks, "--csv", "f,5,1,5,1");
    free(stacks);
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
