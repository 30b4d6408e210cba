#include "stats/export/trace_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "stats/export/trace_reader.h"
#include "stats/schema/database_path.h"

static const char schema[] =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
    "CREATE TABLE event(seq INTEGER PRIMARY KEY, input, text, phase, pid, tid, key, at, length, name, category, id,"
    " label, clock);"
    "CREATE TABLE span(seq INTEGER PRIMARY KEY, last, start, stop, self);"
    "BEGIN";

static const char add_event[] =
    "INSERT INTO event SELECT NULL, ?2, iif(?3, ?1, NULL), e->>'ph', e->>'pid', e->>'tid',"
    " iif(e->>'ph' IN ('b', 'e'), printf('%s %s', e->>'cat', e->>'id'), e->>'tid'),"
    " iif((e->>'ts') BETWEEN -2e15 AND 2e15, CAST(round((e->>'ts') * 1000) AS INTEGER), 0),"
    " iif((e->>'dur') BETWEEN 0 AND 2e15, CAST(round((e->>'dur') * 1000) AS INTEGER), 0),"
    " coalesce(e->>'$.args.task', e->>'name'), e->>'cat', e->'id', iif(e->>'ph' = 'M', e->>'$.args.name', NULL),"
    " iif(e->>'name' = 'weir_trace' AND (e->>'$.args.unix_ns') BETWEEN 1 AND ?4, e->>'$.args.unix_ns', NULL)"
    " FROM (SELECT iif(json_valid(?1), ?1, '{}') AS e) WHERE e->>'ph' IS NOT NULL";

/* In the order in which they are nested; whether the event is the first of its key. */
static const char in_order[] =
    "SELECT seq, at, length, phase, row_number() OVER keys = 1 FROM event WHERE phase IN ('B', 'E', 'X', 'b', 'e')"
    " WINDOW keys AS (PARTITION BY input, pid, key ORDER BY at, iif(phase = 'X', -length, 0), seq)"
    " ORDER BY input, pid, key, at, iif(phase = 'X', -length, 0), seq";

/* ---- SQLite -------------------------------------------------------------------------------------------------- */

sqlite3_stmt *weir__trace_tables_prepare(weir_trace_tables *tables, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (tables->code == SQLITE_OK)
        tables->code = sqlite3_prepare_v2(tables->db, sql, -1, &statement, NULL);
    return statement;
}

bool weir__trace_tables_step(weir_trace_tables *tables, sqlite3_stmt *row)
{
    int code = tables->code ? SQLITE_DONE : sqlite3_step(row);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        tables->code = code;
    return code == SQLITE_ROW;
}

const char *weir__trace_tables_text(weir_trace_tables *tables, sqlite3_stmt *row, int column)
{
    bool is_there = sqlite3_column_type(row, column) != SQLITE_NULL;
    const char *text = (const char *)sqlite3_column_text(row, column);
    if (is_there && !text)
        tables->code = SQLITE_NOMEM;
    return text ? text : "";
}

void weir__trace_tables_run(weir_trace_tables *tables, const char *sql)
{
    if (tables->code == SQLITE_OK)
        tables->code = sqlite3_exec(tables->db, sql, NULL, NULL, NULL);
}

