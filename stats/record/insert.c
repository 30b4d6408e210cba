#include "stats/record/insert.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/version.h>

#include "common/unix_clock.h"
#include "stats/schema/measures.h"

static const char *const statement_texts[WEIR_INSERT_STATEMENTS] = {
    [WEIR_INSERT_BEGIN] = "BEGIN IMMEDIATE",
    [WEIR_INSERT_COMMIT] = "COMMIT",
    [WEIR_INSERT_ROLLBACK] = "ROLLBACK",
    [WEIR_INSERT_NEW_RUN] = ("INSERT INTO run (node_id, rank, pid, started, command, version, machine, world, job) "
                             "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    [WEIR_INSERT_REMOVE_RUN] = "DELETE FROM run WHERE run_id = ?",
    [WEIR_INSERT_START_RUN] = "UPDATE run SET started = ?, threads = ? WHERE run_id = ?",
    [WEIR_INSERT_END_RUN] = "UPDATE run SET ended = ?, status = ? WHERE run_id = ?",
    [WEIR_INSERT_LOST] = "UPDATE run SET entries_lost = ? WHERE run_id = ?",
};

static const weir_record_kind record_kinds[] = { WEIR_RECORD_STAGE, WEIR_RECORD_FAILURE, WEIR_RECORD_EVENT,
                                                 WEIR_RECORD_ITEM,  WEIR_RECORD_STACK,   WEIR_RECORD_SAMPLES };
enum { NUM_RECORD_KINDS = sizeof record_kinds / sizeof record_kinds[0] };

/* Binds a statement's values from left to right; keeps the first failure and skips later values. */
typedef struct binder {
    sqlite3_stmt *statement;
    int column;
    int code;
} binder;

static binder bind_to(weir_insert *rows, int statement)
{
    return (binder){ .statement = rows->statements[statement] };
}

static void bind_int(binder *b, int64_t value)
{
    if (b->code == SQLITE_OK)
        b->code = sqlite3_bind_int64(b->statement, ++b->column, value);
}

static void bind_real(binder *b, double value)
{
    if (b->code == SQLITE_OK)
        b->code = sqlite3_bind_double(b->statement, ++b->column, value);
}

static void bind_seconds(binder *b, int64_t span_ns)
{
    bind_real(b, (double)span_ns / (double)WEIR_SECOND);
}

static void bind_blob(binder *b, const void *bytes, size_t size_bytes)
{
    if (b->code == SQLITE_OK)
        b->code = sqlite3_bind_blob64(b->statement, ++b->column, bytes, size_bytes, SQLITE_STATIC);
}

static void bind_column_text(binder *b, const char *text)
{
    if (b->code == SQLITE_OK)
        b->code = weir__bind_text(b->statement, ++b->column, text);
}

/* NULL: a range without any step in it */
static void bind_null(binder *b)
{
    if (b->code == SQLITE_OK)
        b->code = sqlite3_bind_null(b->statement, ++b->column);
}

/* Executes the statement with the bound values. */
static int execute_insert(binder *b)
{
    int code = b->code;
    if (code == SQLITE_OK) {
        code = sqlite3_step(b->statement);
        if (code == SQLITE_DONE || code == SQLITE_ROW)
            code = SQLITE_OK;
    }
    sqlite3_reset(b->statement);
    sqlite3_clear_bindings(b->statement);
    return code;
}

int weir__insert_run(weir_insert *rows, int statement)
{
    binder b = bind_to(rows, statement);
    return execute_insert(&b);
}

int weir__insert_ensure_run(weir_insert *rows, weir_run *run)
{
    if (run->run_id)
        return SQLITE_OK;
    binder b = bind_to(rows, WEIR_INSERT_NEW_RUN);
    bind_column_text(&b, run->identity->node_id);
    bind_int(&b, run->identity->rank);
    bind_int(&b, getpid());
    bind_seconds(&b, unix_clock_ns());
    bind_column_text(&b, run->identity->command);
    bind_column_text(&b, weir_version());
    bind_column_text(&b, run->identity->machine);
    bind_int(&b, run->identity->world);
    bind_column_text(&b, run->identity->job);
    int code = execute_insert(&b);
    if (code == SQLITE_OK)
        run->run_id = sqlite3_last_insert_rowid(rows->db);
    return code;
}

int weir__insert_remove_run(weir_insert *rows, const weir_run *run)
{
    binder b = bind_to(rows, WEIR_INSERT_REMOVE_RUN);
    bind_int(&b, run->run_id);
    return execute_insert(&b);
}

int weir__insert_set_lost(weir_insert *rows, const weir_run *run)
{
    binder b = bind_to(rows, WEIR_INSERT_LOST);
    bind_int(&b, run->lost_to_write);
    bind_int(&b, run->run_id);
    return execute_insert(&b);
}

static int insert_record(weir_insert *rows, const weir_record *record)
{
    binder b = { .statement = rows->records[record->kind] };
    b.code = weir__record_bind(b.statement, record->kind, record);
    return execute_insert(&b);
}

/* When it starts and when it ends. */
static int update_run(weir_insert *rows, int64_t run_id, const weir_run_record *run)
{
    binder b = bind_to(rows, run->has_ended ? WEIR_INSERT_END_RUN : WEIR_INSERT_START_RUN);
    bind_seconds(&b, run->has_ended ? run->ended_unix_ns : run->started_unix_ns);
    bind_int(&b, run->has_ended ? run->status : run->threads);
    bind_int(&b, run_id);
    return execute_insert(&b);
}

/* -- laps: one column at a time, if its value is known */

/* Adds the column to the statement if there is a value for it. Returns whether it did. */
static bool plan_column(weir_lap_insert *insert, weir_subject subject, const char *column, bool takes_null)
{
    static const char *const extras[] = { [WEIR_EXTRA_ROLL] = "roll",
                                          [WEIR_EXTRA_ID] = "id",
                                          [WEIR_EXTRA_NUM_LAPS] = "num_laps",
                                          [WEIR_EXTRA_START_TIME] = "start_time" };
    const weir_record_table *fields = weir__record_table_of(weir_record_kind_of(subject));
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(subject, histograms), at = insert->num_columns;
    const weir_measure *measure = weir_measure_find(subject, column);
    if (at == WEIR_MAX_COLUMNS)
        return false;
    bool is_known = measure;
    insert->columns[at].measure = measure;
    insert->columns[at].takes_null = takes_null;
    for (size_t i = 0; i < fields->num_columns; i++)
        if (strcmp(fields->columns[i].name, column) == 0) {
            insert->columns[at].field = &fields->columns[i];
            is_known = true;
        }
    for (size_t i = 0; i < count; i++)
        if (strcmp(histograms[i].metric->name, column) == 0) {
            insert->columns[at].histogram = i;
            is_known = true;
        }
    int num_extras = insert->is_of_rolls ? WEIR_EXTRA_START_TIME : WEIR_EXTRA_ROLL;
    for (int i = WEIR_EXTRA_ROLL; i <= num_extras; i++)
        if (strcmp(extras[i], column) == 0) {
            insert->columns[at].extra = (weir_lap_extra)i;
            is_known = true;
        }
    insert->num_columns += is_known;
    return is_known;
}

/* The table may come from an older library, with columns that are now derived, or from a newer one. */
static int prepare_laps(weir_insert *rows, weir_subject subject, bool of_rolls)
{
    weir_lap_insert *insert = of_rolls ? &rows->rolls[subject] : &rows->laps[subject];
    const char *table = of_rolls ? weir__lap_tables[subject].rolls : weir__lap_tables[subject].name;
    sqlite3_stmt *column;
    insert->is_of_rolls = of_rolls;
    int code = sqlite3_prepare_v2(rows->db, "SELECT name, \"notnull\" FROM pragma_table_info(?)", -1, &column, NULL);
    if (code != SQLITE_OK)
        return code;
    sqlite3_bind_text(column, 1, table, -1, SQLITE_STATIC);
    sqlite3_str *sql = sqlite3_str_new(rows->db);
    sqlite3_str_appendf(sql, "INSERT %sINTO %s (", of_rolls ? "OR REPLACE " : "", table);
    while ((code = sqlite3_step(column)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(column, 0);
        if (name && plan_column(insert, subject, name, sqlite3_column_int(column, 1) == 0))
            sqlite3_str_appendf(sql, "%s%s", insert->num_columns > 1 ? ", " : "", name);
    }
    sqlite3_finalize(column);
    sqlite3_str_appendall(sql, ") VALUES (?");
    for (size_t i = 1; i < insert->num_columns; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    if (code == SQLITE_DONE)
        code = text ? sqlite3_prepare_v3(rows->db, text, -1, SQLITE_PREPARE_PERSISTENT, &insert->statement, NULL)
                    : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

/* Unknown values are NULL, or 0 if the column is NOT NULL. */
static void bind_measure(binder *b, const weir_measure *measure, bool takes_null, const weir_lap_record *lap)
{
    double value = weir_measure_value(measure, &lap->metrics, lap->elapsed_ns);
    if (isnan(value) && takes_null)
        bind_null(b);
    else if (!isnan(value) && measure->metric && measure->metric->kind == WEIR_METRIC_COUNT)
        bind_int(b, weir__at_most_int64(
                        *(const uint64_t *)(const void *)((const char *)&lap->metrics + measure->metric->offset)));
    else
        bind_real(b, isnan(value) ? 0 : value);
}

static void bind_extra(binder *b, weir_lap_extra extra, const weir_lap_place *place)
{
    switch (extra) {
    case WEIR_EXTRA_ROLL: bind_int(b, place->roll); break;
    case WEIR_EXTRA_ID: bind_int(b, place->id); break;
    case WEIR_EXTRA_NUM_LAPS: bind_int(b, place->num_laps); break;
    default: bind_real(b, place->start_time); break;
    }
}

int weir__insert_lap(weir_insert *rows, const weir_lap_insert *insert, weir_record *record,
                     const weir_stored_histogram stored[], const weir_lap_place *place)
{
    weir_lap_record *lap = &record->lap;
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(lap->subject, histograms);
    binder b = { .statement = insert->statement };
    for (size_t i = 0; i < count; i++) { /* for the percentiles among SPDL's columns */
        weir_histogram_clear(&rows->times[i]);
        weir_histogram_add_encoded(&rows->times[i], stored[i].bytes, stored[i].size_bytes);
        *weir__metric_histogram_at(histograms[i].metric, &lap->metrics) = &rows->times[i];
    }
    for (size_t i = 0; i < insert->num_columns; i++) {
        const weir_stored_histogram *times = &stored[insert->columns[i].histogram];
        if (insert->columns[i].extra)
            bind_extra(&b, insert->columns[i].extra, place);
        else if (insert->columns[i].field && b.code == SQLITE_OK)
            b.code = weir__record_bind_column(b.statement, ++b.column, insert->columns[i].field, record);
        else if (insert->columns[i].measure)
            bind_measure(&b, insert->columns[i].measure, insert->columns[i].takes_null, lap);
        else
            bind_blob(&b, times->bytes, times->size_bytes);
    }
    return execute_insert(&b);
}

int weir__insert_insert(weir_insert *rows, const weir_record_entry *entry)
{
    weir_record record = entry->record;
    int code = weir__insert_ensure_run(rows, entry->run);
    int64_t run_id = entry->run->run_id;
    if (code != SQLITE_OK)
        return code;
    if (record.kind == WEIR_RECORD_RUN)
        return update_run(rows, run_id, &record.run);
    if (weir__record_is_lap(record.kind)) {
        record.lap.run_id = run_id;
        const weir_lap_place place = { .roll = entry->roll };
        return weir__insert_lap(rows, &rows->laps[record.lap.subject], &record, entry->histograms, &place);
    }
    if (record.kind == WEIR_RECORD_STAGE)
        record.stage.run_id = run_id;
    else if (record.kind == WEIR_RECORD_STACK)
        record.stack.run_id = run_id;
    else
        record.event.run_id = run_id; /* failures, items and samples begin alike */
    return insert_record(rows, &record);
}

int weir__insert_prepare(weir_insert *rows, sqlite3 *db)
{
    rows->db = db;
    int code = SQLITE_OK;
    for (int i = 0; i < WEIR_INSERT_STATEMENTS && code == SQLITE_OK; i++)
        code = sqlite3_prepare_v3(db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT, &rows->statements[i], NULL);
    for (int i = 0; i < NUM_RECORD_KINDS && code == SQLITE_OK; i++) {
        char *text = weir__record_insertion(record_kinds[i]);
        code =
            text ? sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &rows->records[record_kinds[i]], NULL)
                 : SQLITE_NOMEM;
        sqlite3_free(text);
    }
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && code == SQLITE_OK; subject++) {
        code = prepare_laps(rows, subject, false);
        if (code == SQLITE_OK)
            code = prepare_laps(rows, subject, true);
    }
    return code;
}

void weir__insert_finalize(weir_insert *rows)
{
    for (int i = 0; i < WEIR_INSERT_STATEMENTS; i++)
        sqlite3_finalize(rows->statements[i]);
    for (int i = 0; i < NUM_RECORD_KINDS; i++)
        sqlite3_finalize(rows->records[record_kinds[i]]);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        sqlite3_finalize(rows->laps[subject].statement);
        sqlite3_finalize(rows->rolls[subject].statement);
    }
    memset(rows, 0, sizeof *rows);
}
