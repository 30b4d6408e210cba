/* The help text of options, filled to a width of 80 columns, on stdout. */
#ifndef TOOLS_CLI_OPTION_HELP_H
#define TOOLS_CLI_OPTION_HELP_H

#include <stddef.h>

#include "tools/cli/options.h"

/* Prints paragraphs, which are separated by empty lines. One that begins with a space is printed as it is. */
void help_print_paragraphs(const char *text);

/* Prints one paragraph. */
void help_print_line(const char *text);

/* Prints "term   text", with the text from that column on; below the term if that is too long. */
void help_print_term(const char *term, size_t column, const char *text);

/* Prints a line or more for each option, and the headings of their groups; the first is "Options". */
void options_print(const option_set *sets, size_t num_sets);

#endif
