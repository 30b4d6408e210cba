/*
 * The data for a monitoring system: runs, the sums of their stages and queues, and sums by key of their events and
 * phases. Filled from a database (openmetrics_export.c) or lap by lap (openmetrics_observer.c), written by
 * openmetrics.c. One thread at a time.
 */
#ifndef STATS_EXPORT_EXPOSITION_H
#define STATS_EXPORT_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/query.h>

/* A sum for each pair of texts. */
typedef struct weir_key_sum {
    int64_t run_id;
    char *name, *category;
    double sum;
} weir_key_sum;

typedef struct weir_key_sums {
    weir_key_sum *rows;
    size_t count;
} weir_key_sums;

/* Names come from users, so their number is limited: beyond it, the rest is summed as WEIR_OTHERS. */
enum { WEIR_MAX_KEY_SUMS = 500 };
#define WEIR_OTHERS "(others)"

/* Adds to the sum of these two. WEIR_OK or WEIR_ENOMEM. */
int weir__key_sums_add(weir_key_sums *key_sums, int64_t run_id, const char *name, const char *category,
                       double amount);
void weir__key_sums_free(weir_key_sums *key_sums);

/* Called with the sums of a stage or queue at a point in time. */
typedef void weir_lap_visitor(void *self, int64_t unix_ns, const weir_total *total);

typedef struct weir_exposition {
    const weir_run_record *runs; /* by run_id, rising; run_id 0 = no label `run` */
    size_t num_runs;
    const weir_totals *totals; /* by run and name */
    weir_key_sums events;      /* by name and category: how often */
    weir_key_sums phases;      /* by name: seconds */

    /* If not NULL, history is written: the sums of each stage and queue after each lap, with the time, and nothing
       about the runs. Visits the laps of that total, in the order of time. */
    void (*walk)(void *walker, const weir_total *of, weir_lap_visitor *visit, void *visitor);
    void *walker;
} weir_exposition;

/* Writes all of it as OpenMetrics text. Write errors are in ferror(out). */
void weir__exposition_write(FILE *out, const weir_exposition *exposition);

#endif
