#include "format.h"

/* How many decimals make three digits. */
static int decimals_of(double figure)
{
    return figure < 9.995 ? 2 : figure < 99.95 ? 1 : 0;
}

void weir_text_format_time(char figure[WEIR_FORMAT_BYTES], double seconds)
{
    static const char *const units[] = { "s", "ms", "us", "ns" };
    size_t unit = 0;
    while (unit < 3 && seconds > 0 && seconds < 0.9995) {
        seconds *= 1000;
        unit++;
    }
    snprintf(figure, WEIR_FORMAT_BYTES, "%.*f %s", unit == 3 || seconds == 0 ? 0 : decimals_of(seconds), seconds,
             units[unit]);
}

void weir_text_format_bytes(char figure[WEIR_FORMAT_BYTES], double bytes)
{
    static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
    size_t unit = 0;
    while (unit < 4 && bytes >= 999.5) {
        bytes /= 1000;
        unit++;
    }
    snprintf(figure, WEIR_FORMAT_BYTES, "%.*f %s", unit == 0 ? 0 : decimals_of(bytes), bytes, units[unit]);
}
