/*
 * SPDL's task_stats has no lap length. It is estimated as the time since the previous lap of the same name. A file
 * may hold several runs, so the estimate is limited to the longest lap of a queue, if there is one. The number of
 * items put in is not stored either; the number taken out is used. A run lasts as long as the laps of queues. Without
 * these it lasts as long as the laps of tasks, whose begin is not known, or as the events.
 */
#include "stats/schema/spdl_views.h"

#include <stddef.h>

#define LAPS \
    "1 AS run_id, '' AS phase, '' AS mode, NULL AS first_step, NULL AS last_step, NULL AS suspended_time, 1 AS " \
    "num_joined"

#define VIEWS(db, prefix) \
    "PRAGMA temp_store = MEMORY;" \
    "CREATE TEMP VIEW " prefix \
    "queue_stats AS SELECT id, timestamp, name, elapsed, num_items, ave_put_time, ave_get_time," \
    " p90_put_time, p99_put_time, p90_get_time, p99_get_time, occupancy_rate, num_items AS num_put, 0 AS capacity," \
    " ave_put_time * num_items AS put_time, ave_get_time * num_items AS get_time," \
    " occupancy_rate * elapsed AS occupied_time," \
    " " LAPS " FROM " db ".queue_stats;" \
    "CREATE TEMP VIEW " prefix \
    "task_stats AS SELECT id, timestamp, name, num_tasks, num_failures, ave_time, p90_time, " \
    "p99_time," \
    " ave_time * (num_tasks - num_failures) AS success_time, NULL AS max_time," \
    " coalesce(min(gap, longest), longest, gap, 0.0) AS elapsed, " LAPS \
    " FROM (SELECT *, timestamp - lag(timestamp) OVER (PARTITION BY name ORDER BY timestamp) AS gap FROM " db \
    ".task_stats), (SELECT max(elapsed) AS longest FROM " db ".queue_stats);" \
    "CREATE TEMP VIEW " prefix \
    "event_stats AS SELECT id, timestamp, event_name, 1 AS run_id, '' AS category, '' AS detail" \
    " FROM " db ".event_stats;" \
    "CREATE TEMP VIEW " prefix \
    "task_failures AS SELECT 0 AS id, 0.0 AS timestamp, 1 AS run_id, '' AS name, 0 AS seq," \
    " '' AS label, 0 AS status, 0 AS library_code, '' AS message, 0.0 AS elapsed, '' AS identity, 0 AS occurrence " \
    "WHERE 0;" \
    "CREATE TEMP VIEW run AS SELECT 1 AS run_id, '' AS node_id, 0 AS rank, 0 AS pid," \
    " coalesce((SELECT min(timestamp - elapsed) FROM " db ".queue_stats), (SELECT min(timestamp) FROM " db \
    ".task_stats), (SELECT min(timestamp) FROM " db ".event_stats)) AS started," \
    " coalesce((SELECT max(timestamp) FROM " db ".queue_stats), (SELECT max(timestamp) FROM " db \
    ".task_stats), (SELECT max(timestamp) FROM " db ".event_stats)) AS ended," \
    " 0 AS status, NULL AS threads, '' AS command, 'SPDL' AS version, 0 AS entries_lost, '' AS machine," \
    " 0 AS world, '' AS job WHERE started IS NOT NULL;" \
    "CREATE TEMP TABLE " prefix "stage (run_id, name, kind, concurrency, queue_items, queue_bytes, output_order," \
    " threads, inputs, merge_order, look_ahead_items);" \
    "INSERT INTO temp." prefix "stage SELECT 1, name, 'stage', 0, 0, 0, '', 0, '', '', 0 FROM " db \
    ".task_stats GROUP BY name ORDER BY min(id);"

int weir__spdl_make_views(sqlite3 *db, bool of_source)
{
    return sqlite3_exec(db, of_source ? VIEWS("source", "") : VIEWS("main", "spdl_"), NULL, NULL, NULL);
}
