/*
 * Copies runs from one database into another, which ATTACHes the first. The schemas say what is copied: every table
 * with a run_id that both have, and every column of it that both have. Only the ids of the rows are new.
 */
#include <weir/query.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/clock.h>

#include "stats/read/open_recording.h"
#include "stats/schema/database.h"
#include "stats/schema/database_path.h"
#include "stats/schema/record_tables.h"
#include "stats/schema/spdl_views.h"

#define LOCK_LIMIT (10 * WEIR_SECOND)

typedef struct merging {
    weir_recording *from;
    sqlite3 *to;
    const char *to_path;
    weir_merged *merged;
    weir_error *error;
} merging;

/*
 * Makes two texts from the tables that both databases have. The first is the statements that copy their rows. The
 * second is a condition: the source has more rows of a run s than the target has of this run, t. %1$s is the schema
 * of the source. Rolls come last: they get the ids of their first laps, which are new.
 */
static const char make_texts[] =
    "WITH tables AS (SELECT s.name AS name, max(c.name = 'kind') AS has_kind, group_concat(format('\"%%w\"', "
    "c.name), ', ') AS columns,"
    " group_concat(CASE c.name WHEN 'run_id' THEN 'm.to_id' ELSE format('s.\"%%w\"', c.name) END, ', ') AS wanted"
    " FROM %s.sqlite_schema s, pragma_table_info(s.name, '%s') c, pragma_table_info(s.name, 'main') t"
    " WHERE t.name = c.name AND c.name <> 'id' AND (s.type = 'table' OR '%s' = 'temp')"
    " GROUP BY s.name HAVING max(c.name = 'run_id'))"
    " SELECT group_concat(format('INSERT INTO main.\"%%w\" (%%s%%s) SELECT %%s%%s FROM %s.\"%%w\" s JOIN temp.moved "
    "m ON"
    " s.run_id = m.from_id WHERE m.to_id ORDER BY m.to_id, %s;', name, iif(is_rolls, 'id, ', ''), columns,"
    " iif(is_rolls, format('(SELECT min(c.id) FROM main.\"%%w\" c WHERE c.name = s.name AND c.timestamp BETWEEN"
    " s.start_time AND s.timestamp AND +c.run_id = m.to_id AND c.roll = s.roll%%s), ', replace(name, '_rolls', "
    "'_stats'), iif(has_kind, ' AND c.kind = s.kind', '')),"
    " ''), wanted, name), ' '),"
    " group_concat(format('(SELECT count(*) FROM %s.\"%%w\" c WHERE c.run_id = s.run_id) > (SELECT count(*) FROM"
    " main.\"%%w\" c WHERE c.run_id = t.run_id)', name, name), ' OR ') FROM (SELECT *, substr(name, -6) = '_rolls' "
    "AS is_rolls FROM"
    " tables ORDER BY is_rolls)";

/* A run that never started is left out. A writer of SPDL adds to the run of SPDL whose pid is 0, never to a merged run. */
static const char find_runs[] =
    "CREATE TEMP TABLE moved AS SELECT s.run_id AS from_id, t.run_id AS old_id, 0 AS to_id, CASE"
    " WHEN s.ended IS NULL AND s.threads IS NULL THEN 'skipped' WHEN t.run_id IS NULL THEN 'added'"
    " WHEN (s.ended IS NOT NULL AND t.ended IS NULL) OR %s THEN 'replaced' ELSE 'present' END AS what"
    " FROM %s.run s LEFT JOIN main.run t ON t.run_id = (SELECT run_id FROM main.run"
    " WHERE (node_id, rank, max(pid, 0), started, command) = (s.node_id, s.rank, max(s.pid, 0), s.started, "
    "s.command) LIMIT 1);"
    "DELETE FROM main.run WHERE run_id IN (SELECT old_id FROM temp.moved WHERE what = 'replaced');" /* and its rows */
    "UPDATE temp.moved SET to_id = (SELECT coalesce(max(run_id), 0) FROM main.run) + (SELECT count(*)"
    " FROM temp.moved o WHERE o.what IN ('added', 'replaced') AND o.from_id <= moved.from_id)"
    " WHERE what IN ('added', 'replaced');";

static const char close_runs[] =
    "UPDATE main.run SET pid = -1 WHERE version = 'SPDL' AND run_id IN (SELECT to_id FROM "
    "temp.moved)";

static const char count_runs[] = "SELECT sum(what = 'added'), sum(what = 'replaced'), sum(what = 'present'),"
                                 " sum(what = 'skipped') FROM temp.moved";

