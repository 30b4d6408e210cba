/* The man page weir.1, from the tables that --help comes from. */
#include <stdio.h>
#include <string.h>

#include <weir/version.h>

#include "command.h"
#include "filter_options.h"

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

static void put_shared(const tool_command *command)
{
    unsigned shared = command->shared;
    if (shared & TOOL_FILTER)
        puts(".PP\nAccepts the filter options (see \\fBFilters\\fR below).");
    else if (shared & TOOL_RUN)
        put_rows(tool_run_rows);
    if (shared & TOOL_FORMAT)
        put_rows(tool_format_rows);
}

static void put_command(const tool_command *command)
{
    printf(".SS \"weir %s %s\"\n", command->name, command->words);
    put_paragraphs(command->help);
    put_rows(command->options);
    put_rows(command->more.rows);
    put_shared(command);
    puts(".PP\nExamples:\n.PP\n.nf\n.RS");
    put_lines(command->examples, strlen(command->examples));
    puts(".RE\n.fi");
}

void tool_print_manual(void)
{
    printf(".TH WEIR 1 \"\" \"weir %s\"\n", weir_version());
    puts(".SH NAME\nweir \\- decode datasets, record the statistics, and show them\n"
         ".SH SYNOPSIS\n.B weir\n.I subcommand arguments\n.RI [ options ]\n"
         ".SH DESCRIPTION");
    put_paragraphs(tool_description);
    puts(".SH OPTIONS");
    put_rows(tool_help_rows); /* of each subcommand, and of weir itself */
    put_row(&(option_row){ .name = "version", .help = "print the version and exit" });
    puts(".SH SUBCOMMANDS");
    for (size_t i = 0; tool_commands[i]; i++)
        put_command(tool_commands[i]);
    puts(".SH FILTERS");
    put_paragraphs(tool_filter_help);
    put_rows(tool_filter_rows);
    puts(".SH EXIT STATUS");
    for (size_t i = 0; tool_exit_statuses[i].meaning; i++) {
        printf(".TP\n.B %d\n", tool_exit_statuses[i].status);
        put_text(tool_exit_statuses[i].meaning);
    }
    puts(".SH FILES");
    put_paragraphs(tool_files);
    puts(".SH SEE ALSO\n.BR sqlite3 (1),\n.BR gnuplot (1),\n.BR promtool (1),\n.BR weir\\-bench (1)");
}
