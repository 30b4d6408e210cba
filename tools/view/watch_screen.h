/* One frame of `weir watch`: the current state of a run, as lines of text. */
#ifndef TOOLS_VIEW_WATCH_SCREEN_H
#define TOOLS_VIEW_WATCH_SCREEN_H

#include <stdio.h>

#include <weir/query.h>

/*
 * Writes the frame of the run that the filter selects; lines have at most `width` characters. now: Unix time.
 * WEIR_OK; WEIR_ENOTFOUND if there is no such run.
 */
int frame_write(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns, int width,
                weir_error *error);

/* The same as one JSON object without a line end: the totals of the run, and last_lap with those of its latest lap. */
int frame_write_json(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns,
                     weir_error *error);

/* What several runs are together. All-zero at the start. */
typedef struct frame_sum {
    uint64_t num_runs, num_running;
    int64_t done, failures;
    int64_t expected;   /* of the runs that say it */
    double rate;        /* of those that are running, in their latest laps */
    double remaining_s; /* of the run that needs the longest; 0 = not known */
} frame_sum;

/* One line for a run among several, and adds it to *sum; a database without a run has a line, too. As frame_write(). */
int frame_write_row(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns, int width,
                    frame_sum *sum, weir_error *error);

/* The lines above the rows: the sum, and the titles of the columns. */
void frame_write_sum(FILE *out, const frame_sum *sum, int width);

#endif
