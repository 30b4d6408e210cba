/* weir: records pipelines and shows what was recorded. Finds the subcommand, reads its options, runs it. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/output.h>
#include <weir/version.h>

#include "common/similar_word.h"
#include "tools/cli/command.h"
#include "tools/cli/prose.h"

static const tool_command *find_command(const char *name)
{
    for (size_t i = 0; tool_commands[i]; i++)
        if (strcmp(tool_commands[i]->name, name) == 0)
            return tool_commands[i];
    return NULL;
}

/* For messages of no subcommand. */
static const tool_call itself = { .command = &(const tool_command){ .name = "" } };

#ifdef WEIR_MEDIA /* relative to the folder of this program */
/* Whether it is about a command of which this program has only the name, or about the options of all. */
static bool needs_media(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    bool takes_command = strcmp(word, "help") == 0 || strcmp(word, "--manual") == 0;
    const tool_command *command = find_command(takes_command && argc > 2 ? argv[2] : word);
    return strcmp(word, "--completion") == 0 || (command && !command->help);
}

/* Becomes weir-media, which has all subcommands. Returns only if that fails. */
static int become_media(char **argv)
{
    char path[PATH_MAX + sizeof WEIR_MEDIA];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    while (length > 0 && path[length - 1] != '/')
        length--;
    snprintf(path + (length > 0 ? length : 0), sizeof WEIR_MEDIA, "%s", WEIR_MEDIA);
    execv(path, argv);
    return tool_refuse(&itself, "cannot run %s: %s", path, strerror(errno));
}
#endif

static int unknown_command(const char *name)
{
    enum { MAX_COMMANDS = 32 };
    const char *names[MAX_COMMANDS];
    size_t num_names = 0;
    for (size_t i = 0; tool_commands[i] && num_names < MAX_COMMANDS; i++)
        names[num_names++] = tool_commands[i]->name;
    const char *similar = weir__most_similar(name, names, num_names);
    if (similar)
        return tool_refuse(&itself, "%s: no such subcommand; did you mean %s? (see weir --help)", name, similar);
    return tool_refuse(&itself, "%s: no such subcommand (see weir --help)", name);
}

static int check_words(tool_call *call, int num_words)
{
    const tool_command *command = call->command;
    if (command->shared & TOOL_DB && call->shared.db && num_words > 0)
        return tool_refuse(call, "%s: not with --db; the database is given once", call->words[0]);
    if (command->shared & TOOL_DB && num_words == 0) {
        static char *path[1];
        path[0] = (char *)(uintptr_t)(call->shared.db ? call->shared.db : TOOL_DEFAULT_DB);
        call->words = path;
        num_words = 1;
    }
    int max_words = command->max_words ? command->max_words : command->min_words;
    if (num_words < command->min_words)
        return tool_refuse(call, "usage: weir %s %s [options] (see weir %s --help)", command->name, command->words,
                           command->name);
    if (max_words >= 0 && num_words > max_words)
        return tool_refuse(call, "%s: one argument too many; usage: weir %s %s [options]", call->words[max_words],
                           command->name, command->words);
    for (int i = 0; i < num_words; i++)
        if (!*call->words[i])
            return tool_refuse(call, "an argument is empty (\"\"); usage: weir %s %s [options]", command->name,
                               command->words);
    call->num_words = num_words;
    return TOOL_DONE;
}

static int run_command(const tool_command *command, const char *program, int argc, char **argv)
{
    tool_call call = { .command = command, .program = program };
    option_set sets[TOOL_MAX_SETS];
    char problem[OPTION_PROBLEM_BYTES];
    size_t num_sets = tool_option_sets(command, &call.shared, sets);
    int num_words = options_parse(sets, num_sets, argc, argv, problem);
    if (num_words < 0)
        return tool_refuse(&call, "%s; usage: weir %s %s [options]", problem, command->name, command->words);
    if (call.shared.help) {
        tool_print_help(command);
        return tool_finish(&call);
    }
    call.words = argv + argc - num_words;
    int exit_status = check_words(&call, num_words);
    if (exit_status == TOOL_DONE)
        exit_status = command->run ? command->run(&call) : tool_answer(&call);
    return exit_status;
}

/* "weir", "weir --help", "weir help summary", "weir --version"; for the build "--manual [summary]", "--completion" */
static int run_itself(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    bool takes_command = strcmp(word, "help") == 0 || strcmp(word, "--manual") == 0;
    const tool_command *command = takes_command && argc > 2 ? find_command(argv[2]) : NULL;
    if (takes_command && argc > 2 && !command)
        return unknown_command(argv[2]);
    if (strcmp(word, "--version") == 0)
        printf("weir %s\n", weir_version());
    else if (strcmp(word, "--manual") == 0)
        tool_print_manual(command);
    else if (strcmp(word, "--completion") == 0)
        tool_print_completion();
    else
        tool_print_help(command);
    int exit_status = tool_finish(&itself);
    return argc < 2 ? TOOL_REFUSED : exit_status;
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
#ifdef WEIR_MEDIA
    if (needs_media(argc, argv))
        return become_media(argv);
#endif
    prose_set_words(argv + 1, argc > 0 ? argc - 1 : 0);
    signal(SIGXFSZ, SIG_IGN); /* writing beyond `ulimit -f` then fails with an error, which is reported */
    if (argc < 2 || argv[1][0] == '-' || strcmp(argv[1], "help") == 0) {
        static const char *const known[] = { "--version", "--manual", "--completion", "--help", "-h", "help" };
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (argc < 2 || strcmp(argv[1], known[i]) == 0)
                return run_itself(argc, argv);
        const char *similar = weir__most_similar(argv[1], known, sizeof known / sizeof known[0]);
        return tool_refuse(&itself, "%s: no such option%s%s%s (see weir --help)", argv[1],
                           similar ? "; did you mean " : "", similar ? similar : "", similar ? "?" : "");
    }
    const tool_command *command = find_command(argv[1]);
    return command ? run_command(command, argv[0], argc - 1, argv + 1) : unknown_command(argv[1]);
}
