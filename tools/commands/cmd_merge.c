/* weir merge: copies the runs of several ranks or nodes into one database. */
#include <stdio.h>

#include <weir/query.h>

#include "tools/cli/output_file.h"
#include "tools/commands/command_table.h"

static const table_column columns[] = {
    { "database", "database", TABLE_WORDS },     { "added", "added", TABLE_COUNT },
    { "replaced", "replaced", TABLE_COUNT },     { "present", "already there", TABLE_COUNT },
    { "skipped", "never started", TABLE_COUNT },
};

/* Opens every input before anything is written, so that a wrong name changes nothing. None of them is the output. */
static int check_inputs(const tool_call *call)
{
    int exit_status = output_allow(call, call->words[0], WEIR_OUTPUT_DATABASE, false, 1);
    for (int i = 1; i < call->num_words && exit_status == TOOL_DONE; i++) {
        weir_recording *recording = NULL;
        exit_status = tool_open(call, call->words[i], &recording, NULL);
        weir_recording_close(recording);
    }
    return exit_status;
}

static int merge_all(const tool_call *call, table *t)
{
    for (int i = 1; i < call->num_words; i++) {
        weir_merged merged;
        weir_error error = { 0 };
        if (weir_database_merge(call->words[0], call->words[i], &merged, &error) != WEIR_OK)
            return tool_fail(call, &error);
        table_words(t, call->words[i]);
        table_count(t, merged.added);
        table_count(t, merged.replaced);
        table_count(t, merged.present);
        table_count(t, merged.skipped);
    }
    return TOOL_DONE;
}

static int run(tool_call *call)
{
    int exit_status = check_inputs(call);
    if (exit_status != TOOL_DONE)
        return exit_status;
    table *t = table_begin(stdout, tool_format(call), TABLE_COLUMNS(columns));
    exit_status = merge_all(call, t);
    table_end_alone(t);
    return exit_status == TOOL_DONE ? tool_finish(call) : exit_status;
}

const tool_command tool_merge = {
    .name = "merge",
    .words = "OUT.db IN.db...",
    .min_words = 2,
    .max_words = -1,
    .summary = "merge the runs of several databases into one",
    .help =
        "Copies the runs of the other databases into the first one, which is created if missing and may already hold "
        "runs. A run is identified by node, rank, process, start and command line. If it is already there, it is "
        "left as it is, or replaced if it has new records. So the same command can be repeated, even while the runs "
        "are going on, and nothing counts twice.\n\n"
        "Runs get new numbers. Each database is copied as a whole or not at all; if one fails, the databases before "
        "it stay copied.",
    .examples = "weir merge job.db rank0.db rank1.db rank2.db\n"
                "weir query job.db --by run,node\n"
                "weir summary job.db --run all\n",
    .shared = TOOL_FORMAT,
    .run = run,
};
