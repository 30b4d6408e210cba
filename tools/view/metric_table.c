#include "metric_table.h"

#include <math.h>
#include <string.h>

/* -- columns */

/* Titles that are NULL: in JSON and CSV only. */
static const table_column cover_columns[] = {
    { "num_laps", "laps", TABLE_COUNT },
    { "start_time", NULL, TABLE_WHEN },
    { "end_time", NULL, TABLE_WHEN },
    { "elapsed", NULL, TABLE_TIME },
};

static const table_column task_columns[] = {
    { "num_tasks", "tasks", TABLE_COUNT },     { "num_failures", "failed", TABLE_COUNT },
    { "num_skipped", NULL, TABLE_COUNT },      { "tasks_per_s", "per s", TABLE_REAL },
    { "ave_time", "average", TABLE_TIME },     { "p50_time", "p50", TABLE_TIME },
    { "p90_time", "p90", TABLE_TIME },         { "p99_time", "p99", TABLE_TIME },
    { "max_time", "max", TABLE_TIME },         { "busy_share", "busy", TABLE_SHARE },
    { "wait_in_share", "input", TABLE_SHARE }, { "wait_thread_share", "thread", TABLE_SHARE },
    { "wait_out_share", "room", TABLE_SHARE }, { "cpu_share", "CPU", TABLE_SHARE },
    { "failed_time", NULL, TABLE_TIME },       { "busy_time", NULL, TABLE_TIME },
    { "wait_in_time", NULL, TABLE_TIME },      { "wait_thread_time", NULL, TABLE_TIME },
    { "wait_out_time", NULL, TABLE_TIME },     { "cpu_time", NULL, TABLE_TIME },
};

static const table_column queue_columns[] = {
    { "num_items", "items", TABLE_COUNT },   { "num_put", NULL, TABLE_COUNT },
    { "items_per_s", "per s", TABLE_REAL },  { "ave_put_time", "put", TABLE_TIME },
    { "p50_put_time", NULL, TABLE_TIME },    { "p90_put_time", "p90", TABLE_TIME },
    { "p99_put_time", "p99", TABLE_TIME },   { "ave_get_time", "get", TABLE_TIME },
    { "p50_get_time", NULL, TABLE_TIME },    { "p90_get_time", "p90", TABLE_TIME },
    { "p99_get_time", "p99", TABLE_TIME },   { "occupancy_rate", "occupied", TABLE_SHARE },
    { "capacity", "capacity", TABLE_COUNT }, { "ave_depth", "depth", TABLE_REAL },
    { "max_depth", "max", TABLE_COUNT },     { "ave_bytes", "bytes", TABLE_BYTES },
    { "max_bytes", "max", TABLE_BYTES },
};

enum {
    NUM_COVER = sizeof cover_columns / sizeof cover_columns[0],
    NUM_TASK = sizeof task_columns / sizeof task_columns[0],
    NUM_QUEUE = sizeof queue_columns / sizeof queue_columns[0],
};

static size_t add_columns(table_column *columns, size_t count, const table_column *more, size_t num_more)
{
    memcpy(columns + count, more, num_more * sizeof *more);
    return count + num_more;
}

static size_t key_columns(table_column *columns, const figures_keys *keys, const char *what)
{
    size_t count = 0;
    if (keys->time)
        columns[count++] = (table_column){ "time", "time", TABLE_WHEN };
    if (keys->run)
        columns[count++] = (table_column){ "run_id", "run", TABLE_COUNT };
    if (keys->node)
        columns[count++] = (table_column){ "node_id", "node", TABLE_WORDS };
    if (keys->phase)
        columns[count++] = (table_column){ "phase", "phase", TABLE_WORDS };
    if (keys->steps) {
        columns[count++] = (table_column){ "first_step", "from step", TABLE_COUNT };
        columns[count++] = (table_column){ "last_step", "to step", TABLE_COUNT };
    }
    if (keys->name)
        columns[count++] = (table_column){ "name", what, TABLE_WORDS };
    if (keys->share)
        columns[count++] = (table_column){ "share", "share", TABLE_SHARE };
    return add_columns(columns, count, cover_columns, NUM_COVER);
}

