/* weir export: writes records in formats that other tools read. */
#include <stdlib.h>
#include <string.h>

#include <weir/openmetrics.h>
#include <weir/tensorboard.h>

#include "tools/cli/memory.h"
#include "tools/cli/output_file.h"
#include "tools/commands/command_table.h"
#include "tools/view/record_table.h"

typedef enum export_format { OPENMETRICS, TENSORBOARD, CSV, JSON } export_format;

static const char *const format_names[] = { "openmetrics", "tensorboard", "csv", "json", NULL };
static const weir_output_kind file_kinds[] = {
    [OPENMETRICS] = WEIR_OUTPUT_METRICS, [CSV] = WEIR_OUTPUT_CSV, [JSON] = WEIR_OUTPUT_JSON
};

static struct settings {
    int format; /* -1 = not given */
    int table;  /* -1 = all */
    bool laps, force;
    const char *output;
} settings = { .format = -1, .table = -1 };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("format", format, option_choice), .letter = 'f', .argument = "FORMAT", .choices = format_names,
      .help = "openmetrics, tensorboard, csv or json (required)" },
    { ROW("output", output, option_file), .letter = 'o', .argument = "FILE|DIR",
      .help = "output file (default: stdout); for tensorboard, and for csv with all tables, a folder" },
    { ROW("table", table, option_choice), .argument = "TABLE", .choices = record_table_names,
      .help = "csv and json: only one table: runs, nodes, stages, phases, tasks, flow, queues, pools, process, "
              "machine, spans, counters, events, failures, items, contents" },
    { ROW("laps", laps, option_flag),
      .help = "openmetrics: the sums after each lap, with timestamps, instead of the final sums only" },
    { ROW("force", force, option_flag), .help = OUTPUT_FORCE_HELP },
    { 0 },
};

/* One export in progress. */
struct job {
    const tool_call *call;
    weir_reader *reader;
    const weir_filter *filter;
};

static int fail_unless_ok(const struct job *job, int status, const weir_error *error)
{
    return status == WEIR_OK ? TOOL_DONE : tool_fail(job->call, error);
}

/* -- json and csv */

/* {"database": …, "runs": […], …}, or one table alone */
static int write_json(const struct job *job, FILE *out, weir_error *error)
{
    int status = WEIR_OK;
    if (settings.table >= 0) {
        status = record_table(out, TABLE_JSON, settings.table, job->reader, job->filter, NULL, error);
        fputc('\n', out);
        return status;
    }
    json_print(out, "{'database': %s", weir_reader_path(job->reader));
    for (int i = 0; record_table_names[i] && status == WEIR_OK; i++) {
        json_print(out, ",\n%s: ", record_table_names[i]);
        status = record_table(out, TABLE_JSON, i, job->reader, job->filter, NULL, error);
    }
    fputs("}\n", out);
    return status;
}

static int write_csv(const struct job *job, FILE *out, weir_error *error)
{
    return record_table(out, TABLE_CSV, settings.table, job->reader, job->filter, NULL, error);
}

static int write_openmetrics(const struct job *job, FILE *out, weir_error *error)
{
    return weir_openmetrics_export(job->reader, job->filter, settings.laps, out, error);
}

/* Opens the output and writes it; removes it if that fails. */
static int write_file(const struct job *job, const char *path,
                      int (*write)(const struct job *job, FILE *out, weir_error *error))
{
    output out;
    weir_error error = { 0 };
    int exit_status = output_open(job->call, path, file_kinds[settings.format], settings.force, &out);
    if (exit_status != TOOL_DONE)
        return exit_status;
    int status = write(job, out.file, &error);
    exit_status = output_close(job->call, &out, status == WEIR_OK);
    return status == WEIR_OK ? exit_status : fail_unless_ok(job, status, &error);
}

static int write_csv_folder(const struct job *job)
{
    int exit_status = output_make_folder(job->call, settings.output);
    for (int pass = 0; pass < 2; pass++) /* all are checked before the first one is written */
        for (int i = 0; record_table_names[i] && exit_status == TOOL_DONE; i++) {
            char *path = memory_format("%s/%s.csv", settings.output, record_table_names[i]);
            settings.table = i;
            exit_status = pass == 0 ? output_allow(job->call, path, WEIR_OUTPUT_CSV, settings.force, 0)
                                    : write_file(job, path, write_csv);
            free(path);
        }
    return exit_status;
}

/* -- the command */

