/* weir report: a run as a single HTML file that needs no network. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/verdict.h>

#include "common/format.h"
#include "tools/cli/memory.h"
#include "tools/cli/output_file.h"
#include "tools/commands/command_table.h"
#include "tools/view/gnuplot_process.h"
#include "tools/view/metric_table.h"
#include "tools/view/record_table.h"

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
    ":root{color-scheme:light dark;--text:#1d1d1f;--back:#fff;--line:#ddd;--soft:#f5f5f5;--warn:#d55e00}"
    "@media(prefers-color-scheme:dark){:root{--text:#e6e6e6;--back:#16181c;--line:#3a3d44;--soft:#22252b;--warn:#"
    "ff9a52}"
    "svg{filter:invert(.91) hue-rotate(180deg)}}"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1152px;padding:0 1em;color:var(--text);"
    "background:var(--back)}"
    "h1{font-size:1.6em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid var(--line)}"
    "table{border-collapse:collapse;font-size:.85em;font-variant-numeric:tabular-nums;margin-bottom:1em;"
    "display:block;overflow-x:auto}"
    "th,td{padding:.2em .6em;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;"
    "vertical-align:top}"
    ".words{text-align:left;white-space:normal;overflow-wrap:anywhere}td.words{min-width:8em}"
    "th.words,td.words:first-child{overflow-wrap:normal;min-width:0}svg{max-width:"
    "100%;height:auto}"
    "pre{background:var(--soft);padding:1em;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85em}"
    ".lead{font-size:1.1em}.about{color:#888}"
    ".flow{display:flex;flex-wrap:wrap;align-items:center}.flow>div+div::before{content:'';padding:0 .6em}"
    ".flow>.next::before{content:'\\2192'}"
    ".flow>div{display:flex;align-items:center}.flow p{background:var(--soft);border:1px solid var(--line);"
    "border-radius:6px;padding:.3em .8em;margin:.2em}.flow .limit{border:3px solid var(--warn)}";

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

/* Writes it into the page. A page without pictures is complete only where gnuplot is not installed. */
static int put_picture(FILE *out, bool is_overview, const series_set *set, weir_error *error)
{
    const drawing_plan plan = {
        .medium = WEIR_OUTPUT_SVG, .title = "", .overview = is_overview, .details = !is_overview
    };
    char problem[200];
    put_heading(out, is_overview ? "The run over time" : "Details over time");
    if (gnuplot_run(&plan, set, out, problem, sizeof problem))
        return WEIR_OK;
    if (strcmp(problem, gnuplot_missing) != 0)
        return weir_error_set(error, WEIR_EIO, 0, "%s", problem);
    put_paragraph(out, "", problem);
    return WEIR_OK;
}

/* -- tables */

static void put_metric_tables(FILE *out, const weir_totals *totals)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        const weir_total_list *list = &totals->of[subject];
        if (list->count)
            put_heading(out, metric_subject_title(subject));
        for (size_t i = 0; i < list->count; i += METRIC_MAX_UPRIGHT) {
            const weir_total *shown[METRIC_MAX_UPRIGHT];
            const char *titles[METRIC_MAX_UPRIGHT];
            size_t count = 0;
            for (; count < METRIC_MAX_UPRIGHT && i + count < list->count; count++) {
                shown[count] = &list->all[i + count];
                titles[count] = shown[count]->key.name;
            }
            metric_put_upright(out, TABLE_HTML, shown, titles, count);
        }
    }
}

/* -- the pipeline */

static const weir_total *find_node(const weir_totals *totals, const char *name)
{
    static const weir_subject subjects[] = { WEIR_SUBJECT_STAGE, WEIR_SUBJECT_FLOW, WEIR_SUBJECT_QUEUE };
    for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++)
        for (size_t i = 0; i < totals->of[subjects[s]].count; i++)
            if (strcmp(totals->of[subjects[s]].all[i].key.name, name) == 0)
                return &totals->of[subjects[s]].all[i];
    return NULL;
}

static void put_share(FILE *out, const weir_totals *totals, const char *name, const char *measure, const char *title)
{
    const weir_total *total = find_node(totals, name);
    double share = total ? weir_total_value(total, weir_measure_find(total->subject, measure)) : NAN;
    if (isfinite(share))
        fprintf(out, "<br>%s %.0f %%", title, 100 * share);
}

