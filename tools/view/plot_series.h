/*
 * The data of a plot, read from a database: all measures of each stage, queue, span, ... lap by lap; events; phases; what
 * limits each part of the run.
 */
#ifndef TOOLS_VIEW_PLOT_SERIES_H
#define TOOLS_VIEW_PLOT_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/query.h>

enum {
    SERIES_MAX_MEASURES = 64,
    SERIES_MAX_POINTS = 300 /* of a curve: more would be narrower than a pixel or two */
};

/* One lap, or several merged laps. */
typedef struct series_point {
    double start, end;                  /* seconds since the origin */
    double values[SERIES_MAX_MEASURES]; /* of weir_subject_measures(), in their order; NAN = no value */
} series_point;

/* The laps of one stage, queue, span, ... in the order of time. */
typedef struct series {
    char *name;             /* with the run as a prefix if there are several */
    const char *plain_name; /* without it */
    char *kind;             /* "stage", "source", "sink", ...; see weir_total */
    int64_t run_id;
    int64_t capacity; /* of a queue: items; of a process: the CPU budget; 0 = none */
    series_point *points;
    size_t num_points;
} series;

typedef struct series_list {
    series *all; /* in the order of the pipeline; spans: the longest total time first */
    size_t count;
} series_list;

typedef struct series_mark {
    double start, end; /* equal for a point in time */
    char *text;
    int kind;       /* of a limit: weir_verdict_kind */
    int64_t run_id; /* of an event or a pause */
} series_mark;

typedef struct series_marks {
    series_mark *all;
    size_t count;
} series_marks;

typedef struct series_set {
    int64_t origin_unix_ns; /* when 0 is */
    double end;             /* of the last lap, since the origin */
    int64_t num_runs;
    series_list lists[WEIR_NUM_SUBJECTS];
    series_marks events; /* without those that begin and end pauses */
    series_marks pauses; /* from an event "gc_start" (or _begin) to the next "gc_stop" (or _end) of the same run */
    series_marks phases;
    series_marks limits; /* of a single run: what limits each part, as weir_verdict_read() judges it */
} series_set;

/* WEIR_OK, even if there is nothing. Call series_free() afterwards in any case. */
int series_read(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error);
void series_free(series_set *set);

/* The value of a measure at a point of a subject's series; point NULL = NAN. */
double series_value(weir_subject subject, const series_point *point, const char *measure);

/* The series that tells the throughput: the queue of the sink, else the last stage. NULL = none. */
const series *series_throughput(const series_set *set, weir_subject *subject);

#endif
