/* Databases recorded by SPDL: task_stats, queue_stats and event_stats, with SPDL's columns only. */
#ifndef STATS_SCHEMA_SPDL_VIEWS_H
#define STATS_SCHEMA_SPDL_VIEWS_H

#include <stdbool.h>

#include <sqlite3.h>

/*
 * Creates temporary views that look like one run of weir. By default they are of the main database, with the names of
 * its tables behind "spdl_" (but "run"), for weir__tables_complete(). If of_source, they are of the attached database
 * "source", with the same names. Values that SPDL does not store are NULL. Returns a SQLITE_ code.
 */
int weir__spdl_make_views(sqlite3 *db, bool of_source);

#endif
