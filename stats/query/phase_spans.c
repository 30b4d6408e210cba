#include "phase_spans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Tolerance for the gap between consecutive laps: the wall clock is read shortly after a lap ended, or later on a
 * busy machine. A missing lap shows as a gap of its whole length.
 */
#define LEAST_GAP_S 1e-3
#define MOST_GAP_S  0.25

static const weir_sql_selection runs_selection = { .kind = WEIR_ROWS_RUNS, .table = "run", .columns = "t.run_id" };
static const weir_sql_selection laps_selection = {
    .kind = WEIR_ROWS_LAPS,
    .table = "queue_stats",
    .columns = "t.timestamp, t.elapsed, t.name, t.phase, t.first_step, t.last_step",
};

int weir_phase_spans_begin(weir_phase_spans *spans, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    *spans = (weir_phase_spans){ .reader = reader, .filter = *filter, .marks = { .reader = reader } };
    spans->filter.name = NULL;
    spans->filter.descending = spans->filter.longest_first = false;
    spans->filter.limit = spans->filter.after_id = 0;
    return weir_select(reader, &runs_selection, &spans->filter, &spans->runs, error);
}

void weir_phase_spans_end(weir_phase_spans *spans)
{
    sqlite3_finalize(spans->runs);
    sqlite3_finalize(spans->laps);
    weir_marks_free(&spans->marks);
    free(spans->name);
    free(spans->phase);
    free(spans->next_phase);
    *spans = (weir_phase_spans){ .reader = NULL };
}

/* WEIR_OK, or WEIR_EOF after the last run. */
static int next_run(weir_phase_spans *spans, weir_error *error)
{
    int code = spans->runs ? sqlite3_step(spans->runs) : SQLITE_DONE;
    if (code == SQLITE_DONE) {
        sqlite3_finalize(spans->runs); /* another step would restart it */
        spans->runs = NULL;
        return WEIR_EOF;
    }
    if (code != SQLITE_ROW)
        return weir_reader_error(spans->reader, code, error);
    free(spans->name);
    spans->name = NULL;
    weir_filter filter = spans->filter;
    filter.run_id = spans->run_id = sqlite3_column_int64(spans->runs, 0);
    filter.node_id = NULL;
    filter.by_rank = false;
    int status = weir_marks_of(&spans->marks, filter.run_id, &spans->is_marked, error);
    if (status == WEIR_OK)
        status = weir_select(spans->reader, &laps_selection, &filter, &spans->laps, error);
    return status;
}

/* The phase of a lap as queries see it. */
static const char *phase_of(const weir_phase_spans *spans, sqlite3_stmt *lap)
{
    const char *phase = weir_column_text(lap, 3);
    return !*phase && spans->is_marked ? "startup" : phase;
}

static void extend(weir_phase_spans *spans, sqlite3_stmt *lap)
{
    weir_phase_record *span = &spans->pending;
    spans->last_elapsed = sqlite3_column_double(lap, 1);
    spans->end = sqlite3_column_double(lap, 0);
    span->num_laps++;
    span->end_unix_ns = weir_column_ns(lap, 0);
    if (sqlite3_column_type(lap, 4) == SQLITE_NULL)
        return;
    if (span->position.last_step < span->position.first_step)
        span->position.first_step = sqlite3_column_int64(lap, 4);
    span->position.last_step = sqlite3_column_int64(lap, 5);
}

/* Starts the pending span with the lap. */
static int begin_span(weir_phase_spans *spans, sqlite3_stmt *lap, weir_error *error)
{
    char *phase = strdup(phase_of(spans, lap));
    if (!phase)
        return weir_reader_out_of_memory(error);
    free(spans->next_phase);
    spans->next_phase = phase;
    spans->pending = (weir_phase_record){
        .run_id = spans->run_id,
        .position = { .phase = phase, .last_step = -1 },
        .start_unix_ns = weir_column_ns(lap, 0) - weir_column_ns(lap, 1),
    };
    extend(spans, lap);
    return WEIR_OK;
}

static bool continues(const weir_phase_spans *spans, sqlite3_stmt *lap)
{
    const weir_phase_record *pending = &spans->pending;
    double elapsed = sqlite3_column_double(lap, 1), start = sqlite3_column_double(lap, 0) - elapsed;
    double gap = fmin(fmax(LEAST_GAP_S, 0.5 * fmax(elapsed, spans->last_elapsed)), MOST_GAP_S);
    return !spans->each_lap && strcmp(pending->position.phase, phase_of(spans, lap)) == 0 && start - spans->end < gap;
}

/* Returns the pending span. */
static void give(weir_phase_spans *spans, weir_phase_record *span)
{
    free(spans->phase);
    spans->phase = spans->next_phase;
    spans->next_phase = NULL;
    *span = spans->pending;
    spans->pending.num_laps = 0;
}

/* Adds one lap. True if *span was set. */
static bool take_lap(weir_phase_spans *spans, sqlite3_stmt *lap, weir_phase_record *span, int *status,
                     weir_error *error)
{
    const char *name = weir_column_text(lap, 2);
    if (!spans->name && !(spans->name = strdup(name))) {
        *status = weir_reader_out_of_memory(error);
        return false;
    }
    if (strcmp(spans->name, name) != 0)
        return false;
    if (spans->pending.num_laps && continues(spans, lap)) {
        extend(spans, lap);
        return false;
    }
    bool given = spans->pending.num_laps > 0;
    if (given)
        give(spans, span);
    *status = begin_span(spans, lap, error);
    return given;
}

/* Ends a run's laps. True if *span was set. */
static bool end_run(weir_phase_spans *spans, weir_phase_record *span)
{
    sqlite3_finalize(spans->laps);
    spans->laps = NULL;
    bool given = spans->pending.num_laps > 0;
    if (given)
        give(spans, span);
    return given;
}

int weir_phase_spans_next(weir_phase_spans *spans, weir_phase_record *span, weir_error *error)
{
    int status = WEIR_OK;
    bool given = false;
    while (status == WEIR_OK && !given) {
        if (!spans->laps) {
            status = next_run(spans, error);
            continue;
        }
        int code = sqlite3_step(spans->laps);
        if (code == SQLITE_ROW)
            given = take_lap(spans, spans->laps, span, &status, error);
        else if (code == SQLITE_DONE)
            given = end_run(spans, span);
        else
            status = weir_reader_error(spans->reader, code, error);
    }
    return status;
}
