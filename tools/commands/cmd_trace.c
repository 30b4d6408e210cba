/* weir trace: where the time of a trace went, by name; and merging traces. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/trace_file.h>

#include "tools/cli/output_file.h"
#include "tools/cli/prose.h"
#include "tools/commands/command_table.h"

enum { MAX_TOP = 1000000 };

static const char *const by_names[] = { "name", "track", "rank", NULL };

static struct settings {
    int64_t top;
    int by; /* weir_trace_by */
    weir_trace_interval interval;
    bool json, csv, force;
    const char *output;
} settings = { .top = 20 };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("by", by, option_choice), .argument = "WHAT", .choices = by_names,
      .help = "add up by name (default), by track (a slot, a thread) and name, or by rank (a process) and name" },
    { ROW("since", interval.since_ns, option_duration), .argument = "DURATION",
      .help = "leave out events before this time of the trace, such as 90s" },
    { ROW("until", interval.until_ns, option_duration), .argument = "DURATION",
      .help = "leave out events later than this after the start of the trace" },
    { ROW("top", top, option_count), .argument = "N", .max = MAX_TOP,
      .help = "print the N names with the largest self time (default 20)" },
    { ROW("output", output, option_file), .letter = 'o', .argument = "FILE", .excludes = "by top json csv",
      .help = "merge the traces into this file instead; with .gz at the end, compressed" },
    { ROW("force", force, option_flag), .needs = "output", .help = OUTPUT_FORCE_HELP },
    { ROW("json", json, option_flag), .excludes = "csv", .help = "print JSON" },
    { ROW("csv", csv, option_flag), .help = "print the table as CSV" },
    { 0 },
};

/* What is printed: the head with the first of the times, or at the end. */
struct listing {
    const char *path;
    const table_column *columns;
    size_t num_columns;
    weir_trace_facts facts;
    table *times; /* NULL = not begun */
    int64_t num_times;
};

static void print_head(const struct listing *listing)
{
    const weir_trace_facts *facts = &listing->facts;
    double seconds = (double)facts->length_ns / 1e9;
    if (settings.json) {
        json_print(stdout, "{'file': %s, 'elapsed': %g, 'events': %" PRIu64 ", 'complete': %hhd, ", listing->path,
                   seconds, facts->num_events, facts->is_complete);
        json_print(stdout,
                   "'gaps': %" PRIu64 ", 'failures': %" PRIu64 ", 'stalls': %" PRIu64 ",\n'names': ", facts->num_gaps,
                   facts->num_failures, facts->num_stalls);
        return;
    }
    prose_line(stdout, "%s: %.3f s, %" PRIu64 " events, %" PRIu64 " failure%s, %" PRIu64 " stall%s", listing->path,
               seconds, facts->num_events, facts->num_failures, facts->num_failures == 1 ? "" : "s",
               facts->num_stalls, facts->num_stalls == 1 ? "" : "s");
    if (!facts->is_complete)
        printf("The file has no end: its program was killed, or still runs.\n");
    if (facts->num_gaps)
        printf("Records were lost %" PRIu64 " time%s: they came faster than they were written.\n", facts->num_gaps,
               facts->num_gaps == 1 ? "" : "s");
    puts(
        "\nTime by name. self: without the spans inside; share: self time / length of the trace, summed over tracks");
}

static void begin_listing(struct listing *listing)
{
    if (!settings.csv)
        print_head(listing);
    table_format format = settings.json ? TABLE_JSON : settings.csv ? TABLE_CSV : TABLE_TEXT;
    listing->times = table_begin(stdout, format, listing->columns, listing->num_columns);
}

static void print_time(void *self, const weir_trace_time *time)
{
    struct listing *listing = self;
    if (!listing->times)
        begin_listing(listing);
    if (listing->num_times++ >= settings.top)
        return;
    table_words(listing->times, time->process);
    table_words(listing->times, time->track);
    table_words(listing->times, time->name);
    table_count(listing->times, (int64_t)time->count);
    table_duration(listing->times, time->total_ns);
    table_duration(listing->times, time->self_ns);
    table_number(listing->times, (double)time->self_ns / (double)listing->facts.length_ns);
}

