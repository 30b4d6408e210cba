#include "stats/read/rolled_laps.h"

#include <sqlite3.h>

#include "stats/read/long_runs.h"
#include "stats/record/rolls.h"
#include "stats/schema/lap_tables.h"

#define NO_END        "9223372036854775807"
#define SELECTED_RUNS "(SELECT r.run_id FROM run r WHERE :run = 0 OR r.run_id = :run)"

/* As of laps in sql_select.c, with its tolerance. */
#define SOME_MATCH "(:start = 0 OR r.timestamp > :start + 1e-6) AND (:end = 0 OR r.start_time < :end - 1e-6)"

/* The id of the first lap of the roll that comes first in this order. */
#define FIRST_ID(of, order) "(SELECT x.id FROM %w x WHERE x.run_id = " of ".run_id " order " LIMIT 1)"

#define LAST_ROLL  "(SELECT max(o.roll) FROM roll o WHERE o.run_id = r.run_id)"
#define ROLL_BEGIN FIRST_ID("e", "AND x.roll = e.roll ORDER BY x.id")
#define NEXT_BEGIN FIRST_ID("e", "AND x.roll > e.roll ORDER BY x.roll, x.id")
#define LAST_BEGIN FIRST_ID("r", "AND x.roll <= " LAST_ROLL " ORDER BY x.roll DESC, x.id")

/* What is read lap by lap: rolls of which a part matches, and what comes after the last roll of each run. */
#define PIECES \
    "piece AS MATERIALIZED (SELECT e.run_id AS run_id, " ROLL_BEGIN " AS first, coalesce(" NEXT_BEGIN ", " NO_END \
    ") AS until, e.roll AS from_roll, e.roll AS until_roll FROM extent e WHERE NOT e.is_whole UNION ALL SELECT" \
    " r.run_id, coalesce(" LAST_BEGIN ", 0), " NO_END ", coalesce(" LAST_ROLL ", 0) + 1, " NO_END \
    " FROM run r WHERE r.run_id IN " SELECTED_RUNS ")"

static void put_columns(sqlite3_str *sql, weir_subject subject, const char *table)
{
    const char *columns[WEIR_MAX_COLUMNS];
    for (size_t i = 0, count = weir__lap_table_columns(subject, columns); i < count; i++)
        sqlite3_str_appendf(sql, "%s%s.%s", i ? ", " : " SELECT ", table, columns[i]);
}

char *weir__rolled_laps(weir_subject subject, const char *is_whole)
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql,
                        "(WITH extent AS MATERIALIZED (SELECT r.run_id, r.roll, %s AS is_whole FROM roll r WHERE "
                        "r.run_id IN " SELECTED_RUNS " AND " SOME_MATCH "), ",
                        is_whole ? is_whole : "1");
    sqlite3_str_appendf(sql, PIECES, table->rolls, table->rolls, table->rolls);
    put_columns(sql, subject, "x");
    sqlite3_str_appendf(sql,
                        ", x.num_laps, x.start_time FROM extent e CROSS JOIN %w x ON x.run_id = e.run_id AND x.roll ="
                        " e.roll WHERE e.is_whole UNION ALL",
                        table->rolls);
    put_columns(sql, subject, "s");
    sqlite3_str_appendf(sql,
                        ", 1, s.timestamp - s.elapsed FROM piece p CROSS JOIN %w s ON s.run_id = p.run_id AND s.id >="
                        " p.first AND s.id < p.until WHERE coalesce(s.roll, " NO_END
                        ") BETWEEN p.from_roll AND p.until_roll)",
                        table->name);
    return sqlite3_str_finish(sql);
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

static int read_number(weir_recording *recording, const char *sql, const weir_filter *filter, int64_t *number,
                       weir_error *error)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(recording->db, sql, -1, &row, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":run"), filter->run_id);
    if (code == SQLITE_OK && sqlite3_bind_parameter_index(row, ":start")) {
        sqlite3_bind_double(row, sqlite3_bind_parameter_index(row, ":start"), (double)filter->start_unix_ns / 1e9);
        sqlite3_bind_double(row, sqlite3_bind_parameter_index(row, ":end"), (double)filter->end_unix_ns / 1e9);
    }
    if (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW)
        *number = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return code == SQLITE_ROW ? WEIR_OK : weir__recording_error(recording, code, error);
}

static bool asks_for_laps(const weir_recording *recording, const weir_filter *filter)
{
    const weir_selection *selected = &recording->selected;
    return filter->by_step || filter->from_phase || filter->until_phase || filter->after_id > 0 ||
           selected->from_mode || selected->until_mode || selected->by_step || selected->section;
}

int weir__rolls_serve(weir_recording *recording, const weir_filter *filter, bool *do_serve, weir_error *error)
{
    static const char sql[] =
        "SELECT EXISTS (SELECT 1 FROM roll WHERE run_id = :run) OR (:run = 0 AND EXISTS (SELECT 1"
        " FROM roll))";
    int64_t has_any = 0;
    *do_serve = false;
    if (recording->is_spdl || asks_for_laps(recording, filter))
        return WEIR_OK;
    int status = read_number(recording, sql, filter, &has_any, error);
    *do_serve = has_any;
    return status;
}

int weir__recording_join_laps(weir_recording *recording, const weir_filter *filter, bool *was_joined,
                              weir_error *error)
{
    static const char sql[] =
        "SELECT coalesce(sum(r.num_laps), 0) FROM roll r WHERE r.run_id IN " SELECTED_RUNS " AND " SOME_MATCH;
    weir_filter resolved = *filter;
    int64_t num_laps = 0;
    bool do_serve = false;
    *was_joined = recording->joins_laps;
    int status = weir__recording_resolve_run(recording, &resolved.run_id, error);
    if (status == WEIR_OK)
        status = weir__rolls_serve(recording, &resolved, &do_serve, error);
    if (status == WEIR_OK && do_serve)
        status = read_number(recording, sql, &resolved, &num_laps, error);
    if (status == WEIR_OK)
        recording->joins_laps = num_laps >= (int64_t)WEIR_ROLL_LAPS * WEIR_ROLL_LAPS;
    return status;
}

void weir__recording_join_laps_end(weir_recording *recording, bool was_joined)
{
    recording->joins_laps = was_joined;
}
