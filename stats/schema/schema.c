/*
 * The tables, except those of laps (lap_tables.c) and of other records (record_tables.c). Tables with SPDL's names
 * start with SPDL's columns, with the same meaning, type and order, so that SPDL's scripts can read the file; other
 * columns follow. Times and timestamps are in seconds. If you change a line here, raise WEIR_SCHEMA_VERSION. New columns
 * of the other tables are added when a database is opened for writing.
 */
#include "schema.h"

#include <weir/maintain.h>

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
    " machine TEXT NOT NULL DEFAULT ''," /* system, CPUs, memory */ \
    " world INTEGER NOT NULL DEFAULT 1," /* the number of ranks */ \
    " job TEXT NOT NULL DEFAULT '');"    /* the same for all ranks that were started together */

#define IDENTITY \
    "PRAGMA application_id = 2003134834;" \
    "PRAGMA user_version = 5;"

_Static_assert(WEIR_SCHEMA_APPLICATION == 2003134834 && WEIR_SCHEMA_VERSION == 5, "IDENTITY says the same");

const char weir__schema_create[] = RUN IDENTITY;

#define FOREIGN_RUN "(SELECT run_id FROM run WHERE version = 'SPDL' AND pid = 0)"

/* A row of SPDL's writer has no run: the first one makes it, and each extends it. */
#define FOREIGN(table, start, columns) \
    "CREATE TRIGGER IF NOT EXISTS " table "_foreign AFTER INSERT ON " table " WHEN NEW.run_id = 0 BEGIN" \
    " INSERT INTO run (node_id, rank, pid, started, ended, status, command, version, world)" \
    " SELECT '', 0, 0, " start ", NEW.timestamp, 0, '', 'SPDL', 0 WHERE NOT EXISTS " FOREIGN_RUN ";" \
    " UPDATE run SET started = min(started, " start "), ended = max(ended, NEW.timestamp)" \
    " WHERE run_id = " FOREIGN_RUN ";" \
    " UPDATE " table " SET " columns "run_id = " FOREIGN_RUN " WHERE id = NEW.id;"

/* spdl_views.c derives the same columns of SPDL's own databases. */
const char weir__schema_foreign[] = FOREIGN("event_stats", "NEW.timestamp", "") " END;" FOREIGN(
    "queue_stats", "NEW.timestamp - NEW.elapsed",
    "num_put = NEW.num_items, put_time = NEW.ave_put_time * NEW.num_items, capacity = 0, "
    "num_joined = 1,"
    " get_time = NEW.ave_get_time * NEW.num_items, occupied_time = NEW.occupancy_rate * "
    "NEW.elapsed, ") " END;" FOREIGN("task_stats", "NEW.timestamp",
                                     "success_time = NEW.ave_time * (NEW.num_tasks - "
                                     "NEW.num_failures), num_joined = 1,"
                                     " elapsed = coalesce(NEW.timestamp - (SELECT "
                                     "max(l.timestamp) FROM task_stats l WHERE l.name = NEW.name"
                                     " AND l.timestamp < NEW.timestamp AND l.run_id "
                                     "= " FOREIGN_RUN "), 0), ") " INSERT OR IGNORE INTO stage (run_id, name, "
                                                                 "kind) SELECT run_id, NEW.name, 'stage' FROM "
                                                                 "task_stats"
                                                                 " WHERE id = NEW.id; END;";

int weir_schema_version(void)
{
    return WEIR_SCHEMA_VERSION;
}
