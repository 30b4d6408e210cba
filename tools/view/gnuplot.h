/*
 * Draws series with gnuplot: writes gnuplot's commands and data. The first picture answers what the run did and what
 * limited it; below it are panels of all measures, made from the tables of weir/query.h.
 */
#ifndef TOOLS_VIEW_GNUPLOT_H
#define TOOLS_VIEW_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/output_check.h"
#include "tools/view/plot_series.h"

typedef struct drawing_plan {
    weir_output_kind medium; /* PNG, SVG or PDF */
    const char *title;       /* lines; "" = none */
    bool overview, details;  /* the first picture, the panels */
} drawing_plan;

/* 12 inches wide, and as high as the pictures need. */
void drawing_write(FILE *gnuplot, const drawing_plan *plan, const series_set *set);

#endif
