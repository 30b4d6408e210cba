/*
 * From a filter to SQL: one SELECT from one table, called t, with the filter's conditions. Values are bound, never
 * inserted as text, except for internal numbers.
 */
#ifndef STATS_READ_SQL_SELECT_H
#define STATS_READ_SQL_SELECT_H

#include "stats/read/open_recording.h"

/* What kind of rows a table has: how conditions of time, phase and step apply to them. */
typedef enum weir_row_kind {
    WEIR_ROWS_LAPS,   /* a span, with a name, phase and steps */
    WEIR_ROWS_POINTS, /* a point in time, with a name; phase and steps are those of the lap at that time */
    WEIR_ROWS_RUNS,   /* a row of `run` */
    WEIR_ROWS_NODES,  /* rows of `run`, by node */
    WEIR_ROWS_STAGES, /* a row of `stage` */
} weir_row_kind;

typedef struct weir_sql_selection {
    weir_row_kind kind;
    const char *name;        /* of weir__select_from() */
    const char *table;       /* "task_stats" */
    const char *columns;     /* "t.id, t.name, …" */
    const char *condition;   /* one more: "AND …"; NULL = none */
    const char *name_column; /* that weir_filter.name is about; NULL = none */
    const char *length;      /* sort key of longest_first; NULL = none */
    const char *begin;       /* what stands between WITH and SELECT; NULL = nothing */
    const char *end; /* what stands behind the conditions: "GROUP BY …"; NULL = the filter's order and limit */
} weir_sql_selection;

/*
 * Prepares it, with everything bound. filter->run_id is resolved (WEIR_ALL_RUNS or a number). On failure *statement is
 * NULL.
 */
int weir__select(weir_recording *recording, const weir_sql_selection *selection, const weir_filter *filter,
                 sqlite3_stmt **statement, weir_error *error);

/* The same for "WITH name AS (the rows of a table that match), … sql". */
int weir__select_from(weir_recording *recording, const weir_sql_selection *tables, size_t num_tables,
                      const weir_filter *filter, const char *sql, sqlite3_stmt **statement, weir_error *error);

#endif
