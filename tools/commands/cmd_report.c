/* weir report: a run as a single HTML file that needs no network. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/summary.h>
#include <weir/verdict.h>

#include "command_table.h"
#include "format.h"
#include "gnuplot_process.h"
#include "memory.h"
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
    ":root{color-scheme:light dark;--text:#1d1d1f;--back:#fff;--line:#ddd;--soft:#f5f5f5;--warn:#d55e00}"
    "@media(prefers-color-scheme:dark){:root{--text:#e6e6e6;--back:#16181c;--line:#3a3d44;--soft:#22252b;--warn:#"
    "ff9a52}"
    "img{filter:invert(1) hue-rotate(180deg)}}"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1152px;padding:0 1em;color:var(--text);"
    "background:var(--back)}"
    "h1{font-size:1.6em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid var(--line)}"
    "table{border-collapse:collapse;font-size:.85em;font-variant-numeric:tabular-nums;margin-bottom:1em}"
    "th,td{padding:.2em .6em;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;"
    "vertical-align:top}"
    ".words{text-align:left;white-space:normal;overflow-wrap:anywhere}img,svg{max-width:100%}"
    "pre{background:var(--soft);padding:1em;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85em}"
    ".lead{font-size:1.1em}.about{color:#888}"
    "svg text{fill:var(--text);font:13px system-ui,sans-serif}svg .small{font-size:11px}"
    "svg rect{fill:var(--soft);stroke:var(--line)}svg .limit{stroke:var(--warn);stroke-width:3}"
    "svg path{stroke:var(--text);fill:none}";

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

enum { MAX_NODES = 64, NODE_WIDTH = 132, NODE_HEIGHT = 62, NODE_X = 176, NODE_Y = 82 };

/* A stage, source, merge, route or sink in the drawing; a column is as far from the sources as its inputs allow. */
typedef struct node {
    char *name, *queue, *inputs, *kind;
    int64_t slots;
    int column, row;
} node;

typedef struct pipeline_drawing {
    node nodes[MAX_NODES];
    size_t count;
    int num_columns, num_rows;
} pipeline_drawing;

/* "decode" of "0:1:decode[10]" */
static const char *bare_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

/* Whether the stage takes its items from the other: inputs has the names of the queues or stages. */
static bool has_input(const pipeline_drawing *p, const node *to, const node *from)
{
    if (*to->inputs)
        return strstr(to->inputs, from->name) || strstr(to->inputs, from->queue);
    return to > p->nodes && from == to - 1 && strcmp(to->kind, "source") != 0;
}

static int add_pipeline_node(void *self, const weir_record *record, weir_error *error)
{
    pipeline_drawing *p = self;
    const weir_stage_record *stage = &record->stage;
    (void)error;
    if (p->count == MAX_NODES)
        return WEIR_OK;
    node *own = &p->nodes[p->count++];
    *own = (node){ memory_copy(stage->name),
                   memory_copy(stage->queue_name),
                   memory_copy(stage->inputs),
                   memory_copy(stage->kind),
                   stage->concurrency,
                   0,
                   0 };
    for (const node *other = p->nodes; other < own; other++)
        if (has_input(p, own, other) && other->column >= own->column)
            own->column = other->column + 1;
    for (const node *other = p->nodes; other < own; other++)
        own->row += other->column == own->column;
    p->num_columns = own->column >= p->num_columns ? own->column + 1 : p->num_columns;
    p->num_rows = own->row >= p->num_rows ? own->row + 1 : p->num_rows;
    return WEIR_OK;
}

static const weir_total *total_of(const weir_totals *totals, const char *name)
{
    static const weir_subject subjects[] = { WEIR_SUBJECT_STAGE, WEIR_SUBJECT_FLOW, WEIR_SUBJECT_QUEUE };
    for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++)
        for (size_t i = 0; i < totals->of[subjects[s]].count; i++)
            if (strcmp(totals->of[subjects[s]].all[i].key.name, name) == 0)
                return &totals->of[subjects[s]].all[i];
    return NULL;
}

/* "96 %"; "" = not known. */
static const char *share_text(char text[32], const weir_totals *totals, const char *name, const char *measure)
{
    const weir_total *total = total_of(totals, name);
    double share = total ? weir_total_value(total, weir_measure_find(total->subject, measure)) : NAN;
    *text = '\0';
    if (isfinite(share))
        snprintf(text, 32, "%.0f %%", 100 * share);
    return text;
}

