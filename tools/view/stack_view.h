/* The functions that were sampled (WEIR_STACKS), from a database: as a table, as folded stacks or as a flame graph. */
#ifndef TOOLS_VIEW_STACK_VIEW_H
#define TOOLS_VIEW_STACK_VIEW_H

#include <stdint.h>
#include <stdio.h>

#include <weir/query.h>

#include "tools/cli/table.h"

typedef struct stack_view stack_view;

/* The samples that match the filter, of all its runs together, below the stage or thread that ran. WEIR_OK, also if there are
   none; or a failure. */
int stacks_read(weir_recording *recording, const weir_filter *filter, stack_view **view, weir_error *error);
void stacks_free(stack_view *view); /* NULL is fine */

uint64_t stacks_count(const stack_view *view);    /* of samples */
uint64_t stacks_lost(const stack_view *view);     /* of samples that were lost */
int64_t stacks_period_ns(const stack_view *view); /* the CPU time that a sample stands for, on the average */

/* A row for each function, those with the most samples of their own first (reverse: last), `top` of them (0 = all). */
void stacks_print(const stack_view *view, FILE *out, table_format format, int64_t top, bool reverse);
void stacks_write_folded(const stack_view *view, FILE *out);
void stacks_write_flame_graph(const stack_view *view, FILE *out); /* SVG */

#endif
