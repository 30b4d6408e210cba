/*
 * Command lines from tables: one row for each option says its name, what its value must be, where the value goes, and
 * its help text. Rows come in sets, each with the struct that its values go to. All programs read their options here.
 *
 *     static struct settings { int64_t top; bool reverse; } settings = { .top = 10 };
 *     static const option_row rows[] = {
 *         { .name = "top", .argument = "N", .kind = &option_count, .offset = offsetof(struct settings, top),
 *           .help = "print at most N rows (default 10)" },
 *         { .name = "reverse", .kind = &option_flag, .offset = offsetof(struct settings, reverse),
 *           .help = "reverse the order" },
 *         { 0 },
 *     };
 */
#ifndef TOOLS_CLI_OPTIONS_H
#define TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct option_row;

typedef struct option_kind {
    bool (*parse)(const char *text, void *value); /* sets *value, or returns false */
    const char *wanted;   /* what a value must be, for the error: "a number above 0"; NULL = see option_row */
    const char *complete; /* for the shell: "file", "folder", or NULL = the row's choices, if it has any */
    bool (*parse_row)(const struct option_row *row, const char *text, void *value); /* instead of parse */
} option_kind;

typedef struct option_row {
    const char *name;     /* without the two dashes */
    const char *alias;    /* another name for the same option, NULL = none */
    char letter;          /* short form, 0 = none */
    const char *argument; /* the value's name in the help, NULL = takes no value */
    const option_kind *kind;
    size_t offset;              /* of the value in the settings */
    const char *const *choices; /* for option_choice: the words, NULL at the end */
    uint64_t max;               /* the largest value of a number (0 = 10^9) */
    const char *needs;          /* names of options: without one of them this one has no effect; NULL = none */
    const char *excludes;       /* the options that contradict it, separated by spaces; NULL = none */
    const char *
        unclear; /* refuses an abbreviation of this option, the last of several or alone, with this text; NULL = not */
    const char *help;    /* one sentence, lower case, no full stop */
    const char *heading; /* of the group that begins here, in the help; NULL = the group goes on */
} option_row;

extern const option_kind option_flag;     /* bool: present or not */
extern const option_kind option_text;     /* const char *, not empty */
extern const option_kind option_file;     /* the same; the shell completes files … */
extern const option_kind option_folder;   /* … and folders */
extern const option_kind option_choice;   /* int: index into the row's choices; also any enum of int's size */
extern const option_kind option_count;    /* int64_t, from 1 to the row's max */
extern const option_kind option_count32;  /* uint32_t, from 1 to the row's max */
extern const option_kind option_count8;   /* uint8_t, the same; max is at most 255 */
extern const option_kind option_number;   /* int64_t, from 0 to the row's max (0 = 10^15) */
extern const option_kind option_real;     /* double, above 0 */
extern const option_kind option_share;    /* double, above 0 to 1: "40%" */
extern const option_kind option_bytes;    /* uint64_t, above 0: "4096", "512k", "64M", "2G", in powers of 1024 */
extern const option_kind option_span;     /* double, seconds, above 0 */
extern const option_kind option_duration; /* int64_t, nanoseconds, from 1 ms to 10^6 s; written like option_span */

#define OPTION_MAX_SECONDS 9e9 /* in nanoseconds, more does not fit into int64_t */

/* "5", "1.5h", "90s", "250ms", "2d": seconds, 0 or more. For other kinds to use. */
bool option_parse_span(const char *text, double *seconds);

/* Digits only: no sign, no space, nothing after them. For other kinds to use. */
bool option_parse_number(const char *text, uint64_t max, uint64_t *value);

typedef struct option_set {
    const option_row *rows; /* ends with a row without a name */
    void *settings;
} option_set;

enum { OPTION_PROBLEM_BYTES = 256 };

/*
 * Reads the command line; argv[0] is skipped. Options and words may come in any order, "--" ends the options. An
 * option may be shortened as long as it is unambiguous. If one is given twice, the last value counts. Options that
 * need or exclude others are checked. Returns the number of words, which are then at the end of argv; or -1 with
 * *problem set.
 */
int options_parse(const option_set *sets, size_t num_sets, int argc, char **argv, char problem[OPTION_PROBLEM_BYTES]);

/* Prints a word of a command line, in quotes if the shell needs them. */
void option_print_word(FILE *to, const char *word);

/* The most similar of `count` words (NULL entries are skipped), for "did you mean"; NULL = none is similar. */
const char *option_most_similar(const char *text, const char *const *words, size_t count);

#endif
