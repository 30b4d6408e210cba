#include "phase_spans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * What laps that follow each other may seem to be apart: the clock of the wall is read a little after a lap was cut, and
 * on a busy machine not at once. A lap that is missing between them shows as its whole length.
 */
#define LEAST_GAP_S 1e-3
#define MOST_GAP_S  0.25

static const weir_selection runs_selection = { .kind = WEIR_ROWS_RUNS, .table = "run", .columns = "t.run_id" };
static const weir_selection laps_selection = {
    .kind = WEIR_ROWS_LAPS,
    .table = "queue_stats",
    .columns = "t.timestamp, t.elapsed, t.name, t.phase, t.first_step, t.last_step",
};

int weir_stretches_begin(weir_stretches *stretches, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    *stretches = (weir_stretches){ .reader = reader, .filter = *filter, .marks = { .reader = reader } };
    stretches->filter.name = NULL;
    stretches->filter.descending = stretches->filter.longest_first = false;
    stretches->filter.limit = stretches->filter.after_id = 0;
    return weir_select(reader, &runs_selection, &stretches->filter, &stretches->runs, error);
}

void weir_stretches_end(weir_stretches *stretches)
{
    sqlite3_finalize(stretches->runs);
    sqlite3_finalize(stretches->laps);
    weir_marks_free(&stretches->marks);
    free(stretches->name);
    free(stretches->phase);
    free(stretches->next_phase);
    *stretches = (weir_stretches){ .reader = NULL };
}

/* WEIR_OK, or WEIR_EOF after the last run. */
static int next_run(weir_stretches *stretches, weir_error *error)
{
    int code = stretches->runs ? sqlite3_step(stretches->runs) : SQLITE_DONE;
    if (code == SQLITE_DONE) {
        sqlite3_finalize(stretches->runs); /* another step would begin anew */
        stretches->runs = NULL;
        return WEIR_EOF;
    }
    if (code != SQLITE_ROW)
        return weir_reader_error(stretches->reader, code, error);
    free(stretches->name);
    stretches->name = NULL;
    weir_filter filter = stretches->filter;
    filter.run_id = stretches->run_id = sqlite3_column_int64(stretches->runs, 0);
    filter.node_id = NULL;
    filter.by_rank = false;
    int status = weir_marks_of(&stretches->marks, filter.run_id, &stretches->is_marked, error);
    if (status == WEIR_OK)
        status = weir_select(stretches->reader, &laps_selection, &filter, &stretches->laps, error);
    return status;
}

/* What a lap's phase is to whoever asks. */
static const char *phase_of(const weir_stretches *stretches, sqlite3_stmt *lap)
{
    const char *phase = weir_column_text(lap, 3);
    return !*phase && stretches->is_marked ? "startup" : phase;
}

static void extend(weir_stretches *stretches, sqlite3_stmt *lap)
{
    weir_phase_record *stretch = &stretches->pending;
    stretches->last_elapsed = sqlite3_column_double(lap, 1);
    stretches->end = sqlite3_column_double(lap, 0);
    stretch->num_laps++;
    stretch->end_unix_ns = weir_column_ns(lap, 0);
    if (sqlite3_column_type(lap, 4) == SQLITE_NULL)
        return;
    if (stretch->place.last_step < stretch->place.first_step)
        stretch->place.first_step = sqlite3_column_int64(lap, 4);
    stretch->place.last_step = sqlite3_column_int64(lap, 5);
}

/* Makes the lap the beginning of what is pending. */
static int begin_stretch(weir_stretches *stretches, sqlite3_stmt *lap, weir_error *error)
{
    char *phase = strdup(phase_of(stretches, lap));
    if (!phase)
        return weir_reader_out_of_memory(error);
    free(stretches->next_phase);
    stretches->next_phase = phase;
    stretches->pending = (weir_phase_record){
        .run_id = stretches->run_id,
        .place = { .phase = phase, .last_step = -1 },
        .start_unix_ns = weir_column_ns(lap, 0) - weir_column_ns(lap, 1),
    };
    extend(stretches, lap);
    return WEIR_OK;
}

static bool continues(const weir_stretches *stretches, sqlite3_stmt *lap)
{
    const weir_phase_record *pending = &stretches->pending;
    double elapsed = sqlite3_column_double(lap, 1), start = sqlite3_column_double(lap, 0) - elapsed;
    double gap = fmin(fmax(LEAST_GAP_S, 0.5 * fmax(elapsed, stretches->last_elapsed)), MOST_GAP_S);
    return strcmp(pending->place.phase, phase_of(stretches, lap)) == 0 && start - stretches->end < gap;
}

/* Hands out what is pending. */
static void give(weir_stretches *stretches, weir_phase_record *stretch)
{
    free(stretches->phase);
    stretches->phase = stretches->next_phase;
    stretches->next_phase = NULL;
    *stretch = stretches->pending;
    stretches->pending.num_laps = 0;
}

/* Takes one lap. True if *stretch was given. */
static bool take_lap(weir_stretches *stretches, sqlite3_stmt *lap, weir_phase_record *stretch, int *status,
                     weir_error *error)
{
    const char *name = weir_column_text(lap, 2);
    if (!stretches->name && !(stretches->name = strdup(name))) {
        *status = weir_reader_out_of_memory(error);
        return false;
    }
    if (strcmp(stretches->name, name) != 0)
        return false;
    if (stretches->pending.num_laps && continues(stretches, lap)) {
        extend(stretches, lap);
        return false;
    }
    bool given = stretches->pending.num_laps > 0;
    if (given)
        give(stretches, stretch);
    *status = begin_stretch(stretches, lap, error);
    return given;
}

/* The end of a run's laps. True if *stretch was given. */
static bool end_run(weir_stretches *stretches, weir_phase_record *stretch)
{
    sqlite3_finalize(stretches->laps);
    stretches->laps = NULL;
    bool given = stretches->pending.num_laps > 0;
    if (given)
        give(stretches, stretch);
    return given;
}

int weir_stretches_next(weir_stretches *stretches, weir_phase_record *stretch, weir_error *error)
{
    int status = WEIR_OK;
    bool given = false;
    while (status == WEIR_OK && !given) {
        if (!stretches->laps) {
            status = next_run(stretches, error);
            continue;
        }
        int code = sqlite3_step(stretches->laps);
        if (code == SQLITE_ROW)
            given = take_lap(stretches, stretches->laps, stretch, &status, error);
        else if (code == SQLITE_DONE)
            given = end_run(stretches, stretch);
        else
            status = weir_reader_error(stretches->reader, code, error);
    }
    return status;
}
