/* A run's laps as spans, in SQL: consecutive laps of one mode and phase, without a gap between them. */
#ifndef STATS_READ_PHASE_SPANS_H
#define STATS_READ_PHASE_SPANS_H

#include "stats/schema/lap_tables.h"

/* The laps of one queue of each run: all queues have the same laps. */
#define WEIR_LAP_COLUMNS(mode, phase) \
    "t.run_id, t.id, t.timestamp, t.elapsed, t.first_step, t.last_step, " mode " AS mode, " phase " AS phase"
#define WEIR_QUEUE_OF(run)     "(SELECT q.name FROM queue_stats q WHERE q.run_id = " run ".run_id ORDER BY q.id LIMIT 1)"
#define WEIR_LAPS_OF_ONE_QUEUE "(t.run_id, t.name) IN (SELECT r.run_id, " WEIR_QUEUE_OF("r") " FROM run r)"

/* Two laps that follow each other may have a gap of less than this: the wall clock is read shortly after a lap ended, or
   later on a busy machine. A missing lap shows as a gap of its whole length. */
#define WEIR_GAP_OF(elapsed) "min(max(0.001, 0.5 * " elapsed "), 0.25)"

/* What a span begins with. */
#define WEIR_WITH_A_PLACE "lag(phase) OVER before IS NOT phase OR lag(mode) OVER before IS NOT mode"
#define WEIR_WITH_A_PLACE_OR_GAP \
    WEIR_WITH_A_PLACE \
    " OR timestamp - elapsed - lag(timestamp) OVER before >= " WEIR_GAP_OF("max(elapsed, lag(elapsed) OVER before)")
#define WEIR_WITH_EACH_LAP "1"

/* A table `span` from a table `lap`: "begun AS …, numbered AS …, span AS …" */
#define WEIR_SPANS(begins) \
    "begun AS (SELECT *, " begins " AS begins FROM lap WINDOW before AS (PARTITION BY run_id ORDER BY id))," \
    " numbered AS (SELECT *, sum(begins) OVER (PARTITION BY run_id ORDER BY id) AS number FROM begun)," \
    " span AS (SELECT run_id, mode, phase, coalesce(min(first_step), 0) AS first_step, coalesce(max(last_step), " \
    "-1) AS" \
    " last_step, min(timestamp - elapsed) AS start, max(timestamp) AS end, count(*) AS num_laps, number" \
    " FROM numbered GROUP BY run_id, number)"

#endif
