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
#include "tools/picture/inks.h"
#include "tools/picture/run_picture.h"
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

/* What inks_write_page_style() does not have. Of the two widths of a picture, one is shown. */
static const char style[] =
    "h1{font-size:1.5em;overflow-wrap:anywhere}h2{font-size:1.15em;margin:1.6em 0 .5em;border-bottom:1px solid "
    "var(--line)}"
    "details{margin:.4em 0}summary{cursor:pointer}summary h2{display:inline-block;margin:.2em 0;border:0}"
    "table{border-collapse:collapse;font-size:.85em;font-variant-numeric:tabular-nums;margin-bottom:1em;"
    "display:block;overflow-x:auto}"
    "th,td{padding:.2em .6em;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;"
    "vertical-align:top}"
    ".words{text-align:left;white-space:normal;overflow-wrap:anywhere}td.words{min-width:8em}"
    "th.words,td.words:first-child{overflow-wrap:normal;min-width:0}"
    "pre{background:var(--soft);padding:1em;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85em}"
    ".lead{font-size:1.05em;overflow-wrap:anywhere}.for-phone{display:none}"
    ".panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));gap:.6em}"
    ".names span{margin-right:1em;font-size:.85em;overflow-wrap:anywhere}"
    "@media(max-width:700px){.for-screen{display:none}.for-phone{display:block}body{padding:0 .3em}pre{padding:.5em}}"
    ".flow{display:flex;flex-wrap:wrap;align-items:center}.flow>div+div::before{content:'';padding:0 .6em}"
    ".flow>.next::before{content:'\\2192'}"
    ".flow>div{display:flex;align-items:center}.flow p{background:var(--soft);border:1px solid var(--line);"
    "border-radius:6px;padding:.3em .8em;margin:.2em;overflow-wrap:anywhere}.flow .limit{border:3px solid "
    "var(--warn)}";

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

/* What is there to look into, but not to read first: closed until it is opened. */
static void begin_details(FILE *out, const char *heading)
{
    fprintf(out, "<details><summary><h2>%s</h2></summary>\n", heading);
}

static void end_details(FILE *out)
{
    fputs("</details>\n", out);
}

/* Twice: as wide as a screen, and as a phone, where text keeps its size. */
static void put_picture(FILE *out, const series_set *set)
{
    static const double widths[] = { PICTURE_WIDE, PICTURE_NARROW };
    put_heading(out, "The run over time");
    for (size_t i = 0; i < 2; i++) {
        fprintf(out, "<div class=\"%s\">\n", i ? "for-phone" : "for-screen");
        picture_write(out, &(picture_plan){ .title = "", .width = widths[i] }, set);
        fputs("</div>\n", out);
    }
}

/* The panels of each subject, in text of their own first: a subject without panels has no heading. */
static void put_panels(FILE *out, const series_set *set)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        char *text = NULL;
        size_t size;
        FILE *memory = memory_file_open(&text, &size);
        bool is_any = picture_write_panels(memory, set, subject);
        memory_file_close(memory);
        if (is_any) {
            char *heading = memory_format("%s over time", metric_subject_title(subject));
            begin_details(out, heading);
            fwrite(text, 1, size, out);
            end_details(out);
            free(heading);
        }
        free(text);
    }
}

/* -- tables */

static void put_metric_tables(FILE *out, const weir_totals *totals)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        const weir_total_list *list = &totals->of[subject];
        if (list->count)
            begin_details(out, metric_subject_title(subject));
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
        if (list->count)
            end_details(out);
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

/* Draws a node: its slots, what they did, and how often there was something in its queue. The limit has a border. An
   arrow comes from the node before. Where the node takes from another one, the arrow says so. */
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

