/*
 * The tables, except those of laps (lap_tables.c) and of other records (record_tables.c). Tables with SPDL's names
 * start with SPDL's columns, with the same meaning, type and order, so that SPDL's scripts can read the file; other
 * columns follow. Times and timestamps are in seconds. If you change a line here, raise WEIR_SCHEMA_VERSION. New columns
 * of the other tables are added when a database is opened for writing.
 */
#include "stats/schema/schema.h"

#include <weir/query.h>

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
    "PRAGMA user_version = 6;"

_Static_assert(WEIR_SCHEMA_APPLICATION == 2003134834 && WEIR_SCHEMA_VERSION == 6, "IDENTITY says the same");

const char weir__schema_create[] = RUN IDENTITY;

/* A row of SPDL's writer has no run: the first one makes it, and each extends it. */
#define FOREIGN_RUN "(SELECT run_id FROM run WHERE version = 'SPDL' AND pid = 0)"

#define FOREIGN(table, condition, start, columns) \
    "CREATE TRIGGER IF NOT EXISTS " table "_foreign AFTER INSERT ON " table " WHEN NEW.run_id = 0" condition \
    " BEGIN" \
    " INSERT INTO run (node_id, rank, pid, started, ended, status, command, version, world)" \
    " SELECT '', 0, 0, " start ", NEW.timestamp, 0, '', 'SPDL', 0 WHERE NOT EXISTS " FOREIGN_RUN ";" \
    " UPDATE run SET started = min(started, " start "), ended = max(ended, NEW.timestamp)" \
    " WHERE run_id = " FOREIGN_RUN ";" \
    " UPDATE " table " SET " columns "run_id = " FOREIGN_RUN " WHERE id = NEW.id;"

/* The longest of the last hundred laps. A hundred are read at once, and are enough: SPDL's laps have one length,
   except the first and the last. */
#define FOREIGN_LONGEST \
    "(SELECT max(elapsed) FROM (SELECT elapsed FROM queue_stats WHERE run_id = " FOREIGN_RUN \
    " ORDER BY id DESC LIMIT 100))"
#define FOREIGN_GAP \
    "NEW.timestamp - (SELECT max(l.timestamp) FROM task_stats l WHERE l.name = NEW.name AND l.timestamp < " \
    "NEW.timestamp AND l.run_id = " FOREIGN_RUN ")"

/* An event that SPDL's writer reports while a run of ours goes on belongs to that one; if there are several, to the latest. */
#define OPEN_RUN \
    "(SELECT run_id FROM run WHERE version <> 'SPDL' AND threads IS NOT NULL AND started <= NEW.timestamp" \
    " AND (ended IS NULL OR ended >= NEW.timestamp) ORDER BY started DESC, run_id DESC LIMIT 1)"
#define EVENTS_OF_RUNS \
    "CREATE TRIGGER IF NOT EXISTS event_stats_of_run AFTER INSERT ON event_stats WHEN NEW.run_id = 0 AND " \
    "EXISTS " OPEN_RUN " BEGIN UPDATE event_stats SET run_id = " OPEN_RUN " WHERE id = NEW.id; END;"

#define FOREIGN_EVENTS FOREIGN("event_stats", " AND NOT EXISTS " OPEN_RUN, "NEW.timestamp", "")
#define FOREIGN_QUEUES \
    FOREIGN("queue_stats", "", "NEW.timestamp - NEW.elapsed", \
            "num_put = NEW.num_items, put_time = NEW.ave_put_time * NEW.num_items, capacity = 0, num_joined = 1," \
            " get_time = NEW.ave_get_time * NEW.num_items, occupied_time = NEW.occupancy_rate * NEW.elapsed, ")
#define FOREIGN_TASKS \
    FOREIGN("task_stats", "", "NEW.timestamp", \
            "success_time = NEW.ave_time * (NEW.num_tasks - NEW.num_failures), num_joined = 1," \
            " elapsed = coalesce(min(" FOREIGN_GAP ", " FOREIGN_LONGEST "), " FOREIGN_LONGEST ", " FOREIGN_GAP \
            ", 0), ")

/* spdl_views.c derives the same columns of SPDL's own databases. The first laps of tasks may come before those of queues,
   which tell their length. */
