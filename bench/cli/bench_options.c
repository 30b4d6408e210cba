#include "bench/cli/bench_options.h"

#include <stdio.h>
#include <string.h>

#include <weir/output.h>

#include "tools/cli/option_help.h"

static bool parse_values(const char *text, uint64_t least, bench_list *list)
{
    list->num_values = 0;
    for (const char *end; list->num_values < BENCH_MAX_LIST; text = end + 1) {
        char digits[16];
        uint64_t number;
        size_t length = strcspn(text, ",");
        end = text + length;
        snprintf(digits, sizeof digits, "%.*s", (int)length, text);
        if (length >= sizeof digits || !option_parse_number(digits, UINT32_MAX, &number) || number < least)
            return false;
        list->values[list->num_values++] = (uint32_t)number;
        if (!*end)
            return true;
    }
    return false;
}

static bool parse_counts(const char *text, void *value)
{
    return parse_values(text, 1, value);
}

static bool parse_numbers(const char *text, void *value)
{
    return parse_values(text, 0, value);
}

const option_kind bench_counts = { .parse = parse_counts, .wanted = "a list of numbers from 1, such as 1,2,4" };
const option_kind bench_numbers = { .parse = parse_numbers, .wanted = "a list of numbers, such as 0,10,100" };

int bench_refuse(const char *what, const char *why)
{
    fprintf(stderr, "weir-bench: %s%s\n", what, why);
    return 2;
}

typedef struct common_settings {
    const char *json_path;
    bool help;
} common_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(common_settings, what)

static const option_row common_rows[] = {
    { ROW("json", json_path, option_file), .argument = "FILE", .help = "also write the results to this file" },
    { ROW("help", help, option_flag), .letter = 'h', .help = "print this and exit" },
    { 0 },
};

bench_parsed bench_parse(int argc, char **argv, const option_set *sets, size_t num_sets, const char **json_path,
                         const char *usage)
{
    enum { MAX_SETS = 3 };
    common_settings common = { 0 };
    option_set all[MAX_SETS];
    for (size_t i = 0; i < num_sets; i++)
        all[i] = sets[i];
    all[num_sets++] = (option_set){ common_rows, &common };
    char problem[OPTION_PROBLEM_BYTES];
    int num_words = options_parse(all, num_sets, argc, argv, problem);
    *json_path = common.json_path;
    if (num_words >= 0 && common.help) {
        printf("Usage: weir-bench %s\n\n", usage);
        options_print(all, num_sets);
        return BENCH_HELP_SHOWN;
    }
    if (num_words > 0)
        bench_refuse(argv[argc - num_words], ": not an option (see --help)");
    if (num_words < 0)
        bench_refuse(problem, "");
    weir_error error = { 0 };
    bool is_refused = num_words == 0 && common.json_path &&
                      weir_output_check(common.json_path, WEIR_OUTPUT_JSON, NULL, &error) != WEIR_OK;
    if (is_refused)
        bench_refuse("--json: ", error.message);
    return num_words == 0 && !is_refused ? BENCH_RUN : BENCH_USAGE_ERROR;
}
