/* Which names match a pattern, in C and as SQL functions. */
#ifndef STATS_READ_NAME_MATCH_H
#define STATS_READ_NAME_MATCH_H

#include <stdbool.h>

#include <sqlite3.h>

#include <weir/query.h>

/* Whether the text equals the pattern or matches it as a glob (* ? [a-z] [^a-z]). */
bool weir__glob_matches(const char *pattern, const char *text);

/* Adds weir_name(pattern, name) and weir_glob(pattern, text) to a connection. Returns a SQLITE_ code. */
int weir__names_register(sqlite3 *db);

#endif
