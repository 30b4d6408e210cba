/* weir report: a run as a single HTML file that needs no network. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/summary.h>
#include <weir/verdict.h>

#include "command_table.h"
#include "gnuplot_process.h"
#include "metric_table.h"
#include "output_file.h"
#include "record_table.h"

static struct settings {
    const char *output;
    int64_t top;
    bool force;
} settings = { .top = 20 };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("output", output, option_file), .letter = 'o', .argument = "FILE",
      .help = "the file to write, - is stdout (default: DB's name with .html, in this folder)" },
    { ROW("top", top, option_count), .argument = "N", .help = "at most N slowest items and N failures (default 20)" },
    { ROW("force", force, option_flag), .help = OUTPUT_FORCE_HELP },
    { 0 },
};

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:76em;padding:0 1em;color:#1d1d1f}"
    "h1{font-size:1.6em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid #ccc}"
    "table{border-collapse:collapse;font-size:.85em;font-variant-numeric:tabular-nums}"
    "th,td{padding:.2em .6em;text-align:right;border-bottom:1px solid #e4e4e4;white-space:nowrap}"
    ".words{text-align:left}.wide{overflow-x:auto}img{max-width:100%}"
    "pre{background:#f6f6f6;padding:1em;overflow-x:auto;font-size:.85em}.lead{font-size:1.1em}"
    "@media print{.wide{overflow:visible}}";

/* -- pieces */

static void put_heading(FILE *out, const char *text)
{
    fprintf(out, "<h2>%s</h2>\n", text);
}

static void put_paragraph(FILE *out, const char *class, const char *text)
{
    fprintf(out, "<p%s%s%s>", *class ? " class=\"" : "", class, *class ? "\"" : "");
    html_text(out, text);
    fputs("</p>\n", out);
}

static void put_base64(FILE *out, FILE *in)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char bytes[3];
    for (size_t count; (count = fread(bytes, 1, 3, in)) > 0;) {
        uint32_t bits = (uint32_t)bytes[0] << 16 | (count > 1 ? (uint32_t)bytes[1] << 8 : 0) |
                        (count > 2 ? (uint32_t)bytes[2] : 0);
        fputc(digits[bits >> 18], out);
        fputc(digits[bits >> 12 & 63], out);
        fputc(count > 1 ? digits[bits >> 6 & 63] : '=', out);
        fputc(count > 2 ? digits[bits & 63] : '=', out);
    }
}

/* -- plots: drawn to a temporary file, which is embedded in the page */

/* A page without pictures is complete only where gnuplot is not installed. */
static int put_picture(FILE *out, const drawing_plan *plan, const series_set *set, const char *alternative,
                       weir_error *error)
{
    char problem[200] = "no plot: cannot create a temporary file";
    FILE *picture = tmpfile();
    bool is_drawn = picture && gnuplot_run(plan, set, picture, problem, sizeof problem);
    int status = WEIR_OK;
    if (is_drawn && (ferror(picture) || fseek(picture, 0, SEEK_SET) != 0))
        status = weir_error_set(error, WEIR_EIO, 0, "no plot: cannot write a temporary file");
    else if (is_drawn) {
        fputs("<img src=\"data:image/svg+xml;base64,", out);
        put_base64(out, picture);
        fprintf(out, "\" alt=\"%s\">\n", alternative);
    } else if (strcmp(problem, gnuplot_missing) == 0)
        put_paragraph(out, "", problem);
    else
        status = weir_error_set(error, WEIR_EIO, 0, "%s", problem);
    if (picture)
        fclose(picture);
    return status;
}