const char *const weir__schema_foreign[] = {
    EVENTS_OF_RUNS,
    FOREIGN_EVENTS " END;",
    FOREIGN_QUEUES " UPDATE task_stats SET elapsed = " FOREIGN_LONGEST " WHERE run_id = " FOREIGN_RUN
                   " AND (elapsed = 0 OR elapsed > " FOREIGN_LONGEST
                   ") AND id > (SELECT max(id) FROM task_stats) - 100; END;",
    FOREIGN_TASKS " INSERT OR IGNORE INTO stage (run_id, name, kind) SELECT run_id, NEW.name, 'stage' FROM task_stats"
                  " WHERE id = NEW.id; END;",
    NULL,
};

/* ---- views: rates and shares in plain SQL, for programs without weir's functions --------------------------------- */

#define RUN_OF_LAP "r.run_id, r.node_id, r.rank, r.job"
#define SLOTS(sum) "(" sum "(t.busy_time + t.wait_in_time + t.wait_thread_time + t.wait_turn_time + t.wait_out_time))"
/* Without the time after the end. */
#define TASK_LIFE(sum) \
    "(" sum "(t.elapsed) * coalesce(" SLOTS(sum) " / nullif(" SLOTS(sum) " + coalesce(" sum \
                                                                         "(t.ended_time), 0), 0), 1))"
#define QUEUE_LIFE(sum) "(" sum "(t.elapsed) - coalesce(" sum "(t.ended_time), 0))"
#define TASK_RATES(sum) \
    sum "(t.elapsed) AS elapsed, " sum "(t.num_tasks) AS num_tasks, " sum "(t.num_failures) AS num_failures," \
        " 1.0 * " sum "(t.num_tasks) / nullif(" TASK_LIFE( \
            sum) ", 0) AS tasks_per_s, " sum "(t.success_time) /" \
                 " nullif(" sum "(t.num_tasks - t.num_failures), 0) AS ave_time, " sum \
                 "(t.busy_time) / nullif(" SLOTS( \
                     sum) ", 0)" \
                          " AS busy_share, " sum "(t.wait_in_time) / nullif(" SLOTS( \
                              sum) ", 0) AS wait_in_share, " sum "(t.wait_thread_time)" \
                                   " / nullif(" SLOTS(sum) ", 0) AS wait_thread_share, " sum \
                                                           "(t.wait_turn_time) / nullif(" SLOTS( \
                                                               sum) ", 0) AS" \
                                                                    " wait_turn_share, " sum \
                                                                    "(t.wait_out_time) / nullif(" SLOTS( \
                                                                        sum) ", 0) AS wait_out_share, " sum \
                                                                             "(t.cpu_time)" \
                                                                             " / nullif(" sum \
                                                                             "(t.busy_time), 0) AS cpu_share"
#define QUEUE_RATES(sum) \
    sum "(t.elapsed) AS elapsed, " sum "(t.num_items) AS num_items, 1.0 * " sum \
        "(t.num_items) / nullif(" QUEUE_LIFE( \
            sum) ", 0) AS items_per_s, " sum "(t.put_time) / nullif(" sum "(t.num_put), 0) AS ave_put_time, " sum \
                 "(t.get_time) / nullif(" sum "(t.num_items), 0) AS ave_get_time, " sum \
                 "(t.latency_time) / nullif(" sum "(t.num_items), 0) AS ave_latency, " sum \
                 "(t.occupied_time) / nullif(" QUEUE_LIFE(sum) ", 0) AS occupancy_rate, " sum \
                                                               "(t.depth_time) / nullif(" QUEUE_LIFE( \
                                                                   sum) ", 0) AS ave_depth"
#define VIEWS(table, name, kind, rates, percentiles) \
    "CREATE VIEW " name "_laps AS SELECT " RUN_OF_LAP ", t.name, " kind "t.timestamp - t.elapsed AS start_time," \
    " t.timestamp AS end_time, t.phase, t.first_step, t.last_step, " rates("") percentiles \
        " FROM " table " t JOIN run r" \
        " USING (run_id);" \
        "CREATE VIEW " name "_runs AS SELECT " RUN_OF_LAP ", t.name, " kind \
        "min(t.timestamp - t.elapsed) AS start_time," \
        " max(t.timestamp) AS end_time, " rates("sum") " FROM " table \
                                                       " t JOIN run r USING (run_id) GROUP BY r.run_id, t.name;"

const char *const weir__schema_views[] = {
    VIEWS("task_stats", "stage", "", TASK_RATES, ", t.p90_time, t.p99_time"),
    VIEWS("flow_stats", "flow", "t.kind, ", TASK_RATES, ", t.p90_time, t.p99_time"),
    VIEWS("queue_stats", "queue", "", QUEUE_RATES,
          ", t.p90_put_time, t.p99_put_time, t.p90_get_time, t.p99_get_time"),
    NULL,
};
