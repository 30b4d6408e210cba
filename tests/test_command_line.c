/* The option reader that all programs share. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/test_case.h"
#include "tools/cli/options.h"

typedef struct settings {
    bool quiet, verbose;
    const char *name;
    int color;
    int64_t count;
    uint32_t small;
    uint64_t bytes;
    int64_t duration_ns;
    bool trace;
    int64_t number;
    double real, share, span_s;
} settings;

static const char *const colors[] = { "red", "green", "blue", NULL };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(settings, what)

static const option_row rows[] = {
    { ROW("quiet", quiet, option_flag), .letter = 'q', .help = "" },
    { ROW("verbose", verbose, option_flag), .letter = 'v', .help = "" },
    { ROW("name", name, option_text), .letter = 'n', .alias = "title", .argument = "NAME", .help = "" },
    { ROW("color", color, option_choice), .argument = "C", .choices = colors, .help = "" },
    { ROW("count", count, option_count), .argument = "N", .help = "" },
    { ROW("small", small, option_count32), .argument = "N", .max = 7, .help = "" },
    { ROW("bytes", bytes, option_bytes), .argument = "SIZE", .help = "" },
    { ROW("duration", duration_ns, option_duration), .argument = "SPAN", .help = "" },
    { ROW("trace", trace, option_flag), .excludes = "quiet verbose", .help = "" },
    { ROW("trace-size", bytes, option_bytes), .argument = "SIZE", .needs = "trace", .help = "" },
    { ROW("limit", number, option_number), .argument = "N", .help = "" },
    { ROW("real", real, option_real), .argument = "X", .help = "" },
    { ROW("share", share, option_share), .argument = "PERCENT", .help = "" },
    { ROW("since", span_s, option_span), .argument = "SPAN", .help = "" },
    { ROW("from-phase", name, option_text), .argument = "NAME", .unclear = "name a phase", .help = "" },
    { 0 },
};

enum { MAX_WORDS = 16 };

static settings values;
static char *words[MAX_WORDS + 1];
static int num_words;
static char problem[OPTION_PROBLEM_BYTES];

/* Reads a line, whose words are separated by one space each. Returns what options_parse() does. */
static int parse(const char *line)
{
    static char copy[256];
    values = (settings){ 0 };
    num_words = 1;
    problem[0] = '\0';
    words[0] = (char *)(uintptr_t) "program";
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[num_words++] = word;
    return options_parse(&(option_set){ rows, &values }, 1, num_words, words, problem);
}

static void assert_refused(const char *line, const char *expected)
{
    assert_int_equal(parse(line), -1);
    assert_string_equal(problem, expected);
}

TEST_CASE(options_and_words_may_come_in_any_order)
{
    assert_int_equal(parse("one --count 5 two -q --name=x -- --quiet"), 3);
    assert_string_equal(words[num_words - 3], "one");
    assert_string_equal(words[num_words - 2], "two");
    assert_string_equal(words[num_words - 1], "--quiet");
    assert_int_equal(values.count, 5);
    assert_string_equal(values.name, "x");
    assert_true(values.quiet);
    assert_int_equal(parse("-"), 1); /* a word: stdin or stdout */
}

TEST_CASE(letters_may_share_a_dash_and_have_their_value_attached)
{
    assert_int_equal(parse("-qv -nx"), 0);
    assert_true(values.quiet && values.verbose);
    assert_string_equal(values.name, "x");
    assert_int_equal(parse("-qn y"), 0);
    assert_string_equal(values.name, "y");
    assert_refused("-qx", "-x: no such option (see --help)");
    assert_refused("-n", "-n: a value is missing");
}

TEST_CASE(names_may_be_shortened_and_have_an_alias)
{
    assert_int_equal(parse("--ti x --du 2s"), 0);
    assert_string_equal(values.name, "x");
    assert_int_equal(values.duration_ns, 2000000000);
    assert_refused("--co 3", "--co: ambiguous: several options start like this (see --help)");
}

TEST_CASE(a_choice_is_its_place_in_the_list)
{
    for (int i = 0; colors[i]; i++) {
        char line[32];
        snprintf(line, sizeof line, "--color %s", colors[i]);
        assert_int_equal(parse(line), 0);
        assert_int_equal(values.color, i);
    }
}

TEST_CASE(the_last_value_counts)
{
    assert_int_equal(parse("--count 1 --count 2"), 0);
    assert_int_equal(values.count, 2);
}

TEST_CASE(a_similar_option_is_proposed)
{
    assert_refused("--cuont 1", "--cuont: no such option; did you mean --count? (see --help)");
    assert_refused("--tilte x", "--tilte: no such option; did you mean --title? (see --help)"); /* an alias */
    assert_refused("--colour=red", "--colour: no such option; did you mean --color? (see --help)");
    assert_refused("--nothing-like-it", "--nothing-like-it: no such option (see --help)");
    assert_refused("--=3", "--: no such option (see --help)");
    assert_refused("-count 1",
                   "-count: no such option; did you mean --count? (see --help)"); /* one dash is missing */
    assert_refused("-color=red", "-color: no such option; did you mean --color? (see --help)");
    assert_refused("-x", "-x: no such option (see --help)");
}

TEST_CASE(wrong_values_are_told_with_what_is_wanted)
{
    assert_refused("--color pink", "--color: \"pink\" is not red, green or blue");
    assert_refused("--small 8", "--small: \"8\" is not a whole number from 1 to 7");
    assert_refused("--count 0", "--count: \"0\" is not a whole number from 1 to 1000000000");
    assert_refused("--count -1", "--count: \"-1\" is not a whole number from 1 to 1000000000");
    assert_refused("--count", "--count: a value is missing");
    assert_refused("--quiet=yes", "--quiet=yes: takes no value");
    assert_refused("--bytes 1X", "--bytes: \"1X\" is not a number of bytes, such as 4096, 512k, 64M or 2G");
}

