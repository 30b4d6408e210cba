#include "tools/picture/layout.h"

#include <stdlib.h>
#include <string.h>

#include "common/text_columns.h"
#include "tools/cli/memory.h"
#include "tools/picture/svg.h"

static const double bold = 1.15; /* how much wider it is */
static const double margin = 8, line_height = 17, name_width = 150, tick_width = 52, right_margin = 12;

/* Phases of one name have one tint, in the order in which they appear. */
static int *tints_of(const series_marks *phases)
{
    int *tints = memory_get(phases->count + 1, sizeof *tints), next = 0;
    for (size_t i = 0; i < phases->count; i++) {
        size_t same = i > 64 ? i - 64 : 0; /* phases come again soon, or begin a tint of their own */
        while (same < i && strcmp(phases->all[same].text, phases->all[i].text) != 0)
            same++;
        tints[i] = same < i ? tints[same] : next++ % NUM_TINTS;
    }
    return tints;
}

layout layout_begin(FILE *out, const series_set *set, double width)
{
    bool is_narrow = width < 600;
    return (layout){ .out = out,
                     .set = set,
                     .width = width,
                     .left = (is_narrow ? 0 : name_width) + tick_width,
                     .right = width - right_margin,
                     .y = margin,
                     .is_narrow = is_narrow,
                     .tints = tints_of(&set->phases) };
}

void layout_end(layout *l)
{
    free(l->tints);
    l->tints = NULL;
}

/* The bytes of the text that fit a line: whole words, or as much of a long one as fits. */
static size_t line_bytes(const char *text, size_t columns)
{
    size_t fits = weir__text_cut(text, columns), end = fits;
    if (strcspn(text, "\n") <= fits)
        return strcspn(text, "\n");
    if (!text[fits])
        return fits;
    while (end > 0 && text[end] != ' ')
        end--;
    return end > 0 ? end : fits > 0 ? fits : strlen(text);
}

void layout_text(layout *l, const char *class, const char *text)
{
    size_t columns = svg_columns(l->width - 2 * margin);
    while (*text) {
        size_t length = line_bytes(text, columns);
        char *line = memory_format("%.*s", (int)length, text);
        l->y += line_height;
        svg_text(l->out, class, margin, l->y - 4, "start", line, SIZE_MAX);
        free(line);
        text += length;
        text += *text == ' ' || *text == '\n';
    }
}

time_graph layout_row(layout *l, const char *name, double height, const char *unit, const value_range *values)
{
    static const value_range share = { 0, 1, 1 };
    if (l->is_narrow && *name)
        svg_text(l->out, "n", margin, (l->y += 14) - 3, "start", name, svg_columns(l->width - 2 * margin));
    else if (*name)
        svg_text(l->out, "n", margin, l->y + height / 2 + 4, "start", name, svg_columns(name_width - margin));
    time_graph g = { .out = l->out,
                     .x = l->left,
                     .y = l->y,
                     .width = l->right - l->left,
                     .height = height,
                     .end_s = l->set->end > 0 ? l->set->end : 1,
                     .time = time_unit_of(l->set->end),
                     .values = axis_of(unit, values ? values : &share, l->y + height, l->y) };
    l->y += height;
    return g;
}

/* ---- legends ------------------------------------------------------------------------------------------------ */

legend legend_begin(layout *l, const char *heading)
{
    l->y += line_height + 2;
    svg_text(l->out, "h", margin, l->y - 4, "start", heading, svg_columns(l->width - 2 * margin));
    return (legend){ l, fmax(l->is_narrow ? 0 : l->left, margin + bold * svg_text_width(heading) + 14) };
}

/* Where an entry of this width begins. */
static double entry_begin(legend *of, const char *text, double symbol)
{
    layout *l = of->l;
    double width = symbol + svg_text_width(text) + 14, start = l->is_narrow ? margin : l->left;
    if (of->x > start && of->x + width - 14 > l->width - margin) {
        of->x = start;
        l->y += line_height;
    }
    double x = of->x;
    of->x += width;
    return x;
}

static void put_entry_text(const legend *of, double x, const char *text)
{
    svg_text(of->l->out, "n", x, of->l->y - 4, "start", text, svg_columns(of->l->width - x - margin));
}

void legend_fill(legend *of, const char *text, ink fill, double opacity)
{
    double x = entry_begin(of, text, 15);
    fprintf(of->l->out,
            "<rect class=\"i%d\" x=\"%.2f\" y=\"%.2f\" width=\"11\" height=\"11\" fill-opacity=\"%.2f\"/>\n", fill, x,
            of->l->y - 13, opacity);
    put_entry_text(of, x + 15, text);
}

void legend_curve(legend *of, const char *text, size_t index)
{
    double x = entry_begin(of, text, 26);
    fprintf(of->l->out, "<path class=\"c c%zu d%zu\" d=\"M%.2f %.2fh22\"/>\n", index % NUM_CURVE_COLOURS,
            index / NUM_CURVE_COLOURS % NUM_CURVE_DASHES, x, of->l->y - 8);
    put_entry_text(of, x + 26, text);
}

void legend_note(legend *of, const char *text)
{
    put_entry_text(of, entry_begin(of, text, 0), text);
}

void legend_end(legend *of)
{
    of->l->y += 4;
}
