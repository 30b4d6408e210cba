/* Count, total and self time of the spans in a trace. SQLite reads the JSON, sorts and adds up. */
#include <weir/trace_file.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "array.h"
#include "database_path.h"
#include "trace_path.h"
#include "trace_reader.h"

/* Times in ns. key: what spans are nested in: a thread, or an asynchronous id. tid of a process's name: ''. */
static const char schema[] =
    "CREATE TABLE event(seq INTEGER PRIMARY KEY, pid, tid, key, at, length, phase, name, category);"
    "CREATE TABLE track(pid, tid, name, PRIMARY KEY(pid, tid));"
    "CREATE TABLE span(seq, total, self);"
    "BEGIN";

/* Times that no trace has are left out, so that sums do not overflow. */
static const char add_event[] = "INSERT INTO event SELECT NULL, e->>'pid', e->>'tid',"
                                " iif(e->>'ph' IN ('b', 'e'), printf('%s %s', e->>'cat', e->>'id'), e->>'tid'),"
                                " CAST(round((e->>'ts') * 1000) AS INTEGER),"
                                " iif((e->>'dur') BETWEEN 0 AND 2e15, CAST(round((e->>'dur') * 1000) AS INTEGER), 0),"
                                " e->>'ph', e->>'name', e->>'cat' FROM (SELECT iif(json_valid(?1), ?1, '{}') AS e)"
                                " WHERE e->>'ph' <> 'M' AND (e->>'ts') BETWEEN -2e15 AND 2e15";
static const char add_track[] =
    "INSERT OR REPLACE INTO track SELECT e->>'pid', iif(e->>'name' = 'process_name', '', e->>'tid'),"
    " e->>'$.args.name' FROM (SELECT iif(json_valid(?1), ?1, '{}') AS e)"
    " WHERE e->>'ph' = 'M' AND e->>'name' IN ('thread_name', 'process_name')";

static const char facts[] =
    "SELECT count(*), coalesce(min(at), 0), coalesce(max(at + length), 0), total(category = 'failure'),"
    " total(category = 'stall'), total(category = 'lost') FROM event";

/* In the order in which they are nested. */
static const char in_order[] =
    "SELECT seq, pid, key, at, length, phase FROM event WHERE phase IN ('B', 'E', 'X', 'b', 'e')"
    " ORDER BY pid, key, at, iif(phase = 'X', -length, 0), seq";

static const char *const sums[] = {
    [WEIR_TRACE_BY_NAME] = "SELECT '', '', name, count(*), total(total), total(self) FROM span JOIN event USING (seq)"
                           " GROUP BY name ORDER BY 6 DESC, 3",
    [WEIR_TRACE_BY_TRACK] =
        "SELECT coalesce(p.name, e.pid), coalesce(t.name, e.tid), e.name, count(*), total(s.total), total(s.self)"
        " FROM span s JOIN event e USING (seq) LEFT JOIN track t ON t.pid = e.pid AND t.tid = e.tid"
        " LEFT JOIN track p ON p.pid = e.pid AND p.tid = '' GROUP BY e.pid, e.tid, e.name ORDER BY 6 DESC, 3",
    [WEIR_TRACE_BY_PROCESS] =
        "SELECT coalesce(p.name, e.pid), '', e.name, count(*), total(s.total), total(s.self)"
        " FROM span s JOIN event e USING (seq)"
        " LEFT JOIN track p ON p.pid = e.pid AND p.tid = '' GROUP BY e.pid, e.name ORDER BY 6 DESC, 3",
};

/* A span that has begun and not ended. */
typedef struct open_span {
    int64_t seq, begin_ns;
    int64_t end_ns;   /* -1 = a later event says it */
    int64_t inner_ns; /* of the spans inside */
} open_span;

typedef struct reading {
    sqlite3 *db;
    sqlite3_stmt *add_span;
    int64_t since_ns, until_ns; /* what counts */
    open_span *open;
    size_t num_open;
    weir_trace_times *times;
    int code;
} reading;

static int prepare_times(reading *r, const char *sql, sqlite3_stmt **statement)
{
    *statement = NULL;
    return r->code = r->code ? r->code : sqlite3_prepare_v2(r->db, sql, -1, statement, NULL);
}

static void run_statement(reading *r, sqlite3_stmt *statement)
{
    if (r->code == SQLITE_OK)
        r->code = sqlite3_step(statement) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(r->db);
    sqlite3_reset(statement);
}