static int put_pipeline(FILE *out, weir_recording *recording, int64_t run_id, const weir_totals *totals,
                        const weir_verdict *verdict, weir_error *error)
{
    pipeline_drawing drawing = { out, totals, verdict, NULL };
    put_heading(out, "Pipeline");
    fputs("<div class=\"flow\">\n", out);
    int status = weir_recording_each(recording, WEIR_RECORD_STAGE, &(weir_filter){ .run_id = run_id }, put_node,
                                     &drawing, error);
    fputs("</div>\n", out);
    free(drawing.last);
    return status;
}

/* -- lists */

typedef struct list_part {
    const char *table, *heading;
    bool is_slowest, is_folded;
} list_part;

static const list_part slowest_items = { "items", "Slowest items", true, false };
static const list_part other_lists[] = {
    { "failures", "Failures (the slowest first)", true, false },
    { "events", "Events", false, true },
    { "stages", "Settings", false, true },
};

static int put_list(FILE *out, const list_part *part, weir_recording *recording, const weir_filter *filter,
                    weir_error *error)
{
    weir_filter chosen = *filter;
    int which = record_table_find(part->table);
    bool found = false;
    chosen.longest_first = part->is_slowest;
    chosen.limit = part->is_slowest ? settings.top : 0;
    chosen.name = part->is_slowest ? filter->name : NULL;
    int status = weir_recording_has(recording, record_table_kind(which), &chosen, &found, error);
    if (status != WEIR_OK || !found)
        return status;
    part->is_folded ? begin_details(out, part->heading) : put_heading(out, part->heading);
    status = record_table(out, TABLE_HTML, which, recording, &chosen, NULL, error);
    if (part->is_folded)
        end_details(out);
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

static void put_facts(FILE *out, weir_recording *recording, const weir_run_record *run)
{
    char start[64] = "", duration[WEIR_FORMAT_BYTES] = "";
    time_t started = (time_t)(run->started_unix_ns / WEIR_SECOND);
    struct tm local;
    if (run->started_unix_ns && localtime_r(&started, &local))
        strftime(start, sizeof start, "%Y-%m-%d %H:%M:%S %Z", &local);
    if (run->has_ended)
        weir__text_format_time(duration, (double)(run->ended_unix_ns - run->started_unix_ns) / 1e9);
    begin_details(out, "About this run");
    fputs("<table>\n", out);
    put_fact(out, "Start", start);
    put_fact(out, "Duration", duration);
    put_fact(out, "State", weir_run_state_name(weir_run_state_of(run)));
    put_fact(out, "Command", run->command);
    put_fact(out, "Machine", run->machine);
    put_fact(out, "Node", run->node_id);
    put_fact(out, "weir", run->version);
    /* Where relative paths begin, if the program says so. The texts of the run are not valid any more. */
    weir_recording_query(recording, &(weir_filter){ .run_id = run->run_id },
                         "SELECT detail FROM events WHERE event_name = 'working_directory' ORDER BY id", NULL,
                         put_folder, out, NULL);
    fputs("</table>\n", out);
    end_details(out);
}

static void put_page_head(FILE *out, weir_recording *recording, const weir_run_record *run, const weir_totals *totals,
                          const weir_verdict *verdict)
{
    char text[500];
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          out);
    html_text(out, weir_recording_path(recording));
    fputs("</title><style>", out);
    inks_write_page_style(out);
    fprintf(out, "%s</style></head><body>\n<h1>Run %" PRId64 " of ", style, run->run_id);
    html_text(out, weir_recording_path(recording));
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
    if (weir_recording_lacks(recording))
        put_paragraph(out, "", weir_recording_lacks(recording));
    put_facts(out, recording, run);
}

/* The evidence and the advice, in lines for a screen and for a phone. */
static void put_verdict(FILE *out, const weir_verdict *verdict)
{
    static const size_t widths[] = { 0, 46 };
    put_heading(out, "What limits it");
    for (size_t i = 0; i < 2; i++) {
        char *text = NULL;
        size_t size;
        FILE *memory = memory_file_open(&text, &size);
        weir_verdict_write(verdict, WEIR_VERDICT_ALL | WEIR_VERDICT_CODE, widths[i], memory);
        memory_file_close(memory);
        fprintf(out, "<pre class=\"for-%s\">", i ? "phone" : "screen");
        for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
            html_text(out, line);
            fputs(rest ? "\n" : "", out);
        }
        fputs("</pre>\n", out);
        free(text);
    }
}

