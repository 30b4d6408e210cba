/* The path of a database: checks before SQLite opens it, and its form in messages. */
#ifndef STATS_SCHEMA_DATABASE_PATH_H
#define STATS_SCHEMA_DATABASE_PATH_H

#include <weir/status.h>

#include "common/sibling.h"

/* A path for a message: only its end if it is long, without control characters. */
typedef struct weir_path_text {
    char text[320];
} weir_path_text;

WEIR_SIBLING_API weir_path_text weir__path_for_message(const char *path);

/* Sets *error for an errno value: "cannot read PATH: …" and a hint (may be ""). Our own code gives EBADMSG for what is not a
   trace, EINVAL for what is not a regular file, ENOTSUP if zlib is missing. Returns the status. */
WEIR_SIBLING_API int weir__path_fail(weir_error *error, int failure, const char *what, const char *path,
                                     const char *hint);

/* Creates the folders before the last slash of the path if missing. Returns 0 or an errno. */
WEIR_SIBLING_API int weir__path_make_parents(const char *path);

/* Creates missing parent folders, and checks that a file can be written there. */
int weir__path_prepare_writing(const char *path, weir_error *error);

/* Checks that there is a file that can be read. */
int weir__path_prepare_reading(const char *path, weir_error *error);

/* The path as a URI for SQLite, "file:…?query", for any path; the caller frees it. NULL = out of memory. */
char *weir__path_as_uri(const char *path, const char *query);

#endif
