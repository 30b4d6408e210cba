/* Columns of the user's, copied and taken apart (weir/columns.h). Internal. Any thread. */
#ifndef STAGES_MEMORY_COLUMN_VALUES_H
#define STAGES_MEMORY_COLUMN_VALUES_H

#include <stddef.h>

#include <weir/columns.h>
#include <weir/status.h>

#include "common/sibling.h"

/* WEIR_OK; or WEIR_EINVAL with *error filled: a name is missing or given twice, or a column lacks its values. */
WEIR_SIBLING_API int weir__columns_check(const weir_column *columns, size_t num_columns, size_t num_rows,
                                         weir_error *error);

/* A copy, in one block that the caller frees. NULL = out of memory. */
weir_column *weir__columns_copy(const weir_column *columns, size_t num_columns, size_t num_rows);

/* The value of that row in a column. It points to what the column has. */
WEIR_SIBLING_API weir_value weir__column_value(const weir_column *column, size_t row);

/* The columns of rows with these values, the first of values[row][0 … num_values[row] - 1], in one block that the
   caller frees. A row that lacks a column has no value there; integers become reals where other rows have these.
   WEIR_OK; WEIR_ENOMEM; or WEIR_EINVAL with *error filled: a column has texts and numbers. *num_columns may be 0;
   then *columns is NULL. */
int weir__columns_of_rows(const weir_value *const *values, const size_t *num_values, size_t num_rows,
                          weir_column **columns, size_t *num_columns, weir_error *error);

#endif
