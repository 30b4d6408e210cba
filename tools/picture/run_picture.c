#include "tools/picture/run_picture.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/memory.h"
#include "tools/cli/table.h"
#include "tools/picture/first_picture.h"
#include "tools/picture/layout.h"
#include "tools/picture/svg.h"
#include "tools/view/metric_table.h"

static const double panel_height = 168, panel_left = 58, panel_right = 10, panel_top = 20, panel_bottom = 32;

/* ---- panels ------------------------------------------------------------------------------------------------- */

/* A measure of the series from `first` to before `end`. */
typedef struct panel {
    const series_list *list;
    size_t column, first, end;
    weir_subject subject;
    axis values;
} panel;

static const series_value *panel_values(const panel *p, const series *line)
{
    return line->num_points ? line->values + p->column : NULL;
}

/* Sets the axis. Whether a curve changes by a pixel. */
static bool changes(panel *p)
{
    value_range all = value_range_none;
    bool any = false;
    for (size_t i = p->first; i < p->end; i++)
        if (p->list->all[i].num_points)
            graph_add_range(&all, &p->list->all[i], panel_values(p, &p->list->all[i]));
    p->values = axis_of(p->list->columns[p->column]->unit, &all, panel_height - panel_bottom, panel_top);
    for (size_t i = p->first; i < p->end && all.low < all.high; i++) {
        value_range own = value_range_none;
        if (p->list->all[i].num_points)
            graph_add_range(&own, &p->list->all[i], panel_values(p, &p->list->all[i]));
        any |= own.low < own.high && fabs(axis_at(&p->values, own.high) - axis_at(&p->values, own.low)) >= 1;
    }
    return any;
}

/* The next panel of a subject that changes; begin with a zeroed panel that has its list and subject. Counters have scales of
   their own. False = there are no more. */
static bool panel_next(panel *p)
{
    bool is_single = p->subject == WEIR_SUBJECT_COUNTER;
    for (;;) {
        if (is_single && p->end > 0 && p->end < p->list->count) {
            p->first = p->end++;
        } else {
            p->column += p->end > 0;
            p->first = 0;
            p->end = is_single ? 1 : p->list->count;
        }
        if (p->column >= p->list->num_columns || p->list->count == 0)
            return false;
        if (series_has_panel(p->subject, p->list->columns[p->column]) && changes(p))
            return true;
    }
}

static char *panel_title(const panel *p)
{
    const weir_measure *measure = p->list->columns[p->column];
    const char *title = measure->title ? measure->title : "";
    if (p->subject == WEIR_SUBJECT_COUNTER)
        return memory_format("%s%s%s", p->list->all[p->first].name, strcmp(measure->unit, "units") ? " " : "",
                             strcmp(measure->unit, "units") ? title : "");
    return memory_format("%s%s%.*s", title, *title ? ": " : "", (int)strcspn(measure->help, ":"), measure->help);
}

static void put_panel(FILE *out, const series_set *set, const panel *p, double x, double y, double width,
                      const int *tints)
{
    time_graph g = { .out = out,
                     .x = x + panel_left,
                     .y = y + panel_top,
                     .width = width - panel_left - panel_right,
                     .height = panel_height - panel_top - panel_bottom,
                     .end_s = set->end > 0 ? set->end : 1,
                     .time = time_unit_of(set->end),
                     .values = p->values };
    char *title = panel_title(p);
    g.values.from += y;
    g.values.to += y;
    svg_text(out, "n", x + 6, y + 13, "start", title, svg_columns(width - 12));
    graph_begin(&g);
    graph_phases(&g, &set->phases, tints);
    graph_pauses(&g, &set->pauses, false);
    graph_value_axis(&g);
    graph_time_grid(&g);
    graph_events(&g, &set->events, false);
    for (size_t i = p->first; i < p->end; i++)
        graph_curve(&g, &p->list->all[i], panel_values(p, &p->list->all[i]), p->list->all[i].name, i - p->first);
    graph_end(&g);
    graph_time_labels(&g);
    free(title);
}

