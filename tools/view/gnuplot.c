/*
 * Layout from the top, in inches: the title; the first picture, over the whole width; then, for each subject, a heading with
 * the names of its series, and its panels, two in a row. Panels of a subject with the same unit have the same scale.
 */
#include "gnuplot.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/verdict.h>

#include "format.h"
#include "memory.h"
#include "metric_table.h"
#include "plot_panel.h"
#include "tty.h"

/* Colours for all kinds of colour vision (Okabe and Ito, 2008); symbols distinguish curves in grey prints, and if
   there are more curves than colours. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000" };
static const int symbols[] = { 7, 5, 9, 11, 13, 6, 4, 8, 10, 12 }; /* gnuplot's: filled and empty ● ■ ▲ ▼ ◆ */
static const char *const tints[] = { "#e9edf2", "#f7ecd9", "#e2f0e4", "#f3e3ee", "#dcebf5", "#dcdcdc" };
static const char *const event_colours[] = { "#8a2be2", "#c71585", "#2f4f4f", "#8b4513",
                                             "#4682b4", "#556b2f", "#808080" };
enum {
    NUM_COLOURS = sizeof colours / sizeof colours[0],
    NUM_SYMBOLS = sizeof symbols / sizeof symbols[0],
    NUM_TINTS = sizeof tints / sizeof tints[0] - 1, /* the last is for all others, as that of events */
    NUM_EVENTS = sizeof event_colours / sizeof event_colours[0] - 1,
    MAX_LINES = 14,  /* of spans, and of counters: more could not be distinguished */
    MAX_STAGES = 12, /* in the first picture */
    MAX_MARKS = 150, /* events, and phases: more would hide the curves */
    MAX_TEXT = 32,   /* characters of a name in a legend */
    MAX_BESIDE = 24, /* the same left of a panel */
    MAX_EVENT_TEXT = 20,
    SYMBOLS_ON_CURVE = 12 /* about */
};

/* Of the first, second, ... curve of a panel. gnuplot's own dots are too thin to follow across a figure. */
static const struct {
    const char *dash;
    double width;
} styles[PANEL_MAX_CURVES] = { { "1", 2.2 },     { "2", 1.7 },     { "1", 1.1 },     { "4", 1.5 },
                               { "(3,5)", 1.8 }, { "(9,3)", 1.2 }, { "(1,3)", 1.5 }, { "(9,3,1,3)", 1.2 } };

typedef struct drawing {
    FILE *out;
    const drawing_plan *plan;
    const series_set *set;
    double width_in, height_in, stretch; /* of rows, where there is more room than they need */
    double y_in;                         /* what is drawn ends here, from the top */
    double unit_s, local_origin_s;       /* of the time axis */
    const char *unit;
    const char *phases[NUM_TINTS], *events[NUM_EVENTS]; /* the names that have a colour of their own */
    size_t num_phases, num_events;
    size_t num_blocks, num_labels;
} drawing;

static const double left_in = 0.85, right_in = 0.25, beside_in = 2.1, character_in = 0.085, line_in = 0.22;

/* ---- text and data ------------------------------------------------------------------------------------------ */

/* Writes a gnuplot string in single quotes, in which only the quote is special. At most max_characters. */
static void put_string(FILE *out, const char *text, size_t max_characters)
{
    size_t count = 0, all = 0;
    for (const char *c = text; *c; c++)
        all += ((unsigned char)*c & 0xc0) != 0x80;
    fputc('\'', out);
    for (const char *c = text; *c; c++) {
        bool begins = ((unsigned char)*c & 0xc0) != 0x80;
        if (begins && ++count == max_characters && all > max_characters) {
            fputs("…", out);
            break;
        }
        if (*c == '\'')
            fputs("''", out);
        else
            fputc((unsigned char)*c < 0x20 ? ' ' : *c, out);
    }
    fputc('\'', out);
}

/* A time since the origin on the axis: in its unit, or as local time of day in seconds of gnuplot's epoch. */
static double at(const drawing *d, double time_s)
{
    return d->plan->clock ? d->local_origin_s + time_s : time_s / d->unit_s;
}

static void choose_unit(drawing *d)
{
    time_t origin = (time_t)(d->set->origin_unix_ns / 1000000000);
    struct tm local;
    d->local_origin_s = (double)d->set->origin_unix_ns / 1e9;
    if (localtime_r(&origin, &local))
        d->local_origin_s += (double)local.tm_gmtoff;
    double end = d->set->end;
    d->unit_s = end >= 4 * 86400 ? 86400 : end >= 4 * 3600 ? 3600 : end >= 600 ? 60 : 1;
    d->unit = end >= 4 * 86400 ? "days" : end >= 4 * 3600 ? "hours" : end >= 600 ? "minutes" : "seconds";
}

