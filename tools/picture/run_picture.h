/*
 * The pictures of a run as SVG. The first one answers what the run did and what limited it: the throughput over the band of
 * the limit, the time of the slots, the CPUs, the levels of the queues. Panels show one measure each; one that does not
 * change by a pixel is left out.
 */
#ifndef TOOLS_PICTURE_RUN_PICTURE_H
#define TOOLS_PICTURE_RUN_PICTURE_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/picture/run_series.h"

/* Widths in pixels: of a screen, and of a phone, where text keeps its size. */
enum { PICTURE_WIDE = 1000, PICTURE_NARROW = 380 };

typedef struct picture_plan {
    const char *title; /* lines; "" = none */
    double width;
    bool panels; /* behind the first picture, in as many columns as there is room for */
    bool
        is_standalone; /* a file of its own, with its style sheet; else an element of a page that has inks_write_style() */
} picture_plan;

/* The first picture, and with `panels` these. Its height is what it needs. */
void picture_write(FILE *out, const picture_plan *plan, const series_set *set);

/* Writes the panels of a subject for a page, each an element of its own, with their legend. False = there is none, and
   nothing is written. */
bool picture_write_panels(FILE *out, const series_set *set, weir_subject subject);

#endif
