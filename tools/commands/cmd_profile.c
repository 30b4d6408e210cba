/* weir profile: measures each stage of the pipeline of weir record alone. See docs/tuning.md. */
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/profile.h>

#include "tools/commands/command_table.h"
#include "tools/record/record_inputs.h"
#include "tools/record/record_messages.h"
#include "tools/record/record_pipeline.h"

enum { MAX_SLOT_NUMBERS = 64 };

/* "1,2,4" */
typedef struct slot_list {
    uint32_t all[MAX_SLOT_NUMBERS];
    size_t count;
} slot_list;

static struct settings {
    record_settings record; /* first: its rows have offsets in it */
    slot_list slots;
    int64_t items, run_ns, time_limit_ns;
    uint64_t max_bytes;
} settings = { .record = RECORD_DEFAULTS };

static bool parse_slots(const char *text, void *value)
{
    slot_list list = { .count = 0 };
    char words[256];
    char *rest = words;
    if (strlen(text) >= sizeof words)
        return false;
    strcpy(words, text);
    for (char *word = strsep(&rest, ","); word; word = strsep(&rest, ",")) {
        uint64_t slots;
        if (list.count == MAX_SLOT_NUMBERS || !option_parse_number(word, WEIR_MAX_SLOTS, &slots) || slots == 0)
            return false;
        list.all[list.count++] = (uint32_t)slots;
    }
    *(slot_list *)value = list;
    return true;
}

static const option_kind slots_kind = { .parse = parse_slots,
                                        .wanted = "a list of numbers from 1 to 65536, such as 1,2,4" };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("slots", slots, slots_kind), .argument = "N,N...",
      .help = "measure each stage with these numbers of slots (default: 1, 2, 4 and so on up to the CPUs that this "
              "process may use, and --concurrency)" },
    { ROW("items", items, option_count), .argument = "N",
      .help = "number of inputs of each measurement (default: ten for each slot, or more, so that the first "
              "measurement of a stage lasts for --run)" },
    { ROW("run", run_ns, option_duration), .argument = "SPAN",
      .help = "shortest time of the first measurement of a stage, if there are inputs for it (default 2 s)" },
    { ROW("max-kept", max_bytes, option_bytes), .argument = "SIZE",
      .help = "keep inputs of at most SIZE in memory (default: a quarter of the available memory)" },
    { ROW("time-limit", time_limit_ns, option_duration), .argument = "SPAN",
      .help = "end after SPAN, and print what was measured until then (default: never)" },
    { 0 },
};

/* -- what was measured */

typedef struct profile_report {
    weir_profile_result *results; /* their texts live as long as the description */
    size_t count;
    bool is_out_of_memory;
} profile_report;

static void keep_result(void *self, const weir_profile_result *result)
{
    profile_report *kept = self;
    weir_profile_result *more = realloc(kept->results, (kept->count + 1) * sizeof *more);
    kept->is_out_of_memory |= !more;
    if (!more)
        return;
    kept->results = more;
    kept->results[kept->count++] = *result;
}

static const table_column columns[] = {
    { "stage", "stage", TABLE_WORDS },
    { "op", NULL, TABLE_WORDS },
    { "kind", NULL, TABLE_WORDS },
    { "slots", "slots", TABLE_COUNT },
    { "is_own", NULL, TABLE_TRUTH },
    { "threads", NULL, TABLE_COUNT },
    { "num_inputs", NULL, TABLE_COUNT },
    { "num_tasks", "items", TABLE_COUNT },
    { "num_failures", "failed", TABLE_COUNT },
    { "num_results", NULL, TABLE_COUNT },
    { "elapsed", NULL, TABLE_TIME },
    { "busy_time", NULL, TABLE_TIME },
    { "tail_time", NULL, TABLE_TIME },
    { "cpu_time", NULL, TABLE_TIME },
    { "items_per_s", "items/s alone", TABLE_REAL },
    { "source_items_per_s", NULL, TABLE_REAL },
    { "cpu_per_item", "CPU time per item", TABLE_TIME },
    { "busy_share", "busy", TABLE_SHARE },
    { "gain", "gain", TABLE_REAL },
    { "kept_bytes", NULL, TABLE_BYTES },
    { "memory_bytes", "memory", TABLE_BYTES },
    { "error", NULL, TABLE_WORDS },
};

