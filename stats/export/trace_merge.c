/* One trace from several. SQLite shifts, cuts and renumbers. */
#include <weir/trace_file.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/output.h>

#include "stats/export/trace_output.h"
#include "stats/export/trace_tables.h"
#include "stats/schema/database_path.h"

enum { WRITE_BYTES = 1 << 18 };

/*
 * What each input adds to its times, so that 0 is the same moment for all. clock is the wall time of its time 0.
 * Files without it begin with the earliest one, except those that have Unix times (far above 10^15 ns).
 */
static const char find_shifts[] =
    "CREATE TABLE input AS SELECT input, max(clock) AS clock, min(iif(phase <> 'M', at, NULL)) AS first FROM event"
    " GROUP BY input;"
    "UPDATE input SET clock = 0 WHERE clock IS NULL AND first > 1000000000000000;"
    "CREATE TABLE base AS SELECT coalesce(min(iif(clock = 0, first, clock)), 0) AS ns FROM input;"
    "UPDATE event SET at = at + (SELECT coalesce(clock - base.ns, -coalesce(first, 0)) FROM input, base"
    " WHERE input.input = event.input) WHERE phase <> 'M';"
    "CREATE TABLE process(number INTEGER PRIMARY KEY, input, pid);"
    "INSERT INTO process SELECT NULL, input, pid FROM event WHERE clock IS NULL AND name IS NOT 'weir_trace'"
    " GROUP BY input, pid ORDER BY min(seq);"
    "CREATE INDEX pids ON process(input, pid)";

#define MICROSECONDS(ns) "printf('%s%d.%03d', iif(" ns " < 0, '-', ''), abs(" ns ") / 1000, abs(" ns ") % 1000)"

/* Events, when they are, and how long; all of them, or an interval (?2, ?3) with the spans that lie in it. Arrows and
   asynchronous spans of two inputs do not belong together, so that ids are changed. */
static const char write_events[] =
    "SELECT json_replace(text, '$.pid', (SELECT number FROM process p WHERE p.input = e.input AND p.pid IS e.pid),"
    " '$.ts', json(" MICROSECONDS("start") "), '$.dur', json(" MICROSECONDS(
        "(stop - start)") "),"
                          " '$.id', weir_trace_id(id, input)) FROM ("
                          " SELECT e.*, at AS start, at + length AS stop FROM event e WHERE phase = 'M' OR NOT ?1"
                          " OR (at BETWEEN ?2 AND ?3 AND phase NOT IN ('B', 'E', 'b', 'e', 'X'))"
                          " UNION ALL SELECT e.*, start, stop FROM span JOIN event e USING (seq) WHERE ?1"
                          " UNION ALL SELECT e.*, stop, stop FROM span JOIN event e ON e.seq = span.last WHERE ?1) e"
                          " WHERE name IS NOT 'weir_trace' ORDER BY seq";

static void make_id(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    char text[32];
    const char *id = (const char *)sqlite3_value_text(values[0]);
    (void)num_values;
    if (!id)
        return;
    uint64_t hash = weir__trace_hash(id, strlen(id), (uint64_t)sqlite3_value_int64(values[1]) + 1);
    snprintf(text, sizeof text, "0x%016llx", (unsigned long long)hash);
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static int64_t find_base(weir_trace_tables *tables)
{
    weir__trace_tables_run(tables, find_shifts);
    sqlite3_stmt *row = weir__trace_tables_prepare(tables, "SELECT ns FROM base");
    int64_t base_ns = weir__trace_tables_step(tables, row) ? sqlite3_column_int64(row, 0) : 0;
    sqlite3_finalize(row);
    return base_ns;
}

/* Returns an errno value; a failure of SQLite is in tables->code. */
static int copy_events(weir_trace_tables *tables, const weir_trace_interval *interval, weir_trace_output *output)
{
    weir_trace_text out = { 0 };
    int failure = 0;
    int64_t until_ns = interval->until_ns ? interval->until_ns : INT64_MAX;
    bool is_part = interval->since_ns || interval->until_ns;
    if (is_part)
        weir__trace_tables_nest(tables, interval->since_ns, until_ns);
    sqlite3_stmt *row = weir__trace_tables_prepare(tables, write_events);
    sqlite3_bind_int(row, 1, is_part);
    sqlite3_bind_int64(row, 2, interval->since_ns);
    sqlite3_bind_int64(row, 3, until_ns);
    while (failure == 0 && weir__trace_tables_step(tables, row)) {
        weir__trace_putf(&out, "%s,\n", weir__trace_tables_text(tables, row, 0));
        failure = out.no_memory ? ENOMEM : out.length > WRITE_BYTES ? weir__trace_output_write(output, &out) : 0;
        out.length = out.length > WRITE_BYTES ? 0 : out.length;
    }
    if (failure == 0 && tables->code == SQLITE_OK)
        failure = weir__trace_output_write(output, &out);
    sqlite3_finalize(row);
    weir__trace_text_free(&out);
    return failure;
}

static int write_merged(weir_trace_tables *tables, const weir_trace_interval *interval, const char *path, bool force,
                        weir_error *error)
{
    weir_trace_text head = { 0 };
    weir_trace_output *output = NULL;
    weir__trace_putf(&head, WEIR_TRACE_CLOCK, find_base(tables), "");
    int failure = head.no_memory ? ENOMEM : weir__trace_output_open(path, &head, 0, false, force, &output);
    if (failure == 0)
        failure = copy_events(tables, interval, output);
    int closed = weir__trace_output_close(output, failure ? failure : tables->code ? EIO : 0);
    weir__trace_text_free(&head);
    if (tables->code)
        return weir__trace_tables_fail(tables, "cannot write trace", path, error);
    failure = failure ? failure : closed;
    return failure ? weir__path_fail(error, failure, "cannot write trace", path, "") : WEIR_OK;
}

int weir_trace_merge(const char *out_path, const char *const *in_paths, size_t num_ins,
                     const weir_trace_interval *interval, bool force, weir_error *error)
{
    if (!out_path || !in_paths || num_ins == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    for (size_t i = 0; i < num_ins; i++)
        if (!in_paths[i])
            return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    const weir_output_rules rules = { .force = force, .inputs = in_paths, .num_inputs = num_ins };
    if (weir_output_check(out_path, WEIR_OUTPUT_TRACE, &rules, error) != WEIR_OK)
        return WEIR_EINVAL;
    if (interval && (interval->since_ns < 0 || interval->until_ns < 0))
        return weir_error_set(error, WEIR_EINVAL, 0, "a time of the interval is below 0");
    weir_trace_tables tables;
    int status = weir__trace_tables_open(&tables, in_paths, num_ins, true, error);
    if (status == WEIR_OK) {
        tables.code = sqlite3_create_function(tables.db, "weir_trace_id", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                              make_id, NULL, NULL);
        status = write_merged(&tables, interval ? interval : &(weir_trace_interval){ 0 }, out_path, force, error);
    }
    weir__trace_tables_close(&tables);
    return status;
}
