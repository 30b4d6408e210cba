/* Shared by the tests of stats/: a separate folder, queries of a database, and a made-up pipeline. */
#ifndef TESTS_STATS_FIXTURE_H
#define TESTS_STATS_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sqlite3.h>

#include <weir/observer.h>
#include <weir/query.h>
#include <weir/sqlite.h>
#include <weir/summary.h>

#include "tests/test_case.h"

/* cmocka's setup and teardown: creates an empty folder, and removes it with all its contents. */
int make_folder(void **state);
int remove_folder(void **state);

/* The path of `name` in that folder; valid until the fourth call after this one. */
const char *in_folder(const char *name);

/* Writes a file; reads a whole file, which the caller frees. */
void write_file(const char *path, const void *bytes, size_t size_bytes);
char *read_file(const char *path, size_t *size_bytes);

/* The first column of the first row; an error fails the test. The caller frees the text. */
int64_t query_int(const char *path, const char *sql);
double query_real(const char *path, const char *sql);
char *query_text(const char *path, const char *sql);

/* Runs statements on a separate connection. */
void execute(const char *path, const char *sql);

sqlite3 *connect_to(const char *path);
void run_sql(sqlite3 *db, const char *sql);

/* Opens a writer, or fails the test. */
weir_sqlite_writer *open_writer(const char *path, const weir_sqlite_options *options);

/* Closes the writer, and fails the test unless everything was written. */
void close_writer(weir_sqlite_writer *writer);

/* weir_summary_write() and weir_summary_write_failures() for a run of the database at `path` (0 = the last one). */
int print_summary(FILE *out, const char *path, int64_t run_id, weir_summary_line *line, weir_error *error);
int print_failures(FILE *out, const char *path, int64_t run_id, size_t at_most, weir_error *error);

/* Opens a database for reading, or fails the test. */
weir_recording *open_reader(const char *path);

/*
 * The made-up pipeline: 0:0:src, 0:1:decode[10], 0:2:sink, from Unix second 1000 on. Each lap is 2 s long, with
 * num_tasks tasks, a quarter of them failed; successes took 100 ms each, failures 10 ms.
 */
void observe_start(weir_observer observer);
void observe_lap(weir_observer observer, int lap, uint64_t num_tasks);
void observe_failure(weir_observer observer, uint64_t seq, const char *label, const char *message);
void observe_end(weir_observer observer, int status);

enum { ENTRIES_PER_LAP = 4 }; /* one stage, three queues */

#endif
