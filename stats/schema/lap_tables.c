#include "stats/schema/lap_tables.h"

#include <stdio.h>
#include <string.h>

#include "stats/schema/measures.h"
#include "stats/schema/record_tables.h"
#include "stats/schema/schema.h"

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
    [WEIR_SUBJECT_STAGE] = { "task_stats", "task_rolls", spdl_task, NULL, "t.max_time" },
    [WEIR_SUBJECT_FLOW] = { "flow_stats", "flow_rolls", spdl_task, "kind", "t.max_time" },
    [WEIR_SUBJECT_QUEUE] = { "queue_stats", "queue_rolls", spdl_queue, "capacity", NULL },
    [WEIR_SUBJECT_POOL] = { "pool_stats", "pool_rolls", spdl_none, "num_threads", NULL },
    [WEIR_SUBJECT_PROCESS] = { "process_stats", "process_rolls", spdl_none, "num_cpus", NULL },
    [WEIR_SUBJECT_MACHINE] = { "machine_stats", "machine_rolls", spdl_none, NULL, NULL },
    [WEIR_SUBJECT_SPAN] = { "span_stats", "span_rolls", spdl_none, "kind", "t.max_time" },
    [WEIR_SUBJECT_COUNTER] = { "counter_stats", "counter_rolls", spdl_none, "kind", NULL },
};

/* The columns of all lap tables after SPDL's, unless they are among SPDL's. */
static const char *const common[] = { "run_id",     "elapsed",   "mode",           "phase",
                                      "first_step", "last_step", "suspended_time", "num_joined" };

enum { NUM_COMMON = sizeof common / sizeof common[0] };

/* Columns of rolls. Laps have the first one, too. The others say how many laps a roll holds, and when the first of
   these began. */
static const char *const of_rolls[] = { "roll", "num_laps", "start_time" };

enum { NUM_OF_ROLLS = sizeof of_rolls / sizeof of_rolls[0] };

/* -- lists of columns */

static bool is_column_in(const char *const *list, const char *column)
{
    while (*list && strcmp(*list, column) != 0)
        list++;
    return *list;
}

/* These have the same type in all lap tables. */
static const struct {
    const char *column, *type;
} column_types[] = {
    { "id", "INTEGER PRIMARY KEY" },
    { "run_id", WEIR_RUN_REFERENCE },
    { "name", "TEXT NOT NULL" },
    { "mode", "TEXT NOT NULL DEFAULT ''" },
    { "phase", "TEXT NOT NULL DEFAULT ''" }, /* '' = ended before the first mark, or no marks */
    { "kind", "TEXT NOT NULL DEFAULT ''" },
    { "timestamp", "REAL NOT NULL" },
    { "suspended_time", "REAL" },
    { "start_time", "REAL" },
};

const char *weir__lap_column_type(weir_subject subject, const char *column)
{
    const weir_measure *measure = weir_measure_find(subject, column);
    bool is_spdl = is_column_in(weir__lap_tables[subject].spdl, column);
    for (size_t i = 0; i < sizeof column_types / sizeof column_types[0]; i++)
        if (strcmp(column, column_types[i].column) == 0)
            return column_types[i].type;
    if (strcmp(column, "elapsed") == 0)
        return is_spdl ? "REAL NOT NULL" : "REAL NOT NULL DEFAULT 0";
    if (!measure)
        return strstr(column, "histogram") ? "BLOB" : "INTEGER";
    bool is_whole = measure->metric && measure->metric->kind < WEIR_METRIC_HISTOGRAM &&
                    measure->metric->kind != WEIR_METRIC_LEVEL && strcmp(measure->unit, "s") != 0;
    if (is_spdl)
        return is_whole ? "INTEGER NOT NULL" : "REAL NOT NULL";
    return is_whole ? "INTEGER" : "REAL";
}

size_t weir__lap_table_columns(weir_subject subject, const char *columns[WEIR_MAX_COLUMNS])
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
    columns[count++] = of_rolls[0];
    columns[count] = NULL;
    return count;
}

size_t weir__roll_table_columns(weir_subject subject, const char *columns[WEIR_MAX_COLUMNS])
{
    size_t count = weir__lap_table_columns(subject, columns);
    for (size_t i = 1; i < NUM_OF_ROLLS; i++)
        columns[count++] = of_rolls[i];
    columns[count] = NULL;
    return count;
}

/* -- reading them */

/* A column as it is, and how the values of several laps are combined. */
typedef enum column_sum {
    SUM_ALL, /* not known if one is not; a sum of integers could overflow */
    SUM_LEAST,
    SUM_MOST,
    SUM_LAST,
    SUM_HISTOGRAM,
    SUM_KNOWN, /* of what is known */
} column_sum;

