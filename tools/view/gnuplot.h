/* Draws series with gnuplot: writes gnuplot's commands and data. */
#ifndef TOOLS_VIEW_GNUPLOT_H
#define TOOLS_VIEW_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "plot_series.h"

typedef enum drawing_medium { DRAWING_PNG, DRAWING_SVG, DRAWING_PDF, DRAWING_TERMINAL } drawing_medium;

typedef struct drawing_plan {
    drawing_medium medium;
    const char *title;
    bool clock;                   /* the time axis shows the time of day instead of the time since the start */
    bool shown[NUM_SERIES_KINDS]; /* which figures: two in a row, in the terminal one below the other */
    double width_in, height_in;
    double dpi;
    int columns, rows; /* DRAWING_TERMINAL: characters for each panel */
    bool coloured;     /* DRAWING_TERMINAL */
} drawing_plan;

/* How the figures are placed. */
int drawing_columns(const drawing_plan *drawing);
int drawing_rows(const drawing_plan *drawing);

void drawing_write(FILE *gnuplot, const drawing_plan *drawing, const series_set *set);

#endif
