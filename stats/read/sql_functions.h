/*
 * The SQL functions of weir, which every connection to a database has:
 *
 *     weir_merge_histogram(blob)       aggregate: the histogram of all rows; NULL = none of them has one
 *     weir_quantile(blob, q, min, max) the quantile (0 to 1) of a histogram, in seconds, not outside of the shortest and
 *                                      longest time, which may be left out; NULL = no values
 *     weir_concurrency(run, start, end) aggregate of laps: how many of the runs went on at a time, on the average
 *     weir_last(value, time)           aggregate: the value that is not NULL and has the latest time
 *     weir_reason(message, label)      the message of a failure without its label and numbers
 *     weir_folder(path)                the folder of a path
 *     weir_name(pattern, name)         whether a stage's, queue's or span's name matches; see weir_filter
 *     weir_glob(pattern, text)         whether a text equals the pattern or matches it as a glob
 *     weir_histogram_fault(name, blob, count, sum)   what is wrong with a histogram of count values; NULL = nothing
 *
 * Other programs that use SQLite get them from the library: sqlite3 -cmd '.load libweir-stats'
 */
#ifndef STATS_READ_SQL_FUNCTIONS_H
#define STATS_READ_SQL_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

/* Adds them to a connection. Returns a SQLITE_ code. */
int weir__functions_register(sqlite3 *db);

#endif
