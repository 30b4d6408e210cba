#include "stats/read/database_reader.h"

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

int weir__reader_error(const weir_reader *reader, int code, weir_error *error)
{
    return weir__database_error(error, reader->db, code, "cannot read", reader->path);
}

int weir__reader_out_of_memory(weir_error *error)
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
static int prepare_connection(weir_reader *reader)
{
    reader->is_spdl = reader->schema == WEIR_SCHEMA_SPDL;
    int code = weir__functions_register(reader->db);
    if (code == SQLITE_OK && reader->is_spdl)
        code = weir__spdl_make_views(reader->db, false);
    if (code == SQLITE_OK)
        code = weir__tables_complete(reader->db, reader->is_spdl ? "temp" : "main", reader->is_spdl ? "spdl_" : "");
    return code;
}

int weir__reader_open_database(const char *path, const char *memory_name, weir_reader **opened, weir_error *error)
{
    weir_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return weir__reader_out_of_memory(error);
    reader->path = strdup(path);
    int status = reader->path ? WEIR_OK : weir__reader_out_of_memory(error);
    if (status == WEIR_OK)
        status = *memory_name ? weir__database_open_memory(memory_name, &reader->db, &reader->schema, path, error)
                              : weir__database_open_reader(path, &reader->db, &reader->schema, error);
    int code = status == WEIR_OK ? prepare_connection(reader) : SQLITE_OK;
    if (code != SQLITE_OK)
        status = weir__reader_error(reader, code, error);
    if (status == WEIR_OK)
        *opened = reader;
    else
        weir_reader_close(reader);
    return status;
}

int weir_reader_open(const char *path, weir_reader **opened, weir_error *error)
{
    if (!path || !opened)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *opened = NULL;
    return weir__reader_open_database(path, "", opened, error);
}

void weir_reader_close(weir_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < WEIR_NUM_SUBJECTS; i++)
        sqlite3_finalize(reader->idle[i]);
    weir__database_close(reader->db); /* ends a hold */
    free(reader->path);
    free(reader->run);
    sqlite3_free(reader->sql);
    free(reader);
}

const char *weir_reader_path(const weir_reader *reader)
{
    if (!reader)
        return "";
    return reader->path;
}

int weir_reader_hold(weir_reader *reader, weir_error *error)
{
    if (!reader)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    if (reader->num_held++)
        return WEIR_OK;
    /* The snapshot is taken by the first read, not by BEGIN. */
    int code = sqlite3_exec(reader->db, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return WEIR_OK;
    int status = weir__reader_error(reader, code, error);
    weir_reader_release(reader);
    return status;
}

void weir_reader_release(weir_reader *reader)
{
    if (!reader)
        return;
    if (--reader->num_held == 0 && !sqlite3_get_autocommit(reader->db))
        sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL); /* nothing was written */
}

/* -- the statement */

void weir__reader_note_sql(weir_reader *reader, sqlite3_stmt *statement)
{
    sqlite3_free(reader->sql);
    reader->sql = statement ? sqlite3_expanded_sql(statement) : NULL;
}

void weir__statement_idle(weir_reader *reader, sqlite3_stmt *statement)
{
    if (!statement)
        return;
    sqlite3_stmt **place = &reader->idle[reader->num_idled++ % WEIR_NUM_SUBJECTS];
    sqlite3_reset(statement);
    sqlite3_finalize(*place);
    *place = statement;
}

const char *weir_reader_sql(const weir_reader *reader)
{
    return reader ? reader->sql : NULL;
}

/* -- runs */

const char *weir_reader_lacks(const weir_reader *reader)
{
    return reader && reader->is_spdl
               ? "recorded by SPDL, which stores no slot times, CPU times, histograms, failures and runs: "
                 "percentiles of more than a lap and single runs are not known"
               : NULL;
}

static int no_such_run(const weir_reader *reader, int64_t run_id, weir_error *error)
{
    const weir_path_text text = weir__path_for_message(reader->path);
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

int weir_reader_find_run(weir_reader *reader, int64_t run_id, weir_run_record *run, weir_error *error)
{
    if (!reader || !run)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_record record = { .kind = WEIR_RECORD_RUN };
    sqlite3_stmt *row;
    int status = WEIR_OK, code = select_run(reader->db, run_id, &row);
    if (code == SQLITE_OK)
        code = sqlite3_step(row);
    if (code == SQLITE_ROW) {
        weir__record_read(row, WEIR_RECORD_RUN, &record);
        free(reader->run);
        reader->run = weir__record_entry_of(&record);
        status = reader->run ? WEIR_OK : weir__reader_out_of_memory(error);
    } else
        status = code == SQLITE_DONE ? no_such_run(reader, run_id, error) : weir__reader_error(reader, code, error);
    sqlite3_finalize(row);
    if (status == WEIR_OK)
        *run = reader->run->record.run;
    return status;
}

int weir__reader_resolve_run(weir_reader *reader, int64_t *run_id, weir_error *error)
{
    if (*run_id == WEIR_ALL_RUNS)
        return WEIR_OK;
    weir_run_record run = { 0 };
    int status = weir_reader_find_run(reader, *run_id, &run, error);
    if (status == WEIR_OK)
        *run_id = run.run_id;
    return status;
}
