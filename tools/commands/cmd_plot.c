/* weir plot: draws plots of a run with gnuplot. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/verdict.h>

#include "command_table.h"
#include "gnuplot_process.h"
#include "metric_table.h"
#include "output_file.h"
#include "plot_series.h"
#include "tty.h"

/* "12x8", or "12,8": inches. */
typedef struct figure_size {
    double width_in, height_in;
} figure_size;

static bool parse_size(const char *text, void *value)
{
    figure_size size;
    char by, rest;
    if (sscanf(text, "%lf%c%lf%c", &size.width_in, &by, &size.height_in, &rest) != 3 || (by != 'x' && by != ','))
        return false;
    if (!(size.width_in >= 3 && size.width_in <= 200 && size.height_in >= 3 && size.height_in <= 200))
        return false;
    *(figure_size *)value = size;
    return true;
}

static const option_kind option_size = { .parse = parse_size,
                                         .wanted = "inches as WIDTHxHEIGHT, each from 3 to 200" };

static struct settings {
    const char *output;
    bool terminal, counts, force;
    int axis;
    int64_t dpi;
    figure_size size;
} settings = { .dpi = 110 };

static const char *const axis_words[] = { "relative", "clock", NULL };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("output", output, option_file), .letter = 'o', .argument = "DIR|FILE",
      .help = "one file that ends in .png, .svg or .pdf, - for a PNG on stdout, or a folder for overview.png and one "
              "picture of each subject: stages.png, queues.png, ... (default: DB's name with .png, in this folder)" },
    { ROW("axis", axis, option_choice), .argument = "KIND", .choices = axis_words,
      .help = "time axis: relative, the time since the start (default), or clock, local time" },
    { ROW("counts", counts, option_flag), .help = "plot the number of tasks and items in each lap instead of rates" },
    { ROW("terminal", terminal, option_flag), .excludes = "output dpi figsize",
      .help = "draw in the terminal, as text" },
    { ROW("dpi", dpi, option_count), .argument = "N", .help = "pixels per inch, for .png (default 110)" },
    { ROW("figsize", size, option_size), .argument = "WxH",
      .help = "size in inches (default 12 x as much as it needs)" },
    { ROW("force", force, option_flag), .excludes = "terminal", .help = OUTPUT_FORCE_HELP },
    { 0 },
};

/* To a file that is there whole or not at all; path NULL = stdout. */
static bool ends_in(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length > tail && strcmp(text + length - tail, suffix) == 0;
}

static output_kind kind_of(const char *path)
{
    return path && ends_in(path, ".svg") ? OUTPUT_SVG : path && ends_in(path, ".pdf") ? OUTPUT_PDF : OUTPUT_PNG;
}

static int draw(const tool_call *call, const char *path, const drawing_plan *drawing, const series_set *set)
{
    char problem[200];
    output out;
    int exit_status = output_open(call, path, kind_of(path), settings.force, &out);
    if (exit_status != TOOL_DONE)
        return exit_status;
    bool is_drawn = gnuplot_run(drawing, set, out.file, problem, sizeof problem);
    if (!is_drawn)
        tool_refuse(call, "%s", problem);
    exit_status = output_close(call, &out, is_drawn);
    return is_drawn ? exit_status : TOOL_FAILED;
}

/* ---- what to draw ------------------------------------------------------------------------------------------- */

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool is_picture(const char *path)
{
    return is_stdout(path) || ends_in(path, ".png") || ends_in(path, ".svg") || ends_in(path, ".pdf");
}

/* A name with an ending that is neither a picture's nor an existing folder's: probably another format. */
static bool is_other_format(const char *path)
{
    struct stat info;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    bool has_ending = dot && dot > name && dot[1] && strspn(dot, ".") == 1;
    return has_ending && !is_picture(path) && !(stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

static int draw_file(const tool_call *call, const char *path, drawing_plan *drawing, const series_set *set)
{
    bool is_given = settings.size.width_in > 0;
    drawing->width_in = is_given ? settings.size.width_in : 12;
    drawing->height_in = is_given ? settings.size.height_in : drawing_height_in(drawing, set);
    drawing->dpi = (double)settings.dpi;
    if (drawing->medium == DRAWING_PNG &&
        (drawing->width_in * drawing->dpi > 30000 || drawing->height_in * drawing->dpi > 30000))
        return tool_refuse(call, "the picture would be larger than 30000 pixels: lower --dpi or --figsize");
    int exit_status = draw(call, path, drawing, set);
    if (exit_status == TOOL_DONE && !is_stdout(path))
        printf("%s\n", path);
    return exit_status;
}

static int draw_in_folder(const tool_call *call, drawing_plan *drawing, const series_set *set)
{
    enum { NUM_PICTURES = WEIR_NUM_SUBJECTS + 1 };
    int exit_status = output_make_folder(call, settings.output);
    for (int i = 0; i < 2 * NUM_PICTURES && exit_status == TOOL_DONE; i++) {
        int subject = i % NUM_PICTURES - 1; /* -1 = the first picture */
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.png", settings.output,
                 subject < 0 ? "overview" : metric_subject_key((weir_subject)subject));
        memset(drawing->shown, 0, sizeof drawing->shown);
        drawing->overview = subject < 0;
        if (subject >= 0)
            drawing->shown[subject] = set->lists[subject].count > 0;
        if (subject >= 0 && !drawing->shown[subject])
            continue;
        /* all are checked before the first one is drawn */
        exit_status = i < NUM_PICTURES ? output_allow(call, path, OUTPUT_PNG, settings.force, 0)
                                       : draw_file(call, path, drawing, set);
    }
    return exit_status;
}

static int draw_in_terminal(const tool_call *call, drawing_plan *drawing, const series_set *set)
{
    drawing->medium = DRAWING_TERMINAL;
    drawing->columns = tty_width() ? tty_width() : 100;
    drawing->rows = 20;
    drawing->coloured = tty_has_colours();
    return draw(call, NULL, drawing, set);
}

static int draw_set(const tool_call *call, const char *title, const series_set *set)
{
    drawing_plan drawing = {
        .title = title, .clock = settings.axis == 1, .counts = settings.counts, .overview = true
    };
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        drawing.shown[subject] = set->lists[subject].count > 0;
    if (settings.terminal)
        return draw_in_terminal(call, &drawing, set);
    output_kind kind = kind_of(settings.output);
    drawing.medium = kind == OUTPUT_SVG ? DRAWING_SVG : kind == OUTPUT_PDF ? DRAWING_PDF : DRAWING_PNG;
    if (!is_picture(settings.output))
        return draw_in_folder(call, &drawing, set);
    return draw_file(call, settings.output, &drawing, set);
}

/* The first curve; NULL = there is nothing to draw. */
static const series *first_of(const series_set *set)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        if (set->lists[subject].count)
            return set->lists[subject].all;
    return NULL;
}

