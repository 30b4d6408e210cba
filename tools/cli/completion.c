/*
 * Completion for bash, from the tables that --help comes from: one function, with a case for each subcommand that lists
 * its options, and one for each option that has choices or takes a file.
 */
#include <stdio.h>
#include <string.h>

#include "command.h"

static void put_names(const option_row *row)
{
    printf(" --%s", row->name);
    if (row->alias)
        printf(" --%s", row->alias);
    if (row->letter)
        printf(" -%c", row->letter);
}

static void put_options(const tool_command *command)
{
    tool_shared shared;
    option_set sets[TOOL_MAX_SETS];
    size_t num_sets = tool_option_sets(command, &shared, sets);
    printf("        %s) options=\"", command->name);
    for (size_t i = 0; i < num_sets; i++)
        for (const option_row *row = sets[i].rows; row->name; row++)
            put_names(row);
    puts(" \" ;;");
}

static void put_pattern(const tool_command *command, const option_row *row)
{
    printf("        %s:--%s", command->name, row->name);
    if (row->alias)
        printf("|%s:--%s", command->name, row->alias);
    if (row->letter)
        printf("|%s:-%c", command->name, row->letter);
    fputs(") ", stdout);
}

/* Completes the value of an option: one of its choices, a file or a folder; nothing for other values. */
static void put_values(const tool_command *command, const option_row *row)
{
    if (!row->argument)
        return;
    put_pattern(command, row);
    if (row->choices) {
        fputs("COMPREPLY=($(compgen -W \"", stdout);
        for (size_t i = 0; row->choices[i]; i++)
            printf("%s%s", i ? " " : "", row->choices[i]);
        puts("\" -- \"$word\")); return ;;");
    } else if (row->kind->complete && strcmp(row->kind->complete, "folder") == 0)
        puts("compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\")); return ;;");
    else if (row->kind->complete)
        puts("compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")); return ;;");
    else
        puts("return ;;");
}

static void put_all_values(const tool_command *command)
{
    tool_shared shared;
    option_set sets[TOOL_MAX_SETS];
    size_t num_sets = tool_option_sets(command, &shared, sets);
    for (size_t i = 0; i < num_sets; i++)
        for (const option_row *row = sets[i].rows; row->name; row++)
            put_values(command, row);
}

void tool_print_completion(void)
{
    puts("# Completion of weir for bash.\n"
         "_weir()\n{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options\n"
         "    COMPREPLY=()\n"
         "    if ((COMP_CWORD == 1)) || [[ ${COMP_WORDS[1]} == help ]]; then");
    fputs("        COMPREPLY=($(compgen -W \"", stdout);
    for (size_t i = 0; tool_commands[i]; i++)
        printf("%s ", tool_commands[i]->name);
    puts("help --help --version\" -- \"$word\"))\n        return\n    fi\n"
         "    case ${COMP_WORDS[1]}:$before in");
    for (size_t i = 0; tool_commands[i]; i++)
        put_all_values(tool_commands[i]);
    puts("    esac\n"
         "    case ${COMP_WORDS[1]} in");
    for (size_t i = 0; tool_commands[i]; i++)
        put_options(tool_commands[i]);
    puts("        *) return ;;\n    esac\n"
         "    if [[ $word == -* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
         "    else\n"
         "        compopt -o filenames\n"
         "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "    fi\n}\ncomplete -F _weir weir");
}
