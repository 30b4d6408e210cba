/* The text that a program prints for a person. */
#ifndef TOOLS_CLI_PROSE_H
#define TOOLS_CLI_PROSE_H

#include <stdbool.h>
#include <stdio.h>

/* What is written to `file` goes to stdout; on a terminal, long lines are broken. */
typedef struct prose {
    FILE *file;
    char *text; /* on a terminal; NULL = file is stdout */
    size_t size;
} prose;

/* Then call prose_close() in any case. */
void prose_open(prose *p);

/* Returns 0 or an errno value: not all was written. */
int prose_close(prose *p);

#endif
