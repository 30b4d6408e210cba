/*
 * Runs weir-bench from a test and checks its JSON output. No time is asserted: tests only check that the benches run,
 * and that their tables are complete.
 */
#ifndef TESTS_BENCH_RUN_H
#define TESTS_BENCH_RUN_H

#include "tests/program.h"

/* cmocka's group setup and teardown: the folder of the test program. */
int bench_set_up(void **state);
int bench_tear_down(void **state);
const char *bench_folder(void);

/* Runs weir-bench with the words of this line as arguments. */
void bench_run(struct program *program, const char *line);

/* The same with --json, for benches that must succeed without output on stderr: returns the JSON, which the caller
   frees. */
char *bench_run_for_json(struct program *program, const char *line);

/* The number returned by a query; ?1 in it is the JSON text. */
double bench_ask(const char *json, const char *sql);

/* The number of rows for which the condition holds; `row` is the JSON of the row. */
int bench_count_rows(const char *json, const char *condition);

/* Asserts that it is a report whose rows all belong to this bench. */
void bench_assert_report(const char *json, const char *bench);

#endif