static const char *clock_format(const drawing *d)
{
    return d->set->end < 20          ? "%H:%M:%.1S"
           : d->set->end < 600       ? "%H:%M:%S"
           : d->set->end < 2 * 86400 ? "%H:%M"
                                     : "%d.%m. %H:%M";
}

static void put_screen_label(drawing *d, const char *text, double x_in, double y_in, const char *how)
{
    fprintf(d->out, "set label %zu ", ++d->num_labels);
    put_string(d->out, text, SIZE_MAX);
    fprintf(d->out, " at screen %.5f, screen %.5f %s\n", x_in / d->width_in, 1 - y_in / d->height_in, how);
}

/* An entry of a legend: a symbol and a name. *x_in moves on; a new line begins at left. */
static void put_entry(drawing *d, const char *text, int symbol, const char *colour, double *x_in)
{
    char cut[4 * MAX_TEXT], how[120];
    size_t length = strlen(text) > MAX_TEXT ? MAX_TEXT : strlen(text);
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    snprintf(cut, sizeof cut, "%.*s%s", (int)length, text, text[length] ? "…" : "");
    double entry_in = ((double)length + 1) * character_in + 0.35;
    if (*x_in > left_in && *x_in + entry_in > d->width_in - right_in) {
        *x_in = left_in;
        d->y_in += line_in;
    }
    snprintf(how, sizeof how, "left point pointtype %d pointsize 1.5 linecolor rgb '%s' offset 1.2,0", symbol,
             colour);
    put_screen_label(d, cut, *x_in, d->y_in + line_in / 2, how);
    *x_in += entry_in;
}

/* The place of the next plot; it has nothing of the one before. */
static void put_place(const drawing *d, double from_in, double to_in, double top_in, double bottom_in)
{
    fprintf(d->out,
            "unset object\nunset arrow\nunset xlabel\nunset key\nunset logscale y\nset format x "
            "''\nset format y '%%g'\n"
            "set ytics autofreq nomirror font ',10'\nset lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
            from_in / d->width_in, to_in / d->width_in, 1 - top_in / d->height_in, 1 - bottom_in / d->height_in);
}

static void put_times(const drawing *d)
{
    fprintf(d->out, "set format x '%s'%s\n", d->plan->clock ? clock_format(d) : "%g", d->plan->clock ? " time" : "");
}

static void put_times_title(const drawing *d)
{
    fprintf(d->out, "set xlabel '%s%s'%s\n", d->plan->clock ? "local time" : d->unit,
            d->plan->clock ? "" : " since the start", d->plan->medium == DRAWING_TERMINAL ? "" : " offset 0,0.4");
}

/* ---- axes --------------------------------------------------------------------------------------------------- */

/* The range of the values above 0 (high is 0 if there are none); least and most are those of all values. */
typedef struct range {
    double low, high, least, most;
} range;

static const range empty_range = { INFINITY, 0, INFINITY, -INFINITY };

static void range_add(range *r, double value)
{
    if (!isfinite(value))
        return;
    r->least = fmin(r->least, value);
    r->most = fmax(r->most, value);
    if (value > 0) {
        r->low = fmin(r->low, value);
        r->high = fmax(r->high, value);
    }
}

/* A lap that a mark has cut very short is not representative, and must not determine the scale. */
static bool counts_for_scale(const series *s, size_t point)
{
    const series_point *middle = &s->points[s->num_points / 2];
    double longest = fmax(s->points[0].end - s->points[0].start, middle->end - middle->start);
    return s->points[point].end - s->points[point].start >= longest / 10;
}

static void range_add_curve(range *r, weir_subject subject, const series *line, const char *measure)
{
    for (size_t j = 0; j < line->num_points; j++)
        if (counts_for_scale(line, j))
            range_add(r, series_value(subject, &line->points[j], measure));
}

/* The largest of 1, 2, 5, 10, … that is not above, as (number, power of ten). */
static double step_below(double value, double *power)
{
    *power = pow(10, floor(log10(value) + 1e-9));
    double digit = value / *power * (1 + 1e-9);
    return digit >= 5 ? 5 : digit >= 2 ? 2 : 1;
}

static double next_step(double digit)
{
    return digit == 1 ? 2 : digit == 2 ? 5 : 10;
}

/*
 * A logarithmic axis of durations, over at most five decades. Returns its bottom value, at which zero and shorter
 * durations are drawn.
 */
