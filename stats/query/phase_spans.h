/* A run's laps as stretches: each as long as one phase, and as nothing is missing in between. */
#ifndef WEIR_STRETCHES_H
#define WEIR_STRETCHES_H

#include "sql_select.h"

typedef struct weir_stretches {
    weir_reader *reader;
    weir_filter filter; /* of the laps; the caller's strings */
    sqlite3_stmt *runs; /* NULL = no more */
    int64_t run_id;
    sqlite3_stmt *laps;        /* of the run; NULL = the next one's turn */
    char *name;                /* of the queue whose laps are taken: every queue has the same */
    bool is_marked;            /* the run */
    weir_phase_record pending; /* num_laps 0 = none; its phase is next_phase */
    double last_elapsed, end;  /* of the lap taken last, in seconds */
    char *next_phase;
    char *phase; /* of what weir_stretches_next() gave last */
    weir_marks marks;
} weir_stretches;

/* The filter's order is that of time; its name and limit do not count. After any result weir_stretches_end(). */
int weir_stretches_begin(weir_stretches *stretches, weir_reader *reader, const weir_filter *filter,
                         weir_error *error);

/* WEIR_OK, WEIR_EOF or what failed. Its phase is valid until the next call. */
int weir_stretches_next(weir_stretches *stretches, weir_phase_record *stretch, weir_error *error);
void weir_stretches_end(weir_stretches *stretches);

#endif
