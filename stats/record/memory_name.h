/* A recording in memory: the name by which SQLite's VFS "memdb" shares it among connections of this process. Private to stats. */
#ifndef STATS_RECORD_MEMORY_NAME_H
#define STATS_RECORD_MEMORY_NAME_H

#include <weir/sqlite.h>

/* In messages and results, in the place of a path. */
#define WEIR__MEMORY_PATH "(memory)"

/* "" = the writer records in a file, at *path, which is absolute. Both live as long as the writer. */
const char *weir__writer_memory_name(const weir_sqlite_writer *writer, const char **path);

#endif
