/* One screen of `weir watch`: the current state of a run, as lines of text that fit the terminal. */
#ifndef TOOLS_VIEW_WATCH_SCREEN_H
#define TOOLS_VIEW_WATCH_SCREEN_H

#include <stdio.h>

#include <weir/query.h>

#include "table.h"

/* What the user has chosen. All-zero at the start. */
typedef struct watch_view {
    bool has_keys; /* stages are numbered, for the key that opens one */
    int sort;      /* of stages: an index into watch_sorts */
    int opened;    /* the number of the stage that is shown alone, from 1 in the order of the pipeline; 0 = all */
} watch_view;

/* By what stages are sorted; NULL at the end. The first is the order of the pipeline. */
extern const char *const watch_sorts[];

/* Writes the screen of the run that the filter selects. now: Unix time. WEIR_OK; WEIR_ENOTFOUND if there is no such
   run. */
int watch_write(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns,
                const watch_view *view, weir_error *error);

/* The same as one JSON object without a line end: the totals of the run, and last_lap with those of its latest lap. */
int watch_write_json(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns,
                     weir_error *error);

/* Several runs: a row for each, and their sum. All-zero at the start. */
typedef struct watch_sum {
    table *rows;
    uint64_t num_runs, num_running;
    int64_t done, failures;
    int64_t expected;   /* of the runs that say it */
    double rate;        /* of those that are running, in their latest laps */
    double remaining_s; /* of the run that needs the longest; 0 = not known */
} watch_sum;

/* Adds a run; a database without one has a row, too. `out` is that of the rows. */
int watch_add_row(watch_sum *sum, FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns,
                  weir_error *error);

/* Writes the rest of the rows; then the sum to another file. */
void watch_end_rows(watch_sum *sum, FILE *out);

#endif
