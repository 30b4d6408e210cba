/* weir summary: the text that performance_analysis ends with, of any part of what was recorded. */
#include <weir/summary.h>

#include "command_table.h"
#include "metric_table.h"
#include "record_table.h"

/* An object: the database, its runs, stages and queues. */
static int put_json(weir_reader *reader, const weir_filter *filter, const weir_totals *totals, weir_error *error)
{
    static const figures_keys keys = { .name = true };
    table_column columns[FIGURES_MAX_COLUMNS];
    fputs("{\"database\": ", stdout);
    json_string(stdout, weir_reader_path(reader));
    fputs(", \"runs\": ", stdout);
    int status = record_table(stdout, TABLE_JSON, RECORD_TABLE_RUNS, reader, filter, NULL, error);
    fputs(", \"stages\": ", stdout);
    table *t = table_begin(stdout, TABLE_JSON, columns, figures_task_columns(columns, &keys));
    for (size_t i = 0; i < totals->num_tasks; i++)
        figures_put_task(t, &keys, &totals->tasks[i], 0);
    table_end(t);
    fputs(", \"queues\": ", stdout);
    t = table_begin(stdout, TABLE_JSON, columns, figures_queue_columns(columns, &keys));
    for (size_t i = 0; i < totals->num_queues; i++)
        figures_put_queue(t, &keys, &totals->queues[i], 0);
    table_end(t);
    puts("}");
    return status;
}

static void put_csv(const weir_totals *totals)
{
    table_column columns[FIGURES_MAX_COLUMNS];
    table *t = table_begin(stdout, TABLE_CSV, columns, figures_both_columns(columns));
    for (size_t i = 0; i < totals->num_tasks; i++)
        figures_put_both(t, &totals->tasks[i], NULL);
    for (size_t i = 0; i < totals->num_queues; i++)
        figures_put_both(t, NULL, &totals->queues[i]);
    table_end(t);
}

static int put_summary(const tool_call *call, weir_reader *reader, const weir_filter *filter, bool *found_any,
                       weir_error *error)
{
    weir_totals totals;
    int status = weir_totals_read(reader, filter, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, error);
    if (status != WEIR_OK)
        return status;
    *found_any = totals.num_tasks + totals.num_queues > 0;
    if (tool_format(call) == TABLE_JSON)
        status = put_json(reader, filter, &totals, error);
    else if (tool_format(call) == TABLE_CSV)
        put_csv(&totals);
    else if (*found_any)
        status = weir_summary_write_totals(stdout, reader, filter, &totals, error);
    weir_totals_free(&totals);
    return status;
}

static int run(tool_call *call)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    bool found_any = false;
    int exit_status = tool_open(call, call->words[0], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    int status = put_summary(call, reader, &filter, &found_any, &error);
    weir_reader_close(reader);
    if (status != WEIR_OK)
        return tool_fail(call, &error);
    exit_status = tool_finish(call);
    return exit_status == TOOL_DONE && !found_any ? tool_nothing(call, TOOL_NO_LAPS) : exit_status;
}

const tool_command tool_summary = {
    .name = "summary",
    .words = "DB",
    .min_words = 1,
    .summary = "the figures of a run, as text",
    .help = "Prints what the figures of a run add up to, stage by stage and queue by queue: the text that "
            "performance_analysis ends with. Without --run it is the last run's.\n\n"
            "Means are weighted by what they are means of, and percentiles come from the histograms of all laps "
            "together, also over several runs, ranks and nodes. Slot time says what the stage's slots did: mostly "
            "busy is a stage that limits the pipeline, mostly waiting for input one whose predecessor does, mostly "
            "waiting for room one whose successor does, mostly waiting for a thread a pool that is too small.\n\n"
            "With --json it is one object with runs, stages and queues, with --csv one table in which the column "
            "kind tells stages from queues.",
    .examples = "weir summary pipeline_stats.db\n"
                "# the decoders of all runs together, but for their first ten minutes\n"
                "weir summary pipeline_stats.db --run all --name decode --since +10m\n"
                "weir summary pipeline_stats.db --json | jq '.stages[] | {name, p99_time}'\n",
    .shared = TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .run = run,
};
