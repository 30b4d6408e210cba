#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_ROWS = 64, FIRST_ROW = 256 /* above what getopt gives as letters */ };

/* -- kinds */

static bool parse_flag(const char *text, void *value)
{
    (void)text;
    *(bool *)value = true;
    return true;
}

static bool parse_text(const char *text, void *value)
{
    *(const char **)value = text;
    return text[0] != '\0';
}

bool option_parse_number(const char *text, uint64_t max, uint64_t *value)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *value <= max;
}

static bool parse_count(const char *text, void *value)
{
    uint64_t number;
    if (!option_parse_number(text, 65535, &number) || number == 0)
        return false;
    *(uint32_t *)value = (uint32_t)number;
    return true;
}

static bool parse_seconds(const char *text, void *value)
{
    char *end;
    errno = 0;
    double duration_s = strtod(text, &end);
    if (end == text || *end != '\0' || errno || !(duration_s >= 0.001 && duration_s <= 1e6))
        return false;
    *(int64_t *)value = llround(duration_s * 1e9);
    return true;
}

const option_kind option_flag = { parse_flag, "" };
const option_kind option_text = { parse_text, "a text that is not empty" };
const option_kind option_count = { parse_count, "a whole number from 1 to 65535" };
const option_kind option_seconds = { parse_seconds, "a number of seconds from 0.001 to 1000000" };

/* -- the command line */

static int take(const char *program, const option_row *row, void *settings)
{
    if (row->kind->parse(optarg, (char *)settings + row->offset))
        return 0;
    fprintf(stderr, "%s: --%s: \"%s\" is not %s\n", program, row->name, optarg, row->kind->wanted);
    return -1;
}

static void describe(const option_row *rows, size_t num_rows, struct option *described)
{
    for (size_t i = 0; i < num_rows; i++)
        described[i] = (struct option){
            .name = rows[i].name,
            .has_arg = rows[i].argument ? required_argument : no_argument,
            .val = FIRST_ROW + (int)i,
        };
}

int options_parse(const char *program, const option_row *rows, size_t num_rows, void *settings, int argc, char **argv)
{
    struct option described[MAX_ROWS + 1] = { 0 };
    describe(rows, num_rows < MAX_ROWS ? num_rows : MAX_ROWS, described);

    opterr = 0; /* we tell the errors, in one line */
    int found;
    while ((found = getopt_long(argc, argv, ":", described, NULL)) != -1) {
        if (found >= FIRST_ROW) {
            if (take(program, &rows[found - FIRST_ROW], settings) != 0)
                return -1;
            continue;
        }
        const char *what = found == ':' ? "a value is missing" : "no such option (see --help)";
        fprintf(stderr, "%s: %s: %s\n", program, argv[optind - 1], what);
        return -1;
    }
    return argc - optind;
}

void options_print(const option_row *rows, size_t num_rows)
{
    for (size_t i = 0; i < num_rows; i++) {
        char name[48];
        snprintf(name, sizeof name, "--%s %s", rows[i].name, rows[i].argument ? rows[i].argument : "");
        printf("  %-24s  %s\n", name, rows[i].help);
    }
}