static bool step_span(reading *r, sqlite3_stmt *statement)
{
    int code = r->code ? r->code : sqlite3_step(statement);
    r->code = code == SQLITE_ROW || code == SQLITE_DONE ? r->code : code;
    return code == SQLITE_ROW;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static void read_events(reading *r, weir_trace_reader *reader)
{
    sqlite3_stmt *adds[2];
    const char *event;
    if (prepare_times(r, add_event, &adds[0]) == SQLITE_OK)
        prepare_times(r, add_track, &adds[1]);
    while (r->code == SQLITE_OK && (event = weir__trace_reader_next(reader)))
        for (int i = 0; i < 2 && r->code == SQLITE_OK; i++) {
            r->code = sqlite3_bind_text(adds[i], 1, event, -1, SQLITE_STATIC);
            run_statement(r, adds[i]);
        }
    sqlite3_finalize(adds[0]);
    if (adds[0])
        sqlite3_finalize(adds[1]);
    r->times->is_complete = !weir__trace_reader_is_cut(reader);
}

static void read_facts(reading *r, const weir_trace_part *part)
{
    sqlite3_stmt *row;
    weir_trace_times *times = r->times;
    if (prepare_times(r, facts, &row) == SQLITE_OK && step_span(r, row)) {
        int64_t start_ns = sqlite3_column_int64(row, 1), end_ns = sqlite3_column_int64(row, 2);
        times->num_events = (uint64_t)sqlite3_column_int64(row, 0);
        times->num_failures = (uint64_t)sqlite3_column_int64(row, 3);
        times->num_stalls = (uint64_t)sqlite3_column_int64(row, 4);
        times->num_gaps = (uint64_t)sqlite3_column_int64(row, 5);
        int64_t length_ns = end_ns - start_ns;
        r->since_ns = start_ns + (part->since_ns < length_ns ? part->since_ns : length_ns);
        r->until_ns = part->until_ns && part->until_ns < length_ns ? start_ns + part->until_ns : end_ns;
        times->length_ns = r->until_ns > r->since_ns ? r->until_ns - r->since_ns : 0;
    }
    sqlite3_finalize(row);
}

/* ---- spans --------------------------------------------------------------------------------------------------- */

static void close_time_span(reading *r, int64_t end_ns)
{
    open_span *span = &r->open[--r->num_open];
    int64_t begin_ns = span->begin_ns > r->since_ns ? span->begin_ns : r->since_ns;
    end_ns = end_ns < r->until_ns ? end_ns : r->until_ns;
    if (end_ns < begin_ns)
        return;
    int64_t total_ns = end_ns - begin_ns, self_ns = total_ns > span->inner_ns ? total_ns - span->inner_ns : 0;
    if (r->num_open)
        span[-1].inner_ns += total_ns;
    sqlite3_bind_int64(r->add_span, 1, span->seq);
    sqlite3_bind_int64(r->add_span, 2, total_ns);
    sqlite3_bind_int64(r->add_span, 3, self_ns);
    run_statement(r, r->add_span);
}

/* All of them, or those that are known to end before `at_ns`. */
static void close_time_spans(reading *r, bool all, int64_t at_ns)
{
    while (r->num_open) {
        int64_t end_ns = r->open[r->num_open - 1].end_ns;
        if (!all && (end_ns < 0 || end_ns > at_ns))
            return;
        close_time_span(r, end_ns < 0 ? at_ns : end_ns);
    }
}

static void open_time_span(reading *r, open_span span)
{
    open_span *grown = weir__array_grow(r->open, r->num_open, sizeof *grown);
    if (!grown) {
        r->code = SQLITE_NOMEM;
        return;
    }
    r->open = grown;
    r->open[r->num_open++] = span;
}

/* NULL: it is NULL, or there is no memory, which is noted. */
static const char *text_of(reading *r, sqlite3_value *value)
{
    bool is_there = sqlite3_value_type(value) != SQLITE_NULL;
    const char *text = (const char *)sqlite3_value_text(value);
    if (is_there && !text)
        r->code = SQLITE_NOMEM;
    return text;
}

static bool is_same(reading *r, sqlite3_value *one, sqlite3_value *other)
{
    const char *text = one ? text_of(r, one) : NULL;
    const char *next = text_of(r, other);
    return one && (text && next ? strcmp(text, next) == 0 : text == next);
}

/* An end without a beginning is ignored, as viewers do. */
static void add_spans(reading *r)
{
    sqlite3_stmt *row;
    sqlite3_value *before[2] = { NULL, NULL };
    prepare_times(r, in_order, &row);
    if (r->code == SQLITE_OK)
        prepare_times(r, "INSERT INTO span VALUES(?1, ?2, ?3)", &r->add_span);
    while (step_span(r, row)) {
        int64_t at_ns = sqlite3_column_int64(row, 3);
        const char *phase_text = text_of(r, sqlite3_column_value(row, 5));
        char phase = phase_text ? phase_text[0] : '\0';
        for (int i = 0; i < 2; i++) {
            if (is_same(r, before[i], sqlite3_column_value(row, i + 1)))
                continue;
            close_time_spans(r, true, r->until_ns);
            sqlite3_value_free(before[i]);
            if (!(before[i] = sqlite3_value_dup(sqlite3_column_value(row, i + 1))))
                r->code = SQLITE_NOMEM;
        }
        close_time_spans(r, false, at_ns);
        if (phase == 'X')
            open_time_span(
                r, (open_span){ sqlite3_column_int64(row, 0), at_ns, at_ns + sqlite3_column_int64(row, 4), 0 });
        else if (phase == 'B' || phase == 'b')
            open_time_span(r, (open_span){ sqlite3_column_int64(row, 0), at_ns, -1, 0 });
        else if (r->num_open)
            close_time_span(r, at_ns);
    }
    close_time_spans(r, true, r->until_ns);
    for (int i = 0; i < 2; i++)
        sqlite3_value_free(before[i]);
    sqlite3_finalize(row);
    sqlite3_finalize(r->add_span);
}

/* ---- sums ---------------------------------------------------------------------------------------------------- */

static char *copy_text(reading *r, sqlite3_stmt *row, int column)
{
    const char *text = text_of(r, sqlite3_column_value(row, column));
    char *copy = strdup(text ? text : "");
    if (!copy)
        r->code = SQLITE_NOMEM;
    return copy;
}

static void read_sums(reading *r, weir_trace_by by)
{
    sqlite3_stmt *row;
    weir_trace_times *times = r->times;
    prepare_times(r, sums[by], &row);
    while (step_span(r, row)) {
        weir_trace_time *grown = weir__array_grow(times->times, times->num_times, sizeof *grown);
        if (!grown) {
            r->code = SQLITE_NOMEM;
            break;
        }
        times->times = grown;
        times->times[times->num_times++] = (weir_trace_time){
            .process = copy_text(r, row, 0),
            .track = copy_text(r, row, 1),
            .name = copy_text(r, row, 2),
            .count = (uint64_t)sqlite3_column_int64(row, 3),
            .total_ns = sqlite3_column_int64(row, 4),
            .self_ns = sqlite3_column_int64(row, 5),
        };
    }
    sqlite3_finalize(row);
}

void weir_trace_times_free(weir_trace_times *times)
{
    for (size_t i = 0; times && i < times->num_times; i++) {
        free(times->times[i].process);
        free(times->times[i].track);
        free(times->times[i].name);
    }
    if (times)
        free(times->times);
    if (times)
        *times = (weir_trace_times){ 0 };
}

static int read_all(reading *r, weir_trace_reader *reader, const weir_trace_part *part, weir_trace_by by)
{
    r->code = sqlite3_open("", &r->db); /* in memory, and in a temporary file if it is large */
    if (r->code == SQLITE_OK)
        r->code = sqlite3_exec(r->db, schema, NULL, NULL, NULL);
    if (r->code == SQLITE_OK)
        read_events(r, reader);
    read_facts(r, part);
    add_spans(r);
    read_sums(r, by);
    sqlite3_close(r->db);
    free(r->open);
    return r->code;
}

int weir_trace_times_read(const char *path, const weir_trace_part *part, weir_trace_by by, weir_trace_times *times,
                          weir_error *error)
{
    weir_trace_reader *reader;
    reading r = { .times = times };
    if (!path || !times || by > WEIR_TRACE_BY_PROCESS || (part && (part->since_ns < 0 || part->until_ns < 0)))
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument is NULL or out of range");
    *times = (weir_trace_times){ 0 };
    int failure = weir__trace_reader_open(path, &reader);
    if (failure)
        return weir__trace_fail(error, failure, "cannot read", path);
    int code = read_all(&r, reader, part ? part : &(weir_trace_part){ 0 }, by);
    failure = code == SQLITE_NOMEM ? ENOMEM : weir__trace_reader_failure(reader);
    weir__trace_reader_close(reader);
    if (failure == 0 && code == SQLITE_OK)
        return WEIR_OK;
    weir_trace_times_free(times);
    if (failure)
        return weir__trace_fail(error, failure, "cannot read", path);
    return weir_error_set(error, WEIR_EIO, code, "cannot read trace %s: %s", weir__path_for_message(path).text,
                          sqlite3_errstr(code));
}
