/*
 * Live TensorBoard: an observer that writes laps to an event file. Everything happens on the pipeline's statistics
 * thread, but for opening and closing, which come before and after: no locks.
 */
#include <weir/tensorboard.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/version.h>

#include "database_path.h"
#include "event_file.h"
#include "process_info.h"
#include "tensorboard.h"

struct weir_tensorboard_log {
    char *folder, *node_id, *command;
    int32_t rank;
    weir_observer observer;

    weir_event_file *file;
    char *last_queue; /* a lap ends with this queue; NULL = not known */
    int64_t lap;      /* from 0 on */

    weir_error failure; /* the first one */
    bool failed_last;   /* the last flush did */
};

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static double mean(int64_t sum_ns, uint64_t count)
{
    return count ? seconds(sum_ns) / (double)count : 0;
}

static double quantile(const weir_histogram *times, double share)
{
    return seconds(weir_histogram_quantile_ns(times, share));
}

static void flush(weir_tensorboard_log *log)
{
    int failure = weir_event_file_flush(log->file);
    if (failure) {
        weir_error error = { 0 };
        weir_tensorboard_error(&error, failure, log->folder);
        if (!log->failed_last)
            weir_log(WEIR_LOG_ERROR, "%s", error.message);
        weir_error_set(&log->failure, error.status, error.library_code, "%s", error.message);
    }
    log->failed_last = failure != 0;
}

/* Failures and events come in any number within a lap. */
static void flush_if_many(weir_tensorboard_log *log)
{
    enum { MANY_BYTES = 1 << 18 };
    if (weir_event_file_pending(log->file) > MANY_BYTES)
        flush(log);
}

/* -- the observer */

static void on_run_start(void *self, const weir_run_info *info)
{
    weir_tensorboard_log *log = self;
    weir_run_record run = {
        .node_id = log->node_id,
        .rank = log->rank,
        .command = log->command,
        .version = weir_version(),
        .threads = info->threads,
    };
    free(log->last_queue);
    log->last_queue = info->num_stages ? strdup(info->stages[info->num_stages - 1].queue_name) : NULL;
    weir_event_file_at(log->file, seconds(info->start_unix_ns), log->lap);
    weir_event_file_run(log->file, &run);
    flush(log);
}

static void on_stage_lap(void *self, const weir_stage_lap *lap)
{
    weir_tensorboard_log *log = self;
    if (lap->kind && strcmp(lap->kind, "stage") != 0)
        return;
    weir_task_record task = {
        .name = lap->name,
        .elapsed = seconds(lap->lap->elapsed_ns),
        .num_tasks = (int64_t)lap->metrics.num_tasks,
        .num_failures = (int64_t)lap->metrics.num_failures,
        .ave_time = mean(lap->metrics.success_ns, lap->metrics.num_tasks - lap->metrics.num_failures),
        .max_time = seconds(lap->metrics.max_ns),
        .p50_time = fmin(quantile(lap->metrics.run_times, 0.5), seconds(lap->metrics.max_ns)),
        .p90_time = fmin(quantile(lap->metrics.run_times, 0.9), seconds(lap->metrics.max_ns)),
        .p99_time = fmin(quantile(lap->metrics.run_times, 0.99), seconds(lap->metrics.max_ns)),
        .busy_time = seconds(lap->metrics.busy_ns),
        .wait_in_time = seconds(lap->metrics.wait_in_ns),
        .wait_thread_time = seconds(lap->metrics.wait_thread_ns),
        .wait_out_time = seconds(lap->metrics.wait_out_ns),
        .cpu_time = seconds(lap->metrics.cpu_ns),
    };
    weir_event_file_at(log->file, seconds(lap->lap->end_unix_ns), log->lap);
    weir_event_file_task(log->file, &task, lap->metrics.run_times);
}

static void end_lap(weir_tensorboard_log *log, const weir_lap_place *place)
{
    if (place->last_step >= place->first_step && place->phase && place->phase[0])
        weir_event_file_scalar(log->file, "consumer/step", (double)place->last_step);
    log->lap++;
    flush(log);
}

