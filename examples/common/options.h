/*
 * Command lines from a table: one row for each option says its name, what its value has to be, where the value goes and
 * what the help says of it.
 *
 *     static const option_row rows[] = {
 *         { "threads", "N", &option_count, offsetof(struct settings, threads), "threads to use (default 4)" },
 *         { "quiet", NULL, &option_flag, offsetof(struct settings, quiet), "say nothing" },
 *     };
 */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct option_kind {
    bool (*parse)(const char *text, void *value); /* sets *value and returns true, or returns false */
    const char *wanted;                           /* what a value has to be, for the error: "a whole number" */
} option_kind;

typedef struct option_row {
    const char *name;     /* without the two dashes */
    const char *argument; /* what the help calls its value, NULL = it takes none */
    const option_kind *kind;
    size_t offset; /* of the value in the program's settings */
    const char *help;
} option_row;

extern const option_kind option_flag;    /* bool: there or not */
extern const option_kind option_text;    /* const char *, not empty */
extern const option_kind option_count;   /* uint32_t, from 1 to 65535 */
extern const option_kind option_seconds; /* int64_t, nanoseconds; given in seconds, fractions allowed */

/* Whole numbers from 0 to max: digits only, no sign, no space, nothing behind them. For kinds of a program's own. */
bool option_parse_number(const char *text, uint64_t max, uint64_t *value);

/*
 * Reads the command line into *settings. Returns how many arguments that are no options are left, at the end of argv;
 * or -1, and one line on stderr has said what is wrong. program is the name that the line begins with.
 */
int options_parse(const char *program, const option_row *rows, size_t num_rows, void *settings, int argc,
                  char **argv);

/* Prints a line for each row to stdout. */
void options_print(const option_row *rows, size_t num_rows);

#endif
