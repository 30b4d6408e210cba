/* Files of stacks (WEIR_STACKS): the functions in which the time went, as a table, as folded stacks or as a flame graph. */
#ifndef TOOLS_VIEW_STACK_VIEW_H
#define TOOLS_VIEW_STACK_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/cli/table.h"

/* Whether the file begins like one of stacks. */
bool stacks_are_in(const char *path);

/* The stacks from second `since` on, up to before `until` (0 = to the end); NULL = the file cannot be read (errno). */
typedef struct stack_frame stack_frame;
stack_frame *stacks_read(const char *path, int64_t since, int64_t until);
void stacks_free(stack_frame *root);
uint64_t stacks_count(const stack_frame *root); /* of samples */

/* The functions with the most samples of their own: columns words, count, share, count, share. */
void stacks_print(const stack_frame *root, table *t, int64_t top);
void stacks_write_folded(const stack_frame *root, FILE *out);
void stacks_write_flame_graph(const stack_frame *root, FILE *out); /* SVG */

#endif
