/*
 * Live TensorBoard: an observer that writes laps to an event file. It needs no locks: everything runs on the thread
 * of the pipeline's observers, except opening and closing, which happen before and after.
 */
#include <weir/tensorboard.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/version.h>

#include "database_path.h"
#include "event_file.h"
#include "make_folder.h"
#include "process_info.h"
#include "record.h"
#include "tensorboard.h"

struct weir_tensorboard_log {
    char *folder, *node_id, *command;
    int32_t rank;
    weir_observer observer;

    weir_event_file *file;
    atomic_flag is_attached;
    int64_t lap; /* from 0 on */

    weir_error failure; /* the first one */
    bool failed_last;   /* the last flush failed */
};

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

/* A lap can have any number of failures and events, so these are flushed within it. */
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
    weir_event_file_at(log->file, info->start_unix_ns, log->lap);
    weir_event_file_run(log->file, &run);
    flush(log);
}

static void put_lap(weir_tensorboard_log *log, const weir_lap_record *lap)
{
    weir_event_file_at(log->file, lap->end_unix_ns, log->lap);
    weir_event_file_lap(log->file, lap);
}

static void on_stage_lap(void *self, const weir_stage_lap *lap)
{
    weir_lap_record record = weir_record_of_stage_lap(lap);
    put_lap(self, &record);
}

static void on_queue_lap(void *self, const weir_queue_lap *lap)
{
    weir_lap_record record = weir_record_of_queue_lap(lap);
    put_lap(self, &record);
}

static void on_pool_lap(void *self, const weir_pool_lap *lap)
{
    weir_lap_record record = weir_record_of_pool_lap(lap);
    put_lap(self, &record);
}

static void on_process_lap(void *self, const weir_process_lap *lap)
{
    weir_lap_record record = weir_record_of_process_lap(lap);
    put_lap(self, &record);
}

static void on_machine_lap(void *self, const weir_machine_lap *lap)
{
    weir_lap_record record = weir_record_of_machine_lap(lap);
    put_lap(self, &record);
}

static void on_span_lap(void *self, const weir_span_lap *lap)
{
    weir_lap_record record = weir_record_of_span_lap(lap);
    put_lap(self, &record);
}

static void on_counter_lap(void *self, const weir_counter_lap *lap)
{
    weir_lap_record record = weir_record_of_counter_lap(lap);
    put_lap(self, &record);
}

static void on_lap_end(void *self, const weir_lap *lap)
{
    weir_tensorboard_log *log = self;
    const weir_lap_place *place = &lap->place;
    if (place->last_step >= place->first_step && place->phase && place->phase[0])
        weir_event_file_scalar(log->file, "consumer/step", (double)place->last_step);
    log->lap++;
    flush(log);
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
    weir_event_file_at(log->file, failure->unix_ns, log->lap);
    weir_event_file_failure(log->file, &record);
    flush_if_many(log);
}

static void on_event(void *self, const weir_event *event)
{
    weir_tensorboard_log *log = self;
    weir_event_record record = { .name = event->name, .category = event->category, .detail = event->detail };
    weir_event_file_at(log->file, event->unix_ns, log->lap);
    weir_event_file_event(log->file, &record);
    flush_if_many(log);
}

static void on_run_end(void *self, const weir_run_end *end)
{
    (void)end;
    flush(self);
}

static int on_attach(void *self, weir_error *error)
{
    weir_tensorboard_log *log = self;
    if (!atomic_flag_test_and_set(&log->is_attached))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EBUSY, 0, "%s is already the log of another pipeline",
                          weir_path_for_message(log->folder).text);
}

static void on_detach(void *self)
{
    weir_tensorboard_log *log = self;
    atomic_flag_clear(&log->is_attached);
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
    atomic_flag_clear(&log->is_attached);
    log->observer = (weir_observer){
        .self = log,
        .attach = on_attach,
        .detach = on_detach,
        .run_start = on_run_start,
        .stage_lap = on_stage_lap,
        .queue_lap = on_queue_lap,
        .pool_lap = on_pool_lap,
        .process_lap = on_process_lap,
        .machine_lap = on_machine_lap,
        .span_lap = on_span_lap,
        .counter_lap = on_counter_lap,
        .lap_end = on_lap_end,
        .failure = on_failure,
        .event = on_event,
        .run_end = on_run_end,
    };
    if (log->folder && log->node_id && log->command)
        return log;
    free_log(log);
    return NULL;
}

/* Finds an unused name. Returns 0 or an errno. */
static int open_file(weir_tensorboard_log *log)
{
    int64_t now_unix_ns = weir_clock_unix_ns();
    int failure = EEXIST;
    for (unsigned number = 0; failure == EEXIST && number < 1000; number++) {
        char *path = weir_tensorboard_path(log->folder, now_unix_ns, log->node_id, getpid(), number);
        failure = path ? weir_event_file_open(path, now_unix_ns, &log->file) : ENOMEM;
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
    int failure = weir_make_folder(log_dir);
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