static double put_time_axis(FILE *out, range values, bool has_utf8)
{
    const double shortest = 1e-6, decades = 1e5;
    if (values.high < shortest)
        values = (range){ shortest, 1e-3, values.least, values.most };
    double low = fmax(fmax(values.low, values.high / decades), shortest), power;
    double digit = step_below(low, &power), tic = digit * power;
    bool is_wide = values.high / low > 120, has_less = values.least < low;
    const double foot = tic * pow(fmax(values.high / tic, 2), has_less ? -0.15 : -0.08);
    fputs("set logscale y\nset ytics (", out);
    if (has_less)
        fprintf(out, "'%s' %.6g", values.low < low ? "less" : "0", foot);
    for (const char *between = has_less ? ", '" : "'"; tic < values.high * 2; tic = digit * power) {
        if (!is_wide || digit == 1) {
            char text[WEIR_FORMAT_BYTES], unit[8];
            double number;
            weir__text_format_time(text, tic);
            if (sscanf(text, "%lf %7s", &number, unit) == 2) /* no decimals that are 0 */
                fprintf(out, "%s%g %s' %.3g", between, number, strcmp(unit, "us") == 0 && has_utf8 ? "µs" : unit,
                        tic);
            between = ", '";
        }
        digit = next_step(digit);
        power *= digit == 10 ? 10 : 1;
        digit = digit == 10 ? 1 : digit;
    }
    fprintf(out, ")\nset yrange [%.6g:%.6g]\n", foot, fmax(values.high * 1.15, foot * 2));
    return foot;
}

static void put_linear_axis(FILE *out, double high)
{
    fprintf(out, "set yrange [0:%.6g]\n", 1.08 * (high > 0 ? high : 1));
}

/* Of a unit of weir_measure. Returns the smallest value that can be drawn. */
static double put_axis(const drawing *d, const char *unit, range values)
{
    if (strcmp(unit, "s") == 0)
        return put_time_axis(d->out, values, d->plan->medium != DRAWING_TERMINAL || tty_has_utf8());
    if (strcmp(unit, "share") == 0 && values.high <= 1.001)
        fputs("set yrange [0:1.03]\nset ytics ('0 %%' 0, '25 %%' 0.25, '50 %%' 0.5, '75 %%' 0.75, '100 %%' 1)\n",
              d->out);
    else if (strcmp(unit, "units") == 0)
        fputs("set yrange [*:*]\nset format y '%.4g'\n", d->out);
    else if (strncmp(unit, "bytes", 5) == 0) {
        put_linear_axis(d->out, fmax(values.high, 1000));
        fputs("set format y '%.0s %cB'\n", d->out);
    } else
        put_linear_axis(d->out, values.high);
    return 0;
}

/* ---- events and phases -------------------------------------------------------------------------------------- */

/* The index of a name among those that have a colour; count = it has none of its own. */
static size_t index_of(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static size_t name_marks(const series_marks *marks, const char **names, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < marks->count && count < max; i++)
        if (index_of(names, count, marks->all[i].text) == count)
            names[count++] = marks->all[i].text;
    return count;
}

/* Skips marks that are out of view, or too close to the previous one to be distinguished. */
static bool is_mark_shown(const drawing *d, const series_mark *mark, double *shown_until)
{
    double narrow = d->set->end / MAX_MARKS;
    bool is_narrow = mark->end - mark->start < narrow;
    if (mark->end < 0 || mark->start > d->set->end || (is_narrow && mark->start < *shown_until))
        return false;
    *shown_until = mark->start + narrow;
    return true;
}

static void shade_mark(const drawing *d, const series_mark *mark, const char *fill)
{
    fprintf(d->out, "set object rectangle from first %.12g, graph 0 to first %.12g, graph 1 behind %s noborder\n",
            at(d, mark->start), at(d, mark->end), fill);
}

static void put_edge(const drawing *d, double at_s, const char *how)
{
    fprintf(d->out, "set arrow from first %.12g, graph 0 to first %.12g, graph 1 nohead %s\n", at(d, at_s),
            at(d, at_s), how);
}

static void put_name(drawing *d, const char *text, double at_s, size_t max_characters, const char *how)
{
    fprintf(d->out, "set label %zu ", ++d->num_labels);
    put_string(d->out, text, max_characters);
    fprintf(d->out, " at first %.12g, %s textcolor rgb '#404040' front\n", at(d, at_s), how);
}

/* Phases are shaded, with an edge for grey prints; events are dotted lines. Names are drawn if they fit; the legend has
   the colours. */
