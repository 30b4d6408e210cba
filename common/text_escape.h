/* Makes text, such as file names and URLs, safe to print. */
#ifndef COMMON_TEXT_ESCAPE_H
#define COMMON_TEXT_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/*
 * For a terminal or a log: makes everything visible that could move the cursor, begin a line or change the text
 * direction. Control characters (C0, DEL, C1), line and paragraph separators and direction marks become text such as
 * \n, \x1b or \u202e. The direction marks are U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069. Bytes
 * that are not UTF-8 become text such as \xff. Everything else, including the backslash, stays unchanged.
 *
 * Writes at most size_bytes including the terminating NUL, whole characters only (nothing if size_bytes is 0).
 * Returns the length of the complete result: 4 × strlen(text) + 1 bytes are always enough. A NULL text counts as
 * empty. Any thread; async-signal-safe.
 */
size_t weir__text_escape(const char *text, char *escaped, size_t size_bytes);

/* Writes the escaped text to a stream (NULL = nowhere). Any thread. */
void weir__text_escape_to(FILE *stream, const char *text);

#endif
