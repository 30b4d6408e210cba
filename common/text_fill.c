#include "text_fill.h"

#include <stdbool.h>
#include <string.h>

size_t weir__text_columns(const char *text, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)text[i] & 0xC0) != 0x80;
    return columns;
}

static size_t word_length(const char *text, const char *end)
{
    size_t length = strcspn(text, " \n");
    if (strncmp(text + length, " %", 2) == 0)
        length += 2 + strcspn(text + length + 2, " \n");
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
