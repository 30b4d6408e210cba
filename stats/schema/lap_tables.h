/*
 * The tables of laps: one for each subject. Their columns are generated from the table of metrics: SPDL's columns
 * first, in its order, then ours. If a database lacks a column (an older schema, or a new metric), the column is
 * added when the database is opened for writing. For reading, it is NULL (tables.h): the metric is not known.
 *
 * Rolls are sums of laps that follow each other (stats/record/rolls.h). The rolls of a subject have a table with the same
 * columns, and two more. A roll has the id of its first lap, so that rolls and laps are in one order. The column `roll` is the
 * number of the roll that a lap belongs to, from 1 on in each run; NULL = none. The table `roll` has a row for each
 * number, with the times of its laps, which are the same for all subjects.
 */
#ifndef STATS_SCHEMA_LAP_TABLES_H
#define STATS_SCHEMA_LAP_TABLES_H

#include <stdbool.h>

#include <sqlite3.h>

#include <weir/query.h>

typedef struct weir_lap_table {
    const char *name;        /* "task_stats" */
    const char *rolls;       /* "task_rolls" */
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
    const char *count; /* the number of laps in a group: "count(*)", or a sum where rows are rolls */
} weir_lap_keys;

/*
 * The expressions that read a lap of a table named t, or, with keys, the sum of a group of laps: the kinds of the
 * metrics (weir/metrics.h) say how. Sums have the number of laps as WEIR_LAP_JOINED. Without
 * histograms their columns are NULL. Free with sqlite3_free(). NULL = out of
 * memory.
 */
char *weir__lap_table_expressions(weir_subject subject, const weir_lap_keys *keys, bool with_histograms);

/* All columns of a table named t under their names, for statements of programs. Free with sqlite3_free(). NULL = out of memory. */
char *weir__lap_table_named_columns(weir_subject subject);

/* The columns that a table of this subject must have, in the order of the table; NULL ends the list. */
enum { WEIR_MAX_COLUMNS = 64 };
size_t weir__lap_table_columns(weir_subject subject, const char *columns[WEIR_MAX_COLUMNS]);

/* The same for the table of the subject's rolls. */
size_t weir__roll_table_columns(weir_subject subject, const char *columns[WEIR_MAX_COLUMNS]);

/* The type of the column, with its constraints, as CREATE TABLE takes it. */
const char *weir__lap_column_type(weir_subject subject, const char *column);

#endif
