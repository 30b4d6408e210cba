/*
 * TensorBoard event files from a database: for each run, its laps, events and failures in the order of time, as a
 * live log would have written them.
 */
#include <weir/tensorboard.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event_file.h"
#include "tensorboard.h"

/* In the order used for records with the same time. */
static const weir_record_kind stream_kinds[] = { WEIR_RECORD_EVENT,   WEIR_RECORD_FAILURE, WEIR_RECORD_TASK,
                                                 WEIR_RECORD_FLOW,    WEIR_RECORD_QUEUE,   WEIR_RECORD_POOL,
                                                 WEIR_RECORD_PROCESS, WEIR_RECORD_MACHINE, WEIR_RECORD_SPAN,
                                                 WEIR_RECORD_COUNTER };
enum { NUM_STREAMS = sizeof stream_kinds / sizeof stream_kinds[0] };

typedef struct stream {
    weir_query *query;
    const weir_record *record; /* the next one; NULL = no more */
    int64_t unix_ns;
} stream;

/* The export of one run. */
struct run_export {
    weir_reader *reader;
    const weir_run_record *run;
    stream streams[NUM_STREAMS];
    weir_event_file *file;
    const char *folder;

    int64_t num_laps;    /* begun */
    int64_t lap_unix_ns; /* the end of the last of them */
};

/* -- streams */

static int advance_stream(stream *s, weir_error *error)
{
    int status = weir_query_next(s->query, &s->record, error);
    if (status == WEIR_OK)
        s->unix_ns = weir__event_file_time_of(s->record);
    else
        s->record = NULL;
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int begin_streams(struct run_export *export, const weir_filter *filter, weir_error *error)
{
    int status = WEIR_OK;
    for (size_t i = 0; i < NUM_STREAMS && status == WEIR_OK; i++) {
        stream *s = &export->streams[i];
        status = weir_query_begin(export->reader, stream_kinds[i], filter, &s->query, error);
        if (status == WEIR_OK)
            status = advance_stream(s, error);
    }
    return status;
}

static void end_streams(struct run_export *export)
{
    for (size_t i = 0; i < NUM_STREAMS; i++)
        weir_query_end(export->streams[i].query);
}

/* NULL = no more. */
static stream *earliest_stream(struct run_export *export)
{
    stream *first = NULL;
    for (size_t i = 0; i < NUM_STREAMS; i++) {
        stream *s = &export->streams[i];
        if (s->record && (!first || s->unix_ns < first->unix_ns))
            first = s;
    }
    return first;
}

/* -- records */

/* The records of one lap all have the same time. */
static void put_record(struct run_export *export, const weir_record *record)
{
    const weir_lap_record *lap = &record->lap;
    bool is_lap = record->kind != WEIR_RECORD_EVENT && record->kind != WEIR_RECORD_FAILURE;
    bool begins = is_lap && (export->num_laps == 0 || lap->end_unix_ns != export->lap_unix_ns);
    export->num_laps += begins;
    if (is_lap)
        export->lap_unix_ns = lap->end_unix_ns;
    weir__event_file_record(export->file, record, export->num_laps - is_lap);
    if (begins && lap->position.last_step >= lap->position.first_step)
        weir__event_file_scalar(export->file, "consumer/step", (double)lap->position.last_step);
}

static int put_records(struct run_export *export, weir_error *error)
{
    enum { MANY_BYTES = 1 << 18 };
    int status = WEIR_OK;
    for (stream *s; status == WEIR_OK && (s = earliest_stream(export)) != NULL;) {
        put_record(export, s->record);
        status = advance_stream(s, error);
        int failure = weir__event_file_pending(export->file) > MANY_BYTES ? weir__event_file_flush(export->file) : 0;
        if (failure)
            return weir__tensorboard_error(error, failure, export->folder);
    }
    return status;
}

/* -- files */

static char *run_folder(const char *log_dir, const weir_run_record *run)
{
    char *folder = NULL, rank[32] = "";
    if (run->rank)
        snprintf(rank, sizeof rank, "-rank-%" PRId32, run->rank);
    return asprintf(&folder, "%s/run-%" PRId64 "%s", log_dir, run->run_id, rank) < 0 ? NULL : folder;
}

/* Writes to a file with a name that TensorBoard ignores, and renames it when it is complete. */
static int export_file(struct run_export *export, const char *path, const char *path_before, weir_error *error)
{
    unlink(path_before); /* left by a killed process with the same id */
    int failure = weir__event_file_open(path_before, export->run->started_unix_ns, &export->file);
    if (failure)
        return weir__tensorboard_error(error, failure, export->folder);
    weir__event_file_record(export->file, &(weir_record){ .kind = WEIR_RECORD_RUN, .run = *export->run }, 0);
    int status = put_records(export, error);
    failure = weir__event_file_close(export->file);
    if (status == WEIR_OK && !failure && rename(path_before, path) != 0)
        failure = errno;
    if (status == WEIR_OK && failure)
        status = weir__tensorboard_error(error, failure, export->folder);
    if (status != WEIR_OK)
        unlink(path_before);
    return status;
}

static int write_folder(struct run_export *export, const char *folder, weir_error *error)
{
    const weir_run_record *run = export->run;
    export->folder = folder;
    int failure = weir__tensorboard_make_folder(folder);
    if (failure)
        return weir__tensorboard_error(error, failure, folder);
    char *path = weir__tensorboard_path(folder, run->started_unix_ns, run->node_id, run->pid, 0), *path_before = NULL;
    if (asprintf(&path_before, "%s/export.%ld.tmp", folder, (long)getpid()) < 0)
        path_before = NULL;
    int status = path && path_before ? export_file(export, path, path_before, error)
                                     : weir__tensorboard_error(error, ENOMEM, folder);
    free(path);
    free(path_before);
    return status;
}

static bool is_narrow(const weir_filter *f)
{
    return f->name || f->start_unix_ns != 0 || f->end_unix_ns != 0 || f->by_step || f->phase || f->from_phase ||
           f->until_phase;
}

/* All runs. */
struct log_export {
    weir_reader *reader;
    const weir_filter *filter;
    const char *log_dir;
    bool has_runs;
};

/* A run without matching records gets no file. */
static int export_run(void *self, const weir_record *record, weir_error *error)
{
    struct log_export *all = self;
    struct run_export export = { .reader = all->reader, .run = &record->run };
    weir_filter of_run = *all->filter;
    of_run.run_id = record->run.run_id;
    of_run.descending = of_run.longest_first = false;
    of_run.limit = of_run.after_id = 0;
    all->has_runs = true;

    char *folder = run_folder(all->log_dir, &record->run);
    int status =
        folder ? begin_streams(&export, &of_run, error) : weir__tensorboard_error(error, ENOMEM, all->log_dir);
    if (status == WEIR_OK && (earliest_stream(&export) || !is_narrow(all->filter)))
        status = write_folder(&export, folder, error);
    end_streams(&export);
    free(folder);
    return status;
}

int weir_tensorboard_export(weir_reader *reader, const weir_filter *filter, const char *log_dir, weir_error *error)
{
    if (!reader)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    static const weir_filter everything;
    if (!log_dir || !*log_dir)
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot write event files: their folder has no name");
    int status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    struct log_export all = { .reader = reader, .filter = filter ? filter : &everything, .log_dir = log_dir };
    status = weir_reader_each(reader, WEIR_RECORD_RUN, all.filter, export_run, &all, error);
    if (status == WEIR_OK && !all.has_runs)
        status =
            weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s matches the filters", weir_reader_path(reader));
    weir_reader_release(reader);
    return status;
}
