/* TensorBoard event files: live, lap by lap; and from a database, as a live log would have written them. */
#include <weir/tensorboard.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
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
#include "stats/export/formats.h"
#include "stats/export/live_export.h"
#include "stats/export/overview.h"
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
    bool has_no_overview;  /* only a part of the stages is logged */
    bool is_open;          /* its overview is not written yet */
    weir_live_overview overview;
} lap_log;

/* TensorBoard sorts tags, and opens the first ones: a digit comes first, and a space before the colon of the stages. */
#define OVERVIEW "0 overview/"

static void log_figure(const lap_log *log, const char *name, double value, const char *description)
{
    char tag[512];
    snprintf(tag, sizeof tag, OVERVIEW "%s", name);
    if (isfinite(value))
        weir__event_file_scalar(log->file, tag, value, log->number == 1 ? description : NULL);
}

/* The figure of the only total of a subject, such as the process. */
static double figure_of(const weir_totals *totals, weir_subject subject, const char *measure)
{
    const weir_total_list *list = &totals->of[subject];
    return list->count ? weir_total_value(&list->all[0], weir_measure_find(subject, measure)) : NAN;
}

static double count_failures(const weir_totals *totals)
{
    const weir_total_list *stages = &totals->of[WEIR_SUBJECT_STAGE];
    double count = 0;
    for (size_t i = 0; i < stages->count; i++)
        count += (double)stages->all[i].metrics.task.num_failures;
    return count;
}

/* With the other figures there are ten; of more queues, those behind the sources and before the consumer. */
enum { QUEUES_AT_EACH_END = 2 };

static void log_levels(const lap_log *log, const weir_total_list *queues)
{
    for (size_t i = 0; i < queues->count; i++) {
        const weir_total *queue = &queues->all[i];
        char name[400];
        if (i >= QUEUES_AT_EACH_END && i + QUEUES_AT_EACH_END < queues->count)
            continue;
        snprintf(name, sizeof name, "level of %.300s", queue->key.name);
        log_figure(log, name,
                   weir_total_value(queue, weir_measure_find(WEIR_SUBJECT_QUEUE, "ave_depth")) /
                       (queue->capacity > 0 ? (double)queue->capacity : NAN),
                   "How full the queue is: the mean number of items / its capacity.");
    }
}

/* "0 = unknown, 1 = none, …" */
static void log_limit(const lap_log *log, const weir_overview *overview)
{
    char text[600] = "What limits the run (weir explain):";
    const char *word;
    for (int number = 0; overview->has_limit && *(word = log->overview.rules->word(number)); number++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s %d = %.40s", number ? "," : "", number, word);
    }
    if (overview->has_limit)
        log_figure(log, "limit", overview->limit.number, text);
}

/* The ten figures that TensorBoard opens on, of a lap all records of which are known. */
static void log_overview(lap_log *log)
{
    const weir_totals *lap = &log->overview.lap;
    weir_overview overview;
    if (!log->is_open)
        return;
    log->is_open = false;
    weir__live_overview_get(&log->overview, &overview, NULL); /* without memory, without a limit */
    log_figure(log, "items_per_s", overview.items_per_s, "Items that the consumer got per second.");
    log_figure(log, "frames_per_s", overview.frames_per_s, "Frames that the consumer got per second.");
    log_figure(log, "cpus", figure_of(lap, WEIR_SUBJECT_PROCESS, "cpus"), "CPUs that the process used.");
    log_figure(log, "resident_bytes", figure_of(lap, WEIR_SUBJECT_PROCESS, "resident_bytes"),
               "Memory of the process.");
    log_figure(log, "failures", count_failures(lap), "Tasks that failed in the lap.");
    log_levels(log, &lap->of[WEIR_SUBJECT_QUEUE]);
    log_limit(log, &overview);
}

