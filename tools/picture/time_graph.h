/*
 * A rectangle with a time axis and an axis of values, and what is drawn into it: curves with the band of their extremes,
 * layers on each other, levels as shades, marks.
 *
 * A curve has at most as many points as the graph has pixels: a step for each point where there is room for its two ends,
 * else its middle. Where laps are missing, or a value is not known, it is interrupted.
 */
#ifndef TOOLS_PICTURE_TIME_GRAPH_H
#define TOOLS_PICTURE_TIME_GRAPH_H

#include "tools/picture/axis.h"
#include "tools/picture/inks.h"
#include "tools/picture/run_series.h"

/* The unit of the time axis. */
typedef struct time_unit {
    double seconds;
    const char *name; /* "minutes" */
} time_unit;

time_unit time_unit_of(double end_s);

typedef struct time_graph {
    FILE *out;
    double x, y, width, height; /* of the rectangle, in pixels */
    double end_s;               /* of the time axis, which begins at 0 */
    time_unit time;
    axis values;
} time_graph;

double graph_x(const time_graph *g, double time_s);

/* Begins a group with the axes, for the script. Clears nothing and draws nothing. */
void graph_begin(const time_graph *g);
void graph_end(const time_graph *g);

/* Lines at the ticks, and their labels: of the values left of the rectangle, of the time below it. */
void graph_value_axis(const time_graph *g);
void graph_time_grid(const time_graph *g);
void graph_time_labels(const time_graph *g);

/*
 * Adds the values of a curve to a range. Each lap counts, so no curve is cut off. The exception is a last lap that
 * the end of the run has cut short, if its value is more than twice the others. It would be a spike of a rate, and
 * flatten the curve.
 */
void graph_add_range(value_range *range, const series *line, const series_value *values);

/* values: the first one's; see series_values(). `index` chooses the colour. */
void graph_curve(const time_graph *g, const series *line, const series_value *values, const char *name, size_t index);

/* A part of a stack, from the one below it up to tops[point]; NAN = interrupted. */
typedef struct graph_layer {
    const char *name;
    ink fill;
    double *tops;
    double low, high; /* of its own values */
} graph_layer;

void graph_layers(const time_graph *g, const series *line, const graph_layer *layers, size_t count);

/* Shades of 0 to 1, one for each point; NAN = none. `what` names them: "depth". */
void graph_levels(const time_graph *g, const series *line, const double *levels, const char *what);

/* Shaded from start to stop, at least a pixel wide; with titles, each says its name and length. */
void graph_pauses(const time_graph *g, const series_marks *pauses, bool titled);
/* tints: for each phase its tint. */
void graph_phases(const time_graph *g, const series_marks *phases, const int *tints);
void graph_events(const time_graph *g, const series_marks *events, bool titled);
void graph_limits(const time_graph *g, const series_marks *limits, bool pale);

#endif
