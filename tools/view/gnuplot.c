/*
 * Stages, queues, spans and counters have a figure each, two in a row. The panels of a figure are stacked and share the
 * time axis at the bottom. The line styles are explained above each panel, the colours once at the right.
 */
#include "gnuplot.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* Colours for all kinds of colour vision (Okabe and Ito, 2008); symbols distinguish curves in grey prints, and if
   there are more curves than colours. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000" };
static const int symbols[] = { 7, 5, 9, 11, 13, 6, 4, 8, 10, 12 }; /* gnuplot's: filled and empty ● ■ ▲ ▼ ◆ */
static const char *const tints[] = { "#e9edf2", "#f7ecd9", "#e2f0e4", "#f3e3ee", "#dcebf5", "#dcdcdc" };
enum {
    NUM_COLOURS = sizeof colours / sizeof colours[0],
    NUM_SYMBOLS = sizeof symbols / sizeof symbols[0],
    NUM_TINTS = sizeof tints / sizeof tints[0] - 1, /* the last is for all others */
    MAX_PANELS = 8,                                 /* of a figure */
    MAX_SPANS = 14,                                 /* in the figure: more could not be distinguished */
    MAX_CURVES = 5,                                 /* of a panel, for each series */
    MAX_MARKS = 150,      /* events, and phases, in the figure: more would hide the curves */
    MAX_EVENT_KINDS = 6,  /* events that have a colour and a line in the legend; all others share the last colour */
    MAX_TEXT = 32,        /* characters of a name next to the figure */
    MAX_EVENT_TEXT = 20,  /* characters of an event's name, which is vertical in a panel */
    SYMBOLS_ON_CURVE = 12 /* about */
};

typedef enum scale { SCALE_LINEAR, SCALE_TIME, SCALE_SHARE, SCALE_LEVEL, SCALE_VALUE, SCALE_BYTES, SCALE_RATE } scale;

typedef struct curve {
    const char *title; /* NULL = the only curve of its panel */
    int figure;
    const char *dash;
    double width;
    double paleness; /* 0 = the colour of the series, 1 = white */
} curve;

/* gnuplot dash patterns: on and off, in line widths. Its built-in dots are too thin to follow across a figure. */
#define SOLID    "1"
#define DASHES   "2"
#define DOT_DASH "4"
#define DOTS     "(3,5)"

typedef struct panel {
    const char *title;
    const char *count_title; /* title with counts instead of rates; NULL = the same */
    scale scale;
    curve curves[MAX_CURVES]; /* the first one has the symbols */
    int num_curves;
} panel;

