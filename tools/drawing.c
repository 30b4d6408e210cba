#include "drawing.h"

#include <math.h>
#include <string.h>

/* Colours that people with any kind of colour vision, and grey prints, tell apart (Okabe and Ito, 2008). */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000" };
enum { NUM_COLOURS = sizeof colours / sizeof colours[0] };

enum { MAX_EVENTS = 40 /* beyond that lines would hide the curves */ };

/* One curve of a panel: a column of the data block of each series. */
typedef struct plot_curve {
    const char *title; /* behind the series' name; NULL = none */
    int column;
    int dash;
    double width;
} plot_curve;

typedef struct plot_panel {
    const char *label;
    const char *format; /* of the y axis */
    bool logarithmic;
    bool share;               /* from 0 to 100 % */
    const plot_curve *curves; /* ends with column 0 */
} plot_panel;

/* Columns of the data blocks; 1 is the time. */
enum { SUCCESSES = 2, FAILURES, AVE, P50, P90, P99, BUSY, WAIT_IN, WAIT_THREAD, WAIT_OUT };
enum { ITEMS = 2, OCCUPANCY, PUT, GET, DEPTH };

static const plot_panel task_panels[] = {
    { "tasks per second", "%g", false, false,
      (const plot_curve[]){ { "succeeded", SUCCESSES, 1, 2 }, { "failed", FAILURES, 3, 2 }, { 0 } } },
    { "task time (s)", "%g", true, false,
      (const plot_curve[]){ { "average", AVE, 1, 2.2 },
                            { "p50", P50, 2, 1.4 },
                            { "p90", P90, 4, 1.4 },
                            { "p99", P99, 3, 1.4 },
                            { 0 } } },
    { "slots busy", "%g %%", false, true, (const plot_curve[]){ { "busy", BUSY, 1, 2 }, { 0 } } },
    { "slots waiting", "%g %%", false, true,
      (const plot_curve[]){ { "for input", WAIT_IN, 2, 1.6 },
                            { "for a thread", WAIT_THREAD, 3, 1.6 },
                            { "for room", WAIT_OUT, 1, 1.6 },
                            { 0 } } },
};

static const plot_panel queue_panels[] = {
    { "items per second", "%g", false, false, (const plot_curve[]){ { NULL, ITEMS, 1, 2 }, { 0 } } },
    { "occupied", "%g %%", false, true, (const plot_curve[]){ { NULL, OCCUPANCY, 1, 2 }, { 0 } } },
    { "wait (s)", "%g", true, false,
      (const plot_curve[]){ { "for room (put)", PUT, 1, 2 }, { "for items (get)", GET, 3, 1.6 }, { 0 } } },
    { "level (items)", "%g", false, false, (const plot_curve[]){ { NULL, DEPTH, 1, 2 }, { 0 } } },
};

enum { NUM_PANELS = 4 };

/* ---- text and data ------------------------------------------------------------------------------------------ */

/* As gnuplot's string in single quotes: nothing in it is special but the quote. */
static void put_string(FILE *out, const char *text)
{
    fputc('\'', out);
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            fputs("''", out);
        else
            fputc((unsigned char)*c < 0x20 ? ' ' : *c, out);
    fputc('\'', out);
}

static void put_number(FILE *out, double number)
{
    if (isfinite(number))
        fprintf(out, " %.9g", number);
    else
        fputs(" NaN", out);
}

static void put_task_row(FILE *out, double time, const series_point *p)
{
    const double figures[] = { time,
                               p->task.successes,
                               p->task.failures,
                               p->task.ave,
                               p->task.p50,
                               p->task.p90,
                               p->task.p99,
                               100 * p->task.busy,
                               100 * p->task.wait_in,
                               100 * p->task.wait_thread,
                               100 * p->task.wait_out };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        put_number(out, figures[i]);
    fputc('\n', out);
}

