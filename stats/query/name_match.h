/* Which names match a pattern, in C and as SQL functions. */
#ifndef WEIR_NAMES_H
#define WEIR_NAMES_H

#include <stdbool.h>

#include <sqlite3.h>

/*
 * Whether a stage's or queue's name matches: "decode" and "d*" match "0:1:decode[10]" and "0:1:decode[10]_queue", and
 * so do the whole name and globs for it; "decode*_queue" matches only the queue.
 */
bool weir_name_matches(const char *pattern, const char *name);

/* Whether the text equals the pattern or matches it as a glob (* ? [a-z] [^a-z]). */
bool weir_glob_matches(const char *pattern, const char *text);

/* Adds weir_name(pattern, name) and weir_glob(pattern, text) to a connection. Returns a SQLITE_ code. */
int weir_names_register(sqlite3 *db);

#endif
