/* Makes options of command lines from the rows of weir/export.h. */
#ifndef TOOLS_CLI_EXPORT_ROWS_H
#define TOOLS_CLI_EXPORT_ROWS_H

#include <weir/export.h>

#include "tools/cli/options.h"

/* A growing list of options. All-zero at the start. */
typedef struct export_rows {
    option_row *rows;
    size_t count;
} export_rows;

void export_rows_add(export_rows *rows, option_row row);

/* Adds the settings of a format. These are those of exports from a database, or those of live exports, which need the
   option of the format. options_offset is where its weir_export_options are in the settings. A setting that is
   already in the list is not added again. */
void export_rows_add_settings(export_rows *rows, const weir_export_format *format, bool from_database,
                              size_t options_offset);

/* The rows with their end. They live as long as the program. */
const option_row *export_rows_end(export_rows *rows);

#endif