static int put_pictures(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    series_set set;
    int status = series_read(reader, filter, SERIES_JOIN_SHORT, &set, error);
    static const char *const headings[NUM_SERIES_KINDS] = { "Stages over time",  "Queues over time",
                                                            "Spans over time",   "Counters over time",
                                                            "Process over time", "Machine over time" };
    for (series_kind kind = 0; kind < NUM_SERIES_KINDS && status == WEIR_OK; kind++) {
        drawing_plan plan = { .medium = DRAWING_SVG, .title = "", .width_in = 12, .height_in = 10, .clock = true };
        plan.shown[kind] = true;
        if (set.lists[kind].count == 0)
            continue;
        put_heading(out, headings[kind]);
        status = put_picture(out, &plan, &set, headings[kind], error);
    }
    series_free(&set);
    return status;
}

/* -- tables */

static void put_metrics(FILE *out, const weir_totals *totals)
{
    static const char *const headings[WEIR_NUM_SUBJECTS] = {
        [WEIR_SUBJECT_STAGE] = "Stages",
        [WEIR_SUBJECT_FLOW] = "Sources, routes, merges and sinks",
        [WEIR_SUBJECT_QUEUE] = "Queues",
        [WEIR_SUBJECT_POOL] = "Thread pools",
        [WEIR_SUBJECT_PROCESS] = "Process",
        [WEIR_SUBJECT_MACHINE] = "Machine",
        [WEIR_SUBJECT_SPAN] = "Spans, frames and markers",
        [WEIR_SUBJECT_COUNTER] = "Counters",
    };
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        if (totals->of[subject].count) {
            put_heading(out, headings[subject]);
            metric_put_list(out, TABLE_HTML, subject, &totals->of[subject]);
        }
}

static int put_records(FILE *out, weir_reader *reader, int which, weir_record_kind kind, const weir_filter *filter,
                       const char *heading, weir_error *error)
{
    bool found = false;
    int status = weir_reader_has(reader, kind, filter, &found, error);
    if (status != WEIR_OK || !found)
        return status;
    put_heading(out, heading);
    return record_table(out, TABLE_HTML, which, reader, filter, NULL, error);
}

static int put_lists(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    weir_filter slowest = *filter, own = *filter;
    slowest.longest_first = true;
    slowest.limit = settings.top;
    own.name = NULL;
    int status =
        put_records(out, reader, record_table_find("items"), WEIR_RECORD_ITEM, &slowest, "Slowest items", error);
    if (status == WEIR_OK)
        status = put_records(out, reader, record_table_find("failures"), WEIR_RECORD_FAILURE, &slowest,
                             "Failures (the slowest first)", error);
    if (status == WEIR_OK)
        status = put_records(out, reader, record_table_find("events"), WEIR_RECORD_EVENT, &own, "Events", error);
    if (status == WEIR_OK)
        status = put_records(out, reader, record_table_find("stages"), WEIR_RECORD_STAGE, &own, "Settings", error);
    return status;
}

/* -- the page */

static void put_head(FILE *out, weir_reader *reader, const weir_run_record *run, const weir_totals *totals)
{
    char text[500];
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          out);
    html_text(out, weir_reader_path(reader));
    fprintf(out, "</title><style>%s</style></head><body>\n<h1>Run %" PRId64 " of ", style, run->run_id);
    html_text(out, weir_reader_path(reader));
    fputs("</h1>\n", out);
    const weir_total *sink = weir_totals_sink_queue(totals);
    if (sink) {
        snprintf(text, sizeof text, "%.2f items per second delivered, %" PRIu64 " in all.",
                 weir_measure_of(sink->subject, "items_per_s", &sink->metrics, sink->elapsed_ns),
                 sink->metrics.queue.num_items);
        put_paragraph(out, "lead", text);
    }
    if (weir_reader_lacks(reader))
        put_paragraph(out, "", weir_reader_lacks(reader));
}

/* Cuts the text into lines. */
static void put_preformatted(FILE *out, char *text)
{
    fputs("<pre>", out);
    for (char *line = text, *next; text && *line; line = next) {
        next = line + strcspn(line, "\n");
        bool has_end = *next == '\n';
        *next = '\0';
        html_text(out, line);
        fputc('\n', out);
        next += has_end;
    }
    fputs("</pre>\n", out);
}