size_t figures_task_columns(table_column columns[FIGURES_MAX_COLUMNS], const figures_keys *keys)
{
    return add_columns(columns, key_columns(columns, keys, "stage"), task_columns, NUM_TASK);
}

size_t figures_queue_columns(table_column columns[FIGURES_MAX_COLUMNS], const figures_keys *keys)
{
    return add_columns(columns, key_columns(columns, keys, "queue"), queue_columns, NUM_QUEUE);
}

size_t figures_both_columns(table_column columns[FIGURES_MAX_COLUMNS])
{
    columns[0] = (table_column){ "kind", "kind", TABLE_WORDS };
    size_t count = 1 + key_columns(columns + 1, &(figures_keys){ .name = true }, "name");
    count = add_columns(columns, count, task_columns, NUM_TASK);
    return add_columns(columns, count, queue_columns, NUM_QUEUE);
}

/* -- cells */

static void put_nothings(table *t, size_t count)
{
    for (size_t i = 0; i < count; i++)
        table_nothing(t);
}

static void put_ratio(table *t, double part, double whole)
{
    table_number(t, whole > 0 ? part / whole : NAN);
}

/* A figure of something that did not happen is none. */
static void put_if(table *t, bool happened, double figure)
{
    table_number(t, happened ? figure : NAN);
}

static void put_keys(table *t, const figures_keys *keys, const weir_group_key *key, double elapsed, double share)
{
    bool has_steps = key->last_step >= key->first_step;
    if (keys->time)
        table_number(t, key->bin_time != 0 ? key->bin_time : key->end_time);
    if (keys->run)
        table_count(t, key->run_id);
    if (keys->node)
        table_words(t, key->node_id);
    if (keys->phase)
        table_words(t, key->phase);
    if (keys->steps && has_steps) {
        table_count(t, key->first_step);
        table_count(t, key->last_step);
    } else if (keys->steps)
        put_nothings(t, 2);
    if (keys->name)
        table_words(t, key->name);
    if (keys->share)
        table_number(t, share);
    table_count(t, key->num_laps);
    table_number(t, key->start_time);
    table_number(t, key->end_time);
    table_number(t, elapsed);
}

static void put_task_figures(table *t, const weir_task_totals *task)
{
    double slots = task->busy_time + task->wait_in_time + task->wait_thread_time + task->wait_out_time;
    bool has_times = task->num_tasks > task->num_failures;
    table_count(t, task->num_tasks);
    table_count(t, task->num_failures);
    table_count(t, task->num_skipped);
    put_ratio(t, (double)task->num_tasks, task->elapsed);
    put_if(t, has_times, task->ave_time);
    put_if(t, has_times, task->p50_time);
    put_if(t, has_times, task->p90_time);
    put_if(t, has_times, task->p99_time);
    put_if(t, has_times, task->max_time);
    put_ratio(t, task->busy_time, slots);
    put_ratio(t, task->wait_in_time, slots);
    put_ratio(t, task->wait_thread_time, slots);
    put_ratio(t, task->wait_out_time, slots);
    put_ratio(t, task->cpu_time, task->busy_time);
    table_number(t, task->failed_time);
    table_number(t, task->busy_time);
    table_number(t, task->wait_in_time);
    table_number(t, task->wait_thread_time);
    table_number(t, task->wait_out_time);
    table_number(t, task->cpu_time);
}

static void put_queue_figures(table *t, const weir_queue_totals *queue)
{
    bool was_put = queue->num_put > 0, was_taken = queue->num_items > 0;
    table_count(t, queue->num_items);
    table_count(t, queue->num_put);
    put_ratio(t, (double)queue->num_items, queue->elapsed);
    put_if(t, was_put, queue->ave_put_time);
    put_if(t, was_put, queue->p50_put_time);
    put_if(t, was_put, queue->p90_put_time);
    put_if(t, was_put, queue->p99_put_time);
    put_if(t, was_taken, queue->ave_get_time);
    put_if(t, was_taken, queue->p50_get_time);
    put_if(t, was_taken, queue->p90_get_time);
    put_if(t, was_taken, queue->p99_get_time);
    table_number(t, queue->occupancy_rate);
    table_count(t, queue->capacity);
    table_number(t, queue->ave_depth);
    table_count(t, queue->max_depth);
    table_number(t, queue->ave_bytes);
    table_count(t, queue->max_bytes);
}

