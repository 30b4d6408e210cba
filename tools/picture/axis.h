/* Axes: which part of the values is shown, where the ticks are (1, 2 and 5 times a power of ten), and how values are written. */
#ifndef TOOLS_PICTURE_AXIS_H
#define TOOLS_PICTURE_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/format.h"

enum { AXIS_MAX_TICKS = 16 };

typedef struct axis {
    double low, high; /* values at its ends */
    double from, to;  /* pixels of them */
    bool is_log;
    const char *unit; /* of weir_measure */
} axis;

/* The range of what is shown. Empty: high < low. */
typedef struct value_range {
    double low, high, least; /* least: the lowest value above 0 */
} value_range;

extern const value_range value_range_none;
void value_range_add(value_range *range, double value); /* one that is not finite is ignored */

/*
 * An axis for these values, from pixel `from` to pixel `to`. It begins at 0, except for levels of any sign ("units")
 * and for times that differ by more than 20 times. Such times are logarithmic, over at most five decades. What is
 * shorter, or 0, is drawn at the foot.
 */
axis axis_of(const char *unit, const value_range *values, double from, double to);

/* The pixel of a value; one beyond the end is at the end. */
double axis_at(const axis *a, double value);

/* Makes at most max_ticks ticks, and at most AXIS_MAX_TICKS. Returns their number. */
size_t axis_ticks(const axis *a, size_t max_ticks, double ticks[AXIS_MAX_TICKS]);

/* A value in its unit: "41.7 ms", "1.50 MB", "45 %", "120". */
void axis_format(char text[WEIR_FORMAT_BYTES], const char *unit, double value);

#endif
