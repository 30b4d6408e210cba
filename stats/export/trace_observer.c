/*
 * Live trace files: an observer. Events are collected in `body` and written about once a second; or, with triggers, kept
 * in memory until something happens. It needs no locks: everything runs on the thread of the pipeline's observers,
 * except opening and closing, which happen before and after, and requests.
 */
#include <weir/trace_file.h>

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/output.h>
#include <weir/struct_copy.h>
#include <weir/version.h>

#include "common/array.h"
#include "common/unix_clock.h"
#include "stats/export/live_export.h"
#include "stats/export/trace_events.h"
#include "stats/export/trace_output.h"
#include "stats/export/trace_path.h"
#include "stats/schema/database_path.h"

enum { FLUSH_BYTES = 1 << 18, MAX_KEPT_BYTES = 64 << 20, RUN_PIDS = 10000000 };

/* Events in memory, with triggers: of the time before end_ns. */
typedef struct kept_events {
    weir_trace_text text;
    int64_t end_ns;
} kept_events;

struct weir_trace_file {
    weir_live_export live; /* its path is the pattern of paths */
    weir_trace_options options;
    char *run;
    atomic_bool requested;

    weir_trace_events events;
    weir_trace_text body, head;
    weir_trace_output *output; /* NULL = no file is open */
    bool has_triggers;
    kept_events *kept; /* the oldest first */
    size_t num_kept;
    uint64_t kept_bytes;
    int64_t flushed_ns, dumped_ns;
    int64_t num_runs;
    uint64_t num_steps; /* marked so far */
    uint64_t num_lost;  /* of earlier runs */

    char **paths; /* of all files that were completed, oldest first: no later file gets their names */
    size_t num_paths, num_removed;

    weir_error failure; /* the first one */
};

/* ---- files --------------------------------------------------------------------------------------------------- */

static const char cannot_write[] = "cannot write trace";

static void note_failure(weir_trace_file *file, int failure, const char *path)
{
    if (failure == 0 || file->failure.status)
        return;
    weir__path_fail(&file->failure, failure, cannot_write, path, "");
    weir_log(WEIR_LOG_ERROR, "%s", file->failure.message);
}

static weir_trace_names names_of(const weir_trace_file *file)
{
    return (weir_trace_names){
        .run = file->run,
        .node = file->live.node_id,
        .rank = file->options.rank,
        .world_size = file->options.world_size,
        .local_rank = file->options.local_rank,
        .step = file->events.step,
        .batch = (int64_t)file->num_steps,
        .epoch = (int64_t)file->events.epoch,
    };
}

static int make_path(const weir_trace_file *file, char **path)
{
    const weir_trace_names names = names_of(file);
    return weir__trace_path(file->live.path, &names, path);
}

static bool is_taken(const weir_trace_file *file, const char *path)
{
    for (size_t i = 0; i < file->num_paths; i++)
        if (strcmp(file->paths[i], path) == 0)
            return true;
    return !file->options.overwrite && access(path, F_OK) == 0;
}

/* A path that no file has. */
static int make_free_path(const weir_trace_file *file, char **path)
{
    char *wanted;
    int failure = make_path(file, &wanted);
    *path = failure ? NULL : strdup(wanted);
    for (unsigned number = 2; *path && is_taken(file, *path); number++) {
        free(*path);
        *path = weir__trace_numbered(wanted, number);
    }
    if (failure == 0)
        free(wanted);
    return failure ? failure : *path ? 0 : ENOMEM;
}

/* With a limit the older half becomes PATH.old, and must not replace anything else, either. */
static int check_trace_path(const weir_trace_file *file, const char *path, weir_error *error)
{
    const weir_output_rules rules = { .force = file->options.force };
    int status = weir_output_check(path, WEIR_OUTPUT_TRACE, &rules, error);
    if (status != WEIR_OK || !file->options.max_bytes)
        return status;
    char *older = NULL;
    if (asprintf(&older, "%s.old", path) < 0)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    status = weir_output_check(older, WEIR_OUTPUT_TRACE, &rules, error);
    free(older);
    return status;
}

