/*
 * Live OpenMetrics: an observer that adds up laps and replaces a file after each. Everything happens on the pipeline's
 * statistics thread, but for opening and closing, which come before and after: no locks.
 */
#include <weir/openmetrics.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/version.h>

#include "database_path.h"
#include "exposition.h"
#include "process_info.h"
#include "replacement.h"

struct weir_openmetrics_file {
    char *path;
    char *node_id, *command;
    weir_observer observer;

    weir_run_record run;
    bool has_run;
    weir_exposition all; /* of the run; totals points to: */
    weir_totals totals;
    char *last_queue; /* a lap ends with this queue */

    weir_error failure; /* of the last attempt to write; all-0 = it succeeded */
    bool is_short;      /* there was no memory for some of it */
};

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* -- the file */

/* Returns 0 or an errno. */
static int write_file(const weir_openmetrics_file *file)
{
    static const weir_totals nothing;
    static const weir_exposition empty = { .totals = &nothing };
    weir_replacement out;
    int failure = weir_replacement_open(&out, file->path);
    if (failure)
        return failure;
    weir_exposition_write(out.file, file->has_run ? &file->all : &empty);
    return weir_replacement_close(&out, true);
}

static int replace(weir_openmetrics_file *file)
{
    bool failed_before = file->failure.status != WEIR_OK;
    file->failure = (weir_error){ 0 };
    int failure = write_file(file);
    if (!failure)
        return WEIR_OK;
    int status = failure == EACCES || failure == EROFS || failure == EPERM ? WEIR_EACCESS
                 : failure == ENOENT || failure == ENOTDIR                 ? WEIR_ENOTFOUND
                                                                           : WEIR_EIO;
    weir_error_set(&file->failure, status, -failure, "cannot write the metrics to %s: %s%s",
                   weir_path_for_message(file->path).text, strerror(failure),
                   status == WEIR_ENOTFOUND ? "; make the folder first" : "");
    if (!failed_before && file->has_run)
        weir_log(WEIR_LOG_ERROR, "%s", file->failure.message);
    return status;
}

/* -- sums */

static void lack_memory(weir_openmetrics_file *file)
{
    if (!file->is_short)
        weir_log(WEIR_LOG_ERROR, "out of memory: the metrics in %s lack something",
                 weir_path_for_message(file->path).text);
    file->is_short = true;
}

/* The totals point to these; what they point to is ours to change. */
static weir_histogram *writable(const weir_histogram *histogram)
{
    return (weir_histogram *)histogram;
}

static void free_totals(weir_totals *totals)
{
    for (size_t i = 0; i < totals->num_tasks; i++) {
        free((char *)totals->tasks[i].key.name);
        free(writable(totals->tasks[i].times));
    }
    for (size_t i = 0; i < totals->num_queues; i++) {
        free((char *)totals->queues[i].key.name);
        free(writable(totals->queues[i].put_times));
        free(writable(totals->queues[i].get_times));
    }
    free(totals->tasks);
    free(totals->queues);
    *totals = (weir_totals){ 0 };
}

/* NULL = out of memory. */
static weir_task_totals *find_task(weir_totals *totals, const char *name)
{
    for (size_t i = 0; i < totals->num_tasks; i++)
        if (strcmp(totals->tasks[i].key.name, name) == 0)
            return &totals->tasks[i];

    weir_task_totals *tasks = realloc(totals->tasks, (totals->num_tasks + 1) * sizeof *tasks);
    if (!tasks)
        return NULL;
    totals->tasks = tasks;
    char *copy = strdup(name);
    weir_histogram *times = calloc(1, sizeof *times);
    if (!copy || !times) {
        free(copy);
        free(times);
        return NULL;
    }
    weir_task_totals *task = &tasks[totals->num_tasks++];
    *task = (weir_task_totals){ .key.name = copy, .times = times };
    return task;
}

