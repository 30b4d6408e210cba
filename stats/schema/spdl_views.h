/* Databases recorded by SPDL: task_stats, queue_stats and event_stats, with SPDL's columns only. */
#ifndef STATS_SCHEMA_SPDL_VIEWS_H
#define STATS_SCHEMA_SPDL_VIEWS_H

#include <stdbool.h>

#include <sqlite3.h>

/*
 * Creates temporary views, over the tables of the same names, that look like one run of weir: values that SPDL does
 * not store are NULL; over those of the attached database "source", if of_source. Returns a SQLITE_ code.
 */
int weir__spdl_make_views(sqlite3 *db, bool of_source);

#endif
