/* weir export: writes records in the formats of weir/export.h, and as CSV and JSON, whose rows are here. */
#include <stdlib.h>
#include <string.h>

#include <weir/export.h>
#include <weir/verdict.h>

#include "tools/cli/export_rows.h"
#include "tools/cli/memory.h"
#include "tools/cli/output_file.h"
#include "tools/commands/command_table.h"
#include "tools/view/record_table.h"

static struct settings {
    int format; /* an index into formats; -1 = not given */
    int table;  /* -1 = all */
    const char *output;
    weir_export_options options;
} settings = { .format = -1, .table = -1 };

/* -- json and csv */

/* {"database": …, "runs": […], …}, or one table alone */
static int write_json(weir_recording *recording, const weir_filter *filter, const weir_export_options *options,
                      FILE *out, weir_error *error)
{
    int status = WEIR_OK;
    (void)options;
    if (settings.table >= 0) {
        status = record_table(out, TABLE_JSON, settings.table, recording, filter, NULL, error);
        fputc('\n', out);
        return status;
    }
    json_print(out, "{'database': %s", weir_recording_path(recording));
    for (int i = 0; record_table_names[i] && status == WEIR_OK; i++) {
        json_print(out, ",\n%s: ", record_table_names[i]);
        status = record_table(out, TABLE_JSON, i, recording, filter, NULL, error);
    }
    fputs("}\n", out);
    return status;
}

static int write_csv(weir_recording *recording, const weir_filter *filter, const weir_export_options *options,
                     FILE *out, weir_error *error)
{
    (void)options;
    return record_table(out, TABLE_CSV, settings.table, recording, filter, NULL, error);
}

static const weir_export_format csv_format = {
    .name = "csv",
    .kind = WEIR_OUTPUT_CSV,
    .help =
        "csv: every record, in one file per table, or a single table. Times are in seconds, points in time in Unix "
        "seconds, sizes in bytes, shares from 0 to 1.",
    .examples = "weir export --format csv -o tables\n"
                "weir export --format csv --table failures --since -1h\n",
    .write = write_csv,
};

static const weir_export_format json_format = {
    .name = "json",
    .kind = WEIR_OUTPUT_JSON,
    .help = "json: the same records, as an object with an array for each table, or as a single array.",
    .examples = "weir export --format json | jq '.runs[].command'\n",
    .write = write_json,
};

/* -- all formats */

enum { MAX_FORMATS = 32 };
static const weir_export_format *formats[MAX_FORMATS + 1];
static const char *format_names[MAX_FORMATS + 1];

static bool has_tables(const weir_export_format *format)
{
    return format == &csv_format || format == &json_format;
}

static bool has_folder(const weir_export_format *format)
{
    return format->write_folder || format == &csv_format;
}

static void find_formats(void)
{
    size_t count = 0;
    const weir_export_format *format;
    for (size_t i = 0; (format = weir_export_at(i)) && count + 2 < MAX_FORMATS; i++)
        if (format->help)
            formats[count++] = format;
    formats[count++] = &csv_format;
    formats[count++] = &json_format;
    for (size_t i = 0; i < count; i++)
        format_names[i] = formats[i]->name;
}

/* "a, b or c": the names of formats, of which `which` may be NULL = all; to be freed. */
static char *name_list(bool (*which)(const weir_export_format *format), const char *last)
{
    const char *chosen[MAX_FORMATS];
    char *list;
    size_t count = 0, size;
    for (size_t i = 0; formats[i]; i++)
        if (!which || which(formats[i]))
            chosen[count++] = formats[i]->name;
    FILE *file = memory_file_open(&list, &size);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%s%s%s%s",
                i == 0          ? ""
                : i + 1 < count ? ", "
                                : " ",
                i && i + 1 == count ? last : "", i && i + 1 == count ? " " : "", chosen[i]);
    memory_file_close(file);
    return list;
}

/* Frees the names; the text is to be freed. */
static char *with_names(const char *before, char *names, const char *behind)
{
    char *text = memory_format("%s%s%s", before, names, behind);
    free(names);
    return text;
}

/* -- writing */

/* One export in progress. */
struct job {
    const tool_call *call;
    const weir_export_format *format;
    weir_recording *recording;
    const weir_filter *filter;
};

/* Opens the output and writes it; removes it if that fails. */
static int write_file(const struct job *job, const char *path)
{
    output out;
    weir_error error = { 0 };
    int exit_status = output_open(job->call, path, job->format->kind, settings.options.force, &out);
    if (exit_status != TOOL_DONE)
        return exit_status;
    int status = weir_export_write(job->format, job->recording, job->filter, &settings.options, out.file, &error);
    exit_status = output_close(job->call, &out, status == WEIR_OK);
    return status == WEIR_OK ? exit_status : tool_fail(job->call, &error);
}

/* A file for each table. */
static int write_tables(const struct job *job)
{
    int exit_status = output_make_folder(job->call, settings.output);
    for (int pass = 0; pass < 2; pass++) /* all are checked before the first one is written */
        for (int i = 0; record_table_names[i] && exit_status == TOOL_DONE; i++) {
            char *path = memory_format("%s/%s.%s", settings.output, record_table_names[i], job->format->name);
            settings.table = i;
            exit_status = pass == 0 ? output_allow(job->call, path, job->format->kind, settings.options.force, 0)
                                    : write_file(job, path);
            free(path);
        }
    return exit_status;
}

static int write_folder(const struct job *job)
{
    weir_error error = { 0 };
    int status = weir_export_write_folder(job->format, job->recording, job->filter, &settings.options,
                                          settings.output, &error);
    return status == WEIR_OK ? TOOL_DONE : tool_fail(job->call, &error);
}

