/*
 * The options as a table for completion.awk, which makes completions for shells of it. It has one line for each
 * subcommand and each option. The columns are subcommand, --name, --alias, -letter, value and text, separated by
 * tabs. A subcommand's own line has no name. The value is empty (the option takes none), "file", "folder", "any", or
 * "=" and the choices.
 */
#include <stdio.h>
#include <string.h>

#include "tools/cli/command.h"

static void put_value(const option_row *row)
{
    if (row->choices) {
        putchar('=');
        for (size_t i = 0; row->choices[i]; i++)
            printf("%s%s", i ? " " : "", row->choices[i]);
    } else if (row->argument)
        fputs(row->kind->complete ? row->kind->complete : "any", stdout);
}

static void put_option(const tool_command *command, const option_row *row)
{
    printf("%s\t--%s\t%s%s\t", command->name, row->name, row->alias ? "--" : "", row->alias ? row->alias : "");
    if (row->letter)
        printf("-%c", row->letter);
    putchar('\t');
    put_value(row);
    printf("\t%s\n", row->help);
}

static void put_command(const tool_command *command)
{
    printf("%s\t\t\t\t\t%s\n", command->name, command->summary);
    tool_shared shared;
    option_set sets[TOOL_MAX_SETS];
    size_t num_sets = tool_option_sets(command, &shared, sets);
    for (size_t i = 0; i < num_sets; i++)
        for (const option_row *row = sets[i].rows; row->name; row++)
            put_option(command, row);
}

void tool_print_completion(void)
{
    for (size_t i = 0; tool_commands[i]; i++)
        put_command(tool_commands[i]);
}
