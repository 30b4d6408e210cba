#include "stats/record/rolls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/schema/lap_reading.h"
#include "stats/schema/measures.h"
#include "stats/schema/sql_sums.h"

/* ---- which roll a lap belongs to --------------------------------------------------------------------------------- */

/* "mode\nphase"; NULL = out of memory, which no other position equals. */
static char *position_of(const weir_record_position *at)
{
    char *text = NULL;
    return asprintf(&text, "%s\n%s", at->mode, at->phase) < 0 ? NULL : text;
}

static void begin_roll(weir_roll_state *state, weir_record_entry *entry)
{
    entry->ends_roll = state->num_laps > 0;
    state->number++;
    state->num_laps = 0;
}

static void place_lap(weir_roll_state *state, weir_record_entry *entry)
{
    const weir_lap_record *lap = &entry->record.lap;
    char *position = position_of(&lap->position);
    bool is_same_place = position && state->position && strcmp(position, state->position) == 0;
    bool is_next = lap->end_unix_ns != state->end_unix_ns;
    if (state->num_laps == 0 || !is_same_place || lap->end_unix_ns < state->end_unix_ns ||
        (is_next && state->num_laps == WEIR_ROLL_LAPS))
        begin_roll(state, entry);
    state->num_laps += is_next || state->num_laps == 0;
    state->end_unix_ns = lap->end_unix_ns;
    free(state->position);
    state->position = position;
    entry->roll = state->number;
}

void weir__rolls_place(weir_roll_state *state, weir_record_entry *entry)
{
    bool is_end = entry->record.kind == WEIR_RECORD_RUN && entry->record.run.has_ended;
    if (weir__record_is_lap(entry->record.kind)) {
        place_lap(state, entry);
    } else if (is_end) {
        bool is_short = state->number == 1 && state->num_laps < WEIR_ROLL_LAPS;
        begin_roll(state, entry);
        entry->roll = state->number;
        entry->ends_roll &= !is_short;
    }
}

