#include "tools/cli/option_help.h"

#include <stdio.h>
#include <string.h>

#include "common/text_fill.h"
#include "tools/cli/tty.h"

enum { MAX_WIDTH = 80, HELP_COLUMN = 30 };

static size_t help_width(void)
{
    int width = tty_width();
    return width && width < MAX_WIDTH ? (size_t)width : MAX_WIDTH;
}

void help_print_line(const char *text)
{
    weir__text_fill(stdout, text, text + strlen(text), 0, 0, help_width());
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
            weir__text_fill(stdout, text, end, 0, 0, help_width());
        putchar('\n');
        text = next;
    }
}

void help_print_term(const char *term, size_t column, const char *text)
{
    size_t length = strlen(term);
    fputs(term, stdout);
    if (length + 2 > column)
        printf("\n%*s", (int)column, "");
    else
        printf("%*s", (int)(column - length), "");
    weir__text_fill(stdout, text, text + strlen(text), column, column, help_width());
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
        snprintf(left + length, sizeof left - length, " %s", row->argument);
    help_print_term(left, HELP_COLUMN, row->help);
}

void options_print(const option_set *sets, size_t num_sets)
{
    const char *before = "";
    for (size_t i = 0; i < num_sets; i++)
        for (const option_row *row = sets[i].rows; row && row->name; row++, before = "\n") {
            if (row->heading || !*before)
                printf("%s%s:\n", before, row->heading ? row->heading : "Options");
            print_row(row);
        }
}