TEST_CASE(sizes_and_durations_have_units)
{
    assert_int_equal(parse("--bytes 3k --duration 1.5m"), 0);
    assert_int_equal(values.bytes, 3 << 10);
    assert_int_equal(values.duration_ns, 90 * INT64_C(1000000000));
    assert_int_equal(parse("--bytes 8388608k --duration 250ms"), 0);
    assert_true(values.bytes == UINT64_C(8) << 30);
    assert_int_equal(values.duration_ns, 250000000);
    assert_int_equal(parse("--bytes 0"), -1);
    assert_int_equal(parse("--bytes 9999999999G"), -1);
    assert_int_equal(parse("--bytes 5kk"), -1);
    assert_int_equal(parse("--duration 0"), -1);
}

/* Each kind takes its limits, and nothing beyond. */
TEST_CASE(limits_are_taken_and_what_is_beyond_is_refused)
{
    static const struct {
        const char *option;
        const char *good[4], *bad[6]; /* the last value of good is compared */
        double value;
    } kinds[] = {
        { "--count", { "1", "1000000000" }, { "0", "1000000001", "+1", "1.0", "1 ", "99999999999999999999" }, 1e9 },
        { "--small", { "1", "7" }, { "0", "8", "4294967297", "-1" }, 7 },
        { "--limit", { "0", "1000000000000000" }, { "1000000000000001", "-1", "", "0x1" }, 1e15 },
        { "--real", { "1e-300", "2.5" }, { "0", "-1", "inf", "nan", "1e999", "2.5x" }, 2.5 },
        { "--share", { "0.001%", "100%" }, { "0%", "100.001%", "40", "-1%", "40%%", "%" }, 1 },
        { "--bytes",
          { "1", "9223372036854775807", "8388607T", "7T" },
          { "0", "9223372036854775808", "8388608T", "7t", "T", "-1" },
          7.0 * 1024 * 1024 * 1024 * 1024 },
        { "--duration",
          { "0.001", "1ms", "1000000", "11d" },
          { "0.0009", "1000001", "-1", "5x", "d", "12d" },
          11 * 86400e9 },
        { "--since", { "0.1ms", "90", "1h", "2d" }, { "0", "-1", "1e400", "1 h", "s", "nan" }, 2 * 86400 },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char line[128];
        for (size_t j = 0; j < 4 && kinds[i].good[j] && *kinds[i].good[j]; j++) {
            snprintf(line, sizeof line, "%s=%s", kinds[i].option, kinds[i].good[j]);
            if (parse(line) != 0)
                fail_msg("%s", problem);
        }
        double got[] = { (double)values.count, (double)values.small, (double)values.number,      values.real,
                         values.share,         (double)values.bytes, (double)values.duration_ns, values.span_s };
        assert_in_range((uint64_t)(got[i] / kinds[i].value * 1e9 + 0.5), 1000000000, 1000000000);
        for (size_t j = 0; j < 6 && kinds[i].bad[j]; j++) {
            words[1] = line;
            snprintf(line, sizeof line, "%s=%s", kinds[i].option, kinds[i].bad[j]);
            if (options_parse(&(option_set){ rows, &values }, 1, 2, words, problem) != -1)
                fail_msg("%s is taken", line);
        }
    }
}

TEST_CASE(each_unit_is_its_own)
{
    static const struct {
        const char *size, *span;
        uint64_t bytes;
        double seconds;
    } units[] = { { "5", "5", 5, 5 },
                  { "5k", "5s", UINT64_C(5) << 10, 5 },
                  { "5M", "5ms", UINT64_C(5) << 20, 0.005 },
                  { "5G", "5m", UINT64_C(5) << 30, 300 },
                  { "5T", "5h", UINT64_C(5) << 40, 18000 } };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "--bytes %s --duration %s", units[i].size, units[i].span);
        assert_int_equal(parse(line), 0);
        assert_true(values.bytes == units[i].bytes);
        assert_true(values.duration_ns == (int64_t)(units[i].seconds * 1e9 + 0.5));
    }
}

TEST_CASE(options_without_effect_are_refused)
{
    assert_refused("--trace-size 3", "--trace-size: only with --trace");
    assert_int_equal(parse("--trace-size 3 --trace"), 0); /* in any order */
    assert_refused("--trace -v", "--trace: not with --verbose");
    assert_refused("-q --trace --trace", "--trace: not with --quiet");
    assert_int_equal(parse("-qv -q"), 0);
}

TEST_CASE(an_abbreviation_that_could_mean_something_else_is_refused)
{
    assert_refused("--from yesterday", "--from: name a phase");
    assert_int_equal(parse("--from-phase x"), 0);
}

/* So that a shell reads it back. */
TEST_CASE(words_are_printed_as_a_shell_reads_them)
{
    static const char *const printed[][2] = {
        { "plain-1.mp4", "plain-1.mp4" }, { "", "''" }, { "a b", "'a b'" }, { "it's", "'it'\\''s'" }, { "$x", "'$x'" }
    };
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        char text[32] = "";
        FILE *to = fmemopen(text, sizeof text, "w");
        assert_non_null(to);
        option_print_word(to, printed[i][0]);
        assert_int_equal(fclose(to), 0);
        assert_string_equal(text, printed[i][1]);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
