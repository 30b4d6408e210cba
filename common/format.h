/* Readable values: few digits, a unit. */
#ifndef COMMON_FORMAT_H
#define COMMON_FORMAT_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* Large enough for any of the texts below. */
enum { WEIR_FORMAT_BYTES = 32 };

static inline double weir__seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* NAN, a value that is not known, as 0. */
static inline double weir__or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

/* How many decimals make three digits. */
static inline int weir__format_decimals(double figure)
{
    return figure < 9.995 ? 2 : figure < 99.95 ? 1 : 0;
}

/* Three digits and a unit: "2.54 s", "41.7 ms", "820 ns"; "0 s". */
static inline void weir__text_format_time(char figure[WEIR_FORMAT_BYTES], double seconds)
{
    static const char *const units[] = { "s", "ms", "us", "ns" };
    size_t unit = 0;
    while (unit < 3 && seconds > 0 && seconds < 0.9995) {
        seconds *= 1000;
        unit++;
    }
    snprintf(figure, WEIR_FORMAT_BYTES, "%.*f %s", unit == 3 || seconds == 0 ? 0 : weir__format_decimals(seconds),
             seconds, units[unit]);
}

/* "12.3 s", "1:02:03" */
static inline void weir__text_format_duration(char figure[WEIR_FORMAT_BYTES], int64_t ns)
{
    int64_t seconds = ns / 1000000000;
    if (seconds < 100)
        snprintf(figure, WEIR_FORMAT_BYTES, "%.1f s", ns > 0 ? weir__seconds(ns) : 0);
    else
        snprintf(figure, WEIR_FORMAT_BYTES, "%lld:%02d:%02d", (long long)(seconds / 3600), (int)(seconds / 60 % 60),
                 (int)(seconds % 60));
}

/* "1.50 MB" */
static inline void weir__text_format_bytes(char figure[WEIR_FORMAT_BYTES], double bytes)
{
    static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
    size_t unit = 0;
    while (unit < 4 && bytes >= 999.5) {
        bytes /= 1000;
        unit++;
    }
    snprintf(figure, WEIR_FORMAT_BYTES, "%.*f %s", unit == 0 ? 0 : weir__format_decimals(bytes), bytes, units[unit]);
}

#endif
