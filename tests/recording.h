/*
 * Records made-up laps, each fully specified by the test, so that it knows the expected result of a query. Times are
 * in seconds; `at` is the end of the lap.
 */
#ifndef TESTS_RECORDING_H
#define TESTS_RECORDING_H

#include "tests/stats_fixture.h"

#include <stdbool.h>

#include <weir/clock.h>
#include <weir/query.h>

typedef struct invented_lap {
    double at;
    double elapsed;    /* 0 = 10 */
    const char *phase; /* NULL = "" */
    bool has_steps;    /* only first_step to last_step */
    int64_t first_step, last_step;
    uint64_t num_tasks; /* tasks of the stage, and items of the queues; all but num_failures succeed */
    uint64_t num_failures;
    const double *times; /* run times of the successes; NULL = 0.1 each */
    const char *mode;    /* NULL = "" */
} invented_lap;

/* Opens a writer for a run on that node and rank, which starts at `started`. */
weir_sqlite_writer *recording_begin(const char *path, const char *node_id, int32_t rank, double started);

/* A lap of 0:1:decode[10] and the three queues around it. */
void record_lap(weir_sqlite_writer *writer, const invented_lap *lap);
void record_failure(weir_sqlite_writer *writer, double at, const char *label, double elapsed);
void record_event(weir_sqlite_writer *writer, double at, const char *name);

/* Ends the run successfully and closes the writer. Returns the number of the run. */
int64_t recording_end(weir_sqlite_writer *writer, double ended);

/* The value of a measure by name; NAN = not known. */
double lap_value(const weir_lap_record *lap, const char *measure);
double total_value(const weir_total *total, const char *measure);

/* Converts seconds to nanoseconds. */
#define NS(seconds) ((int64_t)((seconds)*1e9 + 0.5))

#endif