/* A run without records can be exported, unless filters select records. */
static int check_something(const struct job *job)
{
    static const weir_record_kind kinds[] = { WEIR_RECORD_RUN, WEIR_RECORD_TASK, WEIR_RECORD_QUEUE, WEIR_RECORD_EVENT,
                                              WEIR_RECORD_FAILURE };
    const weir_filter *f = job->filter;
    bool narrow = f->name || f->start_unix_ns != 0 || f->end_unix_ns != 0 || f->by_step || f->phase || f->mode ||
                  f->from_phase || f->until_phase || job->call->shared.between.given || job->call->shared.part;
    weir_error error = { 0 };
    bool found = false;
    for (size_t i = narrow ? 1 : 0; i < sizeof kinds / sizeof kinds[0] && !found; i++)
        if (weir_reader_has(job->reader, kinds[i], f, &found, &error) != WEIR_OK)
            return tool_fail(job->call, &error);
    if (found)
        return TOOL_DONE;
    return tool_nothing(job->call, "%s: %s", weir_reader_path(job->reader),
                        narrow ? "no records match the filters" : "no such run");
}

static int check_settings(const tool_call *call)
{
    if (settings.format < 0)
        return tool_refuse(call, "--format is missing: openmetrics, tensorboard, csv or json");
    if (settings.table >= 0 && settings.format != CSV && settings.format != JSON)
        return tool_refuse(call, "--table: only for csv and json");
    if (settings.laps && settings.format != OPENMETRICS)
        return tool_refuse(call, "--laps: only for openmetrics; the other formats always have every lap");
    if (settings.format == CSV && settings.table < 0 && !settings.output)
        return tool_refuse(call, "csv writes one file per table: name a folder with -o, or one table with --table");
    if (settings.format == TENSORBOARD && !settings.output)
        return tool_refuse(call, "tensorboard needs a folder: name one with -o");
    return TOOL_DONE;
}

static int write_tensorboard(const struct job *job)
{
    weir_error error = { 0 };
    int status = weir_tensorboard_export(job->reader, job->filter, settings.output, &error);
    return fail_unless_ok(job, status, &error);
}

static int write_export(const struct job *job)
{
    switch ((export_format)settings.format) {
    case OPENMETRICS: return write_file(job, settings.output, write_openmetrics);
    case TENSORBOARD: return write_tensorboard(job);
    case JSON: return write_file(job, settings.output, write_json);
    case CSV: break;
    }
    return settings.table >= 0 ? write_file(job, settings.output, write_csv) : write_csv_folder(job);
}

static int run(tool_call *call)
{
    weir_reader *reader;
    weir_filter filter;
    int exit_status = check_settings(call);
    if (exit_status == TOOL_DONE)
        exit_status = tool_open(call, call->words[0], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;

    struct job job = { call, reader, &filter };
    exit_status = check_something(&job);
    if (exit_status == TOOL_DONE)
        exit_status = write_export(&job);
    weir_reader_close(reader);
    return exit_status;
}

const tool_command tool_export = {
    .name = "export",
    .words = "[DB] --format FORMAT",
    .max_words = 1,
    .summary = "export records for Prometheus, TensorBoard and others",
    .help =
        "Writes records in formats that other tools read.\n\n"
        "openmetrics: sums and histograms of each stage and queue as OpenMetrics text, for Prometheus and compatible "
        "tools; promtool check metrics accepts it. --laps exports the history, for promtool tsdb create-blocks-from "
        "openmetrics. Programs can also keep such a file up to date while they run: see weir/openmetrics.h.\n\n"
        "tensorboard: an event file for each run, in a separate folder below DIR, with scalars and histograms of "
        "each stage and queue by lap. Programs can also write them while they run: see weir/tensorboard.h.\n\n"
        "csv and json: every record. JSON is an object with an array for each table; CSV has one file per table, or "
        "a single table. Times are in seconds, points in time in Unix seconds, sizes in bytes, shares from 0 to "
        "1.\n\n"
        "A file is replaced as a whole when it is complete. A run may write to the database at the same time: the "
        "export is a consistent snapshot.",
    .examples = "weir export --format openmetrics -o weir.prom\n"
                "weir export --format openmetrics --laps -o weir.om\n"
                "promtool tsdb create-blocks-from openmetrics weir.om data\n"
                "weir export --format tensorboard -o logs\n"
                "tensorboard --logdir logs\n"
                "weir export --format csv -o tables\n"
                "weir export --format csv --table failures --since -1h\n"
                "weir export --format json | jq '.runs[].command'\n",
    .shared = TOOL_DB | TOOL_FILTER,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
