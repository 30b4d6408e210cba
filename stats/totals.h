/*
 * The sums of a run, stage by stage and queue by queue, in one pass over its laps: what every ratio of a summary is
 * derived from. Sums of sums and added histograms are exact; see design: a mean is weighted by what it is a mean of.
 */
#ifndef WEIR_TOTALS_H
#define WEIR_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include <weir/histogram.h>
#include <weir/status.h>

/* All times in seconds, as they are stored. */
typedef struct weir_task_totals {
    char *name;
    int64_t num_laps; /* 0 = the stage is known, but no lap of it */
    int64_t num_tasks;
    int64_t num_failures;
    int64_t num_skipped;
    double success_time;
    double failed_time;
    double max_time;
    double busy_time;
    double wait_in_time;
    double wait_thread_time;
    double wait_out_time;
    double cpu_time;
    weir_histogram *times; /* of the successes */
} weir_task_totals;

typedef struct weir_queue_totals {
    char *name;
    int64_t num_laps;
    int64_t num_items;
    int64_t num_put;
    int64_t capacity; /* of the last lap */
    double elapsed;
    double put_time;   /* that the items put in waited for room */
    double get_time;   /* that the takers of the items taken out waited for them */
    double occupied;   /* time not empty */
    double depth_time; /* items × time */
    double bytes_time; /* bytes × time */
    int64_t max_depth;
    int64_t max_bytes;
    weir_histogram *put_times;
    weir_histogram *get_times;
} weir_queue_totals;

/* A row of `run`, without its texts. */
typedef struct weir_run_row {
    int64_t run_id;
    double started; /* Unix time */
    double ended;
    bool has_ended;
    int status; /* of the end */
    int64_t entries_lost;
} weir_run_row;

typedef struct weir_totals {
    weir_run_row run;
    weir_task_totals *tasks; /* in the order of the pipeline */
    size_t num_tasks;
    weir_queue_totals *queues; /* in the order of the pipeline */
    size_t num_queues;
} weir_totals;

/* Finds a run (0 = the last one). `path` is for messages. WEIR_ENOTFOUND if there is none. */
int weir_totals_find_run(sqlite3 *db, const char *path, int64_t run_id, weir_run_row *run, weir_error *error);

/* Reads the totals of a run (0 = the last one); after success weir_totals_free() is to be called. */
int weir_totals_read(sqlite3 *db, const char *path, int64_t run_id, weir_totals *totals, weir_error *error);
void weir_totals_free(weir_totals *totals);

#endif
