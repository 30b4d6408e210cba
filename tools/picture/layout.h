/*
 * A picture that grows downwards: rows of text, legends and graphs below each other, with one time axis. On a wide picture the
 * name of a row stands left of it, on a narrow one above it. Text is wrapped, so that no label is on another one.
 */
#ifndef TOOLS_PICTURE_LAYOUT_H
#define TOOLS_PICTURE_LAYOUT_H

#include "tools/picture/run_series.h"
#include "tools/picture/time_graph.h"

typedef struct layout {
    FILE *out;
    const series_set *set;
    double width, left, right; /* graphs are between left and right */
    double y;                  /* what has been put ends here */
    bool is_narrow;
    int *tints; /* of the phases of the set */
} layout;

layout layout_begin(FILE *out, const series_set *set, double width);
void layout_end(layout *l);

/* A text in as many lines as it needs. */
void layout_text(layout *l, const char *class, const char *text);

/* A row with a name; values: the unit, and the range or NULL = 0 to 1. */
time_graph layout_row(layout *l, const char *name, double height, const char *unit, const value_range *values);

/* A legend: its heading, then entries that wrap. */
typedef struct legend {
    layout *l;
    double x;
} legend;

legend legend_begin(layout *l, const char *heading);
void legend_fill(legend *of, const char *text, ink fill, double opacity);
void legend_curve(legend *of, const char *text, size_t index);
void legend_note(legend *of, const char *text);
void legend_end(legend *of);

#endif
