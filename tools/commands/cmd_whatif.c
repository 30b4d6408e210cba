/* weir whatif: predicts the throughput of a recorded run with other settings. See docs/whatif.md. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/pipeline.h>
#include <weir/whatif.h>

#include "tools/cli/prose.h"
#include "tools/commands/command_table.h"

enum { MAX_SETTINGS = 64, SETTING_BYTES = 256 };

/* A list of "NAME=VALUE", from options that may be given several times. */
typedef struct setting_list {
    const char *all[MAX_SETTINGS + 2]; /* and --threads, --cpus */
    size_t count;
} setting_list;

static struct settings {
    setting_list set;
    uint32_t threads; /* 0 = as recorded */
    double cpus;      /* 0 = as recorded */
    int64_t resamples, seed;
} settings;

static bool parse_setting(const char *text, void *value)
{
    setting_list *list = value;
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1] || list->count == MAX_SETTINGS || strlen(text) >= SETTING_BYTES)
        return false;
    list->all[list->count++] = text;
    return true;
}

static const option_kind setting_kind = { .parse = parse_setting,
                                          .wanted = "a setting and its value, such as decode.concurrency=8" };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("set", set, setting_kind), .argument = "NAME=VALUE",
      .help = "change a setting, such as decode.concurrency=8; may be given several times" },
    { ROW("threads", threads, option_count32), .argument = "N", .max = WEIR_MAX_SLOTS,
      .help = "threads of the pool (default as recorded)" },
    { ROW("cpus", cpus, option_real), .argument = "N",
      .help = "CPUs that the process may use; fractions are allowed (default as recorded)" },
    { ROW("resamples", resamples, option_count), .argument = "N", .max = 1000,
      .help = "how often laps are drawn at random for the range (default 20)" },
    { ROW("seed", seed, option_number), .argument = "N",
      .help = "seed of the random choices; the same seed gives the same prediction (default 0)" },
    { 0 },
};

/* -- output */

static const table_column columns[] = {
    { "name", "", TABLE_WORDS },
    { "kind", NULL, TABLE_WORDS },
    { "concurrency", "slots", TABLE_COUNT },
    { "items_per_s", "results/s", TABLE_REAL },
    { "busy_share", "busy", TABLE_SHARE },
    { "cpu_wait_share", "of it waiting for a CPU", TABLE_SHARE },
    { "wait_in_share", "input", TABLE_SHARE },
    { "wait_thread_share", "thread", TABLE_SHARE },
    { "wait_turn_share", "turn", TABLE_SHARE },
    { "wait_out_share", "room", TABLE_SHARE },
    { "cpus", "CPUs", TABLE_REAL },
    { "queue_depth", "queued", TABLE_REAL },
};

/* For people: "0.000757" CPUs are 0.00. */
static double rounded(table_format format, double value)
{
    return format == TABLE_TEXT ? round(100 * value) / 100 : value;
}

static void put_nodes(table_format format, const weir_prediction *p)
{
    table *t = table_begin(stdout, format, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < p->num_nodes; i++) {
        const weir_predicted_node *node = &p->nodes[i];
        table_words(t, node->name);
        table_words(t, node->kind);
        table_count(t, node->concurrency);
        table_number(t, node->items_per_s);
        table_number(t, node->busy_share);
        table_number(t, node->cpu_wait_share);
        table_number(t, node->wait_in_share);
        table_number(t, node->wait_thread_share);
        table_number(t, node->wait_turn_share);
        table_number(t, node->wait_out_share);
        table_number(t, rounded(format, node->cpus));
        table_number(t, rounded(format, node->queue_depth));
    }
    table_end(t);
}

static void put_json(const weir_prediction *p)
{
    json_print(stdout, "{'is_prediction': true, 'throughput': %g, 'low': %g, 'high': %g, 'baseline': %g, ",
               p->throughput, p->low, p->high, p->baseline);
    json_print(stdout, "'measured': %g, 'limit': %s, 'limit_share': %g, 'threads': %g, 'available_cpus': %g, ",
               p->measured, p->limit_text, p->limit_share, (double)p->threads, p->available_cpus);
    json_print(stdout, "'background': %g, 'cpus': %g, 'cpu_share': %g, 'memory_bytes': %g, ", p->background, p->cpus,
               p->cpu_share, (double)p->memory_bytes);
    json_print(stdout,
               "'beyond_measured': %hhd, 'num_laps': %g, 'simulated_items': %g, 'nodes': ", p->beyond_measured,
               (double)p->num_laps, (double)p->num_items);
    put_nodes(TABLE_JSON, p);
    puts("}");
}

