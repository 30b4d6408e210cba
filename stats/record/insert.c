#include "insert.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/version.h>

#include "measures.h"

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
                                                 WEIR_RECORD_ITEM };
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

static int64_t at_most_int64(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
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

int weir__insert_ensure_run(weir_insert *rows, weir_run *run, int64_t start_unix_ns)
{
    if (run->run_id)
        return SQLITE_OK;
    binder b = bind_to(rows, WEIR_INSERT_NEW_RUN);
    bind_column_text(&b, rows->identity->node_id);
    bind_int(&b, rows->identity->rank);
    bind_int(&b, getpid());
    bind_seconds(&b, start_unix_ns);
    bind_column_text(&b, rows->identity->command);
    bind_column_text(&b, weir_version());
    bind_column_text(&b, rows->identity->machine);
    bind_int(&b, rows->identity->world);
    bind_column_text(&b, rows->identity->job);
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

static int insert_stage(weir_insert *rows, int64_t run_id, const weir_stage_info *stage)
{
    return insert_record(rows, &(weir_record){ .kind = WEIR_RECORD_STAGE,
                                               .stage = { .run_id = run_id,
                                                          .name = stage->name,
                                                          .kind = stage->kind,
                                                          .concurrency = stage->concurrency,
                                                          .queue_items = stage->queue_items,
                                                          .queue_bytes = at_most_int64(stage->queue_bytes),
                                                          .output_order = stage->output_order,
                                                          .threads = at_most_int64(stage->threads),
                                                          .inputs = stage->inputs,
                                                          .merge_order = stage->merge_order } });
}

static int insert_run_start(weir_insert *rows, int64_t run_id, const weir_run_info *info)
{
    binder b = bind_to(rows, WEIR_INSERT_START_RUN);
    bind_seconds(&b, info->start_unix_ns);
    bind_int(&b, info->threads);
    bind_int(&b, run_id);
    int code = execute_insert(&b);
    for (uint32_t i = 0; i < info->num_stages && code == SQLITE_OK; i++)
        code = insert_stage(rows, run_id, &info->stages[i]);
    return code;
}

/* -- laps: one column at a time, if its value is known */

static const char *const lap_columns[] = { "timestamp", "name",           "elapsed",    "run_id",      "mode",
                                           "phase",     "kind",           "capacity",   "num_threads", "first_step",
                                           "last_step", "suspended_time", "num_joined", "num_cpus" };

enum {
    LAP_END,
    LAP_NAME,
    LAP_ELAPSED,
    LAP_RUN,
    LAP_MODE,
    LAP_PHASE,
    LAP_KIND,
    LAP_CAPACITY,
    LAP_THREADS,
    LAP_FIRST_STEP,
    LAP_LAST_STEP,
    LAP_SUSPENDED,
    LAP_JOINED,
    LAP_CPUS,
    LAP_NONE,
};

static void bind_lap_column(binder *b, int column, const weir_lap_record *lap)
{
    bool has_steps = lap->position.last_step >= lap->position.first_step;
    switch (column) {
    case LAP_END: bind_seconds(b, lap->end_unix_ns); break;
    case LAP_NAME: bind_column_text(b, lap->name); break;
    case LAP_ELAPSED: bind_seconds(b, lap->elapsed_ns); break;
    case LAP_RUN: bind_int(b, lap->run_id); break;
    case LAP_MODE: bind_column_text(b, lap->position.mode); break;
    case LAP_PHASE: bind_column_text(b, lap->position.phase); break;
    case LAP_KIND: bind_column_text(b, lap->kind); break;
    case LAP_CAPACITY:
    case LAP_CPUS:
    case LAP_THREADS: bind_int(b, lap->capacity); break;
    case LAP_SUSPENDED: bind_seconds(b, lap->suspended_ns); break;
    case LAP_JOINED: bind_int(b, lap->num_joined); break;
    default:
        if (has_steps)
            bind_int(b, column == LAP_FIRST_STEP ? lap->position.first_step : lap->position.last_step);
        else
            bind_null(b); /* a range without any step in it */
    }
}

/* Adds the column to the statement if there is a value for it. Returns whether it did. */
static bool plan_column(weir_lap_insert *insert, weir_subject subject, const char *column, bool takes_null)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(subject, histograms), at = insert->num_columns;
    const weir_measure *measure = weir_measure_find(subject, column);
    if (at == WEIR_MAX_LAP_COLUMNS)
        return false;
    insert->columns[at].measure = measure;
    insert->columns[at].takes_null = takes_null;
    insert->columns[at].special = LAP_NONE;
    for (size_t i = 0; i < sizeof lap_columns / sizeof lap_columns[0]; i++)
        if (strcmp(lap_columns[i], column) == 0)
            insert->columns[at].special = (int)i;
    bool is_known = insert->columns[at].special != LAP_NONE || measure;
    for (size_t i = 0; i < count; i++)
        if (strcmp(histograms[i].metric->name, column) == 0) {
            insert->columns[at].histogram = i;
            is_known = true;
        }
    insert->num_columns += is_known;
    return is_known;
}

/* The table may come from an older library, with columns that are now derived, or from a newer one. */
static int prepare_laps(weir_insert *rows, weir_subject subject)
{
    weir_lap_insert *insert = &rows->laps[subject];
    sqlite3_stmt *column;
    int code = sqlite3_prepare_v2(rows->db, "SELECT name, \"notnull\" FROM pragma_table_info(?)", -1, &column, NULL);
    if (code != SQLITE_OK)
        return code;
    sqlite3_bind_text(column, 1, weir__lap_tables[subject].name, -1, SQLITE_STATIC);
    sqlite3_str *sql = sqlite3_str_new(rows->db);
    sqlite3_str_appendf(sql, "INSERT INTO %s (", weir__lap_tables[subject].name);
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
        bind_int(b, at_most_int64(
                        *(const uint64_t *)(const void *)((const char *)&lap->metrics + measure->metric->offset)));
    else
        bind_real(b, isnan(value) ? 0 : value);
}

static int insert_lap(weir_insert *rows, int64_t run_id, const weir_lap_entry *entry)
{
    weir_lap_record lap = entry->record;
    weir_lap_insert *insert = &rows->laps[lap.subject];
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(lap.subject, histograms);
    binder b = { .statement = insert->statement };
    lap.run_id = run_id;
    for (size_t i = 0; i < count; i++) { /* for the percentiles among SPDL's columns */
        weir_histogram_clear(&rows->times[i]);
        weir_histogram_add_encoded(&rows->times[i], entry->histograms[i].bytes, entry->histograms[i].size_bytes);
        *weir__metric_histogram_at(histograms[i].metric, &lap.metrics) = &rows->times[i];
    }
    for (size_t i = 0; i < insert->num_columns; i++) {
        const weir_stored_histogram *stored = &entry->histograms[insert->columns[i].histogram];
        if (insert->columns[i].special != LAP_NONE)
            bind_lap_column(&b, insert->columns[i].special, &lap);
        else if (insert->columns[i].measure)
            bind_measure(&b, insert->columns[i].measure, insert->columns[i].takes_null, &lap);
        else
            bind_blob(&b, stored->bytes, stored->size_bytes);
    }
    return execute_insert(&b);
}

static int insert_run_end(weir_insert *rows, int64_t run_id, const weir_run_end *end)
{
    binder b = bind_to(rows, WEIR_INSERT_END_RUN);
    bind_seconds(&b, end->end_unix_ns);
    bind_int(&b, end->status);
    bind_int(&b, run_id);
    return execute_insert(&b);
}

static int insert_copy(weir_insert *rows, int64_t run_id, const weir_record *from)
{
    weir_record record = *from;
    record.event.run_id = run_id;
    return insert_record(rows, &record);
}

int weir__insert_insert(weir_insert *rows, const weir_record_entry *entry)
{
    int code = weir__insert_ensure_run(rows, entry->run, entry->unix_ns);
    if (code != SQLITE_OK)
        return code;
    int64_t run_id = entry->run->run_id;
    switch (entry->kind) {
    case WEIR_ENTRY_RUN_START: return insert_run_start(rows, run_id, &entry->run_start);
    case WEIR_ENTRY_LAP: return insert_lap(rows, run_id, &entry->lap);
    case WEIR_ENTRY_RECORD: return insert_copy(rows, run_id, &entry->record);
    case WEIR_ENTRY_RUN_END: return insert_run_end(rows, run_id, &entry->run_end);
    }
    return SQLITE_MISUSE;
}

int weir__insert_prepare(weir_insert *rows, sqlite3 *db, const weir_run_identity *identity)
{
    rows->db = db;
    rows->identity = identity;
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
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && code == SQLITE_OK; subject++)
        code = prepare_laps(rows, subject);
    return code;
}

void weir__insert_finalize(weir_insert *rows)
{
    for (int i = 0; i < WEIR_INSERT_STATEMENTS; i++)
        sqlite3_finalize(rows->statements[i]);
    for (int i = 0; i < NUM_RECORD_KINDS; i++)
        sqlite3_finalize(rows->records[record_kinds[i]]);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        sqlite3_finalize(rows->laps[subject].statement);
    memset(rows, 0, sizeof *rows);
}