static void open_trace_file(weir_trace_file *file)
{
    char *path;
    int failure = make_free_path(file, &path);
    if (failure == 0)
        failure = weir__path_make_parents(path);
    /* The name may be one that was not known when the first file was checked. */
    if (failure == 0 && check_trace_path(file, path, NULL) != WEIR_OK)
        failure = EEXIST;
    if (failure == 0)
        failure = weir__trace_output_open(path, &file->head, file->has_triggers ? 0 : file->options.max_bytes, true,
                                          file->options.force, &file->output);
    note_failure(file, failure, path ? path : file->live.path);
    free(path);
    file->body.length = 0; /* the head has the names */
}

/* The file is complete: tells it, and removes the oldest one. */
static void announce_trace(weir_trace_file *file, const char *path)
{
    char **grown = realloc(file->paths, (file->num_paths + 1) * sizeof *grown);
    if (grown) {
        file->paths = grown;
        if ((grown[file->num_paths] = strdup(path)))
            file->num_paths++;
    }
    if (file->options.finished)
        file->options.finished(file->options.finished_self, path);
    if (file->options.keep && file->num_paths - file->num_removed > file->options.keep)
        unlink(file->paths[file->num_removed++]);
}

static void write_trace_text(weir_trace_file *file, const weir_trace_text *text)
{
    if (file->output)
        note_failure(file, weir__trace_output_write(file->output, text), weir__trace_output_path(file->output));
}

static void write_trace_body(weir_trace_file *file)
{
    write_trace_text(file, &file->body);
    if (file->output)
        file->body.length = 0;
}

/* all: also the begins of what is open, which happens in each flush_interval_ns. */
static void flush_trace(weir_trace_file *file, bool all)
{
    if (!file->output)
        return;
    if (weir__trace_output_is_full(file->output, file->body.length)) {
        weir__trace_events_cut(&file->events, file->events.last_ns);
        write_trace_body(file);
        note_failure(file, weir__trace_output_turn_over(file->output), weir__trace_output_path(file->output));
    }
    if (all) {
        file->flushed_ns = weir_clock_ns();
        weir__trace_events_write_open(&file->events);
    }
    write_trace_body(file);
}

static void close_file(weir_trace_file *file, int64_t at_ns)
{
    if (!file->output)
        return;
    weir__trace_events_cut(&file->events, at_ns);
    write_trace_body(file);
    char *path = strdup(weir__trace_output_path(file->output));
    int failure = weir__trace_output_close(file->output, 0);
    file->output = NULL;
    note_failure(file, failure, path ? path : file->live.path);
    if (failure == 0 && path)
        announce_trace(file, path);
    free(path);
}

/* ---- triggers ------------------------------------------------------------------------------------------------ */

static void free_first_kept(weir_trace_file *file)
{
    file->kept_bytes -= file->kept->text.room;
    weir__trace_text_free(&file->kept->text);
    memmove(file->kept, file->kept + 1, --file->num_kept * sizeof *file->kept);
}

/* Moves the events to those in memory, and forgets the oldest. */
static void keep_events(weir_trace_file *file, int64_t now_ns)
{
    kept_events *grown = weir__array_grow(file->kept, file->num_kept, sizeof *grown);
    file->flushed_ns = now_ns;
    if (!grown)
        return; /* with the next ones */
    file->kept = grown;
    file->kept[file->num_kept++] = (kept_events){ file->body, now_ns };
    file->kept_bytes += file->body.room;
    file->body = (weir_trace_text){ 0 };
    uint64_t max_bytes = file->options.max_bytes ? file->options.max_bytes : MAX_KEPT_BYTES;
    while (file->num_kept > 1 &&
           (file->kept_bytes > max_bytes || file->kept->end_ns < now_ns - file->options.last_ns))
        free_first_kept(file);
}

