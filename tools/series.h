/* What a plot shows: lap by lap figures of each stage and queue, events and phases, read from a database. */
#ifndef TOOLS_SERIES_H
#define TOOLS_SERIES_H

#include <stddef.h>

#include <weir/query.h>

/* One lap, in figures a person compares. NAN where there is nothing to show. Times in seconds since the origin. */
typedef struct series_point {
    double start, end;
    union {
        struct {
            double successes, failures;                  /* per second */
            double ave, p50, p90, p99;                   /* seconds a task */
            double busy, wait_in, wait_thread, wait_out; /* shares of the slots' time */
        } task;
        struct {
            double items;     /* per second */
            double occupancy; /* share of the time not empty */
            double put, get;  /* average wait, seconds */
            double depth;     /* average, items */
        } queue;
    };
} series_point;

/* A stage's or a queue's laps, in the order of time. */
typedef struct series {
    char *name;
    int64_t run_id;
    series_point *points;
    size_t num_points, room;
} series;

typedef struct series_mark {
    double start, end; /* the same for an event */
    char *text;
} series_mark;

typedef struct series_set {
    double origin; /* Unix time of 0 */
    double end;    /* of the last lap, since the origin */
    series *tasks, *queues;
    size_t num_tasks, num_queues;
    series_mark *events, *phases;
    size_t num_events, num_phases;
} series_set;

/* WEIR_OK, also if there is nothing; series_free() afterwards, whatever the result. */
int series_read(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error);
void series_free(series_set *set);

#endif
