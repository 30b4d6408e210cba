/* weir summary: the end screen of weir record, or every metric, for any selection of records. */
#include <weir/summary.h>
#include <weir/verdict.h>

#include <inttypes.h>
#include <stddef.h>

#include "tools/cli/prose.h"
#include "tools/commands/command_table.h"
#include "tools/view/metric_table.h"
#include "tools/view/record_table.h"
#include "tools/view/run_screen.h"

static struct {
    bool is_full;
} settings;

static const option_row rows[] = {
    { .name = "full",
      .kind = &option_flag,
      .excludes = "json",
      .offset = offsetof(__typeof__(settings), is_full),
      .help = "print all metrics of each stage, queue, pool, span and counter, in SPDL's form" },
    { 0 },
};

/* An object: the database, its runs, stages, queues, … */
static int put_json(weir_recording *recording, const weir_filter *filter, const weir_totals *totals,
                    weir_error *error)
{
    json_print(stdout, "{'database': %s", weir_recording_path(recording));
    if (weir_recording_lacks(recording))
        json_print(stdout, ", 'note': %s", weir_recording_lacks(recording));
    json_print(stdout, ", 'runs': ");
    int status = record_table(stdout, TABLE_JSON, RECORD_TABLE_RUNS, recording, filter, NULL, error);
    fputs(", ", stdout);
    metric_put_totals(stdout, totals);
    puts("}");
    return status;
}

/* What is said of a run without laps, which a run that was killed early is. */
static int refuse_empty(const tool_call *call, weir_recording *recording, const weir_filter *filter,
                        weir_error *error)
{
    weir_run_record run;
    if (filter->run_id == WEIR_ALL_RUNS || tool_has_filter(call) ||
        weir_recording_find_run(recording, filter->run_id, &run, NULL) != WEIR_OK || run.has_ended)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "%s", tool_no_records(call));
    const char *state = weir_run_state_name(weir_run_state_of(&run));
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "run %" PRId64 " has recorded no lap; its state is: %s",
                          run.run_id, state);
}

static int refuse_csv(const tool_call *call)
{
    return tool_format(call) == TABLE_CSV
               ? tool_refuse(call, "--csv: weir query --by stage --csv has the stages, --by queue the queues, ...")
               : TOOL_DONE;
}

static int answer(const tool_call *call, weir_recording *recording, weir_filter *filter, weir_error *error)
{
    weir_totals totals;
    filter->no_replay = !filter->phase;
    int status = weir_totals_read(recording, filter, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, error);
    if (status != WEIR_OK)
        return status;
    bool found_any = totals.of[WEIR_SUBJECT_STAGE].count + totals.of[WEIR_SUBJECT_QUEUE].count > 0;
    if (tool_format(call) == TABLE_JSON)
        status = put_json(recording, filter, &totals, error);
    else if (found_any && settings.is_full) {
        prose text;
        prose_open(&text);
        status = weir_summary_write(text.file, recording, filter, &totals, weir_verdict_write_limit, error);
        status = prose_end(&text, status, error);
    } else if (found_any)
        status = run_screen_print(recording, filter, &totals, call->program, error);
    weir_totals_free(&totals);
    return status == WEIR_OK && !found_any ? refuse_empty(call, recording, filter, error) : status;
}

const tool_command tool_summary = {
    .name = "summary",
    .words = "[DB]",
    .max_words = 1,
    .summary = "print the metrics of a run",
    .help =
        "Prints what happened in a run, in at most twenty lines, as weir record does at its end: how many items "
        "came out, at which rate and with how much of the CPUs and the memory, what limits the run and what would "
        "help, what the stages did, how full the queues were, and why items failed. Figures that were not recorded "
        "are left out. --full prints every metric, stage by stage and queue by queue, then sources, routes, "
        "merges, sinks and thread pools. The default is the last run.\n\n"
        "Averages and percentiles are those of all tasks or items of the selected laps together, also over "
        "several runs, ranks and nodes. Slot time shows what a stage's slots did: a stage that is mostly busy "
        "limits the run. If it mostly waits for input, the limit is upstream; for room, downstream; for a "
        "thread, the pool is too small. weir explain draws such conclusions, with their evidence.\n\n"
        "--json prints one object with runs, stages, flow, queues and pools. CSV is what weir query --by stage, --by "
        "queue and so on are for.",
    .examples = "weir summary\n"
                "weir summary --db run.db --full\n"
                "# the decoders of all runs together, without the first ten minutes\n"
                "weir summary --run all --name decode --since +10m\n"
                "weir summary --json | jq '.stages[] | {name, p99_time}'\n",
    .shared = TOOL_DB | TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .check = refuse_csv,
    .answer = answer,
};
