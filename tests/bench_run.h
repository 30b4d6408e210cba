/*
 * Running weir-bench from a test and looking into what it writes for programs to read. No time is asserted: tests see to
 * it that the benches run, and that their tables hold what they are to hold.
 */
#ifndef TESTS_BENCH_RUN_H
#define TESTS_BENCH_RUN_H

#include "program.h"

/* cmocka's group set-up and teardown: the test program's folder. */
int bench_set_up(void **state);
int bench_tear_down(void **state);
const char *bench_folder(void);

/* Runs weir-bench with the words of this line. */
void bench_run(struct program *program, const char *line);

/* The same with --json, for benches that are to succeed without a word on stderr: what they wrote, to be freed. */
char *bench_run_for_json(struct program *program, const char *line);

/* The number that a query answers; ?1 in it is the JSON text. */
double bench_ask(const char *json, const char *sql);

/* How many rows there are of which this condition holds; `row` is the row's JSON. */
int bench_count_rows(const char *json, const char *condition);

/* It is a report, and all its rows are of this bench. */
void bench_assert_report(const char *json, const char *bench);

#endif
