/* An incomplete file is removed when the program is interrupted (SIGINT, SIGTERM, SIGHUP). One at a time. */
#ifndef TOOLS_CLI_OUTPUT_PART_H
#define TOOLS_CLI_OUTPUT_PART_H

#include <signal.h>

/* Before the file is created: holds these signals back. *before is for output_part_end(). */
void output_part_begin(sigset_t *before);

/* The path is copied; NULL = nothing to remove. */
void output_part_end(const sigset_t *before, const char *path);

/* It is complete, or removed. */
void output_part_forget(void);

/* A folder around it that is removed, too; NULL = none. Set between the first two calls. */
extern char *volatile output_part_folder;

#endif
