/* The text that a program prints for a person. */
#ifndef TOOLS_CLI_PROSE_H
#define TOOLS_CLI_PROSE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include <weir/status.h>

/* What is written to `file` goes to stdout; on a terminal, long lines are broken. */
typedef struct prose {
    FILE *file;
    char *text; /* on a terminal; NULL = file is stdout */
    size_t size;
    size_t width; /* of the terminal; 0 = lines can have any length */
} prose;

/* Then call prose_end() in any case. */
void prose_open(prose *p);

/* Closes it. Returns status, or WEIR_EIO: not all was printed. */
int prose_end(prose *p, int status, weir_error *error);

/* Breaks the lines that are longer than width. */
void prose_put_lines(FILE *out, const char *text, size_t width);

/* A formatted line. Names in it cannot break it: their control characters are escaped. */
void prose_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The words of the command line, which messages quote: what is an address in them is hidden or shown as a whole. Kept. */
void prose_set_words(char *const *words, int num_words);

/* "PROGRAM: ..." as such a line on stderr, without the secrets of URLs. */
void prose_say(const char *program, const char *format, va_list values) __attribute__((format(printf, 2, 0)));

#endif