void weir__rolls_forget(weir_roll_state *state)
{
    free(state->position);
    *state = (weir_roll_state){ 0 };
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

/* The ids of a roll's laps are not below that of the roll before it, and below those of the roll after it. %s: the table of
   rolls. */
#define FIRST_ID(order) "(SELECT x.id FROM %s x WHERE x.run_id = ?1 AND x.roll " order " LIMIT 1)"
#define LAPS_TO_ADD \
    "t.run_id = ?1 AND t.id >= coalesce(" FIRST_ID("< ?2 ORDER BY x.roll DESC, x.id") ", 0) AND t.roll = ?2"
#define LAPS_OF_ROLL \
    "run_id = ?1 AND id >= " FIRST_ID("= ?2 ORDER BY x.id") " AND id < coalesce(" FIRST_ID( \
        "> ?2 ORDER BY x.roll, x.id") ", 9223372036854775807) AND roll = ?2"

/* Behind the columns of a sum of laps. */
#define MORE_COLUMNS \
    ", sum(t.num_joined), min(t.timestamp - t.elapsed), min(t.timestamp), max(t.timestamp - t.elapsed)"
enum { MORE_JOINED, MORE_START, MORE_FIRST_END, MORE_LAST_START };

static const weir_lap_keys keys = { "t.run_id", "t.name", "t.phase", "t.mode", "count(*)" };

static int prepare_text(weir_insert *rows, char *text, sqlite3_stmt **statement)
{
    int code =
        text ? sqlite3_prepare_v3(rows->db, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

/* The columns of a lap table, as they are copied from its table of rolls. A span and a counter are in some of the laps only:
   the lap that replaces these lasts from the start of the first to the end of the last. */
static char *copy_statement(weir_subject subject)
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    const char *columns[WEIR_MAX_COLUMNS];
    bool has_gaps = subject == WEIR_SUBJECT_SPAN || subject == WEIR_SUBJECT_COUNTER;
    sqlite3_str *names = sqlite3_str_new(NULL), *values = sqlite3_str_new(NULL);
    for (size_t i = 0, count = weir__lap_table_columns(subject, columns); i < count; i++) {
        bool is_length = has_gaps && strcmp(columns[i], "elapsed") == 0;
        sqlite3_str_appendf(names, "%s%s", i ? ", " : "", columns[i]);
        sqlite3_str_appendf(values, "%s%s", i ? ", " : "", is_length ? "timestamp - start_time" : columns[i]);
    }
    char *to = sqlite3_str_finish(names), *from = sqlite3_str_finish(values);
    char *text = to && from ? sqlite3_mprintf("INSERT OR REPLACE INTO %s (%s) SELECT %s FROM %s WHERE run_id = ?1 AND"
                                              " roll = ?2",
                                              table->name, to, from, table->rolls)
                            : NULL;
    sqlite3_free(to);
    sqlite3_free(from);
    return text;
}

static char *sums_statement(weir_subject subject)
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    char *columns = weir__lap_table_expressions(subject, &keys, true),
         *laps = sqlite3_mprintf(LAPS_TO_ADD, table->rolls);
    char *text =
        columns && laps
            ? sqlite3_mprintf("SELECT %s" MORE_COLUMNS " FROM %s t WHERE %s GROUP BY t.name, t.mode, t.phase%s",
                              columns, table->name, laps, weir_subject_has_kinds(subject) ? ", t.kind" : "")
            : NULL;
    sqlite3_free(columns);
    sqlite3_free(laps);
    return text;
}

static char *delete_statement(weir_subject subject)
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    char *laps = sqlite3_mprintf(LAPS_OF_ROLL, table->rolls, table->rolls);
    char *text = laps ? sqlite3_mprintf("DELETE FROM %s WHERE %s", table->name, laps) : NULL;
    sqlite3_free(laps);
    return text;
}

int weir__rolls_prepare(weir_insert *rows)
{
    weir_roll_statements *all = &rows->roll_statements;
    const struct {
        const char *text;
        sqlite3_stmt **statement;
    } single[] = {
        { "SELECT coalesce(max(roll), 0) FROM roll WHERE run_id = ?1", &all->last_number },
        { "INSERT OR REPLACE INTO roll (run_id, roll, num_laps, start_time, first_time, last_start_time, timestamp) "
          "VALUES"
          " (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
          &all->new_number },
        { "SELECT roll, timestamp FROM roll WHERE run_id = ?1 AND roll > ?2 ORDER BY roll LIMIT 1", &all->oldest },
        /* more than a batch has (MAX_BATCH of store_thread.c), or they would never be caught up with */
        { "DELETE FROM item_stats WHERE id IN (SELECT i.id FROM (SELECT id, timestamp FROM item_stats WHERE run_id = "
          "?1"
          " ORDER BY id LIMIT 2048) i WHERE i.timestamp < ?2)",
          &all->delete_items },
    };
    int code = weir__sums_register(rows->db);
    for (size_t i = 0; i < sizeof single / sizeof single[0] && code == SQLITE_OK; i++)
        code = prepare_text(rows, sqlite3_mprintf("%s", single[i].text), single[i].statement);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && code == SQLITE_OK; subject++) {
        code = prepare_text(rows, sums_statement(subject), &all->sums[subject]);
        if (code == SQLITE_OK)
            code = prepare_text(rows, delete_statement(subject), &all->delete_laps[subject]);
        if (code == SQLITE_OK)
            code = prepare_text(rows, copy_statement(subject), &all->copy[subject]);
    }
    return code;
}