static void put_result(table *t, const weir_profile_result *result)
{
    table_words(t, result->name);
    table_words(t, result->op);
    table_words(t, result->kind);
    table_count(t, result->slots);
    table_truth(t, result->is_own);
    table_count(t, result->threads);
    table_count(t, (int64_t)result->num_inputs);
    table_count(t, (int64_t)result->num_tasks);
    table_count(t, (int64_t)result->num_failures);
    table_count(t, (int64_t)result->num_results);
    table_duration(t, result->elapsed_ns);
    table_duration(t, result->busy_ns);
    table_duration(t, result->tail_ns);
    table_duration(t, result->cpu_ns);
    table_number(t, result->items_per_s);
    table_number(t, result->source_items_per_s);
    table_number(t, result->cpu_per_item_s);
    table_number(t, result->busy_share);
    table_number(t, result->gain);
    table_count(t, (int64_t)result->kept_bytes);
    table_number(t, result->memory_bytes < 0 ? NAN : (double)result->memory_bytes);
    table_words(t, result->error.message);
}

static void put_results(table_format format, const profile_report *kept)
{
    table *t = table_begin(stdout, format, TABLE_COLUMNS(columns));
    for (size_t i = 0; i < kept->count; i++)
        put_result(t, &kept->results[i]);
    table_end(t);
}

/* The stage that handles the fewest items of the source per second with its present number of slots; NULL = none was measured. */
static const weir_profile_result *find_slowest(const profile_report *kept)
{
    const weir_profile_result *slowest = NULL;
    for (size_t i = 0; i < kept->count; i++) {
        const weir_profile_result *result = &kept->results[i];
        if (result->is_own && result->slots && result->source_items_per_s > 0 &&
            (!slowest || result->source_items_per_s < slowest->source_items_per_s))
            slowest = result;
    }
    return slowest;
}

/* is_whole: all stages were measured. */
static void print_report(const tool_call *call, const profile_report *kept, bool is_whole)
{
    const weir_profile_result *slowest = is_whole ? find_slowest(kept) : NULL;
    table_format format = tool_format(call);
    if (format == TABLE_JSON) {
        json_print(stdout, "{'slowest': %s, 'source_items_per_s': %g, 'stages': ", slowest ? slowest->name : NULL,
                   slowest ? slowest->source_items_per_s : NAN);
        put_results(format, kept);
        puts("}");
        return;
    }
    put_results(format, kept);
    if (format == TABLE_TEXT && slowest)
        printf("\nThe slowest is %s with %u slot%s, as it is set: alone it handles %.1f items of the source per "
               "second.\n",
               slowest->name, slowest->slots, slowest->slots == 1 ? "" : "s", slowest->source_items_per_s);
}

/* -- the run */

static atomic_int stop_signal; /* 0 = none */

static void note_signal(int signal_number)
{
    atomic_store(&stop_signal, signal_number);
}

static bool was_stopped(void *self)
{
    (void)self;
    return atomic_load(&stop_signal) != 0;
}

static int end_profile(const tool_call *call, const profile_report *kept, int status, const weir_error *error)
{
    if (kept->count)
        print_report(call, kept, status == WEIR_OK);
    int exit_status = tool_finish(call);
    if (kept->is_out_of_memory)
        return tool_refuse(call, "out of memory: not all results are shown"), TOOL_FAILED;
    if (atomic_load(&stop_signal))
        return RECORD_SIGNAL + atomic_load(&stop_signal);
    if (status == WEIR_OK)
        return exit_status;
    tool_refuse(call, "%s%s%s", error->stage, error->stage[0] ? ": " : "", error->message);
    return status == WEIR_EINVAL && !kept->count ? TOOL_REFUSED : TOOL_FAILED;
}

