#include "tools/cli/filter_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/query.h>

bool tool_parse_run(const char *text, void *run_id)
{
    uint64_t number = 0;
    int64_t named = strcmp(text, "last") == 0 ? WEIR_LAST_RUN : strcmp(text, "previous") == 0 ? WEIR_PREVIOUS_RUN : 0;
    if (!named && (!option_parse_number(text, INT64_MAX, &number) || number == 0))
        return false;
    *(int64_t *)run_id = named ? named : (int64_t)number;
    return true;
}

static bool parse_run(const char *text, void *value)
{
    tool_shared *shared = value;
    bool is_all = strcmp(text, "all") == 0;
    shared->run_given = true;
    if (is_all)
        shared->run_id = WEIR_ALL_RUNS;
    return is_all || tool_parse_run(text, &shared->run_id);
}

static bool parse_rank(const char *text, void *value)
{
    tool_shared *shared = value;
    uint64_t number;
    shared->rank.given = true;
    if (!option_parse_number(text, INT32_MAX, &number))
        return false;
    shared->rank.number = (int32_t)number;
    return true;
}

/* "100", "100:200", "100:", ":200" */
static bool parse_range(const char *text, void *value)
{
    tool_steps *steps = value;
    char first[32] = "";
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    uint64_t number = 0;
    if (length >= sizeof first || !*text || strcmp(text, ":") == 0)
        return false;
    memcpy(first, text, length);
    if (*first && !option_parse_number(first, INT64_MAX, &number))
        return false;
    steps->given = true;
    steps->first = *first ? (int64_t)number : INT64_MIN;
    steps->last = colon ? INT64_MAX : (int64_t)number;
    if (colon && colon[1]) {
        if (!option_parse_number(colon + 1, INT64_MAX, &number))
            return false;
        steps->last = (int64_t)number;
    }
    return steps->first <= steps->last;
}

/* "2024-05-01 12:00:03", "2024-05-01T12:00", "2024-05-01": local time */
static bool parse_calendar(const char *text, double *unix_time)
{
    static const char *const forms[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M",
                                         "%Y-%m-%d" };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct tm parts = { .tm_isdst = -1 };
        const char *end = strptime(text, forms[i], &parts);
        if (end && !*end) {
            *unix_time = (double)mktime(&parts);
            return *unix_time > 0 && *unix_time < OPTION_MAX_SECONDS;
        }
    }
    return false;
}

static bool parse_time(const char *text, void *value)
{
    tool_time *when = value;
    if (*text == '+' || *text == '-') {
        when->kind = *text == '+' ? TOOL_TIME_AFTER_START : TOOL_TIME_BEFORE_END;
        return option_parse_span(text + 1, &when->seconds);
    }
    when->kind = TOOL_TIME_UNIX;
    char *end;
    errno = 0;
    when->seconds = strtod(text, &end);
    if (end != text && !*end && !errno && when->seconds < OPTION_MAX_SECONDS && when->seconds > 0)
        return true;
    return parse_calendar(text, &when->seconds);
}

static const option_kind run_kind = { .parse = parse_run, .wanted = "the number of a run, last, previous or all" };
static const option_kind rank_kind = { .parse = parse_rank, .wanted = "a whole number from 0 to 2147483647" };
static const option_kind range_kind = { .parse = parse_range,
                                        .wanted = "a step (100) or a range of them (100:200, 100:, :200)" };
static const option_kind time_kind = {
    .parse = parse_time,
    .wanted = "a time: \"2024-05-01 12:00\", Unix seconds, +90s (after the start) or -10m (before the end)"
};

#define NOT_FROM "no such option: a time is selected with --since, a phase with --from-phase, a mode with --from-mode"

static const char *const section_choices[] = { "all", "before-steps", "after-steps", NULL };
static const char *const run_choices[] = { "last", "previous", "all", NULL };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(tool_shared, what)

#define RUN_ROW(title) \
    { \
        .name = "run", .argument = "N|last|previous|all", .kind = &run_kind, .choices = run_choices, \
        .heading = (title), .help = "the run with this number, the last run, the one before, or all runs together" \
    }

const option_row tool_db_rows[] = {
    { ROW("db", db, option_file), .argument = "FILE",
      .help = "the database, which can also be given without --db (default pipeline_stats.db)" },
    { 0 },
};

const option_row tool_run_rows[] = { RUN_ROW(NULL), { 0 } };

const option_row tool_filter_rows[] = {
    RUN_ROW("Filters"),
    { ROW("name", name, option_text), .argument = "GLOB",
      .help = "only stages and queues with this name: decode, 'dec*', '0:1:decode[10]_queue'" },
    { ROW("since", since, time_kind), .alias = "start-time", .argument = "TIME",
      .help = "only records from this time on: \"2024-05-01 12:00\", Unix seconds, +90s after the start, -10m before "
              "the end" },
    { ROW("until", until, time_kind), .alias = "end-time", .argument = "TIME",
      .help = "only records up to this time" },
    { ROW("steps", steps, range_kind), .argument = "A:B",
      .help = "only laps that overlap these steps; A: and :B are open ranges, A alone is one step" },
    { ROW("phase", phase, option_text), .argument = "GLOB",
      .help = "only these phases: startup, loop, finish, or those that the program marked ('train*')" },
    { ROW("mode", mode, option_text), .argument = "GLOB",
      .help = "only these modes that the program marked: train, eval" },
    { ROW("from-phase", from_phase, option_text), .argument = "NAME", .help = "only from the start of this phase",
      .unclear = NOT_FROM },
    { ROW("until-phase", until_phase, option_text), .argument = "NAME",
      .help = "only up to the start of this phase" },
    { ROW("from-mode", from_mode, option_text), .argument = "NAME",
      .help = "only from the start of this mode; with --from-phase: of this phase in this mode",
      .unclear = NOT_FROM },
    { ROW("until-mode", until_mode, option_text), .argument = "NAME", .help = "only up to the start of this mode" },
    { ROW("every-time", every_time, option_flag), .needs = "from-phase from-mode",
      .help = "with --from-phase or --from-mode: each time that it begins, not only the first time" },
    { ROW("between-steps", between, range_kind), .argument = "A:B",
      .help = "only from step A, or from --from-phase in it, through step B, or up to --until-phase in it" },
    { ROW("section", section, option_choice), .argument = "SECTION", .choices = section_choices,
      .excludes = "from-phase until-phase from-mode until-mode between-steps",
      .help = "all, before-steps (before the first step was marked) or after-steps (after the end of the last one)" },
    { ROW("node", node, option_text), .argument = "GLOB", .help = "only runs on this node" },
    { .name = "rank", .argument = "N", .kind = &rank_kind, .help = "only runs with this rank" },
    { 0 },
};

const option_row tool_format_rows[] = {
    { ROW("json", json, option_flag), .heading = "Output",
      .help = "print JSON: full precision, seconds, bytes, Unix time" },
    { ROW("csv", csv, option_flag), .excludes = "json", .help = "print CSV, with a header line" },
    { 0 },
};

const option_row tool_help_rows[] = {
    { ROW("help", help, option_flag), .letter = 'h', .help = "print this help and exit" },
    { 0 },
};