void weir__rolls_finalize(weir_insert *rows)
{
    weir_roll_statements *all = &rows->roll_statements;
    sqlite3_stmt *const single[] = { all->last_number, all->new_number, all->oldest, all->delete_items };
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
        sqlite3_finalize(single[i]);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        sqlite3_finalize(all->sums[subject]);
        sqlite3_finalize(all->delete_laps[subject]);
        sqlite3_finalize(all->copy[subject]);
    }
    *all = (weir_roll_statements){ 0 };
}

/* ---- writing rolls ----------------------------------------------------------------------------------------------- */

/* The row of a number in the table `roll`. */
typedef struct roll_extent {
    int64_t num_laps; /* 0 = nothing was written of it */
    double start, first_end, last_start, end;
} roll_extent;

static void extend(roll_extent *extent, sqlite3_stmt *row, int more, int64_t num_laps)
{
    double start = sqlite3_column_double(row, more + MORE_START),
           first_end = sqlite3_column_double(row, more + MORE_FIRST_END),
           last_start = sqlite3_column_double(row, more + MORE_LAST_START),
           end = sqlite3_column_double(row, WEIR_LAP_TIMESTAMP);
    bool is_first = extent->num_laps == 0;
    extent->num_laps = num_laps > extent->num_laps ? num_laps : extent->num_laps;
    extent->start = is_first || start < extent->start ? start : extent->start;
    extent->first_end = is_first || first_end < extent->first_end ? first_end : extent->first_end;
    extent->last_start = is_first || last_start > extent->last_start ? last_start : extent->last_start;
    extent->end = is_first || end > extent->end ? end : extent->end;
}

/* A row of sums as a roll. */
static int insert_sum(weir_insert *rows, weir_subject subject, int64_t number, sqlite3_stmt *row, roll_extent *extent)
{
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    const int more = WEIR_LAP_METRICS + (int)metrics->num_metrics;
    weir_record record = { .kind = weir_record_kind_of(subject) };
    weir_stored_histogram stored[WEIR_MAX_HISTOGRAMS] = { { NULL, 0 } };
    size_t num_stored = 0;
    weir__lap_read(subject, row, &record.lap);
    for (size_t i = 0; i < metrics->num_metrics; i++) {
        const int column = WEIR_LAP_METRICS + (int)i;
        if (metrics->metrics[i].kind == WEIR_METRIC_HISTOGRAM)
            stored[num_stored++] = (weir_stored_histogram){ sqlite3_column_blob(row, column),
                                                            (size_t)sqlite3_column_bytes(row, column) };
    }
    const weir_lap_place place = { .roll = number,
                                   .id = record.lap.id,
                                   .num_laps = record.lap.num_joined, /* of a sum: the number of its laps */
                                   .start_time = sqlite3_column_double(row, more + MORE_START) };
    record.lap.num_joined = sqlite3_column_int64(row, more + MORE_JOINED);
    extend(extent, row, more, place.num_laps);
    return weir__insert_lap(rows, &rows->rolls[subject], &record, stored, &place);
}