static void put_marks(drawing *d, double width_in, bool named)
{
    const series_marks *phases = &d->set->phases, *events = &d->set->events;
    double shown_until = -INFINITY, named_until = -INFINITY;
    for (size_t i = 0; i < phases->count; i++) {
        const series_mark *phase = &phases->all[i];
        char fill[64];
        if (!is_mark_shown(d, phase, &shown_until))
            continue;
        snprintf(fill, sizeof fill, "fillcolor rgb '%s' fillstyle solid",
                 tints[index_of(d->phases, d->num_phases, phase->text)]);
        shade_mark(d, phase, fill);
        put_edge(d, phase->start, "linewidth 1 linecolor rgb '#b4b4b4' back");
        double room_in = (phase->end - phase->start) / d->set->end * width_in;
        if (named && room_in > ((double)strlen(phase->text) + 1) * character_in)
            put_name(d, phase->text, (phase->start + phase->end) / 2, MAX_TEXT, "graph 0.92 center");
    }
    shown_until = -INFINITY;
    for (size_t i = 0; i < events->count; i++) {
        const series_mark *event = &events->all[i];
        size_t kind = index_of(d->events, d->num_events, event->text);
        char how[64];
        if (!is_mark_shown(d, event, &shown_until))
            continue;
        if (event->end > event->start)
            shade_mark(d, event, "fillcolor rgb '#808080' fillstyle pattern 4 transparent");
        snprintf(how, sizeof how, "dashtype 3 linecolor rgb '%s' back",
                 event_colours[kind < d->num_events ? kind : NUM_EVENTS]);
        put_edge(d, event->start, how);
        if (named && event->start >= named_until) {
            put_name(d, event->text, event->start, MAX_EVENT_TEXT, "graph 0.05 left rotate by 90 offset 0.6,0");
            named_until = event->start + 0.18 / width_in * d->set->end;
        }
    }
}

static void put_marks_legend(drawing *d)
{
    double x_in = left_in;
    for (size_t i = 0; i < d->num_phases; i++)
        put_entry(d, d->phases[i], 5, tints[i], &x_in);
    for (size_t i = 0; i < d->num_events; i++)
        put_entry(d, d->events[i], 2, event_colours[i], &x_in);
    d->y_in += x_in > left_in ? line_in : 0;
}

/* ---- curves ------------------------------------------------------------------------------------------------- */

/* Each lap is a step from its start to its end; where laps are missing, the curve is interrupted. Returns the block. */
static size_t put_block(drawing *d, weir_subject subject, const series *line, const char *measure, double foot)
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
    return d->num_blocks;
}

/* Adds a curve to the commands of a plot. colour: an index; style: of the curve in its panel. */
static void add_curve(const drawing *d, FILE *commands, size_t block, const series *line, size_t colour, int style,
                      bool has_symbols)
{
    size_t every = 2 * (line->num_points / SYMBOLS_ON_CURVE + 1);
    double thin = line->num_points > 200 ? 0.6 : 1;
    fprintf(commands, "%s$b%zu using 1:2 with %s", ftell(commands) ? ", \\\n     " : "plot ", block,
            has_symbols ? "linespoints" : "lines");
    if (d->plan->medium != DRAWING_TERMINAL)
        fprintf(commands, " linewidth %.2f linecolor rgb '%s' dashtype %s", styles[style].width * thin,
                colours[colour % NUM_COLOURS], styles[style].dash);
    if (has_symbols)
        fprintf(commands, " pointtype %d pointinterval %zu", symbols[colour % NUM_SYMBOLS], every);
}

static size_t num_drawn(weir_subject subject, const series_list *list)
{
    return subject >= WEIR_SUBJECT_SPAN && list->count > MAX_LINES ? MAX_LINES : list->count;
}

static range panel_range(const panel *panels, size_t num_panels, const panel *p, const series_list *list)
{
    range values = empty_range;
    for (size_t k = 0; k < num_panels; k++)
        for (int c = 0; c < panels[k].num_curves; c++)
            for (size_t i = 0; i < num_drawn(p->subject, list); i++)
                if ((&panels[k] == p || !p->group) && strcmp(panels[k].curves[c]->unit, p->curves[0]->unit) == 0 &&
                    panel_has(&panels[k], &list->all[i]))
                    range_add_curve(&values, p->subject, &list->all[i], panels[k].curves[c]->name);
    for (size_t i = 0; i < list->count && strcmp(p->curves[0]->unit, "items") == 0; i++)
        range_add(&values, (double)list->all[i].capacity);
    return values;
}