int weir__trace_tables_fail(const weir_trace_tables *tables, const char *what, const char *path, weir_error *error)
{
    if (tables->code == SQLITE_NOMEM)
        return weir__path_fail(error, ENOMEM, what, path, "");
    return weir_error_set(error, WEIR_EIO, tables->code, "%s %s: the temporary database: %s", what, path,
                          sqlite3_errstr(tables->code));
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

/* Returns an errno value; a failure of SQLite is in tables->code. */
static int read_file(weir_trace_tables *tables, const char *path, bool with_text)
{
    weir_trace_reader *reader;
    const char *event;
    int failure = weir__trace_reader_open(path, &reader);
    if (failure)
        return failure;
    sqlite3_stmt *add = weir__trace_tables_prepare(tables, add_event);
    sqlite3_bind_int64(add, 2, (int64_t)tables->count++);
    sqlite3_bind_int(add, 3, with_text);
    sqlite3_bind_int64(add, 4, WEIR_TRACE_MAX_NS);
    while (tables->code == SQLITE_OK && (event = weir__trace_reader_next(reader))) {
        sqlite3_bind_text(add, 1, event, -1, SQLITE_STATIC);
        weir__trace_tables_step(tables, add);
        sqlite3_reset(add);
    }
    sqlite3_finalize(add);
    tables->is_cut |= weir__trace_reader_is_cut(reader);
    return weir__trace_reader_close(reader);
}

int weir__trace_tables_open(weir_trace_tables *tables, const char *const *paths, size_t num_paths, bool with_text,
                            weir_error *error)
{
    *tables = (weir_trace_tables){ 0 };
    tables->code = sqlite3_open("", &tables->db);
    weir__trace_tables_run(tables, schema);
    for (size_t i = 0; i < num_paths; i++) {
        int failure = read_file(tables, paths[i], with_text);
        if (failure)
            return weir__path_fail(error, failure, "cannot read", paths[i], "");
        if (tables->code)
            return weir__trace_tables_fail(tables, "cannot read", paths[i], error);
    }
    return WEIR_OK;
}

void weir__trace_tables_close(weir_trace_tables *tables)
{
    sqlite3_close(tables->db);
}

/* ---- nesting ------------------------------------------------------------------------------------------------- */

/* A span that has begun and not ended. */
typedef struct open_span {
    int64_t seq, begin_ns;
    int64_t end_ns;   /* -1 = a later event says it */
    int64_t inner_ns; /* of the spans inside, as far as it counts */
} open_span;

typedef struct nesting {
    weir_trace_tables *tables;
    sqlite3_stmt *add;
    int64_t since_ns, until_ns;
    open_span *open;
    size_t num_open;
} nesting;

/* last: the event that ends it; 0 = none */
static void end_span(nesting *n, int64_t last, int64_t end_ns)
{
    open_span *span = &n->open[--n->num_open];
    int64_t start_ns = span->begin_ns > n->since_ns ? span->begin_ns : n->since_ns;
    int64_t stop_ns = end_ns < n->until_ns ? end_ns : n->until_ns;
    if (span->begin_ns > n->until_ns || (end_ns <= n->since_ns && span->begin_ns < n->since_ns))
        return;
    int64_t total_ns = stop_ns > start_ns ? stop_ns - start_ns : 0;
    if (n->num_open)
        span[-1].inner_ns += total_ns;
    int64_t self_ns = total_ns > span->inner_ns ? total_ns - span->inner_ns : 0;
    const int64_t values[] = { span->seq, last, start_ns, start_ns + total_ns, self_ns };
    for (int i = 0; i < 5; i++)
        sqlite3_bind_int64(n->add, i + 1, values[i]);
    weir__trace_tables_step(n->tables, n->add);
    sqlite3_reset(n->add);
}

/* All of them, or those that are known to end before `at_ns`. */
static void end_open_spans(nesting *n, bool all, int64_t at_ns)
{
    while (n->num_open) {
        int64_t end_ns = n->open[n->num_open - 1].end_ns;
        if (!all && (end_ns < 0 || end_ns > at_ns))
            return;
        end_span(n, 0, end_ns < 0 ? at_ns : end_ns);
    }
}

static void begin_span(nesting *n, open_span span)
{
    open_span *grown = weir__array_grow(n->open, n->num_open, sizeof *grown);
    if (!grown) {
        n->tables->code = SQLITE_NOMEM;
        return;
    }
    n->open = grown;
    n->open[n->num_open++] = span;
}

void weir__trace_tables_nest(weir_trace_tables *tables, int64_t since_ns, int64_t until_ns)
{
    sqlite3_stmt *row = weir__trace_tables_prepare(tables, in_order);
    nesting n = {
        tables,   weir__trace_tables_prepare(tables, "INSERT INTO span VALUES(?1, nullif(?2, 0), ?3, ?4, ?5)"),
        since_ns, until_ns,
        NULL,     0
    };
    while (weir__trace_tables_step(tables, row)) {
        int64_t seq = sqlite3_column_int64(row, 0), at_ns = sqlite3_column_int64(row, 1);
        char phase = *weir__trace_tables_text(tables, row, 3);
        bool is_first = sqlite3_column_int(row, 4);
        end_open_spans(&n, is_first, is_first ? until_ns : at_ns);
        if (phase == 'X')
            begin_span(&n, (open_span){ seq, at_ns, at_ns + sqlite3_column_int64(row, 2), 0 });
        else if (phase == 'B' || phase == 'b')
            begin_span(&n, (open_span){ seq, at_ns, -1, 0 });
        else if (n.num_open)
            end_span(&n, seq, at_ns);
    }
    end_open_spans(&n, true, until_ns);
    free(n.open);
    sqlite3_finalize(row);
    sqlite3_finalize(n.add);
}