static int add_up_subject(weir_insert *rows, weir_subject subject, int64_t run_id, int64_t number,
                          roll_extent *extent)
{
    sqlite3_stmt *sums = rows->roll_statements.sums[subject];
    int code = SQLITE_OK;
    sqlite3_bind_int64(sums, 1, run_id);
    sqlite3_bind_int64(sums, 2, number);
    while (code == SQLITE_OK && (code = sqlite3_step(sums)) == SQLITE_ROW)
        code = insert_sum(rows, subject, number, sums, extent);
    sqlite3_reset(sums);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int write_roll(weir_insert *rows, int64_t run_id, int64_t number)
{
    sqlite3_stmt *row = rows->roll_statements.new_number;
    roll_extent extent = { 0 };
    int code = SQLITE_OK;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && code == SQLITE_OK; subject++)
        code = add_up_subject(rows, subject, run_id, number, &extent);
    if (code != SQLITE_OK || extent.num_laps == 0)
        return code;
    const double times[] = { extent.start, extent.first_end, extent.last_start, extent.end };
    sqlite3_bind_int64(row, 1, run_id);
    sqlite3_bind_int64(row, 2, number);
    sqlite3_bind_int64(row, 3, extent.num_laps);
    for (int i = 0; i < 4; i++)
        sqlite3_bind_double(row, 4 + i, times[i]);
    code = sqlite3_step(row);
    sqlite3_reset(row);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Also those that ended before an entry that was dropped. */
int weir__rolls_write(weir_insert *rows, const weir_record_entry *entry)
{
    sqlite3_stmt *last = rows->roll_statements.last_number;
    if (!entry->ends_roll)
        return SQLITE_OK;
    int code = weir__insert_ensure_run(rows, entry->run);
    if (code != SQLITE_OK)
        return code;
    sqlite3_bind_int64(last, 1, entry->run->run_id);
    code = sqlite3_step(last);
    int64_t number = code == SQLITE_ROW ? sqlite3_column_int64(last, 0) : 0;
    sqlite3_reset(last);
    code = code == SQLITE_ROW ? SQLITE_OK : code;
    for (number++; number < entry->roll && code == SQLITE_OK; number++)
        code = write_roll(rows, entry->run->run_id, number);
    return code;
}

/* ---- old laps ---------------------------------------------------------------------------------------------------- */

static int run_statement(sqlite3_stmt *statement, int64_t run_id, int64_t number)
{
    sqlite3_bind_int64(statement, 1, run_id);
    sqlite3_bind_int64(statement, 2, number);
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The number of the next roll whose laps are old; 0 = none, or not known. */
static int64_t find_old_roll(weir_insert *rows, const weir_run *run, int64_t after, double before)
{
    sqlite3_stmt *oldest = rows->roll_statements.oldest;
    sqlite3_bind_int64(oldest, 1, run->run_id);
    sqlite3_bind_int64(oldest, 2, after);
    int64_t found = sqlite3_step(oldest) == SQLITE_ROW && sqlite3_column_double(oldest, 1) < before
                        ? sqlite3_column_int64(oldest, 0)
                        : 0;
    sqlite3_reset(oldest);
    return found;
}

static int replace_laps(weir_insert *rows, int64_t run_id, int64_t number)
{
    int code = SQLITE_OK;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && code == SQLITE_OK; subject++) {
        code = run_statement(rows->roll_statements.delete_laps[subject], run_id, number);
        if (code == SQLITE_OK)
            code = run_statement(rows->roll_statements.copy[subject], run_id, number);
    }
    return code;
}

static int delete_items(weir_insert *rows, int64_t run_id, double before)
{
    sqlite3_stmt *items = rows->roll_statements.delete_items;
    sqlite3_bind_int64(items, 1, run_id);
    sqlite3_bind_double(items, 2, before);
    int code = sqlite3_step(items);
    sqlite3_reset(items);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int weir__rolls_thin(weir_insert *rows, weir_run *run, int64_t before_unix_ns)
{
    enum { MOST_ROLLS = 64 }; /* the lock is held for a moment only, and no batch of laps ends more */
    double before = (double)before_unix_ns / 1e9;
    int64_t thinned = run->thinned;
    int code = weir__insert_run(rows, WEIR_INSERT_BEGIN);
    for (int i = 0; i < MOST_ROLLS && code == SQLITE_OK; i++) {
        int64_t number = find_old_roll(rows, run, thinned, before);
        if (number == 0)
            break;
        code = replace_laps(rows, run->run_id, number);
        thinned = number;
    }
    if (code == SQLITE_OK)
        code = delete_items(rows, run->run_id, before);
    if (code == SQLITE_OK)
        code = weir__insert_run(rows, WEIR_INSERT_COMMIT);
    if (code == SQLITE_OK)
        run->thinned = thinned;
    else if (!sqlite3_get_autocommit(rows->db))
        weir__insert_run(rows, WEIR_INSERT_ROLLBACK);
    return code;
}
