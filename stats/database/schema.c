/*
 * The tables, except those of laps (lap_tables.c). Tables with SPDL's names start with SPDL's columns, with the same
 * meaning, type and order, so that SPDL's scripts can read the file; other columns follow. Times and timestamps are
 * in seconds. If you change a line here, raise WEIR_SCHEMA_VERSION and say in weir_schema_upgrades how older
 * databases get there.
 *
 *   5  process_stats, machine_stats (lap_tables.c); threads, inputs and merge_order of stage; profile_stats; world and
 *      job of run
 *   4  sums of laps, flow_stats, pool_stats (lap_tables.c); machine of run
 *   3  item_stats
 *   2  phase, first_step and last_step in task_stats and queue_stats
 *   1  the first
 */
#include "schema.h"

#include <stddef.h>

#define RUN_REFERENCE "run_id INTEGER NOT NULL REFERENCES run(run_id) ON DELETE CASCADE"

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

/* How a node is connected: private threads, the queues it takes from, how a merge chooses among them. */
#define STAGE_THREADS     "threads INTEGER NOT NULL DEFAULT 0"
#define STAGE_INPUTS      "inputs TEXT NOT NULL DEFAULT ''"
#define STAGE_MERGE_ORDER "merge_order TEXT NOT NULL DEFAULT ''"
#define STAGE_WIRING      STAGE_THREADS ", " STAGE_INPUTS ", " STAGE_MERGE_ORDER

/* In the order of the pipeline, by rowid. */
#define STAGE \
    "CREATE TABLE stage (" \
    " " RUN_REFERENCE "," \
    " name TEXT NOT NULL," \
    " kind TEXT NOT NULL," \
    " concurrency INTEGER NOT NULL," \
    " queue_items INTEGER NOT NULL," \
    " queue_bytes INTEGER NOT NULL," \
    " output_order TEXT NOT NULL," \
    " " STAGE_WIRING ", " \
    " PRIMARY KEY (run_id, name));"

#define EVENT_STATS \
    "CREATE TABLE event_stats (" \
    " id INTEGER PRIMARY KEY," \
    " timestamp REAL NOT NULL," \
    " event_name TEXT NOT NULL," \
    " " RUN_REFERENCE "," \
    " category TEXT NOT NULL," \
    " detail TEXT NOT NULL);"

#define TASK_FAILURES \
    "CREATE TABLE task_failures (" \
    " id INTEGER PRIMARY KEY," \
    " timestamp REAL NOT NULL," \
    " " RUN_REFERENCE "," \
    " name TEXT NOT NULL," \
    " seq INTEGER NOT NULL," \
    " label TEXT NOT NULL," \
    " status INTEGER NOT NULL," \
    " library_code INTEGER NOT NULL," \
    " message TEXT NOT NULL," \
    " elapsed REAL NOT NULL);"

/* The cost of single items: all of them, or for each lap of a stage the slowest and a sample of the others. */
#define ITEM_STATS \
    "CREATE TABLE item_stats (" \
    " id INTEGER PRIMARY KEY," \
    " timestamp REAL NOT NULL," /* of the end */ \
    " " RUN_REFERENCE "," \
    " name TEXT NOT NULL," \
    " seq INTEGER NOT NULL," \
    " label TEXT NOT NULL," \
    " elapsed REAL NOT NULL," \
    " codec TEXT NOT NULL,"    /* '' and 0 = unknown, from here on */ \
    " width INTEGER NOT NULL," /* of the source */ \
    " height INTEGER NOT NULL," \
    " num_frames INTEGER NOT NULL," /* of the result */ \
    " size_bytes INTEGER NOT NULL," /* of the source */ \
    " open_time REAL NOT NULL," \
    " demux_time REAL NOT NULL," \
    " decode_time REAL NOT NULL," \
    " scale_time REAL NOT NULL," \
    " chosen TEXT NOT NULL);" /* 'slowest', 'sample' or 'all' */

#define ITEM_INDEX "CREATE INDEX item_stats_by_run ON item_stats(run_id);"

/* One stage alone with one number of slots; see weir/profile.h. */
#define PROFILE_STATS \
    "CREATE TABLE profile_stats (" \
    " id INTEGER PRIMARY KEY," \
    " " RUN_REFERENCE "," \
    " name TEXT NOT NULL," \
    " concurrency INTEGER NOT NULL," \
    " is_best INTEGER NOT NULL," \
    " num_tasks INTEGER NOT NULL," \
    " num_failures INTEGER NOT NULL," \
    " elapsed REAL NOT NULL," \
    " cpu_time REAL NOT NULL," \
    " memory_bytes INTEGER NOT NULL);" \
    "CREATE INDEX profile_stats_by_run ON profile_stats(run_id);"

#define INDEXES \
    "CREATE INDEX event_stats_by_time ON event_stats(timestamp);" \
    "CREATE INDEX event_stats_by_run ON event_stats(run_id);" \
    "CREATE INDEX task_failures_by_run ON task_failures(run_id);"

#define IDENTITY \
    "PRAGMA application_id = 2003134834;" \
    "PRAGMA user_version = 5;"

_Static_assert(WEIR_SCHEMA_APPLICATION == 2003134834 && WEIR_SCHEMA_VERSION == 5, "IDENTITY says the same");

const char weir_schema_create[] =
    RUN STAGE EVENT_STATS TASK_FAILURES ITEM_STATS PROFILE_STATS INDEXES ITEM_INDEX IDENTITY;

#define ADD(table, column) "ALTER TABLE " table " ADD COLUMN " column

const weir_late_column weir_schema_late_columns[] = {
    { "run", "machine", ADD("run", MACHINE) },
    { "run", "world", ADD("run", WORLD) },
    { "run", "job", ADD("run", JOB) },
    { "stage", "threads", ADD("stage", STAGE_THREADS) },
    { "stage", "inputs", ADD("stage", STAGE_INPUTS) },
    { "stage", "merge_order", ADD("stage", STAGE_MERGE_ORDER) },
    { NULL, NULL, NULL },
};

const char *const weir_schema_upgrades[WEIR_SCHEMA_VERSION] = {
    [1] = "PRAGMA user_version = 2;", /* new columns are added afterwards, see database.c */
    [2] = ITEM_STATS ITEM_INDEX "PRAGMA user_version = 3;",
    [3] = "PRAGMA user_version = 4;",
    [4] = PROFILE_STATS "PRAGMA user_version = 5;",
};