/* Writes a file of what is in memory, and of what is open. */
static void dump_trace(weir_trace_file *file)
{
    int64_t now_ns = weir_clock_ns();
    if (file->dumped_ns && now_ns - file->dumped_ns < file->options.last_ns)
        return;
    file->dumped_ns = now_ns;
    keep_events(file, now_ns);
    open_trace_file(file);
    for (size_t i = 0; i < file->num_kept; i++)
        write_trace_text(file, &file->kept[i].text);
    close_file(file, now_ns);
}

static void trigger_trace(weir_trace_file *file, bool wanted)
{
    if (wanted && file->has_triggers)
        dump_trace(file);
}

/* ---- the schedule -------------------------------------------------------------------------------------------- */

static bool is_active(const weir_trace_schedule *schedule, uint64_t num_steps)
{
    uint64_t cycle = schedule->wait + schedule->warmup + schedule->active;
    if (num_steps <= schedule->skip_first)
        return false;
    uint64_t position = num_steps - 1 - schedule->skip_first;
    return (!schedule->repeat || position / cycle < schedule->repeat) && position % cycle >= cycle - schedule->active;
}

/* A step begins. Two cycles that touch are two files. */
static void scheduled_step(weir_trace_file *file, const weir_trace_record *record)
{
    const weir_trace_schedule *schedule = &file->options.schedule;
    uint64_t idle = schedule->wait + schedule->warmup;
    bool active = is_active(schedule, file->num_steps);
    bool begins = active && (file->num_steps - 1 - schedule->skip_first) % (idle + schedule->active) == idle;
    if (begins || !active)
        close_file(file, record->time_ns);
    file->events.muted = !active;
    weir__trace_events_add(&file->events, record); /* the file's name has its number */
    if (!begins)
        return;
    file->events.muted = true; /* what was open before is cut off here */
    weir__trace_events_cut(&file->events, record->time_ns);
    file->events.muted = false;
    open_trace_file(file);
}

/* ---- the observer -------------------------------------------------------------------------------------------- */

static void put_head(weir_trace_file *file)
{
    char name[64] = "weir";
    const int64_t rank = file->options.rank;
    if (file->options.rank || file->options.world_size > 1)
        snprintf(name, sizeof name, "weir rank %02" PRId32, file->options.rank);
    weir__trace_putf(&file->head, WEIR_TRACE_METADATA "{\"name\":%j}},\n", file->events.pid, INT64_C(0),
                     "process_name", name);
    weir__trace_putf(&file->head, WEIR_TRACE_METADATA "{\"sort_index\":%d}},\n", file->events.pid, INT64_C(0),
                     "process_sort_index", rank);
}

/* What merging needs: the wall time at which the file's time is 0. */
static void put_clock(weir_trace_file *file, int64_t base_unix_ns)
{
    weir_trace_text more = { 0 };
    weir__trace_putf(&more, ",\"version\":%j,\"run\":%j,\"node\":%j,\"rank\":%d", weir_version(), file->run,
                     file->live.node_id, (int64_t)file->options.rank);
    weir__trace_put(&more, "", 1);
    weir__trace_putf(&file->head, WEIR_TRACE_CLOCK, base_unix_ns, more.data ? more.data : "");
    weir__trace_text_free(&more);
}

static void end_events(weir_trace_file *file)
{
    int64_t base_ns = file->events.base_ns;
    file->num_lost += file->events.num_lost;
    bool muted = file->events.muted;
    weir__trace_events_free(&file->events);
    file->events = (weir_trace_events){
        .body = &file->body,
        .head = &file->head,
        .muted = muted,
        .no_flows = file->options.no_flows,
        .base_ns = base_ns,
    };
}

static void trace_run_start(void *self, const weir_run_info *info)
{
    weir_trace_file *file = self;
    file->events.pid = getpid() + RUN_PIDS * file->num_runs++;
    size_t start = file->head.length;
    put_head(file);
    if (weir__trace_events_begin(&file->events, info) != 0) {
        note_failure(file, ENOMEM, file->live.path);
        end_events(file); /* nothing is traced */
    }
    file->body.length = 0;
    weir__trace_put(&file->body, file->head.data + start, file->head.length - start);
    write_trace_body(file); /* the file is there from here on */
}

