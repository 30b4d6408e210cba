/* The records of a database as tables, one for each kind. */
#ifndef TOOLS_VIEW_RECORD_TABLE_H
#define TOOLS_VIEW_RECORD_TABLE_H

#include <stdio.h>

#include <weir/query.h>

#include "tools/cli/table.h"

/* Names of the tables, NULL at the end: "runs", "stages", … */
extern const char *const record_table_names[];
enum { RECORD_TABLE_RUNS, RECORD_TABLE_NODES };

/* The kind of record of such a list. */
weir_record_kind record_table_kind(int which);

/* The index of a name among them. */
int record_table_find(const char *name);

/*
 * Writes one of them, given by its index, and counts its rows (num_rows may be NULL). WEIR_OK, or a failure with
 * *error filled. Write errors are in ferror(out).
 */
int record_table(FILE *out, table_format format, int which, weir_recording *recording, const weir_filter *filter,
                 int64_t *num_rows, weir_error *error);

/* Puts the columns of a row, from `first` on, into a row of a table with these columns; NULL is an empty cell. */
void record_put_row(table *t, const table_column *columns, size_t num_columns, const weir_row *row, int first);

#endif
