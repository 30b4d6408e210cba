/* The SQLite file of a dataset: opens it, and converts its errors. Internal. One thread at a time for each. */
#ifndef DATASET_INDEX_INDEX_FILE_H
#define DATASET_INDEX_INDEX_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <weir/status.h>

/* SQL: how long a clip is, in seconds; that of a window in frames is an estimate if frames do not last equally long. */
#define WEIR__CLIP_DURATION \
    "max(0.0, min(coalesce(end, end_frame * duration / num_frames, duration), duration)" \
    " - coalesce(start, start_frame * duration / num_frames, 0.0))"

/* Fills *error; returns the status. db may be NULL. */
int weir__index_error(weir_error *error, sqlite3 *db, int code, const char *what, const char *path);

/* For writing; creates a missing file. A file of another program is not changed. On failure *db is NULL. */
int weir__index_open_writer(const char *path, sqlite3 **db, weir_error *error);

/* For reading: it must exist and be an index. */
int weir__index_open_reader(const char *path, sqlite3 **db, weir_error *error);

/* The same by a name of SQLite's, for an index in memory; `path` is for messages. The first one makes the tables, and needs no
   journal on the disk. */
int weir__index_create_shared(const char *name, sqlite3 **db, const char *path, weir_error *error);
int weir__index_open_shared(const char *name, sqlite3 **db, const char *path, weir_error *error);

/* An empty one in memory, to ask what an index has. Returns SQLite's code; the caller closes *db. */
int weir__index_open_memory(sqlite3 **db);

/* Runs statements without results. */
int weir__index_run(sqlite3 *db, const char *sql, const char *path, weir_error *error);

/* A text of the current row; "" = NULL, as in an index that another program has changed, or out of memory. */
const char *weir__index_text(sqlite3_stmt *row, int column);

/* The value of that key, which the caller frees; NULL = none, or out of memory. */
char *weir__index_get(sqlite3 *db, const char *key);
int weir__index_set(sqlite3 *db, const char *key, const char *value, const char *path, weir_error *error);

#endif
