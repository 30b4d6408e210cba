/* The user's columns of an index: each is a column of the table `clip`, so that conditions can use it. Private to this room. */
#ifndef DATASET_INDEX_USER_COLUMNS_H
#define DATASET_INDEX_USER_COLUMNS_H

#include <stddef.h>

#include <sqlite3.h>

#include <weir/bytes.h>
#include <weir/columns.h>
#include <weir/status.h>

/* The names and kinds of the user's columns; all-zero has none. */
typedef struct user_columns {
    weir_column *all;
    size_t num;
    char *sql; /* ", "a", "b"", for the end of a list of columns; "" = none */
} user_columns;

/* WEIR_OK, or the failure with *error filled. Afterwards weir__user_columns_free(), whatever the result. */
int weir__user_columns_read(user_columns *columns, sqlite3 *db, const char *path, weir_error *error);

void weir__user_columns_free(user_columns *columns);

/* Sets the entry's values from a row that has the user's columns from `first` on. WEIR_OK or WEIR_ENOMEM. */
int weir__user_columns_fill(const user_columns *columns, sqlite3_stmt *row, int first, weir_entry *entry);

#endif
