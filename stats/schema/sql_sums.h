/*
 * The aggregate functions by which laps are added up in SQL (lap_tables.c): weir_merge_histogram and weir_last. Readers and
 * the writer have them; stats/read/sql_functions.h describes all functions.
 */
#ifndef STATS_SCHEMA_SQL_SUMS_H
#define STATS_SCHEMA_SQL_SUMS_H

#include <stdbool.h>

#include <sqlite3.h>

#include <weir/metrics.h>

/* Adds them to a connection. Returns a SQLITE_ code. */
int weir__sums_register(sqlite3 *db);

/* Adds an encoded histogram; false = it is damaged, which the context then reports. */
bool weir__sums_add_histogram(sqlite3_context *context, weir_histogram *to, sqlite3_value *value);

#endif
