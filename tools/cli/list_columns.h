/* The columns of a list that are the user's: texts as they are read, then numbers where all values of a column are numbers. */
#ifndef TOOLS_CLI_LIST_COLUMNS_H
#define TOOLS_CLI_LIST_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/columns.h>

typedef struct read_column {
    char *name;
    char **texts; /* of each row; NULL = none */
    size_t num_rows;
    bool has_words; /* a text in quotes of JSON: no number */
} read_column;

/* All-zero has none. */
typedef struct list_columns {
    read_column *read;
    size_t num;
    weir_column *columns; /* num of them, after list_columns_end() */
} list_columns;

/* Rows rise; text NULL or "" = the row has no value there. Both are copied. */
void list_columns_put(list_columns *to, const char *name, size_t row, const char *text, bool is_word);

/* All rows are read. A column has integers, reals or texts: whole numbers as they are written by programs, without
   leading zeros. */
void list_columns_end(list_columns *to, size_t num_rows);

void list_columns_free(list_columns *columns);

#endif
