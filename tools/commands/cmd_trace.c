/* weir trace: where the time of a trace went, by name; and merging traces. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/escape.h>
#include <weir/trace_file.h>

#include "command_table.h"
#include "output_file.h"

enum { MAX_TOP = 1000000 };

static const char *const by_names[] = { "name", "track", "rank", NULL };

static struct settings {
    int64_t top;
    int by; /* weir_trace_by */
    weir_trace_part part;
    bool json, csv, force;
    const char *output;
} settings = { .top = 20 };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("by", by, option_choice), .argument = "WHAT", .choices = by_names,
      .help = "add up by name (default), by track (a slot, a thread) and name, or by rank (a process) and name" },
    { ROW("since", part.since_ns, option_duration), .argument = "DURATION",
      .help = "leave out what was before this time after the trace's start, such as 90s" },
    { ROW("until", part.until_ns, option_duration), .argument = "DURATION",
      .help = "leave out what was after this time after the trace's start" },
    { ROW("top", top, option_count), .argument = "N", .max = MAX_TOP,
      .help = "print the N names with the largest self time (default 20)" },
    { ROW("output", output, option_file), .letter = 'o', .argument = "FILE", .excludes = "by top json csv",
      .help = "merge the traces into this file instead; with .gz at the end, compressed" },
    { ROW("force", force, option_flag), .needs = "output", .help = OUTPUT_FORCE_HELP },
    { ROW("json", json, option_flag), .excludes = "csv", .help = "print JSON" },
    { ROW("csv", csv, option_flag), .help = "print the table as CSV" },
    { 0 },
};

static void print_head(const char *path, const weir_trace_times *times)
{
    double seconds = (double)times->length_ns / 1e9;
    if (settings.json) {
        fputs("{\"file\": ", stdout);
        json_string(stdout, path);
        printf(", \"elapsed\": %.9f, \"events\": %" PRIu64 ", \"complete\": %s, \"gaps\": %" PRIu64
               ", \"failures\": %" PRIu64 ", \"stalls\": %" PRIu64 ",\n\"names\": ",
               seconds, times->num_events, times->is_complete ? "true" : "false", times->num_gaps,
               times->num_failures, times->num_stalls);
        return;
    }
    weir_text_escape_to(stdout, path);
    printf(": %.3f s, %" PRIu64 " events, %" PRIu64 " failure%s, %" PRIu64 " stall%s\n", seconds, times->num_events,
           times->num_failures, times->num_failures == 1 ? "" : "s", times->num_stalls,
           times->num_stalls == 1 ? "" : "s");
    if (!times->is_complete)
        printf("The file has no end: its program was killed, or still runs.\n");
    if (times->num_gaps)
        printf("Records were lost %" PRIu64 " time%s: they came faster than they were written.\n", times->num_gaps,
               times->num_gaps == 1 ? "" : "s");
    puts("\nTime by name. self: without the spans inside; share: self time of the trace's length, several tracks add "
         "up");
}

static void print_times(const weir_trace_times *times)
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
    table_format format = settings.json ? TABLE_JSON : settings.csv ? TABLE_CSV : TABLE_TEXT;
    table *t = table_begin(stdout, format, TABLE_COLUMNS(columns));
    for (size_t i = 0; i < times->num_times && i < (size_t)settings.top; i++) {
        const weir_trace_time *time = &times->times[i];
        table_words(t, time->process);
        table_words(t, time->track);
        table_words(t, time->name);
        table_count(t, (int64_t)time->count);
        table_duration(t, time->total_ns);
        table_duration(t, time->self_ns);
        table_number(t, (double)time->self_ns / (double)times->length_ns);
    }
    table_end(t);
}

static int show_times(const tool_call *call)
{
    const char *path = call->words[0];
    weir_trace_times times;
    weir_error error = { 0 };
    int status = weir_trace_times_read(path, &settings.part, (weir_trace_by)settings.by, &times, &error);
    if (status == WEIR_EDATA && tool_file_begins(path, "SQLite format 3"))
        return tool_refuse(call, "%s: a database, not a trace; weir summary and weir explain read databases", path);
    if (status != WEIR_OK) {
        tool_refuse(call, "%s", error.message);
        return status == WEIR_EIO || status == WEIR_ENOMEM ? TOOL_FAILED : TOOL_REFUSED;
    }
    int exit_status = TOOL_DONE;
    if (times.num_events == 0) {
        exit_status = tool_nothing(call, "%s: the trace has no events", path);
    } else {
        if (!settings.csv)
            print_head(path, &times);
        print_times(&times);
        if (settings.json)
            puts("}");
        exit_status = tool_finish(call);
    }
    weir_trace_times_free(&times);
    return exit_status;
}

static int merge_traces(const tool_call *call)
{
    weir_error error = { 0 };
    if (output_allow(call, settings.output, OUTPUT_TRACE, settings.force, 0) != TOOL_DONE)
        return TOOL_REFUSED;
    int status = weir_trace_merge(settings.output, (const char *const *)call->words, (size_t)call->num_words,
                                  &settings.part, &error);
    if (status == WEIR_OK)
        return TOOL_DONE;
    tool_refuse(call, "%s", error.message);
    return status == WEIR_EIO || status == WEIR_ENOMEM ? TOOL_FAILED : TOOL_REFUSED;
}

static int run_trace(tool_call *call)
{
    if (settings.part.until_ns && settings.part.until_ns <= settings.part.since_ns)
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
        "The clocks are aligned by the wall time that each trace of weir states. --since and --until cut out a "
        "part.\n\n"
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
