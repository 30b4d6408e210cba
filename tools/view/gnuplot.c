/*
 * Layout from the top, in inches: the title; the first picture, over the whole width; then, for each subject, a heading with
 * the names of its series, and its panels, three in a row, one for each measure. Panels of a subject with the same unit have
 * the same scale.
 */
#include "tools/view/gnuplot.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/verdict.h>

#include "common/text_columns.h"
#include "tools/cli/memory.h"
#include "tools/view/metric_table.h"

/* Colours for all kinds of colour vision (Okabe and Ito, 2008); symbols distinguish curves in grey prints, and if
   there are more curves than colours. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000" };
static const int symbols[] = { 7, 5, 9, 11, 13, 6, 4, 8, 10, 12 }; /* gnuplot's: filled and empty ● ■ ▲ ▼ ◆ */
static const char *const tints[] = { "#e9edf2", "#f7ecd9", "#e2f0e4", "#f3e3ee", "#dcebf5" }; /* of phases */
enum {
    NUM_COLOURS = sizeof colours / sizeof colours[0],
    NUM_SYMBOLS = sizeof symbols / sizeof symbols[0],
    NUM_TINTS = sizeof tints / sizeof tints[0],
    MAX_LINES = 14,       /* of spans, and of counters: more could not be distinguished */
    MAX_STAGES = 12,      /* in the first picture */
    MAX_MARKS = 150,      /* events, and phases: more would hide the curves */
    MAX_TEXT = 32,        /* columns of a name in a legend */
    MAX_BESIDE = 24,      /* the same left of a panel */
    MAX_TITLE = 44,       /* the same above a panel */
    MAX_LINE = 130,       /* the same over the whole width */
    MAX_PAUSES = 5,       /* that are listed: as many as fit a line */
    NUM_COLUMNS = 3,      /* of panels */
    SYMBOLS_ON_CURVE = 12 /* about */
};

typedef struct drawing {
    FILE *out;
    const drawing_plan *plan;
    const series_set *set;
    double height_in, y_in; /* of the picture; what is drawn ends here, from the top */
    double unit_s;          /* of the time axis */
    const char *unit;
    size_t num_blocks, num_labels;
} drawing;

static const double width_in = 12, left_in = 0.85, right_in = 0.25, beside_in = 2.1, character_in = 0.085,
                    line_in = 0.22, row_in = 1.85;

/* ---- text and data ------------------------------------------------------------------------------------------ */

static size_t width_of(const char *text)
{
    return weir__text_columns(text, strlen(text));
}

/* Writes a gnuplot string in single quotes, in which only the quote is special. At most so wide: Chinese characters, for
   example, are twice as wide as Latin letters. */
static void put_string(FILE *out, const char *text, size_t max_columns)
{
    bool is_cut = width_of(text) > max_columns;
    size_t length = is_cut ? weir__text_cut(text, max_columns - 1) : strlen(text);
    fputc('\'', out);
    for (const char *c = text; c < text + length; c++) {
        if (*c == '\'')
            fputs("''", out);
        else
            fputc((unsigned char)*c < 0x20 ? ' ' : *c, out);
    }
    fputs(is_cut ? "…'" : "'", out);
}

/* A time since the origin on the axis. */
static double at(const drawing *d, double time_s)
{
    return time_s / d->unit_s;
}

static void put_screen_label(drawing *d, const char *text, size_t max_columns, double x_in, double y_in,
                             const char *how)
{
    fprintf(d->out, "set label %zu ", ++d->num_labels);
    put_string(d->out, text, max_columns);
    fprintf(d->out, " at screen %.5f, screen %.5f %s\n", x_in / width_in, 1 - y_in / d->height_in, how);
}

/* An entry of a legend: a symbol and a name. *x_in moves on; a new line begins at left. */
static void put_entry(drawing *d, const char *text, int symbol, const char *colour, double *x_in)
{
    char how[120];
    double entry_in = (fmin((double)width_of(text), MAX_TEXT) + 1) * character_in + 0.35;
    if (*x_in > left_in && *x_in + entry_in > width_in - right_in) {
        *x_in = left_in;
        d->y_in += line_in;
    }
    snprintf(how, sizeof how, "left point pointtype %d pointsize 1.5 linecolor rgb '%s' offset 1.2,0", symbol,
             colour);
    put_screen_label(d, text, MAX_TEXT, *x_in, d->y_in + line_in / 2, how);
    *x_in += entry_in;
}

