#include "insert.h"

#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/version.h>

#include "format.h"
#include "utf8.h"

static const char *const statement_texts[WEIR_ROWS_STATEMENTS] = {
    [WEIR_ROWS_BEGIN] = "BEGIN IMMEDIATE",
    [WEIR_ROWS_COMMIT] = "COMMIT",
    [WEIR_ROWS_ROLLBACK] = "ROLLBACK",
    [WEIR_ROWS_NEW_RUN] = "INSERT INTO run (node_id, rank, pid, started, command, version) VALUES (?, ?, ?, ?, ?, ?)",
    [WEIR_ROWS_REMOVE_RUN] = "DELETE FROM run WHERE run_id = ?",
    [WEIR_ROWS_START_RUN] = "UPDATE run SET started = ?, threads = ? WHERE run_id = ?",
    [WEIR_ROWS_END_RUN] = "UPDATE run SET ended = ?, status = ? WHERE run_id = ?",
    [WEIR_ROWS_LOST] = "UPDATE run SET entries_lost = ? WHERE run_id = ?",
    [WEIR_ROWS_STAGE] = "INSERT INTO stage (run_id, name, kind, concurrency, queue_items, queue_bytes, output_order) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?)",
    [WEIR_ROWS_TASK_STATS] = "INSERT INTO task_stats (timestamp, name, num_tasks, num_failures, ave_time, p90_time, "
                             "p99_time, run_id, elapsed, p50_time, max_time, failed_time, busy_time, wait_in_time, "
                             "wait_thread_time, wait_out_time, cpu_time, histogram, num_skipped, phase, "
                             "first_step, last_step) "
                             "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [WEIR_ROWS_QUEUE_STATS] = "INSERT INTO queue_stats (timestamp, name, elapsed, num_items, ave_put_time, "
                              "ave_get_time, p90_put_time, p99_put_time, p90_get_time, p99_get_time, occupancy_rate, "
                              "run_id, num_put, capacity, ave_depth, max_depth, ave_bytes, max_bytes, put_histogram, "
                              "get_histogram, phase, first_step, last_step) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [WEIR_ROWS_TASK_FAILURE] =
        "INSERT INTO task_failures (timestamp, run_id, name, seq, label, status, library_code, "
        "message, elapsed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [WEIR_ROWS_EVENT] = "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail) "
                        "VALUES (?, ?, ?, ?, ?)",
    [WEIR_ROWS_ITEM] = "INSERT INTO item_stats (timestamp, run_id, name, seq, label, elapsed, codec, width, height, "
                       "num_frames, size_bytes, open_time, demux_time, decode_time, scale_time, chosen) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
};

int weir_rows_prepare(weir_rows *rows, sqlite3 *db, const weir_run_identity *identity)
{
    rows->db = db;
    rows->identity = identity;
    int code = SQLITE_OK;
    for (int i = 0; i < WEIR_ROWS_STATEMENTS && code == SQLITE_OK; i++)
        code = sqlite3_prepare_v3(db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT, &rows->statements[i], NULL);
    return code;
}

void weir_rows_finalize(weir_rows *rows)
{
    for (int i = 0; i < WEIR_ROWS_STATEMENTS; i++)
        sqlite3_finalize(rows->statements[i]);
    memset(rows, 0, sizeof *rows);
}

/* Fills a statement from left to right; its first failure is kept and later values are left out. */
typedef struct binder {
    sqlite3_stmt *statement;
    int column;
    int code;
} binder;

static binder bind_to(weir_rows *rows, int statement)
{
    return (binder){ .statement = rows->statements[statement] };
}

static void bind_int(binder *b, int64_t value)
{
    if (b->code == SQLITE_OK)
        b->code = sqlite3_bind_int64(b->statement, ++b->column, value);
}

static void bind_count(binder *b, uint64_t value)
{
    bind_int(b, value > INT64_MAX ? INT64_MAX : (int64_t)value);
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

/* sum over count, in seconds; 0 of nothing */
static void bind_mean_seconds(binder *b, int64_t sum_ns, uint64_t count)
{
    bind_real(b, count ? (double)sum_ns / (double)count / (double)WEIR_SECOND : 0.0);
}

/* A level weighted by time, over that time; 0 of an empty lap */
static void bind_level(binder *b, double level_ns, int64_t elapsed_ns)
{
    bind_real(b, elapsed_ns > 0 ? level_ns / (double)elapsed_ns : 0.0);
}

static void bind_blob(binder *b, const void *bytes, size_t size_bytes)
{
    if (b->code == SQLITE_OK)
        b->code = sqlite3_bind_blob64(b->statement, ++b->column, bytes, size_bytes, SQLITE_STATIC);
}

static bool is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t length; *s; s += length)
        if (!(length = weir_utf8_length((const char *)s)))
            return false;
    return true;
}

/*
 * Text, or, where it is not valid UTF-8 (file names are any bytes), a blob of the same bytes: nothing of the name is
 * lost, and readers that must decode text (Python's sqlite3) do not trip over the row.
 */
