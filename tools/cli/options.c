#include "tools/cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/similar_word.h"
#include "tools/cli/memory.h"

static const uint64_t default_max = 1000000000;

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

static uint64_t max_of(const option_row *row)
{
    return row->max ? row->max : row->kind == &option_number ? UINT64_C(1000000000000000) : default_max;
}

static bool parse_number(const option_row *row, const char *text, void *value)
{
    uint64_t number;
    if (!option_parse_number(text, max_of(row), &number))
        return false;
    *(int64_t *)value = (int64_t)number;
    return true;
}

static bool parse_count(const option_row *row, const char *text, void *value)
{
    uint64_t number;
    if (!option_parse_number(text, max_of(row), &number) || number == 0)
        return false;
    *(int64_t *)value = (int64_t)number;
    return true;
}

static bool parse_count32(const option_row *row, const char *text, void *value)
{
    int64_t number;
    if (!parse_count(row, text, &number))
        return false;
    *(uint32_t *)value = (uint32_t)number;
    return true;
}

static bool parse_count8(const option_row *row, const char *text, void *value)
{
    int64_t number;
    if (!parse_count(row, text, &number))
        return false;
    *(uint8_t *)value = (uint8_t)number;
    return true;
}

static bool parse_real(const char *text, void *value)
{
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end || errno || !(number > 0) || !isfinite(number))
        return false;
    *(double *)value = number;
    return true;
}

static bool parse_share(const char *text, void *value)
{
    char *end;
    double percent = strtod(text, &end);
    *(double *)value = percent / 100;
    return strcmp(end, "%") == 0 && percent > 0 && percent <= 100;
}

static bool parse_bytes(const char *text, void *value)
{
    static const char units[] = "kMGT";
    char digits[24];
    uint64_t number;
    size_t length = strspn(text, "0123456789");
    const char *unit = text[length] ? strchr(units, text[length]) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (length >= sizeof digits || (text[length] && (!unit || text[length + 1])))
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    if (!option_parse_number(digits, (uint64_t)INT64_MAX >> shift, &number) || number == 0)
        return false;
    *(uint64_t *)value = number << shift;
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
            return *seconds < OPTION_MAX_SECONDS;
        }
    return false;
}

static bool parse_span(const char *text, void *value)
{
    double seconds;
    if (!option_parse_span(text, &seconds) || !(seconds > 0))
        return false;
    *(double *)value = seconds;
    return true;
}

static bool parse_duration(const char *text, void *value)
{
    double seconds;
    if (!parse_span(text, &seconds) || seconds < 0.001 || seconds > 1e6)
        return false;
    *(int64_t *)value = llround(seconds * 1e9);
    return true;
}

const option_kind option_flag = { .parse = parse_flag, .wanted = "" };
const option_kind option_text = { .parse = parse_text, .wanted = "a non-empty text" };
const option_kind option_file = { .parse = parse_text, .wanted = "a file name", .complete = "file" };
const option_kind option_folder = { .parse = parse_text, .wanted = "a folder name", .complete = "folder" };
const option_kind option_choice = { .parse_row = parse_choice };
const option_kind option_count = { .parse_row = parse_count };
const option_kind option_count32 = { .parse_row = parse_count32 };
const option_kind option_count8 = { .parse_row = parse_count8 };
const option_kind option_number = { .parse_row = parse_number };
const option_kind option_real = { .parse = parse_real, .wanted = "a number above 0" };
const option_kind option_share = { .parse = parse_share, .wanted = "a percentage, such as 40%" };
const option_kind option_bytes = { .parse = parse_bytes,
                                   .wanted = "a number of bytes, such as 4096, 512k, 64M or 2G" };
const option_kind option_span = { .parse = parse_span, .wanted = "a time span, such as 90, 250ms, 1.5h or 2d" };
const option_kind option_duration = {
    .parse = parse_duration,
    .wanted = "a number of seconds from 0.001 to 1000000, or a time span such as 250ms, 5m or 2h"
};

/* -- the command line */

/* An option that was found. */
typedef struct option_found {
    const option_row *row; /* NULL = none */
    void *settings;
} option_found;