/* A single series has a colour for each curve; several have one each, and the curves differ by their dashes. */
static void put_panel(drawing *d, const panel *p, const series_list *list, range values)
{
    char *text = NULL, title[64];
    size_t size, num_lines = 0;
    bool is_terminal = d->plan->medium == DRAWING_TERMINAL;
    double foot = put_axis(d, p->curves[0]->unit, values);
    FILE *commands = memory_file_open(&text, &size);
    for (size_t i = 0; i < list->count; i++)
        num_lines += panel_has(p, &list->all[i]);
    for (size_t i = 0; i < num_drawn(p->subject, list); i++)
        for (int c = 0; c < p->num_curves && panel_has(p, &list->all[i]); c++) {
            range own = empty_range;
            range_add_curve(&own, p->subject, &list->all[i], p->curves[c]->name);
            if (own.high == 0 && own.least >= 0 && p->subject <= WEIR_SUBJECT_FLOW)
                continue; /* a sink has no tasks */
            size_t block = put_block(d, p->subject, &list->all[i], p->curves[c]->name, foot);
            panel_curve_title(p->curves[c], title);
            bool is_single = num_lines == 1;
            add_curve(d, commands, block, &list->all[i], is_single ? (size_t)c : i, is_single ? 0 : c,
                      !is_terminal && !is_single && c == 0);
            fputs(is_terminal || (is_single && p->num_curves > 1) ? " title " : " notitle", commands);
            char whole[256];
            snprintf(whole, sizeof whole, "%s%s%s", is_terminal ? list->all[i].name : "", is_terminal ? " " : "",
                     title);
            if (is_terminal || (is_single && p->num_curves > 1))
                put_string(commands, whole, 2 * MAX_TEXT);
        }
    for (int c = 0; c < p->num_curves && num_lines > 1 && p->num_curves > 1 && !is_terminal; c++) {
        panel_curve_title(p->curves[c], title);
        fprintf(commands, ", \\\n     NaN with lines linewidth %.2f linecolor rgb '#303030' dashtype %s title ",
                styles[c].width, styles[c].dash);
        put_string(commands, title, MAX_TEXT);
    }
    for (size_t i = 0; i < list->count && !is_terminal && strcmp(p->curves[0]->unit, "items") == 0; i++)
        if (list->all[i].capacity > 0)
            fprintf(commands, ", \\\n     %" PRId64 " with lines linewidth 1 linecolor rgb '%s' dashtype 2 notitle",
                    list->all[i].capacity, colours[i % NUM_COLOURS]);
    memory_file_close(commands);
    fprintf(d->out, "%s\nunset label\n", size ? text : "plot NaN notitle");
    free(text);
}

static void put_cell(drawing *d, const panel *p, const series_list *list, range values, double from_in, double to_in,
                     double top_in, double height_in)
{
    double panel_top_in = top_in + 0.32, bottom_in = top_in + height_in - 0.3;
    put_place(d, from_in + left_in, to_in - right_in, panel_top_in, bottom_in);
    put_times(d);
    put_screen_label(d, p->title, from_in + left_in, panel_top_in - 0.12, "left");
    put_marks(d, to_in - from_in - left_in - right_in, false);
    fprintf(d->out,
            "set key at screen %.5f, screen %.5f right bottom horizontal Left reverse samplen 1.5 width 0 noopaque "
            "font ',10'\n",
            (to_in - right_in) / d->width_in, 1 - (panel_top_in - 0.01) / d->height_in);
    put_panel(d, p, list, values);
}

static void put_section_heading(drawing *d, weir_subject subject, const series_list *list)
{
    char text[64];
    double x_in = left_in;
    put_screen_label(d, metric_subject_title(subject), 0.2, d->y_in + 0.2, "left font ',14'");
    d->y_in += 0.36;
    for (size_t i = 0; i < num_drawn(subject, list); i++)
        put_entry(d, list->all[i].name, symbols[i % NUM_SYMBOLS], colours[i % NUM_COLOURS], &x_in);
    snprintf(text, sizeof text, "%zu more: see --name", list->count - num_drawn(subject, list));
    if (list->count > num_drawn(subject, list))
        put_entry(d, text, 0, "#ffffff", &x_in);
    d->y_in += line_in;
}