static int show_times(const tool_call *call)
{
    const table_column columns[] = {
        { "process_name", settings.by != WEIR_TRACE_BY_NAME ? "process" : NULL, TABLE_WORDS },
        { "track", settings.by == WEIR_TRACE_BY_TRACK ? "track" : NULL, TABLE_WORDS },
        { "name", "name", TABLE_WORDS },
        { "count", "count", TABLE_COUNT },
        { "total_time", "total", TABLE_TIME },
        { "self_time", "self", TABLE_TIME },
        { "share", "share", TABLE_SHARE },
    };
    struct listing listing = { .path = call->words[0], TABLE_COLUMNS(columns) };
    weir_error error = { 0 };
    int status = weir_trace_times_read(listing.path, &settings.interval, (weir_trace_by)settings.by, &listing.facts,
                                       print_time, &listing, &error);
    if (status == WEIR_EDATA && weir_output_is(listing.path, WEIR_OUTPUT_DATABASE))
        return tool_refuse(call, "%s: a database, not a trace; weir summary and weir explain read databases",
                           listing.path);
    if (status != WEIR_OK) {
        tool_refuse(call, "%s", error.message);
        return status == WEIR_EIO || status == WEIR_ENOMEM ? TOOL_FAILED : TOOL_REFUSED;
    }
    if (listing.facts.num_events == 0)
        return tool_nothing(call, "%s: the trace has no events%s", listing.path,
                            settings.interval.since_ns || settings.interval.until_ns ? " in this interval" : "");
    if (!listing.times)
        begin_listing(&listing);
    table_end(listing.times);
    if (settings.json)
        puts("}");
    return tool_finish(call);
}

static int merge_traces(const tool_call *call)
{
    weir_error error = { 0 };
    if (output_allow(call, settings.output, WEIR_OUTPUT_TRACE, settings.force, 0) != TOOL_DONE)
        return TOOL_REFUSED;
    int status = weir_trace_merge(settings.output, (const char *const *)call->words, (size_t)call->num_words,
                                  &settings.interval, settings.force, &error);
    if (status == WEIR_OK)
        return TOOL_DONE;
    tool_refuse(call, "%s", error.message);
    return status == WEIR_EIO || status == WEIR_ENOMEM ? TOOL_FAILED : TOOL_REFUSED;
}

static int run_trace(tool_call *call)
{
    if (settings.interval.until_ns && settings.interval.until_ns <= settings.interval.since_ns)
        return tool_refuse(call, "--until: it is not after --since");
    if (settings.output)
        return merge_traces(call);
    if (call->num_words > 1)
        return tool_refuse(call, "one trace at a time; -o FILE merges several into one");
    return show_times(call);
}

const tool_command tool_trace = {
    .name = "trace",
    .words = "FILE...",
    .min_words = 1,
    .max_words = -1,
    .summary = "show where the time of a trace went, or merge traces",
    .help =
        "Reads a trace that weir record --trace or a program has written (see weir/trace_file.h), compressed or "
        "not, complete or not, and prints for each name of a span how often it ran, its total time, its self time "
        "(without the spans inside), and the share of the trace's length. Waits of slots are spans, too. Traces of "
        "other programs in Chrome's format can be read.\n\n"
        "With -o the traces are merged into one file, in constant memory: traces of ranks, and of other programs. "
        "The clocks are aligned by the wall time that each trace of weir states. --since and --until cut out an "
        "interval.\n\n"
        "To see a trace as a picture, open it in https://ui.perfetto.dev.",
    .examples = "weir record videos/ --trace trace.json.gz\n"
                "weir trace trace.json.gz\n"
                "weir trace trace.json.gz --by track --since 90s --until 2m\n"
                "weir trace rank*.json.gz -o all.json.gz\n"
                "weir trace all.json.gz --by rank --csv\n",
    .options = rows,
    .settings = &settings,
    .run = run_trace,
};
