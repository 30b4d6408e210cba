#include "common/text_fill.h"

#include <stdbool.h>
#include <string.h>

/* Whether the word before `text` and the one behind it are a figure: "24.5 ms". */
static bool is_before_unit(const char *start, const char *text)
{
    static const char *const units[] = { "%", "s", "ms", "us", "µs", "ns", "bytes", "kB", "MB", "GB", "TB" };
    size_t length = *text == ' ' ? strcspn(text + 1, " ,;:.)/\n") : 0;
    if (text == start || (text[-1] < '0' || text[-1] > '9'))
        return length == 1 && text[1] == '%';
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (length == strlen(units[i]) && memcmp(text + 1, units[i], length) == 0)
            return true;
    return false;
}

static size_t word_length(const char *text, const char *end)
{
    size_t length = strcspn(text, " \n");
    if (is_before_unit(text, text + length))
        length += 1 + strcspn(text + length + 1, " \n");
    return length < (size_t)(end - text) ? length : (size_t)(end - text);
}

void weir__text_fill(FILE *out, const char *text, const char *end, size_t indent, size_t at, size_t width)
{
    bool first = true;
    while (text < end) {
        size_t length = word_length(text, end), columns = weir__text_columns(text, length);
        if (!first && at + 1 + columns > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first && length) {
            fputc(' ', out);
            at++;
        }
        fwrite(text, 1, length, out);
        at += columns;
        first = false;
        text += length;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}