/* The place of the next plot; it has nothing of the one before. */
static void put_place(const drawing *d, double from_in, double to_in, double top_in, double bottom_in)
{
    fprintf(d->out,
            "unset object\nunset arrow\nunset xlabel\nunset logscale y\nset format x "
            "''\nset format y '%%g'\n"
            "set ytics autofreq nomirror font ',10'\nset lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
            from_in / width_in, to_in / width_in, 1 - top_in / d->height_in, 1 - bottom_in / d->height_in);
}

/* ---- axes --------------------------------------------------------------------------------------------------- */

/* The range of the values above 0; high is 0 if there are none. */
typedef struct range {
    double low, high;
} range;

static const range empty_range = { INFINITY, 0 };

static void range_add(range *r, double value)
{
    if (isfinite(value) && value > 0)
        *r = (range){ fmin(r->low, value), fmax(r->high, value) };
}

/* Whether a lap is cut short: the last one of a run, or one that is narrower than a pixel or two. Its rate may be a spike. */
static bool is_cut_short(const series_set *set, const series *s, size_t point)
{
    const series_point *middle = &s->points[s->num_points / 2];
    double longest = fmax(s->points[0].end - s->points[0].start, middle->end - middle->start);
    double length = s->points[point].end - s->points[point].start;
    bool is_last = s->num_points > 1 && point == s->num_points - 1;
    return length < longest / 2 && (is_last || length < set->end / SERIES_MAX_POINTS);
}

/* Each lap determines the scale, so that no curve is cut off, the shorter first lap of a run included; but a spike of a lap
   that is cut short must not flatten the curve. */
static void range_add_curve(range *r, const series_set *set, weir_subject subject, const series *line,
                            const char *measure)
{
    range whole = empty_range;
    for (size_t j = 0; j < line->num_points; j++)
        if (!is_cut_short(set, line, j))
            range_add(&whole, series_value(subject, &line->points[j], measure));
    double most = 2 * whole.high;
    for (size_t j = 0; j < line->num_points; j++)
        if (series_value(subject, &line->points[j], measure) <= most)
            range_add(&whole, series_value(subject, &line->points[j], measure));
    range_add(r, whole.low);
    range_add(r, whole.high);
}

static void put_linear_axis(FILE *out, double high)
{
    double top = high > 0 ? high : 1, power = pow(10, floor(log10(top / 3))), digit = top / 3 / power;
    fprintf(out, "set yrange [0:%.6g]\nset ytics %.6g\n", 1.08 * top, (digit >= 5 ? 5 : digit >= 2 ? 2 : 1) * power);
}

/* Of a unit of weir_measure. Returns the smallest value that can be drawn: durations have a logarithmic axis of at most
   five decades, at whose bottom shorter ones and 0 are drawn. */
static double put_axis(const drawing *d, const char *unit, range values)
{
    double foot = fmax(fmax(values.low / 1.5, values.high / 1e5), 1e-7);
    if (strcmp(unit, "s") == 0) {
        fprintf(d->out, "set logscale y\nset yrange [%.3g:%.3g]\nset format y '%%.0s %%cs'\n", foot,
                fmax(values.high * 1.3, foot * 12));
        return foot;
    }
    if (strcmp(unit, "share") == 0 && values.high <= 1.001)
        fputs("set yrange [0:1.03]\nset ytics ('0 %%' 0, '50 %%' 0.5, '100 %%' 1)\n", d->out);
    else if (strcmp(unit, "units") == 0)
        fputs("set yrange [*:*]\nset format y '%g'\n", d->out);
    else {
        put_linear_axis(d->out, values.high);
        if (strncmp(unit, "bytes", 5) == 0)
            fputs("set format y '%.0s %cB'\n", d->out);
    }
    return 0;
}

/* ---- events and phases -------------------------------------------------------------------------------------- */

/* Shades a part of the time. */
static void shade_mark(const drawing *d, const series_mark *mark, const char *colour, double opacity)
{
    fprintf(
        d->out,
        "set object rectangle from first %.12g, graph 0 to first %.12g, graph 1 behind fillcolor rgb '%s' fillstyle "
        "transparent solid %.2f noborder\n",
        at(d, mark->start), at(d, mark->end), colour, opacity);
}

/* A line where the mark begins, and its name. */
static void put_mark(drawing *d, const series_mark *mark, const char *dash, bool named, const char *how)
{
    fprintf(d->out,
            "set arrow from first %.12g, graph 0 to first %.12g, graph 1 nohead dashtype %s linecolor rgb '#808080' "
            "back\n",
            at(d, mark->start), at(d, mark->start), dash);
    if (!named)
        return;
    fprintf(d->out, "set label %zu ", ++d->num_labels);
    put_string(d->out, mark->text, MAX_BESIDE);
    fprintf(d->out, " at first %.12g, %s textcolor rgb '#404040' front\n", at(d, mark->start), how);
}

