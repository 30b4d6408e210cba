/* One trace from several: each event is read, changed by SQLite's JSON functions and written. In memory are only the
   numbers of processes and, for a part of the time, the spans that are open. */
#include <weir/trace_file.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "trace_output.h"
#include "trace_path.h"
#include "trace_reader.h"

enum { WRITE_BYTES = 1 << 18, UNIX_TIMES_US = 1000000000 };

static const char schema[] = "CREATE TABLE process(input, pid, UNIQUE(input, pid));"
                             "CREATE TABLE span(seq INTEGER PRIMARY KEY, pid, key, at, event, state);";

/* Members of an event; times in ns, those that no trace has are 0. key: what spans are nested in. */
static const char fields_sql[] = "SELECT e->>'ph', e->>'pid', iif((e->>'ts') BETWEEN -2e15 AND 2e15, "
                                 "CAST(round((e->>'ts') * 1000) AS INTEGER), 0),"
                                 " e->>'name', e->>'$.args.unix_ns', e->'id',"
                                 " iif(e->>'ph' IN ('b', 'e'), printf('%s %s', e->>'cat', e->>'id'), e->>'tid'),"
                                 " iif((e->>'dur') BETWEEN 0 AND 2e15, CAST(round((e->>'dur') * 1000) AS INTEGER), 0)"
                                 " FROM (SELECT iif(json_valid(?1), ?1, '{}') AS e)";
enum { PHASE, PID, AT, NAME, UNIX_NS, ID, KEY, LENGTH };

enum statement {
    FIELDS,
    REPLACE,
    SET_LENGTH,
    ADD_PROCESS,
    FIND_PROCESS,
    ADD_SPAN,
    LAST_SPAN,
    END_SPAN,
    HIDDEN,
    SHOW,
    STATEMENTS
};

static const char *const statements[STATEMENTS] = {
    [FIELDS] = fields_sql,
    [REPLACE] = "SELECT json_replace(?1, '$.pid', ?2, '$.ts', json(?3), '$.id', ?4)",
    [SET_LENGTH] = "SELECT json_replace(?1, '$.dur', json(?2))",
    [ADD_PROCESS] = "INSERT OR IGNORE INTO process VALUES (?1, ?2)",
    [FIND_PROCESS] = "SELECT rowid FROM process WHERE input = ?1 AND pid IS ?2",
    [ADD_SPAN] = "INSERT INTO span VALUES (NULL, ?1, ?2, ?3, ?4, ?5)",
    [LAST_SPAN] = "SELECT seq, state FROM span WHERE pid IS ?1 AND key IS ?2 ORDER BY seq DESC LIMIT 1",
    [END_SPAN] = "DELETE FROM span WHERE seq = ?1",
    [HIDDEN] = "SELECT event FROM span WHERE state = 0 AND (?3 OR (pid IS ?1 AND key IS ?2)) ORDER BY seq",
    [SHOW] = "UPDATE span SET state = 1 WHERE state = 0 AND (?3 OR (pid IS ?1 AND key IS ?2))",
};

/* Of a span that is open: it began before the part that is wanted and is not written yet; it is written; it began after
   that part. */
enum span_state { BEFORE = 0, WRITTEN = 1, AFTER = 2 };

typedef struct input {
    const char *path;
    bool has_clock;
    int64_t unix_ns; /* has_clock: at time 0 */
    int64_t first_ns;
} input;

typedef struct merge {
    input *inputs;
    size_t num_inputs;
    int64_t base_unix_ns; /* of the result's time 0 */
    bool is_part;
    int64_t since_ns, until_ns; /* in the result */
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    weir_trace_text out;
    weir_trace_output *output;
    weir_error *error;
    int failure; /* errno value */
} merge;

/* ---- SQLite -------------------------------------------------------------------------------------------------- */

