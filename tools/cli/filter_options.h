/* The options that several subcommands share. */
#ifndef TOOLS_CLI_FILTER_OPTIONS_H
#define TOOLS_CLI_FILTER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/cli/options.h"

/* A point in time as given by the user; see --since. */
typedef struct tool_time {
    enum { TOOL_TIME_NONE, TOOL_TIME_UNIX, TOOL_TIME_AFTER_START, TOOL_TIME_BEFORE_END } kind;
    double seconds;
} tool_time;

/* A range of steps. */
typedef struct tool_steps {
    bool given;
    int64_t first, last;
} tool_steps;

/* The values of the shared options. */
typedef struct tool_shared {
    bool help;
    const char *db;
    bool json, csv;
    int64_t run_id; /* as in weir_filter */
    bool run_given;
    const char *name, *node, *phase, *mode, *from_phase, *until_phase, *from_mode, *until_mode;
    tool_steps steps, between;
    bool every_time;
    int section; /* weir_run_section */
    struct {
        bool given;
        int32_t number;
    } rank;
    tool_time since, until;
} tool_shared;

/* Each set's values go into a tool_shared. */
extern const option_row tool_db_rows[];     /* --db */
extern const option_row tool_run_rows[];    /* --run */
extern const option_row tool_filter_rows[]; /* --name, --since, … */
extern const option_row tool_format_rows[]; /* --json, --csv */
extern const option_row tool_help_rows[];   /* --help */

/* Reads "last", "previous" or the number of a run (int64_t, as in weir_filter). */
bool tool_parse_run(const char *text, void *run_id);

#endif