/* Pauses are darker than phases. One that is narrower than a line is as wide as one, so that none is missed. */
static void put_pauses(const drawing *d)
{
    const series_marks *pauses = &d->set->pauses;
    double shown_until = -INFINITY, least = d->set->end / (4 * SERIES_MAX_POINTS);
    for (size_t i = 0; i < pauses->count; i++) {
        series_mark wide = pauses->all[i];
        wide.end = fmax(wide.end, wide.start + least);
        if (wide.end <= shown_until)
            continue;
        shade_mark(d, &wide, "#808080", 0.35);
        shown_until = wide.end;
    }
}

static int longer_pause(const void *one, const void *other)
{
    const series_mark *a = one, *b = other;
    double more = (b->end - b->start) - (a->end - a->start);
    return more > 0 ? 1 : more < 0 ? -1 : 0;
}

/* How many there were, and the longest. */
static void put_longest_pauses(drawing *d)
{
    const series_marks *pauses = &d->set->pauses;
    size_t size;
    double all_s = 0;
    char *text;
    if (pauses->count == 0)
        return;
    series_mark *sorted = memory_get(pauses->count, sizeof *sorted);
    memcpy(sorted, pauses->all, pauses->count * sizeof *sorted);
    qsort(sorted, pauses->count, sizeof *sorted, longer_pause);
    for (size_t i = 0; i < pauses->count; i++)
        all_s += sorted[i].end - sorted[i].start;
    FILE *line = memory_file_open(&text, &size);
    fprintf(line, "%zu pause%s, %.3g s in all. Longest: ", pauses->count, pauses->count == 1 ? "" : "s", all_s);
    for (size_t i = 0; i < pauses->count && i < MAX_PAUSES; i++)
        fprintf(line, "%s%s %.3g s at %.4g %s", i ? ", " : "", sorted[i].text, sorted[i].end - sorted[i].start,
                at(d, sorted[i].start), d->unit);
    memory_file_close(line);
    put_screen_label(d, text, MAX_LINE, 0.2, d->y_in + line_in / 2, "left font ',12'");
    d->y_in += line_in + 0.04;
    free(text);
    free(sorted);
}

/* Phases are shaded, events are dotted lines. Those too close to the one before are left out; names that do not fit,
   too. */
static void put_marks(drawing *d, const series_marks *marks, double panel_in, bool named)
{
    bool are_phases = marks == &d->set->phases;
    double shown_until = -INFINITY, named_until = -INFINITY, second_in = panel_in / d->set->end;
    for (size_t i = 0; i < marks->count; i++) {
        const series_mark *mark = &marks->all[i];
        double name_s = (are_phases ? ((double)width_of(mark->text) + 1) * character_in : 0.18) / second_in;
        bool fits = mark->start >= named_until && (!are_phases || mark->end - mark->start > name_s);
        if (mark->end - mark->start < d->set->end / MAX_MARKS && mark->start < shown_until)
            continue;
        if (are_phases) /* the same tint for the same name */
            shade_mark(d, mark, tints[(strlen(mark->text) + (unsigned char)mark->text[0]) % NUM_TINTS], 1);
        put_mark(d, mark, are_phases ? "1" : "3", named && fits,
                 are_phases ? "graph 0.92 left offset 0.5,0" : "graph 0.05 left rotate by 90 offset 0.6,0");
        shown_until = mark->start + d->set->end / MAX_MARKS;
        named_until = fits ? mark->start + name_s : named_until;
    }
}

/* ---- curves ------------------------------------------------------------------------------------------------- */

/* Each lap is a step from its start to its end; where laps are missing, the curve is interrupted. */
static void put_block(drawing *d, weir_subject subject, const series *line, const char *measure, double foot)
{
    fprintf(d->out, "$b%zu << EOD\n", ++d->num_blocks);
    for (size_t j = 0; j < line->num_points; j++) {
        const series_point *point = &line->points[j];
        double value = series_value(subject, point, measure);
        if (j > 0 && point->start - point[-1].end > 0.5 * (point->end - point->start))
            fputc('\n', d->out);
        if (isfinite(value))
            fprintf(d->out, "%.12g %.6g\n%.12g %.6g\n", at(d, point->start), fmax(value, foot > 0 ? foot : value),
                    at(d, point->end), fmax(value, foot > 0 ? foot : value));
        else
            fputc('\n', d->out);
    }
    fputs("EOD\n", d->out);
}

