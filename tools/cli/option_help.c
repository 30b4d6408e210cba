#include "option_help.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 80, HELP_COLUMN = 30 };

/* Terminal columns of `length` bytes of UTF-8: all but continuation bytes. */
static size_t columns_of(const char *text, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)text[i] & 0xC0) != 0x80;
    return columns;
}

/* Prints words from `text` up to `end`, each line indented; the first one starts at column `at`. */
static void fill(const char *text, const char *end, size_t indent, size_t at)
{
    bool first = true;
    while (text < end) {
        size_t length = strcspn(text, " \n");
        if (length > (size_t)(end - text))
            length = (size_t)(end - text);
        size_t columns = columns_of(text, length);
        if (!first && at + 1 + columns > WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (!first && length) {
            putchar(' ');
            at++;
        }
        fwrite(text, 1, length, stdout);
        at += columns;
        first = false;
        text += length;
        text += strspn(text, " \n");
    }
    putchar('\n');
}

void help_print_line(const char *text)
{
    fill(text, text + strlen(text), 0, 0);
}

void help_print_paragraphs(const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        const char *next = end ? end + 2 : text + strlen(text);
        end = end ? end : next;
        if (*text == ' ')
            printf("%.*s\n", (int)(end - text), text);
        else
            fill(text, end, 0, 0);
        putchar('\n');
        text = next;
    }
}

static void print_row(const option_row *row)
{
    char left[128];
    size_t length = 0;
    if (row->letter)
        length += (size_t)snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name);
    else
        length += (size_t)snprintf(left, sizeof left, "  --%s", row->name);
    if (row->alias)
        length += (size_t)snprintf(left + length, sizeof left - length, ", --%s", row->alias);
    if (row->argument)
        length += (size_t)snprintf(left + length, sizeof left - length, " %s", row->argument);
    fputs(left, stdout);
    if (length + 2 > HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", (int)(HELP_COLUMN - length), "");
    fill(row->help, row->help + strlen(row->help), HELP_COLUMN, HELP_COLUMN);
}

void options_print(const option_set *sets, size_t num_sets)
{
    for (size_t i = 0; i < num_sets; i++)
        for (const option_row *row = sets[i].rows; row && row->name; row++)
            print_row(row);
}
