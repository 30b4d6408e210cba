#include "tools/picture/time_graph.h"

#include <math.h>
#include <string.h>

#include "tools/cli/memory.h"
#include "tools/picture/svg.h"

time_unit time_unit_of(double end_s)
{
    if (end_s >= 4 * 86400.0)
        return (time_unit){ 86400, "days" };
    if (end_s >= 4 * 3600.0)
        return (time_unit){ 3600, "hours" };
    return end_s >= 600 ? (time_unit){ 60, "minutes" } : (time_unit){ 1, "seconds" };
}

double graph_x(const time_graph *g, double time_s)
{
    return g->x + fmin(1, fmax(0, time_s / g->end_s)) * g->width;
}

static void put_point(const time_graph *g, char how, double x, double y)
{
    fputc(how, g->out);
    svg_number(g->out, x);
    fputc(' ', g->out);
    svg_number(g->out, y);
}

static void put_to(const time_graph *g, char how, double at)
{
    fputc(how, g->out);
    svg_number(g->out, at);
}

/* ---- axes --------------------------------------------------------------------------------------------------- */

void graph_begin(const time_graph *g)
{
    fprintf(g->out, "<g data-u=\"%s\" data-t=\"%s\" data-x=\"%.2f %.2f 0 %.9g %.2f %.2f %.9g %.9g %d\">\n",
            g->values.unit, g->time.name, g->x, g->x + g->width, g->end_s / g->time.seconds, g->values.from,
            g->values.to, g->values.low, g->values.high, g->values.is_log);
    fprintf(g->out, "<path fill=\"none\" pointer-events=\"all\" d=\"");
    put_point(g, 'M', g->x, g->y);
    put_to(g, 'H', g->x + g->width);
    put_to(g, 'V', g->y + g->height);
    put_to(g, 'H', g->x);
    fputs("Z\"/>\n", g->out);
}

void graph_end(const time_graph *g)
{
    fputs("</g>\n", g->out);
}

void graph_value_axis(const time_graph *g)
{
    double ticks[AXIS_MAX_TICKS];
    size_t count = axis_ticks(&g->values, (size_t)(g->height / 24), ticks);
    for (size_t i = 0; i < count; i++) {
        char text[WEIR_FORMAT_BYTES];
        double y = axis_at(&g->values, ticks[i]);
        axis_format(text, g->values.unit, ticks[i]);
        svg_line(g->out, "g", g->x, y, g->x + g->width, y);
        svg_text(g->out, "n", g->x - 5, y + 4, "end", text, SIZE_MAX);
    }
}

static size_t time_ticks(const time_graph *g, double ticks[AXIS_MAX_TICKS])
{
    axis time = { .low = 0, .high = g->end_s / g->time.seconds, .from = g->x, .to = g->x + g->width, .unit = "" };
    return axis_ticks(&time, (size_t)(g->width / 60), ticks);
}

void graph_time_grid(const time_graph *g)
{
    double ticks[AXIS_MAX_TICKS];
    size_t count = time_ticks(g, ticks);
    for (size_t i = 0; i < count; i++) {
        double x = graph_x(g, ticks[i] * g->time.seconds);
        svg_line(g->out, "g", x, g->y, x, g->y + g->height);
    }
}

/* The unit stands behind the last one. */
void graph_time_labels(const time_graph *g)
{
    double ticks[AXIS_MAX_TICKS], used = g->x;
    size_t count = time_ticks(g, ticks);
    for (size_t i = 0; i < count; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.6g", ticks[i]);
        double x = graph_x(g, ticks[i] * g->time.seconds);
        svg_text(g->out, "n", x, g->y + g->height + 14, "middle", text, SIZE_MAX);
        used = x + svg_text_width(text) / 2;
    }
    double unit = svg_text_width(g->time.name), end = g->x + g->width;
    bool fits = used + 6 + unit <= end;
    svg_text(g->out, "n", end, g->y + g->height + (fits ? 14 : 27), "end", g->time.name, SIZE_MAX);
}

/* ---- ranges ------------------------------------------------------------------------------------------------- */

static bool is_cut_short(const series *line, size_t point)
{
    const series_time *middle = &line->times[line->num_points / 2], *own = &line->times[point];
    double whole = fmax(line->times[0].end - line->times[0].start, middle->end - middle->start);
    return line->num_points > 1 && point == line->num_points - 1 && own->end - own->start < whole / 2;
}

