/* Live TensorBoard: writes laps to an event file. */
#include <weir/tensorboard.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "database_path.h"
#include "event_file.h"
#include "live_export.h"
#include "struct_copy.h"
#include "tensorboard.h"

struct weir_tensorboard_log {
    weir_live_export live; /* its path is the folder */
    weir_event_file *file;
    int64_t lap; /* from 0 on */

    weir_error failure; /* the first one */
    bool failed_last;   /* the last flush failed */
};

static void flush_log(weir_tensorboard_log *log)
{
    int failure = weir__event_file_flush(log->file);
    if (failure) {
        weir_error error = { 0 };
        weir__tensorboard_error(&error, failure, log->live.path);
        if (!log->failed_last)
            weir_log(WEIR_LOG_ERROR, "%s", error.message);
        weir_error_set(&log->failure, error.status, error.library_code, "%s", error.message);
    }
    log->failed_last = failure != 0;
}

/* A lap can have any number of failures and events, so these are flushed within it. */
static void take_log_record(void *self, const weir_record *record)
{
    enum { MANY_BYTES = 1 << 18 };
    weir_tensorboard_log *log = self;
    bool is_run = record->kind == WEIR_RECORD_RUN;
    if (!is_run || !record->run.has_ended)
        weir__event_file_record(log->file, record, log->lap);
    if (is_run || (record->kind >= WEIR_RECORD_EVENT && weir__event_file_pending(log->file) > MANY_BYTES))
        flush_log(log);
}

static void write_lap(weir_live_export *live, const weir_lap *lap)
{
    weir_tensorboard_log *log = (weir_tensorboard_log *)live;
    const weir_lap_position *position = &lap->position;
    if (position->last_step >= position->first_step && position->phase && position->phase[0])
        weir__event_file_scalar(log->file, "consumer/step", (double)position->last_step);
    log->lap++;
    flush_log(log);
}

weir_observer weir_tensorboard_observer(weir_tensorboard_log *log)
{
    return log ? log->live.observer : (weir_observer){ 0 };
}

/* -- opening and closing */

static void free_log(weir_tensorboard_log *log)
{
    weir__live_export_free(&log->live);
    free(log);
}

static weir_tensorboard_log *new_log(const char *folder, const weir_tensorboard_options *options)
{
    weir_tensorboard_log *log = calloc(1, sizeof *log);
    if (!log)
        return NULL;
    log->live = (weir_live_export){ .in_use = "is already the log of another pipeline",
                                    .taker = { take_log_record },
                                    .lap_end = write_lap };
    if (weir__live_export_init(&log->live, folder, options->node_id, options->command, options->rank))
        return log;
    free_log(log);
    return NULL;
}

/* Finds an unused name. Returns 0 or an errno. */
static int open_log(weir_tensorboard_log *log)
{
    int64_t now_unix_ns = weir_clock_unix_ns();
    int failure = EEXIST;
    for (unsigned number = 0; failure == EEXIST && number < 1000; number++) {
        char *path = weir__tensorboard_path(log->live.path, now_unix_ns, log->live.node_id, getpid(), number);
        failure = path ? weir__event_file_open(path, now_unix_ns, &log->file) : ENOMEM;
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
    int status = weir__struct_copy(&options, sizeof options, given, given_size, "weir_tensorboard_options", error);
    if (status != WEIR_OK)
        return status;
    if (!log_dir || !*log_dir)
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot write event files: their folder has no name");
    weir_tensorboard_log *opened = new_log(log_dir, &options);
    if (!opened)
        return weir__tensorboard_error(error, ENOMEM, log_dir);
    int failure = weir__tensorboard_make_folder(log_dir);
    if (!failure)
        failure = open_log(opened);
    if (failure) {
        free_log(opened);
        return weir__tensorboard_error(error, failure, log_dir);
    }
    *log = opened;
    return WEIR_OK;
}

int weir_tensorboard_close(weir_tensorboard_log *log, weir_error *error)
{
    if (!log)
        return WEIR_OK;
    int failure = weir__event_file_close(log->file);
    if (failure)
        weir__tensorboard_error(&log->failure, failure, log->live.path);
    int status = log->failure.status;
    if (status != WEIR_OK)
        weir_error_set(error, status, log->failure.library_code, "%s; laps are missing there", log->failure.message);
    free_log(log);
    return status;
}
