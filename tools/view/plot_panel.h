/* Which panels a subject has: they follow from its measures, so that a new metric is drawn without more. */
#ifndef TOOLS_VIEW_PLOT_PANEL_H
#define TOOLS_VIEW_PLOT_PANEL_H

#include "plot_series.h"

enum { PANEL_MAX = 24, PANEL_MAX_CURVES = 8 };

/* Measures of one unit that are compared: the mean, median, ... of one time. */
typedef struct panel {
    weir_subject subject;
    const char *group; /* only the series of this counter, "category/name"; NULL = all series */
    size_t group_length;
    char title[200];
    const weir_measure *curves[PANEL_MAX_CURVES];
    int num_curves;
} panel;

/* Measures that are always 0, or not known, have no curve. Returns how many panels there are. */
size_t panels_make(weir_subject subject, const series_list *list, panel panels[PANEL_MAX]);

/* Whether the panel shows the series: not one that is always 0. */
bool panel_has(const panel *p, const series *line);

/* "average", or a name without underscores. */
void panel_curve_title(const weir_measure *measure, char title[64]);

#endif
