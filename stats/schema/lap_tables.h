/*
 * The tables of laps: one for each subject. Their columns are generated from the table of metrics: SPDL's columns
 * first, in its order, then ours. If a database lacks a column (an older schema, or a new metric), the column is
 * added when the database is opened for writing; for reading, the metric is not known.
 */
#ifndef STATS_SCHEMA_LAP_TABLES_H
#define STATS_SCHEMA_LAP_TABLES_H

#include <stdbool.h>

#include <sqlite3.h>

#include <weir/query.h>

typedef struct weir_lap_table {
    const char *name;        /* "task_stats" */
    const char *const *spdl; /* SPDL's columns, which come first; NULL ends the list */
    const char *own;         /* a column that only this table has: "kind", "capacity", …; NULL = none */
    const char *longest;     /* the column of a lap's longest time; NULL = none */
} weir_lap_table;

extern const weir_lap_table weir__lap_tables[WEIR_NUM_SUBJECTS];

/* The columns that every lap is read with, in this order; then each stored metric in the order of its table. */
enum {
    WEIR_LAP_ID,
    WEIR_LAP_RUN,
    WEIR_LAP_TIMESTAMP,
    WEIR_LAP_ELAPSED,
    WEIR_LAP_NAME,
    WEIR_LAP_PHASE,
    WEIR_LAP_MODE,
    WEIR_LAP_FIRST_STEP,
    WEIR_LAP_LAST_STEP,
    WEIR_LAP_SUSPENDED,
    WEIR_LAP_JOINED,
    WEIR_LAP_OWN,         /* kind, capacity or number of threads */
    WEIR_LAP_PERCENTILES, /* of a single lap: p90 and p99 of each histogram, as SPDL stores them */
    WEIR_LAP_LAST_PERCENTILE = WEIR_LAP_PERCENTILES + 2 * WEIR_MAX_HISTOGRAMS - 1,
    WEIR_LAP_METRICS,
};

/* Adds the statements that make missing tables, with their indexes, and missing columns; none if they are complete. Returns
   a SQLITE_ code. */
int weir__lap_tables_put_missing(sqlite3 *db, sqlite3_str *sql);

/* The phase of a lap of this name: laps that ended before the first mark of their run belong to its startup. */
#define WEIR_PHASE_OF(lap) \
    "CASE WHEN " lap ".phase = '' AND " lap ".run_id IN (SELECT r.run_id FROM run r WHERE (SELECT q.phase FROM" \
    " queue_stats q WHERE q.run_id = r.run_id ORDER BY q.id DESC LIMIT 1) <> '') THEN 'startup' ELSE " lap \
    ".phase END"
#define WEIR_PHASE_OF_LAP WEIR_PHASE_OF("t")

/* The node of its run. */
#define WEIR_NODE_OF_LAP "coalesce((SELECT r.node_id FROM run r WHERE r.run_id = t.run_id), '')"

/* What laps are grouped by, as SQL; a constant = not by that. */
typedef struct weir_lap_keys {
    const char *run, *name, *phase, *mode;
} weir_lap_keys;

/*
 * The expressions that read a lap of a table named t, or, with keys, the sum of a group of laps: the kinds of the
 * metrics (weir/metrics.h) say how. Sums have the number of laps as WEIR_LAP_JOINED. Free with sqlite3_free(). NULL = the
 * database has no such table, or out of memory (*code says which).
 */
char *weir__lap_table_expressions(sqlite3 *db, weir_subject subject, const weir_lap_keys *keys, int *code);

/* The columns that a table of this subject must have, in the order of the table; NULL ends the list. */
enum { WEIR_MAX_LAP_COLUMNS = 64 };
size_t weir__lap_table_columns(weir_subject subject, const char *columns[WEIR_MAX_LAP_COLUMNS]);

#endif
