/* Where a subcommand writes what it makes: stdout, or a file that is replaced as a whole when it is complete. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "command.h"
#include "replacement.h"

typedef struct output {
    FILE *file;
    const char *path; /* the caller's; NULL = stdout */
    weir_replacement replacement;
} output;

/* path NULL or "-": stdout; it lives until output_close(). TOOL_DONE; or it has said what is wrong, and nothing is to be closed. */
int output_open(const tool_call *call, const char *path, output *out);

/*
 * Writes what is left and, if `keep`, puts the file in its place; otherwise removes it, and an older one stays as it was.
 * Returns TOOL_DONE, or says what is wrong and returns TOOL_FAILED.
 */
int output_close(const tool_call *call, output *out, bool keep);

/* Makes a folder unless it is there (but not those above it). TOOL_DONE, or it has said what is wrong. */
int output_make_folder(const tool_call *call, const char *path);

/* Where a command writes without -o: the name of the database with another ending, in the current folder. */
const char *output_default_path(const char *db_path, const char *ending, char *path, size_t size);

#endif
