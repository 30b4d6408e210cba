/* A database whose values the input of a fuzz target changes. Each change is 12 bytes: a column of the database, a row, the
   type of the new value, and the value. */
#ifndef TESTS_FUZZ_CHANGED_DATABASE_H
#define TESTS_FUZZ_CHANGED_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "tests/fuzz/require.h"

enum { MAX_COLUMNS = 512 };

typedef struct changed_database {
    sqlite3 *seed;                 /* in memory */
    char *columns[MAX_COLUMNS][2]; /* table and column */
    size_t num_columns;
} changed_database;

/* Keeps the contents of the database at `path`. */
void changed_database_read(changed_database *database, const char *path);

/* Writes them to `path`, changed by as many bytes of `data` as make whole changes. */
void changed_database_write(const changed_database *database, const char *path, const uint8_t *data, size_t size);

#endif