/* A wait of 0 has no place on a logarithmic axis: it is drawn at its foot. */
static double at_least_1_us(double wait)
{
    return wait < 1e-6 ? 1e-6 : wait;
}

static void put_queue_row(FILE *out, double time, const series_point *p)
{
    const double figures[] = { time,
                               p->queue.items,
                               100 * p->queue.occupancy,
                               at_least_1_us(p->queue.put),
                               at_least_1_us(p->queue.get),
                               p->queue.depth };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        put_number(out, figures[i]);
    fputc('\n', out);
}

/* Each lap as a step from its beginning to its end. */
static void put_blocks(FILE *out, const char *block, const series *lines, size_t num_lines,
                       void (*put_row)(FILE *out, double time, const series_point *point))
{
    for (size_t i = 0; i < num_lines; i++) {
        fprintf(out, "$%s%zu << EOD\n", block, i);
        for (size_t j = 0; j < lines[i].num_points; j++) {
            put_row(out, lines[i].points[j].start, &lines[i].points[j]);
            put_row(out, lines[i].points[j].end, &lines[i].points[j]);
        }
        fputs("EOD\n", out);
    }
}

/* ---- the picture -------------------------------------------------------------------------------------------- */

static void put_terminal(FILE *out, const drawing_plan *d)
{
    switch (d->medium) {
    case DRAWING_PNG:
        fprintf(out, "set terminal pngcairo noenhanced size %.0f,%.0f fontscale %.3f linewidth %.3f\n",
                d->width_in * d->dpi, d->height_in * d->dpi, d->dpi / 110, d->dpi / 110);
        break;
    case DRAWING_SVG:
        fprintf(out, "set terminal svg noenhanced size %.0f,%.0f dynamic background '#ffffff'\n", d->width_in * 96,
                d->height_in * 96);
        break;
    case DRAWING_TERMINAL: fprintf(out, "set terminal dumb noenhanced size %d,%d\n", d->columns, d->rows); return;
    }
    fputs("set output ", out);
    put_string(out, d->path);
    fputc('\n', out);
}

static void put_phases(FILE *out, const series_set *set, bool named)
{
    for (size_t i = 0; i < set->num_phases; i++) {
        const series_mark *phase = &set->phases[i];
        fprintf(out,
                "set object %zu rectangle from first %.9g, graph 0 to first %.9g, graph 1 behind "
                "fillcolor rgb '%s' fillstyle solid noborder\n",
                i + 1, phase->start, phase->end, i % 2 ? "#e4e4e4" : "#f3f3f3");
        if (!named)
            continue;
        fprintf(out, "set label %zu ", i + 1);
        put_string(out, phase->text);
        fprintf(out, " at first %.9g, graph 0.94 center textcolor rgb '#505050'\n", (phase->start + phase->end) / 2);
    }
}

static void put_events(FILE *out, const series_set *set, bool named)
{
    size_t shown = set->num_events < MAX_EVENTS ? set->num_events : MAX_EVENTS;
    for (size_t i = 0; i < shown; i++) {
        const series_mark *event = &set->events[i];
        fprintf(out,
                "set arrow %zu from first %.9g, graph 0 to first %.9g, graph 1 nohead dashtype 3 "
                "linecolor rgb '#707070' back\n",
                i + 1, event->start, event->start);
        if (!named)
            continue;
        fprintf(out, "set label %zu ", set->num_phases + i + 1);
        put_string(out, event->text);
        fprintf(out, " at first %.9g, graph 0.04 rotate by 90 offset -0.6,0 textcolor rgb '#505050'\n", event->start);
    }
}

static size_t count_curves(const plot_panel *panel)
{
    size_t count = 0;
    while (panel->curves[count].column)
        count++;
    return count;
}

