/* Text for a person, broken into lines at spaces. Internal; compiled into each library that uses it. */
#ifndef COMMON_TEXT_FILL_H
#define COMMON_TEXT_FILL_H

#include <stddef.h>
#include <stdio.h>

#include "common/text_columns.h"

/*
 * Writes the words up to `end`; a number and its unit stay together. The first line starts at column `at`, all others are
 * indented. Ends with a newline. The text must be harmless (text_escape.h).
 */
void weir__text_fill(FILE *out, const char *text, const char *end, size_t indent, size_t at, size_t width);

#endif