typedef struct pipeline_drawing {
    FILE *out;
    const weir_totals *totals;
    const weir_verdict *verdict;
    char *last; /* the name of the node before */
} pipeline_drawing;

/* Whether one of these queues is that node's: of a stage "NAME_queue", of a route "NAME.BRANCH_queue". */
static bool takes_from(const char *inputs, const char *node)
{
    const char *found = node ? strstr(inputs, node) : NULL;
    return found && (found[strlen(node)] == '_' || found[strlen(node)] == '.');
}

/* Its slots, what they did, and how often there was something in its queue; the limit has a border. An arrow comes from
   the node before; where it takes from another one, it says so. */
static int put_node(void *self, const weir_record *record, weir_error *error)
{
    pipeline_drawing *p = self;
    const weir_stage_record *stage = &record->stage;
    bool is_limit = strcmp(p->verdict->name, stage->name) == 0 || strcmp(p->verdict->name, stage->queue_name) == 0;
    bool runs_tasks = strcmp(stage->kind, "stage") == 0 || strcmp(stage->kind, "source") == 0;
    (void)error;
    bool is_next = takes_from(stage->inputs, p->last);
    fprintf(p->out, "<div%s><p%s><b>", is_next ? " class=\"next\"" : "", is_limit ? " class=\"limit\"" : "");
    html_text(p->out, stage->name);
    fprintf(p->out, "</b><br>%s, %" PRId64 " slot%s", stage->kind, stage->concurrency,
            stage->concurrency == 1 ? "" : "s");
    if (*stage->inputs && (!is_next || strchr(stage->inputs, ' '))) {
        fputs("<br>takes from ", p->out);
        html_text(p->out, stage->inputs);
    }
    if (runs_tasks)
        put_share(p->out, p->totals, stage->name, "busy_share", "busy");
    put_share(p->out, p->totals, stage->queue_name, "occupancy_rate", "queue occupied");
    fputs("</p></div>\n", p->out);
    free(p->last);
    p->last = memory_copy(stage->name);
    return WEIR_OK;
}

static int put_pipeline(FILE *out, weir_reader *reader, int64_t run_id, const weir_totals *totals,
                        const weir_verdict *verdict, weir_error *error)
{
    pipeline_drawing drawing = { out, totals, verdict, NULL };
    put_heading(out, "Pipeline");
    fputs("<div class=\"flow\">\n", out);
    int status =
        weir_reader_each(reader, WEIR_RECORD_STAGE, &(weir_filter){ .run_id = run_id }, put_node, &drawing, error);
    fputs("</div>\n", out);
    free(drawing.last);
    return status;
}

/* -- lists */

static int put_lists(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    static const struct {
        const char *table, *heading;
        bool is_slowest;
    } lists[] = { { "items", "Slowest items", true },
                  { "failures", "Failures (the slowest first)", true },
                  { "events", "Events", false },
                  { "stages", "Settings", false } };
    weir_filter slowest = *filter, own = *filter;
    int status = WEIR_OK;
    slowest.longest_first = true;
    slowest.limit = settings.top;
    own.name = NULL;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && status == WEIR_OK; i++) {
        int which = record_table_find(lists[i].table);
        const weir_filter *chosen = lists[i].is_slowest ? &slowest : &own;
        bool found = false;
        status = weir_reader_has(reader, record_table_kind(which), chosen, &found, error);
        if (status != WEIR_OK || !found)
            continue;
        put_heading(out, lists[i].heading);
        status = record_table(out, TABLE_HTML, which, reader, chosen, NULL, error);
    }
    return status;
}

/* -- the page */

static void put_fact(FILE *out, const char *name, const char *value)
{
    if (!*value)
        return;
    fprintf(out, "<tr><th class=\"words\">%s</th><td class=\"words\">", name);
    html_text(out, value);
    fputs("</td></tr>\n", out);
}

static int put_folder(void *out, const weir_row *row, weir_error *error)
{
    (void)error;
    put_fact(out, "Folder", weir_row_text(row, 0));
    return WEIR_EOF;
}