static const char *const sums[] = {
    [SUM_ALL] = ", iif(count(t.%s) = count(*), total(t.%s), NULL) AS %s",
    [SUM_LEAST] = ", min(t.%s) AS %s",
    [SUM_MOST] = ", max(t.%s) AS %s",
    [SUM_LAST] = ", weir_last(t.%s, t.timestamp) AS %s",
    [SUM_HISTOGRAM] = ", weir_merge_histogram(t.%s) AS %s",
    [SUM_KNOWN] = ", sum(t.%s) AS %s",
};

static const column_sum sum_of[] = {
    [WEIR_METRIC_COUNT] = SUM_ALL,    [WEIR_METRIC_SUM] = SUM_ALL,      [WEIR_METRIC_LEVEL] = SUM_ALL,
    [WEIR_METRIC_MIN] = SUM_LEAST,    [WEIR_METRIC_MAX] = SUM_MOST,     [WEIR_METRIC_HISTOGRAM] = SUM_HISTOGRAM,
    [WEIR_METRIC_LAST] = SUM_LAST,    [WEIR_METRIC_LOWEST] = SUM_LEAST, [WEIR_METRIC_HIGHEST] = SUM_MOST,
    [WEIR_METRIC_GROWTH] = SUM_KNOWN,
};

static void put_expression(sqlite3_str *sql, const char *column, bool is_sum, column_sum how)
{
    if (is_sum && how == SUM_ALL)
        sqlite3_str_appendf(sql, sums[how], column, column, column);
    else
        sqlite3_str_appendf(sql, is_sum ? sums[how] : ", t.%s AS %s", column, column);
}

/* SPDL stores some of them, and no histograms. */
static void put_percentile_columns(sqlite3_str *sql, weir_subject subject, const weir_lap_keys *keys)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(subject, histograms);
    for (size_t i = 0; i < 2 * WEIR_MAX_HISTOGRAMS; i++) {
        char column[64] = "";
        if (i / 2 < count)
            snprintf(column, sizeof column, "%s_%s", i % 2 ? "p99" : "p90", histograms[i / 2].name);
        if (!is_column_in(weir__lap_tables[subject].spdl, column))
            sqlite3_str_appendall(sql, ", NULL");
        else if (keys)
            sqlite3_str_appendf(sql, ", CASE %s WHEN 1 THEN min(t.%s) END AS %s", keys->count, column, column);
        else
            sqlite3_str_appendf(sql, ", t.%s AS %s", column, column);
    }
}

char *weir__lap_table_expressions(weir_subject subject, const weir_lap_keys *keys, bool with_histograms)
{
    const char *own = weir__lap_tables[subject].own;
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    sqlite3_str *sql = sqlite3_str_new(NULL);
    if (keys)
        sqlite3_str_appendf(sql,
                            "min(t.id) AS id, %s AS key_run, max(t.timestamp) AS timestamp, sum(t.elapsed) AS "
                            "elapsed, %s AS key_name, %s AS key_phase, %s AS key_mode",
                            keys->run, keys->name, keys->phase, keys->mode);
    else
        sqlite3_str_appendall(sql, "t.id, t.run_id, t.timestamp, t.elapsed, t.name, " WEIR_PHASE_OF_LAP
                                   " AS phase, t.mode AS mode");
    put_expression(sql, "first_step", keys, SUM_LEAST);
    put_expression(sql, "last_step", keys, SUM_MOST);
    put_expression(sql, "suspended_time", keys, SUM_ALL);
    if (keys)
        sqlite3_str_appendf(sql, ", %s AS num_laps", keys->count);
    else
        sqlite3_str_appendall(sql, ", t.num_joined AS num_joined");
    if (own)
        put_expression(sql, own, keys && strcmp(own, "kind") != 0, SUM_LAST);
    else
        sqlite3_str_appendall(sql, ", NULL");
    put_percentile_columns(sql, subject, keys);
    for (size_t i = 0; i < metrics->num_metrics; i++)
        if (metrics->metrics[i].kind == WEIR_METRIC_HISTOGRAM && !with_histograms)
            sqlite3_str_appendall(sql, ", NULL");
        else
            put_expression(sql, metrics->metrics[i].name, keys, sum_of[metrics->metrics[i].kind]);
    return sqlite3_str_finish(sql);
}

char *weir__lap_table_named_columns(weir_subject subject)
{
    const char *columns[WEIR_MAX_COLUMNS];
    size_t count = weir__lap_table_columns(subject, columns);
    sqlite3_str *sql = sqlite3_str_new(NULL);
    for (size_t i = 0; i < count; i++) {
        const bool is_phase = strcmp(columns[i], "phase") == 0;
        sqlite3_str_appendf(sql, is_phase ? "%s" WEIR_PHASE_OF_LAP " AS %s" : "%st.%s", i ? ", " : "", columns[i]);
    }
    return sqlite3_str_finish(sql);
}
