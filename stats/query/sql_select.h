/*
 * From a filter to SQL: one SELECT over one table, called t, whose conditions are what the filter says. Values are
 * bound, never pasted, but for numbers of our own.
 */
#ifndef WEIR_SELECT_H
#define WEIR_SELECT_H

#include "database_reader.h"

/* What kind of rows a table has: how conditions of time and place apply to them. */
typedef enum weir_row_kind {
    WEIR_ROWS_LAPS,   /* a span, of a name, in a place */
    WEIR_ROWS_POINTS, /* a point in time, of a name; its place is that of the lap around it */
    WEIR_ROWS_RUNS,   /* a row of `run` */
    WEIR_ROWS_NODES,  /* rows of `run`, by node */
    WEIR_ROWS_STAGES, /* a row of `stage` */
} weir_row_kind;

typedef struct weir_sql_selection {
    weir_row_kind kind;
    const char *table;       /* "task_stats" */
    const char *columns;     /* "t.id, t.name, …" */
    const char *name_column; /* that weir_filter.name is about; NULL = none */
    const char *length;      /* what longest_first goes by; NULL = nothing */
    bool unordered;          /* order and limit of the filter do not count */
} weir_sql_selection;

/*
 * Prepares it, with everything bound. filter->run_id is resolved (WEIR_ALL_RUNS or a number). On failure *statement is
 * NULL.
 */
int weir_select(weir_reader *reader, const weir_sql_selection *selection, const weir_filter *filter,
                sqlite3_stmt **statement, weir_error *error);

/* Whether a run has any mark of step or phase: what tells start-up from no marks at all. */
typedef struct weir_marks {
    weir_reader *reader;
    sqlite3_stmt *statement;
    int64_t run_id; /* that is known; 0 = none */
    bool is_marked;
} weir_marks;

int weir_marks_of(weir_marks *marks, int64_t run_id, bool *is_marked, weir_error *error);
void weir_marks_free(weir_marks *marks);

#endif
