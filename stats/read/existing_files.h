/* Which of the files that a run has named exist, as an SQL function. */
#ifndef STATS_READ_EXISTING_FILES_H
#define STATS_READ_EXISTING_FILES_H

#include <sqlite3.h>

/* Adds weir_existing_files(path) to a connection: a JSON array of the paths of the files, in which words in braces stand
   for any text. Returns a SQLITE_ code. */
int weir__existing_files_register(sqlite3 *db);

#endif
