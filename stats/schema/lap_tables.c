#include "lap_tables.h"

#include <stdio.h>
#include <string.h>

#include "measures.h"
#include "record_tables.h"
#include "schema.h"

static const char *const spdl_task[] = { "id",       "timestamp", "name",     "num_tasks", "num_failures",
                                         "ave_time", "p90_time",  "p99_time", NULL };
static const char *const spdl_queue[] = { "id",
                                          "timestamp",
                                          "name",
                                          "elapsed",
                                          "num_items",
                                          "ave_put_time",
                                          "ave_get_time",
                                          "p90_put_time",
                                          "p99_put_time",
                                          "p90_get_time",
                                          "p99_get_time",
                                          "occupancy_rate",
                                          NULL };
static const char *const spdl_none[] = { "id", "timestamp", "name", NULL };

const weir_lap_table weir__lap_tables[WEIR_NUM_SUBJECTS] = {
    [WEIR_SUBJECT_STAGE] = { "task_stats", spdl_task, NULL, "t.max_time" },
    [WEIR_SUBJECT_FLOW] = { "flow_stats", spdl_task, "kind", "t.max_time" },
    [WEIR_SUBJECT_QUEUE] = { "queue_stats", spdl_queue, "capacity", NULL },
    [WEIR_SUBJECT_POOL] = { "pool_stats", spdl_none, "num_threads", NULL },
    [WEIR_SUBJECT_PROCESS] = { "process_stats", spdl_none, "num_cpus", NULL },
    [WEIR_SUBJECT_MACHINE] = { "machine_stats", spdl_none, NULL, NULL },
    [WEIR_SUBJECT_SPAN] = { "span_stats", spdl_none, "kind", "t.max_time" },
    [WEIR_SUBJECT_COUNTER] = { "counter_stats", spdl_none, NULL, NULL },
};

/* The columns of all lap tables after SPDL's, unless they are among SPDL's. */
static const char *const common[] = { "run_id",     "elapsed",   "mode",           "phase",
                                      "first_step", "last_step", "suspended_time", "num_joined" };

enum { NUM_COMMON = sizeof common / sizeof common[0] };

/* -- lists of columns */

/* The type of a column, with its constraints, as CREATE TABLE takes it. */
static const char *metric_type(weir_subject subject, const char *column, bool is_spdl)
{
    const weir_measure *measure = weir_measure_find(subject, column);
    if (strcmp(column, "run_id") == 0)
        return WEIR_RUN_REFERENCE;
    if (strcmp(column, "name") == 0)
        return "TEXT NOT NULL";
    if (strcmp(column, "mode") == 0 ||
        strcmp(column, "phase") == 0) /* '' = ended before the first mark, or no marks */
        return "TEXT NOT NULL DEFAULT ''";
    if (strcmp(column, "kind") == 0)
        return "TEXT NOT NULL DEFAULT ''";
    if (strcmp(column, "timestamp") == 0 || (strcmp(column, "elapsed") == 0 && is_spdl))
        return "REAL NOT NULL";
    if (strcmp(column, "elapsed") == 0)
        return "REAL NOT NULL DEFAULT 0";
    if (strcmp(column, "suspended_time") == 0)
        return "REAL";
    if (!measure)
        return strstr(column, "histogram") ? "BLOB" : "INTEGER";
    bool is_whole = measure->metric && measure->metric->kind < WEIR_METRIC_HISTOGRAM &&
                    measure->metric->kind != WEIR_METRIC_LEVEL && strcmp(measure->unit, "s") != 0;
    if (is_spdl)
        return is_whole ? "INTEGER NOT NULL" : "REAL NOT NULL";
    return is_whole ? "INTEGER" : "REAL";
}

static bool is_column_in(const char *const *list, const char *column)
{
    while (*list && strcmp(*list, column) != 0)
        list++;
    return *list;
}

size_t weir__lap_table_columns(weir_subject subject, const char *columns[WEIR_MAX_LAP_COLUMNS])
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    size_t count = 0;
    for (; table->spdl[count]; count++)
        columns[count] = table->spdl[count];
    for (size_t i = 0; i < NUM_COMMON; i++)
        if (!is_column_in(table->spdl, common[i]))
            columns[count++] = common[i];
    if (table->own)
        columns[count++] = table->own;
    for (size_t i = 0; i < metrics->num_metrics; i++)
        if (!is_column_in(table->spdl, metrics->metrics[i].name))
            columns[count++] = metrics->metrics[i].name;
    columns[count] = NULL;
    return count;
}

/* -- making them */

/* By time and by name and time: SPDL's queries and the plots. By run: one pass over a run, in the order of rowid. */
static void put_table(sqlite3_str *sql, weir_subject subject, const char *const columns[])
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    sqlite3_str_appendf(sql, "CREATE TABLE %s (id INTEGER PRIMARY KEY", table->name);
    for (size_t i = 1; columns[i]; i++)
        sqlite3_str_appendf(sql, ", %s %s", columns[i],
                            metric_type(subject, columns[i], is_column_in(table->spdl, columns[i])));
    sqlite3_str_appendf(sql,
                        "); CREATE INDEX %s_by_time ON %s(timestamp); CREATE INDEX %s_by_name ON %s(name, timestamp);"
                        "CREATE INDEX %s_by_run ON %s(run_id);",
                        table->name, table->name, table->name, table->name, table->name, table->name);
}

