/* weir plot: pictures of a run, as SVG or as a page. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/output_file.h"
#include "tools/cli/table.h"
#include "tools/commands/command_table.h"
#include "tools/picture/inks.h"
#include "tools/picture/run_picture.h"

static struct settings {
    const char *output;
    bool all, force;
} settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("output", output, option_file), .letter = 'o', .argument = "FILE",
      .help = "a file that ends in .svg or .html, or - for SVG on stdout (default: DB's name with .svg, in this "
              "folder)" },
    { ROW("all", all, option_flag), .help = "the panels of all measures, too" },
    { ROW("force", force, option_flag), .help = OUTPUT_FORCE_HELP },
    { 0 },
};

static bool ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), end = strlen(ending);
    return length > end && strcasecmp(path + length - end, ending) == 0;
}

/* TOOL_DONE, or says which formats there are. */
static int find_kind(const tool_call *call, const char *path, weir_output_kind *kind)
{
    *kind = ends_in(path, ".html") ? WEIR_OUTPUT_PAGE : WEIR_OUTPUT_SVG;
    if (*kind == WEIR_OUTPUT_PAGE || ends_in(path, ".svg") || strcmp(path, "-") == 0)
        return TOOL_DONE;
    if (ends_in(path, ".png") || ends_in(path, ".pdf"))
        return tool_refuse(
            call,
            "--output: %s: pictures are .svg or .html; write a .svg, and make another format of it with "
            "a browser or with rsvg-convert (Debian: librsvg2-bin)",
            path);
    return tool_refuse(call, "--output: %s: pictures are .svg or .html", path);
}

/* Where the data comes from. */
static void format_title(char *title, size_t size, weir_recording *recording, const series_set *set)
{
    time_t origin = (time_t)(set->origin_unix_ns / 1000000000);
    struct tm local;
    char when[64] = "", runs[40];
    weir_subject subject;
    if (localtime_r(&origin, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    const series *line = series_throughput(set, &subject);
    if (set->num_runs == 1 && line)
        snprintf(runs, sizeof runs, "run %" PRId64, line->run_id);
    else
        snprintf(runs, sizeof runs, "%" PRId64 " run%s", set->num_runs, set->num_runs == 1 ? "" : "s");
    snprintf(title, size, "%s: %s, from %s", weir_recording_path(recording), runs, when);
}

static void write_page(FILE *out, const picture_plan *plan, const series_set *set)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          out);
    html_text(out, plan->title);
    fputs("</title><style>", out);
    inks_write_page_style(out);
    fputs("</style></head><body>\n", out);
    picture_write(out, plan, set);
    fprintf(out, "<script>%s</script>\n</body></html>\n", inks_script);
}

/* To a file that is there whole or not at all. */
static int draw_plot(const tool_call *call, weir_output_kind kind, const char *title, const series_set *set)
{
    const picture_plan plan = {
        .title = title, .width = PICTURE_WIDE, .panels = settings.all, .is_standalone = kind == WEIR_OUTPUT_SVG
    };
    output out;
    int exit_status = output_open(call, settings.output, kind, settings.force, &out);
    if (exit_status != TOOL_DONE)
        return exit_status;
    if (kind == WEIR_OUTPUT_SVG)
        picture_write(out.file, &plan, set);
    else
        write_page(out.file, &plan, set);
    exit_status = output_close(call, &out, true);
    if (exit_status == TOOL_DONE && out.path)
        printf("%s\n", out.path);
    return exit_status;
}

static int plot_run(tool_call *call, weir_recording *recording, const weir_filter *filter, weir_output_kind kind)
{
    weir_error error = { 0 };
    series_set set;
    char title[1024];
    int exit_status = TOOL_DONE, status = series_read(recording, filter, settings.all, &set, &error);
    if (status != WEIR_OK)
        exit_status = tool_fail(call, &error);
    else if (set.num_runs == 0)
        exit_status = tool_nothing(call, "%s: no laps match the filters", call->words[0]);
    else {
        if (weir_recording_lacks(recording))
            fprintf(stderr, "weir plot: %s: %s\n", call->words[0], weir_recording_lacks(recording));
        format_title(title, sizeof title, recording, &set);
        exit_status = draw_plot(call, kind, title, &set);
    }
    series_free(&set);
    return exit_status;
}

static int run(tool_call *call)
{
    weir_recording *recording;
    weir_filter filter;
    weir_output_kind kind;
    char default_path[4096];
    if (!settings.output)
        settings.output = output_default_path(call->words[0], ".svg", default_path, sizeof default_path);
    int exit_status = find_kind(call, settings.output, &kind);
    if (exit_status == TOOL_DONE && strcmp(settings.output, "-") == 0 && isatty(STDOUT_FILENO))
        exit_status = tool_refuse(call, "--output -: stdout is a terminal; write to a pipe or a file");
    if (exit_status == TOOL_DONE)
        exit_status = output_allow(call, settings.output, kind, settings.force, 0);
    if (exit_status == TOOL_DONE)
        exit_status = tool_open(call, call->words[0], &recording, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    exit_status = plot_run(call, recording, &filter, kind);
    weir_recording_close(recording);
    return exit_status == TOOL_DONE ? tool_finish(call) : exit_status;
}

const tool_command tool_plot = {
    .name = "plot",
    .words = "[DB]",
    .max_words = 1,
    .summary = "draw a picture of a run",
    .help =
        "Draws a run over time, as one picture. It shows how many items came out, and below them a band with what "
        "limited each part of the run (see weir explain). Rows below it show what the slots of each stage did, who "
        "used the CPUs, up to the budget, and how full the queues were.\n\n"
        "With --all, panels follow: of stages, queues, sources, pools, the process, the machine, spans and counters. "
        "They have the times of tasks, rates, memory, and so on. A measure that does not change has no panel. Of "
        "more "
        "than 14 spans, the 14 with the longest total time are drawn, and the first 14 counters; --name selects.\n\n"
        "Phases are tinted, events are dotted lines. A pause from an event gc_start (or gc_begin) to the next "
        "gc_stop "
        "(or gc_end) is shaded in each panel; any name may stand for gc. The longest five are listed.\n\n"
        "The time has 320 parts; laps that end in the same part are one point of a curve, with their exact mean. A "
        "pale "
        "band goes from the lowest to the highest of these laps. The limit is judged in up to 40 parts, from all "
        "laps "
        "of each part.\n\n"
        "The formats are SVG and HTML. A browser opens both, light or dark; a page (.html) shows the values at the "
        "pointer. For PNG or PDF, print from a browser, or convert: rsvg-convert -o run.png run.svg.",
    .examples = "weir plot\n"
                "weir plot --all --run 3 -o run.html\n"
                "# one picture of the decode stage and its queue\n"
                "weir plot --name decode -o decode.svg\n",
    .shared = TOOL_DB | TOOL_FILTER,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
