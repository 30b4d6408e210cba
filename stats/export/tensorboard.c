/* TensorBoard event files: live, lap by lap; and from a database, as a live log would have written them. */
#include <weir/tensorboard.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/struct_copy.h>

#include "common/unix_clock.h"
#include "stats/export/event_file.h"
#include "stats/export/live_export.h"
#include "stats/schema/database_path.h"
#include "stats/schema/record_tables.h"

enum { MANY_BYTES = 1 << 18 };

/* -- both */

/* TensorBoard reads files with tfevents in their name, in the order of their names. NULL = out of memory. */
static char *event_file_path(const char *folder, int64_t started_unix_ns, const char *node_id, int64_t pid,
                             unsigned number)
{
    char *path = NULL, node[128];
    size_t length = 0;
    for (; length < sizeof node - 1 && node_id[length]; length++) {
        unsigned char c = (unsigned char)node_id[length];
        node[length] = c < 0x80 && (isalnum(c) || c == '-' || c == '.') ? (char)c : '_';
    }
    node[length] = '\0';
    if (asprintf(&path, "%s/events.out.tfevents.%" PRId64 ".%s.%" PRId64 ".%u.weir", folder,
                 started_unix_ns / 1000000000, node, pid, number) < 0)
        return NULL;
    return path;
}

/* Creates a folder and its parents if missing. Returns 0 or an errno. */
static int make_log_folder(const char *folder)
{
    char *path = NULL;
    if (asprintf(&path, "%s/", folder) < 0)
        return ENOMEM;
    int failure = weir__path_make_parents(path);
    free(path);
    return failure;
}

static int fail_log(weir_error *error, int failure, const char *folder)
{
    return weir__path_fail(error, failure, "cannot write event files to", folder, "");
}

static int check_log_dir(const char *log_dir, weir_error *error)
{
    return log_dir && *log_dir
               ? WEIR_OK
               : weir_error_set(error, WEIR_EINVAL, 0, "cannot write event files: their folder has no name");
}

/* An event file, lap by lap. */
typedef struct lap_log {
    weir_event_file *file; /* NULL = none yet */
    int64_t number;        /* of laps */
    int64_t unix_ns;       /* end of the last one */
} lap_log;

/* The records of one lap all have the same time. */
static void log_lap(lap_log *log, const weir_lap_record *lap)
{
    bool begins = log->number == 0 || lap->end_unix_ns != log->unix_ns;
    log->number += begins;
    log->unix_ns = lap->end_unix_ns;
    weir__event_file_lap(log->file, lap, log->number - 1);
    if (begins && lap->position.last_step >= lap->position.first_step)
        weir__event_file_scalar(log->file, "consumer/step", (double)lap->position.last_step);
}

/* -- live */

struct weir_tensorboard_log {
    weir_live_export live; /* its path is the folder */
    lap_log laps;

    weir_error failure; /* the first one */
    bool failed_last;   /* the last flush failed */
};

static void take_log_lap(void *self, const weir_record *record)
{
    weir_tensorboard_log *log = self;
    if (weir__record_is_lap(record->kind))
        log_lap(&log->laps, &record->lap);
}

static void end_log_lap(void *self, const weir_lap *lap)
{
    weir_tensorboard_log *log = self;
    int failure = weir__event_file_flush(log->laps.file);
    (void)lap;
    if (failure) {
        weir_error error = { 0 };
        fail_log(&error, failure, log->live.path);
        if (!log->failed_last)
            weir_log(WEIR_LOG_ERROR, "%s", error.message);
        log->failure = error;
    }
    log->failed_last = failure != 0;
}

weir_observer weir_tensorboard_observer(weir_tensorboard_log *log)
{
    return log ? log->live.observer : (weir_observer){ 0 };
}

/* Finds an unused name. Returns 0 or an errno. */
static int open_log_file(weir_tensorboard_log *log, const char *folder)
{
    int64_t now_unix_ns = unix_clock_ns();
    int failure = make_log_folder(folder);
    for (unsigned number = 0; (failure == 0 && number == 0) || (failure == EEXIST && number < 1000); number++) {
        char *path = event_file_path(folder, now_unix_ns, log->live.node_id, getpid(), number);
        failure = path ? weir__event_file_open(path, now_unix_ns, &log->laps.file) : ENOMEM;
        free(path);
    }
    return failure;
}

int weir_tensorboard_open_sized(const char *log_dir, const weir_tensorboard_options *given, size_t given_size,
                                weir_tensorboard_log **opened, weir_error *error)
{
    if (!log_dir || !opened)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_tensorboard_options options;
    *opened = NULL;
    int status = weir_struct_copy(&options, sizeof options, given, given_size, "weir_tensorboard_options", error);
    if (status == WEIR_OK)
        status = check_log_dir(log_dir, error);
    if (status != WEIR_OK)
        return status;
    weir_tensorboard_log *log = calloc(1, sizeof *log);
    int failure = ENOMEM;
    if (log) {
        log->live =
            (weir_live_export){ .in_use = "is already the log of another pipeline", .taker = { take_log_lap } };
        if (weir__live_export_init(&log->live, log_dir, options.node_id))
            failure = open_log_file(log, log_dir);
        log->live.observer.lap_end = end_log_lap;
        log->live.observer.failure = NULL;
        log->live.observer.event = NULL;
    }
    if (failure == 0) {
        *opened = log;
        return WEIR_OK;
    }
    if (log)
        weir__live_export_free(&log->live);
    free(log);
    return fail_log(error, failure, log_dir);
}

