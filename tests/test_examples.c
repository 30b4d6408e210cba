/* The small examples: what they print. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "test_case.h"

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