static weir_queue_totals *find_queue(weir_totals *totals, const char *name)
{
    for (size_t i = 0; i < totals->num_queues; i++)
        if (strcmp(totals->queues[i].key.name, name) == 0)
            return &totals->queues[i];

    weir_queue_totals *queues = realloc(totals->queues, (totals->num_queues + 1) * sizeof *queues);
    if (!queues)
        return NULL;
    totals->queues = queues;
    char *copy = strdup(name);
    weir_histogram *put_times = calloc(1, sizeof *put_times), *get_times = calloc(1, sizeof *get_times);
    if (!copy || !put_times || !get_times) {
        free(copy);
        free(put_times);
        free(get_times);
        return NULL;
    }
    weir_queue_totals *queue = &queues[totals->num_queues++];
    *queue = (weir_queue_totals){ .key.name = copy, .put_times = put_times, .get_times = get_times };
    return queue;
}

static double percentile(const weir_task_totals *task, double quantile)
{
    return fmin(seconds(weir_histogram_quantile_ns(task->times, quantile)), task->max_time);
}

static void add_stage_lap(weir_task_totals *task, const weir_stage_lap *lap)
{
    weir_histogram_add(writable(task->times), lap->metrics.run_times);
    task->elapsed += seconds(lap->lap->elapsed_ns);
    task->num_tasks += (int64_t)lap->metrics.num_tasks;
    task->num_failures += (int64_t)lap->metrics.num_failures;
    task->num_skipped += (int64_t)lap->metrics.num_skipped;
    task->success_time += seconds(lap->metrics.success_ns);
    task->failed_time += seconds(lap->metrics.failed_ns);
    task->busy_time += seconds(lap->metrics.busy_ns);
    task->wait_in_time += seconds(lap->metrics.wait_in_ns);
    task->wait_thread_time += seconds(lap->metrics.wait_thread_ns);
    task->wait_out_time += seconds(lap->metrics.wait_out_ns);
    task->cpu_time += seconds(lap->metrics.cpu_ns);
    task->max_time = fmax(task->max_time, seconds(lap->metrics.max_ns));
    task->p50_time = percentile(task, 0.5);
    task->p90_time = percentile(task, 0.9);
    task->p99_time = percentile(task, 0.99);
}

static void add_queue_lap(weir_queue_totals *queue, const weir_queue_lap *lap)
{
    weir_histogram_add(writable(queue->put_times), lap->metrics.put_times);
    weir_histogram_add(writable(queue->get_times), lap->metrics.get_times);
    queue->elapsed += seconds(lap->lap->elapsed_ns);
    queue->num_put += (int64_t)lap->metrics.num_put;
    queue->num_items += (int64_t)lap->metrics.num_items;
    queue->capacity = lap->capacity;
    queue->put_time += seconds(lap->metrics.put_ns);
    queue->get_time += seconds(lap->metrics.get_ns);
    queue->occupied += seconds(lap->metrics.occupied_ns);
    queue->depth_time += lap->metrics.depth_ns / 1e9;
    queue->bytes_time += lap->metrics.bytes_ns / 1e9;
    if ((int64_t)lap->metrics.max_depth > queue->max_depth)
        queue->max_depth = (int64_t)lap->metrics.max_depth;
    if ((int64_t)lap->metrics.max_bytes > queue->max_bytes)
        queue->max_bytes = (int64_t)lap->metrics.max_bytes;
}

/* -- the observer */

static void forget_run(weir_openmetrics_file *file)
{
    free_totals(&file->totals);
    weir_tallies_free(&file->all.events);
    weir_tallies_free(&file->all.phases);
    free(file->last_queue);
    file->last_queue = NULL;
    file->has_run = file->is_short = false;
}

static void on_run_start(void *self, const weir_run_info *info)
{
    weir_openmetrics_file *file = self;
    forget_run(file);
    file->run = (weir_run_record){
        .node_id = file->node_id,
        .rank = file->run.rank,
        .started = seconds(info->start_unix_ns),
        .threads = info->threads,
        .command = file->command,
        .version = weir_version(),
    };
    file->has_run = true;
    if (info->num_stages)
        file->last_queue = strdup(info->stages[info->num_stages - 1].queue_name);
    replace(file);
}