/* Whether it has a value that is not 0. */
static bool has_values(weir_subject subject, const series *line, const char *measure)
{
    for (size_t j = 0; j < line->num_points; j++) {
        double value = series_value(subject, &line->points[j], measure);
        if (isfinite(value) && value != 0)
            return true;
    }
    return false;
}

/* Draws the series from `first` to before `end`: those of a name, or, if this is NULL, those that are not always 0. */
static void put_curves(drawing *d, weir_subject subject, const char *measure, const char *name, size_t first,
                       size_t end, double foot)
{
    const char *between = "plot ";
    size_t size, num_curves = 0;
    char *text;
    FILE *commands = memory_file_open(&text, &size); /* behind the data */
    for (size_t i = first; i < end; i++) {
        const series *line = &d->set->lists[subject].all[i];
        if (name ? strcmp(line->plain_name, name) != 0 : !has_values(subject, line, measure))
            continue;
        put_block(d, subject, line, measure, foot);
        fprintf(commands, "%s$b%zu using 1:2 with linespoints linewidth %.2f linecolor rgb '%s' pointtype %d ",
                between, d->num_blocks, line->num_points > 200 ? 1.3 : 2.2,
                colours[(name ? num_curves++ : i) % NUM_COLOURS], symbols[i % NUM_SYMBOLS]);
        fprintf(commands, "pointsize %d pointinterval %zu notitle", !name && end - first > 1,
                2 * (line->num_points / SYMBOLS_ON_CURVE + 1));
        between = ", \\\n     ";
    }
    memory_file_close(commands);
    fprintf(d->out, "%s\nunset label\n", text);
    free(text);
}

/* ---- details ------------------------------------------------------------------------------------------------ */

/* Sums depend on the length of a lap, rates do not. Bad rates have no title in tables, but are worth a curve. What the
   slots do is in the first picture; between the average and p99 there is little to see. */
static bool is_drawn(weir_subject subject, const weir_measure *measure)
{
    static const char *const others[] = { "min_", "p50_", "p90_", "busy_share", "wait_" };
    bool is_sum = measure->metric && measure->metric->kind <= WEIR_METRIC_SUM;
    bool is_bad_rate = strcmp(measure->unit, "1/s") == 0 && measure->better < 0;
    for (size_t i = 0; i < (subject <= WEIR_SUBJECT_FLOW ? 5 : 3); i++)
        if (strncmp(measure->name, others[i], strlen(others[i])) == 0)
            return false;
    bool is_level_or_rate = strcmp(measure->name, "ave_value") == 0 || strcmp(measure->name, "increase_per_s") == 0;
    return subject == WEIR_SUBJECT_COUNTER ? is_level_or_rate : (measure->title || is_bad_rate) && !is_sum;
}

static size_t num_drawn(weir_subject subject, const series_list *list)
{
    return subject >= WEIR_SUBJECT_SPAN && list->count > MAX_LINES ? MAX_LINES : list->count;
}

/* Of these series, in all panels with the unit. */
static range range_of_unit(const drawing *d, weir_subject subject, const char *unit, size_t first, size_t end)
{
    range values = empty_range;
    size_t count;
    const weir_measure *measures = weir_subject_measures(subject, &count);
    for (const weir_measure *m = measures; m && m < measures + count; m++)
        for (size_t i = first; i < end && is_drawn(subject, m) && strcmp(m->unit, unit) == 0; i++)
            range_add_curve(&values, d->set, subject, &d->set->lists[subject].all[i], m->name);
    return values;
}

/* A panel of these series, if they have values. *column: in the row; the next one. */
static void put_panel(drawing *d, weir_subject subject, const weir_measure *measure, size_t first, size_t end,
                      int *column)
{
    double panel_in = width_in / NUM_COLUMNS, from_in = *column * panel_in + left_in,
           to_in = (*column + 1) * panel_in - right_in, top_in = d->y_in + 0.32;
    const series *all = d->set->lists[subject].all;
    char title[200];
    bool is_used = false, is_level = strcmp(measure->unit, "units") == 0;
    for (size_t i = first; i < end; i++)
        is_used |= has_values(subject, &all[i], measure->name);
    if (!is_used)
        return;
    if (subject == WEIR_SUBJECT_COUNTER)
        snprintf(title, sizeof title, "%s%s%s", all[first].name, is_level ? "" : " ", is_level ? "" : measure->title);
    else
        snprintf(title, sizeof title, "%s%s%.*s", measure->title ? measure->title : "", measure->title ? ": " : "",
                 (int)strcspn(measure->help, ":"), measure->help);
    put_place(d, from_in, to_in, top_in, d->y_in + row_in - 0.3);
    fputs("set format x '%g'\n", d->out);
    put_screen_label(d, title, MAX_TITLE, from_in, top_in - 0.12, "left font ',10'");
    put_marks(d, &d->set->phases, to_in - from_in, false);
    put_pauses(d);
    put_marks(d, &d->set->events, to_in - from_in, false);
    double foot = put_axis(d, measure->unit, range_of_unit(d, subject, measure->unit, first, end));
    put_curves(d, subject, measure->name, NULL, first, end, foot);
    *column = (*column + 1) % NUM_COLUMNS;
    d->y_in += *column == 0 ? row_in : 0;
}