static void put_facts(FILE *out, weir_reader *reader, const weir_run_record *run)
{
    char start[64] = "", duration[WEIR_FORMAT_BYTES] = "";
    time_t started = (time_t)(run->started_unix_ns / WEIR_SECOND);
    struct tm local;
    if (run->started_unix_ns && localtime_r(&started, &local))
        strftime(start, sizeof start, "%Y-%m-%d %H:%M:%S %Z", &local);
    if (run->has_ended)
        weir__text_format_time(duration, (double)(run->ended_unix_ns - run->started_unix_ns) / 1e9);
    fputs("<table>\n", out);
    put_fact(out, "Start", start);
    put_fact(out, "Duration", duration);
    put_fact(out, "State", weir_run_state_name(weir_run_state_of(run)));
    put_fact(out, "Command", run->command);
    put_fact(out, "Machine", run->machine);
    put_fact(out, "Node", run->node_id);
    put_fact(out, "weir", run->version);
    /* Where relative paths begin, if the program says so. The texts of the run are not valid any more. */
    weir_reader_select(reader, &(weir_filter){ .run_id = run->run_id },
                       "SELECT detail FROM events WHERE event_name = 'working_directory' ORDER BY id", NULL,
                       put_folder, out, NULL);
    fputs("</table>\n", out);
}

static void put_page_head(FILE *out, weir_reader *reader, const weir_run_record *run, const weir_totals *totals,
                          const weir_verdict *verdict)
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
    snprintf(text, sizeof text, "Limit: %s", verdict->sentence);
    put_paragraph(out, "lead", text);
    if (weir_reader_lacks(reader))
        put_paragraph(out, "", weir_reader_lacks(reader));
    put_facts(out, reader, run);
}

/* The evidence and the advice. */
static void put_verdict(FILE *out, const weir_verdict *verdict)
{
    char *text = NULL;
    size_t size;
    FILE *memory = memory_file_open(&text, &size);
    weir_verdict_write(verdict, WEIR_VERDICT_ALL | WEIR_VERDICT_CODE, 0, memory);
    memory_file_close(memory);
    put_heading(out, "What limits it");
    fputs("<pre>", out);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        html_text(out, line);
        fputs(rest ? "\n" : "", out);
    }
    fputs("</pre>\n", out);
    free(text);
}

/* First what answers the question, then the details. */
static int write_parts(FILE *out, weir_reader *reader, const weir_filter *filter, const weir_totals *totals,
                       const weir_verdict *verdict, const series_set *set, weir_error *error)
{
    weir_run_record run; /* its texts are valid until the next call for the reader */
    int status =
        weir_reader_find_run(reader, filter->run_id == WEIR_ALL_RUNS ? WEIR_LAST_RUN : filter->run_id, &run, error);
    if (status != WEIR_OK)
        return status;
    int64_t run_id = run.run_id;
    put_page_head(out, reader, &run, totals, verdict);
    status = put_picture(out, true, set, error);
    if (status == WEIR_OK)
        status = put_pipeline(out, reader, run_id, totals, verdict, error);
    if (status == WEIR_OK) {
        put_verdict(out, verdict);
        put_metric_tables(out, totals);
        status = put_picture(out, false, set, error);
    }
    if (status == WEIR_OK)
        status = put_lists(out, reader, filter, error);
    fputs("</body></html>\n", out);
    return status;
}

static int write_page(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    weir_totals totals;
    weir_verdict *verdict = NULL;
    series_set set = { 0 };
    int status = weir_totals_read(reader, filter, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, error);
    if (status != WEIR_OK)
        return status;
    status = weir_verdict_explain(reader, filter, &verdict, error);
    if (status == WEIR_OK)
        status = series_read(reader, filter, &set, error);
    if (status == WEIR_OK)
        status = write_parts(out, reader, filter, &totals, verdict, &set, error);
    series_free(&set);
    weir_verdict_free(verdict);
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
    exit_status = output_open(call, settings.output, WEIR_OUTPUT_PAGE, settings.force, &out);
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
    .words = "[DB]",
    .max_words = 1,
    .summary = "write a run as one HTML file",
    .help =
        "Writes a page with everything about a run: the picture of weir plot that shows what it did and what limited "
        "it, the pipeline, what would help, the metrics of stages, queues, sources and "
        "thread pools, plots, the slowest items, failures, events, settings and the machine. It is "
        "one file that opens in any browser, light or dark, without a network.\n\n"
        "gnuplot draws the plots and must be installed (Debian and Ubuntu: gnuplot-nox); without it the page "
        "says so in their place.",
    .examples = "weir report\n"
                "weir report --run 3 --since +1m -o run.html\n",
    .shared = TOOL_DB | TOOL_FILTER,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
