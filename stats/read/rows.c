/*
 * Rows of a program's SELECT. Its tables are subqueries with the conditions of the filter, so that it needs none of its own.
 *
 * SQLite has types of values, not of columns. A column that a table declares has the declared type, and weir's
 * writers keep to it. The type of an expression follows from its values: they are looked at first, in the same
 * snapshot, until the type cannot change any more.
 */
#include <weir/query.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/read/lap_rows.h"
#include "stats/read/open_recording.h"
#include "stats/read/record_selections.h"
#include "stats/read/rolled_laps.h"
#include "stats/schema/record_tables.h"

struct weir_rows {
    weir_recording *recording;
    sqlite3_stmt *statement; /* NULL = at the end */
    size_t num_columns;
    weir_row *cells;          /* of the present row */
    weir_row_column *columns; /* names are ours */
};

/* ---- the tables -------------------------------------------------------------------------------------------------- */

/* The tables of statements, as weir query --list names them; and those of functions. */
static const struct {
    const char *name;
    weir_record_kind kind;
} table_names[] = {
    { "tasks", WEIR_RECORD_TASK },       { "flow", WEIR_RECORD_FLOW },        { "queues", WEIR_RECORD_QUEUE },
    { "pools", WEIR_RECORD_POOL },       { "process", WEIR_RECORD_PROCESS },  { "machine", WEIR_RECORD_MACHINE },
    { "spans", WEIR_RECORD_SPAN },       { "counters", WEIR_RECORD_COUNTER }, { "events", WEIR_RECORD_EVENT },
    { "failures", WEIR_RECORD_FAILURE }, { "items", WEIR_RECORD_ITEM },       { "runs", WEIR_RECORD_RUN },
    { "stages", WEIR_RECORD_STAGE },     { "stacks", WEIR_RECORD_STACK },     { "samples", WEIR_RECORD_SAMPLES },
};
enum { NUM_TABLES = sizeof table_names / sizeof table_names[0] };

/* Only the tables that the statement may be about. */
static int select_rows(weir_recording *recording, const weir_filter *filter, const char *sql,
                       sqlite3_stmt **statement, weir_error *error)
{
    weir_sql_selection tables[NUM_TABLES];
    char *columns[NUM_TABLES], *rolled[NUM_TABLES];
    size_t count = 0;
    for (size_t i = 0; i < NUM_TABLES; i++) {
        const weir_record_kind kind = table_names[i].kind;
        const bool is_lap = weir__record_is_lap(kind);
        if (!strstr(sql, table_names[i].name))
            continue;
        columns[count] =
            is_lap ? weir__lap_table_named_columns(weir__subject_of_laps(kind)) : weir__record_expressions(kind);
        tables[count] = weir__record_selections[is_lap ? WEIR_RECORD_TASK : kind];
        tables[count].name = table_names[i].name;
        const bool is_rolled = is_lap && recording->joins_laps;
        rolled[count] = is_rolled ? weir__rolled_laps(weir__subject_of_laps(kind), NULL) : NULL;
        tables[count].table = rolled[count] ? rolled[count]
                              : is_lap      ? weir__lap_tables[weir__subject_of_laps(kind)].name
                                            : weir__record_table_of(kind)->name;
        bool is_made = columns[count] && (rolled[count] || !is_rolled);
        tables[count].columns = is_made ? columns[count] : "no_such_column"; /* an error */
        count++;
    }
    int status = weir__select_from(recording, tables, count, filter, sql, statement, error);
    while (count-- > 0) {
        sqlite3_free(columns[count]);
        sqlite3_free(rolled[count]);
    }
    return status;
}

const char *weir_recording_table(size_t index)
{
    return index < NUM_TABLES ? table_names[index].name : NULL;
}

/* ---- types -------------------------------------------------------------------------------------------------------- */

