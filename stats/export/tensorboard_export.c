/*
 * TensorBoard's event files of what a database holds: for each run, its laps, events and failures in the order of time,
 * as a live log would have written them.
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

/* In the order in which they come where they are of the same time. */
static const weir_record_kind stream_kinds[] = { WEIR_RECORD_EVENT, WEIR_RECORD_FAILURE, WEIR_RECORD_TASK,
                                                 WEIR_RECORD_QUEUE };
enum { NUM_STREAMS = sizeof stream_kinds / sizeof stream_kinds[0] };

typedef struct stream {
    weir_query *query;
    const weir_record *record; /* the next one; NULL = no more */
    double timestamp;
} stream;

/* One run under way. */
struct run_export {
    weir_reader *reader;
    const weir_run_record *run;
    stream streams[NUM_STREAMS];
    weir_event_file *file;
    const char *folder;

    int64_t num_laps;           /* begun */
    double lap_end;             /* of the last one of them */
    weir_histogram *histograms; /* two */
};

/* -- streams */

static double time_of(const weir_record *record)
{
    switch (record->kind) {
    case WEIR_RECORD_TASK: return record->task.timestamp;
    case WEIR_RECORD_QUEUE: return record->queue.timestamp;
    case WEIR_RECORD_EVENT: return record->event.timestamp;
    default: return record->failure.timestamp;
    }
}

static int advance(stream *s, weir_error *error)
{
    int status = weir_query_next(s->query, &s->record, error);
    if (status == WEIR_OK)
        s->timestamp = time_of(s->record);
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
            status = advance(s, error);
    }
    return status;
}

static void end_streams(struct run_export *export)
{
    for (size_t i = 0; i < NUM_STREAMS; i++)
        weir_query_end(export->streams[i].query);
}

/* NULL = no more. */
static stream *earliest(struct run_export *export)
{
    stream *first = NULL;
    for (size_t i = 0; i < NUM_STREAMS; i++) {
        stream *s = &export->streams[i];
        if (s->record && (!first || s->timestamp < first->timestamp))
            first = s;
    }
    return first;
}

/* -- records */

static int decode(struct run_export *export, int which, const void *bytes, size_t size_bytes, weir_error *error)
{
    weir_histogram_clear(&export->histograms[which]);
    int status = weir_histogram_add_encoded(&export->histograms[which], bytes, size_bytes);
    if (status != WEIR_OK)
        return weir_error_set(error, status, 0, "%s: a histogram in it is damaged", weir_reader_path(export->reader));
    return WEIR_OK;
}

/* All stages and queues of a lap have the same time. */
static void put_lap_place(struct run_export *export, double end, const weir_record_place *place)
{
    bool begins = export->num_laps == 0 || end != export->lap_end;
    if (begins)
        export->num_laps++;
    export->lap_end = end;
    weir_event_file_at(export->file, end, export->num_laps - 1);
    if (begins && place->last_step >= place->first_step)
        weir_event_file_scalar(export->file, "consumer/step", (double)place->last_step);
}

static int put_task(struct run_export *export, const weir_task_record *task, weir_error *error)
{
    int status = decode(export, 0, task->histogram, task->histogram_bytes, error);
    if (status != WEIR_OK)
        return status;
    put_lap_place(export, task->timestamp, &task->place);
    weir_event_file_task(export->file, task, &export->histograms[0]);
    return WEIR_OK;
}

static int put_queue(struct run_export *export, const weir_queue_record *queue, weir_error *error)
{
    int status = decode(export, 0, queue->put_histogram, queue->put_histogram_bytes, error);
    if (status == WEIR_OK)
        status = decode(export, 1, queue->get_histogram, queue->get_histogram_bytes, error);
    if (status != WEIR_OK)
        return status;
    put_lap_place(export, queue->timestamp, &queue->place);
    weir_event_file_queue(export->file, queue, &export->histograms[0], &export->histograms[1]);
    return WEIR_OK;
}

