/* Where the file system has no nameless files, an incomplete file has a hidden name: it is removed when a signal ends the
   program. One at a time. */
#ifndef TOOLS_CLI_OUTPUT_PART_H
#define TOOLS_CLI_OUTPUT_PART_H

#include <signal.h>

/* Before the file is created: holds these signals back. *before is for output_part_end(). */
void output_part_begin(sigset_t *before);

/* The path is copied; NULL = nothing to remove. */
void output_part_end(const sigset_t *before, const char *path);

/* The file is complete, or was removed. */
void output_part_forget(void);

#endif
