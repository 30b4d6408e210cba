/*
 * A subcommand of `weir` is described by one table. Dispatch, --help, the man page and the shell completion are derived
 * from it. A new subcommand is a file with such a table, a line in command_table.c and one in CMakeLists.txt.
 */
#ifndef TOOLS_CLI_COMMAND_H
#define TOOLS_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/query.h>
#include <weir/status.h>

#include "tools/cli/filter_options.h"
#include "tools/cli/options.h"
#include "tools/cli/prose.h"
#include "tools/cli/table.h"

enum {
    TOOL_DONE = 0,
    TOOL_FAILED = 1,  /* reading, writing or a program that is needed failed; or check found faults */
    TOOL_REFUSED = 2, /* wrong option, argument or database; nothing was done */
    TOOL_NOTHING = 3, /* no run, or no record that matches the filters */
};

/* Sets of options that several subcommands share; or-ed. All of them have --help. */
enum {
    TOOL_FILTER = 1, /* --run --name --node --rank --since --until --steps --phase --mode --from-phase --until-phase
                        --from-mode --until-mode --every-time --between-steps --section */
    TOOL_FORMAT = 2, /* --json --csv */
    TOOL_RUN = 4,    /* --run alone */
    TOOL_DB = 8,     /* --db, which is the first word if there is none; TOOL_DEFAULT_DB if neither is given */
};

#define TOOL_DEFAULT_DB "pipeline_stats.db" /* where weir record writes */

struct tool_command;

/* One run of a subcommand. */
typedef struct tool_call {
    const struct tool_command *command;
    const char *program; /* how the user called `weir` */
    tool_shared shared;
    char **words; /* the arguments that are not options: min_words to max_words of the command */
    int num_words;
} tool_call;

/* What a command has beside its static table, made of the tables of a library. It lives as long as the program. */
typedef struct tool_made {
    const option_row *options;   /* as in tool_command, of the same settings; NULL = none */
    const char *help, *examples; /* follow those of the command; NULL = nothing */
} tool_made;

typedef struct tool_command {
    const char *name;
    const char *words; /* as the usage shows them: "DB", "OUT.db IN.db..." */
    int min_words;
    int max_words;             /* 0 = as min_words; -1 = any number */
    const char *summary;       /* half a line, no full stop: "the metrics of a run as text" */
    const char *help;          /* paragraphs, separated by empty lines; one that begins with a space is not wrapped */
    const char *examples;      /* one command per line, or "# what the next command does" */
    unsigned shared;           /* TOOL_FILTER | … */
    int64_t default_run;       /* without --run: WEIR_ALL_RUNS, WEIR_LAST_RUN */
    const option_row *options; /* its own options; ends with a row without a name; NULL = none */
    void *settings;            /* the struct that the rows' offsets refer to; holds the defaults */
    const option_set *more;    /* further sets of own options; ends with one without rows; NULL = none */
    const tool_made *(*make)(void); /* NULL = all of it is static; the same at each call */
    int (*run)(tool_call *call);    /* returns TOOL_DONE, … */

    /* Instead of run, for a command that reads the database that is its first argument: check (NULL = none) refuses
       options that contradict each other; answer prints. Its WEIR_ENOTFOUND means that there is nothing to show. */
    int (*check)(const tool_call *call);
    int (*answer)(const tool_call *call, weir_recording *recording, weir_filter *filter, weir_error *error);
} tool_command;

/* command_table.c: all of them, in the order of the help; NULL at the end. */
extern const tool_command *const tool_commands[];

/* The option sets of a command; returns how many. */
enum { TOOL_MAX_SETS = 8 };
size_t tool_option_sets(const tool_command *command, tool_shared *shared, option_set sets[TOOL_MAX_SETS]);

/* Both never NULL: help and examples of a command that follow the static ones. */
const char *tool_made_help(const tool_command *command);
const char *tool_made_examples(const tool_command *command);

/* -- for subcommands -- */

/* "weir summary: …" on stderr. Returns TOOL_REFUSED. */
int tool_refuse(const tool_call *call, const char *format, ...) WEIR_PRINTF(2, 3);

/* Reports a database error; returns its exit status. */
int tool_fail(const tool_call *call, const weir_error *error);

/* The same before any work was done: a damaged database is then a wrong argument. */
int tool_fail_early(const tool_call *call, const weir_error *error);

/* Whether options leave out records of the selected runs. */
bool tool_has_filter(const tool_call *call);

/* Reports that there is nothing to show, as a sentence. Returns TOOL_NOTHING. */
#define tool_nothing(...) (tool_refuse(__VA_ARGS__), TOOL_NOTHING)

/* Why there is nothing to show: the filters, or the run has no such records. */
const char *tool_no_records(const tool_call *call);

/*
 * Opens the database at `path`, and holds it: everything read belongs to one moment. Makes a filter of the shared
 * options: relative times are resolved, and a run that does not exist is refused. After TOOL_DONE, close *recording.
 * filter may be NULL.
 */
int tool_open(const tool_call *call, const char *path, weir_recording **recording, weir_filter *filter);

/* Runs a command that has no run function. */
int tool_answer(const tool_call *call);

/* --json or --csv, or TABLE_TEXT. */
table_format tool_format(const tool_call *call);

/* Flushes stdout. Reports a failed write and returns TOOL_FAILED. */
int tool_finish(const tool_call *call);

/* -- help, man page, completion */

/* help.c: texts that --help and the man page share; paragraphs, as in tool_command.help. */
extern const char tool_description[];
extern const char tool_filter_help[]; /* about the options of TOOL_FILTER */
extern const char tool_files[];

typedef struct tool_exit_status {
    int status;
    const char *meaning; /* NULL ends the table */
} tool_exit_status;
extern const tool_exit_status tool_exit_statuses[];

void tool_print_help(const tool_command *command); /* NULL = of weir itself */

/* man_page.c: as roff; NULL = of weir itself. completion.c: the table that completion.awk reads. */
void tool_print_manual(const tool_command *command);
void tool_print_completion(void);

#endif