static void put_prose(FILE *out, const weir_prediction *p)
{
    if (!isnan(p->measured))
        fprintf(out, "Measured:  %.2f items/s (the model of the same settings gives %.2f, %+.1f %%).\n", p->measured,
                p->baseline, 100 * (p->baseline / p->measured - 1) + 0.0);
    fprintf(out, "Predicted: %.2f items/s (%.2f to %.2f), %.2f times the model's figure above.\n", p->throughput,
            p->low, p->high, p->throughput / p->baseline);
    prose_line(out, "Limit:     %s (%.0f %% in use).", p->limit_text, 100 * p->limit_share);
    fprintf(out, "CPUs:      %.2f of %.4g in use", p->cpus, p->available_cpus);
    if (p->background > 0.05)
        fprintf(out, ", next to %.1f threads of other programs, as when it was recorded", p->background);
    fprintf(out, ".\n");
    if (!isnan(p->memory_bytes))
        fprintf(out, "Memory:    %.1f MB in items that wait.\n", p->memory_bytes / 1e6);
    if (p->beyond_measured)
        fprintf(out,
                "This is a prediction for more slots, threads or CPUs than were measured: it assumes that tasks need "
                "the same CPU time there, and that no lock, disk or memory bus that the recording could not show "
                "becomes the limit.\n");
    fputc('\n', out);
}

static void put_text(const weir_prediction *p)
{
    prose text;
    weir_error error = { 0 };
    prose_open(&text);
    put_prose(text.file, p);
    prose_end(&text, WEIR_OK, &error); /* tool_finish() reports that it failed */
    put_nodes(TABLE_TEXT, p);
}

/* --threads and --cpus are settings, too. Returns the number of all. */
static size_t add_shorthands(void)
{
    static char threads[32], cpus[32];
    setting_list *list = &settings.set;
    size_t count = list->count;
    snprintf(threads, sizeof threads, "threads=%u", settings.threads);
    snprintf(cpus, sizeof cpus, "cpus=%.3f", settings.cpus);
    if (settings.threads)
        list->all[count++] = threads;
    if (settings.cpus > 0)
        list->all[count++] = cpus;
    return count;
}

static int run(tool_call *call)
{
    weir_recording *recording;
    weir_filter filter;
    weir_error error = { 0 };
    weir_prediction *prediction = NULL;
    int exit_status = tool_open(call, call->words[0], &recording, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    weir_whatif_options options = { .settings = settings.set.all, .num_settings = add_shorthands() };
    options.seed = (uint64_t)settings.seed;
    options.resamples = (uint32_t)settings.resamples;
    int status = weir_whatif(recording, &filter, &options, &prediction, &error);
    weir_recording_close(recording);
    if (status == WEIR_ENOTFOUND)
        return tool_nothing(call, "%s", tool_no_records(call));
    if (status == WEIR_EINVAL)
        return tool_refuse(call, "%s", error.message);
    if (status != WEIR_OK)
        return tool_fail_early(call, &error);
    if (tool_format(call) == TABLE_JSON)
        put_json(prediction);
    else if (tool_format(call) == TABLE_CSV)
        put_nodes(TABLE_CSV, prediction);
    else
        put_text(prediction);
    weir_prediction_free(prediction);
    return tool_finish(call);
}

const tool_command tool_whatif = {
    .name = "whatif",
    .words = "[DB]",
    .max_words = 1,
    .summary = "predict the throughput of a run with other settings",
    .help = "Simulates the recorded pipeline with other settings: more slots or threads, other queues, faster tasks, "
            "another machine. The simulation follows the rules of the engine, with the recorded task times, CPU "
            "shares, skips, failures, batches, routes and merges. The default is the last run.\n\n"
            "Settings of --set, where STAGE is a name such as decode or 0:1:decode[10]:\n\n"
            "  threads=N, cpus=N       as --threads and --cpus\n"
            "  background=N            threads of other programs that compete for the CPUs\n"
            "  STAGE.concurrency=N     slots\n"
            "  STAGE.threads=N         private threads; 0 = the pool's\n"
            "  STAGE.queue_items=N     capacity of its output queue; .queue_bytes=N\n"
            "  STAGE.output_order=W    completion or input\n"
            "  ROUTE.look_ahead_items=N  items that it may set aside; 0 = none\n"
            "  STAGE.time=T            length of a task: 5ms, or 0.5x for half of what\n"
            "                          was recorded; .cpu_time and .wait_time change a\n"
            "                          part of it. The sink's name stands for the consumer\n\n"
            "The range holds 95 % of runs as long as the recorded one, by simulations with laps drawn at random, and "
            "the error of the model at the recorded settings. If tasks may have waited for a lock, or other programs "
            "for the same CPUs, it holds both explanations. A prediction for more threads or CPUs than were recorded "
            "assumes that nothing unseen, such as the memory bus, becomes the limit. docs/whatif.md explains the "
            "model and its limits.\n\n"
            "--json prints the whole prediction as one object; --csv prints the table of the nodes.",
    .examples = "weir whatif --set decode.concurrency=8 --threads 4 --cpus 16\n"
                "# what a scaler of half the cost would bring, next to twice the slots\n"
                "weir whatif --set decode.cpu_time=0.8x --set decode.concurrency=20\n"
                "# a machine with 64 cores\n"
                "weir whatif --set decode.concurrency=256 --threads 64 --cpus 64 --json\n",
    .shared = TOOL_DB | TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