/* Whether any panel shows it. */
static bool is_shown(weir_subject subject, const series *line)
{
    size_t count;
    const weir_measure *measures = weir_subject_measures(subject, &count);
    for (size_t i = 0; i < count; i++)
        if (is_drawn(subject, &measures[i]) && has_values(subject, line, measures[i].name))
            return true;
    return false;
}

/* The name of the subject and of its series. */
static void put_section_heading(drawing *d, weir_subject subject, const series_list *list)
{
    char text[64];
    double x_in = left_in;
    put_screen_label(d, metric_subject_title(subject), SIZE_MAX, 0.2, d->y_in + 0.2, "left font ',14'");
    d->y_in += 0.36;
    for (size_t i = 0; i < num_drawn(subject, list); i++)
        if (subject != WEIR_SUBJECT_COUNTER && is_shown(subject, &list->all[i]))
            put_entry(d, list->all[i].name, symbols[i % NUM_SYMBOLS], colours[i % NUM_COLOURS], &x_in);
    snprintf(text, sizeof text, "%zu more: see --name", list->count - num_drawn(subject, list));
    if (list->count > num_drawn(subject, list))
        put_entry(d, text, 0, "#ffffff", &x_in);
    d->y_in += x_in > left_in ? line_in : 0;
}

/* All panels of a subject. Counters have scales of their own. */
static void put_section(drawing *d, weir_subject subject)
{
    const series_list *list = &d->set->lists[subject];
    size_t num_measures, end = num_drawn(subject, list), step = subject == WEIR_SUBJECT_COUNTER ? 1 : end;
    const weir_measure *measures = weir_subject_measures(subject, &num_measures);
    int column = 0;
    if (end == 0)
        return;
    put_section_heading(d, subject, list);
    for (size_t i = 0; i < num_measures; i++)
        for (size_t first = 0; first < end && is_drawn(subject, &measures[i]); first += step)
            put_panel(d, subject, &measures[i], first, first + step, &column);
    d->y_in += (column ? row_in : 0) + 0.15;
}

/* ---- the first picture: boxes ------------------------------------------------------------------------------- */

static void put_box(const drawing *d, double start, double end, double low, double high, const char *colour)
{
    end = fmin(end + 0.0015 * d->set->end, fmax(end, d->set->end)); /* no seam before the next one */
    fprintf(d->out, "%.12g %.12g %.6g %.6g %ld\n", at(d, start), at(d, end), low, high, strtol(colour + 1, NULL, 16));
}

static void begin_boxes(drawing *d)
{
    fprintf(d->out, "$b%zu << EOD\n", ++d->num_blocks);
}

/* Draws them; more = curves in addition, or "". */
static void end_boxes(const drawing *d, const char *more)
{
    fprintf(d->out,
            "EOD\nplot $b%zu using 1:3:1:2:3:4:5 with boxxyerror fillstyle solid 1 noborder linecolor rgb variable "
            "notitle%s\nunset label\n",
            d->num_blocks, more);
}

/* A row over the whole width, with a name at its left. */
static void begin_row(drawing *d, const char *name, double height_in)
{
    put_place(d, beside_in, width_in - right_in, d->y_in, d->y_in + height_in);
    if (name)
        put_screen_label(d, name, MAX_BESIDE, 0.2, d->y_in + height_in / 2, "left");
    d->y_in += height_in;
}

/* A part of a stack. */
typedef struct layer {
    const char *title, *colour, *measure;
    weir_subject subject;
    const char *most, *rest_of; /* measures: it is not above the first, and without the second; NULL = none */
} layer;

static double layer_value(const layer *part, const series_point *point)
{
    double value = series_value(part->subject, point, part->measure);
    double rest = part->rest_of ? series_value(part->subject, point, part->rest_of) : 0;
    if (part->most && isfinite(value))
        value = fmin(value, series_value(part->subject, point, part->most));
    return fmax(value - (isfinite(rest) ? rest : 0), 0);
}

