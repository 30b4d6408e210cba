#include "totals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "path.h"

/* What a pass over rows needs to know and to report. */
typedef struct pass {
    sqlite3 *db;
    const char *path;
    weir_totals *totals;
    weir_error *error;
    size_t hint; /* laps come in rounds: the next row is probably this one's */
} pass;

static int out_of_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

/* Prepares a query for one run. */
static int prepare(pass *p, const char *sql, sqlite3_stmt **statement)
{
    int code = sqlite3_prepare_v2(p->db, sql, -1, statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(*statement, 1, p->totals->run.run_id);
    return code == SQLITE_OK ? WEIR_OK : weir_database_error(p->error, p->db, code, "cannot read", p->path);
}

/* Runs `each` for every row of a query for one run. */
static int for_each_row(pass *p, const char *sql, int (*each)(pass *p, sqlite3_stmt *row))
{
    sqlite3_stmt *statement = NULL;
    int status = prepare(p, sql, &statement);
    int code = SQLITE_DONE;
    while (status == WEIR_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        status = each(p, statement);
    if (status == WEIR_OK && code != SQLITE_DONE)
        status = weir_database_error(p->error, p->db, code, "cannot read", p->path);
    sqlite3_finalize(statement);
    return status;
}

/* Adds a stored histogram to *to; the row's id is in column 0. */
static int add_histogram(pass *p, const char *table, sqlite3_stmt *row, int column, weir_histogram *to)
{
    const void *bytes = sqlite3_column_blob(row, column);
    int size = sqlite3_column_bytes(row, column);
    if (weir_histogram_add_encoded(to, bytes, bytes ? (size_t)size : 0) == WEIR_OK)
        return WEIR_OK;
    return weir_error_set(p->error, WEIR_EDATA, 0, "database %s is damaged: row %lld of %s has no valid %s",
                          weir_path_for_message(p->path).text, sqlite3_column_int64(row, 0), table,
                          sqlite3_column_name(row, column));
}

/* Makes room for one more element of `size_bytes` behind `count` ones; false if there is none. */
static bool grow(void **array, size_t count, size_t size_bytes)
{
    void *grown = realloc(*array, (count + 1) * size_bytes);
    if (!grown)
        return false;
    memset((char *)grown + count * size_bytes, 0, size_bytes);
    *array = grown;
    return true;
}

static weir_task_totals *add_task(weir_totals *totals, const char *name)
{
    void *tasks = totals->tasks;
    if (!grow(&tasks, totals->num_tasks, sizeof *totals->tasks))
        return NULL;
    totals->tasks = tasks;
    weir_task_totals *task = &totals->tasks[totals->num_tasks++];
    task->name = strdup(name);
    task->times = calloc(1, sizeof *task->times);
    return task->name && task->times ? task : NULL;
}

static weir_queue_totals *add_queue(weir_totals *totals, const char *name)
{
    void *queues = totals->queues;
    if (!grow(&queues, totals->num_queues, sizeof *totals->queues))
        return NULL;
    totals->queues = queues;
    weir_queue_totals *queue = &totals->queues[totals->num_queues++];
    queue->name = strdup(name);
    queue->put_times = calloc(1, sizeof *queue->put_times);
    queue->get_times = calloc(1, sizeof *queue->get_times);
    return queue->name && queue->put_times && queue->get_times ? queue : NULL;
}

/* The totals of that name, made if there are none; NULL = out of memory. */
static weir_task_totals *task_named(pass *p, const char *name)
{
    weir_totals *totals = p->totals;
    for (size_t i = 0; i < totals->num_tasks; i++) {
        size_t at = (p->hint + i) % totals->num_tasks;
        if (strcmp(totals->tasks[at].name, name) == 0) {
            p->hint = at + 1;
            return &totals->tasks[at];
        }
    }
    return add_task(totals, name);
}

static weir_queue_totals *queue_named(pass *p, const char *name)
{
    weir_totals *totals = p->totals;
    for (size_t i = 0; i < totals->num_queues; i++) {
        size_t at = (p->hint + i) % totals->num_queues;
        if (strcmp(totals->queues[at].name, name) == 0) {
            p->hint = at + 1;
            return &totals->queues[at];
        }
    }
    return add_queue(totals, name);
}

/* The stages give the order; those without laps are left out by who prints. */
static const char stages_sql[] = "SELECT name, name || '_queue', kind FROM stage WHERE run_id = ? ORDER BY rowid";

static int add_stage(pass *p, sqlite3_stmt *row)
{
    bool has_tasks = strcmp(text_of(row, 2), "stage") == 0;
    if (has_tasks && !add_task(p->totals, text_of(row, 0)))
        return out_of_memory(p->error);
    if (!add_queue(p->totals, text_of(row, 1)))
        return out_of_memory(p->error);
    return WEIR_OK;
}

static const char tasks_sql[] =
    "SELECT id, name, num_tasks, num_failures, ave_time, failed_time, max_time, busy_time, wait_in_time, "
    "wait_thread_time, wait_out_time, cpu_time, num_skipped, histogram FROM task_stats WHERE run_id = ? ORDER BY id";

static int add_task_lap(pass *p, sqlite3_stmt *row)
{
    weir_task_totals *task = task_named(p, text_of(row, 1));
    if (!task)
        return out_of_memory(p->error);
    int64_t num_tasks = sqlite3_column_int64(row, 2);
    int64_t num_failures = sqlite3_column_int64(row, 3);
    double max_time = sqlite3_column_double(row, 6);
    task->num_laps++;
    task->num_tasks += num_tasks;
    task->num_failures += num_failures;
    task->success_time += sqlite3_column_double(row, 4) * (double)(num_tasks - num_failures);
    task->failed_time += sqlite3_column_double(row, 5);
    task->max_time = task->max_time > max_time ? task->max_time : max_time;
    task->busy_time += sqlite3_column_double(row, 7);
    task->wait_in_time += sqlite3_column_double(row, 8);
    task->wait_thread_time += sqlite3_column_double(row, 9);
    task->wait_out_time += sqlite3_column_double(row, 10);
    task->cpu_time += sqlite3_column_double(row, 11);
    task->num_skipped += sqlite3_column_int64(row, 12);
    return add_histogram(p, "task_stats", row, 13, task->times);
}

static const char queues_sql[] =
    "SELECT id, name, elapsed, num_items, num_put, ave_put_time, ave_get_time, occupancy_rate, capacity, ave_depth, "
    "max_depth, ave_bytes, max_bytes, put_histogram, get_histogram FROM queue_stats WHERE run_id = ? ORDER BY id";

static int add_queue_lap(pass *p, sqlite3_stmt *row)
{
    weir_queue_totals *queue = queue_named(p, text_of(row, 1));
    if (!queue)
        return out_of_memory(p->error);
    double elapsed = sqlite3_column_double(row, 2);
    int64_t num_items = sqlite3_column_int64(row, 3);
    int64_t num_put = sqlite3_column_int64(row, 4);
    int64_t max_depth = sqlite3_column_int64(row, 10);
    int64_t max_bytes = sqlite3_column_int64(row, 12);
    queue->num_laps++;
    queue->elapsed += elapsed;
    queue->num_items += num_items;
    queue->num_put += num_put;
    queue->put_time += sqlite3_column_double(row, 5) * (double)num_put;
    queue->get_time += sqlite3_column_double(row, 6) * (double)num_items;
    queue->occupied += sqlite3_column_double(row, 7) * elapsed;
    queue->capacity = sqlite3_column_int64(row, 8);
    queue->depth_time += sqlite3_column_double(row, 9) * elapsed;
    queue->max_depth = queue->max_depth > max_depth ? queue->max_depth : max_depth;
    queue->bytes_time += sqlite3_column_double(row, 11) * elapsed;
    queue->max_bytes = queue->max_bytes > max_bytes ? queue->max_bytes : max_bytes;
    int status = add_histogram(p, "queue_stats", row, 13, queue->put_times);
    return status == WEIR_OK ? add_histogram(p, "queue_stats", row, 14, queue->get_times) : status;
}

static int no_such_run(const char *path, int64_t run_id, weir_error *error)
{
    const weir_path_text text = weir_path_for_message(path);
    if (run_id == 0)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "database %s holds no run yet", text.text);
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "database %s holds no run %" PRId64, text.text, run_id);
}