int weir__lap_tables_put_missing(sqlite3 *db, sqlite3_str *sql)
{
    int code = SQLITE_OK;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && code == SQLITE_OK; subject++) {
        const char *columns[WEIR_MAX_LAP_COLUMNS], *name = weir__lap_tables[subject].name;
        weir__lap_table_columns(subject, columns);
        char *there = weir__table_columns(db, name, &code);
        if (!there && code == SQLITE_OK)
            put_table(sql, subject, columns);
        for (size_t i = 1; there && columns[i]; i++)
            if (!weir__has_word(there, columns[i]))
                sqlite3_str_appendf(sql, "ALTER TABLE %s ADD COLUMN %s %s;", name, columns[i],
                                    metric_type(subject, columns[i], false));
        sqlite3_free(there);
    }
    return code;
}

/* -- reading them */

/* A column as it is, and how the values of several laps are combined. */
typedef enum column_sum {
    SUM_ALL, /* not known if one is not; a sum of integers could overflow */
    SUM_LEAST,
    SUM_MOST,
    SUM_LAST,
    SUM_HISTOGRAM,
} column_sum;

static const char *const sums[] = {
    [SUM_ALL] = ", iif(count(%s) = count(*), total(%s), NULL) AS %s",
    [SUM_LEAST] = ", min(%s) AS %s",
    [SUM_MOST] = ", max(%s) AS %s",
    [SUM_LAST] = ", weir_last(%s, t.timestamp) AS %s",
    [SUM_HISTOGRAM] = ", weir_merge_histogram(%s) AS %s",
};

static const column_sum sum_of[] = {
    [WEIR_METRIC_COUNT] = SUM_ALL, [WEIR_METRIC_SUM] = SUM_ALL,      [WEIR_METRIC_LEVEL] = SUM_ALL,
    [WEIR_METRIC_MIN] = SUM_LEAST, [WEIR_METRIC_MAX] = SUM_MOST,     [WEIR_METRIC_HISTOGRAM] = SUM_HISTOGRAM,
    [WEIR_METRIC_LAST] = SUM_LAST, [WEIR_METRIC_LOWEST] = SUM_LEAST, [WEIR_METRIC_HIGHEST] = SUM_MOST,
};

static void put_expression(sqlite3_str *sql, const char *there, const char *column, bool is_sum, column_sum how)
{
    char name[64] = "NULL"; /* a metric that the database does not have */
    if (weir__has_word(there, column))
        snprintf(name, sizeof name, "t.%s", column);
    if (is_sum && how == SUM_ALL)
        sqlite3_str_appendf(sql, sums[how], name, name, column);
    else
        sqlite3_str_appendf(sql, is_sum ? sums[how] : ", %s AS %s", name, column);
}

static void put_percentile_columns(sqlite3_str *sql, const char *there, weir_subject subject, bool is_sum)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(subject, histograms);
    for (size_t i = 0; i < 2 * WEIR_MAX_HISTOGRAMS; i++) {
        char column[64] = "";
        if (i / 2 < count)
            snprintf(column, sizeof column, "%s_%s", i % 2 ? "p99" : "p90", histograms[i / 2].name);
        if (!*column || !weir__has_word(there, column))
            sqlite3_str_appendall(sql, ", NULL");
        else
            sqlite3_str_appendf(sql, is_sum ? ", CASE count(*) WHEN 1 THEN min(t.%s) END AS %s" : ", t.%s AS %s",
                                column, column);
    }
}

char *weir__lap_table_expressions(sqlite3 *db, weir_subject subject, const weir_lap_keys *keys, int *code)
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    char *there = weir__table_columns(db, table->name, code);
    if (!there)
        return NULL;
    sqlite3_str *sql = sqlite3_str_new(db);
    if (keys)
        sqlite3_str_appendf(sql,
                            "min(t.id) AS id, %s AS key_run, max(t.timestamp) AS timestamp, sum(t.elapsed) AS "
                            "elapsed, %s AS key_name, %s AS key_phase, %s AS key_mode",
                            keys->run, keys->name, keys->phase, keys->mode);
    else
        sqlite3_str_appendall(sql, "t.id, t.run_id, t.timestamp, t.elapsed, t.name, " WEIR_PHASE_OF_LAP " AS phase");
    if (!keys)
        put_expression(sql, there, "mode", false, SUM_ALL);
    put_expression(sql, there, "first_step", keys, SUM_LEAST);
    put_expression(sql, there, "last_step", keys, SUM_MOST);
    put_expression(sql, there, "suspended_time", keys, SUM_ALL);
    if (keys)
        sqlite3_str_appendall(sql, ", count(*) AS num_laps");
    else
        put_expression(sql, there, "num_joined", false, SUM_ALL);
    bool is_key = table->own && strcmp(table->own, "kind") == 0;
    put_expression(sql, there, table->own ? table->own : "own", keys && !is_key, SUM_LAST);
    put_percentile_columns(sql, there, subject, keys);
    for (size_t i = 0; i < metrics->num_metrics; i++)
        put_expression(sql, there, metrics->metrics[i].name, keys, sum_of[metrics->metrics[i].kind]);
    sqlite3_free(there);
    char *text = sqlite3_str_finish(sql);
    *code = text ? SQLITE_OK : SQLITE_NOMEM;
    return text;
}
