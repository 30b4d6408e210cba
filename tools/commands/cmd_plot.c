/* weir plot: draws plots of a run with gnuplot. */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/verdict.h>

#include "tools/cli/output_file.h"
#include "tools/commands/command_table.h"
#include "tools/view/gnuplot_process.h"
#include "tools/view/plot_series.h"

static struct settings {
    const char *output;
    bool force;
} settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("output", output, option_file), .letter = 'o', .argument = "FILE",
      .help =
          "a file that ends in .png, .svg or .pdf, or - for a PNG on stdout (default: DB's name with .png, in this "
          "folder)" },
    { ROW("force", force, option_flag), .help = OUTPUT_FORCE_HELP },
    { 0 },
};

/* False = another ending. */
static bool find_medium(const char *path, weir_output_kind *medium)
{
    static const struct {
        const char *ending;
        weir_output_kind medium;
    } media[] = { { ".png", WEIR_OUTPUT_PNG }, { ".svg", WEIR_OUTPUT_SVG }, { ".pdf", WEIR_OUTPUT_PDF } };
    size_t length = strlen(path);
    *medium = WEIR_OUTPUT_PNG;
    for (size_t i = 0; i < 3; i++)
        if (length > 4 && strcmp(path + length - 4, media[i].ending) == 0) {
            *medium = media[i].medium;
            return true;
        }
    return strcmp(path, "-") == 0;
}

/* Where the data comes from and, on a second line, what limits the run, as weir explain says it. */
static int format_title(char *title, size_t size, weir_reader *reader, const weir_filter *filter,
                        const series_set *set, weir_error *error)
{
    time_t origin = (time_t)(set->origin_unix_ns / 1000000000);
    struct tm local;
    char when[64] = "", runs[40];
    weir_subject subject;
    weir_verdict *verdict;
    if (localtime_r(&origin, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    const series *line = series_throughput(set, &subject);
    if (set->num_runs == 1 && line)
        snprintf(runs, sizeof runs, "run %" PRId64, line->run_id);
    else
        snprintf(runs, sizeof runs, "%" PRId64 " run%s", set->num_runs, set->num_runs == 1 ? "" : "s");
    int status = weir_verdict_read(reader, filter, &verdict, error);
    if (status != WEIR_OK)
        return status;
    bool is_known = verdict->kind != WEIR_VERDICT_UNKNOWN;
    snprintf(title, size, "%s: %s, from %s%s%s", weir_reader_path(reader), runs, when, is_known ? "\nLimit: " : "",
             is_known ? verdict->sentence : "");
    weir_verdict_free(verdict);
    return WEIR_OK;
}

/* To a file that is there whole or not at all. */
static int draw_plot(const tool_call *call, const drawing_plan *plan, const series_set *set)
{
    char problem[200];
    output out;
    int exit_status = output_open(call, settings.output, plan->medium, settings.force, &out);
    if (exit_status != TOOL_DONE)
        return exit_status;
    bool is_drawn = gnuplot_run(plan, set, out.file, problem, sizeof problem);
    if (!is_drawn)
        tool_refuse(call, "%s", problem);
    exit_status = output_close(call, &out, is_drawn);
    if (exit_status == TOOL_DONE && is_drawn && out.path)
        printf("%s\n", out.path);
    return is_drawn ? exit_status : TOOL_FAILED;
}

static int run(tool_call *call)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    series_set set;
    char default_path[4096], title[1024];
    drawing_plan plan = { .title = title, .overview = true, .details = true };
    if (!settings.output)
        settings.output = output_default_path(call->words[0], ".png", default_path, sizeof default_path);
    if (!find_medium(settings.output, &plan.medium))
        return tool_refuse(call, "--output: %s: pictures are .png, .svg or .pdf", settings.output);
    if (strcmp(settings.output, "-") == 0 && isatty(STDOUT_FILENO))
        return tool_refuse(call, "--output -: stdout is a terminal; write to a pipe or a file");
    int exit_status = output_allow(call, settings.output, plan.medium, settings.force, 0);
    if (exit_status == TOOL_DONE)
        exit_status = tool_open(call, call->words[0], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;

    int status = series_read(reader, &filter, &set, &error);
    if (status == WEIR_OK && set.num_runs > 0)
        status = format_title(title, sizeof title, reader, &filter, &set, &error);
    if (status != WEIR_OK)
        exit_status = tool_fail(call, &error);
    else if (set.num_runs == 0)
        exit_status = tool_nothing(call, "%s: no laps match the filters", call->words[0]);
    else {
        if (weir_reader_lacks(reader))
            fprintf(stderr, "weir plot: %s: %s\n", call->words[0], weir_reader_lacks(reader));
        exit_status = draw_plot(call, &plan, &set);
    }
    series_free(&set);
    weir_reader_close(reader);
    return exit_status == TOOL_DONE ? tool_finish(call) : exit_status;
}

const tool_command tool_plot = {
    .name = "plot",
    .words = "[DB]",
    .max_words = 1,
    .summary = "plot a run with gnuplot",
    .help =
        "Plots a run lap by lap. The first picture shows how many items came out, and below them a band with what "
        "limited each part of the run (see weir explain); what the slots of each stage did; who used the CPUs, up to "
        "the budget; and how full the queues were. Below it are panels of all measures of the stages, queues, "
        "sources, pools, the process, the machine, spans and counters that are not always 0: the times of tasks "
        "(average, p99 and maximum), rates, memory, and so on. Panels of a subject with the same unit have "
        "the same scale. Of more than 14 spans, the 14 with the longest total time are drawn, and the first "
        "14 values of counters; --name selects. Phases are shaded, events are dotted lines. A "
        "pause from an event gc_start (or gc_begin) to the next gc_stop (or gc_end), whatever stands for gc, is "
        "shaded in "
        "each panel, and the longest five are listed.\n\n"
        "Laps that end in the same three-hundredth of the time are one point, with exact sums and percentiles. Waits "
        "that are too short for the logarithmic axis, or zero, are drawn at its bottom.\n\n"
        "gnuplot does the drawing and must be installed (Debian and Ubuntu: gnuplot-nox).",
    .examples = "weir plot\n"
                "weir plot --run 3 -o run.pdf\n"
                "# one picture of the decode stage and its queue\n"
                "weir plot --name decode -o decode.svg\n",
    .shared = TOOL_DB | TOOL_FILTER,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
