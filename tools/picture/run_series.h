/*
 * The data of a picture, read from a database: measures of each stage, queue, span, … over time; events; phases; what limits
 * each part of the run.
 *
 * The time is divided into at most SERIES_MAX_POINTS bins, as many as a narrow picture has pixels. All laps that end in a bin
 * are one point. It has the exact mean of these laps, and the lowest and the highest value of a single one, so that no spike
 * is lost.
 */
#ifndef TOOLS_PICTURE_RUN_SERIES_H
#define TOOLS_PICTURE_RUN_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/query.h>

enum { SERIES_MAX_POINTS = 320 };

/* The value of all laps of a bin together, and the extremes of its single laps. NAN = not known. */
typedef struct series_value {
    double mean, low, high;
} series_value;

/* The time of a point: seconds since the origin. */
typedef struct series_time {
    double start, end;
} series_time;

/* The laps of one stage, queue, span, … in the order of time. */
typedef struct series {
    char *name;             /* with the run as a prefix if there are several */
    const char *plain_name; /* without it */
    char *kind;             /* "stage", "source", "sink", …; see weir_total */
    int64_t run_id;
    int64_t capacity;     /* of a queue: items; of a process: the CPU budget; 0 = none */
    series_time *times;   /* num_points */
    series_value *values; /* num_points × num_columns of its list */
    size_t num_points, num_columns;
    size_t order;             /* in which it began */
    struct series_open *open; /* only while laps are read */
} series;

typedef struct series_list {
    series *all; /* in the order of the pipeline; spans: the longest total time first */
    size_t count;
    size_t num_left_out; /* spans and counters that are not read, because there are too many */
    const weir_measure **columns;
    size_t num_columns;
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
    series_marks limits; /* of a single run: what limits each part, by weir_verdict_limit_rules() */
} series_set;

/*
 * Reads what the first picture needs, and, with `details`, what the panels need. WEIR_OK, even if there is nothing. Call
 * series_free() afterwards in any case.
 */
int series_read(weir_recording *recording, const weir_filter *filter, bool details, series_set *set,
                weir_error *error);
void series_free(series_set *set);

/* Whether there is a panel for it. */
bool series_has_panel(weir_subject subject, const weir_measure *measure);

/* The values of a measure: one for each point, num_columns apart. NULL = it was not read, or there are no points. */
const series_value *series_values(const series_list *list, const series *line, const char *measure);

/* The series that tells the throughput: the queue of the sink, else the last stage. NULL = none. */
const series *series_throughput(const series_set *set, weir_subject *subject);

#endif
