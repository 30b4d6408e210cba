/* The reading of command lines. */
#include "bench_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bench_read_text(const char *text, void *to)
{
    *(const char **)to = text;
    return true;
}

/* Reads a number from `lowest` up and tells where it ends; NULL = there is none. */
static const char *read_number(const char *text, uint32_t lowest, uint32_t *number)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)*text))
        return NULL;
    unsigned long value = strtoul(text, &end, 10);
    if (value < lowest || value > UINT32_MAX || errno)
        return NULL;
    *number = (uint32_t)value;
    return end;
}

bool bench_read_count(const char *text, void *to)
{
    const char *end = read_number(text, 1, to);
    return end && !*end;
}

static bool read_numbers(const char *text, uint32_t lowest, bench_list *list)
{
    list->num_values = 0;
    while (list->num_values < BENCH_MAX_LIST) {
        text = read_number(text, lowest, &list->values[list->num_values]);
        if (!text)
            return false;
        list->num_values++;
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
    return false;
}

bool bench_read_list(const char *text, void *to)
{
    return read_numbers(text, 1, to);
}

bool bench_read_numbers(const char *text, void *to)
{
    return read_numbers(text, 0, to);
}

static void show_help(const bench_option *options, const char *usage)
{
    printf("usage: weir-bench %s\n\n", usage);
    for (const bench_option *option = options; option->name; option++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", option->name, option->value_name ? option->value_name : "");
        printf("  %-24s%s\n", left, option->help);
    }
}

static const bench_option *find_option(const bench_option *options, const char *name, size_t name_bytes)
{
    for (const bench_option *option = options; option->name; option++) {
        if (strlen(option->name) == name_bytes && memcmp(option->name, name, name_bytes) == 0)
            return option;
    }
    return NULL;
}

/* Reads the option at argv[*i] and moves on to its last word. */
static bool parse_one(int argc, char **argv, int *i, const bench_option *options)
{
    const char *word = argv[*i];
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    size_t name_bytes = equals ? (size_t)(equals - name) : strlen(name);
    const bench_option *option = strncmp(word, "--", 2) == 0 ? find_option(options, name, name_bytes) : NULL;
    if (!option || (equals && !option->value_name)) {
        fprintf(stderr, "weir-bench: unknown option: %s\n", word);
        return false;
    }
    if (!option->value_name) {
        *(bool *)option->to = true;
        return true;
    }
    const char *value = equals ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
    if (!value || !option->read(value, option->to)) {
        fprintf(stderr, "weir-bench: --%s wants %s, not %s\n", option->name, option->value_name,
                value ? value : "nothing");
        return false;
    }
    return true;
}

bench_parsed bench_parse(int argc, char **argv, const bench_option *options, const char *usage)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            show_help(options, usage);
            return BENCH_HELP_SHOWN;
        }
        if (!parse_one(argc, argv, &i, options))
            return BENCH_USAGE_ERROR;
    }
    return BENCH_RUN;
}
