#include "stats/read/open_recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

#include "stats/read/sql_functions.h"
#include "stats/record/record.h"
#include "stats/schema/database.h"
#include "stats/schema/database_path.h"
#include "stats/schema/record_tables.h"
#include "stats/schema/schema.h"
#include "stats/schema/spdl_views.h"
#include "stats/schema/tables.h"

int weir__recording_error(const weir_recording *recording, int code, weir_error *error)
{
    return weir__database_error(error, recording->db, code, "cannot read", recording->path);
}

int weir__recording_out_of_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

int weir__check_written(FILE *out, const char *what, weir_error *error)
{
    errno = 0;
    if (fflush(out) == 0 && !ferror(out))
        return WEIR_OK;
    int failure = errno ? errno : EIO;
    return weir_error_set(error, WEIR_EIO, -failure, "%s: %s", what, strerror(failure));
}

/* What queries need in the connection. A SQLITE_ code. */
static int prepare_connection(weir_recording *recording)
{
    recording->is_spdl = recording->schema == WEIR_SCHEMA_SPDL;
    int code = weir__functions_register(recording->db);
    if (code == SQLITE_OK && recording->is_spdl)
        code = weir__spdl_make_views(recording->db, false);
    if (code == SQLITE_OK)
        code = weir__tables_complete(recording->db, recording->is_spdl ? "temp" : "main",
                                     recording->is_spdl ? "spdl_" : "");
    return code;
}

int weir__recording_open_database(const char *path, const char *memory_name, weir_recording **opened,
                                  weir_error *error)
{
    weir_recording *recording = calloc(1, sizeof *recording);
    if (!recording)
        return weir__recording_out_of_memory(error);
    recording->path = strdup(path);
    int status = recording->path ? WEIR_OK : weir__recording_out_of_memory(error);
    if (status == WEIR_OK)
        status = *memory_name
                     ? weir__database_open_memory(memory_name, &recording->db, &recording->schema, path, error)
                     : weir__database_open_reader(path, &recording->db, &recording->schema, error);
    int code = status == WEIR_OK ? prepare_connection(recording) : SQLITE_OK;
    if (code != SQLITE_OK)
        status = weir__recording_error(recording, code, error);
    if (status == WEIR_OK)
        *opened = recording;
    else
        weir_recording_close(recording);
    return status;
}

int weir_recording_open(const char *path, weir_recording **opened, weir_error *error)
{
    if (!path || !opened)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *opened = NULL;
    return weir__recording_open_database(path, "", opened, error);
}

void weir_recording_close(weir_recording *recording)
{
    if (!recording)
        return;
    for (size_t i = 0; i < WEIR_NUM_SUBJECTS; i++)
        sqlite3_finalize(recording->idle[i]);
    weir__database_close(recording->db); /* ends a hold */
    free(recording->path);
    free(recording->run);
    sqlite3_free(recording->sql);
    free(recording);
}

const char *weir_recording_path(const weir_recording *recording)
{
    if (!recording)
        return "";
    return recording->path;
}

int weir_recording_hold(weir_recording *recording, weir_error *error)
{
    if (!recording)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    if (recording->num_held++)
        return WEIR_OK;
    /* The snapshot is taken by the first read, not by BEGIN. */
    int code = sqlite3_exec(recording->db, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return WEIR_OK;
    int status = weir__recording_error(recording, code, error);
    weir_recording_release(recording);
    return status;
}

void weir_recording_release(weir_recording *recording)
{
    if (!recording)
        return;
    if (--recording->num_held == 0 && !sqlite3_get_autocommit(recording->db))
        sqlite3_exec(recording->db, "COMMIT", NULL, NULL, NULL); /* nothing was written */
}

/* -- the statement */

void weir__recording_note_sql(weir_recording *recording, sqlite3_stmt *statement)
{
    sqlite3_free(recording->sql);
    recording->sql = statement ? sqlite3_expanded_sql(statement) : NULL;
}

void weir__statement_idle(weir_recording *recording, sqlite3_stmt *statement)
{
    if (!statement)
        return;
    sqlite3_stmt **place = &recording->idle[recording->num_idled++ % WEIR_NUM_SUBJECTS];
    sqlite3_reset(statement);
    sqlite3_finalize(*place);
    *place = statement;
}

const char *weir_recording_sql(const weir_recording *recording)
{
    return recording ? recording->sql : NULL;
}

/* -- runs */

const char *weir_recording_lacks(const weir_recording *recording)
{
    return recording && recording->is_spdl
               ? "recorded by SPDL, which stores no slot times, CPU times, histograms, failures and runs: "
                 "percentiles of more than a lap and single runs are not known"
               : NULL;
}

static int no_such_run(const weir_recording *recording, int64_t run_id, weir_error *error)
{
    const weir_path_text text = weir__path_for_message(recording->path);
    if (run_id == WEIR_LAST_RUN)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "database %s holds no run yet", text.text);
    if (run_id == WEIR_PREVIOUS_RUN)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "database %s holds no run before the last one", text.text);
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "database %s holds no run %" PRId64, text.text, run_id);
}

/* Prepares to read a run. Returns a SQLITE_ code. */
static int select_run(sqlite3 *db, int64_t run_id, sqlite3_stmt **row)
{
    *row = NULL; /* merged runs are numbered in the order of merging, not of their starts */
    char *columns = weir__record_expressions(WEIR_RECORD_RUN);
    char *sql = sqlite3_mprintf("SELECT %s FROM (SELECT *, ended IS NULL"
                                " OR EXISTS (SELECT 1 FROM queue_stats q WHERE q.run_id = r.run_id)"
                                " OR EXISTS (SELECT 1 FROM task_stats s WHERE s.run_id = r.run_id) AS has_laps"
                                " FROM run r) t WHERE ?1 IN (t.run_id, -1) OR (?1 = -2 AND t.has_laps)"
                                " ORDER BY t.has_laps DESC, t.started DESC, t.run_id DESC LIMIT 1 OFFSET ?1 = -2",
                                columns ? columns : "no_such_column");
    int code = sql ? sqlite3_prepare_v2(db, sql, -1, row, NULL) : SQLITE_NOMEM;
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(*row, 1, run_id);
    sqlite3_free(columns);
    sqlite3_free(sql);
    return code;
}

int weir_recording_find_run(weir_recording *recording, int64_t run_id, weir_run_record *run, weir_error *error)
{
    if (!recording || !run)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_record record = { .kind = WEIR_RECORD_RUN };
    sqlite3_stmt *row;
    int status = WEIR_OK, code = select_run(recording->db, run_id, &row);
    if (code == SQLITE_OK)
        code = sqlite3_step(row);
    if (code == SQLITE_ROW) {
        weir__record_read(row, WEIR_RECORD_RUN, &record);
        free(recording->run);
        recording->run = weir__record_entry_of(&record);
        status = recording->run ? WEIR_OK : weir__recording_out_of_memory(error);
    } else
        status = code == SQLITE_DONE ? no_such_run(recording, run_id, error)
                                     : weir__recording_error(recording, code, error);
    sqlite3_finalize(row);
    if (status == WEIR_OK)
        *run = recording->run->record.run;
    return status;
}

int weir__recording_resolve_run(weir_recording *recording, int64_t *run_id, weir_error *error)
{
    if (*run_id == WEIR_ALL_RUNS)
        return WEIR_OK;
    weir_run_record run = { 0 };
    int status = weir_recording_find_run(recording, *run_id, &run, error);
    if (status == WEIR_OK)
        *run_id = run.run_id;
    return status;
}
