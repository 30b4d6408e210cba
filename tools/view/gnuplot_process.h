/* Runs gnuplot on a drawing. */
#ifndef TOOLS_VIEW_GNUPLOT_PROCESS_H
#define TOOLS_VIEW_GNUPLOT_PROCESS_H

#include <stddef.h>

#include "tools/view/gnuplot.h"

/* The problem if gnuplot is not installed. */
extern const char gnuplot_missing[];

/* True if the plot was drawn; otherwise `problem` says why not. Errors of the stream are for the caller to check. */
bool gnuplot_run(const drawing_plan *plan, const series_set *set, FILE *picture, char *problem, size_t size);

#endif
