#include "tools/picture/svg.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_columns.h"
#include "tools/cli/memory.h"
#include "tools/cli/table.h"

/* The width of a column, at 12 px: the mean of Latin text in common fonts is 6.2 px or less; 6.7 px for bold ones. */
static const double column_px = 6.7;

void svg_number(FILE *out, double number)
{
    char text[40];
    snprintf(text, sizeof text, "%.2f", number);
    size_t length = strlen(text);
    while (text[length - 1] == '0')
        length--;
    length -= text[length - 1] == '.';
    text[length] = '\0';
    fputs(strcmp(text, "-0") == 0 ? "0" : text, out);
}

void svg_escape(FILE *out, const char *text, size_t max_columns)
{
    static const char *const forbidden[] = { "\xef\xbf\xbe", "\xef\xbf\xbf" }; /* of all UTF-8 without controls */
    bool is_cut = weir__text_columns(text, strlen(text)) > max_columns;
    size_t length = is_cut ? weir__text_cut(text, max_columns > 1 ? max_columns - 1 : 0) : strlen(text);
    char *shown = memory_format("%.*s%s", (int)length, text, is_cut ? "…" : "");
    for (size_t i = 0; i < 2; i++)
        for (char *found; (found = strstr(shown, forbidden[i]));)
            memcpy(found, "???", 3);
    html_text(out, shown);
    free(shown);
}

double svg_text_width(const char *text)
{
    return column_px * (double)weir__text_columns(text, strlen(text));
}

size_t svg_columns(double width)
{
    return width > column_px ? (size_t)(width / column_px) : 1;
}

static void put_attribute(FILE *out, const char *name, double number)
{
    fprintf(out, " %s=\"", name);
    svg_number(out, number);
    fputc('"', out);
}

void svg_text(FILE *out, const char *class, double x, double y, const char *anchor, const char *text,
              size_t max_columns)
{
    fputs("<text", out);
    if (*class)
        fprintf(out, " class=\"%s\"", class);
    put_attribute(out, "x", x);
    put_attribute(out, "y", y);
    if (strcmp(anchor, "start") != 0)
        fprintf(out, " text-anchor=\"%s\"", anchor);
    fputc('>', out);
    svg_escape(out, text, max_columns);
    fputs("</text>\n", out);
}

void svg_title(FILE *out, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text = memory_format_list(format, values);
    va_end(values);
    fputs("<title>", out);
    svg_escape(out, text, SIZE_MAX);
    fputs("</title>", out);
    free(text);
}

void svg_line(FILE *out, const char *class, double x1, double y1, double x2, double y2)
{
    fprintf(out, "<line class=\"%s\"", class);
    put_attribute(out, "x1", x1);
    put_attribute(out, "y1", y1);
    put_attribute(out, "x2", x2);
    put_attribute(out, "y2", y2);
    fputs("/>\n", out);
}

void svg_rectangle(FILE *out, const char *class, double x, double y, double width, double height)
{
    fprintf(out, "<rect class=\"%s\"", class);
    put_attribute(out, "x", x);
    put_attribute(out, "y", y);
    put_attribute(out, "width", width);
    put_attribute(out, "height", height);
    fputc('>', out);
}

void svg_close_rectangle(FILE *out)
{
    fputs("</rect>\n", out);
}