/* All panels of a subject. */
static void put_section(drawing *d, weir_subject subject)
{
    const series_list *list = &d->set->lists[subject];
    bool is_terminal = d->plan->medium == DRAWING_TERMINAL;
    panel panels[PANEL_MAX];
    size_t num_panels = panels_make(subject, list, d->plan->counts, is_terminal, panels);
    double row_in = 1.85 * d->stretch;
    if (num_panels && !is_terminal)
        put_section_heading(d, subject, list);
    for (size_t i = 0; i < num_panels; i++) {
        range values = panel_range(panels, num_panels, &panels[i], list);
        bool is_right = i % 2, is_alone = num_panels == 1;
        if (is_terminal) {
            fputs("unset logscale y\nset ytics autofreq\nset format y '%g'\nset title ", d->out);
            put_string(d->out, panels[i].title, SIZE_MAX);
            fputc('\n', d->out);
            put_times_title(d);
            put_panel(d, &panels[i], list, values);
            continue;
        }
        put_cell(d, &panels[i], list, values, is_right ? d->width_in / 2 : 0,
                 is_right || is_alone ? d->width_in : d->width_in / 2, d->y_in, row_in);
        d->y_in += is_right || i == num_panels - 1 ? row_in : 0;
    }
    d->y_in += num_panels ? 0.15 : 0;
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
    put_place(d, beside_in, d->width_in - right_in, d->y_in, d->y_in + height_in * d->stretch);
    if (name) {
        fprintf(d->out, "set label %zu ", ++d->num_labels);
        put_string(d->out, name, MAX_BESIDE);
        fprintf(d->out, " at screen %.5f, screen %.5f left\n", 0.2 / d->width_in,
                1 - (d->y_in + height_in * d->stretch / 2) / d->height_in);
    }
    d->y_in += height_in * d->stretch;
}

/* A part of a stack. */
typedef struct layer {
    const char *title, *colour, *measure;
    weir_subject subject;
} layer;

/* Whether it is ever more than 0; subjects: sources have those of stages. */
static bool is_used(const drawing *d, const layer *part)
{
    range used = empty_range;
    bool is_state = part->subject == WEIR_SUBJECT_STAGE;
    for (weir_subject subject = part->subject; subject <= part->subject + is_state; subject++)
        for (size_t i = 0; i < d->set->lists[subject].count; i++)
            range_add_curve(&used, subject, &d->set->lists[subject].all[i], part->measure);
    return used.high > 0 || !*part->measure;
}

static void put_layers_legend(drawing *d, const char *heading, const layer *layers, size_t count)
{
    double x_in = beside_in;
    put_screen_label(d, heading, 0.2, d->y_in + line_in / 2, "left font ',12'");
    for (size_t i = 0; i < count; i++)
        if (is_used(d, &layers[i]))
            put_entry(d, layers[i].title, 5, layers[i].colour, &x_in);
    d->y_in += line_in + 0.04;
}

static const layer states[] = {
    { "busy", "#0072b2", "busy_share", WEIR_SUBJECT_STAGE },
    { "waits for input", "#d9d9d9", "wait_in_share", WEIR_SUBJECT_STAGE },
    { "for a thread", "#d55e00", "wait_thread_share", WEIR_SUBJECT_STAGE },
    { "for its turn", "#cc79a7", "wait_turn_share", WEIR_SUBJECT_STAGE },
    { "for room", "#f0e442", "wait_out_share", WEIR_SUBJECT_STAGE },
};

static const layer cpu_parts[] = {
    { "this process", "#0072b2", "cpus", WEIR_SUBJECT_PROCESS },
    { "throttled", "#000000", "throttled_share", WEIR_SUBJECT_MACHINE }, /* of one CPU */
    { "other virtual machines", "#cc79a7", "stolen_cpus", WEIR_SUBJECT_MACHINE },
    { "other programs", "#d55e00", "other_cpus", WEIR_SUBJECT_MACHINE },
    { "idle", "#d9d9d9", "idle_cpus", WEIR_SUBJECT_MACHINE },
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
            double value = series_value(layers[i].subject,
                                        is_own ? point : point_at(&d->set->lists[layers[i].subject], j, point->start),
                                        layers[i].measure);
            double top = fmin(sum + (isfinite(value) ? fmax(value, 0) : 0), i == 0 ? INFINITY : fmax(most, sum));
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
        range_add_curve(&used, WEIR_SUBJECT_PROCESS, line, "cpus");
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
    static const layer levels[] = { { "empty", "#f2f2f2", "", 0 },
                                    { "half full", "#7d97b5", "", 0 },
                                    { "full", "#083c78", "", 0 } };
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
    [WEIR_VERDICT_UNKNOWN] = "#d9d9d9", [WEIR_VERDICT_NONE] = "#009e73",  [WEIR_VERDICT_CONSUMER] = "#56b4e9",
    [WEIR_VERDICT_SOURCE] = "#cc79a7",  [WEIR_VERDICT_SLOTS] = "#0072b2", [WEIR_VERDICT_OUTSIDE] = "#e69f00",
    [WEIR_VERDICT_THREADS] = "#d55e00", [WEIR_VERDICT_CPUS] = "#a02020",  [WEIR_VERDICT_ORDER] = "#7f5ab6",
    [WEIR_VERDICT_QUEUE] = "#c8b400",
};

