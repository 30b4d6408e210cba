#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 64, FIRST_ROW = 256 /* above what getopt gives as letters */ };

/* -- kinds */

static bool parse_flag(const option_row *row, const char *text, void *value)
{
    (void)row;
    (void)text;
    *(bool *)value = true;
    return true;
}

static bool parse_text(const option_row *row, const char *text, void *value)
{
    (void)row;
    *(const char **)value = text;
    return text[0] != '\0';
}

static bool parse_choice(const option_row *row, const char *text, void *value)
{
    for (int i = 0; row->choices[i]; i++)
        if (strcmp(row->choices[i], text) == 0) {
            *(int *)value = i;
            return true;
        }
    return false;
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

static bool parse_number(const option_row *row, const char *text, void *value)
{
    (void)row;
    uint64_t number;
    if (!option_parse_number(text, UINT64_C(1000000000000000), &number))
        return false;
    *(int64_t *)value = (int64_t)number;
    return true;
}

static bool parse_count(const option_row *row, const char *text, void *value)
{
    int64_t number;
    if (!parse_number(row, text, &number) || number < 1 || number > 1000000000)
        return false;
    *(int64_t *)value = number;
    return true;
}

static bool parse_real(const option_row *row, const char *text, void *value)
{
    (void)row;
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end || errno || !(number > 0) || !isfinite(number))
        return false;
    *(double *)value = number;
    return true;
}

bool option_parse_span(const char *text, double *seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };
    char *end;
    if (text[0] != '.' && (text[0] < '0' || text[0] > '9'))
        return false;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *seconds = number * units[i].seconds;
            return true;
        }
    return false;
}

static bool parse_span(const option_row *row, const char *text, void *value)
{
    (void)row;
    double seconds;
    if (!option_parse_span(text, &seconds) || !(seconds > 0))
        return false;
    *(double *)value = seconds;
    return true;
}

const option_kind option_flag = { parse_flag, "", NULL };
const option_kind option_text = { parse_text, "a text of one character or more", NULL };
const option_kind option_file = { parse_text, "the name of a file", "file" };
const option_kind option_folder = { parse_text, "the name of a folder", "folder" };
const option_kind option_choice = { parse_choice, NULL, NULL };
const option_kind option_count = { parse_count, "a whole number from 1 to 1000000000", NULL };
const option_kind option_number = { parse_number, "a whole number", NULL };
const option_kind option_real = { parse_real, "a number above 0", NULL };
const option_kind option_span = { parse_span, "a span of time, as 90, 250ms, 1.5h or 2d", NULL };

/* -- the command line */

/* getopt's view of the rows, and the way back from what it finds. */
typedef struct described {
    struct option options[2 * MAX_ROWS + 1];
    char letters[MAX_ROWS * 2 + 2];
    struct {
        const option_row *row;
        void *settings;
    } rows[MAX_ROWS];
    size_t num_rows;
} described;

static void describe_row(described *all, size_t *num_options, const option_row *row, void *settings)
{
    const char *const names[] = { row->name, row->alias };
    for (int i = 0; i < 2; i++)
        if (names[i])
            all->options[(*num_options)++] = (struct option){
                .name = names[i],
                .has_arg = row->argument ? required_argument : no_argument,
                .val = FIRST_ROW + (int)all->num_rows,
            };
    if (row->letter) {
        size_t length = strlen(all->letters);
        all->letters[length++] = row->letter;
        if (row->argument)
            all->letters[length] = ':';
    }
    all->rows[all->num_rows].row = row;
    all->rows[all->num_rows].settings = settings;
    all->num_rows++;
}

static void describe(described *all, const option_set *sets, size_t num_sets)
{
    size_t num_options = 0;
    all->letters[0] = ':'; /* we tell the errors, in one line */
    for (size_t i = 0; i < num_sets; i++)
        for (const option_row *row = sets[i].rows; row && row->name && all->num_rows < MAX_ROWS; row++)
            describe_row(all, &num_options, row, sets[i].settings);
}

static size_t row_found(const described *all, int found)
{
    if (found >= FIRST_ROW)
        return (size_t)(found - FIRST_ROW);
    size_t i = 0;
    while (i < all->num_rows - 1 && all->rows[i].row->letter != found)
        i++;
    return i;
}

static void list_choices(const option_row *row, char *to, size_t size)
{
    size_t length = 0;
    to[0] = '\0';
    for (int i = 0; row->choices[i] && length < size; i++) {
        const char *between = i == 0 ? "" : row->choices[i + 1] ? ", " : " or ";
        length += (size_t)snprintf(to + length, size - length, "%s%s", between, row->choices[i]);
    }
}

static bool take(const described *all, int found, char problem[256])
{
    size_t i = row_found(all, found);
    const option_row *row = all->rows[i].row;
    if (row->kind->parse(row, optarg, (char *)all->rows[i].settings + row->offset))
        return true;
    char choices[160];
    if (!row->kind->wanted)
        list_choices(row, choices, sizeof choices);
    snprintf(problem, 256, "--%s: \"%.60s\" is not %s", row->name, optarg,
             row->kind->wanted ? row->kind->wanted : choices);
    return false;
}

int options_parse(const option_set *sets, size_t num_sets, int argc, char **argv, char problem[256])
{
    described all = { .num_rows = 0 };
    describe(&all, sets, num_sets);
    opterr = 0;
    optind = 1;
    int found;
    while ((found = getopt_long(argc, argv, all.letters, all.options, NULL)) != -1) {
        if (found != ':' && found != '?') {
            if (!take(&all, found, problem))
                return -1;
            continue;
        }
        const char *what = found == ':' ? "a value is missing" : "no such option (see --help)";
        if (found == '?' && optopt > 0 && optopt < FIRST_ROW)
            snprintf(problem, 256, "-%c: %s", optopt, what);
        else
            snprintf(problem, 256, "%.100s: %s", argv[optind - 1],
                     optopt >= FIRST_ROW && found == '?' ? "takes no value" : what);
        return -1;
    }
    return argc - optind;
}
