/*
 * Live OpenMetrics: an observer that sums laps and replaces a file after each. It needs no locks: everything runs on
 * the thread of the pipeline's observers, except opening and closing, which happen before and after.
 */
#include <weir/openmetrics.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/version.h>

#include "array.h"
#include "database_path.h"
#include "exposition.h"
#include "process_info.h"
#include "record.h"
#include "replacement.h"

struct weir_openmetrics_file {
    char *path;
    char *node_id, *command;
    weir_observer observer;

    weir_run_record run;
    bool has_run;
    weir_exposition all; /* of the run; totals points to: */
    weir_totals totals;
    atomic_flag is_attached;

    weir_error failure; /* of the last attempt to write; all-zero = it succeeded */
    bool is_short;      /* some metrics are missing for lack of memory */
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
                   status == WEIR_ENOTFOUND ? "; create the folder first" : "");
    if (!failed_before && file->has_run)
        weir_log(WEIR_LOG_ERROR, "%s", file->failure.message);
    return status;
}

/* -- sums */

static void lack_memory(weir_openmetrics_file *file)
{
    if (!file->is_short)
        weir_log(WEIR_LOG_ERROR, "out of memory: the metrics in %s are incomplete",
                 weir_path_for_message(file->path).text);
    file->is_short = true;
}

static void free_total(weir_total *total)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir_subject_histograms(total->subject, histograms);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)*weir_metric_histogram_at(histograms[i].metric, &total->metrics));
    free((void *)(uintptr_t)total->key.name);
    free((void *)(uintptr_t)total->kind);
}

static void free_totals(weir_totals *totals)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        for (size_t i = 0; i < totals->of[subject].count; i++)
            free_total(&totals->of[subject].all[i]);
        free(totals->of[subject].all);
    }
    *totals = (weir_totals){ .texts = NULL };
}

/* False = out of memory. Call free_total() in either case. */
static bool init_total(weir_total *total, const weir_lap_record *lap)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir_subject_histograms(lap->subject, histograms);
    *total = (weir_total){ .subject = lap->subject,
                           .key = { .name = strdup(lap->name), .last_step = -1 },
                           .kind = strdup(lap->kind) };
    weir_metrics_clear(weir_subject_metrics(lap->subject), &total->metrics);
    bool is_complete = total->key.name && total->kind;
    for (size_t i = 0; i < count; i++) {
        const weir_histogram **at = weir_metric_histogram_at(histograms[i].metric, &total->metrics);
        *at = calloc(1, sizeof **at);
        is_complete &= *at != NULL;
    }
    return is_complete;
}

/* NULL = out of memory. */
static weir_total *find_total(weir_total_list *list, const weir_lap_record *lap)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->all[i].key.name, lap->name) == 0)
            return &list->all[i];
    weir_total *all = weir_array_grow(list->all, list->count, sizeof *all);
    if (!all)
        return NULL;
    list->all = all;
    if (init_total(&all[list->count], lap))
        return &all[list->count++];
    free_total(&all[list->count]);
    return NULL;
}

static void add_lap(weir_openmetrics_file *file, const weir_lap_record *lap)
{
    weir_total *total = find_total(&file->totals.of[lap->subject], lap);
    weir_total one = weir_total_of_lap(lap);
    if (total)
        weir_total_add(total, &one);
    else
        lack_memory(file);
}

/* -- the observer */

static void forget_run(weir_openmetrics_file *file)
{
    free_totals(&file->totals);
    weir_key_sums_free(&file->all.events);
    weir_key_sums_free(&file->all.phases);
    file->has_run = file->is_short = false;
}

static void on_run_start(void *self, const weir_run_info *info)
{
    weir_openmetrics_file *file = self;
    forget_run(file);
    file->run = (weir_run_record){
        .node_id = file->node_id,
        .rank = file->run.rank,
        .started_unix_ns = info->start_unix_ns,
        .threads = info->threads,
        .command = file->command,
        .version = weir_version(),
    };
    file->has_run = true;
    replace(file);
}

static void on_stage_lap(void *self, const weir_stage_lap *lap)
{
    weir_lap_record record = weir_record_of_stage_lap(lap);
    add_lap(self, &record);
}

static void on_queue_lap(void *self, const weir_queue_lap *lap)
{
    weir_lap_record record = weir_record_of_queue_lap(lap);
    add_lap(self, &record);
}

static void on_pool_lap(void *self, const weir_pool_lap *lap)
{
    weir_lap_record record = weir_record_of_pool_lap(lap);
    add_lap(self, &record);
}

static void on_process_lap(void *self, const weir_process_lap *lap)
{
    weir_lap_record record = weir_record_of_process_lap(lap);
    add_lap(self, &record);
}

static void on_machine_lap(void *self, const weir_machine_lap *lap)
{
    weir_lap_record record = weir_record_of_machine_lap(lap);
    add_lap(self, &record);
}

static void on_span_lap(void *self, const weir_span_lap *lap)
{
    weir_lap_record record = weir_record_of_span_lap(lap);
    add_lap(self, &record);
}

static void on_counter_lap(void *self, const weir_counter_lap *lap)
{
    weir_lap_record record = weir_record_of_counter_lap(lap);
    add_lap(self, &record);
}

static void on_lap_end(void *self, const weir_lap *lap)
{
    weir_openmetrics_file *file = self;
    if (lap->place.phase && lap->place.phase[0] &&
        weir_key_sums_add(&file->all.phases, 0, lap->place.phase, "", seconds(lap->elapsed_ns)) != WEIR_OK)
        lack_memory(file);
    replace(file);
}

static void on_event(void *self, const weir_event *event)
{
    weir_openmetrics_file *file = self;
    if (weir_key_sums_add(&file->all.events, 0, event->name, event->category, 1) != WEIR_OK)
        lack_memory(file);
}

static void on_run_end(void *self, const weir_run_end *end)
{
    weir_openmetrics_file *file = self;
    file->run.has_ended = true;
    file->run.ended_unix_ns = end->end_unix_ns;
    file->run.status = end->status;
    replace(file);
}

static int on_attach(void *self, weir_error *error)
{
    weir_openmetrics_file *file = self;
    if (!atomic_flag_test_and_set(&file->is_attached))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EBUSY, 0, "%s already has the metrics of another pipeline",
                          weir_path_for_message(file->path).text);
}

static void on_detach(void *self)
{
    weir_openmetrics_file *file = self;
    atomic_flag_clear(&file->is_attached);
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
    atomic_flag_clear(&file->is_attached);
    file->all = (weir_exposition){ .runs = &file->run, .num_runs = 1, .totals = &file->totals };
    file->observer = (weir_observer){
        .self = file,
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
        status = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory: the metrics in %s are incomplete",
                                weir_path_for_message(file->path).text);
    free_file(file);
    return status;
}