#define TIMES_PANEL(title, kind) \
    { \
        title, NULL, SCALE_TIME, \
            { { "average", kind##_AVE, SOLID, 2.4, 0 }, \
              { "p50", kind##_P50, DASHES, 1.8, 0 }, \
              { "p90", kind##_P90, SOLID, 1.2, 0.3 }, \
              { "p99", kind##_P99, DOT_DASH, 1.6, 0.15 }, \
              { "max", kind##_MAX, DOTS, 1.8, 0.1 } }, \
            5 \
    }

static const panel task_panels[] = {
    { "tasks per second",
      "tasks in each lap",
      SCALE_LINEAR,
      { { "ended", TASK_RATE, SOLID, 2, 0 }, { "succeeded", TASK_SUCCESSES, DASHES, 1.6, 0 } },
      2 },
    { "failures per second", "failures in each lap", SCALE_LINEAR, { { NULL, TASK_FAILURES, SOLID, 2, 0 } }, 1 },
    TIMES_PANEL("task time", TASK),
    { "slots at work",
      NULL,
      SCALE_SHARE,
      { { "busy", TASK_BUSY, SOLID, 2, 0 }, { "on a CPU", TASK_CPU, DOTS, 1.6, 0 } },
      2 },
    { "slots waiting",
      NULL,
      SCALE_SHARE,
      { { "for input", TASK_WAIT_IN, SOLID, 1.8, 0 },
        { "for a thread", TASK_WAIT_THREAD, DASHES, 1.8, 0 },
        { "for its turn", TASK_WAIT_TURN, DOT_DASH, 1.4, 0.35 },
        { "for room", TASK_WAIT_OUT, DOTS, 1.8, 0 } },
      4 },
};

static const panel queue_panels[] = {
    { "items per second", "items in each lap", SCALE_LINEAR, { { NULL, QUEUE_RATE, SOLID, 2, 0 } }, 1 },
    { "occupancy: time not empty", NULL, SCALE_SHARE, { { NULL, QUEUE_OCCUPIED, SOLID, 2, 0 } }, 1 },
    { "level, items; dashed: capacity", NULL, SCALE_LEVEL, { { NULL, QUEUE_DEPTH, SOLID, 2, 0 } }, 1 },
    { "put time: an item waits for room", NULL, SCALE_TIME, { { NULL, QUEUE_PUT, SOLID, 2, 0 } }, 1 },
    { "get time: the consumer waits for an item", NULL, SCALE_TIME, { { NULL, QUEUE_GET, SOLID, 2, 0 } }, 1 },
};

static const panel span_panels[] = {
    { "spans per second", "spans in each lap", SCALE_LINEAR, { { NULL, SPAN_RATE, SOLID, 2, 0 } }, 1 },
    TIMES_PANEL("span time", SPAN),
    { "time in spans: threads", NULL, SCALE_LINEAR, { { NULL, SPAN_SHARE, SOLID, 2, 0 } }, 1 },
};

static const panel process_panels[] = {
    { "CPUs in use by the process",
      NULL,
      SCALE_LINEAR,
      { { "all", PROCESS_CPUS, SOLID, 2, 0 }, { "in the pools", PROCESS_POOL_CPUS, DASHES, 1.6, 0 } },
      2 },
    { "memory",
      NULL,
      SCALE_BYTES,
      { { "resident", PROCESS_MEMORY, SOLID, 2, 0 }, { "peak", PROCESS_PEAK, DOTS, 1.8, 0.1 } },
      2 },
    { "storage, per second",
      NULL,
      SCALE_BYTES,
      { { "read", PROCESS_READ, SOLID, 2, 0 }, { "written", PROCESS_WRITTEN, DASHES, 1.6, 0 } },
      2 },
};

static const panel machine_panels[] = {
    { "other CPUs",
      NULL,
      SCALE_LINEAR,
      { { "other programs", MACHINE_OTHER_CPUS, SOLID, 2, 0 },
        { "idle", MACHINE_IDLE_CPUS, DASHES, 1.6, 0 },
        { "other virtual machines", MACHINE_STOLEN_CPUS, DOTS, 1.8, 0 } },
      3 },
    { "pressure: time in which some task waits",
      NULL,
      SCALE_SHARE,
      { { "for a CPU", MACHINE_CPU_PRESSURE, SOLID, 2, 0 },
        { "for a disk", MACHINE_IO_PRESSURE, DASHES, 1.8, 0 },
        { "for memory", MACHINE_MEMORY_PRESSURE, DOTS, 1.8, 0 } },
      3 },
    { "network, per second",
      NULL,
      SCALE_BYTES,
      { { "received", MACHINE_RECEIVED, SOLID, 2, 0 }, { "sent", MACHINE_SENT, DASHES, 1.6, 0 } },
      2 },
};

static const panel counter_panel = {
    .scale = SCALE_VALUE,
    .curves = { { "mean", COUNTER_MEAN, SOLID, 2, 0 },
                { "last", COUNTER_LAST, DASHES, 1.6, 0 },
                { "min", COUNTER_MIN, DOTS, 1.4, 0.2 },
                { "max", COUNTER_MAX, DOTS, 1.4, 0.2 } },
    .num_curves = 4,
};

/* One of the figures, and its position in inches; not used in the terminal. */
typedef struct figure {
    panel panels[MAX_PANELS];
    size_t groups[MAX_PANELS];     /* the panel shows lines of the group of this line, from 1; 0 = all lines */
    size_t num_panels, num_values; /* the values of a line */
    const series *lines;
    size_t num_lines, num_hidden; /* lines that are left out */
    const char *block;            /* what its data blocks are called */
    const char *title;            /* NULL = none */
    double left_in, right_in;     /* of the panels */
    double top_in, bottom_in;     /* of the figure, from the bottom of the picture */
} figure;

typedef struct drawing {
    FILE *out;
    const drawing_plan *plan;
    const series_set *set;
    double unit_s; /* of the time axis */
    double local_origin_s;
    const char *unit;
    const char *names[NUM_TINTS]; /* of phases: one tint each */
    size_t num_names;
    const char *events[MAX_EVENT_KINDS]; /* the names of events: one colour for each */
    size_t num_events;
} drawing;

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

static void put_row(const drawing *d, const figure *f, double time_s, const series_point *point)
{
    fprintf(d->out, "%.12g", at(d, time_s));
    for (size_t i = 0; i < f->num_values; i++)
        if (isfinite(point->values[i]))
            fprintf(d->out, " %.6g", point->values[i]);
        else
            fputs(" NaN", d->out);
    fputc('\n', d->out);
}

/*
 * Draws each lap as a step from its start to its end; where laps are missing, the curve is interrupted. Symbols are in
 * a separate block, in the middle of some laps; each line uses other laps, so that lines that overlap can be
 * distinguished. The columns are the values of a line.
 */
static void put_blocks(const drawing *d, const figure *f)
{
    for (size_t i = 0; i < f->num_lines; i++) {
        const series *line = &f->lines[i];
        fprintf(d->out, "$%s%zu << EOD\n", f->block, i);
        for (size_t j = 0; j < line->num_points; j++) {
            const series_point *point = &line->points[j];
            if (j > 0 && point->start - point[-1].end > 0.5 * (point->end - point->start))
                fputc('\n', d->out);
            put_row(d, f, point->start, point);
            put_row(d, f, point->end, point);
        }
        size_t every = line->num_points / SYMBOLS_ON_CURVE + 1;
        fprintf(d->out, "EOD\n$%ssymbols%zu << EOD\n", f->block, i);
        for (size_t j = i * every / f->num_lines; j < line->num_points; j += every)
            put_row(d, f, (line->points[j].start + line->points[j].end) / 2, &line->points[j]);
        fputs("EOD\n", d->out);
    }
}

/* The length of the counter's category and name in "category/name/value": values of one counter share a panel. */
static size_t group_length(const char *name)
{
    size_t length = strcspn(name, "/");
    return length + (name[length] ? 1 + strcspn(name + length + 1, "/") : 0);
}

/* "category/name" of the lines in this panel; "" = it shows all lines. */
static const char *group_of(const figure *f, const panel *p, size_t *length)
{
    size_t group = f->groups[p - f->panels];
    const char *name = group ? f->lines[group - 1].plain_name : "";
    *length = group_length(name);
    return name;
}

static bool is_of(const figure *f, const panel *p, size_t line)
{
    size_t length;
    const char *group = group_of(f, p, &length), *name = f->lines[line].plain_name;
    return !*group || (group_length(name) == length && strncmp(name, group, length) == 0);
}

/* A panel for each counter; those that do not fit are left out. */
static void make_counter_panels(figure *f)
{
    size_t i = 0;
    for (; i < f->num_lines; i++) {
        size_t place = 0;
        while (place < f->num_panels && !is_of(f, &f->panels[place], i))
            place++;
        if (place == MAX_PANELS)
            break;
        if (place < f->num_panels)
            continue;
        f->panels[place] = counter_panel;
        f->groups[place] = i + 1;
        f->num_panels++;
    }
    f->num_hidden = f->num_lines - i;
    f->num_lines = i;
}

/* ---- axes --------------------------------------------------------------------------------------------------- */

/* A lap that a mark has cut very short is not representative, and must not determine the scale. */
static bool counts(const figure *f, size_t line, size_t point)
{
    const series *s = &f->lines[line];
    double longest = s->points[0].end - s->points[0].start;
    if (s->num_points > 1)
        longest = fmax(longest, s->points[s->num_points / 2].end - s->points[s->num_points / 2].start);
    return s->points[point].end - s->points[point].start >= longest / 10;
}

/* The range of the values above 0 (high is 0 if there are none); least and most are those of all values. */
typedef struct range {
    double low, high, least, most;
} range;

static range range_of(const figure *f, const panel *p)
{
    range r = { INFINITY, 0, INFINITY, -INFINITY };
    for (size_t i = 0; i < f->num_lines; i++)
        for (size_t j = 0; j < f->lines[i].num_points && is_of(f, p, i); j++)
            for (int k = 0; k < p->num_curves && counts(f, i, j); k++) {
                double value = f->lines[i].points[j].values[p->curves[k].figure];
                if (!isfinite(value))
                    continue;
                r.least = fmin(r.least, value);
                r.most = fmax(r.most, value);
                if (value > 0) {
                    r.low = fmin(r.low, value);
                    r.high = fmax(r.high, value);
                }
            }
    return r;
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

/* "20 ms" */
static void put_time(FILE *out, double seconds)
{
    static const char *const units[] = { "s", "ms", "µs", "ns" };
    int unit = 0;
    while (unit < 3 && seconds < 0.9995) {
        seconds *= 1000;
        unit++;
    }
    fprintf(out, "%.3g %s", seconds, units[unit]);
}

/*
 * A logarithmic axis of durations, over at most five decades. Returns its bottom value, at which zero and shorter
 * durations are drawn.
 */
static double put_time_axis(FILE *out, range values)
{
    const double shortest = 1e-6, decades = 1e5;
    if (values.high < shortest)
        values = (range){ shortest, 1e-3, values.least, values.most };
    double low = fmax(fmax(values.low, values.high / decades), shortest), power;
    double digit = step_below(low, &power), at = digit * power;
    bool is_wide = values.high / low > 120, has_less = values.least < low;
    const double foot = at * pow(fmax(values.high / at, 2), has_less ? -0.15 : -0.08);
    fputs("set logscale y\nset ytics (", out);
    if (has_less) {
        fputs(values.low < low ? "'less' " : "'0' ", out);
        fprintf(out, "%.6g", foot);
    }
    for (const char *between = has_less ? ", '" : "'"; at < values.high * 2;) {
        if (!is_wide || digit == 1) {
            fputs(between, out);
            put_time(out, at);
            fprintf(out, "' %.3g", at);
            between = ", '";
        }
        digit = next_step(digit);
        if (digit == 10) {
            digit = 1;
            power *= 10;
        }
        at = digit * power;
    }
    fprintf(out, ")\nset yrange [%.6g:%.6g]\n", foot, fmax(values.high * 1.15, foot * 2));
    return foot;
}

/* A linear axis from 0, with two to five labels. */
static void put_linear_axis(FILE *out, double high)
{
    double power, top = high > 0 ? high : 1, digit = step_below(top / 5.001, &power);
    fprintf(out, "set yrange [0:%.6g]\nset ytics %.6g\n", 1.08 * top, next_step(digit) * power);
}

/* A linear axis of any values; it contains 0 unless that would hide how they change. */
static void put_value_axis(FILE *out, range values)
{
    double low = values.least <= values.most ? values.least : 0, power;
    double high = values.least <= values.most ? values.most : 0;
    if (low >= 0 && low < high / 2)
        low = 0;
    double margin = high > low ? (high - low) * 0.05 : high != 0 ? fabs(high) * 0.05 : 1;
    double digit = step_below((high - low + 2 * margin) / 5.001, &power);
    fprintf(out, "set yrange [%.9g:%.9g]\nset ytics %.6g\nset format y '%s'\n", low == 0 ? 0 : low - margin,
            high + margin, next_step(digit) * power, fmax(fabs(low), fabs(high)) < 1e4 ? "%g" : "%.1s %c");
}

static double largest_capacity(const figure *f)
{
    int64_t largest = 0;
    for (size_t i = 0; i < f->num_lines; i++)
        largest = f->lines[i].capacity > largest ? f->lines[i].capacity : largest;
    return (double)largest;
}

/* Returns the smallest value that can be drawn. */
static double put_axis(const drawing *d, const figure *f, const panel *p)
{
    range values = range_of(f, p);
    fputs("unset logscale y\nset ytics autofreq\nset format y '%g'\n", d->out);
    switch (p->scale) {
    case SCALE_TIME: return put_time_axis(d->out, values);
    case SCALE_SHARE: fputs("set yrange [0:103]\nset ytics 25\nset format y '%g %%'\n", d->out); break;
    case SCALE_LINEAR: put_linear_axis(d->out, values.high); break;
    case SCALE_BYTES:
        put_linear_axis(d->out, fmax(values.high, 1000));
        fputs("set format y '%.0s %cB'\n", d->out);
        break;
    case SCALE_VALUE: put_value_axis(d->out, values); break;
    case SCALE_RATE:
        if (values.high > 0)
            fprintf(d->out, "set logscale y\nset yrange [%.6g:%.6g]\nset format y '%%.0s%%c'\n", values.low / 1.5,
                    values.high * 1.5);
        break;
    case SCALE_LEVEL: put_linear_axis(d->out, fmax(values.high, largest_capacity(f) / 1.04)); break;
    }
    return 0;
}

static void choose_unit(drawing *d)
{
    time_t origin = (time_t)(d->set->origin_unix_ns / 1000000000);
    struct tm local;
    d->local_origin_s = (double)d->set->origin_unix_ns / 1e9;
    if (localtime_r(&origin, &local))
        d->local_origin_s += (double)local.tm_gmtoff;
    static const struct {
        const char *name;
        double seconds, from_s;
    } units[] = { { "days", 86400, 4 * 86400 }, { "hours", 3600, 4 * 3600 }, { "minutes", 60, 600 } };
    d->unit = "seconds";
    d->unit_s = 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (d->set->end >= units[i].from_s) {
            d->unit = units[i].name;
            d->unit_s = units[i].seconds;
            return;
        }
}

/* ---- events and phases -------------------------------------------------------------------------------- */

/* The tint of a phase: the index of its name among the known names; NUM_TINTS = any later one. */
static size_t tint_of(const drawing *d, const char *phase)
{
    size_t tint = 0;
    while (tint < d->num_names && strcmp(d->names[tint], phase) != 0)
        tint++;
    return tint;
}

static void name_phases(drawing *d)
{
    for (size_t i = 0; i < d->set->num_phases && d->num_names < NUM_TINTS; i++)
        if (tint_of(d, d->set->phases[i].text) == d->num_names)
            d->names[d->num_names++] = d->set->phases[i].text;
}

static const char *const event_colours[MAX_EVENT_KINDS + 1] = { "#8a2be2", "#c71585", "#2f4f4f", "#8b4513",
                                                                "#4682b4", "#556b2f", "#808080" };

/* The index of an event's name among the known names; MAX_EVENT_KINDS = any later one. */
static size_t event_kind_of(const drawing *d, const char *name)
{
    size_t kind = 0;
    while (kind < d->num_events && strcmp(d->events[kind], name) != 0)
        kind++;
    return kind < d->num_events ? kind : MAX_EVENT_KINDS;
}

static void name_events(drawing *d)
{
    for (size_t i = 0; i < d->set->num_events && d->num_events < MAX_EVENT_KINDS; i++)
        if (event_kind_of(d, d->set->events[i].text) == MAX_EVENT_KINDS)
            d->events[d->num_events++] = d->set->events[i].text;
}

static void put_span(const drawing *d, size_t tag, const series_mark *mark, const char *fill)
{
    fprintf(d->out, "set object %zu rectangle from first %.12g, graph 0 to first %.12g, graph 1 behind %s noborder\n",
            tag, at(d, mark->start), at(d, mark->end), fill);
}

/* Marks the start of a phase: in grey prints all tints look alike. */
static void put_edge(const drawing *d, size_t tag, double at_s)
{
    fprintf(
        d->out,
        "set arrow %zu from first %.12g, graph 0 to first %.12g, graph 1 nohead linewidth 1 linecolor rgb '#b4b4b4' "
        "back\n",
        tag, at(d, at_s), at(d, at_s));
}

static void put_label(const drawing *d, size_t tag, const char *text, double at_s, const char *how,
                      int max_characters)
{
    fprintf(d->out, "set label %zu ", tag);
    put_string(d->out, text, (size_t)max_characters);
    fprintf(d->out, " at first %.12g, %s textcolor rgb '#404040' front\n", at(d, at_s), how);
}

/* Skips marks that are out of view, or too close to the previous one to be distinguished. */
static bool is_shown(const drawing *d, const series_mark *mark, double *shown_until)
{
    double narrow = d->set->end / MAX_MARKS;
    bool is_narrow = mark->end - mark->start < narrow;
    if (mark->end < 0 || mark->start > d->set->end || (is_narrow && mark->start < *shown_until))
        return false;
    *shown_until = mark->start + narrow;
    return true;
}

/* Names are drawn if they fit; the legend at the right also explains the tints. */
static void put_phases(const drawing *d, double width_in, bool named)
{
    const double character_in = 0.085;
    const series_set *set = d->set;
    double shown_until = -INFINITY;
    size_t num_edges = set->num_events + 1; /* events use the arrows before */
    for (size_t i = 0; i < set->num_phases; i++) {
        const series_mark *phase = &set->phases[i];
        if (!is_shown(d, phase, &shown_until))
            continue;
        char fill[64];
        snprintf(fill, sizeof fill, "fillcolor rgb '%s' fillstyle solid", tints[tint_of(d, phase->text)]);
        put_span(d, i + 1, phase, fill);
        put_edge(d, num_edges++, phase->start);
        double room_in = (phase->end - phase->start) / set->end * width_in;
        if (named && room_in > ((double)strlen(phase->text) + 1) * character_in)
            put_label(d, i + 1, phase->text, (phase->start + phase->end) / 2, "graph 0.92 center", MAX_TEXT);
    }
}

static void put_events(const drawing *d, double width_in, bool named)
{
    const double line_in = 0.18;
    const series_set *set = d->set;
    double shown_until = -INFINITY, named_until = -INFINITY;
    for (size_t i = 0; i < set->num_events; i++) {
        const series_mark *event = &set->events[i];
        size_t tag = set->num_phases + i + 1; /* after those of phases: objects are drawn in this order */
        if (!is_shown(d, event, &shown_until))
            continue;
        if (event->end > event->start)
            put_span(d, tag, event, "fillcolor rgb '#808080' fillstyle pattern 4 transparent");
        fprintf(d->out,
                "set arrow %zu from first %.12g, graph 0 to first %.12g, graph 1 nohead dashtype 3 "
                "linecolor rgb '%s' back\n",
                i + 1, at(d, event->start), at(d, event->start), event_colours[event_kind_of(d, event->text)]);
        double at_in = event->start / set->end * width_in;
        if (named && at_in >= named_until) {
            put_label(d, tag, event->text, event->start, "graph 0.04 rotate by 90 offset 0.8,0", MAX_EVENT_TEXT);
            named_until = at_in + line_in;
        }
    }
}

/* ---- one panel ---------------------------------------------------------------------------------------------- */

/* "#rrggbb" mixed with white. */
static void mix(char mixed[8], const char *colour, double paleness)
{
    unsigned parts[3];
    if (sscanf(colour, "#%2x%2x%2x", &parts[0], &parts[1], &parts[2]) != 3)
        parts[0] = parts[1] = parts[2] = 0;
    for (int i = 0; i < 3; i++)
        parts[i] = (unsigned)lround(parts[i] + (255 - parts[i]) * paleness) & 0xff;
    snprintf(mixed, 8, "#%02x%02x%02x", parts[0], parts[1], parts[2]);
}

/* A data block and its column; values below the foot of the axis are drawn there. */
static void put_data(const drawing *d, const figure *f, const char *what, size_t line, const panel *p, const curve *c,
                     double foot)
{
    int column = 2 + c->figure;
    fprintf(d->out, "$%s%s%zu using 1:", f->block, what, line);
    if (p->scale == SCALE_TIME)
        fprintf(d->out, "($%d < %.6g ? %.6g : $%d)", column, foot, foot, column);
    else
        fprintf(d->out, p->scale == SCALE_SHARE ? "(100 * $%d)" : "%d", column);
}

static void put_curve(const drawing *d, const figure *f, size_t line, const panel *p, const curve *c, double foot)
{
    put_data(d, f, "", line, p, c, foot);
    fputs(" with lines", d->out);
    if (d->plan->medium != DRAWING_TERMINAL) {
        double thin = f->lines[line].num_points > 200 ? 0.6 : 1;
        char colour[8];
        mix(colour, colours[line % NUM_COLOURS], c->paleness);
        fprintf(d->out, " linewidth %.2f linecolor rgb '%s' dashtype %s notitle", c->width * thin, colour, c->dash);
        return;
    }
    char title[256];
    snprintf(title, sizeof title, "%s%s%s", f->lines[line].name, c->title ? " " : "", c->title ? c->title : "");
    fputs(" title ", d->out);
    put_string(d->out, title, MAX_TEXT);
}

static void put_symbols(const drawing *d, const figure *f, size_t line, const panel *p, double foot)
{
    put_data(d, f, "symbols", line, p, &p->curves[0], foot);
    fprintf(d->out, " with points pointtype %d linecolor rgb '%s' notitle", symbols[line % NUM_SYMBOLS],
            colours[line % NUM_COLOURS]);
}

static void put_style(const drawing *d, const curve *c)
{
    char colour[8];
    mix(colour, "#303030", c->paleness);
    fprintf(d->out, ", \\\n     NaN with lines linewidth %.2f linecolor rgb '%s' dashtype %s title '%s'", c->width,
            colour, c->dash, c->title);
}

/* Explains the line styles, in black because they apply to all colours. */
static void put_styles(const drawing *d, const panel *p)
{
    for (int i = 0; i < p->num_curves && p->curves[i].title; i++)
        put_style(d, &p->curves[i]);
}

/* A line at each queue's capacity. */
static void put_capacities(const drawing *d, const figure *f)
{
    for (size_t i = 0; i < f->num_lines; i++)
        if (f->lines[i].capacity > 0)
            fprintf(d->out, ", \\\n     %lld with lines linewidth 1 linecolor rgb '%s' dashtype 2 notitle",
                    (long long)f->lines[i].capacity, colours[i % NUM_COLOURS]);
}

static void put_curves(const drawing *d, const figure *f, const panel *p, double foot)
{
    const char *between = "plot ";
    bool is_terminal = d->plan->medium == DRAWING_TERMINAL;
    for (size_t i = 0; i < f->num_lines; i++)
        for (int j = 0; j < p->num_curves && is_of(f, p, i); j++) {
            fputs(between, d->out);
            between = ", \\\n     ";
            put_curve(d, f, i, p, &p->curves[j], foot);
            if (j == 0 && !is_terminal) {
                fputs(between, d->out);
                put_symbols(d, f, i, p, foot);
            }
        }
    if (f->num_lines == 0)
        fputs("plot NaN notitle", d->out);
    if (!is_terminal)
        put_styles(d, p);
    if (!is_terminal && p->scale == SCALE_LEVEL)
        put_capacities(d, f);
    fputc('\n', d->out);
}

/* ---- the picture -------------------------------------------------------------------------------------------- */

/* Inches around and between the panels. */
static const double left_in = 0.95, top_in = 0.5, bottom_in = 0.62, title_in = 0.36, beside_in = 0.2;

static void put_panel_title(const drawing *d, const figure *f, const panel *p)
{
    char title[256];
    size_t length;
    const char *group = group_of(f, p, &length);
    snprintf(title, sizeof title, "%.*s", (int)length, group);
    put_string(d->out, *group ? title : d->set->counts && p->count_title ? p->count_title : p->title, SIZE_MAX);
}

static void put_place(const drawing *d, const figure *f, size_t row)
{
    const drawing_plan *plan = d->plan;
    double each_in = (f->top_in - f->bottom_in - top_in - bottom_in) / (double)f->num_panels;
    double top = f->top_in - top_in - (double)row * each_in - title_in, bottom = top - (each_in - title_in);
    if (bottom >= top)
        bottom = top - 0.02;
    fprintf(d->out,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\nset tmargin at screen %.5f\n"
            "set bmargin at screen %.5f\n",
            f->left_in / plan->width_in, f->right_in / plan->width_in, top / plan->height_in,
            bottom / plan->height_in);
    fputs("set label 9999 ", d->out);
    put_panel_title(d, f, &f->panels[row]);
    fputs(" at graph 0, graph 1 left offset 0,0.7\n", d->out);
    fprintf(d->out, "set key at screen %.5f, screen %.5f right bottom horizontal samplen 2.5 noopaque\n",
            f->right_in / plan->width_in, (top + 0.02) / plan->height_in);
}

static void put_title(const drawing *d, const figure *f)
{
    fputs("set label 10000 ", d->out);
    put_string(d->out, f->title, SIZE_MAX);
    fprintf(d->out, " at screen %.5f, screen %.5f left font ',14'\n", 0.25 / d->plan->width_in,
            1 - 0.3 / d->plan->height_in);
}

static const char *clock_format(const drawing *d)
{
    return d->set->end < 20          ? "%H:%M:%.1S"
           : d->set->end < 600       ? "%H:%M:%S"
           : d->set->end < 2 * 86400 ? "%H:%M"
                                     : "%d.%m. %H:%M";
}

static void put_panel(const drawing *d, const figure *f, size_t row)
{
    bool is_last = row == f->num_panels - 1, is_terminal = d->plan->medium == DRAWING_TERMINAL;
    fputs("unset object\nunset label\nunset arrow\nunset xlabel\n", d->out);
    double foot = put_axis(d, f, &f->panels[row]);
    if (is_terminal) {
        fputs("set title ", d->out);
        put_panel_title(d, f, &f->panels[row]);
        fputc('\n', d->out);
    } else {
        put_place(d, f, row);
        put_phases(d, f->right_in - f->left_in, row == 0);
        put_events(d, f->right_in - f->left_in, row == 0);
        fprintf(d->out, "set format x '%s'%s\n",
                !is_last         ? ""
                : d->plan->clock ? clock_format(d)
                                 : "%g",
                d->plan->clock ? " time" : "");
        if (row == 0 && f->title)
            put_title(d, f);
    }
    if (is_last || is_terminal)
        fprintf(d->out, "set xlabel '%s%s'\n", d->plan->clock ? "local time" : d->unit,
                d->plan->clock ? "" : " since the start");
    put_curves(d, f, &f->panels[row], foot);
}

/* The legend of colours, symbols and tints, next to the panels: the key of an empty plot. */
static void put_legend(const drawing *d, const figure *f)
{
    const drawing_plan *plan = d->plan;
    fprintf(d->out,
            "unset object\nunset label\nunset arrow\nunset xlabel\nunset border\nunset tics\nunset logscale y\n"
            "set tmargin at screen 1\nset bmargin at screen 0\n" /* gnuplot omits names that do not fit */
            "set yrange [0:1]\nset key at screen %.5f, screen %.5f left top vertical Left reverse samplen 2.5\nplot ",
            (f->right_in + beside_in) / plan->width_in, (f->top_in - top_in - title_in) / plan->height_in);
    for (size_t i = 0; i < f->num_lines; i++) {
        fprintf(d->out, "NaN with linespoints linewidth 2 pointtype %d linecolor rgb '%s' title ",
                symbols[i % NUM_SYMBOLS], colours[i % NUM_COLOURS]);
        put_string(d->out, f->lines[i].name, MAX_TEXT);
        fputs(", \\\n     ", d->out);
    }
    if (f->num_hidden)
        fprintf(d->out, "NaN with lines linecolor rgb '#ffffff' title '%zu more: see --name', \\\n     ",
                f->num_hidden);
    for (size_t i = 0; i < d->num_names; i++) {
        fprintf(d->out, "NaN with boxes fillstyle solid noborder linecolor rgb '%s' title ", tints[i]);
        put_string(d->out, d->names[i], MAX_TEXT);
        fputs(", \\\n     ", d->out);
    }
    for (size_t i = 0; i < d->num_events; i++) {
        fprintf(d->out, "NaN with lines linewidth 2 dashtype 3 linecolor rgb '%s' title ", event_colours[i]);
        put_string(d->out, d->events[i], MAX_TEXT);
        fputs(", \\\n     ", d->out);
    }
    fputs("NaN notitle\nset border 3\nset xtics nomirror\nset ytics nomirror\n", d->out);
}

static void put_figure(const drawing *d, const figure *f)
{
    put_blocks(d, f);
    for (size_t row = 0; row < f->num_panels; row++)
        put_panel(d, f, row);
    if (d->plan->medium != DRAWING_TERMINAL)
        put_legend(d, f);
}

/* The width of the names next to the panels; at most two fifths of the figure. */
static double legend_width_in(const drawing *d, const figure *f, double figure_in)
{
    const double sample_in = 0.6, character_in = 0.08, margin_in = 0.12;
    size_t longest = 0;
    for (size_t i = 0; i < f->num_lines; i++)
        longest = strlen(f->lines[i].name) > longest ? strlen(f->lines[i].name) : longest;
    for (size_t i = 0; i < d->set->num_phases; i++)
        longest = strlen(d->set->phases[i].text) > longest ? strlen(d->set->phases[i].text) : longest;
    for (size_t i = 0; i < d->num_events; i++)
        longest = strlen(d->events[i]) > longest ? strlen(d->events[i]) : longest;
    longest = longest > MAX_TEXT ? MAX_TEXT : longest;
    return fmin(beside_in + sample_in + (double)longest * character_in + margin_in, 0.4 * figure_in);
}

static void make_figure(figure *f, series_kind kind, const series_set *set)
{
    const series_list *list = &set->lists[kind];
    static const struct {
        const panel *panels;
        size_t num_panels, num_values;
    } kinds[NUM_SERIES_KINDS] = {
        [SERIES_STAGES] = { task_panels, sizeof task_panels / sizeof(panel), SERIES_MAX_VALUES },
        [SERIES_QUEUES] = { queue_panels, sizeof queue_panels / sizeof(panel), QUEUE_DEPTH + 1 },
        [SERIES_SPANS] = { span_panels, sizeof span_panels / sizeof(panel), SPAN_SHARE + 1 },
        [SERIES_COUNTERS] = { NULL, 0, COUNTER_MAX + 1 },
        [SERIES_PROCESS] = { process_panels, sizeof process_panels / sizeof(panel), PROCESS_WRITTEN + 1 },
        [SERIES_MACHINE] = { machine_panels, sizeof machine_panels / sizeof(panel), MACHINE_SENT + 1 },
    };
    *f = (figure){ .lines = list->all, .num_lines = list->count, .block = series_kind_name(kind) };
    f->num_values = kinds[kind].num_values;
    f->num_panels = kinds[kind].num_panels;
    if (f->num_panels)
        memcpy(f->panels, kinds[kind].panels, f->num_panels * sizeof(panel));
    else
        make_counter_panels(f);
    if (kind == SERIES_SPANS && f->num_lines > MAX_SPANS) {
        f->num_hidden = f->num_lines - MAX_SPANS;
        f->num_lines = MAX_SPANS;
    }
}

static void put_figures(const drawing *d)
{
    int columns = drawing_columns(d->plan), rows = drawing_rows(d->plan), place = 0;
    double width_in = d->plan->width_in / columns, height_in = d->plan->height_in / rows;
    for (series_kind kind = 0; kind < NUM_SERIES_KINDS; kind++) {
        figure f;
        if (!d->plan->shown[kind])
            continue;
        make_figure(&f, kind, d->set);
        f.left_in = place % columns * width_in + fmin(left_in, 0.3 * width_in);
        f.right_in = (place % columns + 1) * width_in - legend_width_in(d, &f, width_in);
        int row = place / columns;
        f.top_in = (rows - row) * height_in;
        f.bottom_in = f.top_in - height_in;
        f.title = place > 0 ? NULL : d->plan->title;
        put_figure(d, &f);
        place++;
    }
}

/*
 * Text fits into figures of this size. Smaller figures are laid out as if they had it, and drawn with smaller
 * letters; returns the scale.
 */
static double enlarge(drawing_plan *plan)
{
    const double least_width_in = 11, least_height_in = 7.5;
    double width_in = plan->width_in / drawing_columns(plan), height_in = plan->height_in / drawing_rows(plan);
    if (plan->medium == DRAWING_TERMINAL)
        return 1;
    double shrunk = fmin(1, fmin(width_in / least_width_in, height_in / least_height_in));
    plan->width_in /= shrunk;
    plan->height_in /= shrunk;
    plan->dpi *= shrunk;
    return shrunk;
}

static void put_terminal(const drawing *d, double shrunk)
{
    const drawing_plan *plan = d->plan;
    fputs("set encoding utf8\n", d->out);
    switch (plan->medium) {
    case DRAWING_PNG:
        fprintf(d->out,
                "set terminal pngcairo noenhanced size %.0f,%.0f fontscale %.3f linewidth %.3f pointscale %.3f\n"
                "set pointsize 0.9\n",
                plan->width_in * plan->dpi, plan->height_in * plan->dpi, plan->dpi / 110, plan->dpi / 110,
                plan->dpi / 110);
        break;
    case DRAWING_SVG:
        fprintf(d->out,
                "set terminal svg noenhanced size %.0f,%.0f dynamic font 'DejaVu Sans,Verdana,sans-serif,12.5' "
                "fontscale %.3g linewidth %.3g background '#ffffff'\nset pointsize %.3g\n",
                plan->width_in * 96 * shrunk, plan->height_in * 96 * shrunk, shrunk, shrunk, 0.55 * shrunk);
        break;
    case DRAWING_PDF:
        fprintf(
            d->out,
            "set terminal pdfcairo noenhanced size %.2fin,%.2fin fontscale %.3g linewidth %.3g\nset pointsize %.3g\n",
            plan->width_in * shrunk, plan->height_in * shrunk, 0.85 * shrunk, shrunk, 0.5 * shrunk);
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
    fputs("set xtics nomirror\nset ytics nomirror\n", d->out);
    fprintf(d->out, "set xrange [%.17g:%.17g]\n", at(d, 0), at(d, length));
    if (d->plan->clock)
        fprintf(d->out, "set xtics time\nset format x '%s' time\n", clock_format(d));
    if (d->plan->medium == DRAWING_TERMINAL) {
        fputs("set border 15 back\n" /* at the back, because curves at 0 or 100 % are drawn on it */
              "set key outside bottom center horizontal samplen 2 width 2\n",
              d->out);
        return;
    }
    fputs("set border 3 linecolor rgb '#404040'\nset grid xtics ytics linecolor rgb '#d4d4d4' linewidth 1 "
          "dashtype 1\nset multiplot\n",
          d->out);
}

static int num_shown(const drawing_plan *plan)
{
    int number = 0;
    for (series_kind kind = 0; kind < NUM_SERIES_KINDS; kind++)
        number += plan->shown[kind];
    return number;
}

int drawing_columns(const drawing_plan *plan)
{
    return num_shown(plan) > 1 ? 2 : 1;
}

int drawing_rows(const drawing_plan *plan)
{
    return (num_shown(plan) + 1) / 2;
}

void drawing_write(FILE *gnuplot, const drawing_plan *plan, const series_set *set)
{
    drawing d = { .out = gnuplot, .plan = plan, .set = set };
    drawing_plan laid_out = *plan;
    double shrunk = enlarge(&laid_out);
    d.plan = &laid_out;
    choose_unit(&d);
    name_phases(&d);
    name_events(&d);
    put_terminal(&d, shrunk);
    put_settings(&d);
    put_figures(&d);
    if (plan->medium != DRAWING_TERMINAL)
        fputs("unset multiplot\n", gnuplot);
    fputs("unset output\n", gnuplot);
}
