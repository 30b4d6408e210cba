/* --help, filled to a terminal's width. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "filter_options.h"

enum { WIDTH = 80, HELP_COLUMN = 30 };

/* Prints words from `text` up to `end`, each line indented; the first one is at column `at`. */
static void fill(const char *text, const char *end, size_t indent, size_t at)
{
    bool first = true;
    while (text < end) {
        size_t length = strcspn(text, " \n");
        if (length > (size_t)(end - text))
            length = (size_t)(end - text);
        if (!first && at + 1 + length > WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (!first && length) {
            putchar(' ');
            at++;
        }
        fwrite(text, 1, length, stdout);
        at += length;
        first = false;
        text += length;
        text += strspn(text, " \n");
    }
    putchar('\n');
}

static void print_paragraphs(const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        const char *next = end ? end + 2 : text + strlen(text);
        end = end ? end : next;
        if (*text == ' ')
            printf("%.*s\n", (int)(end - text), text);
        else
            fill(text, end, 0, 0);
        putchar('\n');
        text = next;
    }
}

static void print_row(const option_row *row)
{
    char left[128];
    size_t length = 0;
    if (row->letter)
        length += (size_t)snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name);
    else
        length += (size_t)snprintf(left, sizeof left, "  --%s", row->name);
    if (row->alias)
        length += (size_t)snprintf(left + length, sizeof left - length, ", --%s", row->alias);
    if (row->argument)
        length += (size_t)snprintf(left + length, sizeof left - length, " %s", row->argument);
    fputs(left, stdout);
    if (length + 2 > HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", (int)(HELP_COLUMN - length), "");
    fill(row->help, row->help + strlen(row->help), HELP_COLUMN, HELP_COLUMN);
}

const char tool_description[] =
    "Looks into what runs have recorded in a database: one that has ended, one that is running right now, or one "
    "that was killed. Databases are only read, but for merge, which adds to its first argument, and check "
    "--migrate.\n\n"
    "Figures are named as in the database. A task is one run of a stage's operation on one item; a stage's slots are "
    "busy, wait for input, for a thread or for room behind them; a queue is named for the stage that fills it. A lap "
    "is one interval of the statistics, --log-interval of the run.";

const char tool_choosing[] =
    "Conditions add up. Laps count whole: one that overlaps with a range of time or of steps, however little, "
    "belongs to it. Failures, events and items have a time, and the phase and step of the lap around it.";

const char tool_files[] =
    "A database is a file of SQLite, with what was written last in two files beside it (-wal, -shm) while a run "
    "writes, or after one was killed: copy all three, or none is complete. Tables: task_stats, queue_stats, "
    "event_stats, task_failures, item_stats, run, stage.";

const tool_exit_status tool_exit_statuses[] = {
    { TOOL_DONE, "done" },
    { TOOL_FAILED, "reading or writing failed, or a check found faults" },
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
    fill(line, line + strlen(line), 0, 0);
}

static void print_command_help(const tool_command *command)
{
    tool_shared shared;
    option_set sets[TOOL_MAX_SETS];
    size_t num_sets = tool_option_sets(command, &shared, sets);
    printf("Usage: weir %s %s [options]\n\n", command->name, command->words);
    print_paragraphs(command->help);
    puts("Options:");
    for (size_t i = 0; i < num_sets; i++)
        for (const option_row *row = sets[i].rows; row->name; row++)
            print_row(row);
    puts("\nExamples:");
    for (const char *line = command->examples; *line; line += strcspn(line, "\n") + 1)
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
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
    print_paragraphs(tool_description);
    puts("Subcommands:");
    for (size_t i = 0; tool_commands[i]; i++)
        printf("  %-12s%s\n", tool_commands[i]->name, tool_commands[i]->summary);
    puts("\nweir SUBCOMMAND --help tells more; weir --version, the version.\n");
    print_exit_statuses();
}
