/* weir summary: the text that performance_analysis ends with, of any part of what was recorded. */
#include <weir/summary.h>

#include "commands.h"

static int run(tool_call *call)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    int exit_status = tool_open(call, call->words[0], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    int status = weir_summary_write(stdout, reader, &filter, &error);
    weir_reader_close(reader);
    return status == WEIR_OK ? tool_finish(call) : tool_fail(call, &error);
}

const tool_command tool_summary = {
    .name = "summary",
    .words = "DB",
    .min_words = 1,
    .summary = "the figures of a run as text",
    .help = "Prints what the figures of a run add up to, stage by stage and queue by queue.",
    .examples = "weir summary pipeline_stats.db\n"
                "weir summary pipeline_stats.db --run all --name decode\n",
    .shared = TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .run = run,
};
