/* One database of ours: opening it for writing and for reading, and what its errors are to us. */
#ifndef WEIR_DATABASE_H
#define WEIR_DATABASE_H

#include <stdint.h>

#include <sqlite3.h>

#include <weir/status.h>

/* The status that a SQLITE_ code is to us. */
int weir_database_status(int code);

/* What a person can do about it, as the end of a sentence: "; free some room…", or "". */
const char *weir_database_hint(int code);

/*
 * Says in *error that `what` ("cannot write to") failed with `code` for the database at `path`, with the text that
 * `db` (may be NULL) has for it. Returns the status.
 */
int weir_database_error(weir_error *error, sqlite3 *db, int code, const char *what, const char *path);

/*
 * Opens for writing, makes folders, file and schema where they are missing, brings an older schema up to ours, and
 * switches to WAL. Waits for locks until deadline_ns (weir_clock_ns()). Changes nothing if it is not ours. One thread at a time may use the connection.
 */
int weir_database_open_writer(const char *path, int64_t deadline_ns, sqlite3 **db, weir_error *error);

/*
 * Opens for reading; the file must exist and be ours or SPDL's. *schema is its version, from WEIR_SCHEMA_OLDEST on. Works in
 * folders that cannot be written to.
 */
int weir_database_open_reader(const char *path, sqlite3 **db, int *schema, weir_error *error);

/* Closes; NULL is fine. */
void weir_database_close(sqlite3 *db);

#endif
