/* --help, filled to a terminal's width. */
#include <stdio.h>
#include <string.h>

#include "tools/cli/command.h"
#include "tools/cli/filter_options.h"
#include "tools/cli/option_help.h"

const char tool_description[] =
    "Decodes datasets in a pipeline that records its own statistics, and shows what limits their speed. Begin with "
    "weir record DIR, then weir explain. Runs can be examined while they are running, after their end, and if they "
    "were killed. Only two commands write to databases of runs: record and merge (its first argument).\n\n"
    "Metrics have the names of the database's columns. A task is one run of a stage's operation on one item. A "
    "slot of a stage runs one task at a time: it is busy, or waits for input, for a thread, or for room in the next "
    "queue. A queue is named after the stage that fills it. A lap is one interval of the statistics (--log-interval "
    "of weir record).";

const char tool_filter_help[] =
    "Filters are combined: a record must match all of them. Laps are not split: a lap that overlaps a range of time "
    "or steps belongs to it. Failures, events and items have a time, and the phase and step of the lap at that time.";

const char tool_files[] = "A database is an SQLite file. While a run writes to it, or after a run was killed, the "
                          "latest records are in two more files (-wal, -shm): copy all three. Tables: task_stats, "
                          "queue_stats, event_stats, task_failures, item_stats, run, stage.";

const tool_exit_status tool_exit_statuses[] = {
    { TOOL_DONE, "done" },
    { TOOL_FAILED, "the run, reading or writing failed, or a check found faults" },
    { TOOL_REFUSED, "wrong option, argument or database, and nothing was done" },
    { TOOL_NOTHING, "no records match the filters" },
    { 0, NULL },
};

static void print_exit_statuses(void)
{
    char line[512] = "Exit status:";
    size_t length = strlen(line);
    for (size_t i = 0; tool_exit_statuses[i].meaning; i++)
        length += (size_t)snprintf(line + length, sizeof line - length, "%s %d %s", i ? ";" : "",
                                   tool_exit_statuses[i].status, tool_exit_statuses[i].meaning);
    snprintf(line + length, sizeof line - length, ".");
    help_print_line(line);
}

static void print_examples(const char *line)
{
    for (; *line; line += strcspn(line, "\n") + 1)
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
}

static void print_command_help(const tool_command *command)
{
    tool_shared shared;
    option_set sets[TOOL_MAX_SETS];
    size_t num_sets = tool_option_sets(command, &shared, sets);
    printf("Usage: weir %s %s [options]\n\n", command->name, command->words);
    help_print_paragraphs(command->help);
    help_print_paragraphs(tool_made_help(command));
    options_print(sets, num_sets);
    puts("\nExamples:");
    print_examples(command->examples);
    print_examples(tool_made_examples(command));
    putchar('\n');
    print_exit_statuses();
}

void tool_print_help(const tool_command *command)
{
    if (command) {
        print_command_help(command);
        return;
    }
    puts("Usage: weir SUBCOMMAND ARGUMENTS [options]\n");
    help_print_paragraphs(tool_description);
    puts("Subcommands:");
    for (size_t i = 0; tool_commands[i]; i++) {
        char term[32];
        snprintf(term, sizeof term, "  %s", tool_commands[i]->name);
        help_print_term(term, 14, tool_commands[i]->summary);
    }
    putchar('\n');
    help_print_line("weir SUBCOMMAND --help describes each; weir --version prints the version.");
    putchar('\n');
    print_exit_statuses();
}
