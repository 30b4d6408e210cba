/* weir plot and weir watch, as a user runs them. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/program.h"
#include "tests/test_case.h"

static char *work, *database;

/* Runs the program with up to four arguments. */
static void run(struct program *program, const char *variable, const char *a, const char *b, const char *c,
                const char *d)
{
    const char *argv[] = { program_path(variable), a, b, c, d, NULL };
    program_run(program, work, (char *const *)(uintptr_t)argv);
}

static void weir(struct program *program, const char *a, const char *b, const char *c, const char *d)
{
    run(program, "WEIR_TOOL", a, b, c, d);
}

static int record_a_run(void **state)
{
    (void)state;
    work = make_folder();
    database = path_in(work, "simulated.db");
    char option[4200];
    snprintf(option, sizeof option, "--db-path=%s", database);
    struct program program;
    run(&program, "SIMULATE", "--pattern=sink", "--seconds=0.5", option, NULL);
    assert_int_equal(program.status, 0);
    program_free(&program);
    return 0;
}

static int remove_the_run(void **state)
{
    (void)state;
    free(database);
    remove_folder(work);
    return 0;
}

static void expect_begins(const char *path, const char *beginning)
{
    char *text = read_file(path);
    assert_memory_equal(text, beginning, strlen(beginning));
    free(text);
}

static void expect_parts(const char *file, const char *const parts[])
{
    char *text = read_file(file);
    for (; *parts; parts++)
        if (!strstr(text, *parts))
            fail_msg("no %s in %s", *parts, file);
    free(text);
}

TEST_CASE(plot_draws_the_answer_and_with_all_the_panels)
{
    static const char *const answer[] = { "Items per second", ">Limit<",           "Time of the slots",
                                          "for room",         "this process",      "Level of the queues",
                                          "busy otherwise",   ">consumer</text>",  "0:2:sink_queue",
                                          "0:1:decode[4]<",   "<title>consumer: ", NULL };
    static const char *const panels[] = { "Items per second", "mean run time", "p99", ">Thread pools</text>", NULL };
    char *file = path_in(work, "both.svg");
    struct program program;
    weir(&program, "plot", database, "-o", file);
    assert_int_equal(program.status, 0);
    program_free(&program);
    expect_begins(file, "<?xml");
    expect_parts(file, answer);
    char *text = read_file(file);
    assert_null(strstr(text, ">0:2:sink<")); /* it has no tasks: all its curves would be 0 */
    assert_null(strstr(text, "mean run time"));
    free(text);
    free(file);
    file = path_in(work, "all.svg");
    char option[4200];
    snprintf(option, sizeof option, "-o%s", file);
    weir(&program, "plot", database, "--all", option);
    assert_int_equal(program.status, 0);
    program_free(&program);
    expect_parts(file, panels);
    free(file);
}

TEST_CASE(report_draws_an_arrow_only_from_the_node_that_items_come_from)
{
    char *file = path_in(work, "page.html"), *branches = path_in(work, "branches.db"), option[4200];
    struct program program;
    snprintf(option, sizeof option, "--db-path=%s", branches);
    run(&program, "SIMULATE", "--pattern=branch", "--seconds=0.2", option, NULL);
    program_free(&program);
    weir(&program, "report", branches, "-o", file);
    assert_int_equal(program.status, 0);
    char *text = read_file(file);
    size_t num_arrows = 0;
    for (const char *next = text; (next = strstr(next, "<div class=\"next\">")); next++)
        num_arrows++;
    assert_int_equal(num_arrows, 4); /* to the route, its first branch, the join and the sink */
    assert_non_null(strstr(text, "takes from 0:1:route.1_queue"));
    assert_null(strstr(text, "takes from 0:0:src_queue"));
    free(text);
    program_free(&program);
    free(branches);
    free(file);
}

TEST_CASE(plot_writes_to_stdout)
{
    struct program program;
    weir(&program, "plot", database, "-o", "-");
    assert_int_equal(program.status, 0);
    assert_int_equal(strncmp(program.out, "<?xml", 5), 0);
    program_free(&program);
    assert_int_not_equal(access("-", F_OK), 0);
}

TEST_CASE(plot_says_what_is_wrong)
{
    struct program program;
    weir(&program, "plot", database, "-o", "/proc/nothing/x.jpg");
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "x.jpg: pictures are .svg or .html"));
    program_free(&program);
    weir(&program, "plot", database, "-o", "x.xyz");
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "x.xyz: pictures are .svg or .html"));
    assert_int_not_equal(access("x.xyz", F_OK), 0);
    program_free(&program);
    weir(&program, "plot", database, "-o", "x.png");
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "x.png: pictures are .svg or .html; write a .svg, and make another format of "
                                        "it with a browser or with rsvg-convert"));
    program_free(&program);
    weir(&program, "plot", database, "-o", "/proc/nothing/x.svg");
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "cannot write /proc/nothing/x.svg"));
    program_free(&program);
    weir(&program, "plot", database, "--name=nobody", NULL);
    assert_int_equal(program.status, 3);
    assert_non_null(strstr(program.err, "no laps match the filters"));
    program_free(&program);
}

TEST_CASE(watch_prints_one_frame)
{
    struct program program;
    weir(&program, "watch", database, "--once", NULL);
    assert_string_equal(program.err, "");
    assert_int_equal(program.status, 0);
    assert_non_null(strstr(program.out, "simulated.db, run 1\n"));
    assert_non_null(strstr(program.out, "\n0:1:decode[4] "));
    assert_non_null(strstr(program.out, "\n0:2:sink_queue "));
    assert_non_null(strstr(program.out, " decoded in "));
    assert_null(memmem(program.out, strcspn(program.out, "\n"), "failed", 6));
    program_free(&program);
}

TEST_CASE(watch_needs_a_terminal_and_a_database)
{
    struct program program;
    weir(&program, "watch", database, NULL, NULL);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "--once"));
    program_free(&program);
    weir(&program, "watch", "/proc/nothing.db", "--once", NULL);
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "/proc/nothing.db"));
    program_free(&program);
}

TEST_MAIN(NULL, NULL, record_a_run, remove_the_run)
