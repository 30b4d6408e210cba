/*
 * Columns of the user's: what a list or an index says of each clip beside its path and label. They travel with the item
 * (weir_entry.values) into the batch (weir_collated.columns): numbers as arrays, texts as texts.
 */
#ifndef WEIR_COLUMNS_H
#define WEIR_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_column_kind {
    WEIR_COLUMN_INTEGER = 0, /* int64 */
    WEIR_COLUMN_REAL,        /* double */
    WEIR_COLUMN_TEXT,        /* UTF-8 */
} weir_column_kind;

/* A column: one element for each row of a list, or item of a batch. Of the three arrays, only that of the kind is set. */
typedef struct weir_column {
    const char *name;
    weir_column_kind kind;
    /* 0 = the row has no value here; then its element is 0, NaN or "" (NULL = all rows have one) */
    const uint8_t *is_there;
    const int64_t *integers;
    const double *reals;
    const char *const *texts;
} weir_column;

/* The value of one row in a column. */
typedef struct weir_value {
    const char *name; /* of the column */
    weir_column_kind kind;
    bool is_there; /* false: the row has no value here */
    int64_t integer;
    double real;
    const char *text; /* not NULL */
} weir_value;

/* The column of that name; NULL = there is none. */
static inline const weir_column *weir_column_find(const weir_column *columns, size_t num_columns, const char *name)
{
    for (size_t i = 0; i < num_columns; i++)
        if (strcmp(columns[i].name, name) == 0)
            return &columns[i];
    return NULL;
}

#ifdef __cplusplus
}
#endif

#endif
