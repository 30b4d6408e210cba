/*
 * The data for a monitoring system: runs, the sums of their stages and queues, and sums by key of their events and
 * phases; and the overview of each run. Filled from a database (openmetrics_export.c) or lap by lap
 * (openmetrics_observer.c), written by openmetrics.c. One thread at a time.
 */
#ifndef STATS_EXPORT_EXPOSITION_H
#define STATS_EXPORT_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/query.h>

#include "stats/export/overview.h"

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

typedef struct weir_exposition {
    weir_records runs;              /* by run_id, rising; run_id 0 = no label `run` */
    const weir_overview *overviews; /* of each of the runs; NULL = none */
    weir_totals totals;             /* by run and name */
    weir_key_sums events;           /* by name and category: how often */
    weir_key_sums phases;           /* by name: seconds */

    /* If not NULL, history is written: the sums of each stage and queue after each lap that matches the filter, with the
       time, and nothing about the runs. */
    weir_recording *history;
    const weir_filter *filter;
    int status; /* the first failure to read it */
    weir_error *error;
} weir_exposition;

/* A weir_record_function with a weir_exposition: adds a lap, an event or a phase; nothing of others. */
int weir__exposition_take(void *self, const weir_record *record, weir_error *error);

/* Frees the sums, not the runs. */
void weir__exposition_clear(weir_exposition *exposition);

/* Writes all of it as OpenMetrics text. Write errors are in ferror(out). */
void weir__exposition_write(FILE *out, weir_exposition *exposition);

#endif
