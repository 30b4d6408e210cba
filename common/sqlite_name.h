/* Names that mean something else than a file to SQLite. Some functions of it would open a database in memory, or what a URI says; a
   program that means that would be surprised by a file of this name. */
#ifndef COMMON_SQLITE_NAME_H
#define COMMON_SQLITE_NAME_H

#include <stdbool.h>
#include <string.h>

static inline bool is_sqlite_name(const char *path)
{
    return strcmp(path, ":memory:") == 0 || strncmp(path, "file:", strlen("file:")) == 0;
}

/* For printf(), with the path twice. */
#define SQLITE_NAME_REFUSED \
    "%.200s is a special name of SQLite, which weir does not support: give the path of a file (./%.200s for one of " \
    "this name)"

#endif
