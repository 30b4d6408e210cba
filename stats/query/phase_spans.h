/* A run's laps as spans: consecutive laps of one phase, without a gap between them. */
#ifndef WEIR_PHASE_SPANS_H
#define WEIR_PHASE_SPANS_H

#include "sql_select.h"

typedef struct weir_phase_spans {
    weir_reader *reader;
    weir_filter filter; /* of the laps; the caller's strings */
    sqlite3_stmt *runs; /* NULL = no more */
    int64_t run_id;
    sqlite3_stmt *laps;        /* of the run; NULL = start the next run */
    char *name;                /* of the queue whose laps are used: all queues have the same laps */
    bool is_marked;            /* the run */
    bool each_lap;             /* a span for each lap; set after weir_phase_spans_begin() */
    weir_phase_record pending; /* num_laps 0 = none; its phase is next_phase */
    double last_elapsed, end;  /* of the last lap, in seconds */
    char *next_phase;
    char *phase; /* of the last result of weir_phase_spans_next() */
    weir_marks marks;
} weir_phase_spans;

/* Spans are in the order of time; the filter's name and limit are ignored. Call weir_phase_spans_end() after any
   result. */
int weir_phase_spans_begin(weir_phase_spans *spans, weir_reader *reader, const weir_filter *filter,
                           weir_error *error);

/* WEIR_OK, WEIR_EOF or a failure. The span's phase is valid until the next call. */
int weir_phase_spans_next(weir_phase_spans *spans, weir_phase_record *span, weir_error *error);
void weir_phase_spans_end(weir_phase_spans *spans);

#endif