typedef struct reader {
    const option_set *sets;
    size_t num_sets;
    char **argv;
    int argc, at; /* the word that is read */
    const option_row **given;
    size_t num_given;
    char *problem;
} reader;

static bool refuse(const reader *r, const char *option, const char *what)
{
    snprintf(r->problem, OPTION_PROBLEM_BYTES, "%.100s: %s", option, what);
    return false;
}

static bool matches(const char *name, const char *text, size_t length, bool is_exact)
{
    return name && strncmp(name, text, length) == 0 && (!is_exact || name[length] == '\0');
}

/* Counts the rows that match the name, or the letter if text is NULL; *found is the last of them. */
static size_t find(const reader *r, const char *text, size_t length, bool is_exact, char letter, option_found *found)
{
    size_t count = 0;
    for (size_t i = 0; i < r->num_sets; i++)
        for (const option_row *row = r->sets[i].rows; row && row->name; row++)
            if (text ? matches(row->name, text, length, is_exact) || matches(row->alias, text, length, is_exact)
                     : row->letter == letter) {
                *found = (option_found){ row, r->sets[i].settings };
                count++;
            }
    return count;
}

const char *option_most_similar(const char *text, const char *const *words, size_t count)
{
    return weir__most_similar(text, words, count);
}

/* Refuses what has a similar long option; false = none is similar. */
static bool suggests(const reader *r, const char *dashes, const char *text, size_t length)
{
    enum { MAX_NAMES = 256 };
    const char *names[MAX_NAMES];
    size_t num_names = 0;
    char name[MAX_SIMILAR_BYTES + 2];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    for (size_t i = 0; i < r->num_sets; i++)
        for (const option_row *row = r->sets[i].rows; row && row->name && num_names + 2 <= MAX_NAMES; row++) {
            names[num_names++] = row->name;
            names[num_names++] = row->alias;
        }
    const char *similar = weir__most_similar(name, names, num_names);
    if (similar)
        snprintf(r->problem, OPTION_PROBLEM_BYTES, "%s%s: no such option; did you mean --%s? (see --help)", dashes,
                 name, similar);
    return similar;
}

static bool refuse_unknown(const reader *r, const char *text, size_t length, bool is_ambiguous)
{
    if (is_ambiguous || !suggests(r, "--", text, length))
        snprintf(r->problem, OPTION_PROBLEM_BYTES, "--%.*s: %s (see --help)", (int)length, text,
                 is_ambiguous ? "ambiguous: several options start like this" : "no such option");
    return false;
}