static void put_arrow(FILE *out, const node *from, const node *to, const weir_totals *totals)
{
    char share[32];
    int x = 10 + from->column * NODE_X + NODE_WIDTH, y = 10 + from->row * NODE_Y + NODE_HEIGHT / 2;
    int end_x = 10 + to->column * NODE_X, end_y = 10 + to->row * NODE_Y + NODE_HEIGHT / 2, middle = (x + end_x) / 2;
    fprintf(out, "<path d=\"M%d %d C%d %d %d %d %d %d m-6 -4 l6 4 l-6 4\"/>", x, y, middle, y, middle, end_y, end_x,
            end_y);
    fprintf(out, "<text class=\"small\" x=\"%d\" y=\"%d\">%s</text>\n", x + 4, y - 6,
            share_text(share, totals, from->queue, "occupancy_rate"));
}

/* Each stage with its slots and what they did, arrows with the occupancy of the queue; the limit has a border. */
static int put_pipeline(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t run_id,
                        const weir_totals *totals, const weir_verdict *verdict, weir_error *error)
{
    pipeline_drawing p = { .count = 0 };
    weir_filter own = { .run_id = run_id, .node_id = filter->node_id };
    char share[32];
    int status = weir_reader_each(reader, WEIR_RECORD_STAGE, &own, add_pipeline_node, &p, error);
    if (status == WEIR_OK && p.count > 0) {
        put_heading(out, "Pipeline");
        fprintf(out, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\">\n", p.num_columns * NODE_X - 24,
                p.num_rows * NODE_Y, p.num_columns * NODE_X - 24);
    }
    for (size_t i = 0; i < p.count; i++) {
        const node *n = &p.nodes[i];
        bool is_limit = strcmp(verdict->name, n->name) == 0 || strcmp(verdict->name, n->queue) == 0;
        int x = 10 + n->column * NODE_X, y = 10 + n->row * NODE_Y;
        for (size_t j = 0; j < i; j++)
            if (has_input(&p, n, &p.nodes[j]))
                put_arrow(out, &p.nodes[j], n, totals);
        fprintf(out, "<rect%s x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/><text x=\"%d\" y=\"%d\">",
                is_limit ? " class=\"limit\"" : "", x, y, NODE_WIDTH, NODE_HEIGHT, x + 10, y + 20);
        html_text(out, bare_name(n->name));
        fprintf(out, "</text><text class=\"small\" x=\"%d\" y=\"%d\">%s, %" PRId64 " slot%s</text>", x + 10, y + 36,
                n->kind, n->slots, n->slots == 1 ? "" : "s");
        if (*share_text(share, totals, n->name, "busy_share") && strcmp(n->kind, "sink") != 0 &&
            strcmp(n->kind, "merge") != 0)
            fprintf(out, "<text class=\"small\" x=\"%d\" y=\"%d\">busy %s</text>", x + 10, y + 52, share);
        fputc('\n', out);
    }
    for (size_t i = 0; i < p.count; i++) {
        free(p.nodes[i].name);
        free(p.nodes[i].queue);
        free(p.nodes[i].inputs);
        free(p.nodes[i].kind);
    }
    if (status == WEIR_OK && p.count > 0) {
        fputs("</svg>\n", out);
        put_paragraph(out, "about", "At the arrows: the share of the time in which the queue was not empty.");
    }
    return status;
}

static int put_pictures(FILE *out, const series_set *set, weir_error *error)
{
    int status = WEIR_OK;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && status == WEIR_OK; subject++) {
        drawing_plan plan = { .medium = DRAWING_SVG, .title = "", .width_in = 12, .clock = true };
        char heading[64];
        plan.shown[subject] = true;
        if (set->lists[subject].count == 0)
            continue;
        snprintf(heading, sizeof heading, "%s over time", metric_subject_title(subject));
        put_heading(out, heading);
        status = put_picture(out, &plan, set, heading, error);
    }
    return status;
}

