/*
 * An index in memory: a database of SQLite's VFS "memdb", which connections of this process share by its name. It lives until the
 * last of them is closed, so datasets outlive the weir_dataset_memory that they were opened from. Internal.
 *
 * It is built once, by one connection, and then only read: its locks would make readers wait for a build.
 */
#ifndef DATASET_INDEX_MEMORY_INDEX_H
#define DATASET_INDEX_MEMORY_INDEX_H

#include <sqlite3.h>

#include <weir/dataset.h>

/* For messages, in the place of a path. */
#define WEIR__MEMORY_INDEX_NAME "the memory index"

/* A new one with its tables, and the connection that builds it, which belongs to it. On failure *memory is NULL. */
int weir__memory_index_new(weir_dataset_memory **memory, sqlite3 **db, weir_error *error);

/* Another connection, for reading. On failure *db is NULL. Any thread. */
int weir__memory_index_open(const weir_dataset_memory *memory, sqlite3 **db, weir_error *error);

#endif
