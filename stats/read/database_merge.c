/*
 * Copies runs from one database into another. Each has its own connection and rows are copied one by one, so that
 * either may be anywhere and in use. The schemas say what is copied: `run` and every table with a run_id, and every
 * column that both have, except the row's id, which is new.
 */
#include <weir/maintain.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/clock.h>

#include "database.h"
#include "database_path.h"
#include "database_reader.h"
#include "record_tables.h"

#define LOCK_LIMIT (10 * WEIR_SECOND)

enum { MAX_TABLES = 32 };

typedef struct table_copy {
    char *name;
    sqlite3_stmt *rows;   /* of the run at the source */
    sqlite3_stmt *insert; /* with the run as the first value */
    sqlite3_stmt *count;  /* of the rows of a run at the target */
} table_copy;

typedef struct merging {
    weir_reader *from;
    sqlite3 *to;
    const char *to_path;
    sqlite3_stmt *runs; /* of the source */
    sqlite3_stmt *find, *insert_run, *remove_run;
    table_copy tables[MAX_TABLES];
    size_t num_tables;
    weir_merged *merged;
    weir_error *error;
} merging;

static int fail_merge(merging *m, int code)
{
    return weir__reader_error(m->from, code, m->error);
}

static int write_failed(merging *m, int code)
{
    return weir__database_error(m->error, m->to, code, "cannot write to", m->to_path);
}

/* -- what is copied */

/* *columns: those that both tables have, except `without`; "" if none. Free with sqlite3_free(). */
static int common_columns(merging *m, const char *table, const char *without, char **columns)
{
    int code;
    char *rest, *from = weir__table_columns(m->from->db, table, &code);
    char *to = code == SQLITE_OK ? weir__table_columns(m->to, table, &code) : NULL;
    sqlite3_str *text = sqlite3_str_new(m->to);
    for (char *name = to ? strtok_r(to, " ", &rest) : NULL; name; name = strtok_r(NULL, " ", &rest))
        if (strcmp(name, without) != 0 && from && weir__has_word(from, name))
            sqlite3_str_appendf(text, "%s\"%w\"", sqlite3_str_length(text) ? ", " : "", name);
    sqlite3_free(from);
    sqlite3_free(to);
    code = code == SQLITE_OK ? sqlite3_str_errcode(text) : code;
    *columns = sqlite3_str_finish(text);
    if (!*columns && code == SQLITE_OK)
        *columns = sqlite3_mprintf("");
    return *columns && code == SQLITE_OK ? WEIR_OK : fail_merge(m, code == SQLITE_OK ? SQLITE_NOMEM : code);
}