static int profile(const tool_call *call, const record_inputs *inputs)
{
    profile_report kept = { 0 };
    weir_error error = { 0 };
    weir_profile_options options = {
        .items = (uint64_t)settings.items,
        .run_ns = settings.run_ns,
        .concurrencies = settings.slots.count ? settings.slots.all : NULL,
        .num_concurrencies = settings.slots.count,
        .max_bytes = settings.max_bytes,
        .time_limit_ns = settings.time_limit_ns,
        .should_stop = was_stopped,
    };
    struct sigaction action = { .sa_handler = note_signal,
                                .sa_flags = (int)SA_RESETHAND }; /* a second one ends the process */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    weir_builder *builder = record_pipeline_describe(&settings.record, inputs, NULL, NULL);
    int status = weir_profile(builder, &options, keep_result, &kept, &error);
    int exit_status = end_profile(call, &kept, status, &error);
    weir_builder_free(builder);
    free(kept.results);
    return exit_status;
}

static int run(tool_call *call)
{
    record_settings *record = &settings.record;
    record->program = "weir profile";
    record->weir = call->program;
    record->input_option = "";
    record->inputs = call->words;
    record->num_inputs = (size_t)call->num_words;
    record->concurrency = record->concurrency ? record->concurrency : weir_cpu_budget();
    if (call->num_words == 0 && !record->list_path)
        return tool_refuse(call, "a folder, a file, a URL or --list FILE is missing (see --help)");
    record_inputs inputs = { .share.world.size = 1 };
    int exit_status = record_pipeline_check(record);
    if (exit_status == RECORD_DONE)
        exit_status = record_inputs_open(record, &inputs);
    if (exit_status == RECORD_DONE)
        exit_status = profile(call, &inputs);
    record_inputs_free(&inputs);
    video_settings_free(&record->video);
    return exit_status;
}

static const tool_made *make_profile(void)
{
    static tool_made made;
    made.options = record_stage_rows();
    return &made;
}

static const option_set more_sets[] = { VIDEO_SETS(settings.record.video), { 0 } };

const tool_command tool_profile = {
    .name = "profile",
    .words = "DIR|FILE|URL...",
    .max_words = -1,
    .summary = TOOL_PROFILE_SUMMARY,
    .help =
        "Measures each stage of the pipeline that weir record would run with these options. Each stage runs alone, "
        "with several numbers of slots, one after the other. It gets inputs that the stages before it have made and "
        "that are kept in memory, so nothing else slows it down. Nothing is recorded.\n\n"
        "The columns are: the tasks that ended; those of them that failed; the tasks per second; the CPU time of a "
        "task; the share of the time in which the slots were busy; the tasks per second, divided by those of the "
        "stage's first line (gain); and by how much the process grew. The last line names the stage that is the "
        "slowest with --concurrency slots. The whole pipeline cannot be faster than this stage. It may be slower, "
        "because the stages share the CPUs: weir record --explain measures that.\n\n"
        "Each slot has a thread. Files are read again for each measurement. The first measurement may read them from "
        "the disk, and later ones from memory.\n\n"
        "--json prints one object, and --csv prints the table. Both have more columns. Ctrl-C ends the measurements, "
        "and the results until then are printed.",
    .examples = "weir profile videos/\n"
                "weir profile videos/ --slots 1,2,4,8 --concurrency 8\n"
                "weir profile shards/ --tar --count 16 --width 224 --height 224 --json\n",
    .shared = TOOL_FORMAT,
    .options = rows,
    .settings = &settings,
    .make = make_profile,
    .more = more_sets,
    .run = run,
};
