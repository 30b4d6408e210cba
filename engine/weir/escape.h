/* Text from outside, as names of files are, made fit to be shown. */
#ifndef WEIR_ESCAPE_H
#define WEIR_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For a terminal or a log: whatever could move a cursor, begin a line or turn the direction of writing becomes visible. Control
 * characters (C0, DEL, C1), line and paragraph separators and the marks of direction (U+061C, U+200E, U+200F, U+202A to U+202E,
 * U+2066 to U+2069) come out as \n, \x1b or \u202e, bytes that are no UTF-8 as \xff. All else, the backslash included,
 * stays as it is.
 *
 * Writes at most size_bytes with the terminating 0, whole characters only (nothing if size_bytes is 0), and returns the length
 * that all of it has: 4 × strlen(text) + 1 bytes are always enough. text may be NULL, which is empty. Any thread;
 * async-signal-safe.
 */
WEIR_API size_t weir_text_escape(const char *text, char *escaped, size_t size_bytes);

/* The same into a stream (NULL = nowhere). Any thread. */
WEIR_API void weir_text_escape_to(FILE *stream, const char *text);

#ifdef __cplusplus
}
#endif

#endif
