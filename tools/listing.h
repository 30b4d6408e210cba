/* Records as tables, one kind each: what `weir query --list` prints. */
#ifndef TOOLS_LISTING_H
#define TOOLS_LISTING_H

#include "tool.h"

/* "runs", "nodes", …; NULL at the end. */
extern const char *const listing_words[];

/* Prints those that the filter means; *count is how many there were. */
int listing_print(const tool_call *call, weir_reader *reader, int what, const weir_filter *filter, int64_t *count,
                  weir_error *error);

#endif