static int put_record(struct run_export *export, const weir_record *record, weir_error *error)
{
    switch (record->kind) {
    case WEIR_RECORD_TASK: return put_task(export, &record->task, error);
    case WEIR_RECORD_QUEUE: return put_queue(export, &record->queue, error);
    default: break;
    }
    weir_event_file_at(export->file, time_of(record), export->num_laps);
    if (record->kind == WEIR_RECORD_EVENT)
        weir_event_file_event(export->file, &record->event);
    else
        weir_event_file_failure(export->file, &record->failure);
    return WEIR_OK;
}

static int put_records(struct run_export *export, weir_error *error)
{
    enum { MANY_BYTES = 1 << 18 };
    int status = WEIR_OK;
    for (stream *s; status == WEIR_OK && (s = earliest(export)) != NULL;) {
        status = put_record(export, s->record, error);
        if (status == WEIR_OK)
            status = advance(s, error);
        int failure = weir_event_file_pending(export->file) > MANY_BYTES ? weir_event_file_flush(export->file) : 0;
        if (failure)
            return weir_tensorboard_error(error, failure, export->folder);
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

/* Writes to a file that TensorBoard does not read, and gives it its name when it is complete. */
static int write_file(struct run_export *export, const char *path, const char *path_before, weir_error *error)
{
    unlink(path_before); /* of a process that had the same number and was killed */
    int failure = weir_event_file_open(path_before, export->run->started, &export->file);
    if (failure)
        return weir_tensorboard_error(error, failure, export->folder);
    weir_event_file_at(export->file, export->run->started, 0);
    weir_event_file_run(export->file, export->run);
    int status = put_records(export, error);
    failure = weir_event_file_close(export->file);
    if (status == WEIR_OK && !failure && rename(path_before, path) != 0)
        failure = errno;
    if (status == WEIR_OK && failure)
        status = weir_tensorboard_error(error, failure, export->folder);
    if (status != WEIR_OK)
        unlink(path_before);
    return status;
}

static int write_folder(struct run_export *export, const char *folder, weir_error *error)
{
    const weir_run_record *run = export->run;
    export->folder = folder;
    int failure = weir_tensorboard_make_folder(folder);
    if (failure)
        return weir_tensorboard_error(error, failure, folder);
    char *path = weir_tensorboard_path(folder, run->started, run->node_id, run->pid, 0), *path_before = NULL;
    if (asprintf(&path_before, "%s/export.%ld.tmp", folder, (long)getpid()) < 0)
        path_before = NULL;
    int status = path && path_before ? write_file(export, path, path_before, error)
                                     : weir_tensorboard_error(error, ENOMEM, folder);
    free(path);
    free(path_before);
    return status;
}

static bool is_narrow(const weir_filter *f)
{
    return f->name || f->start_time != 0 || f->end_time != 0 || f->by_step || f->phase || f->from_phase ||
           f->until_phase;
}

/* A run that has nothing of what is wanted gets no file. */
static int export_run(weir_reader *reader, const weir_run_record *run, const weir_filter *filter, const char *log_dir,
                      weir_error *error)
{
    struct run_export export = { .reader = reader, .run = run };
    weir_filter of_run = *filter;
    of_run.run_id = run->run_id;
    of_run.descending = of_run.longest_first = false;
    of_run.limit = of_run.after_id = 0;

    char *folder = run_folder(log_dir, run);
    export.histograms = calloc(2, sizeof *export.histograms);
    int status = folder && export.histograms ? begin_streams(&export, &of_run, error)
                                             : weir_tensorboard_error(error, ENOMEM, log_dir);
    if (status == WEIR_OK && (earliest(&export) || !is_narrow(filter)))
        status = write_folder(&export, folder, error);
    end_streams(&export);
    free(export.histograms);
    free(folder);
    return status;
}

static int export_runs(weir_reader *reader, const weir_filter *filter, const char *log_dir, weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int64_t num_runs = 0;
    int status = weir_query_begin(reader, WEIR_RECORD_RUN, filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK) {
        status = export_run(reader, &record->run, filter, log_dir, error);
        num_runs++;
    }
    weir_query_end(query);
    if (status == WEIR_EOF && num_runs == 0)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s fulfils the conditions",
                              weir_reader_path(reader));
    return status == WEIR_EOF ? WEIR_OK : status;
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
    status = export_runs(reader, filter ? filter : &everything, log_dir, error);
    weir_reader_release(reader);
    return status;
}