/* An exact name, or the only one with this prefix. */
static bool find_long(const reader *r, const char *text, size_t length, option_found *found)
{
    if (find(r, text, length, true, 0, found) > 0)
        return true;
    size_t count = length ? find(r, text, length, false, 0, found) : 0;
    if (count > 0 && found->row->unclear)
        return refuse(r, r->argv[r->at], found->row->unclear);
    return count == 1 || refuse_unknown(r, text, length, count > 1);
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

static bool is_given(const reader *r, const char *name, size_t length)
{
    for (size_t i = 0; i < r->num_given; i++)
        if (matches(r->given[i]->name, name, length, true))
            return true;
    return false;
}

static bool parse_value(reader *r, const option_found *found, const char *text)
{
    const option_row *row = found->row;
    if (!is_given(r, row->name, strlen(row->name))) {
        r->given = memory_grow(r->given, r->num_given, sizeof *r->given);
        r->given[r->num_given++] = row;
    }
    void *value = (char *)found->settings + row->offset;
    if (row->kind->parse ? row->kind->parse(text, value) : row->kind->parse_row(row, text, value))
        return true;
    char wanted[160];
    if (row->kind->wanted)
        snprintf(wanted, sizeof wanted, "%s", row->kind->wanted);
    else if (row->choices)
        list_choices(row, wanted, sizeof wanted);
    else
        snprintf(wanted, sizeof wanted, "a whole number from %d to %llu", row->kind != &option_number,
                 (unsigned long long)max_of(row));
    snprintf(r->problem, OPTION_PROBLEM_BYTES, "--%s: \"%.60s\" is not %s", row->name, text, wanted);
    return false;
}

/* `option` is as the user wrote it; value NULL: the next word. */
static bool take_value(reader *r, const option_found *found, const char *option, const char *value)
{
    if (!found->row->argument)
        return value ? refuse(r, option, "takes no value") : parse_value(r, found, "");
    if (!value && r->at + 1 >= r->argc)
        return refuse(r, option, "a value is missing");
    return parse_value(r, found, value ? value : r->argv[++r->at]);
}

/* "--name", "--name=value" or "--name value" */
static bool take_long(reader *r)
{
    const char *option = r->argv[r->at];
    size_t length = strcspn(option + 2, "=");
    option_found found = { 0 };
    return find_long(r, option + 2, length, &found) &&
           take_value(r, &found, option, option[2 + length] ? option + 3 + length : NULL);
}

/* "-q", "-o value" or "-ovalue"; several letters without values may share a dash. "-run" was meant as "--run". */
static bool take_letters(reader *r)
{
    const char *letters = r->argv[r->at] + 1;
    for (const char *letter = letters; *letter; letter++) {
        char option[] = { '-', *letter, '\0' };
        option_found found = { 0 };
        if (!find(r, NULL, 0, true, *letter, &found))
            return !suggests(r, "-", letters, strcspn(letters, "=")) &&
                   refuse(r, option, "no such option (see --help)");
        if (found.row->argument)
            return take_value(r, &found, option, letter[1] ? letter + 1 : NULL);
        if (!parse_value(r, &found, ""))
            return false;
    }
    return true;
}

/* Is one of these options given? Otherwise tells that. */
static bool has_needed(const reader *r, const option_row *row)
{
    char names[128] = "";
    for (const char *name = row->needs; name && *name; name += strspn(name, " ")) {
        size_t length = strcspn(name, " ");
        if (is_given(r, name, length))
            return true;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s--%.*s", used ? " or " : "", (int)length, name);
        name += length;
    }
    if (row->needs)
        snprintf(r->problem, OPTION_PROBLEM_BYTES, "--%s: only with %s", row->name, names);
    return !row->needs;
}

/* Whether each option that was given has an effect beside the others. */
static bool check_given(const reader *r)
{
    for (size_t i = 0; i < r->num_given; i++) {
        const option_row *row = r->given[i];
        if (!has_needed(r, row))
            return false;
        for (const char *other = row->excludes; other && *other; other += strspn(other, " ")) {
            size_t length = strcspn(other, " ");
            if (is_given(r, other, length)) {
                snprintf(r->problem, OPTION_PROBLEM_BYTES, "--%s: not with --%.*s", row->name, (int)length, other);
                return false;
            }
            other += length;
        }
    }
    return true;
}

int options_parse(const option_set *sets, size_t num_sets, int argc, char **argv, char problem[OPTION_PROBLEM_BYTES])
{
    reader r = { .sets = sets, .num_sets = num_sets, .argc = argc, .argv = argv, .problem = problem };
    char **words = memory_get((size_t)argc + 1, sizeof *words); /* moved to the end when all options are read */
    int num_words = 0;
    bool is_good = true;
    for (r.at = 1; r.at < argc && is_good; r.at++) {
        char *word = argv[r.at];
        if (strcmp(word, "--") == 0) {
            while (++r.at < argc)
                words[num_words++] = argv[r.at];
        } else if (strncmp(word, "--", 2) == 0)
            is_good = take_long(&r);
        else if (word[0] == '-' && word[1])
            is_good = take_letters(&r);
        else
            words[num_words++] = word;
    }
    is_good = is_good && check_given(&r);
    for (int i = 0; i < num_words && is_good; i++)
        argv[argc - num_words + i] = words[i];
    free(words);
    free(r.given);
    return is_good ? num_words : -1;
}

void option_print_word(FILE *to, const char *word)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:=@%,";
    if (word[0] && word[strspn(word, harmless)] == '\0') {
        fputs(word, to);
        return;
    }
    fputc('\'', to);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){ *word, '\0' }, to);
    fputc('\'', to);
}