/* First what answers the question, then the details. */
static int write_parts(FILE *out, weir_recording *recording, const weir_filter *filter, const weir_totals *totals,
                       const weir_verdict *verdict, const series_set *set, weir_error *error)
{
    weir_run_record run; /* its texts are valid until the next call for the recording */
    int status = weir_recording_find_run(recording, filter->run_id == WEIR_ALL_RUNS ? WEIR_LAST_RUN : filter->run_id,
                                         &run, error);
    if (status != WEIR_OK)
        return status;
    int64_t run_id = run.run_id;
    put_page_head(out, recording, &run, totals, verdict);
    put_picture(out, set);
    status = put_list(out, &slowest_items, recording, filter, error);
    if (status == WEIR_OK) {
        put_verdict(out, verdict);
        status = put_pipeline(out, recording, run_id, totals, verdict, error);
    }
    for (size_t i = 0; i < sizeof other_lists / sizeof other_lists[0] && status == WEIR_OK; i++)
        status = put_list(out, &other_lists[i], recording, filter, error);
    put_metric_tables(out, totals);
    put_panels(out, set);
    fprintf(out, "<script>%s</script>\n", inks_script);
    fputs("</body></html>\n", out);
    return status;
}

static int write_page(FILE *out, weir_recording *recording, const weir_filter *filter, weir_error *error)
{
    weir_totals totals;
    weir_verdict *verdict = NULL;
    series_set set = { 0 };
    int status = weir_totals_read(recording, filter, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, error);
    if (status != WEIR_OK)
        return status;
    status = weir_verdict_explain(recording, filter, &verdict, error);
    if (status == WEIR_OK)
        status = series_read(recording, filter, true, &set, error);
    if (status == WEIR_OK)
        status = write_parts(out, recording, filter, &totals, verdict, &set, error);
    series_free(&set);
    weir_verdict_free(verdict);
    weir_totals_free(&totals);
    return status;
}

static int run(tool_call *call)
{
    weir_recording *recording;
    weir_filter filter;
    weir_error error = { 0 };
    output out;
    char path[4096];
    int exit_status = tool_open(call, call->words[0], &recording, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    if (!settings.output)
        settings.output = output_default_path(call->words[0], ".html", path, sizeof path);
    exit_status = output_open(call, settings.output, WEIR_OUTPUT_PAGE, settings.force, &out);
    if (exit_status == TOOL_DONE) {
        int status = write_page(out.file, recording, &filter, &error);
        exit_status = output_close(call, &out, status == WEIR_OK);
        if (status != WEIR_OK)
            exit_status = tool_fail(call, &error);
        else if (exit_status == TOOL_DONE && strcmp(settings.output, "-") != 0)
            printf("%s\n", settings.output);
    }
    weir_recording_close(recording);
    return exit_status;
}

const tool_command tool_report = {
    .name = "report",
    .words = "[DB]",
    .max_words = 1,
    .summary = "write a run as one HTML file",
    .help =
        "Writes a page with everything about a run: the picture of weir plot, which shows what it did and what "
        "limited "
        "it; the slowest items; what would help; the pipeline and failures. Events, settings, the metrics of stages, "
        "queues, sources and thread pools, and the panels of weir plot --all are folded: a click opens them. "
        "Pictures "
        "show the values at the pointer.\n\n"
        "It is one file that opens in any browser, light or dark, on a screen or a phone, without a network.",
    .examples = "weir report\n"
                "weir report --run 3 --since +1m -o run.html\n",
    .shared = TOOL_DB | TOOL_FILTER,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