/* The records of one lap all have the same time. WEIR_OK or WEIR_ENOMEM. */
static int log_lap(lap_log *log, const weir_record *record, weir_error *error)
{
    const weir_lap_record *lap = &record->lap;
    bool begins = log->number == 0 || lap->end_unix_ns != log->unix_ns;
    if (begins)
        log_overview(log);
    log->number += begins;
    log->is_open |= begins && !log->has_no_overview;
    log->unix_ns = lap->end_unix_ns;
    weir__event_file_lap(log->file, lap, log->number - 1);
    if (begins && lap->position.last_step >= lap->position.first_step)
        weir__event_file_scalar(log->file, "consumer/step", (double)lap->position.last_step, NULL);
    return weir__live_overview_take(&log->overview, record, error);
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
    weir_error error = { 0 };
    int status = WEIR_OK;
    if (weir__record_is_lap(record->kind))
        status = log_lap(&log->laps, record, &error);
    else if (record->kind == WEIR_RECORD_RUN && !record->run.has_ended)
        weir__live_overview_clear(&log->laps.overview);
    else if (record->kind == WEIR_RECORD_STAGE)
        status = weir__live_overview_take(&log->laps.overview, record, &error);
    if (status != WEIR_OK)
        log->failure = error;
}

static void end_log_lap(void *self, const weir_lap *lap)
{
    weir_tensorboard_log *log = self;
    (void)lap;
    log_overview(&log->laps);
    int failure = weir__event_file_flush(log->laps.file);
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
    if (status == WEIR_OK)
        status = weir__limit_rules_check(options.limit_rules, error);
    if (status != WEIR_OK)
        return status;
    weir_tensorboard_log *log = calloc(1, sizeof *log);
    int failure = ENOMEM;
    if (log) {
        log->laps.overview.rules = options.limit_rules;
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
    weir__live_overview_clear(&log->laps.overview);
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
    status = log_lap(&export->laps, record, error);
    if (status != WEIR_OK)
        return status;
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

static int take_stage(void *self, const weir_record *record, weir_error *error)
{
    return weir__live_overview_take(self, record, error);
}

static int read_stages(weir_recording *recording, const weir_filter *of_run, run_export *export, weir_error *error)
{
    const weir_filter whole = { .run_id = of_run->run_id };
    return weir_recording_each(recording, WEIR_RECORD_STAGE, &whole, take_stage, &export->laps.overview, error);
}

/* A run without matching laps gets no file. */
static int export_run(weir_recording *recording, const weir_filter *filter, const char *log_dir,
                      const weir_run_record *run, const weir_limit_rules *rules, weir_error *error)
{
    run_export export = { .run = run, .laps = { .has_no_overview = filter->name, .overview = { .rules = rules } } };
    weir_filter of_run = *filter;
    of_run.run_id = run->run_id;
    of_run.descending = of_run.longest_first = false;
    of_run.limit = of_run.after_id = 0;
    int status = make_paths(&export, log_dir) ? WEIR_OK : fail_log(error, ENOMEM, log_dir);
    if (status == WEIR_OK)
        status = read_stages(recording, &of_run, &export, error);
    if (status == WEIR_OK)
        status = weir_recording_each_lap(recording, &of_run, export_lap, &export, error);
    if (status == WEIR_OK && !export.laps.file && !is_narrow(filter))
        status = begin_run(&export, error);
    if (export.laps.file) {
        log_overview(&export.laps);
        status = end_run(&export, status, error);
    }
    weir__live_overview_clear(&export.laps.overview);
    free(export.folder);
    free(export.path);
    free(export.path_before);
    return status;
}

int weir__tensorboard_export(weir_recording *recording, const weir_filter *filter, const char *log_dir,
                             const weir_limit_rules *rules, weir_error *error)
{
    static const weir_filter everything;
    if (!recording)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = check_log_dir(log_dir, error);
    if (status == WEIR_OK)
        status = weir__limit_rules_check(rules, error);
    if (status == WEIR_OK)
        status = weir_recording_hold(recording, error);
    if (status != WEIR_OK)
        return status;
    weir_records runs;
    filter = filter ? filter : &everything;
    status = weir_records_read(recording, WEIR_RECORD_RUN, filter, &runs, error);
    if (status == WEIR_OK && runs.count == 0)
        status = weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s matches the filters",
                                weir_recording_path(recording));
    for (size_t i = 0; status == WEIR_OK && i < runs.count; i++)
        status = export_run(recording, filter, log_dir, &runs.all[i]->run, rules, error);
    weir_records_free(&runs);
    weir_recording_release(recording);
    return status;
}

int weir_tensorboard_export(weir_recording *recording, const weir_filter *filter, const char *log_dir,
                            weir_error *error)
{
    return weir__tensorboard_export(recording, filter, log_dir, NULL, error);
}