void graph_add_range(value_range *range, const series *line, const series_value *values)
{
    value_range whole = value_range_none;
    for (size_t i = 0; i < line->num_points; i++) {
        const series_value *value = &values[i * line->num_columns];
        if (is_cut_short(line, i) && value->high > 2 * whole.high)
            continue;
        value_range_add(&whole, value->low);
        value_range_add(&whole, value->high);
    }
    value_range_add(range, whole.low);
    value_range_add(range, whole.least);
    value_range_add(range, whole.high);
}

/* ---- curves ------------------------------------------------------------------------------------------------- */

/* Whether there is a gap before a point: laps are missing. */
static bool has_gap(const series *line, size_t point)
{
    const series_time *time = &line->times[point];
    return point > 0 && time->start - time[-1].end > 0.5 * (time->end - time->start);
}

static bool has_room_for_steps(const time_graph *g, const series *line)
{
    return 2 * (double)line->num_points <= g->width;
}

/* The first point behind `from` that does not follow the one before it. */
static size_t curve_end(const series *line, const series_value *values, size_t from)
{
    size_t end = from;
    while (end < line->num_points && isfinite(values[end * line->num_columns].mean) &&
           (end == from || !has_gap(line, end)))
        end++;
    return end;
}

static double middle_x(const time_graph *g, const series_time *time)
{
    return graph_x(g, 0.5 * (time->start + time->end));
}

static void put_steps(const time_graph *g, const series *line, const series_value *values, size_t from, size_t end)
{
    double before = NAN;
    for (size_t i = from; i < end; i++) {
        double y = axis_at(&g->values, values[i * line->num_columns].mean);
        if (i == from)
            put_point(g, 'M', graph_x(g, line->times[i].start), y);
        else if (fabs(y - before) >= 0.005)
            put_to(g, 'V', y);
        bool goes_on = i + 1 < end && fabs(axis_at(&g->values, values[(i + 1) * line->num_columns].mean) - y) < 0.005;
        if (!goes_on)
            put_to(g, 'H', graph_x(g, line->times[i].end));
        before = y;
    }
}

static void put_middles(const time_graph *g, const series *line, const series_value *values, size_t from, size_t end)
{
    if (end == from + 1) { /* alone: a step, so that it is seen */
        put_steps(g, line, values, from, end);
        return;
    }
    for (size_t i = from; i < end; i++)
        put_point(g, i == from ? 'M' : 'L', middle_x(g, &line->times[i]),
                  axis_at(&g->values, values[i * line->num_columns].mean));
}

/* The band between the lowest and the highest lap of each point. */
static void put_band(const time_graph *g, const series *line, const series_value *values, size_t from, size_t end)
{
    bool steps = has_room_for_steps(g, line) || end == from + 1;
    for (size_t i = from; i < end; i++) {
        double y = axis_at(&g->values, values[i * line->num_columns].high);
        put_point(g, i == from ? 'M' : 'L', steps ? graph_x(g, line->times[i].start) : middle_x(g, &line->times[i]),
                  y);
        if (steps)
            put_to(g, 'H', graph_x(g, line->times[i].end));
    }
    for (size_t i = end; i-- > from;) {
        double y = axis_at(&g->values, values[i * line->num_columns].low);
        put_point(g, 'L', steps ? graph_x(g, line->times[i].end) : middle_x(g, &line->times[i]), y);
        if (steps)
            put_to(g, 'H', graph_x(g, line->times[i].start));
    }
    fputc('Z', g->out);
}

typedef void put_part(const time_graph *g, const series *line, const series_value *values, size_t from, size_t end);

static void put_parts(const time_graph *g, const series *line, const series_value *values, put_part *put)
{
    for (size_t from = 0; from < line->num_points;) {
        size_t end = curve_end(line, values, from);
        if (end > from)
            put(g, line, values, from, end);
        from = end > from ? end : from + 1;
    }
}

