/* Which names a pattern means, in C and as functions of SQL. */
#ifndef WEIR_NAMES_H
#define WEIR_NAMES_H

#include <stdbool.h>

#include <sqlite3.h>

/*
 * Whether a stage's or queue's name is meant: "decode" and "d*" mean "0:1:decode[10]" and "0:1:decode[10]_queue"; the
 * whole name and globs for it, too; "decode*_queue" the queue alone.
 */
bool weir_name_matches(const char *pattern, const char *name);

/* A glob (* ? [a-z] [^a-z]), or the same text. */
bool weir_glob_matches(const char *pattern, const char *text);

/* Adds weir_name(pattern, name) and weir_glob(pattern, text) to a connection. Returns a SQLITE_ code. */
int weir_names_register(sqlite3 *db);

#endif