int weir_tensorboard_close(weir_tensorboard_log *log, weir_error *error)
{
    if (!log)
        return WEIR_OK;
    int failure = weir__event_file_close(log->laps.file);
    if (failure)
        fail_log(&log->failure, failure, log->live.path);
    int status = log->failure.status;
    if (status != WEIR_OK)
        weir_error_set(error, status, log->failure.library_code, "%s; laps are missing there", log->failure.message);
    weir__live_export_free(&log->live);
    free(log);
    return status;
}

/* -- from a database */

/* The export of one run. */
typedef struct run_export {
    const weir_run_record *run;
    char *folder, *path, *path_before; /* path_before: a name that TensorBoard ignores */
    lap_log laps;
} run_export;

static int begin_run(run_export *export, weir_error *error)
{
    int failure = make_log_folder(export->folder);
    if (failure == 0) {
        unlink(export->path_before); /* left by a killed process with the same id */
        failure = weir__event_file_open(export->path_before, export->run->started_unix_ns, &export->laps.file);
    }
    return failure ? fail_log(error, failure, export->folder) : WEIR_OK;
}

static int export_lap(void *self, const weir_record *record, weir_error *error)
{
    run_export *export = self;
    int status = export->laps.file ? WEIR_OK : begin_run(export, error);
    if (status != WEIR_OK)
        return status;
    log_lap(&export->laps, &record->lap);
    weir_event_file *file = export->laps.file;
    int failure = weir__event_file_pending(file) > MANY_BYTES ? weir__event_file_flush(file) : 0;
    return failure ? fail_log(error, failure, export->folder) : WEIR_OK;
}

/* The file is there when it is complete. */
static int end_run(run_export *export, int status, weir_error *error)
{
    int failure = weir__event_file_close(export->laps.file);
    if (status == WEIR_OK && !failure && rename(export->path_before, export->path) != 0)
        failure = errno;
    if (status != WEIR_OK || failure)
        unlink(export->path_before);
    return status == WEIR_OK && failure ? fail_log(error, failure, export->folder) : status;
}

static bool is_narrow(const weir_filter *f)
{
    return f->name || f->start_unix_ns != 0 || f->end_unix_ns != 0 || f->by_step || f->phase || f->mode ||
           f->from_phase || f->until_phase;
}

static bool make_paths(run_export *export, const char *log_dir)
{
    const weir_run_record *run = export->run;
    char rank[32] = "";
    if (run->rank)
        snprintf(rank, sizeof rank, "-rank-%" PRId32, run->rank);
    if (asprintf(&export->folder, "%s/run-%" PRId64 "%s", log_dir, run->run_id, rank) < 0)
        export->folder = NULL;
    if (export->folder && asprintf(&export->path_before, "%s/export.%ld.tmp", export->folder, (long)getpid()) < 0)
        export->path_before = NULL;
    if (export->path_before)
        export->path = event_file_path(export->folder, run->started_unix_ns, run->node_id, run->pid, 0);
    return export->path;
}

/* A run without matching laps gets no file. */
static int export_run(weir_reader *reader, const weir_filter *filter, const char *log_dir, const weir_run_record *run,
                      weir_error *error)
{
    run_export export = { .run = run };
    weir_filter of_run = *filter;
    of_run.run_id = run->run_id;
    of_run.descending = of_run.longest_first = false;
    of_run.limit = of_run.after_id = 0;
    int status = make_paths(&export, log_dir) ? WEIR_OK : fail_log(error, ENOMEM, log_dir);
    if (status == WEIR_OK)
        status = weir_reader_each_lap(reader, &of_run, export_lap, &export, error);
    if (status == WEIR_OK && !export.laps.file && !is_narrow(filter))
        status = begin_run(&export, error);
    if (export.laps.file)
        status = end_run(&export, status, error);
    free(export.folder);
    free(export.path);
    free(export.path_before);
    return status;
}

int weir_tensorboard_export(weir_reader *reader, const weir_filter *filter, const char *log_dir, weir_error *error)
{
    static const weir_filter everything;
    if (!reader)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = check_log_dir(log_dir, error);
    if (status == WEIR_OK)
        status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    weir_records runs;
    filter = filter ? filter : &everything;
    status = weir_records_read(reader, WEIR_RECORD_RUN, filter, &runs, error);
    if (status == WEIR_OK && runs.count == 0)
        status =
            weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s matches the filters", weir_reader_path(reader));
    for (size_t i = 0; status == WEIR_OK && i < runs.count; i++)
        status = export_run(reader, filter, log_dir, &runs.all[i]->run, error);
    weir_records_free(&runs);
    weir_reader_release(reader);
    return status;
}