void figures_put_task(table *t, const figures_keys *keys, const weir_task_totals *task, double share)
{
    put_keys(t, keys, &task->key, task->elapsed, share);
    put_task_figures(t, task);
}

void figures_put_queue(table *t, const figures_keys *keys, const weir_queue_totals *queue, double share)
{
    put_keys(t, keys, &queue->key, queue->elapsed, share);
    put_queue_figures(t, queue);
}

void figures_put_both(table *t, const weir_task_totals *task, const weir_queue_totals *queue)
{
    table_words(t, task ? "stage" : "queue");
    put_keys(t, &(figures_keys){ .name = true }, task ? &task->key : &queue->key,
             task ? task->elapsed : queue->elapsed, 0);
    if (task)
        put_task_figures(t, task);
    else
        put_nothings(t, NUM_TASK);
    if (queue)
        put_queue_figures(t, queue);
    else
        put_nothings(t, NUM_QUEUE);
}

/* -- laps */

static weir_group_key key_of_lap(int64_t run_id, const char *name, const weir_record_place *place, double timestamp,
                                 double elapsed)
{
    return (weir_group_key){
        .name = name,
        .node_id = "",
        .phase = place->phase,
        .run_id = run_id,
        .first_step = place->first_step,
        .last_step = place->last_step,
        .start_time = timestamp - elapsed,
        .end_time = timestamp,
        .num_laps = 1,
    };
}

weir_task_totals figures_of_task_lap(const weir_task_record *lap)
{
    return (weir_task_totals){
        .key = key_of_lap(lap->run_id, lap->name, &lap->place, lap->timestamp, lap->elapsed),
        .elapsed = lap->elapsed,
        .num_tasks = lap->num_tasks,
        .num_failures = lap->num_failures,
        .num_skipped = lap->num_skipped,
        .success_time = lap->ave_time * (double)(lap->num_tasks - lap->num_failures),
        .failed_time = lap->failed_time,
        .busy_time = lap->busy_time,
        .wait_in_time = lap->wait_in_time,
        .wait_thread_time = lap->wait_thread_time,
        .wait_out_time = lap->wait_out_time,
        .cpu_time = lap->cpu_time,
        .ave_time = lap->ave_time,
        .p50_time = lap->p50_time,
        .p90_time = lap->p90_time,
        .p99_time = lap->p99_time,
        .max_time = lap->max_time,
    };
}

/* The median is not a column of queue_stats, but its histograms know it. */
static double median_of(const void *histogram, size_t size_bytes)
{
    weir_histogram times = { .count = 0 };
    if (weir_histogram_add_encoded(&times, histogram, size_bytes) != WEIR_OK)
        return NAN;
    return (double)weir_histogram_quantile_ns(&times, 0.5) / 1e9;
}

weir_queue_totals figures_of_queue_lap(const weir_queue_record *lap)
{
    return (weir_queue_totals){
        .key = key_of_lap(lap->run_id, lap->name, &lap->place, lap->timestamp, lap->elapsed),
        .elapsed = lap->elapsed,
        .num_items = lap->num_items,
        .num_put = lap->num_put,
        .capacity = lap->capacity,
        .put_time = lap->ave_put_time * (double)lap->num_put,
        .get_time = lap->ave_get_time * (double)lap->num_items,
        .occupied = lap->occupancy_rate * lap->elapsed,
        .depth_time = lap->ave_depth * lap->elapsed,
        .bytes_time = lap->ave_bytes * lap->elapsed,
        .max_depth = lap->max_depth,
        .max_bytes = lap->max_bytes,
        .ave_put_time = lap->ave_put_time,
        .p50_put_time = median_of(lap->put_histogram, lap->put_histogram_bytes),
        .p90_put_time = lap->p90_put_time,
        .p99_put_time = lap->p99_put_time,
        .ave_get_time = lap->ave_get_time,
        .p50_get_time = median_of(lap->get_histogram, lap->get_histogram_bytes),
        .p90_get_time = lap->p90_get_time,
        .p99_get_time = lap->p99_get_time,
        .occupancy_rate = lap->occupancy_rate,
        .ave_depth = lap->ave_depth,
        .ave_bytes = lap->ave_bytes,
    };
}
