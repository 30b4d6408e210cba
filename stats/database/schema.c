/*
 * The tables. Those with SPDL's names begin with SPDL's columns, with its meaning, type and order, so that its
 * scripts read our file; ours stand to the right. Times and timestamps are in seconds. Whoever changes a line here
 * raises WEIR_SCHEMA_VERSION and says in weir_schema_upgrades how older databases get there.
 *
 *   3  item_stats
 *   2  phase, first_step and last_step in task_stats and queue_stats
 *   1  the first
 */
#include "schema.h"

#define RUN_REFERENCE "run_id INTEGER NOT NULL REFERENCES run(run_id) ON DELETE CASCADE"

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
    " entries_lost INTEGER NOT NULL DEFAULT 0);"

/* Where the consumer was during a lap. The defaults are for rows of schema 1, and for those who still write them. */
#define PHASE      "phase TEXT NOT NULL DEFAULT ''" /* '' = ended before the first mark, or there were none */
#define FIRST_STEP "first_step INTEGER"             /* NULL = no step was marked in it */
#define LAST_STEP  "last_step INTEGER"
#define PLACE      PHASE ", " FIRST_STEP ", " LAST_STEP

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
    " PRIMARY KEY (run_id, name));"

#define TASK_STATS \
    "CREATE TABLE task_stats (" \
    " id INTEGER PRIMARY KEY," \
    " timestamp REAL NOT NULL," \
    " name TEXT NOT NULL," \
    " num_tasks INTEGER NOT NULL," \
    " num_failures INTEGER NOT NULL," \
    " ave_time REAL NOT NULL," \
    " p90_time REAL NOT NULL," \
    " p99_time REAL NOT NULL," \
    " " RUN_REFERENCE "," \
    " elapsed REAL NOT NULL," \
    " p50_time REAL NOT NULL," \
    " max_time REAL NOT NULL," \
    " failed_time REAL NOT NULL," \
    " busy_time REAL NOT NULL," \
    " wait_in_time REAL NOT NULL," \
    " wait_thread_time REAL NOT NULL," \
    " wait_out_time REAL NOT NULL," \
    " cpu_time REAL NOT NULL," \
    " histogram BLOB NOT NULL," \
    " num_skipped INTEGER NOT NULL," \
    " " PLACE ");"

#define QUEUE_STATS \
    "CREATE TABLE queue_stats (" \
    " id INTEGER PRIMARY KEY," \
    " timestamp REAL NOT NULL," \
    " name TEXT NOT NULL," \
    " elapsed REAL NOT NULL," \
    " num_items INTEGER NOT NULL," \
    " ave_put_time REAL NOT NULL," \
    " ave_get_time REAL NOT NULL," \
    " p90_put_time REAL NOT NULL," \
    " p99_put_time REAL NOT NULL," \
    " p90_get_time REAL NOT NULL," \
    " p99_get_time REAL NOT NULL," \
    " occupancy_rate REAL NOT NULL," \
    " " RUN_REFERENCE "," \
    " num_put INTEGER NOT NULL," \
    " capacity INTEGER NOT NULL," \
    " ave_depth REAL NOT NULL," \
    " max_depth INTEGER NOT NULL," \
    " ave_bytes REAL NOT NULL," \
    " max_bytes INTEGER NOT NULL," \
    " put_histogram BLOB NOT NULL," \
    " get_histogram BLOB NOT NULL," \
    " " PLACE ");"

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

/* What single items cost. All of them, or for each lap of a stage the slowest ones and a sample of the others. */
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

/* By time and by name and time: SPDL's queries and the plots. By run: one pass over a run, in the order of rowid. */
#define INDEXES \
    "CREATE INDEX task_stats_by_time ON task_stats(timestamp);" \
    "CREATE INDEX task_stats_by_name ON task_stats(name, timestamp);" \
    "CREATE INDEX task_stats_by_run ON task_stats(run_id);" \
    "CREATE INDEX queue_stats_by_time ON queue_stats(timestamp);" \
    "CREATE INDEX queue_stats_by_name ON queue_stats(name, timestamp);" \
    "CREATE INDEX queue_stats_by_run ON queue_stats(run_id);" \
    "CREATE INDEX event_stats_by_time ON event_stats(timestamp);" \
    "CREATE INDEX event_stats_by_run ON event_stats(run_id);" \
    "CREATE INDEX task_failures_by_run ON task_failures(run_id);"

#define IDENTITY \
    "PRAGMA application_id = 2003134834;" \
    "PRAGMA user_version = 3;"

_Static_assert(WEIR_SCHEMA_APPLICATION == 2003134834 && WEIR_SCHEMA_VERSION == 3, "IDENTITY says the same");

const char weir_schema_create[] =
    RUN STAGE TASK_STATS QUEUE_STATS EVENT_STATS TASK_FAILURES ITEM_STATS INDEXES ITEM_INDEX IDENTITY;

#define ADD_PLACE(table) \
    "ALTER TABLE " table " ADD COLUMN " PHASE ";" \
    "ALTER TABLE " table " ADD COLUMN " FIRST_STEP ";" \
    "ALTER TABLE " table " ADD COLUMN " LAST_STEP ";"

const char *const weir_schema_upgrades[WEIR_SCHEMA_VERSION] = {
    [1] = ADD_PLACE("task_stats") ADD_PLACE("queue_stats") "PRAGMA user_version = 2;",
    [2] = ITEM_STATS ITEM_INDEX "PRAGMA user_version = 3;",
};
