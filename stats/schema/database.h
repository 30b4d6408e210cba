/* A weir database: opening it for writing and for reading, and converting its errors. */
#ifndef STATS_SCHEMA_DATABASE_H
#define STATS_SCHEMA_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <weir/status.h>

/* Converts a SQLITE_ code to a status. */
int weir__database_status(int code);

/* What has happened, in words. db may be NULL. Valid until the next call for db. */
const char *weir__database_text(sqlite3 *db, int code);

/* What the user can do about it, as the end of a sentence: "; free some room…", or "". */
const char *weir__database_hint(int code);

/*
 * Fills *error: `what` ("cannot write to") failed with `code` for the database at `path`, with the message of `db`
 * (may be NULL). Returns the status.
 */
int weir__database_error(weir_error *error, sqlite3 *db, int code, const char *what, const char *path);

/*
 * Creates a database that others see only when it is whole: with its schema and, unless fill is NULL, with what fill()
 * writes; a signal ends that. The folders must be there. Nothing is left if it fails. *was_made false after WEIR_OK:
 * somebody else was faster, and that database is there.
 */
int weir__database_make(const char *path, int64_t deadline_ns, int (*fill)(void *self, sqlite3 *db), void *self,
                        bool *was_made, weir_error *error);

/*
 * Opens for writing, creates missing folders, file, tables and columns, and switches to WAL. Waits
 * for locks until deadline_ns (weir_clock_ns()). Changes nothing if it is not a weir database. One thread at a time
 * may use the connection.
 */
int weir__database_open_writer(const char *path, int64_t deadline_ns, sqlite3 **db, weir_error *error);

/*
 * Opens for reading; the file must exist and be weir's or SPDL's. *schema is WEIR_SCHEMA_VERSION or
 * WEIR_SCHEMA_SPDL. Works in read-only folders.
 */
int weir__database_open_reader(const char *path, sqlite3 **db, int *schema, weir_error *error);

/*
 * The same for a database in memory, by a name for SQLite's VFS "memdb" (a URI): the writer makes it, and it lives until the last
 * connection is closed. Readers wait while the writer commits, and the other way round. `path` is for messages.
 */
int weir__database_make_memory(const char *name, sqlite3 **db, const char *path, weir_error *error);
int weir__database_open_memory(const char *name, sqlite3 **db, int *schema, const char *path, weir_error *error);

/* Waits until all that was committed is on the disk, in the log (-wal) or in the database. By the connection's thread. Returns
   SQLite's code. */
int weir__database_sync_log(sqlite3 *db);

/* Closes; NULL is fine. */
void weir__database_close(sqlite3 *db);

#endif