static void bind_text(binder *b, const char *text)
{
    if (!is_utf8(text))
        bind_blob(b, text, strlen(text));
    else if (b->code == SQLITE_OK)
        b->code = sqlite3_bind_text64(b->statement, ++b->column, text, strlen(text), SQLITE_STATIC, SQLITE_UTF8);
}

/* NULL: a range without any step in it */
static void bind_null(binder *b)
{
    if (b->code == SQLITE_OK)
        b->code = sqlite3_bind_null(b->statement, ++b->column);
}

static void bind_place(binder *b, const weir_lap_place *place)
{
    bool has_steps = place->last_step >= place->first_step;
    bind_text(b, place->phase);
    if (has_steps) {
        bind_int(b, place->first_step);
        bind_int(b, place->last_step);
    } else {
        bind_null(b);
        bind_null(b);
    }
}

static void bind_spread(binder *b, const weir_spread *spread)
{
    bind_blob(b, spread->encoded, spread->encoded_bytes);
}

/* Runs what has been bound. */
static int execute(binder *b)
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

int weir_rows_run(weir_rows *rows, int statement)
{
    binder b = bind_to(rows, statement);
    return execute(&b);
}

int weir_rows_ensure_run(weir_rows *rows, weir_run *run, int64_t start_unix_ns)
{
    if (run->run_id)
        return SQLITE_OK;
    binder b = bind_to(rows, WEIR_ROWS_NEW_RUN);
    bind_text(&b, rows->identity->node_id);
    bind_int(&b, rows->identity->rank);
    bind_int(&b, getpid());
    bind_seconds(&b, start_unix_ns);
    bind_text(&b, rows->identity->command);
    bind_text(&b, weir_version());
    int code = execute(&b);
    if (code == SQLITE_OK)
        run->run_id = sqlite3_last_insert_rowid(rows->db);
    return code;
}

int weir_rows_remove_run(weir_rows *rows, const weir_run *run)
{
    binder b = bind_to(rows, WEIR_ROWS_REMOVE_RUN);
    bind_int(&b, run->run_id);
    return execute(&b);
}

int weir_rows_set_lost(weir_rows *rows, const weir_run *run)
{
    binder b = bind_to(rows, WEIR_ROWS_LOST);
    bind_int(&b, run->told_lost);
    bind_int(&b, run->run_id);
    return execute(&b);
}

static int insert_stage(weir_rows *rows, int64_t run_id, const weir_stage_info *stage)
{
    binder b = bind_to(rows, WEIR_ROWS_STAGE);
    bind_int(&b, run_id);
    bind_text(&b, stage->name);
    bind_text(&b, stage->kind);
    bind_int(&b, stage->concurrency);
    bind_int(&b, stage->queue_items);
    bind_count(&b, stage->queue_bytes);
    bind_text(&b, stage->output_order);
    return execute(&b);
}

static int insert_run_start(weir_rows *rows, int64_t run_id, const weir_run_info *info)
{
    binder b = bind_to(rows, WEIR_ROWS_START_RUN);
    bind_seconds(&b, info->start_unix_ns);
    bind_int(&b, info->threads);
    bind_int(&b, run_id);
    int code = execute(&b);
    for (uint32_t i = 0; i < info->num_stages && code == SQLITE_OK; i++)
        code = insert_stage(rows, run_id, &info->stages[i]);
    return code;
}

static int insert_stage_lap(weir_rows *rows, int64_t run_id, const weir_stage_entry *stage)
{
    const weir_stage_lap *lap = &stage->lap;
    binder b = bind_to(rows, WEIR_ROWS_TASK_STATS);
    bind_seconds(&b, lap->lap->end_unix_ns);
    bind_text(&b, lap->name);
    bind_count(&b, lap->metrics.num_tasks);
    bind_count(&b, lap->metrics.num_failures);
    bind_mean_seconds(
        &b, lap->metrics.success_ns,
        lap->metrics.num_tasks > lap->metrics.num_failures ? lap->metrics.num_tasks - lap->metrics.num_failures : 0);
    bind_seconds(&b, stage->run_times.p90_ns);
    bind_seconds(&b, stage->run_times.p99_ns);
    bind_int(&b, run_id);
    bind_seconds(&b, lap->lap->elapsed_ns);
    bind_seconds(&b, stage->run_times.p50_ns);
    bind_seconds(&b, lap->metrics.max_ns);
    bind_seconds(&b, lap->metrics.failed_ns);
    bind_seconds(&b, lap->metrics.busy_ns);
    bind_seconds(&b, lap->metrics.wait_in_ns);
    bind_seconds(&b, lap->metrics.wait_thread_ns);
    bind_seconds(&b, lap->metrics.wait_out_ns);
    bind_seconds(&b, lap->metrics.cpu_ns);
    bind_spread(&b, &stage->run_times);
    bind_count(&b, lap->metrics.num_skipped);
    bind_place(&b, &lap->lap->place);
    return execute(&b);
}

