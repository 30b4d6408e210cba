/*
 * The data of a plot, read from a database: metrics of each stage, queue, span, counter, process and machine lap by lap;
 * events; phases.
 */
#ifndef TOOLS_VIEW_PLOT_SERIES_H
#define TOOLS_VIEW_PLOT_SERIES_H

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
} series_queue_figure;

/* What is drawn of a span, frame or marker. A marker has only the first. */
typedef enum series_span_figure {
    SPAN_RATE, /* per second, or the number in each lap */
    SPAN_AVE,  /* seconds per span */
    SPAN_P50,
    SPAN_P90,
    SPAN_P99,
    SPAN_MAX,
    SPAN_SHARE, /* of the lap; above 1 if several threads are in the span */
} series_span_figure;

/* What is drawn of a value of a counter. */
typedef enum series_counter_figure { COUNTER_MEAN, COUNTER_LAST, COUNTER_MIN, COUNTER_MAX } series_counter_figure;

/* What is drawn of the process. */
typedef enum series_process_figure {
    PROCESS_CPUS,
    PROCESS_POOL_CPUS,
    PROCESS_MEMORY, /* bytes */
    PROCESS_PEAK,
    PROCESS_READ, /* bytes per second */
    PROCESS_WRITTEN,
} series_process_figure;

/* What is drawn of the machine. */
typedef enum series_machine_figure {
    MACHINE_OTHER_CPUS,
    MACHINE_IDLE_CPUS,
    MACHINE_STOLEN_CPUS,
    MACHINE_CPU_PRESSURE, /* shares of the time */
    MACHINE_IO_PRESSURE,
    MACHINE_MEMORY_PRESSURE,
    MACHINE_RECEIVED, /* bytes per second */
    MACHINE_SENT,
} series_machine_figure;

/* One lap, or several merged laps, as comparable values. NAN = no value. */
typedef struct series_point {
    double start, end; /* seconds since the origin */
    double values[SERIES_MAX_VALUES];
} series_point;

/* The laps of one stage, queue, span, counter, process or machine, in the order of time. */
typedef struct series {
    char *name;             /* with the run as a prefix if there are several */
    const char *plain_name; /* without it */
    int64_t run_id;
    int64_t capacity; /* of a queue */
    series_point *points;
    size_t num_points;
} series;

typedef enum series_kind {
    SERIES_STAGES,
    SERIES_QUEUES,
    SERIES_SPANS,
    SERIES_COUNTERS,
    SERIES_PROCESS,
    SERIES_MACHINE,
    NUM_SERIES_KINDS
} series_kind;

typedef struct series_list {
    series *all; /* in the order of the pipeline; spans: the longest total time first */
    size_t count;
} series_list;

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
    series_list lists[NUM_SERIES_KINDS];
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

/* "tasks", "queues", "spans", "counters", "process", "machine" */
const char *series_kind_name(series_kind kind);

#endif
