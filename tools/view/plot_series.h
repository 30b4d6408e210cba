/* The data of a plot: metrics of each stage and queue lap by lap, events and phases, read from a database. */
#ifndef TOOLS_SERIES_H
#define TOOLS_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/query.h>

/* What is drawn of a stage. */
typedef enum series_task_figure {
    TASK_RATE, /* per second, or the number in each lap: all that ended, those that succeeded, those that failed */
    TASK_SUCCESSES,
    TASK_FAILURES,
    TASK_AVE, /* seconds per task */
    TASK_P50,
    TASK_P90,
    TASK_P99,
    TASK_MAX,
    TASK_BUSY, /* shares of the slots' time, as all that follow */
    TASK_CPU,
    TASK_WAIT_IN,
    TASK_WAIT_THREAD,
    TASK_WAIT_TURN,
    TASK_WAIT_OUT,
    SERIES_MAX_VALUES
} series_task_figure;

/* What is drawn of a queue. */
typedef enum series_queue_figure {
    QUEUE_RATE,     /* per second, or the number in each lap */
    QUEUE_OCCUPIED, /* share of the time not empty */
    QUEUE_PUT,      /* average wait, seconds */
    QUEUE_GET,
    QUEUE_DEPTH, /* average, items */
    NUM_QUEUE_FIGURES
} series_queue_figure;

/* One lap, or several merged laps, as comparable values. NAN = no value. */
typedef struct series_point {
    double start, end; /* seconds since the origin */
    double values[SERIES_MAX_VALUES];
} series_point;

/* A stage's or a queue's laps, in the order of time. */
typedef struct series {
    char *name; /* with the run as a prefix if there are several */
    int64_t run_id;
    int64_t capacity; /* of a queue */
    series_point *points;
    size_t num_points;
} series;

typedef struct series_mark {
    double start, end; /* equal for a point in time */
    int64_t run_id;
    char *text;
} series_mark;

typedef struct series_set {
    int64_t origin_unix_ns; /* when 0 is */
    bool counts;            /* numbers in each lap instead of rates */
    double end;             /* of the last lap, since the origin */
    bool binned;            /* each point is several merged laps */
    int64_t num_runs;
    series *tasks, *queues;
    size_t num_tasks, num_queues;
    series_mark *events; /* points in time; or spans, from pairs of events named NAME_start and NAME_stop */
    series_mark *phases;
    size_t num_events, num_phases;
} series_set;

/* How to read, or-ed. */
enum {
    SERIES_COUNTS = 1,     /* numbers in each lap instead of rates */
    SERIES_JOIN_SHORT = 2, /* a last lap shorter than half of the previous one is joined with it */
};

/* WEIR_OK, even if there is nothing. Call series_free() afterwards in any case. */
int series_read(weir_reader *reader, const weir_filter *filter, unsigned how, series_set *set, weir_error *error);
void series_free(series_set *set);

#endif