static void on_trace(void *self, const weir_trace_batch *batch)
{
    weir_trace_file *file = self;
    bool scheduled = file->options.schedule.active > 0;
    if (batch->num_dropped)
        weir__trace_events_lost(&file->events, weir_clock_ns(), "records of user code are lost before here",
                                batch->num_dropped);
    for (size_t i = 0; i < batch->num_records && file->events.nodes; i++) {
        const weir_trace_record *record = &batch->records[i];
        bool begins_step = record->kind == WEIR_TRACE_STEP && record->value != WEIR_NO_STEP;
        file->num_steps += begins_step;
        if (scheduled && begins_step)
            scheduled_step(file, record);
        else
            weir__trace_events_add(&file->events, record);
        if (file->output && file->body.length > FLUSH_BYTES)
            flush_trace(file, false);
    }
    int64_t now_ns = weir_clock_ns();
    bool requested =
        atomic_load_explicit(&file->requested, memory_order_relaxed) && atomic_exchange(&file->requested, false);
    bool timed = now_ns - file->flushed_ns >= file->options.flush_interval_ns || (requested && !file->has_triggers);
    if (file->has_triggers && (timed || file->body.length > FLUSH_BYTES))
        keep_events(file, now_ns);
    else if (timed || file->body.length > FLUSH_BYTES)
        flush_trace(file, timed);
    trigger_trace(file, requested && file->options.on_request);
}

static void trace_failure(void *self, const weir_failure *failure)
{
    weir_trace_file *file = self;
    if (file->events.nodes)
        weir__trace_events_failure(&file->events, failure);
    trigger_trace(file, file->options.on_failure);
}

static void trace_event(void *self, const weir_event *event)
{
    weir_trace_file *file = self;
    if (file->events.nodes)
        weir__trace_events_event(&file->events, event);
    trigger_trace(file, file->options.on_stall && strcmp(event->name, "stall") == 0);
}

static void trace_run_end(void *self, const weir_run_end *end)
{
    weir_trace_file *file = self;
    (void)end;
    if (file->options.schedule.active)
        close_file(file, weir_clock_ns());
    else
        flush_trace(file, false);
    end_events(file);
}

weir_observer weir_trace_observer(weir_trace_file *file)
{
    return file ? file->live.observer : (weir_observer){ 0 };
}

void weir_trace_request(weir_trace_file *file)
{
    if (file)
        atomic_store_explicit(&file->requested, true, memory_order_relaxed);
}

/* ---- opening and closing ------------------------------------------------------------------------------------- */

static void free_trace_file(weir_trace_file *file)
{
    weir__trace_events_free(&file->events);
    while (file->num_kept)
        free_first_kept(file);
    free(file->kept);
    while (file->num_paths)
        free(file->paths[--file->num_paths]);
    weir__trace_text_free(&file->body);
    weir__trace_text_free(&file->head);
    free(file->paths);
    weir__live_export_free(&file->live);
    free(file->run);
    free(file);
}

