/* The options that several subcommands share. */
#ifndef TOOLS_CLI_FILTER_OPTIONS_H
#define TOOLS_CLI_FILTER_OPTIONS_H

#include "options.h"

/* Each set's values go into a tool_shared. */
extern const option_row tool_run_rows[];    /* --run */
extern const option_row tool_filter_rows[]; /* --name, --since, … */
extern const option_row tool_format_rows[]; /* --json, --csv */
extern const option_row tool_help_rows[];   /* --help */

#endif