/* As SQLite finds the affinity of a declared type. False = it is none of these. */
static bool is_declared(const char *type, weir_row_type *is)
{
    static const struct {
        const char *pattern;
        weir_row_type is;
    } rules[] = {
        { "%INT%", WEIR_ROW_INT },   { "%CHAR%", WEIR_ROW_TEXT },  { "%CLOB%", WEIR_ROW_TEXT },
        { "%TEXT%", WEIR_ROW_TEXT }, { "%BLOB%", WEIR_ROW_BYTES }, { "%REAL%", WEIR_ROW_REAL },
        { "%FLOA%", WEIR_ROW_REAL }, { "%DOUB%", WEIR_ROW_REAL },
    };
    for (size_t i = 0; type && i < sizeof rules / sizeof rules[0]; i++) {
        if (sqlite3_strlike(rules[i].pattern, type, 0) != 0)
            continue;
        *is = rules[i].is;
        return true;
    }
    return false;
}

/* What is known of an expression: nothing before its first value. Numbers can become text, or bytes. */
static void look_at_value(int storage, weir_row_type *type, bool *is_known)
{
    static const weir_row_type types[] = { [SQLITE_INTEGER] = WEIR_ROW_INT,
                                           [SQLITE_FLOAT] = WEIR_ROW_REAL,
                                           [SQLITE_TEXT] = WEIR_ROW_TEXT,
                                           [SQLITE_BLOB] = WEIR_ROW_BYTES };
    if (storage == SQLITE_NULL)
        return;
    if (!*is_known || types[storage] > *type)
        *type = types[storage];
    *is_known = true;
}

/* True = all types are final: no later value can change them. */
static bool look_at_row(const weir_rows *rows, const bool *is_declared_type, bool *is_known)
{
    bool is_final = true;
    for (size_t i = 0; i < rows->num_columns; i++) {
        if (is_declared_type[i])
            continue;
        look_at_value(sqlite3_column_type(rows->statement, (int)i), &rows->columns[i].type, &is_known[i]);
        is_final &= is_known[i] && rows->columns[i].type >= WEIR_ROW_TEXT;
    }
    return is_final;
}