/* Prepares a statement from a format, and steps to its only row. The text comes from sqlite3_mprintf(). */
static int read_single_row(sqlite3 *db, char *sql, sqlite3_stmt **row)
{
    *row = NULL;
    int code = sql ? sqlite3_prepare_v2(db, sql, -1, row, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (code == SQLITE_OK)
        code = sqlite3_step(*row);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

static int run_sql(sqlite3 *db, char *sql)
{
    int code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return code;
}

/* Returns a SQLITE_ code. */
static int copy_runs(merging *m)
{
    const char *from = m->from->is_spdl ? "temp" : "source", *order = m->from->is_spdl ? "1" : "s.rowid";
    sqlite3_stmt *texts, *counts = NULL;
    int code = read_single_row(m->to, sqlite3_mprintf(make_texts, from, from, from, from, order, from), &texts);
    if (code == SQLITE_OK)
        code = run_sql(m->to, sqlite3_mprintf(find_runs, weir__column_text(texts, 1), from));
    if (code == SQLITE_OK)
        code = run_sql(m->to, sqlite3_mprintf("%s", weir__column_text(texts, 0)));
    if (code == SQLITE_OK)
        code = sqlite3_exec(m->to, close_runs, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = read_single_row(m->to, sqlite3_mprintf(count_runs), &counts);
    if (code == SQLITE_OK)
        *m->merged = (weir_merged){ .added = sqlite3_column_int64(counts, 0),
                                    .replaced = sqlite3_column_int64(counts, 1),
                                    .present = sqlite3_column_int64(counts, 2),
                                    .skipped = sqlite3_column_int64(counts, 3) };
    sqlite3_finalize(texts);
    sqlite3_finalize(counts);
    return code;
}

/* Returns a SQLITE_ code. */
static int copy_in_transaction(merging *m)
{
    int code = m->from->is_spdl ? weir__spdl_make_views(m->to, true) : SQLITE_OK;
    if (code == SQLITE_OK)
        code = sqlite3_exec(m->to, "PRAGMA foreign_keys = ON; BEGIN IMMEDIATE; PRAGMA defer_foreign_keys = ON", NULL,
                            NULL, NULL);
    if (code == SQLITE_OK)
        code = copy_runs(m);
    if (code == SQLITE_OK)
        code = sqlite3_exec(m->to, "COMMIT", NULL, NULL, NULL);
    return code;
}

static int merge_attached(merging *m)
{
    bool is_immutable = sqlite3_uri_boolean(sqlite3_db_filename(m->from->db, "main"), "immutable", 0);
    char *uri = weir__path_as_uri(m->from->path, is_immutable ? "immutable=1" : "mode=ro");
    char what[400];
    if (!uri)
        return weir__recording_out_of_memory(m->error);
    sqlite3_busy_timeout(m->to, (int)(LOCK_LIMIT / WEIR_MILLISECOND));
    int code = run_sql(m->to, sqlite3_mprintf("ATTACH %Q AS source", uri));
    free(uri);
    if (code == SQLITE_OK)
        code = copy_in_transaction(m);
    if (code == SQLITE_OK)
        code = sqlite3_exec(m->to, "DETACH source", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return WEIR_OK;
    snprintf(what, sizeof what, "cannot copy the runs of %s into", weir__path_for_message(m->from->path).text);
    int status = weir__database_error(m->error, m->to, code, what, m->to_path);
    if (!sqlite3_get_autocommit(m->to))
        sqlite3_exec(m->to, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static int check_paths(const char *to, const char *from, weir_error *error)
{
    struct stat to_info, from_info;
    if (stat(to, &to_info) == 0 && stat(from, &from_info) == 0 && to_info.st_dev == from_info.st_dev &&
        to_info.st_ino == from_info.st_ino)
        return weir_error_set(error, WEIR_EINVAL, 0, "database %s cannot be merged into itself; give another path",
                              weir__path_for_message(from).text);
    return WEIR_OK;
}

static int fill_new(void *self, sqlite3 *db)
{
    merging *m = self;
    m->to = db;
    int status = merge_attached(m);
    m->to = NULL;
    return status;
}

/* Makes the database with the runs, or no database. *was_made false: one exists already. */
static int merge_into_new(merging *m, bool *was_made)
{
    *was_made = false;
    int status = weir__path_prepare_writing(m->to_path, m->error);
    if (status == WEIR_OK && access(m->to_path, F_OK) != 0)
        status = weir__database_make(m->to_path, weir_clock_ns() + LOCK_LIMIT, fill_new, m, was_made, m->error);
    return status;
}

static int merge_into_old(merging *m)
{
    int status = weir__database_open_writer(m->to_path, weir_clock_ns() + LOCK_LIMIT, &m->to, m->error);
    if (status == WEIR_OK)
        status = merge_attached(m);
    weir__database_close(m->to);
    return status;
}

int weir_database_merge(const char *to, const char *from, weir_merged *merged, weir_error *error)
{
    if (!to || !from || !merged)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    merging m = { .to_path = to, .merged = merged, .error = error };
    bool was_made = false;
    int status = check_paths(to, from, error);
    *merged = (weir_merged){ .added = 0 };
    if (status == WEIR_OK)
        status = weir_recording_open(from, &m.from, error);
    if (status == WEIR_OK)
        status = merge_into_new(&m, &was_made);
    if (status == WEIR_OK && !was_made)
        status = merge_into_old(&m);
    weir_recording_close(m.from);
    if (status != WEIR_OK)
        *merged = (weir_merged){ .added = 0 };
    return status;
}
