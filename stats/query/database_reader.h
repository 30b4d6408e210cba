/* An open database, shared by the queries. One thread at a time. */
#ifndef STATS_QUERY_DATABASE_READER_H
#define STATS_QUERY_DATABASE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <weir/query.h>

struct weir_reader {
    sqlite3 *db;
    char *path;
    int schema;   /* its version */
    int num_held; /* holds that have not been released */
    weir_window window;
    bool is_spdl; /* a database recorded by SPDL, which is read through views */
    bool keeps_sql;
    char *sql; /* of the last selection, if it is kept; of SQLite */

    struct weir_record_entry *run; /* the last result of weir_reader_find_run() or weir_reader_find_rank() */
};

/* Reports that reading failed with a SQLITE_ code; returns the status. */
int weir__reader_error(const weir_reader *reader, int code, weir_error *error);

/* Keeps the text of a statement, if that was asked for; NULL = it has none. */
void weir__reader_note_sql(weir_reader *reader, sqlite3_stmt *statement);

/* Reports WEIR_ENOMEM. */
int weir__reader_out_of_memory(weir_error *error);

/* A text column; "" if it is NULL. Blobs are text that is not valid UTF-8. */
const char *weir__column_text(sqlite3_stmt *row, int column);

/* A column of seconds, in nanoseconds; 0 if it is NULL. */
int64_t weir__column_ns(sqlite3_stmt *row, int column);

/* A column of nanoseconds that may be unknown: -1 if it is NULL. */
int64_t weir__column_known_ns(sqlite3_stmt *row, int column);

/* Replaces WEIR_LAST_RUN by its number, and checks that another one exists. */
int weir__reader_resolve_run(weir_reader *reader, int64_t *run_id, weir_error *error);

#endif
