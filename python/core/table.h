/*
 * A table of a recording, read in chunks whose columns are Arrow's arrays: for Arrow's C stream interface, and for rows in Python.
 * Nothing here needs the GIL or Python. One thread at a time.
 */
#ifndef PYTHON_CORE_TABLE_H
#define PYTHON_CORE_TABLE_H

#include <weir/query.h>

#include "python/core/arrow.h"

typedef struct weirpy_table {
    weir_recording *recording;
    weir_rows *rows;
    weir_error error; /* of the last failure */
} weirpy_table;

/* Opens the file and begins the statement, see weir_rows_begin(). WEIR_OK, or a failure, which is in *error, too; close it even
   then. */
int weirpy_table_open(weirpy_table *table, const char *path, const weir_filter *filter, const char *sql);
void weirpy_table_close(weirpy_table *table);

/* A struct of the columns. WEIR_OK or WEIR_ENOMEM; on success the caller releases it. */
int weirpy_table_schema(const weirpy_table *table, struct ArrowSchema *schema);

/* The next rows, as an array of structs; bytes of texts that are not UTF-8 become the text \xff. WEIR_OK: the caller
   releases it. WEIR_EOF: there are no more. Or a failure, which is in table->error. */
int weirpy_table_next(weirpy_table *table, struct ArrowArray *array);

/* A stream that owns a copy of the table, which is empty afterwards. WEIR_OK or WEIR_ENOMEM; the caller releases it. */
int weirpy_table_stream(weirpy_table *table, struct ArrowArrayStream *stream);

#endif