/* ---- panels below the first picture ------------------------------------------------------------------------- */

static void put_section_heading(layout *l, weir_subject subject)
{
    const series_list *list = &l->set->lists[subject];
    l->y += 8;
    legend of = legend_begin(l, metric_subject_title(subject));
    for (size_t i = 0; i < list->count && subject != WEIR_SUBJECT_COUNTER; i++)
        legend_curve(&of, list->all[i].name, i);
    if (list->num_left_out) {
        char *text = memory_format("%zu more: see --name", list->num_left_out);
        legend_note(&of, text);
        free(text);
    }
    legend_end(&of);
}

static void put_section(layout *l, weir_subject subject)
{
    panel p = { .list = &l->set->lists[subject], .subject = subject };
    int num_columns = l->is_narrow ? 1 : (int)(l->width / 450), column = 0;
    double width = l->width / num_columns;
    bool is_first = true;
    while (panel_next(&p)) {
        if (is_first)
            put_section_heading(l, subject);
        is_first = false;
        put_panel(l->out, l->set, &p, width * column, l->y, width, l->tints);
        column = (column + 1) % num_columns;
        l->y += column == 0 ? panel_height : 0;
    }
    l->y += column ? panel_height : 0;
}

/* ---- files and elements ------------------------------------------------------------------------------------- */

static void open_svg(FILE *out, double width, double height, bool is_standalone)
{
    if (is_standalone)
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"weir\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" "
            "width=\"100%%\"%s>\n",
            width, height, is_standalone ? " style=\"max-width:1600px\"" : "");
    if (!is_standalone)
        return;
    fputs("<style>", out);
    inks_write_style(out);
    fprintf(out, "</style>\n<rect class=\"z\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
}

void picture_write(FILE *out, const picture_plan *plan, const series_set *set)
{
    char *body = NULL;
    size_t size;
    FILE *memory = memory_file_open(&body, &size); /* the height stands before it */
    layout l = layout_begin(memory, set, plan->width);
    layout_text(&l, "", plan->title);
    first_picture_put(&l);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && plan->panels; subject++)
        put_section(&l, subject);
    layout_end(&l);
    memory_file_close(memory);
    open_svg(out, plan->width, l.y + 8, plan->is_standalone);
    fwrite(body, 1, size, out);
    fputs("</svg>\n", out);
    free(body);
}

static void put_page_legend(FILE *out, const series_list *list, weir_subject subject)
{
    fputs("<p class=\"names\">", out);
    for (size_t i = 0; i < list->count && subject != WEIR_SUBJECT_COUNTER; i++) {
        fprintf(out, "<span><b class=\"k%zu\">%s</b> ", i % NUM_CURVE_COLOURS,
                i < NUM_CURVE_COLOURS               ? "━"
                : i < 2 * (size_t)NUM_CURVE_COLOURS ? "╍"
                                                    : "┉");
        html_text(out, list->all[i].name);
        fputs("</span> ", out);
    }
    if (list->num_left_out)
        fprintf(out, "<span>%zu more: see --name</span>", list->num_left_out);
    fputs("</p>\n<div class=\"panels\">\n", out);
}

bool picture_write_panels(FILE *out, const series_set *set, weir_subject subject)
{
    panel p = { .list = &set->lists[subject], .subject = subject };
    bool is_any = false;
    layout l = layout_begin(out, set, PICTURE_NARROW);
    while (panel_next(&p)) {
        if (!is_any)
            put_page_legend(out, p.list, subject);
        is_any = true;
        open_svg(out, PICTURE_NARROW, panel_height, false);
        put_panel(out, set, &p, 0, 0, PICTURE_NARROW, l.tints);
        fputs("</svg>\n", out);
    }
    if (is_any)
        fputs("</div>\n", out);
    layout_end(&l);
    return is_any;
}
