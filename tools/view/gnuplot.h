/*
 * Draws series with gnuplot: writes gnuplot's commands and data. The first picture answers what the run did and what
 * limited it; below it are panels of all measures, made from the tables of weir/measures.h.
 */
#ifndef TOOLS_VIEW_GNUPLOT_H
#define TOOLS_VIEW_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "plot_series.h"

typedef enum drawing_medium { DRAWING_PNG, DRAWING_SVG, DRAWING_PDF, DRAWING_TERMINAL } drawing_medium;

typedef struct drawing_plan {
    drawing_medium medium;
    const char *title;             /* lines; "" = none */
    bool clock;                    /* the time axis shows the time of day instead of the time since the start */
    bool counts;                   /* numbers in each lap instead of rates */
    bool overview;                 /* the first picture */
    bool shown[WEIR_NUM_SUBJECTS]; /* which panels below it */
    double width_in, height_in;    /* height 0 = as much as it needs */
    double dpi;
    int columns, rows; /* DRAWING_TERMINAL: characters for each panel */
    bool coloured;     /* DRAWING_TERMINAL */
} drawing_plan;

/* The height that the pictures need, in inches, at a width of 12. 0 = there is nothing to draw. */
double drawing_height_in(const drawing_plan *plan, const series_set *set);

void drawing_write(FILE *gnuplot, const drawing_plan *plan, const series_set *set);

#endif