/* Prepares a statement from a format; the text comes from sqlite3_mprintf(). */
static int prepare_merge(sqlite3 *db, char *sql, sqlite3_stmt **statement)
{
    int code = sql ? sqlite3_prepare_v2(db, sql, -1, statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return code;
}

/* Prepares to read these columns of a run, behind some others, and to insert them. */
static int prepare_copy(merging *m, const char *table, const char *columns, char *select, sqlite3_stmt **rows,
                        int num_others, sqlite3_stmt **insert)
{
    int code = prepare_merge(m->from->db, select, rows);
    if (code != SQLITE_OK)
        return fail_merge(m, code);
    sqlite3_str *marks = sqlite3_str_new(m->to);
    for (int i = num_others; i < sqlite3_column_count(*rows); i++)
        sqlite3_str_appendall(marks, i > num_others ? ", ?" : "?");
    char *values = sqlite3_str_finish(marks);
    code =
        prepare_merge(m->to, sqlite3_mprintf("INSERT INTO \"%w\" (%s) VALUES (%s)", table, columns, values), insert);
    sqlite3_free(values);
    return code == SQLITE_OK ? WEIR_OK : write_failed(m, code);
}

static int prepare_table(merging *m, table_copy *table, const char *columns)
{
    char *select = sqlite3_mprintf("SELECT %s FROM \"%w\" WHERE run_id = ? ORDER BY %s", columns, table->name,
                                   m->from->is_spdl ? "1" : "rowid"); /* the first column is the timestamp */
    int status = prepare_copy(m, table->name, columns, select, &table->rows, 0, &table->insert);
    if (status != WEIR_OK)
        return status;
    int code = prepare_merge(m->to, sqlite3_mprintf("SELECT count(*) FROM \"%w\" WHERE run_id = ?", table->name),
                             &table->count);
    return code == SQLITE_OK ? WEIR_OK : write_failed(m, code);
}

/* Every table with a run_id that both have, except `run`. */
static int find_tables(merging *m)
{
    static const char sql[] = "SELECT s.name FROM (SELECT name, type FROM main.sqlite_schema"
                              " UNION SELECT name, type FROM temp.sqlite_schema) s, pragma_table_info(s.name) c "
                              "WHERE s.type = 'table' AND c.name = 'run_id' AND s.name <> 'run'";
    sqlite3_stmt *found = NULL;
    int code = sqlite3_prepare_v2(m->from->db, sql, -1, &found, NULL);
    int status = code == SQLITE_OK ? WEIR_OK : fail_merge(m, code);
    while (status == WEIR_OK && (code = sqlite3_step(found)) == SQLITE_ROW && m->num_tables < MAX_TABLES) {
        char *columns;
        status = common_columns(m, weir__column_text(found, 0), "id", &columns);
        if (status == WEIR_OK && *columns) {
            table_copy *table = &m->tables[m->num_tables++];
            table->name = strdup(weir__column_text(found, 0));
            status = table->name ? prepare_table(m, table, columns) : weir__reader_out_of_memory(m->error);
        }
        sqlite3_free(columns);
    }
    if (status == WEIR_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        status = fail_merge(m, code);
    sqlite3_finalize(found);
    return status;
}

/* The columns of `run` that the merging itself uses come first. */
enum { RUN_ID, RUN_ENDED, RUN_THREADS, RUN_IDENTITY, NUM_IDENTITY = 5, RUN_COLUMNS = RUN_IDENTITY + NUM_IDENTITY };
#define IDENTITY "node_id, rank, pid, started, command"

static int prepare_all(merging *m)
{
    char *columns;
    int status = common_columns(m, "run", "run_id", &columns);
    if (status == WEIR_OK)
        status = prepare_copy(
            m, "run", columns,
            sqlite3_mprintf("SELECT run_id, ended, threads, " IDENTITY ", %s FROM run ORDER BY run_id", columns),
            &m->runs, RUN_COLUMNS, &m->insert_run);
    sqlite3_free(columns);
    if (status != WEIR_OK)
        return status;
    int code = prepare_merge(
        m->to, sqlite3_mprintf("SELECT run_id, ended FROM run WHERE (" IDENTITY ") = (?, ?, ?, ?, ?)"), &m->find);
    if (code == SQLITE_OK)
        code = prepare_merge(m->to, sqlite3_mprintf("DELETE FROM run WHERE run_id = ?"), &m->remove_run);
    return code == SQLITE_OK ? find_tables(m) : write_failed(m, code);
}

/* -- one run */

static int count_rows(sqlite3_stmt *count, int64_t run_id, int64_t *rows)
{
    int code = sqlite3_bind_int64(count, 1, run_id);
    if (code == SQLITE_OK)
        code = sqlite3_step(count);
    *rows = code == SQLITE_ROW ? sqlite3_column_int64(count, 0) : 0;
    sqlite3_reset(count);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

/* Whether the source has more of the run than the target: more rows, or the run's end. */
static int compare_run(merging *m, int64_t from_id, bool from_ended, int64_t to_id, bool to_ended, bool *has_more)
{
    *has_more = from_ended && !to_ended;
    for (size_t i = 0; i < m->num_tables && !*has_more; i++) {
        int64_t there, here;
        sqlite3_stmt *count = NULL;
        int code = prepare_merge(
            m->from->db, sqlite3_mprintf("SELECT count(*) FROM \"%w\" WHERE run_id = ?", m->tables[i].name), &count);
        if (code == SQLITE_OK)
            code = count_rows(count, from_id, &there);
        sqlite3_finalize(count);
        if (code != SQLITE_OK)
            return fail_merge(m, code);
        code = count_rows(m->tables[i].count, to_id, &here);
        if (code != SQLITE_OK)
            return write_failed(m, code);
        *has_more = there > here;
    }
    return WEIR_OK;
}

static int copy_rows(merging *m, table_copy *table, int64_t from_id, int64_t to_id)
{
    int read_code, write_code = sqlite3_bind_int64(table->rows, 1, from_id);
    while (write_code == SQLITE_OK && (read_code = sqlite3_step(table->rows)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(table->rows); i++)
            if (strcmp(sqlite3_column_name(table->rows, i), "run_id") == 0)
                sqlite3_bind_int64(table->insert, i + 1, to_id);
            else
                sqlite3_bind_value(table->insert, i + 1, sqlite3_column_value(table->rows, i));
        write_code = sqlite3_step(table->insert);
        write_code = write_code == SQLITE_DONE ? SQLITE_OK : write_code;
        sqlite3_reset(table->insert);
    }
    sqlite3_reset(table->rows);
    if (write_code != SQLITE_OK)
        return write_failed(m, write_code);
    return read_code == SQLITE_DONE ? WEIR_OK : fail_merge(m, read_code);
}

static int execute_merge(merging *m, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? WEIR_OK : write_failed(m, code);
}

static int copy_run(merging *m, int64_t from_id)
{
    for (int i = RUN_COLUMNS; i < sqlite3_column_count(m->runs); i++)
        sqlite3_bind_value(m->insert_run, i + 1 - RUN_COLUMNS, sqlite3_column_value(m->runs, i));
    int status = execute_merge(m, m->insert_run);
    int64_t to_id = sqlite3_last_insert_rowid(m->to);
    for (size_t i = 0; i < m->num_tables && status == WEIR_OK; i++)
        status = copy_rows(m, &m->tables[i], from_id, to_id);
    return status;
}

/* *to_id is the run's id at the target, 0 = not there. */
static int find_run(merging *m, int64_t *to_id, bool *has_ended)
{
    for (int i = 0; i < NUM_IDENTITY; i++)
        sqlite3_bind_value(m->find, i + 1, sqlite3_column_value(m->runs, RUN_IDENTITY + i));
    int code = sqlite3_step(m->find);
    *to_id = code == SQLITE_ROW ? sqlite3_column_int64(m->find, 0) : 0;
    *has_ended = code == SQLITE_ROW && sqlite3_column_type(m->find, 1) != SQLITE_NULL;
    sqlite3_reset(m->find);
    return code == SQLITE_ROW || code == SQLITE_DONE ? WEIR_OK : write_failed(m, code);
}

static int merge_run(merging *m)
{
    int64_t from_id = sqlite3_column_int64(m->runs, RUN_ID), to_id;
    bool from_ended = sqlite3_column_type(m->runs, RUN_ENDED) != SQLITE_NULL, to_ended, has_more = false;
    if (!from_ended && sqlite3_column_type(m->runs, RUN_THREADS) == SQLITE_NULL) { /* those of profiles have ended */
        m->merged->skipped++;
        return WEIR_OK;
    }
    int status = find_run(m, &to_id, &to_ended);
    if (status == WEIR_OK && to_id)
        status = compare_run(m, from_id, from_ended, to_id, to_ended, &has_more);
    if (status != WEIR_OK)
        return status;
    if (to_id && !has_more) {
        m->merged->present++;
        return WEIR_OK;
    }
    if (to_id) {
        sqlite3_bind_int64(m->remove_run, 1, to_id);
        status = execute_merge(m, m->remove_run); /* its rows are deleted too: foreign keys are on */
    }
    if (status == WEIR_OK)
        status = copy_run(m, from_id);
    ++*(to_id ? &m->merged->replaced : &m->merged->added);
    return status;
}

static int merge_runs(merging *m)
{
    int status = WEIR_OK, code = SQLITE_DONE;
    while (status == WEIR_OK && (code = sqlite3_step(m->runs)) == SQLITE_ROW)
        status = merge_run(m);
    return status == WEIR_OK && code != SQLITE_DONE ? fail_merge(m, code) : status;
}

/* -- all of it */

static int check_paths(const char *to, const char *from, weir_error *error)
{
    struct stat to_info, from_info;
    if (stat(to, &to_info) == 0 && stat(from, &from_info) == 0 && to_info.st_dev == from_info.st_dev &&
        to_info.st_ino == from_info.st_ino)
        return weir_error_set(error, WEIR_EINVAL, 0, "database %s cannot be merged into itself; give another path",
                              weir__path_for_message(from).text);
    return WEIR_OK;
}

static void finish_merge(merging *m)
{
    sqlite3_finalize(m->runs);
    sqlite3_finalize(m->find);
    sqlite3_finalize(m->insert_run);
    sqlite3_finalize(m->remove_run);
    for (size_t i = 0; i < m->num_tables; i++) {
        sqlite3_finalize(m->tables[i].rows);
        sqlite3_finalize(m->tables[i].insert);
        sqlite3_finalize(m->tables[i].count);
        free(m->tables[i].name);
    }
}

static int merge_in_transaction(merging *m)
{
    int code = sqlite3_exec(m->to, "PRAGMA foreign_keys = ON; BEGIN IMMEDIATE", NULL, NULL, NULL);
    int status = code == SQLITE_OK ? prepare_all(m) : write_failed(m, code);
    if (status == WEIR_OK)
        status = merge_runs(m);
    finish_merge(m);
    if (status == WEIR_OK && (code = sqlite3_exec(m->to, "COMMIT", NULL, NULL, NULL)) != SQLITE_OK)
        status = write_failed(m, code);
    if (status != WEIR_OK && !sqlite3_get_autocommit(m->to))
        sqlite3_exec(m->to, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static int fill_new(void *self, sqlite3 *db)
{
    merging *m = self;
    m->to = db;
    int status = merge_in_transaction(m);
    m->to = NULL;
    return status;
}

/* A new database is there with the runs, or not at all. *was_made false: it is there already. */
static int merge_into_new(merging *m, bool *was_made)
{
    *was_made = false;
    int status = weir__path_prepare_writing(m->to_path, m->error);
    if (status == WEIR_OK && access(m->to_path, F_OK) != 0)
        status = weir__database_make(m->to_path, weir_clock_ns() + LOCK_LIMIT, fill_new, m, was_made, m->error);
    if (status == WEIR_OK && !*was_made) {
        m->num_tables = 0;
        *m->merged = (weir_merged){ .added = 0 };
    }
    return status;
}

static int merge_into_old(merging *m)
{
    int status = weir__database_open_writer(m->to_path, weir_clock_ns() + LOCK_LIMIT, &m->to, m->error);
    if (status == WEIR_OK) {
        sqlite3_busy_timeout(m->to, (int)(LOCK_LIMIT / WEIR_MILLISECOND));
        status = merge_in_transaction(m);
    }
    weir__database_close(m->to);
    return status;
}

int weir_database_merge(const char *to, const char *from, weir_merged *merged, weir_error *error)
{
    if (!to || !from || !merged)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    merging m = { .to_path = to, .merged = merged, .error = error };
    *merged = (weir_merged){ .added = 0 };
    bool was_made = false;
    int status = check_paths(to, from, error);
    if (status == WEIR_OK)
        status = weir_reader_open(from, &m.from, error);
    if (status == WEIR_OK)
        status = weir_reader_hold(m.from, error);
    if (status == WEIR_OK)
        status = merge_into_new(&m, &was_made);
    if (status == WEIR_OK && !was_made)
        status = merge_into_old(&m);
    weir_reader_close(m.from);
    if (status != WEIR_OK)
        *merged = (weir_merged){ .added = 0 };
    return status;
}
