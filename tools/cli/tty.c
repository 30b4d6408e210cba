#include "tools/cli/tty.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST_WIDTH = 40 };

static int width_of_screen;

void tty_set_width(int columns)
{
    width_of_screen = columns;
}

int tty_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize window = { 0 };
    int width = width_of_screen ? width_of_screen : columns ? atoi(columns) : 0;
    if (width <= 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
        width = window.ws_col;
    return width <= 0 ? 0 : width < LEAST_WIDTH ? LEAST_WIDTH : width;
}

bool tty_has_colours(void)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

bool tty_has_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *locale = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !(locale && *locale); i++)
        locale = getenv(names[i]);
    return locale && (strstr(locale, "UTF-8") || strstr(locale, "utf8") || strstr(locale, "UTF8"));
}

void tty_format_time(char figure[WEIR_FORMAT_BYTES], double seconds)
{
    weir__text_format_time(figure, seconds);
    char *unit = strstr(figure, "us");
    if (unit && tty_has_utf8())
        strcpy(unit, "µs");
}