/* A band that says what limits each part of the run. */
static void put_limits(drawing *d)
{
    const series_marks *limits = &d->set->limits;
    double width_in = d->width_in - beside_in - right_in;
    if (limits->count == 0)
        return;
    begin_row(d, "Limit", 0.26);
    fputs("set yrange [0:1]\nunset ytics\n", d->out);
    for (size_t i = 0; i < limits->count; i++) {
        const series_mark *limit = &limits->all[i];
        double room_in = (limit->end - limit->start) / d->set->end * width_in;
        if (room_in < ((double)strlen(limit->text) + 1) * character_in && i + 1 < limits->count)
            continue;
        fprintf(d->out, "set label %zu ", ++d->num_labels);
        put_string(d->out, limit->text, MAX_TEXT);
        fprintf(d->out, " at first %.12g, graph 0.5 center textcolor rgb '%s' front\n",
                at(d, (limit->start + limit->end) / 2), limit->kind == WEIR_VERDICT_UNKNOWN ? "#404040" : "#ffffff");
    }
    begin_boxes(d);
    for (size_t i = 0; i < limits->count; i++)
        put_box(d, limits->all[i].start, limits->all[i].end, 0, 1, limit_colours[limits->all[i].kind]);
    end_boxes(d, "");
    d->y_in += 0.16;
}

/* What weir/measures.h calls the rate of the subject, or its number. */
static const char *throughput_measure(const drawing *d, weir_subject subject)
{
    return subject == WEIR_SUBJECT_QUEUE ? d->plan->counts ? "num_items" : "items_per_s"
           : d->plan->counts             ? "num_tasks"
                                         : "tasks_per_s";
}

static void put_throughput(drawing *d)
{
    weir_subject subject;
    const series *line = series_throughput(d->set, &subject);
    const char *measure = throughput_measure(d, subject);
    char text[80], *commands = NULL;
    size_t size;
    if (!line)
        return;
    snprintf(text, sizeof text, "%s %s", subject == WEIR_SUBJECT_QUEUE ? "Items" : "Tasks",
             d->plan->counts ? "in each lap" : "per second");
    begin_row(d, text, 1.7);
    const series_list *list = &d->set->lists[subject];
    range values = empty_range;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->all[i].plain_name, line->plain_name) == 0)
            range_add_curve(&values, subject, &list->all[i], measure);
    put_linear_axis(d->out, values.high);
    for (size_t i = 0; i < d->set->limits.count; i++) { /* pale, as the band below it */
        char fill[80];
        snprintf(fill, sizeof fill, "fillcolor rgb '%s' fillstyle transparent solid 0.12",
                 limit_colours[d->set->limits.all[i].kind]);
        shade_mark(d, &d->set->limits.all[i], fill);
    }
    put_marks(d, d->width_in - beside_in - right_in, true);
    FILE *file = memory_file_open(&commands, &size);
    for (size_t i = 0, run = 0; i < list->count; i++)
        if (strcmp(list->all[i].plain_name, line->plain_name) == 0) {
            add_curve(d, file, put_block(d, subject, &list->all[i], measure, 0), &list->all[i], run++, 0, false);
            fputs(" notitle", file);
        }
    memory_file_close(file);
    fprintf(d->out, "%s\nunset label\n", commands);
    free(commands);
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
    put_times(d);
    put_times_title(d);
    fputs("unset ytics\nset yrange [0:1]\nset border 1\nplot NaN notitle\nset border 3\n", d->out);
    d->y_in += 0.62;
}

/* ---- the picture -------------------------------------------------------------------------------------------- */

