/* The output of a subcommand: stdout, or a file that is replaced as a whole when it is complete. */
#ifndef TOOLS_CLI_OUTPUT_FILE_H
#define TOOLS_CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "common/replacement.h"
#include "tools/cli/command.h"
#include "tools/cli/output_check.h"

typedef struct output {
    FILE *file;
    const char *path; /* the caller's; NULL = stdout */
    weir__replacement replacement;
} output;

/* Checks a path that is written later, or by a library. The inputs are the words of the command from `first_input` on.
   Returns TOOL_DONE, or reports why it may not be written. */
int output_allow(const tool_call *call, const char *path, weir_output_kind kind, bool force, int first_input);

/* path NULL or "-": stdout; it lives until output_close(). All words of the command are its inputs. Returns TOOL_DONE,
   or reports the error; then do not close it. */
int output_open(const tool_call *call, const char *path, weir_output_kind kind, bool force, output *out);

/*
 * Writes the rest. With `keep` the file replaces an older one; without, it is removed and an older one stays. Returns
 * TOOL_DONE, or reports the error and returns TOOL_FAILED.
 */
int output_close(const tool_call *call, output *out, bool keep);

/* Creates a folder unless it exists, but not its parents. Returns TOOL_DONE, or reports the error. */
int output_make_folder(const tool_call *call, const char *path);

/* The output path without -o: the name of the database with another extension, in the current folder. */
const char *output_default_path(const char *db_path, const char *extension, char *path, size_t size);

#endif
