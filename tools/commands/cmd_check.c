/* weir check: checks that a database is intact and its metrics are consistent. */
#include <inttypes.h>
#include <stdio.h>

#include <weir/query.h>

#include "tools/commands/command_table.h"

static struct settings {
    bool quick;
    bool verbose;
} settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("quick", quick, option_flag),
      .help = "do not compare indexes with their tables; much faster on large files" },
    { ROW("verbose", verbose, option_flag), .letter = 'v', .help = "also list the checks that passed for each run" },
    { 0 },
};

static const table_column columns[] = {
    { "level", "result", TABLE_WORDS },
    { "run_id", "run", TABLE_COUNT },
    { "check", "check", TABLE_WORDS },
    { "text", "finding", TABLE_WORDS },
};

typedef struct findings {
    table *t;
    bool all; /* also passed checks of single runs */
    int64_t num_faults;
} findings;

static void add_finding(void *self, const weir_finding *finding)
{
    static const char *const levels[] = { "ok", "note", "FAULT" };
    findings *found = self;
    found->num_faults += finding->level == WEIR_FINDING_FAULT;
    if (finding->level == WEIR_FINDING_OK && finding->run_id && !found->all)
        return;
    table_words(found->t, levels[finding->level]);
    table_known(found->t, finding->run_id);
    table_words(found->t, finding->check);
    table_words(found->t, finding->text);
}

static int check(const tool_call *call, weir_recording *recording)
{
    weir_error error = { 0 };
    table_format format = tool_format(call);
    findings found = { .all = settings.verbose || format != TABLE_TEXT };
    found.t = table_begin(stdout, format, TABLE_COLUMNS(columns));
    int status = weir_database_check(recording, settings.quick, add_finding, &found, &error);
    table_end_alone(found.t);
    if (status != WEIR_OK)
        return tool_fail(call, &error);
    if (format == TABLE_TEXT && found.num_faults)
        printf("\n%" PRId64 " %s\n", found.num_faults, found.num_faults == 1 ? "fault" : "faults");
    else if (format == TABLE_TEXT)
        puts("\nNo faults found.");
    int exit_status = tool_finish(call);
    return exit_status == TOOL_DONE && found.num_faults ? TOOL_FAILED : exit_status;
}

static int run(tool_call *call)
{
    weir_recording *recording;
    int exit_status = tool_open(call, call->words[0], &recording, NULL);
    if (exit_status != TOOL_DONE)
        return exit_status;
    exit_status = check(call, recording);
    weir_recording_close(recording);
    return exit_status;
}

const tool_command tool_check = {
    .name = "check",
    .words = "[DB]",
    .max_words = 1,
    .summary = "check that a database is intact and consistent",
    .help = "Checks the schema, the file, and that every row belongs to a run. Then checks that the metrics of each "
            "run are consistent: histograms with the counts and mean times of tasks and items, busy and waiting "
            "times with slots x time, each lap with the previous one, failed tasks with their records, items put "
            "into a queue with items taken out. Entries that the writer had to drop are a fault, because the metrics "
            "lack them; a run that has not ended is a note.\n\n"
            "Nothing is repaired. SQLite's own tools can recover data from a damaged file: sqlite3 DB .recover.\n\n"
            "Exit status 1 means that there are faults.",
    .examples = "weir check\n",
    .shared = TOOL_DB | TOOL_FORMAT,
    .options = rows,
    .settings = &settings,
    .run = run,
};