static int write_export(const struct job *job)
{
    if (job->format->write_folder)
        return write_folder(job);
    bool is_folder = has_folder(job->format) && settings.table < 0;
    return is_folder ? write_tables(job) : write_file(job, settings.output);
}

/* -- the command */

static bool selects_records(const struct job *job)
{
    const weir_filter *f = job->filter;
    return f->name || f->start_unix_ns != 0 || f->end_unix_ns != 0 || f->by_step || f->phase || f->mode ||
           f->from_phase || f->until_phase || job->call->shared.from_mode || job->call->shared.until_mode ||
           job->call->shared.between.given || job->call->shared.section;
}

/* A run without records can be exported, unless filters select records. */
static int check_something(const struct job *job)
{
    static const weir_record_kind kinds[] = { WEIR_RECORD_RUN, WEIR_RECORD_TASK, WEIR_RECORD_QUEUE, WEIR_RECORD_EVENT,
                                              WEIR_RECORD_FAILURE };
    bool narrow = selects_records(job);
    weir_error error = { 0 };
    bool found = false;
    for (size_t i = narrow ? 1 : 0; i < sizeof kinds / sizeof kinds[0] && !found; i++)
        if (weir_recording_has(job->recording, kinds[i], job->filter, &found, &error) != WEIR_OK)
            return tool_fail(job->call, &error);
    if (found)
        return TOOL_DONE;
    return tool_nothing(job->call, "%s: %s", weir_recording_path(job->recording),
                        narrow ? "no records match the filters" : "no such run");
}

static int refuse_names(const tool_call *call, const char *before, char *names)
{
    int exit_status = tool_refuse(call, "%s%s", before, names);
    free(names);
    return exit_status;
}

static int check_settings(const tool_call *call)
{
    weir_error error = { 0 };
    if (settings.format < 0)
        return refuse_names(call, "--format is missing: ", name_list(NULL, "or"));
    const weir_export_format *format = formats[settings.format];
    if (settings.table >= 0 && !has_tables(format))
        return refuse_names(call, "--table: only for ", name_list(has_tables, "and"));
    if (weir_export_check(format, true, &settings.options, &error) != WEIR_OK)
        return tool_refuse(call, "--%s", error.message);
    if (has_tables(format) && has_folder(format) && settings.table < 0 && !settings.output)
        return tool_refuse(call, "%s writes one file per table: name a folder with -o, or one table with --table",
                           format->name);
    if (format->write_folder && !settings.output)
        return tool_refuse(call, "%s needs a folder: name one with -o", format->name);
    return TOOL_DONE;
}

static int run(tool_call *call)
{
    weir_recording *recording;
    weir_filter filter;
    int exit_status = check_settings(call);
    if (exit_status == TOOL_DONE)
        exit_status = tool_open(call, call->words[0], &recording, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;

    settings.options.limit_rules = weir_verdict_limit_rules();
    struct job job = { call, formats[settings.format], recording, &filter };
    exit_status = check_something(&job);
    if (exit_status == TOOL_DONE)
        exit_status = write_export(&job);
    weir_recording_close(recording);
    return exit_status;
}

/* -- what the help, the man page and the completion say */

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row *make_rows(void)
{
    export_rows rows = { 0 };
    export_rows_add(&rows, (option_row){ ROW("format", format, option_choice), .letter = 'f', .argument = "FORMAT",
                                         .choices = format_names,
                                         .help = with_names("", name_list(NULL, "or"), " (required)") });
    export_rows_add(
        &rows, (option_row){ ROW("output", output, option_file), .letter = 'o', .argument = "FILE|DIR",
                             .help = with_names("output file (default: stdout); for ", name_list(has_folder, "and"),
                                                " a folder, except with --table") });
    export_rows_add(
        &rows, (option_row){ ROW("table", table, option_choice), .argument = "TABLE", .choices = record_table_names,
                             .help = with_names("", name_list(has_tables, "and"),
                                                ": only one table: runs, nodes, stages, phases, tasks, flow, "
                                                "queues, pools, process, machine, spans, counters, events, "
                                                "failures, items, contents") });
    for (size_t i = 0; formats[i]; i++)
        export_rows_add_settings(&rows, formats[i], true, offsetof(struct settings, options));
    export_rows_add(&rows, (option_row){ ROW("force", options.force, option_flag), .help = OUTPUT_FORCE_HELP });
    return export_rows_end(&rows);
}

/* The texts of all formats, with what follows. */
static tool_made make_texts(void)
{
    char *help, *examples;
    size_t size;
    FILE *file = memory_file_open(&help, &size);
    for (size_t i = 0; formats[i]; i++)
        fprintf(file, "%s\n\n", formats[i]->help);
    fputs("A file is replaced as a whole when it is complete. A run may write to the database at the same time: the "
          "export is a consistent snapshot.",
          file);
    memory_file_close(file);
    file = memory_file_open(&examples, &size);
    for (size_t i = 0; formats[i]; i++)
        fputs(formats[i]->examples ? formats[i]->examples : "", file);
    memory_file_close(file);
    return (tool_made){ .help = help, .examples = examples };
}

static const tool_made *make_export(void)
{
    static tool_made made;
    if (!made.options) {
        find_formats();
        made = make_texts();
        made.options = make_rows();
    }
    return &made;
}

const tool_command tool_export = {
    .name = "export",
    .words = "[DB] --format FORMAT",
    .max_words = 1,
    .summary = "export records for Prometheus, TensorBoard and others",
    .help = "Writes records in formats that other tools read.",
    .examples = "",
    .make = make_export,
    .shared = TOOL_DB | TOOL_FILTER,
    .default_run = WEIR_LAST_RUN,
    .settings = &settings,
    .run = run,
};
