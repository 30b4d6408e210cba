/* The width of text on a terminal. Internal; compiled into each library that uses it. */
#ifndef COMMON_TEXT_COLUMNS_H
#define COMMON_TEXT_COLUMNS_H

#include <stddef.h>

/*
 * Terminal columns of `length` bytes of UTF-8, in any locale of the program. Chinese, Japanese and Korean characters
 * and most emoji take 2, and combining marks 0. All other characters take 1, as do bytes that are not UTF-8. Any
 * thread.
 */
size_t weir__text_columns(const char *text, size_t length);

/* How many bytes of the text fit into `columns` columns: whole characters, with their combining marks. Any thread. */
size_t weir__text_cut(const char *text, size_t columns);

#endif