static int insert_queue_lap(weir_rows *rows, int64_t run_id, const weir_queue_entry *queue)
{
    const weir_queue_lap *lap = &queue->lap;
    binder b = bind_to(rows, WEIR_ROWS_QUEUE_STATS);
    bind_seconds(&b, lap->lap->end_unix_ns);
    bind_text(&b, lap->name);
    bind_seconds(&b, lap->lap->elapsed_ns);
    bind_count(&b, lap->metrics.num_items);
    bind_mean_seconds(&b, lap->metrics.put_ns, lap->metrics.num_put);
    bind_mean_seconds(&b, lap->metrics.get_ns, lap->metrics.num_items);
    bind_seconds(&b, queue->put_times.p90_ns);
    bind_seconds(&b, queue->put_times.p99_ns);
    bind_seconds(&b, queue->get_times.p90_ns);
    bind_seconds(&b, queue->get_times.p99_ns);
    bind_level(&b, (double)lap->metrics.occupied_ns, lap->lap->elapsed_ns);
    bind_int(&b, run_id);
    bind_count(&b, lap->metrics.num_put);
    bind_int(&b, lap->capacity);
    bind_level(&b, lap->metrics.depth_ns, lap->lap->elapsed_ns);
    bind_int(&b, lap->metrics.max_depth);
    bind_level(&b, lap->metrics.bytes_ns, lap->lap->elapsed_ns);
    bind_int(&b, lap->metrics.max_bytes);
    bind_spread(&b, &queue->put_times);
    bind_spread(&b, &queue->get_times);
    bind_place(&b, &lap->lap->place);
    return execute(&b);
}

static int insert_failure(weir_rows *rows, int64_t run_id, const weir_failure *failure)
{
    binder b = bind_to(rows, WEIR_ROWS_TASK_FAILURE);
    bind_seconds(&b, failure->unix_ns);
    bind_int(&b, run_id);
    bind_text(&b, failure->name);
    bind_count(&b, failure->seq);
    bind_text(&b, failure->label);
    bind_int(&b, failure->status);
    bind_int(&b, failure->library_code);
    bind_text(&b, failure->message);
    bind_seconds(&b, failure->run_ns);
    return execute(&b);
}

static int insert_event(weir_rows *rows, int64_t run_id, const weir_event *event)
{
    binder b = bind_to(rows, WEIR_ROWS_EVENT);
    bind_seconds(&b, event->unix_ns);
    bind_text(&b, event->name);
    bind_int(&b, run_id);
    bind_text(&b, event->category);
    bind_text(&b, event->detail);
    return execute(&b);
}

static int insert_item(weir_rows *rows, int64_t run_id, int64_t unix_ns, const weir_item_entry *item)
{
    const weir_item_cost *cost = &item->cost;
    binder b = bind_to(rows, WEIR_ROWS_ITEM);
    bind_seconds(&b, unix_ns);
    bind_int(&b, run_id);
    bind_text(&b, item->name);
    bind_count(&b, item->seq);
    bind_text(&b, item->label);
    bind_seconds(&b, item->elapsed_ns);
    bind_text(&b, cost->codec);
    bind_int(&b, cost->width);
    bind_int(&b, cost->height);
    bind_count(&b, cost->num_frames);
    bind_count(&b, cost->size_bytes);
    bind_seconds(&b, cost->open_ns);
    bind_seconds(&b, cost->demux_ns);
    bind_seconds(&b, cost->decode_ns);
    bind_seconds(&b, cost->scale_ns);
    bind_text(&b, item->chosen);
    return execute(&b);
}

static int insert_run_end(weir_rows *rows, int64_t run_id, const weir_run_end *end)
{
    binder b = bind_to(rows, WEIR_ROWS_END_RUN);
    bind_seconds(&b, end->end_unix_ns);
    bind_int(&b, end->status);
    bind_int(&b, run_id);
    return execute(&b);
}

int weir_rows_insert(weir_rows *rows, const weir_entry *entry)
{
    int code = weir_rows_ensure_run(rows, entry->run, entry->unix_ns);
    if (code != SQLITE_OK)
        return code;
    int64_t run_id = entry->run->run_id;
    switch (entry->kind) {
    case WEIR_ENTRY_RUN_START: return insert_run_start(rows, run_id, &entry->run_start);
    case WEIR_ENTRY_STAGE_LAP: return insert_stage_lap(rows, run_id, &entry->stage);
    case WEIR_ENTRY_QUEUE_LAP: return insert_queue_lap(rows, run_id, &entry->queue);
    case WEIR_ENTRY_FAILURE: return insert_failure(rows, run_id, &entry->failure);
    case WEIR_ENTRY_EVENT: return insert_event(rows, run_id, &entry->event);
    case WEIR_ENTRY_ITEM: return insert_item(rows, run_id, entry->unix_ns, &entry->item);
    case WEIR_ENTRY_RUN_END: return insert_run_end(rows, run_id, &entry->run_end);
    }
    return SQLITE_MISUSE;
}
