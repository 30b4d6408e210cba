/* Properties of standard output: its width, its characters, and whether it shows colours. */
#ifndef TOOLS_CLI_TTY_H
#define TOOLS_CLI_TTY_H

#include <stdbool.h>

#include "common/format.h"

/* Columns of the terminal, or of COLUMNS; 0 = not a terminal, lines can have any length. */
int tty_width(void);

/* For a screen that knows how wide it is: from now on that is the width (0 = as above). */
void tty_set_width(int columns);

/* A terminal, and neither NO_COLOR nor TERM=dumb is set. */
bool tty_has_colours(void);

/* Whether the locale has UTF-8; otherwise what is printed is ASCII. */
bool tty_has_utf8(void);

/* As weir__text_format_time(), with "µs" where the locale has it. */
void tty_format_time(char figure[WEIR_FORMAT_BYTES], double seconds);

#endif
