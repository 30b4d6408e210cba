/* The width of text on a terminal. Internal; compiled into each library that uses it. */
#ifndef COMMON_TEXT_COLUMNS_H
#define COMMON_TEXT_COLUMNS_H

#include <stddef.h>

/*
 * Terminal columns of `length` bytes of UTF-8, in any locale of the program: 2 for Chinese, Japanese and Korean characters and
 * most emoji, 0 for combining marks, 1 for all others and for bytes that are not UTF-8. Any thread.
 */
size_t weir__text_columns(const char *text, size_t length);

/* How many bytes of the text fit into `columns` columns: whole characters, with their combining marks. Any thread. */
size_t weir__text_cut(const char *text, size_t columns);

#endif