static void format_title(char *title, size_t size, const char *path, const series_set *set)
{
    time_t origin = (time_t)(set->origin_unix_ns / 1000000000);
    struct tm local;
    char when[64] = "";
    if (localtime_r(&origin, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    char runs[40] = "";
    if (set->num_runs > 1)
        snprintf(runs, sizeof runs, "%" PRId64 " runs, ", set->num_runs);
    else if (first_of(set))
        snprintf(runs, sizeof runs, "run %" PRId64 ", ", first_of(set)->run_id);
    snprintf(title, size, "%s: %sfrom %s%s", path, runs, when, set->binned ? ", several laps per point" : "");
}

/* What limits the run, as weir explain says it. */
static int add_limit(char *title, size_t size, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    weir_verdict *verdict;
    size_t length = strlen(title);
    int status = weir_verdict_read(reader, filter, &verdict, error);
    if (status != WEIR_OK)
        return status;
    if (verdict->kind != WEIR_VERDICT_UNKNOWN)
        snprintf(title + length, size - length, "\nLimit: %s", verdict->sentence);
    weir_verdict_free(verdict);
    return WEIR_OK;
}

static int run(tool_call *call)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    series_set set;
    char default_path[4096];
    if (!settings.terminal && !settings.output)
        settings.output = output_default_path(call->words[0], ".png", default_path, sizeof default_path);
    if (settings.output && is_other_format(settings.output))
        return tool_refuse(call, "--output: %s: pictures are .png, .svg or .pdf; a new folder is %s/",
                           settings.output, settings.output);
    if (settings.output && is_stdout(settings.output) && isatty(STDOUT_FILENO))
        return tool_refuse(call, "--output -: stdout is a terminal; write to a pipe or a file, or use --terminal");
    int exit_status = settings.output && is_picture(settings.output)
                          ? output_allow(call, settings.output, kind_of(settings.output), settings.force, 0)
                          : TOOL_DONE;
    if (exit_status == TOOL_DONE)
        exit_status = tool_open(call, call->words[0], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;

    char title[1024];
    int status = series_read(reader, &filter, true, &set, &error);
    if (status == WEIR_OK && !settings.terminal)
        status = series_read_limits(reader, &filter, &set, &error);
    if (status != WEIR_OK) {
        exit_status = tool_fail(call, &error);
    } else if (!first_of(&set)) {
        exit_status = tool_nothing(call, "%s: no laps match the filters", call->words[0]);
    } else {
        if (weir_reader_lacks(reader))
            fprintf(stderr, "weir plot: %s: %s\n", call->words[0], weir_reader_lacks(reader));
        format_title(title, sizeof title, call->words[0], &set);
        status = add_limit(title, sizeof title, reader, &filter, &error);
        exit_status = status == WEIR_OK ? draw_set(call, title, &set) : tool_fail(call, &error);
    }
    series_free(&set);
    weir_reader_close(reader);
    return exit_status == TOOL_DONE ? tool_finish(call) : exit_status;
}

const tool_command tool_plot = {
    .name = "plot",
    .words = "DB",
    .min_words = 1,
    .summary = "plot a run with gnuplot",
    .help =
        "Plots a run lap by lap. The first picture shows how many items came out, and below them a band with what "
        "limited each part of the run (see weir explain); what the slots of each stage did; who used the CPUs, up to "
        "the budget; and how full the queues were. Below it are panels of all measures of the stages, queues, "
        "sources, pools, the process, the machine, spans and counters that are not always 0: the times of tasks "
        "(average, p50, p90, p99 and maximum), rates, memory, and so on. Panels of a subject with the same unit have "
        "the same scale. Of more than 14 spans, the 14 with the longest total time are drawn, and the first "
        "14 values of counters; --name selects. Phases are shaded. "
        "Events are dotted lines in the colours of the legend; a pair of events named NAME_start and NAME_stop is a "
        "hatched span. A last lap that is much shorter than the others is joined with the previous lap.\n\n"
        "If a run has more than 600 laps, several laps are drawn as one, with exact sums and percentiles. Waits that "
        "are too short for the logarithmic axis, or zero, are drawn at its bottom.\n\n"
        "gnuplot does the drawing and must be installed (Debian and Ubuntu: gnuplot-nox).",
    .examples = "weir plot pipeline_stats.db\n"
                "weir plot pipeline_stats.db --axis clock --counts -o run.pdf\n"
                "# one picture of the decode stage and its queue\n"
                "weir plot pipeline_stats.db --name decode -o decode.svg\n"
                "weir plot pipeline_stats.db --terminal\n",
    .shared = TOOL_FILTER,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
