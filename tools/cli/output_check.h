/* What every output of every command has to pass before any work is done: no input and no file of another kind is lost. */
#ifndef TOOLS_CLI_OUTPUT_CHECK_H
#define TOOLS_CLI_OUTPUT_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* What is written. A file that is there is recognised by its content. */
typedef enum output_kind {
    OUTPUT_METRICS, /* OpenMetrics text */
    OUTPUT_TRACE,   /* compressed or not */
    OUTPUT_PAGE,    /* HTML */
    OUTPUT_JSON,
    OUTPUT_CSV,
    OUTPUT_PNG,
    OUTPUT_SVG,
    OUTPUT_PDF,
    OUTPUT_NPY,
    OUTPUT_RAW,      /* has no mark: any file that is not recognised as something else */
    OUTPUT_DATABASE, /* of statistics, or an index; SQLite. It is added to, never replaced */
} output_kind;

/* Of the option --force. */
#define OUTPUT_FORCE_HELP "replace a file of another kind, too; but never one that the command reads"

enum { OUTPUT_PROBLEM_BYTES = 512 };

typedef struct output_rules {
    output_kind kind;
    bool force; /* a file of another kind may be replaced; an input never */
    const char *const
        *inputs; /* files that must stay. With a database, those beside it (-wal, -shm, -journal), too */
    size_t num_inputs;
} output_rules;

/* Whether the path may be written: it is free, a pipe or a device, or a file that may be replaced. False: *problem says
   why not. Links are followed, so that the file behind counts. */
bool output_check(const char *path, const output_rules *rules, char problem[OUTPUT_PROBLEM_BYTES]);

/* Whether there is a folder. */
bool file_is_folder(const char *path);

/* Whether the file is SQLite's, and an index of a dataset (weir index). */
bool file_is_database(const char *path);
bool file_is_index(const char *path);

/* Whether the file begins as a trace does, compressed or not. */
bool file_is_trace(const char *path);

/* Whether the file is text, but no playlist or other text that FFmpeg reads. */
bool file_is_list(const char *path);

/* Whether both paths are the same file, which need not exist yet. */
bool output_is_same_file(const char *path, const char *other);

#endif