static int put_record_list(FILE *out, weir_reader *reader, int which, weir_record_kind kind,
                           const weir_filter *filter, const char *heading, weir_error *error)
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
        put_record_list(out, reader, record_table_find("items"), WEIR_RECORD_ITEM, &slowest, "Slowest items", error);
    if (status == WEIR_OK)
        status = put_record_list(out, reader, record_table_find("failures"), WEIR_RECORD_FAILURE, &slowest,
                                 "Failures (the slowest first)", error);
    if (status == WEIR_OK)
        status = put_record_list(out, reader, record_table_find("events"), WEIR_RECORD_EVENT, &own, "Events", error);
    if (status == WEIR_OK)
        status =
            put_record_list(out, reader, record_table_find("stages"), WEIR_RECORD_STAGE, &own, "Settings", error);
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

static void put_facts(FILE *out, const char *path, const weir_run_record *run)
{
    char start[64] = "", duration[WEIR_FORMAT_BYTES] = "", *real = realpath(path, NULL), *slash;
    time_t started = (time_t)(run->started_unix_ns / WEIR_SECOND);
    struct tm local;
    if (run->started_unix_ns && localtime_r(&started, &local))
        strftime(start, sizeof start, "%Y-%m-%d %H:%M:%S %Z", &local);
    if (run->has_ended)
        weir__text_format_time(duration, (double)(run->ended_unix_ns - run->started_unix_ns) / 1e9);
    if (real && (slash = strrchr(real, '/')) != NULL)
        slash[slash == real] = '\0';
    fputs("<table>\n", out);
    put_fact(out, "Start", start);
    put_fact(out, "Duration", duration);
    put_fact(out, "State", weir_run_state_name(weir_run_state_of(run)));
    put_fact(out, "Folder", real ? real : "");
    put_fact(out, "Command", run->command);
    put_fact(out, "Machine", run->machine);
    put_fact(out, "Node", run->node_id);
    put_fact(out, "weir", run->version);
    fputs("</table>\n", out);
    free(real);
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
    put_facts(out, weir_reader_path(reader), run);
}

/* Cuts the text into lines, and frees it. */
static void put_preformatted(FILE *out, char *text)
{
    fputs("<pre>", out);
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        bool has_end = *next == '\n';
        *next = '\0';
        html_text(out, line);
        fputc('\n', out);
        next += has_end;
    }
    fputs("</pre>\n", out);
    free(text);
}

/* The evidence and the advice. */
static void put_verdict(FILE *out, const weir_verdict *verdict)
{
    char *text = NULL;
    size_t size;
    FILE *memory = memory_file_open(&text, &size);
    weir_verdict_write(verdict, true, memory);
    memory_file_close(memory);
    put_heading(out, "What limits it");
    put_preformatted(out, text);
}

static int put_summary(FILE *out, weir_reader *reader, const weir_filter *filter, const weir_totals *totals,
                       weir_error *error)
{
    char *text = NULL;
    size_t size;
    FILE *memory = memory_file_open(&text, &size);
    int status = weir_summary_write_totals(memory, reader, filter, totals, weir_verdict_write_limit, error);
    memory_file_close(memory);
    put_heading(out, "Summary");
    put_preformatted(out, text);
    return status;
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
    drawing_plan overview = { .medium = DRAWING_SVG, .title = "", .overview = true, .width_in = 12, .clock = true };
    put_page_head(out, reader, &run, totals, verdict);
    put_heading(out, "The run over time");
    status = put_picture(out, &overview, set, "The run over time", error);
    if (status == WEIR_OK)
        status = put_pipeline(out, reader, filter, run_id, totals, verdict, error);
    if (status == WEIR_OK) {
        put_verdict(out, verdict);
        put_metric_tables(out, totals);
        status = put_pictures(out, set, error);
    }
    if (status == WEIR_OK)
        status = put_lists(out, reader, filter, error);
    if (status == WEIR_OK)
        status = put_summary(out, reader, filter, totals, error);
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
        status = series_read(reader, filter, true, &set, error);
    if (status == WEIR_OK)
        status = series_read_limits(reader, filter, &set, error);
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
    .help =
        "Writes a page with everything about a run: the picture of weir plot that shows what it did and what limited "
        "it, the pipeline, what would help, the metrics of stages, queues, sources and "
        "thread pools, plots, the slowest items, failures, events, settings, the machine and the summary. It is "
        "one file that opens in any browser, light or dark, without a network.\n\n"
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
