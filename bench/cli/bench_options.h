/* Command lines of the benches: a table of options, each with how its value is read and where it goes. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_MAX_LIST = 16 };

/* "1,2,4,10"; num_values 0 = not given */
typedef struct bench_list {
    uint32_t values[BENCH_MAX_LIST];
    size_t num_values;
} bench_list;

typedef struct bench_option {
    const char *name;                         /* without its dashes */
    const char *value_name;                   /* for the help; NULL = a switch, whose `to` is a bool */
    bool (*read)(const char *text, void *to); /* false = not a value of this kind */
    void *to;
    const char *help;
} bench_option;

bool bench_read_text(const char *text, void *to);    /* const char ** */
bool bench_read_count(const char *text, void *to);   /* uint32_t *, at least 1 */
bool bench_read_list(const char *text, void *to);    /* bench_list *, of counts */
bool bench_read_numbers(const char *text, void *to); /* bench_list *, of numbers, 0 among them */

/* The option that every bench has: where its rows go. `to` is a const char **. */
#define BENCH_JSON_OPTION(path) \
    { \
        "json", "FILE", bench_read_text, (path), "also write the figures to this file" \
    }

typedef enum bench_parsed { BENCH_RUN, BENCH_HELP_SHOWN, BENCH_USAGE_ERROR } bench_parsed;

/* Takes "--name value" and "--name=value"; the table ends with a NULL name. `usage` is the help's first line. Mistakes
   are told on stderr. */
bench_parsed bench_parse(int argc, char **argv, const bench_option *options, const char *usage);

#endif
