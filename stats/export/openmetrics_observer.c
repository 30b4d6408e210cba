/* Live OpenMetrics: sums laps and replaces a file after each. */
#include <weir/openmetrics.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/output.h>
#include <weir/struct_copy.h>

#include "common/replacement.h"
#include "stats/export/exposition.h"
#include "stats/export/live_export.h"
#include "stats/record/process_info.h"
#include "stats/schema/database_path.h"

struct weir_openmetrics_file {
    weir_live_export live;
    char *command;

    weir_record run; /* the current one */
    const weir_record *runs;
    bool has_run;
    weir_exposition all;       /* of the run */
    weir_live_overview latest; /* of its latest lap */
    weir_overview overview;

    weir_error failure; /* of the last attempt to write; all-zero = it succeeded */
    bool is_short;      /* some metrics are missing for lack of memory */
};

/* -- the file */

/* Returns 0 or an errno. */
static int write_metrics_file(weir_openmetrics_file *file)
{
    weir_exposition empty = { 0 };
    weir__replacement out;
    int failure = weir__replacement_open(&out, file->live.path);
    if (failure)
        return failure;
    weir__exposition_write(out.file, file->has_run ? &file->all : &empty);
    return weir__replacement_close(&out, true);
}

static int replace_file(weir_openmetrics_file *file)
{
    bool failed_before = file->failure.status != WEIR_OK;
    file->failure = (weir_error){ 0 };
    int failure = write_metrics_file(file);
    if (!failure)
        return WEIR_OK;
    int status = weir__path_fail(&file->failure, failure, "cannot write the metrics to", file->live.path,
                                 failure == ENOENT ? "; create the folder first" : "");
    if (!failed_before && file->has_run)
        weir_log(WEIR_LOG_ERROR, "%s", file->failure.message);
    return status;
}

/* -- sums */

static void note_shortage(weir_openmetrics_file *file)
{
    if (!file->is_short)
        weir_log(WEIR_LOG_ERROR, "out of memory: the metrics in %s are incomplete",
                 weir__path_for_message(file->live.path).text);
    file->is_short = true;
}

static void add_record(weir_openmetrics_file *file, const weir_record *record)
{
    if (weir__exposition_take(&file->all, record, NULL) == WEIR_OK &&
        weir__live_overview_take(&file->latest, record, NULL) == WEIR_OK)
        return;
    note_shortage(file);
}

/* -- the observer */

static void forget_run(weir_openmetrics_file *file)
{
    weir__exposition_clear(&file->all);
    weir__live_overview_clear(&file->latest);
    file->all.overviews = NULL;
    file->has_run = file->is_short = false;
}

static void take_run(weir_openmetrics_file *file, const weir_run_record *run)
{
    if (run->has_ended) {
        file->run.run.has_ended = true;
        file->run.run.ended_unix_ns = run->ended_unix_ns;
        file->run.run.status = run->status;
        file->all.overviews = NULL; /* it has no rate any more, and nothing limits it */
    } else {
        forget_run(file);
        file->run.run = (weir_run_record){ .node_id = file->live.node_id,
                                           .rank = file->run.run.rank,
                                           .started_unix_ns = run->started_unix_ns,
                                           .threads = run->threads,
                                           .command = file->command,
                                           .version = weir_version() };
        file->has_run = true;
    }
    replace_file(file);
}

static void take_metrics(void *self, const weir_record *record)
{
    weir_openmetrics_file *file = self;
    if (record->kind == WEIR_RECORD_RUN)
        take_run(file, &record->run);
    else
        add_record(file, record);
}

static void replace_metrics(void *self, const weir_lap *lap)
{
    weir_openmetrics_file *file = self;
    weir_phase_record phase = { .position = { .phase = lap->position.phase, .mode = lap->position.mode },
                                .end_unix_ns = lap->elapsed_ns };
    phase.position.phase = phase.position.phase ? phase.position.phase : "";
    phase.position.mode = phase.position.mode ? phase.position.mode : "";
    add_record(file, &(weir_record){ .kind = WEIR_RECORD_PHASE, .phase = phase });
    if (weir__live_overview_get(&file->latest, &file->overview, NULL) != WEIR_OK)
        note_shortage(file);
    file->all.overviews = &file->overview;
    replace_file(file);
}

weir_observer weir_openmetrics_observer(weir_openmetrics_file *file)
{
    return file ? file->live.observer : (weir_observer){ 0 };
}

/* -- opening and closing */

static void free_metrics_file(weir_openmetrics_file *file)
{
    forget_run(file);
    weir__live_export_free(&file->live);
    free(file->command);
    free(file);
}

static weir_openmetrics_file *new_metrics_file(const char *path, const weir_openmetrics_options *options)
{
    weir_openmetrics_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->runs = &file->run;
    file->all = (weir_exposition){ .runs = { &file->runs, 1 } };
    file->run.run.rank = options->rank;
    file->latest.rules = options->limit_rules;
    file->command = weir__command_line(options->command);
    file->live =
        (weir_live_export){ .in_use = "already has the metrics of another pipeline", .taker = { take_metrics } };
    if (weir__live_export_init(&file->live, path, options->node_id) && file->command) {
        file->live.observer.failure = NULL; /* the sums of laps have them */
        file->live.observer.lap_end = replace_metrics;
        return file;
    }
    free_metrics_file(file);
    return NULL;
}

int weir_openmetrics_open_sized(const char *path, const weir_openmetrics_options *given, size_t given_size,
                                weir_openmetrics_file **file, weir_error *error)
{
    if (!path || !file)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_openmetrics_options options;
    *file = NULL;
    int status = weir_struct_copy(&options, sizeof options, given, given_size, "weir_openmetrics_options", error);
    if (status == WEIR_OK)
        status = weir__limit_rules_check(options.limit_rules, error);
    if (status != WEIR_OK)
        return status;
    if (!*path)
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot write metrics: their file has no name");
    const weir_output_rules rules = { .force = options.force };
    if (weir_output_check(path, WEIR_OUTPUT_METRICS, &rules, error) != WEIR_OK)
        return WEIR_EINVAL;
    weir_openmetrics_file *opened = new_metrics_file(path, &options);
    if (!opened)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the metrics of %s",
                              weir__path_for_message(path).text);
    if (replace_file(opened) != WEIR_OK)
        return weir_openmetrics_close(opened, error);
    *file = opened;
    return WEIR_OK;
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
                                weir__path_for_message(file->live.path).text);
    free_metrics_file(file);
    return status;
}
