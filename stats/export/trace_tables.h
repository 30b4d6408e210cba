/* The events of traces in tables of a temporary database, which SQLite keeps in memory, and in a file if it is large. */
#ifndef STATS_EXPORT_TRACE_TABLES_H
#define STATS_EXPORT_TRACE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <weir/status.h>

/*
 * event(seq, input, text, phase, pid, tid, key, at, length, name, category, id, label, clock). Times that no trace has are
 * left out, so that sums do not overflow.
 *   text        the event itself
 *   key         what spans are nested in: a thread, or an asynchronous id
 *   at, length  ns
 *   name        of a task, that of the stage, not of the item
 *   label       the name in metadata
 *   clock       the wall time of time 0
 *
 * span(seq, last, start, stop, self): a span from event seq to event last, and the part of it that counts, from start
 * to stop. last is NULL for an event alone, or a span that is open. self is the length of that part without the spans
 * inside.
 */
typedef struct weir_trace_tables {
    sqlite3 *db;
    int code;     /* of SQLite: the first failure; then nothing more is done */
    bool is_cut;  /* an input has no end */
    size_t count; /* of inputs */
} weir_trace_tables;

/* Unix times are below it until 2043, and sums of a few such times do not overflow. */
#define WEIR_TRACE_MAX_NS (INT64_MAX / 4)

/* Reads these files; input: from 0 on. with_text: event.text is wanted. WEIR_OK, or a failure that names the path. Close it
   in any case. */
int weir__trace_tables_open(weir_trace_tables *tables, const char *const *paths, size_t num_paths, bool with_text,
                            weir_error *error);
void weir__trace_tables_close(weir_trace_tables *tables);

/* Fills `span` with what lies between these times. An end without a begin is ignored, as viewers do; what is open ends at
   until_ns. */
void weir__trace_tables_nest(weir_trace_tables *tables, int64_t since_ns, int64_t until_ns);

/* Like SQLite's, but they do nothing after a failure. */
sqlite3_stmt *weir__trace_tables_prepare(weir_trace_tables *tables, const char *sql);
bool weir__trace_tables_step(weir_trace_tables *tables, sqlite3_stmt *row);
const char *weir__trace_tables_text(weir_trace_tables *tables, sqlite3_stmt *row, int column); /* NULL = "" */
void weir__trace_tables_run(weir_trace_tables *tables, const char *sql);

/* Sets *error for the failure, with the path; returns the status. */
int weir__trace_tables_fail(const weir_trace_tables *tables, const char *what, const char *path, weir_error *error);

#endif
