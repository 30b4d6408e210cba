/* The man pages weir.1 and weir-SUBCOMMAND.1, from the tables that --help comes from. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <weir/version.h>

#include "tools/cli/command.h"
#include "tools/cli/filter_options.h"

/* Text for roff: escapes backslashes, and dashes so that they can be copied from the page. */
static void put_escaped(const char *text, size_t length)
{
    for (size_t i = 0; i < length && text[i]; i++) {
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else
            putchar(text[i]);
    }
}

/* The same as a separate line, which must not look like a request. */
static void put_line(const char *text, size_t length)
{
    if (length && (*text == '.' || *text == '\''))
        fputs("\\&", stdout);
    put_escaped(text, length);
    putchar('\n');
}

static void put_text(const char *text)
{
    put_line(text, strlen(text));
}

static void put_lines(const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end) {
        size_t line = strcspn(text, "\n");
        line = line < (size_t)(end - text) ? line : (size_t)(end - text);
        put_line(text, line);
        text += line + 1;
    }
}

static void put_paragraphs(const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t length = end ? (size_t)(end - text) : strlen(text);
        bool is_kept = *text == ' ';
        puts(is_kept ? ".PP\n.nf" : ".PP");
        put_lines(text, length);
        if (is_kept)
            puts(".fi");
        text += end ? length + 2 : length;
    }
}

static void put_option_name(const char *dashes, const char *name)
{
    fputs("\\fB", stdout);
    put_escaped(dashes, strlen(dashes));
    put_escaped(name, strlen(name));
    fputs("\\fR", stdout);
}

static void put_row(const option_row *row)
{
    puts(".TP");
    if (row->letter) {
        put_option_name("-", (char[]){ row->letter, '\0' });
        fputs(", ", stdout);
    }
    put_option_name("--", row->name);
    if (row->alias) {
        fputs(", ", stdout);
        put_option_name("--", row->alias);
    }
    if (row->argument) {
        fputs(" \\fI", stdout);
        put_escaped(row->argument, strlen(row->argument));
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put_text(row->help);
}

static void put_rows(const option_row *row)
{
    for (; row && row->name; row++) {
        if (row->heading)
            printf(".PP\n%s:\n", row->heading);
        put_row(row);
    }
}

static void put_head(const char *name, const char *title, const char *summary)
{
    printf(".TH %s 1 \"\" \"weir %s\"\n.ad l\n.nh\n.SH NAME\n", title, weir_version());
    put_escaped(name, strlen(name));
    printf(" \\- %s\n", summary);
}

static void put_exit_statuses(void)
{
    puts(".SH EXIT STATUS");
    for (size_t i = 0; tool_exit_statuses[i].meaning; i++) {
        printf(".TP\n.B %d\n", tool_exit_statuses[i].status);
        put_text(tool_exit_statuses[i].meaning);
    }
}

/* weir-record.1, … */
static void put_command_page(const tool_command *command)
{
    char name[64] = "", title[64];
    snprintf(name, sizeof name, "weir-%s", command->name);
    for (size_t i = 0; i < sizeof name; i++)
        title[i] = (char)toupper((unsigned char)name[i]);
    put_head(name, title, command->summary);
    printf(".SH SYNOPSIS\n.B weir %s\n.I %s\n.RI [ options ]\n.SH DESCRIPTION\n", command->name, command->words);
    put_paragraphs(command->help);
    put_paragraphs(tool_made_help(command));
    puts(".SH OPTIONS");
    tool_shared shared;
    option_set sets[TOOL_MAX_SETS];
    size_t num_sets = tool_option_sets(command, &shared, sets);
    for (size_t i = 0; i < num_sets; i++)
        put_rows(sets[i].rows);
    if (command->shared & TOOL_FILTER)
        put_paragraphs(tool_filter_help);
    puts(".SH EXAMPLES\n.nf");
    put_lines(command->examples, strlen(command->examples));
    put_lines(tool_made_examples(command), strlen(tool_made_examples(command)));
    puts(".fi");
    put_exit_statuses();
    puts(".SH SEE ALSO\n.BR weir (1)");
}

/* weir.1 */
static void put_overview(void)
{
    put_head("weir", "WEIR", "decode datasets, record the statistics, and show them");
    puts(".SH SYNOPSIS\n.B weir\n.I subcommand arguments\n.RI [ options ]\n.SH DESCRIPTION");
    put_paragraphs(tool_description);
    puts(".SH OPTIONS");
    put_rows(tool_help_rows); /* of each subcommand, and of weir itself */
    put_row(&(option_row){ .name = "version", .help = "print the version and exit" });
    puts(".SH SUBCOMMANDS\nEach has a page of its own.");
    for (size_t i = 0; tool_commands[i]; i++)
        printf(".TP\n.BR weir\\-%s (1)\n%s\n", tool_commands[i]->name, tool_commands[i]->summary);
    put_exit_statuses();
    puts(".SH FILES");
    put_paragraphs(tool_files);
    puts(".SH SEE ALSO\n.BR sqlite3 (1),\n.BR promtool (1),\n.BR weir\\-bench (1)");
}

void tool_print_manual(const tool_command *command)
{
    if (command)
        put_command_page(command);
    else
        put_overview();
}
