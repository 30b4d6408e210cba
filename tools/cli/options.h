/*
 * Command lines from tables: one row for each option says its name, what its value has to be, where the value goes and
 * what the help says of it. Rows come in sets, each with the struct that its values go to.
 *
 *     static struct settings { int64_t top; bool reverse; } settings = { .top = 10 };
 *     static const option_row rows[] = {
 *         { .name = "top", .argument = "N", .kind = &option_count, .offset = offsetof(struct settings, top),
 *           .help = "at most so many rows (default 10)" },
 *         { .name = "reverse", .kind = &option_flag, .offset = offsetof(struct settings, reverse),
 *           .help = "the other way round" },
 *         { 0 },
 *     };
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option_row;

typedef struct option_kind {
    bool (*parse)(const struct option_row *row, const char *text, void *value); /* sets *value, or returns false */
    const char *wanted; /* what a value has to be, for the error: "a whole number"; NULL = one of the row's choices */
    const char *complete; /* for the shell: "file", "folder", or NULL = the row's choices, if it has any */
} option_kind;

typedef struct option_row {
    const char *name;     /* without the two dashes */
    const char *alias;    /* another name for the same, NULL = none */
    char letter;          /* short form, 0 = none */
    const char *argument; /* what the help calls its value, NULL = it takes none */
    const option_kind *kind;
    size_t offset;              /* of the value in the settings */
    const char *const *choices; /* for option_choice: the words, NULL at the end */
    const char *help;           /* one sentence, lower case, no full stop */
} option_row;

extern const option_kind option_flag;   /* bool: there or not */
extern const option_kind option_text;   /* const char *, not empty */
extern const option_kind option_file;   /* the same; the shell completes files … */
extern const option_kind option_folder; /* … and folders */
extern const option_kind option_choice; /* int: which of the row's choices */
extern const option_kind option_count;  /* int64_t, from 1 to 10^9 */
extern const option_kind option_number; /* int64_t, from 0 to 10^15 */
extern const option_kind option_real;   /* double, above 0 */

/* "5", "1.5h", "90s", "250ms", "2d": seconds, above 0. For kinds of one's own. */
bool option_parse_span(const char *text, double *seconds);
extern const option_kind option_span; /* double, seconds */

/* Digits only, no sign, no space, nothing behind them. For kinds of one's own. */
bool option_parse_number(const char *text, uint64_t max, uint64_t *value);

typedef struct option_set {
    const option_row *rows; /* ends with a row without a name */
    void *settings;
} option_set;

/*
 * Reads the command line; argv[0] is skipped. Options and words may come in any order, "--" ends the options. Returns
 * how many words are left, at the end of argv; or -1, and *problem says what is wrong.
 */
int options_parse(const option_set *sets, size_t num_sets, int argc, char **argv, char problem[256]);

#endif