/* A SQLITE_ code. Runs the statement up to the row that decides, and resets it. */
static int look_at_values(weir_rows *rows, const bool *is_declared_type, bool *is_known)
{
    int code;
    while ((code = sqlite3_step(rows->statement)) == SQLITE_ROW)
        if (look_at_row(rows, is_declared_type, is_known))
            break;
    sqlite3_reset(rows->statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* A SQLITE_ code. An expression without any value is a number. */
static int find_types(weir_rows *rows)
{
    bool *known = calloc(2 * rows->num_columns + 1, sizeof *known);
    bool are_all_declared = true;
    if (!known)
        return SQLITE_NOMEM;
    for (size_t i = 0; i < rows->num_columns; i++) {
        rows->columns[i].type = WEIR_ROW_REAL;
        known[i] = is_declared(sqlite3_column_decltype(rows->statement, (int)i), &rows->columns[i].type);
        are_all_declared &= known[i];
    }
    int code = are_all_declared ? SQLITE_OK : look_at_values(rows, known, known + rows->num_columns);
    free(known);
    return code;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

static int make_columns(weir_rows *rows, weir_error *error)
{
    rows->num_columns = (size_t)sqlite3_column_count(rows->statement);
    rows->cells = calloc(rows->num_columns + 1, sizeof *rows->cells);
    rows->columns = calloc(rows->num_columns + 1, sizeof *rows->columns);
    if (!rows->cells || !rows->columns)
        return weir__recording_out_of_memory(error);
    for (size_t i = 0; i < rows->num_columns; i++) {
        const char *name = sqlite3_column_name(rows->statement, (int)i);
        rows->columns[i].name = name ? strdup(name) : NULL;
        if (!rows->columns[i].name)
            return weir__recording_out_of_memory(error);
    }
    return WEIR_OK;
}

/* Prepares the statement. Types are not known yet. */
static int begin_rows(weir_rows *rows, const weir_filter *filter, const char *sql, const char *text,
                      weir_error *error)
{
    weir_filter resolved = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    int at, code = SQLITE_OK, status = weir__recording_resolve_run(rows->recording, &resolved.run_id, error);
    if (status == WEIR_OK)
        status = select_rows(rows->recording, &resolved, sql, &rows->statement, error);
    if (status != WEIR_OK)
        return status;
    if ((at = sqlite3_bind_parameter_index(rows->statement, ":text")))
        code = sqlite3_bind_text(rows->statement, at, text, -1, SQLITE_TRANSIENT);
    return code == SQLITE_OK ? make_columns(rows, error) : weir__recording_error(rows->recording, code, error);
}

int weir_rows_begin(weir_recording *recording, const weir_filter *filter, const char *sql, const char *text,
                    weir_rows **begun, weir_error *error)
{
    if (begun)
        *begun = NULL;
    if (!recording || !sql || !begun)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return weir__recording_out_of_memory(error);
    int status = weir_recording_hold(recording, error), code;
    if (status == WEIR_OK)
        rows->recording = recording; /* to release */
    if (status == WEIR_OK)
        status = begin_rows(rows, filter, sql, text, error);
    if (status == WEIR_OK && (code = find_types(rows)) != SQLITE_OK)
        status = weir__recording_error(recording, code, error);
    if (status == WEIR_OK)
        *begun = rows;
    else
        weir_rows_end(rows);
    return status;
}

const weir_row_column *weir_rows_columns(const weir_rows *rows, size_t *count)
{
    if (count)
        *count = rows ? rows->num_columns : 0;
    return rows ? rows->columns : NULL;
}

static void read_cells(const weir_rows *rows)
{
    sqlite3_stmt *of = rows->statement;
    for (int i = 0; i < (int)rows->num_columns; i++) {
        bool is_null = sqlite3_column_type(of, i) == SQLITE_NULL;
        rows->cells[i] = (weir_row){ .is_null = is_null,
                                     .whole = sqlite3_column_int64(of, i),
                                     .real = is_null ? (double)NAN : sqlite3_column_double(of, i),
                                     .text = weir__column_text(of, i) };
    }
}

int weir_rows_next(weir_rows *rows, const weir_row **row, weir_error *error)
{
    if (row)
        *row = NULL;
    if (!rows || !row)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int code = rows->statement ? sqlite3_step(rows->statement) : SQLITE_DONE;
    if (code == SQLITE_ROW) {
        read_cells(rows);
        *row = rows->cells;
        return WEIR_OK;
    }
    if (code != SQLITE_DONE)
        return weir__recording_error(rows->recording, code, error);
    sqlite3_finalize(rows->statement); /* another step would restart it */
    rows->statement = NULL;
    return WEIR_EOF;
}

static void end_statement(weir_rows *rows)
{
    sqlite3_finalize(rows->statement);
    for (size_t i = 0; rows->columns && i < rows->num_columns; i++)
        free((void *)(uintptr_t)rows->columns[i].name);
    free(rows->columns);
    free(rows->cells);
}

void weir_rows_end(weir_rows *rows)
{
    if (!rows)
        return;
    end_statement(rows);
    weir_recording_release(rows->recording);
    free(rows);
}

/* ---- all of them to a function ------------------------------------------------------------------------------------ */

int weir_recording_query(weir_recording *recording, const weir_filter *filter, const char *sql, const char *text,
                         weir_row_function *each, void *self, weir_error *error)
{
    if (!recording || !sql || !each)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_rows rows = { .recording = recording };
    const weir_row *row;
    int status = begin_rows(&rows, filter, sql, text, error);
    while (status == WEIR_OK && (status = weir_rows_next(&rows, &row, error)) == WEIR_OK)
        status = each(self, row, error);
    end_statement(&rows);
    return status == WEIR_EOF ? WEIR_OK : status;
}