static void on_stage_lap(void *self, const weir_stage_lap *lap)
{
    weir_openmetrics_file *file = self;
    if (lap->kind && strcmp(lap->kind, "stage") != 0)
        return;
    weir_task_totals *task = find_task(&file->totals, lap->name);
    if (task)
        add_stage_lap(task, lap);
    else
        lack_memory(file);
}

static void on_queue_lap(void *self, const weir_queue_lap *lap)
{
    weir_openmetrics_file *file = self;
    weir_queue_totals *queue = find_queue(&file->totals, lap->name);
    if (queue)
        add_queue_lap(queue, lap);
    else
        lack_memory(file);
    if (!file->last_queue || strcmp(lap->name, file->last_queue) != 0)
        return;
    if (lap->lap->place.phase && lap->lap->place.phase[0] &&
        weir_tallies_add(&file->all.phases, 0, lap->lap->place.phase, "", seconds(lap->lap->elapsed_ns)) != WEIR_OK)
        lack_memory(file);
    replace(file);
}

static void on_event(void *self, const weir_event *event)
{
    weir_openmetrics_file *file = self;
    if (weir_tallies_add(&file->all.events, 0, event->name, event->category, 1) != WEIR_OK)
        lack_memory(file);
}

static void on_run_end(void *self, const weir_run_end *end)
{
    weir_openmetrics_file *file = self;
    file->run.has_ended = true;
    file->run.ended = seconds(end->end_unix_ns);
    file->run.status = end->status;
    replace(file);
}

weir_observer weir_openmetrics_observer(weir_openmetrics_file *file)
{
    return file ? file->observer : (weir_observer){ 0 };
}

/* -- opening and closing */

static void free_file(weir_openmetrics_file *file)
{
    forget_run(file);
    free(file->path);
    free(file->node_id);
    free(file->command);
    free(file);
}

static weir_openmetrics_file *new_file(const char *path, const weir_openmetrics_options *options)
{
    weir_openmetrics_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->path = strdup(path);
    file->node_id = options->node_id ? strdup(options->node_id) : weir_host_name();
    file->command = options->command ? strdup(options->command) : weir_command_line();
    file->run.rank = options->rank;
    file->all = (weir_exposition){ .runs = &file->run, .num_runs = 1, .totals = &file->totals };
    file->observer = (weir_observer){
        .self = file,
        .run_start = on_run_start,
        .stage_lap = on_stage_lap,
        .queue_lap = on_queue_lap,
        .event = on_event,
        .run_end = on_run_end,
    };
    if (file->path && file->node_id && file->command)
        return file;
    free_file(file);
    return NULL;
}

int weir_openmetrics_open_sized(const char *path, const weir_openmetrics_options *given, size_t given_size,
                                weir_openmetrics_file **file, weir_error *error)
{
    if (!path || !file)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_openmetrics_options options;
    *file = NULL;
    int status = weir_options_copy(&options, sizeof options, given, given_size, error);
    if (status != WEIR_OK)
        return status;
    if (!path || !*path)
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot write metrics: their file has no name");
    weir_openmetrics_file *opened = new_file(path, &options);
    if (!opened)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the metrics of %s",
                              weir_path_for_message(path).text);
    status = replace(opened);
    if (status == WEIR_OK) {
        *file = opened;
        return WEIR_OK;
    }
    weir_error_set(error, status, opened->failure.library_code, "%s", opened->failure.message);
    free_file(opened);
    return status;
}

int weir_openmetrics_close(weir_openmetrics_file *file, weir_error *error)
{
    if (!file)
        return WEIR_OK;
    int status = file->failure.status;
    if (status != WEIR_OK)
        weir_error_set(error, status, file->failure.library_code, "%s", file->failure.message);
    else if (file->is_short)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory: the metrics in %s lack something",
                                weir_path_for_message(file->path).text);
    free_file(file);
    return status;
}
