/* Makes text, such as file names and URLs, safe to print. */
#ifndef WEIR_ESCAPE_H
#define WEIR_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For a terminal or a log: makes everything visible that could move the cursor, begin a line or change the text
 * direction. Control characters (C0, DEL, C1), line and paragraph separators and direction marks (U+061C, U+200E,
 * U+200F, U+202A to U+202E, U+2066 to U+2069) become \n, \x1b or \u202e; bytes that are not UTF-8 become \xff.
 * Everything else, including the backslash, stays unchanged.
 *
 * Writes at most size_bytes including the terminating NUL, whole characters only (nothing if size_bytes is 0).
 * Returns the length of the complete result: 4 × strlen(text) + 1 bytes are always enough. A NULL text counts as
 * empty. Any thread; async-signal-safe.
 */
WEIR_API size_t weir_text_escape(const char *text, char *escaped, size_t size_bytes);

/* Writes the escaped text to a stream (NULL = nowhere). Any thread. */
WEIR_API void weir_text_escape_to(FILE *stream, const char *text);

/*
 * Hides the secrets of URLs in a text: what is between "://" and "@", and the values of parameters that give access
 * ("?X-Amz-Signature=***"), such as signatures, tokens, keys and passwords (the list is in docs/guarantees.md).
 * Names are compared as a whole, without regard to case, "-", "_" and percent-encoding; parameters are separated by "?",
 * "&", ";" or "#". Other text stays unchanged.
 *
 * weir does this to labels, error messages, log lines, events and the recorded command line; call it for what your
 * program shows itself. Changes the text in place, which gets no longer; NULL is fine. Any thread.
 */
WEIR_API void weir_text_redact(char *text);

#ifdef __cplusplus
}
#endif

#endif