static void put_layers_legend(drawing *d, const char *heading, const layer *layers, size_t count)
{
    double x_in = beside_in;
    put_screen_label(d, heading, MAX_TEXT, 0.2, d->y_in + line_in / 2, "left font ',12'");
    for (size_t i = 0; i < count; i++)
        put_entry(d, layers[i].title, 5, layers[i].colour, &x_in);
    d->y_in += line_in + 0.04;
}

static const layer states[] = {
    /* a codec's own threads may use more CPU time than the slots are busy */
    { "busy on a CPU", "#0072b2", "cpu_slot_share", WEIR_SUBJECT_STAGE, "busy_share", NULL },
    { "busy otherwise", "#9ecae1", "busy_share", WEIR_SUBJECT_STAGE, NULL, "cpu_slot_share" },
    { "waits for input", "#d9d9d9", "wait_in_share", WEIR_SUBJECT_STAGE, NULL, NULL },
    { "for a thread", "#d55e00", "wait_thread_share", WEIR_SUBJECT_STAGE, NULL, NULL },
    { "for its turn", "#cc79a7", "wait_turn_share", WEIR_SUBJECT_STAGE, NULL, NULL },
    { "for room", "#f0e442", "wait_out_share", WEIR_SUBJECT_STAGE, NULL, NULL },
};

static const layer cpu_parts[] = {
    { "this process", "#0072b2", "cpus", WEIR_SUBJECT_PROCESS, NULL, NULL },
    { "throttled", "#000000", "throttled_share", WEIR_SUBJECT_MACHINE, NULL, NULL }, /* of one CPU */
    { "other virtual machines", "#cc79a7", "stolen_cpus", WEIR_SUBJECT_MACHINE, NULL, NULL },
    { "other programs", "#d55e00", "other_cpus", WEIR_SUBJECT_MACHINE, NULL, NULL },
    { "idle", "#d9d9d9", "idle_cpus", WEIR_SUBJECT_MACHINE, NULL, NULL },
};

enum { NUM_STATES = sizeof states / sizeof states[0], NUM_PARTS = sizeof cpu_parts / sizeof cpu_parts[0] };

/* The point of another series at the same time. */
static const series_point *point_at(const series_list *list, size_t index, double time_s)
{
    for (size_t i = 0; i < list->count; i++)
        if (index < list->all[i].num_points && fabs(list->all[i].points[index].start - time_s) < 0.5)
            return &list->all[i].points[index];
    return NULL;
}

/* The layers of each lap on each other, up to `most`. `line` is a series of the first layer's subject. */
static void put_stack(drawing *d, const series *line, const layer *layers, size_t num_layers, double most)
{
    begin_boxes(d);
    for (size_t j = 0; j < line->num_points; j++) {
        const series_point *point = &line->points[j];
        double sum = 0;
        for (size_t i = 0; i < num_layers; i++) {
            bool is_own = layers[i].subject == layers[0].subject;
            double value = layer_value(&layers[i],
                                       is_own ? point : point_at(&d->set->lists[layers[i].subject], j, point->start));
            double top = fmin(sum + value, i == 0 ? INFINITY : fmax(most, sum));
            if (top > sum)
                put_box(d, point->start, point->end, sum, top, layers[i].colour);
            sum = top;
        }
    }
}

static bool has_states(const series *line)
{
    return line->num_points && strcmp(line->kind, "sink") != 0 && strcmp(line->kind, "merge") != 0 &&
           isfinite(series_value(WEIR_SUBJECT_STAGE, &line->points[0], "busy_share"));
}

static void put_states(drawing *d)
{
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) { /* sources come first */
        weir_subject subject = pass ? WEIR_SUBJECT_STAGE : WEIR_SUBJECT_FLOW;
        const series_list *list = &d->set->lists[subject];
        for (size_t i = 0; i < list->count && count < MAX_STAGES; i++) {
            if (!has_states(&list->all[i]))
                continue;
            if (count++ == 0)
                put_layers_legend(d, "Time of the slots", states, NUM_STATES);
            begin_row(d, list->all[i].name, 0.5);
            fputs("set yrange [0:1]\nset ytics ('100 %%' 1)\n", d->out);
            put_stack(d, &list->all[i], states, NUM_STATES, 1);
            end_boxes(d, "");
            d->y_in += 0.1;
        }
    }
    d->y_in += count ? 0.1 : 0;
}