void graph_curve(const time_graph *g, const series *line, const series_value *values, const char *name, size_t index)
{
    value_range range = value_range_none;
    bool has_band = false;
    char low[WEIR_FORMAT_BYTES], high[WEIR_FORMAT_BYTES];
    for (size_t i = 0; i < line->num_points; i++) {
        const series_value *value = &values[i * line->num_columns];
        value_range_add(&range, value->low);
        value_range_add(&range, value->high);
        has_band |= value->high > value->low;
    }
    if (!(range.low <= range.high))
        return;
    size_t colour = index % NUM_CURVE_COLOURS, dash = index / NUM_CURVE_COLOURS % NUM_CURVE_DASHES;
    axis_format(low, g->values.unit, range.low);
    axis_format(high, g->values.unit, range.high);
    if (has_band) {
        fprintf(g->out, "<path class=\"b b%zu\" d=\"", colour);
        put_parts(g, line, values, put_band);
        fputs("\"/>\n", g->out);
    }
    fprintf(g->out, "<path class=\"c c%zu d%zu\" data-n=\"", colour, dash);
    svg_escape(g->out, name, SIZE_MAX);
    fputs("\" d=\"", g->out);
    put_parts(g, line, values, has_room_for_steps(g, line) ? put_steps : put_middles);
    fputs("\">", g->out);
    svg_title(g->out, "%s: lowest %s, highest %s", name, low, high);
    fputs("</path>\n", g->out);
}

/* ---- layers and levels -------------------------------------------------------------------------------------- */

static void close_area(const time_graph *g, double foot)
{
    put_to(g, 'V', foot);
    fputc('Z', g->out);
}

static void put_area(const time_graph *g, const series *line, const double *tops)
{
    double foot = axis_at(&g->values, 0), before = NAN;
    for (size_t i = 0; i < line->num_points; i++) {
        double y = axis_at(&g->values, tops[i]);
        bool is_there = isfinite(tops[i]), is_first = !isfinite(before) || has_gap(line, i);
        if (isfinite(before) && (is_first || !is_there))
            close_area(g, foot);
        if (!is_there) {
            before = NAN;
            continue;
        }
        if (is_first)
            put_point(g, 'M', graph_x(g, line->times[i].start), foot);
        if (is_first || fabs(y - before) >= 0.005)
            put_to(g, 'V', y);
        bool goes_on = i + 1 < line->num_points && isfinite(tops[i + 1]) && !has_gap(line, i + 1);
        if (!(goes_on && fabs(axis_at(&g->values, tops[i + 1]) - y) < 0.005))
            put_to(g, 'H', goes_on ? graph_x(g, line->times[i + 1].start) : graph_x(g, line->times[i].end));
        before = y;
    }
    if (isfinite(before))
        close_area(g, foot);
}

/* The uppermost first: each covers the lower part of the one before. */
void graph_layers(const time_graph *g, const series *line, const graph_layer *layers, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        char low[WEIR_FORMAT_BYTES], high[WEIR_FORMAT_BYTES];
        if (!(layers[i].high > 0))
            continue;
        axis_format(low, g->values.unit, layers[i].low);
        axis_format(high, g->values.unit, layers[i].high);
        fprintf(g->out, "<path class=\"a i%d\" data-n=\"%s\" d=\"", layers[i].fill, layers[i].name);
        put_area(g, line, layers[i].tops);
        fputs("\">", g->out);
        svg_title(g->out, "%s: lowest %s, highest %s", layers[i].name, low, high);
        fputs("</path>\n", g->out);
    }
}

enum { NUM_SHADES = 20 };

static double shade_of(double level)
{
    return isfinite(level) ? round(NUM_SHADES * fmin(1, fmax(0, level))) : NAN;
}

static void put_level(const time_graph *g, const series *line, const double *levels, size_t from, size_t end,
                      const char *what)
{
    double start = line->times[from].start, stop = line->times[end - 1].end;
    double x = graph_x(g, start), low = INFINITY, high = -INFINITY;
    char lowest[WEIR_FORMAT_BYTES], highest[WEIR_FORMAT_BYTES];
    for (size_t i = from; i < end; i++) {
        low = fmin(low, levels[i]);
        high = fmax(high, levels[i]);
    }
    axis_format(lowest, "share", low);
    axis_format(highest, "share", high);
    fprintf(g->out, "<rect class=\"i%d\" fill-opacity=\"", INK_FULL);
    svg_number(g->out, shade_of(levels[from]) / NUM_SHADES);
    fputs("\" x=\"", g->out);
    svg_number(g->out, x);
    fputs("\" y=\"", g->out);
    svg_number(g->out, g->y);
    fputs("\" width=\"", g->out);
    svg_number(g->out, fmax(graph_x(g, stop) - x, 0.3));
    fprintf(g->out, "\" height=\"%g\">", g->height);
    svg_title(g->out, "%s, %.4g to %.4g %s: %s%s%s", what, start / g->time.seconds, stop / g->time.seconds,
              g->time.name, lowest, strcmp(lowest, highest) ? " to " : "", strcmp(lowest, highest) ? highest : "");
    svg_close_rectangle(g->out);
}