int weir_totals_find_run(sqlite3 *db, const char *path, int64_t run_id, weir_run_row *run, weir_error *error)
{
    static const char sql[] = "SELECT run_id, started, ended, status, entries_lost FROM run "
                              "WHERE ?1 = 0 OR run_id = ?1 ORDER BY run_id DESC LIMIT 1";
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(row, 1, run_id);
    if (code == SQLITE_OK)
        code = sqlite3_step(row);
    int status = WEIR_OK;
    if (code == SQLITE_ROW)
        *run = (weir_run_row){
            .run_id = sqlite3_column_int64(row, 0),
            .started = sqlite3_column_double(row, 1),
            .ended = sqlite3_column_double(row, 2),
            .has_ended = sqlite3_column_type(row, 2) != SQLITE_NULL,
            .status = sqlite3_column_int(row, 3),
            .entries_lost = sqlite3_column_int64(row, 4),
        };
    else if (code == SQLITE_DONE)
        status = no_such_run(path, run_id, error);
    else
        status = weir_database_error(error, db, code, "cannot read", path);
    sqlite3_finalize(row);
    return status;
}

/* Within one transaction, so that all of it is of one moment, also while a writer is at work. */
static int read_all(pass *p, int64_t run_id)
{
    int status = weir_totals_find_run(p->db, p->path, run_id, &p->totals->run, p->error);
    if (status == WEIR_OK)
        status = for_each_row(p, stages_sql, add_stage);
    p->hint = 0;
    if (status == WEIR_OK)
        status = for_each_row(p, tasks_sql, add_task_lap);
    p->hint = 0;
    if (status == WEIR_OK)
        status = for_each_row(p, queues_sql, add_queue_lap);
    return status;
}

int weir_totals_read(sqlite3 *db, const char *path, int64_t run_id, weir_totals *totals, weir_error *error)
{
    *totals = (weir_totals){ .num_tasks = 0 };
    pass p = { .db = db, .path = path, .totals = totals, .error = error };
    int code = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return weir_database_error(error, db, code, "cannot read", path);
    int status = read_all(&p, run_id);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL); /* nothing was written */
    if (status != WEIR_OK)
        weir_totals_free(totals);
    return status;
}

void weir_totals_free(weir_totals *totals)
{
    for (size_t i = 0; i < totals->num_tasks; i++) {
        free(totals->tasks[i].name);
        free(totals->tasks[i].times);
    }
    for (size_t i = 0; i < totals->num_queues; i++) {
        free(totals->queues[i].name);
        free(totals->queues[i].put_times);
        free(totals->queues[i].get_times);
    }
    free(totals->tasks);
    free(totals->queues);
    *totals = (weir_totals){ .num_tasks = 0 };
}