static void put_cpu_stack(drawing *d)
{
    const series_list *processes = &d->set->lists[WEIR_SUBJECT_PROCESS];
    const series *line = processes->count == 1 ? processes->all : NULL;
    range used = empty_range;
    char budget[120], title[40];
    if (line)
        range_add_curve(&used, d->set, WEIR_SUBJECT_PROCESS, line, "cpus");
    if (!line || used.high == 0)
        return;
    double most = line->capacity ? (double)line->capacity : used.high;
    snprintf(title, sizeof title, "of %g", most);
    snprintf(budget, sizeof budget,
             ", \\\n     %g with lines linewidth 1.5 dashtype 2 linecolor rgb '#000000' notitle", most);
    put_layers_legend(d, "CPUs", cpu_parts, NUM_PARTS);
    begin_row(d, title, 0.8);
    put_linear_axis(d->out, fmax(most, used.high));
    put_stack(d, line, cpu_parts, NUM_PARTS, most);
    end_boxes(d, budget);
    d->y_in += 0.2;
}

/* The share of its room that a queue uses; that of the time in which it was not empty, if the level is not known. */
static double filled_share(const series *queue, const series_point *point)
{
    double depth = series_value(WEIR_SUBJECT_QUEUE, point, "ave_depth");
    return queue->capacity > 0 && isfinite(depth) ? fmin(1, depth / (double)queue->capacity)
                                                  : series_value(WEIR_SUBJECT_QUEUE, point, "occupancy_rate");
}

/* From white (0) to dark blue. */
static void mix_level(double level, char colour[8])
{
    static const int full[] = { 0x08, 0x3c, 0x78 };
    int parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = (int)lround(242 + level * (full[i] - 242));
    snprintf(colour, 8, "#%02x%02x%02x", parts[0] & 0xff, parts[1] & 0xff, parts[2] & 0xff);
}

static void put_queue_strips(drawing *d)
{
    static const layer levels[] = { { "empty", "#f2f2f2", "", 0, NULL, NULL },
                                    { "half full", "#7d97b5", "", 0, NULL, NULL },
                                    { "full", "#083c78", "", 0, NULL, NULL } };
    const series_list *queues = &d->set->lists[WEIR_SUBJECT_QUEUE];
    if (queues->count)
        put_layers_legend(d, "Level of the queues", levels, 3);
    for (size_t i = 0; i < queues->count && i < MAX_STAGES; i++) {
        const series *queue = &queues->all[i];
        begin_row(d, queue->name, 0.22);
        fputs("set yrange [0:1]\nunset ytics\n", d->out);
        begin_boxes(d);
        for (size_t j = 0; j < queue->num_points; j++) {
            char colour[8];
            double level = filled_share(queue, &queue->points[j]);
            mix_level(isfinite(level) ? fmax(0, level) : 0, colour);
            put_box(d, queue->points[j].start, queue->points[j].end, 0, 1, colour);
        }
        end_boxes(d, "");
        d->y_in += 0.05;
    }
}

static const char *const limit_colours[WEIR_NUM_VERDICTS] = {
    [WEIR_VERDICT_UNKNOWN] = "#d9d9d9", [WEIR_VERDICT_NONE] = "#009e73",     [WEIR_VERDICT_CONSUMER] = "#56b4e9",
    [WEIR_VERDICT_SOURCE] = "#cc79a7",  [WEIR_VERDICT_SLOTS] = "#0072b2",    [WEIR_VERDICT_OUTSIDE] = "#e69f00",
    [WEIR_VERDICT_THREADS] = "#d55e00", [WEIR_VERDICT_CPUS] = "#a02020",     [WEIR_VERDICT_ORDER] = "#7f5ab6",
    [WEIR_VERDICT_QUEUE] = "#c8b400",   [WEIR_VERDICT_FAILURES] = "#000000",
};

/* A band that says what limits each part of the run. */
static void put_limits(drawing *d)
{
    const series_marks *limits = &d->set->limits;
    bool is_told[WEIR_NUM_VERDICTS] = { false };
    double x_in = beside_in;
    if (limits->count == 0)
        return;
    put_screen_label(d, "Limit", MAX_TEXT, 0.2, d->y_in + line_in / 2, "left font ',12'");
    for (const series_mark *limit = limits->all; limit < limits->all + limits->count; limit++) {
        if (!is_told[limit->kind])
            put_entry(d, limit->text, 5, limit_colours[limit->kind], &x_in);
        is_told[limit->kind] = true;
    }
    d->y_in += line_in + 0.04;
    begin_row(d, NULL, 0.26);
    fputs("set yrange [0:1]\nunset ytics\n", d->out);
    begin_boxes(d);
    for (size_t i = 0; i < limits->count; i++)
        put_box(d, limits->all[i].start, limits->all[i].end, 0, 1, limit_colours[limits->all[i].kind]);
    end_boxes(d, "");
    d->y_in += 0.16;
}