void graph_levels(const time_graph *g, const series *line, const double *levels, const char *what)
{
    char ground[16];
    snprintf(ground, sizeof ground, "i%d", INK_EMPTY);
    for (size_t from = 0; from < line->num_points;) {
        size_t end = from + 1;
        while (end < line->num_points && !has_gap(line, end) && shade_of(levels[end]) == shade_of(levels[from]))
            end++;
        double x = graph_x(g, line->times[from].start);
        if (isfinite(levels[from])) {
            svg_rectangle(g->out, ground, x, g->y, fmax(graph_x(g, line->times[end - 1].end) - x, 0.3), g->height);
            svg_close_rectangle(g->out);
            put_level(g, line, levels, from, end, what);
        }
        from = end;
    }
}

/* ---- marks -------------------------------------------------------------------------------------------------- */

static void put_span(const time_graph *g, double from, double to)
{
    put_point(g, 'M', from, g->y);
    put_to(g, 'H', to);
    put_to(g, 'V', g->y + g->height);
    put_to(g, 'H', from);
    fputc('Z', g->out);
}

/* Pauses in a pixel that is shaded already change nothing. */
void graph_pauses(const time_graph *g, const series_marks *pauses, bool titled)
{
    double shown = -INFINITY;
    if (pauses->count && !titled)
        fputs("<path class=\"p\" d=\"", g->out);
    for (size_t i = 0; i < pauses->count; i++) {
        const series_mark *pause = &pauses->all[i];
        double from = graph_x(g, pause->start), to = fmax(graph_x(g, pause->end), from + 1);
        char length[WEIR_FORMAT_BYTES];
        if (to <= shown)
            continue;
        if (titled)
            fputs("<path class=\"p\" d=\"", g->out);
        put_span(g, from, to);
        if (titled) {
            weir__text_format_time(length, pause->end - pause->start);
            fputs("\">", g->out);
            svg_title(g->out, "%s: %s at %.4g %s", pause->text, length, pause->start / g->time.seconds, g->time.name);
            fputs("</path>\n", g->out);
        }
        shown = ceil(to);
    }
    if (pauses->count && !titled)
        fputs("\"/>\n", g->out);
}

void graph_phases(const time_graph *g, const series_marks *phases, const int *tints)
{
    double shown = -INFINITY;
    for (size_t i = 0; i < phases->count; i++) {
        const series_mark *phase = &phases->all[i];
        double from = graph_x(g, phase->start), to = graph_x(g, phase->end);
        char class[16];
        if (to - from < 1 && from < shown)
            continue; /* narrower than a pixel, and the pixel has a tint */
        shown = floor(from) + 1;
        snprintf(class, sizeof class, "i%d", INK_PHASES + tints[i]);
        svg_rectangle(g->out, class, from, g->y, fmax(to - from, 1), g->height);
        svg_title(g->out, "%s: %.4g to %.4g %s", phase->text, phase->start / g->time.seconds,
                  phase->end / g->time.seconds, g->time.name);
        svg_close_rectangle(g->out);
    }
}

void graph_events(const time_graph *g, const series_marks *events, bool titled)
{
    double shown = -INFINITY;
    for (size_t i = 0; i < events->count; i++) {
        double x = graph_x(g, events->all[i].start);
        if (x - shown < 1)
            continue; /* the same pixel; names are above the graph, or listed below it */
        shown = x;
        fputs("<path class=\"e\" d=\"", g->out);
        put_point(g, 'M', x, g->y);
        put_to(g, 'V', g->y + g->height);
        fputs("\">", g->out);
        if (titled)
            svg_title(g->out, "%s at %.4g %s", events->all[i].text, events->all[i].start / g->time.seconds,
                      g->time.name);
        fputs("</path>\n", g->out);
    }
}

void graph_limits(const time_graph *g, const series_marks *limits, bool pale)
{
    for (size_t i = 0; i < limits->count; i++) {
        const series_mark *limit = &limits->all[i];
        double from = graph_x(g, limit->start), width = fmax(graph_x(g, limit->end) - from, 0.5);
        char class[24];
        snprintf(class, sizeof class, "%si%d", pale ? "o " : "", INK_LIMITS + limit->kind);
        svg_rectangle(g->out, class, from, g->y, width, g->height);
        svg_title(g->out, "%s: %.4g to %.4g %s", limit->text, limit->start / g->time.seconds,
                  limit->end / g->time.seconds, g->time.name);
        svg_close_rectangle(g->out);
    }
}
