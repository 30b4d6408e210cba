/* The example of asynchronous work, as a user runs it. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/program.h"
#include "tests/test_case.h"

TEST_CASE(every_transfer_is_delivered_by_one_thread)
{
    char *work = make_folder();
    struct program program;
    char *argv[] = { (char *)(uintptr_t)program_path("ASYNC_FETCH"), (char *)(uintptr_t) "600", NULL };
    program_run(&program, work, argv);
    assert_int_equal(program.status, 0);
    assert_string_equal(program.err, "");
    assert_non_null(strstr(program.out, "600 of 600 URLs in "));
    program_free(&program);
    remove_folder(work);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