static void on_queue_lap(void *self, const weir_queue_lap *lap)
{
    weir_tensorboard_log *log = self;
    double elapsed = seconds(lap->lap->elapsed_ns);
    weir_queue_record queue = {
        .name = lap->name,
        .elapsed = elapsed,
        .num_items = (int64_t)lap->metrics.num_items,
        .num_put = (int64_t)lap->metrics.num_put,
        .ave_put_time = mean(lap->metrics.put_ns, lap->metrics.num_put),
        .p99_put_time = quantile(lap->metrics.put_times, 0.99),
        .ave_get_time = mean(lap->metrics.get_ns, lap->metrics.num_items),
        .p99_get_time = quantile(lap->metrics.get_times, 0.99),
        .occupancy_rate = elapsed > 0 ? seconds(lap->metrics.occupied_ns) / elapsed : 0,
        .ave_depth = elapsed > 0 ? lap->metrics.depth_ns / (double)lap->lap->elapsed_ns : 0,
        .ave_bytes = elapsed > 0 ? lap->metrics.bytes_ns / (double)lap->lap->elapsed_ns : 0,
        .max_depth = (int64_t)lap->metrics.max_depth,
        .max_bytes = (int64_t)lap->metrics.max_bytes,
    };
    weir_event_file_at(log->file, seconds(lap->lap->end_unix_ns), log->lap);
    weir_event_file_queue(log->file, &queue, lap->metrics.put_times, lap->metrics.get_times);
    if (log->last_queue && strcmp(lap->name, log->last_queue) == 0)
        end_lap(log, &lap->lap->place);
}

static void on_failure(void *self, const weir_failure *failure)
{
    weir_tensorboard_log *log = self;
    weir_failure_record record = {
        .name = failure->name,
        .seq = (int64_t)failure->seq,
        .label = failure->label,
        .status = failure->status,
        .message = failure->message,
    };
    weir_event_file_at(log->file, seconds(failure->unix_ns), log->lap);
    weir_event_file_failure(log->file, &record);
    flush_if_many(log);
}

static void on_event(void *self, const weir_event *event)
{
    weir_tensorboard_log *log = self;
    weir_event_record record = { .name = event->name, .category = event->category, .detail = event->detail };
    weir_event_file_at(log->file, seconds(event->unix_ns), log->lap);
    weir_event_file_event(log->file, &record);
    flush_if_many(log);
}

static void on_run_end(void *self, const weir_run_end *end)
{
    (void)end;
    flush(self);
}

weir_observer weir_tensorboard_observer(weir_tensorboard_log *log)
{
    return log ? log->observer : (weir_observer){ 0 };
}

/* -- opening and closing */

static void free_log(weir_tensorboard_log *log)
{
    free(log->folder);
    free(log->node_id);
    free(log->command);
    free(log->last_queue);
    free(log);
}

static weir_tensorboard_log *new_log(const char *folder, const weir_tensorboard_options *options)
{
    weir_tensorboard_log *log = calloc(1, sizeof *log);
    if (!log)
        return NULL;
    log->folder = strdup(folder);
    log->node_id = options->node_id ? strdup(options->node_id) : weir_host_name();
    log->command = options->command ? strdup(options->command) : weir_command_line();
    log->rank = options->rank;
    log->observer = (weir_observer){
        .self = log,
        .run_start = on_run_start,
        .stage_lap = on_stage_lap,
        .queue_lap = on_queue_lap,
        .failure = on_failure,
        .event = on_event,
        .run_end = on_run_end,
    };
    if (log->folder && log->node_id && log->command)
        return log;
    free_log(log);
    return NULL;
}

/* A name that is not taken. Returns 0 or an errno. */
static int open_file(weir_tensorboard_log *log)
{
    double now = seconds(weir_clock_unix_ns());
    int failure = EEXIST;
    for (unsigned number = 0; failure == EEXIST && number < 1000; number++) {
        char *path = weir_tensorboard_path(log->folder, floor(now), log->node_id, getpid(), number);
        failure = path ? weir_event_file_open(path, now, &log->file) : ENOMEM;
        free(path);
    }
    return failure;
}

int weir_tensorboard_open_sized(const char *log_dir, const weir_tensorboard_options *given, size_t given_size,
                                weir_tensorboard_log **log, weir_error *error)
{
    if (!log_dir || !log)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_tensorboard_options options;
    *log = NULL;
    int status = weir_options_copy(&options, sizeof options, given, given_size, error);
    if (status != WEIR_OK)
        return status;
    if (!log_dir || !*log_dir)
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot write event files: their folder has no name");
    weir_tensorboard_log *opened = new_log(log_dir, &options);
    if (!opened)
        return weir_tensorboard_error(error, ENOMEM, log_dir);
    int failure = weir_tensorboard_make_folder(log_dir);
    if (!failure)
        failure = open_file(opened);
    if (failure) {
        free_log(opened);
        return weir_tensorboard_error(error, failure, log_dir);
    }
    *log = opened;
    return WEIR_OK;
}

int weir_tensorboard_close(weir_tensorboard_log *log, weir_error *error)
{
    if (!log)
        return WEIR_OK;
    int failure = weir_event_file_close(log->file);
    if (failure)
        weir_tensorboard_error(&log->failure, failure, log->folder);
    int status = log->failure.status;
    if (status != WEIR_OK)
        weir_error_set(error, status, log->failure.library_code, "%s; laps are missing there", log->failure.message);
    free_log(log);
    return status;
}