static char *time_text(void)
{
    char text[32];
    struct tm local;
    time_t now = time(NULL);
    strftime(text, sizeof text, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    return strdup(text);
}

static weir_trace_file *new_trace_file(const char *pattern, const weir_trace_options *options)
{
    weir_trace_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->options = *options;
    file->run = options->run ? strdup(options->run) : time_text();
    file->has_triggers = options->on_stall || options->on_failure || options->on_request;
    if (!file->options.last_ns)
        file->options.last_ns = 10 * WEIR_SECOND;
    if (!file->options.flush_interval_ns)
        file->options.flush_interval_ns = WEIR_SECOND;
    file->events.base_ns = weir_clock_ns();
    int64_t base_unix_ns = unix_clock_ns();
    end_events(file);
    file->events.muted = options->schedule.active > 0;
    atomic_init(&file->requested, false);
    file->live.in_use = "is already the trace of another pipeline";
    bool is_complete = weir__live_export_init(&file->live, pattern, options->node_id);
    file->live.observer.run_start = trace_run_start;
    file->live.observer.failure = trace_failure;
    file->live.observer.event = trace_event;
    file->live.observer.run_end = trace_run_end;
    file->live.observer.trace = on_trace;
    if (!is_complete || !file->run) {
        free_trace_file(file);
        return NULL;
    }
    put_clock(file, base_unix_ns);
    return file;
}

static int check_options(const char *pattern, const weir_trace_options *options, weir_error *error)
{
    const weir_trace_schedule *schedule = &options->schedule;
    bool has_triggers = options->on_stall || options->on_failure || options->on_request;
    if (!*pattern)
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot write a trace: its file has no name");
    if (options->flush_interval_ns < 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "flush_interval_ns is negative; use 0 for the default");
    if (options->last_ns < 0 || (options->last_ns && !has_triggers))
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "last_ns is negative, or given without a trigger; set on_stall, on_failure or on_request");
    if (!schedule->active && (schedule->skip_first || schedule->wait || schedule->warmup || schedule->repeat))
        return weir_error_set(error, WEIR_EINVAL, 0, "the schedule has no active steps; set schedule.active");
    if (schedule->active && has_triggers)
        return weir_error_set(error, WEIR_EINVAL, 0, "a schedule and triggers are given; choose one of them");
    return WEIR_OK;
}

/* Finds out now what would fail when the first file is written. */
static int open_first(weir_trace_file *file, weir_error *error)
{
    char *path = NULL;
    int failure = make_path(file, &path), status = WEIR_OK;
    if (failure == EINVAL)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%s: unknown word in braces; known are {run}, {node}, {rank}, {local_rank}, "
                              "{world_size}, {step}, {batch} and {epoch}",
                              weir__path_for_message(file->live.path).text);
    bool later = file->has_triggers || file->options.schedule.active;
    char *existing = NULL;
    if (failure == 0 && !file->options.overwrite)
        failure = weir__trace_find(file->live.path, names_of(file), &existing);
    if (existing)
        status = weir_error_set(error, WEIR_EINVAL, -EEXIST, "%s exists; give another name, or allow to overwrite it",
                                weir__path_for_message(existing).text);
    else if (failure == 0)
        failure = weir__path_make_parents(path);
    if (failure == 0 && status == WEIR_OK)
        status = check_trace_path(file, path, error);
    if (failure == 0 && status == WEIR_OK && !later)
        failure = weir__trace_output_open(path, &file->head, file->options.max_bytes, true, file->options.force,
                                          &file->output);
    if (failure)
        status = weir__path_fail(error, failure, cannot_write, path ? path : file->live.path, "");
    free(path);
    free(existing);
    return status;
}

int weir_trace_open_sized(const char *path, const weir_trace_options *given, size_t given_size,
                          weir_trace_file **opened, weir_error *error)
{
    if (!path || !opened)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_trace_options options;
    *opened = NULL;
    int status = weir_struct_copy(&options, sizeof options, given, given_size, "weir_trace_options", error);
    if (status == WEIR_OK)
        status = check_options(path, &options, error);
    if (status != WEIR_OK)
        return status;
    weir_trace_file *file = new_trace_file(path, &options);
    if (!file)
        return weir__path_fail(error, ENOMEM, cannot_write, path, "");
    status = open_first(file, error);
    if (status == WEIR_OK)
        *opened = file;
    else
        free_trace_file(file);
    return status;
}

int weir_trace_close(weir_trace_file *file, weir_error *error)
{
    if (!file)
        return WEIR_OK;
    if (file->num_runs > 0) /* otherwise it has no events, and leaves no file */
        close_file(file, weir_clock_ns());
    weir__trace_output_close(file->output, 0);
    int status = file->failure.status;
    if (status != WEIR_OK)
        weir_error_set(error, status, file->failure.library_code, "%s; the trace is not complete",
                       file->failure.message);
    else if (file->num_lost)
        status = weir_error_set(error, WEIR_ELIMIT, 0,
                                "%s: %" PRIu64 " records were lost: they came faster than they were written",
                                weir__path_for_message(file->live.path).text, file->num_lost);
    free_trace_file(file);
    return status;
}