static void put_curve(FILE *out, const drawing_plan *d, const char *block, const series *line, size_t index,
                      const plot_curve *curve, bool keyed)
{
    fprintf(out, "$%s%zu using 1:%d with lines", block, index, curve->column);
    if (d->medium != DRAWING_TERMINAL)
        fprintf(out, " linewidth %.1f linecolor rgb '%s' dashtype %d", curve->width, colours[index % NUM_COLOURS],
                curve->dash);
    fputs(keyed ? " title " : " notitle", out);
    if (keyed) {
        char title[256];
        snprintf(title, sizeof title, "%s%s%s", line->name, curve->title ? " " : "",
                 curve->title ? curve->title : "");
        put_string(out, title);
    }
}

static void put_plot(FILE *out, const drawing_plan *d, const plot_panel *panel, const char *block,
                     const series *lines, size_t num_lines)
{
    size_t num_curves = count_curves(panel);
    for (size_t i = 0; i < num_lines; i++)
        for (size_t j = 0; j < num_curves; j++) {
            fputs(i + j == 0 ? "plot " : ", \\\n     ", out);
            put_curve(out, d, block, &lines[i], i, &panel->curves[j], true);
        }
    fputs(num_lines ? "\n" : "plot NaN notitle\n", out);
}

static void put_panel(FILE *out, const drawing_plan *d, const series_set *set, const plot_panel *panel,
                      const char *block, const series *lines, size_t num_lines, int row)
{
    fputs("unset object\nunset label\nunset arrow\nunset logscale y\nunset yrange\nset yrange [0:*]\n", out);
    if (panel->logarithmic)
        fputs("set logscale y\nset yrange [*:*]\n", out);
    if (panel->share)
        fputs("set yrange [0:104]\n", out);
    fprintf(out, "set format y '%s'\nset %s ", panel->format, d->medium == DRAWING_TERMINAL ? "title" : "ylabel");
    put_string(out, panel->label);
    fputc('\n', out);
    fputs(row == NUM_PANELS - 1 || d->medium == DRAWING_TERMINAL ? "set xlabel 'seconds since the start'\n"
                                                                 : "unset xlabel\n",
          out);
    if (d->medium != DRAWING_TERMINAL)
        put_phases(out, set, row == 0);
    if (d->medium != DRAWING_TERMINAL)
        put_events(out, set, row == 0);
    put_plot(out, d, panel, block, lines, num_lines);
}

static void put_figure(FILE *out, const drawing_plan *d, const series_set *set, const plot_panel *panels,
                       const char *block, const series *lines, size_t num_lines)
{
    for (int row = 0; row < NUM_PANELS; row++)
        put_panel(out, d, set, &panels[row], block, lines, num_lines, row);
}

static void put_layout(FILE *out, const drawing_plan *d, double end)
{
    int columns = d->tasks + d->queues;
    fprintf(out,
            "set xrange [0:%.9g]\nset grid xtics ytics linecolor rgb '#d0d0d0' linewidth 0.5\nset tics nomirror\n",
            end > 0 ? end : 1);
    if (d->medium == DRAWING_TERMINAL)
        return;
    fputs("set border 3\nset key outside right top vertical Left reverse samplen 2.5 spacing 1.1\n"
          "set lmargin 11\nset rmargin 46\nset tmargin 1.2\nset bmargin 3.4\n",
          out);
    fprintf(out, "set multiplot layout %d,%d columnsfirst title ", NUM_PANELS, columns);
    put_string(out, d->title);
    fputc('\n', out);
}

void drawing_write(FILE *out, const drawing_plan *d, const series_set *set)
{
    put_terminal(out, d);
    put_blocks(out, "task", set->tasks, set->num_tasks, put_task_row);
    put_blocks(out, "queue", set->queues, set->num_queues, put_queue_row);
    put_layout(out, d, set->end);
    if (d->tasks)
        put_figure(out, d, set, task_panels, "task", set->tasks, set->num_tasks);
    if (d->queues)
        put_figure(out, d, set, queue_panels, "queue", set->queues, set->num_queues);
    if (d->medium != DRAWING_TERMINAL)
        fputs("unset multiplot\n", out);
    fputs("unset output\n", out);
}
