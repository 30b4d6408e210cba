/*
 * The tables, except those of laps (lap_tables.c) and of other records (record_tables.c). Tables with SPDL's names
 * start with SPDL's columns, with the same meaning, type and order, so that SPDL's scripts can read the file; other
 * columns follow. Times and timestamps are in seconds. If you change a line here, raise WEIR_SCHEMA_VERSION and say in
 * weir_schema_upgrades how older databases get there.
 *
 *   5  process_stats, machine_stats, span_stats, counter_stats (lap_tables.c); threads, inputs and merge_order of stage;
 *      profile_stats; world and job of run; num_missing and num_errors of item_stats
 *   4  sums of laps, flow_stats, pool_stats (lap_tables.c); machine of run
 *   3  item_stats
 *   2  phase, first_step and last_step in task_stats and queue_stats
 *   1  the first
 */
#include "schema.h"

#include <stddef.h>

#define MACHINE "machine TEXT NOT NULL DEFAULT ''" /* system, CPUs, memory */

#define WORLD "world INTEGER NOT NULL DEFAULT 1" /* the number of ranks */
#define JOB   "job TEXT NOT NULL DEFAULT ''"     /* the same for all ranks that were started together */

#define RUN \
    "CREATE TABLE run (" \
    " run_id INTEGER PRIMARY KEY," \
    " node_id TEXT NOT NULL," \
    " rank INTEGER NOT NULL," \
    " pid INTEGER NOT NULL," \
    " started REAL NOT NULL," \
    " ended REAL,"      /* NULL: running, or killed */ \
    " status INTEGER,"  /* weir_status of the end */ \
    " threads INTEGER," /* NULL: not started */ \
    " command TEXT NOT NULL," \
    " version TEXT NOT NULL," \
    " entries_lost INTEGER NOT NULL DEFAULT 0," \
    " " MACHINE ", " WORLD ", " JOB ");"

/* One stage alone with one number of slots; see weir/profile.h. */
#define PROFILE_STATS \
    "CREATE TABLE profile_stats (" \
    " id INTEGER PRIMARY KEY," \
    " run_id " WEIR_RUN_REFERENCE "," \
    " name TEXT NOT NULL," \
    " concurrency INTEGER NOT NULL," \
    " is_best INTEGER NOT NULL," \
    " num_tasks INTEGER NOT NULL," \
    " num_failures INTEGER NOT NULL," \
    " elapsed REAL NOT NULL," \
    " cpu_time REAL NOT NULL," \
    " memory_bytes INTEGER NOT NULL);" \
    "CREATE INDEX profile_stats_by_run ON profile_stats(run_id);"

#define IDENTITY \
    "PRAGMA application_id = 2003134834;" \
    "PRAGMA user_version = 5;"

_Static_assert(WEIR_SCHEMA_APPLICATION == 2003134834 && WEIR_SCHEMA_VERSION == 5, "IDENTITY says the same");

const char weir_schema_create[] = RUN PROFILE_STATS IDENTITY;

#define ADD(table, column) "ALTER TABLE " table " ADD COLUMN " column

const weir_late_column weir_schema_late_columns[] = {
    { "run", "machine", ADD("run", MACHINE) },
    { "run", "world", ADD("run", WORLD) },
    { "run", "job", ADD("run", JOB) },
    { NULL, NULL, NULL },
};

const char *const weir_schema_upgrades[WEIR_SCHEMA_VERSION] = {
    [1] = "PRAGMA user_version = 2;", /* new columns are added afterwards, see database.c */
    [2] = "PRAGMA user_version = 3;",
    [3] = "PRAGMA user_version = 4;",
    [4] = PROFILE_STATS "PRAGMA user_version = 5;",
};
