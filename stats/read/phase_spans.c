#include "phase_spans.h"

#include "lap_tables.h"
#include "record_tables.h"

/* The laps of one queue of each run: all queues have the same laps. */
#define LAPS_BEGIN "WITH lap AS ("
#define LAPS_COLUMNS \
    "t.run_id, t.id, t.timestamp, t.elapsed, t.first_step, t.last_step, " WEIR_PHASE_OF_LAP " AS phase"
#define LAPS_OF_ONE_QUEUE \
    "AND (t.run_id, t.name) IN (SELECT r.run_id, (SELECT q.name FROM queue_stats q WHERE q.run_id = r.run_id" \
    " ORDER BY q.id LIMIT 1) FROM run r)"

/*
 * A span begins with another phase, or behind a gap. Consecutive laps may have a small gap: the wall clock is read
 * shortly after a lap ended, or later on a busy machine. A missing lap shows as a gap of its whole length.
 */
#define BEGINS \
    "lag(phase) OVER before IS NOT phase OR timestamp - elapsed - lag(timestamp) OVER before >=" \
    " min(max(0.001, 0.5 * max(elapsed, lag(elapsed) OVER before)), 0.25)"

#define SPANS(begins) \
    "), begun AS (SELECT *, " begins " AS begins FROM lap WINDOW before AS (PARTITION BY run_id ORDER BY id))," \
    " numbered AS (SELECT *, sum(begins) OVER (PARTITION BY run_id ORDER BY id) AS number FROM begun)," \
    " span AS (SELECT run_id, phase, coalesce(min(first_step), 0) AS first_step, coalesce(max(last_step), -1) AS" \
    " last_step, min(timestamp - elapsed) AS start, max(timestamp) AS end, count(*) AS num_laps, number" \
    " FROM numbered GROUP BY run_id, number)"
#define ALL_SPANS " SELECT * FROM span ORDER BY run_id, number LIMIT CASE :limit WHEN 0 THEN -1 ELSE :limit END"

/* A phase that goes on after a gap keeps its transition. */
const char weir__with_transitions[] = LAPS_BEGIN
    "SELECT " LAPS_COLUMNS " FROM queue_stats t WHERE t.run_id IN (SELECT r.run_id FROM run r WHERE :run = 0"
    " OR r.run_id = :run) " LAPS_OF_ONE_QUEUE SPANS(
        "lag(phase) OVER before IS NOT phase") ", transition AS MATERIALIZED (SELECT run_id, end, "
                                               "coalesce(lag(phase) OVER before, 'start') || ' > ' || phase AS"
                                               " text FROM span WINDOW before AS (PARTITION BY run_id ORDER BY "
                                               "number)) ";

int weir__phases_select(weir_reader *reader, const weir_filter *filter, bool each_lap, sqlite3_stmt **statement,
                        weir_error *error)
{
    weir_filter laps = *filter;
    laps.name = NULL;
    laps.after_id = 0;
    const weir_sql_selection selection = {
        .kind = WEIR_ROWS_LAPS,
        .table = "queue_stats",
        .begin = LAPS_BEGIN,
        .columns = LAPS_COLUMNS,
        .condition = LAPS_OF_ONE_QUEUE,
        .end = each_lap ? SPANS("1") ALL_SPANS : SPANS(BEGINS) ALL_SPANS,
    };
    return weir__select(reader, &selection, &laps, statement, error);
}

int weir__phases_next(weir_reader *reader, sqlite3_stmt *statement, weir_phase_record *span, weir_error *error)
{
    weir_record record = { .kind = WEIR_RECORD_PHASE };
    int code = sqlite3_step(statement);
    if (code != SQLITE_ROW)
        return code == SQLITE_DONE ? WEIR_EOF : weir__reader_error(reader, code, error);
    weir__record_read(statement, WEIR_RECORD_PHASE, &record);
    *span = record.phase;
    return WEIR_OK;
}