static void put_throughput(drawing *d)
{
    weir_subject subject;
    const series *line = series_throughput(d->set, &subject);
    if (!line)
        return;
    const char *measure = subject == WEIR_SUBJECT_QUEUE ? "items_per_s" : "tasks_per_s";
    const series_list *list = &d->set->lists[subject];
    range values = empty_range;
    begin_row(d, subject == WEIR_SUBJECT_QUEUE ? "Items per second" : "Tasks per second", 1.7);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->all[i].plain_name, line->plain_name) == 0)
            range_add_curve(&values, d->set, subject, &list->all[i], measure);
    put_linear_axis(d->out, 1.15 * values.high);      /* names of phases are above the curve */
    for (size_t i = 0; i < d->set->limits.count; i++) /* pale, as the band below it */
        shade_mark(d, &d->set->limits.all[i], limit_colours[d->set->limits.all[i].kind], 0.12);
    put_marks(d, &d->set->phases, width_in - beside_in - right_in, true);
    put_pauses(d);
    put_marks(d, &d->set->events, width_in - beside_in - right_in, true);
    put_curves(d, subject, measure, line->plain_name, 0, list->count, 0);
    d->y_in += 0.06;
}

static void put_overview(drawing *d)
{
    double top_in = d->y_in;
    put_throughput(d);
    put_limits(d);
    put_states(d);
    put_cpu_stack(d);
    put_queue_strips(d);
    if (d->y_in == top_in)
        return;
    begin_row(d, NULL, 0.02); /* the axis of all of them */
    fprintf(d->out, "set format x '%%g'\nset xlabel '%s since the start' offset 0,0.4\n", d->unit);
    fputs("unset ytics\nset yrange [0:1]\nset border 1\nplot NaN notitle\nset border 3\n", d->out);
    d->y_in += 0.62;
}

/* ---- the picture -------------------------------------------------------------------------------------------- */

static void put_terminal(const drawing *d)
{
    static const double dpi = 110;
    fputs("set encoding utf8\n", d->out);
    if (d->plan->medium == WEIR_OUTPUT_PNG)
        fprintf(d->out, "set terminal pngcairo noenhanced size %.0f,%.0f\nset pointsize 0.9\n", width_in * dpi,
                d->height_in * dpi);
    else if (d->plan->medium == WEIR_OUTPUT_SVG)
        fprintf(d->out,
                "set terminal svg noenhanced size %.0f,%.0f dynamic font 'DejaVu Sans,Verdana,sans-serif,12.5' "
                "background '#ffffff'\nset pointsize 0.55\n",
                width_in * 96, d->height_in * 96);
    else
        fprintf(d->out, "set terminal pdfcairo noenhanced size %.2fin,%.2fin fontscale 0.85\nset pointsize 0.5\n",
                width_in, d->height_in);
    fprintf(d->out,
            "set xtics nomirror font ',10'\nset xrange [0:%.17g]\nset border 3 linecolor rgb '#404040'\n"
            "set grid xtics ytics linecolor rgb '#d4d4d4' linewidth 1 dashtype 1\nset multiplot\n",
            at(d, d->set->end > 0 ? d->set->end : 1));
}

static void put_all(drawing *d)
{
    d->y_in = 0.1;
    for (const char *line = d->plan->title; *line;) {
        char text[400];
        size_t length = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)length, line);
        put_screen_label(d, text, SIZE_MAX, 0.2, d->y_in + 0.17, "left font ',13'");
        d->y_in += 0.31;
        line += length + (line[length] == '\n');
    }
    d->y_in += 0.1;
    if (d->plan->overview)
        put_longest_pauses(d);
    if (d->plan->overview)
        put_overview(d);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && d->plan->details; subject++)
        put_section(d, subject);
}

/* The height is known when all has been laid out once. */
void drawing_write(FILE *gnuplot, const drawing_plan *plan, const series_set *set)
{
    char *text = NULL;
    size_t size;
    double end = set->end;
    drawing d = { .plan = plan, .set = set, .height_in = 1 };
    d.unit_s = end >= 4 * 86400 ? 86400 : end >= 4 * 3600 ? 3600 : end >= 600 ? 60 : 1;
    d.unit = end >= 4 * 86400 ? "days" : end >= 4 * 3600 ? "hours" : end >= 600 ? "minutes" : "seconds";
    d.out = memory_file_open(&text, &size);
    put_all(&d);
    memory_file_close(d.out);
    free(text);
    d.height_in = d.y_in + 0.1;
    d.out = gnuplot;
    d.num_blocks = d.num_labels = 0;
    put_terminal(&d);
    put_all(&d);
    fputs("unset multiplot\nunset output\n", gnuplot);
}
