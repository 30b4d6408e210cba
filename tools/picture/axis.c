#include "tools/picture/axis.h"

#include <string.h>

const value_range value_range_none = { INFINITY, -INFINITY, INFINITY };

void value_range_add(value_range *range, double value)
{
    if (!isfinite(value))
        return;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
    if (value > 0)
        range->least = fmin(range->least, value);
}

static axis log_axis(axis a, const value_range *values)
{
    a.is_log = true;
    a.low = fmax(values->least / 1.3, values->high / 1e5);
    a.high = values->high * 1.3;
    return a;
}

axis axis_of(const char *unit, const value_range *values, double from, double to)
{
    axis a = { .low = 0, .high = 1, .from = from, .to = to, .unit = unit };
    if (!(values->low <= values->high))
        return a;
    bool is_level = strcmp(unit, "units") == 0;
    if (strcmp(unit, "s") == 0 && values->high > 20 * values->least)
        return log_axis(a, values);
    if (strcmp(unit, "share") == 0 && values->high > 0.5 && values->high <= 1.001)
        return a;
    double margin = 0.06 * (is_level && values->high > values->low ? values->high - values->low : fabs(values->high));
    margin = margin > 0 ? margin : 1;
    a.low = is_level || values->low < 0 ? values->low - margin : 0;
    a.high = values->high + margin;
    return a;
}

double axis_at(const axis *a, double value)
{
    double part =
        a->is_log ? log(fmax(value, a->low) / a->low) / log(a->high / a->low) : (value - a->low) / (a->high - a->low);
    return a->from + fmin(1, fmax(0, part)) * (a->to - a->from);
}

static size_t log_ticks(const axis *a, size_t max_ticks, double ticks[AXIS_MAX_TICKS])
{
    size_t count = 0;
    int first = (int)ceil(log10(a->low) - 1e-9), last = (int)floor(log10(a->high) + 1e-9);
    int step = 1 + (last - first) / (int)max_ticks;
    for (int power = first; power <= last && count < max_ticks; power += step)
        ticks[count++] = pow(10, power);
    return count;
}

size_t axis_ticks(const axis *a, size_t max_ticks, double ticks[AXIS_MAX_TICKS])
{
    size_t count = 0;
    max_ticks = max_ticks > AXIS_MAX_TICKS ? AXIS_MAX_TICKS : max_ticks < 2 ? 2 : max_ticks;
    if (a->is_log && a->high / a->low >= 10)
        return log_ticks(a, max_ticks, ticks);
    double least = (a->high - a->low) / (double)max_ticks, power = pow(10, floor(log10(least))),
           digit = least / power;
    double step = (digit > 5 ? 10 : digit > 2 ? 5 : digit > 1 ? 2 : 1) * power;
    double first = ceil(a->low / step - 1e-9);
    while (count < max_ticks && (first + (double)count) * step <= a->high * (1 + 1e-12)) {
        ticks[count] = (first + (double)count) * step + 0.0; /* not -0 */
        count++;
    }
    return count;
}

void axis_format(char text[WEIR_FORMAT_BYTES], const char *unit, double value)
{
    bool is_rate = strlen(unit) > 2 && strcmp(unit + strlen(unit) - 2, "/s") == 0;
    if (!isfinite(value))
        snprintf(text, WEIR_FORMAT_BYTES, "not known");
    else if (strcmp(unit, "s") == 0)
        weir__text_format_time(text, value);
    else if (strcmp(unit, "share") == 0)
        snprintf(text, WEIR_FORMAT_BYTES, "%.*f %%", 100 * fabs(value) < 10 && value != 0 ? 1 : 0, 100 * value);
    else if (strncmp(unit, "bytes", 5) == 0)
        weir__text_format_bytes(text, value);
    else
        snprintf(text, WEIR_FORMAT_BYTES, fabs(value) >= 1000 ? "%.0f" : "%.3g", value);
    if (strncmp(unit, "bytes", 5) == 0 && is_rate)
        snprintf(text + strlen(text), WEIR_FORMAT_BYTES - strlen(text), "/s");
}
