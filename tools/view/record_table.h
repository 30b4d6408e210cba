/* The records of a database as tables, one for each kind. */
#ifndef TOOLS_VIEW_RECORD_TABLE_H
#define TOOLS_VIEW_RECORD_TABLE_H

#include <stdio.h>

#include <weir/query.h>

#include "table.h"

/* Names of the tables, NULL at the end: "runs", "stages", … */
extern const char *const record_table_names[];
enum { RECORD_TABLE_RUNS, RECORD_TABLE_NODES };

/* The index of a name among them. */
/* The kind of record of such a list. */
weir_record_kind record_table_kind(int which);

int record_table_find(const char *name);

/*
 * Writes one of them, given by its index, and counts its rows (num_rows may be NULL). WEIR_OK, or a failure with
 * *error filled. Write errors are in ferror(out).
 */
int record_table(FILE *out, table_format format, int which, weir_reader *reader, const weir_filter *filter,
                 int64_t *num_rows, weir_error *error);

#endif