static void put_machine(FILE *out, const weir_run_record *run)
{
    const char *const pairs[][2] = { { "State", weir_run_state_name(weir_run_state_of(run)) },
                                     { "Command", run->command },
                                     { "Machine", run->machine },
                                     { "Node", run->node_id },
                                     { "weir", run->version } };
    put_heading(out, "Run and machine");
    fputs("<table>\n", out);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (!*pairs[i][1])
            continue;
        fprintf(out, "<tr><th class=\"words\">%s</th><td class=\"words\">", pairs[i][0]);
        html_text(out, pairs[i][1]);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n", out);
}

/* The verdict, with its evidence and advice. */
static int put_verdict(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    weir_verdict *verdict;
    int status = weir_verdict_explain(reader, filter, &verdict, error);
    if (status != WEIR_OK)
        return status;
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    put_heading(out, "What limits it");
    put_paragraph(out, "lead", verdict->sentence);
    if (memory)
        weir_verdict_write(verdict, true, memory);
    if (!memory || fclose(memory) != 0)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    else
        put_preformatted(out, text);
    free(text);
    weir_verdict_free(verdict);
    return status;
}

static int put_summary(FILE *out, weir_reader *reader, const weir_filter *filter, const weir_totals *totals,
                       weir_error *error)
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int status = weir_summary_write_totals(memory, reader, filter, totals, weir_verdict_write_limit, error);
    if (fclose(memory) != 0 && status == WEIR_OK)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    put_heading(out, "Summary");
    put_preformatted(out, text);
    free(text);
    return status;
}

static int write_page(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    weir_totals totals;
    weir_run_record run;
    int64_t run_id = filter->run_id == WEIR_ALL_RUNS ? WEIR_LAST_RUN : filter->run_id;
    int status = weir_totals_read(reader, filter, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, error);
    if (status != WEIR_OK)
        return status;
    status = weir_reader_find_run(reader, run_id, &run,
                                  error); /* its texts are valid until the next call for the reader */
    if (status == WEIR_OK) {
        put_head(out, reader, &run, &totals);
        put_machine(out, &run);
        status = put_verdict(out, reader, filter, error);
    }
    if (status == WEIR_OK) {
        put_metrics(out, &totals);
        status = put_pictures(out, reader, filter, error);
    }
    if (status == WEIR_OK)
        status = put_lists(out, reader, filter, error);
    if (status == WEIR_OK)
        status = put_summary(out, reader, filter, &totals, error);
    fputs("</body></html>\n", out);
    weir_totals_free(&totals);
    return status;
}

static int run(tool_call *call)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    output out;
    char path[4096];
    int exit_status = tool_open(call, call->words[0], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    if (!settings.output)
        settings.output = output_default_path(call->words[0], ".html", path, sizeof path);
    exit_status = output_open(call, settings.output, OUTPUT_PAGE, settings.force, &out);
    if (exit_status == TOOL_DONE) {
        int status = write_page(out.file, reader, &filter, &error);
        exit_status = output_close(call, &out, status == WEIR_OK);
        if (status != WEIR_OK)
            exit_status = tool_fail(call, &error);
        else if (exit_status == TOOL_DONE && strcmp(settings.output, "-") != 0)
            printf("%s\n", settings.output);
    }
    weir_reader_close(reader);
    return exit_status;
}

const tool_command tool_report = {
    .name = "report",
    .words = "DB",
    .min_words = 1,
    .summary = "write a run as one HTML file",
    .help = "Writes a page with everything about a run: what limits it and what would help, the metrics of stages, "
            "queues, sources and "
            "thread pools, plots, the slowest items, failures, events, settings, the machine and the summary. It is "
            "one file that opens in any browser, without a network.\n\n"
            "gnuplot draws the plots and must be installed (Debian and Ubuntu: gnuplot-nox); without it the page "
            "says so in their place.",
    .examples = "weir report pipeline_stats.db\n"
                "weir report pipeline_stats.db --run 3 --since +1m -o run.html\n",
    .shared = TOOL_FILTER,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
