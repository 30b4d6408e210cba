/* The records of a database as tables, one for each kind, in CSV and JSON. */
#ifndef TOOLS_EXPORT_TABLES_H
#define TOOLS_EXPORT_TABLES_H

#include <stdio.h>

#include <weir/query.h>

#include "table.h"

/* Names of the tables, NULL at the end: "runs", "stages", … */
extern const char *const export_table_names[];

/* Writes one of them, known by its place above. WEIR_OK, or *error. What goes wrong with `out` is in ferror(out). */
int export_table(FILE *out, table_format format, int which, weir_reader *reader, const weir_filter *filter,
                 weir_error *error);

#endif