static void put_terminal(const drawing *d, double shrunk)
{
    const drawing_plan *plan = d->plan;
    double width_in = d->width_in * shrunk, height_in = d->height_in * shrunk, scale = plan->dpi / 110 * shrunk;
    fputs("set encoding utf8\n", d->out);
    switch (plan->medium) {
    case DRAWING_PNG:
        fprintf(d->out,
                "set terminal pngcairo noenhanced size %.0f,%.0f fontscale %.3f linewidth %.3f pointscale %.3f\n"
                "set pointsize 0.9\n",
                width_in * plan->dpi, height_in * plan->dpi, scale, scale, scale);
        break;
    case DRAWING_SVG:
        fprintf(d->out,
                "set terminal svg noenhanced size %.0f,%.0f dynamic font 'DejaVu Sans,Verdana,sans-serif,12.5' "
                "fontscale %.3g linewidth %.3g background '#ffffff'\nset pointsize %.3g\n",
                width_in * 96, height_in * 96, shrunk, shrunk, 0.55 * shrunk);
        break;
    case DRAWING_PDF:
        fprintf(
            d->out,
            "set terminal pdfcairo noenhanced size %.2fin,%.2fin fontscale %.3g linewidth %.3g\nset pointsize %.3g\n",
            width_in, height_in, 0.85 * shrunk, shrunk, 0.5 * shrunk);
        break;
    case DRAWING_TERMINAL:
        fprintf(d->out, "set terminal dumb noenhanced size %d,%d%s\n", plan->columns, plan->rows,
                plan->coloured ? " ansi256" : "");
        break;
    }
}

static void put_settings(const drawing *d)
{
    double length = d->set->end > 0 ? d->set->end : 1;
    if (d->plan->clock && length < 1) /* gnuplot refuses a range that is small beside the time since 1970 */
        length = 1;
    fprintf(d->out, "set xtics nomirror\nset ytics nomirror\nset xrange [%.17g:%.17g]\n", at(d, 0), at(d, length));
    if (d->plan->clock)
        fprintf(d->out, "set xtics time\nset format x '%s' time\n", clock_format(d));
    if (d->plan->medium == DRAWING_TERMINAL)
        fputs("set border 15 back\n" /* at the back, because curves at 0 or 100 % are drawn on it */
              "set key outside bottom center horizontal samplen 2 width 2\n",
              d->out);
    else
        fputs("set border 3 linecolor rgb '#404040'\nset grid xtics ytics linecolor rgb '#d4d4d4' linewidth 1 "
              "dashtype 1\nset multiplot\n",
              d->out);
}

static void put_all(drawing *d)
{
    d->y_in = 0.1;
    for (const char *line = d->plan->title; *line && d->plan->medium != DRAWING_TERMINAL;) {
        char text[400];
        size_t length = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)length, line);
        put_screen_label(d, text, 0.2, d->y_in + 0.17, "left font ',13'");
        d->y_in += 0.31;
        line += length + (line[length] == '\n');
    }
    if (d->plan->medium != DRAWING_TERMINAL) {
        put_marks_legend(d);
        d->y_in += 0.1;
        if (d->plan->overview)
            put_overview(d);
    }
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        if (d->plan->shown[subject])
            put_section(d, subject);
}

static void begin_drawing(drawing *d)
{
    choose_unit(d);
    d->num_phases = name_marks(&d->set->phases, d->phases, NUM_TINTS);
    d->num_events = name_marks(&d->set->events, d->events, NUM_EVENTS);
}

double drawing_height_in(const drawing_plan *plan, const series_set *set)
{
    char *text = NULL;
    size_t size;
    FILE *nowhere = memory_file_open(&text, &size);
    drawing d = { .out = nowhere, .plan = plan, .set = set, .width_in = 12, .height_in = 1, .stretch = 1 };
    begin_drawing(&d);
    put_all(&d);
    memory_file_close(nowhere);
    free(text);
    return d.y_in + 0.1;
}

/* A picture that is smaller than it needs is laid out as if it had the size, and drawn with smaller letters. */
void drawing_write(FILE *gnuplot, const drawing_plan *plan, const series_set *set)
{
    const double least_width_in = 10;
    double needed_in = plan->medium == DRAWING_TERMINAL ? 1 : drawing_height_in(plan, set);
    double height_in = plan->height_in > 0 ? plan->height_in : needed_in;
    double shrunk = fmin(1, fmin(plan->width_in / least_width_in, height_in / needed_in));
    if (plan->medium == DRAWING_TERMINAL)
        shrunk = 1;
    drawing d = { .out = gnuplot, .plan = plan, .set = set, .width_in = plan->width_in / shrunk };
    d.height_in = height_in / shrunk;
    d.stretch = fmax(1, d.height_in / needed_in);
    begin_drawing(&d);
    put_terminal(&d, shrunk);
    put_settings(&d);
    put_all(&d);
    if (plan->medium != DRAWING_TERMINAL)
        fputs("unset multiplot\n", gnuplot);
    fputs("unset output\n", gnuplot);
}