static void note_code(merge *all, int code)
{
    if (all->failure == 0 && code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        all->failure = code == SQLITE_NOMEM ? ENOMEM : EIO;
}

static int open_spans_database(merge *all)
{
    note_code(all, sqlite3_open(":memory:", &all->db));
    note_code(all, sqlite3_exec(all->db, schema, NULL, NULL, NULL));
    for (int i = 0; i < STATEMENTS && all->failure == 0; i++)
        note_code(all, sqlite3_prepare_v2(all->db, statements[i], -1, &all->statements[i], NULL));
    return all->failure;
}

static void close_spans_database(merge *all)
{
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(all->statements[i]);
    sqlite3_close(all->db);
}

static sqlite3_stmt *begin_statement(merge *all, enum statement which)
{
    sqlite3_reset(all->statements[which]);
    sqlite3_clear_bindings(all->statements[which]);
    return all->statements[which];
}

static bool step_event(merge *all, sqlite3_stmt *statement)
{
    int code = all->failure ? SQLITE_DONE : sqlite3_step(statement);
    note_code(all, code);
    return code == SQLITE_ROW;
}

/* Copies the text. Without memory the parameter is NULL, which a statement takes for a member that is not there. */
static void bind_event_text(merge *all, sqlite3_stmt *statement, int number, const char *text)
{
    note_code(all, sqlite3_bind_text(statement, number, text, -1, SQLITE_TRANSIENT));
}

static void bind_value(merge *all, sqlite3_stmt *statement, int number, sqlite3_value *value)
{
    note_code(all, sqlite3_bind_value(statement, number, value));
}

/* NULL: it is not there, or there is no memory, which is noted. */
static const char *column_text(merge *all, sqlite3_stmt *row, int column)
{
    bool is_there = sqlite3_column_type(row, column) != SQLITE_NULL;
    const char *text = (const char *)sqlite3_column_text(row, column);
    note_code(all, is_there && !text ? SQLITE_NOMEM : SQLITE_OK);
    return text;
}

static sqlite3_stmt *read_fields(merge *all, const char *event)
{
    sqlite3_stmt *row = begin_statement(all, FIELDS);
    bind_event_text(all, row, 1, event);
    step_event(all, row);
    return row;
}

static char phase_of(merge *all, sqlite3_stmt *row)
{
    const char *phase = column_text(all, row, PHASE);
    return phase ? phase[0] : '\0';
}

static bool has_name(merge *all, sqlite3_stmt *row, const char *wanted)
{
    const char *name = column_text(all, row, NAME);
    return name && strcmp(name, wanted) == 0;
}

/* ---- clocks -------------------------------------------------------------------------------------------------- */

/* Looks for the clock, which files of weir have among their first events, and for the first time. */
static int look_at(merge *all, input *in)
{
    enum { MAX_EVENTS = 1000 };
    weir_trace_reader *reader;
    const char *event;
    bool has_time = false;
    int failure = weir__trace_reader_open(in->path, &reader);
    if (failure)
        return weir__trace_fail(all->error, failure, "cannot read", in->path);
    for (int i = 0; i < MAX_EVENTS && !in->has_clock && (event = weir__trace_reader_next(reader)); i++) {
        sqlite3_stmt *row = read_fields(all, event);
        int64_t at_ns = sqlite3_column_int64(row, AT);
        if (has_name(all, row, "weir_trace")) {
            in->unix_ns = sqlite3_column_int64(row, UNIX_NS);
            in->has_clock = in->unix_ns > 0 && in->unix_ns < WEIR_TRACE_MAX_NS;
            in->unix_ns = in->has_clock ? in->unix_ns : 0;
        } else if (phase_of(all, row) != 'M' && (!has_time || at_ns < in->first_ns)) {
            in->first_ns = at_ns;
            has_time = true;
        }
    }
    failure = all->failure ? all->failure : weir__trace_reader_failure(reader);
    weir__trace_reader_close(reader);
    if (failure)
        return weir__trace_fail(all->error, failure, "cannot read", in->path);
    if (!in->has_clock && in->first_ns / 1000 / 1000 > UNIX_TIMES_US) { /* microseconds since 1970 */
        in->has_clock = true;
        in->unix_ns = 0;
    }
    return WEIR_OK;
}

static void choose_base(merge *all)
{
    bool found = false;
    for (size_t i = 0; i < all->num_inputs; i++) {
        const input *in = &all->inputs[i];
        int64_t begin_ns = in->unix_ns ? in->unix_ns : in->first_ns;
        if (in->has_clock && (!found || begin_ns < all->base_unix_ns))
            all->base_unix_ns = begin_ns;
        found |= in->has_clock;
    }
}

/* ---- events -------------------------------------------------------------------------------------------------- */

/* The number of a process in the result. */
static int64_t merged_pid(merge *all, const input *in, sqlite3_value *pid)
{
    int64_t found = 0;
    for (enum statement which = ADD_PROCESS; which <= FIND_PROCESS; which++) {
        sqlite3_stmt *row = begin_statement(all, which);
        sqlite3_bind_int64(row, 1, in - all->inputs);
        bind_value(all, row, 2, pid);
        if (step_event(all, row))
            found = sqlite3_column_int64(row, 0);
    }
    return found;
}

static void bind_us(merge *all, sqlite3_stmt *statement, int number, int64_t ns)
{
    weir_trace_text text = { 0 };
    weir__trace_put_us(&text, ns);
    note_code(all, text.no_memory
                       ? SQLITE_NOMEM
                       : sqlite3_bind_text(statement, number, text.data, (int)text.length, SQLITE_TRANSIENT));
    weir__trace_text_free(&text);
}

static void merge_text(merge *all, const char *event)
{
    size_t start = all->out.length;
    weir__trace_puts(&all->out, event);
    weir__trace_puts(&all->out, ",\n");
    if (!all->out.no_memory)
        return;
    all->out.length = start;
    all->failure = ENOMEM;
}

/* Writes the event, with this time; arrows and asynchronous spans of two inputs do not belong together. Returns its text,
   which is valid until the next call. */
static const char *replace_members(merge *all, const input *in, const char *event, sqlite3_stmt *row, int64_t at_ns)
{
    const char *id = column_text(all, row, ID);
    sqlite3_stmt *replaced = begin_statement(all, REPLACE);
    bind_event_text(all, replaced, 1, event);
    if (sqlite3_column_type(row, PID) != SQLITE_NULL)
        sqlite3_bind_int64(replaced, 2, merged_pid(all, in, sqlite3_column_value(row, PID)));
    bind_us(all, replaced, 3, at_ns);
    if (id) {
        char text[32];
        uint64_t hash = weir__trace_hash(id, strlen(id), (uint64_t)(in - all->inputs) + 1);
        snprintf(text, sizeof text, "0x%016llx", (unsigned long long)hash);
        bind_event_text(all, replaced, 4, text);
    }
    return step_event(all, replaced) ? column_text(all, replaced, 0) : NULL;
}

static void merge_event(merge *all, const input *in, const char *event, sqlite3_stmt *row, int64_t at_ns)
{
    const char *text = replace_members(all, in, event, row, at_ns);
    if (text)
        merge_text(all, text);
}

/* ---- a part of the time -------------------------------------------------------------------------------------- */

static sqlite3_stmt *begin_for_key(merge *all, enum statement which, sqlite3_stmt *row, bool all_keys)
{
    sqlite3_stmt *statement = begin_statement(all, which);
    if (row)
        bind_value(all, statement, 1, sqlite3_column_value(row, PID));
    if (row)
        bind_value(all, statement, 2, sqlite3_column_value(row, KEY));
    if (which == HIDDEN || which == SHOW)
        sqlite3_bind_int(statement, 3, all_keys);
    return statement;
}

/* Writes the begins of the spans that began before the part: of this thread, or (NULL) of all. */
static void show_spans(merge *all, sqlite3_stmt *row)
{
    sqlite3_stmt *hidden = begin_for_key(all, HIDDEN, row, !row);
    const char *text;
    while (step_event(all, hidden) && (text = column_text(all, hidden, 0)))
        merge_text(all, text);
    step_event(all, begin_for_key(all, SHOW, row, !row));
}

static void merge_begin(merge *all, const input *in, const char *event, sqlite3_stmt *row, int64_t at_ns)
{
    enum span_state state = at_ns < all->since_ns ? BEFORE : at_ns > all->until_ns ? AFTER : WRITTEN;
    if (state == WRITTEN)
        show_spans(all, row);
    const char *text = replace_members(all, in, event, row, state == BEFORE ? all->since_ns : at_ns);
    if (!text)
        return;
    if (state == WRITTEN)
        merge_text(all, text);
    sqlite3_stmt *added = begin_for_key(all, ADD_SPAN, row, false);
    sqlite3_bind_int64(added, 3, at_ns);
    bind_event_text(all, added, 4, text);
    sqlite3_bind_int(added, 5, (int)state);
    step_event(all, added);
}

/* An end without a begin is left out. */
static void merge_end(merge *all, const input *in, const char *event, sqlite3_stmt *row, int64_t at_ns)
{
    sqlite3_stmt *last = begin_for_key(all, LAST_SPAN, row, false);
    if (!step_event(all, last))
        return;
    int64_t seq = sqlite3_column_int64(last, 0);
    bool is_shown = sqlite3_column_int(last, 1) != AFTER && at_ns > all->since_ns;
    if (is_shown) {
        show_spans(all, row);
        merge_event(all, in, event, row, at_ns < all->until_ns ? at_ns : all->until_ns);
    }
    sqlite3_stmt *ended = begin_statement(all, END_SPAN);
    sqlite3_bind_int64(ended, 1, seq);
    step_event(all, ended);
}

/* A span in one event. */
static void put_whole_span(merge *all, const input *in, const char *event, sqlite3_stmt *row, int64_t at_ns)
{
    int64_t end_ns = at_ns + sqlite3_column_int64(row, LENGTH);
    int64_t begin_ns = at_ns > all->since_ns ? at_ns : all->since_ns;
    end_ns = end_ns < all->until_ns ? end_ns : all->until_ns;
    if (end_ns < begin_ns)
        return;
    sqlite3_stmt *shorter = begin_statement(all, SET_LENGTH);
    bind_event_text(all, shorter, 1, event);
    bind_us(all, shorter, 2, end_ns - begin_ns);
    const char *text = step_event(all, shorter) ? column_text(all, shorter, 0) : NULL;
    if (text)
        merge_event(all, in, text, row, begin_ns);
}

static void add_event(merge *all, const input *in, const char *event)
{
    sqlite3_stmt *row = read_fields(all, event);
    char phase = phase_of(all, row);
    int64_t shift_ns = in->has_clock ? in->unix_ns - all->base_unix_ns : -in->first_ns;
    int64_t at_ns = phase == 'M' ? 0 : sqlite3_column_int64(row, AT) + shift_ns;
    if (!phase || has_name(all, row, "weir_trace"))
        return;
    if (phase == 'M' || !all->is_part)
        merge_event(all, in, event, row, at_ns);
    else if (phase == 'B' || phase == 'b')
        merge_begin(all, in, event, row, at_ns);
    else if (phase == 'E' || phase == 'e')
        merge_end(all, in, event, row, at_ns);
    else if (phase == 'X')
        put_whole_span(all, in, event, row, at_ns);
    else if (at_ns >= all->since_ns && at_ns <= all->until_ns)
        merge_event(all, in, event, row, at_ns);
}

/* ---- the merge ----------------------------------------------------------------------------------------------- */

static int write_out(merge *all)
{
    int failure = all->failure ? all->failure : weir__trace_output_write(all->output, &all->out);
    all->out.length = 0;
    return failure;
}

static int copy_events(merge *all, const input *in, const char *out_path)
{
    weir_trace_reader *reader;
    const char *event;
    int failure = weir__trace_reader_open(in->path, &reader), written = 0;
    if (failure)
        return weir__trace_fail(all->error, failure, "cannot read", in->path);
    while (written == 0 && all->failure == 0 && (event = weir__trace_reader_next(reader))) {
        add_event(all, in, event);
        if (all->out.length > WRITE_BYTES)
            written = write_out(all);
    }
    failure = weir__trace_reader_failure(reader);
    weir__trace_reader_close(reader);
    if (failure)
        return weir__trace_fail(all->error, failure, "cannot read", in->path);
    show_spans(all, NULL); /* which have no end */
    note_code(all, sqlite3_exec(all->db, "DELETE FROM span", NULL, NULL, NULL));
    if (written == 0)
        written = write_out(all);
    return written ? weir__trace_fail(all->error, written, "cannot write trace", out_path) : WEIR_OK;
}

static int merge_into(merge *all, const char *out_path)
{
    weir_trace_text head = { 0 };
    int status = WEIR_OK;
    for (size_t i = 0; i < all->num_inputs && status == WEIR_OK; i++)
        status = look_at(all, &all->inputs[i]);
    if (status != WEIR_OK)
        return status;
    choose_base(all);
    weir__trace_puts(&head, WEIR_TRACE_CLOCK);
    weir__trace_put_int(&head, all->base_unix_ns);
    weir__trace_puts(&head, "}},\n");
    int failure = head.no_memory ? ENOMEM : weir__trace_output_open(out_path, &head, 0, false, &all->output);
    if (failure)
        status = weir__trace_fail(all->error, failure, "cannot write trace", out_path);
    for (size_t i = 0; i < all->num_inputs && status == WEIR_OK; i++)
        status = copy_events(all, &all->inputs[i], out_path);
    if (status != WEIR_OK)
        weir__trace_output_abandon(all->output);
    failure = weir__trace_output_close(all->output);
    weir__trace_text_free(&head);
    return status != WEIR_OK || !failure ? status
                                         : weir__trace_fail(all->error, failure, "cannot write trace", out_path);
}

int weir_trace_merge(const char *out_path, const char *const *in_paths, size_t num_ins, const weir_trace_part *part,
                     weir_error *error)
{
    if (!out_path || !in_paths || num_ins == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    for (size_t i = 0; i < num_ins; i++)
        if (!in_paths[i] || strcmp(in_paths[i], out_path) == 0)
            return weir_error_set(error, WEIR_EINVAL, 0, "the merged trace would replace one of its inputs");
    if (part && (part->since_ns < 0 || part->until_ns < 0))
        return weir_error_set(error, WEIR_EINVAL, 0, "a time of the part is below 0");
    merge all = {
        .num_inputs = num_ins,
        .error = error,
        .inputs = calloc(num_ins, sizeof *all.inputs),
        .is_part = part && (part->since_ns || part->until_ns),
        .since_ns = part ? part->since_ns : 0,
        .until_ns = part && part->until_ns ? part->until_ns : INT64_MAX,
    };
    if (!all.inputs)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory to merge traces");
    for (size_t i = 0; i < num_ins; i++)
        all.inputs[i].path = in_paths[i];
    int failure = open_spans_database(&all);
    int status =
        failure ? weir__trace_fail(error, failure, "cannot write trace", out_path) : merge_into(&all, out_path);
    close_spans_database(&all);
    weir__trace_text_free(&all.out);
    free(all.inputs);
    return status;
}
