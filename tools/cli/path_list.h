/* Lists of clips with their labels, starts and ends: one path per line, CSV with a header line, or JSON. */
#ifndef TOOLS_CLI_PATH_LIST_H
#define TOOLS_CLI_PATH_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/clip_window.h>

#include "tools/cli/list_columns.h"

typedef struct path_list {
    char **paths;
    char **labels;             /* of each path; NULL = none */
    weir_clip_window *windows; /* of each path */
    size_t num_paths;
    list_columns others; /* of the user's */
} path_list;

/* The names of the columns, or keys. */
typedef struct path_list_names {
    const char *path, *label, *start, *end; /* start and end are in seconds */
    const char *start_frame, *end_frame;
    bool is_fixed; /* there are no options to name others */
} path_list_names;

/*
 * Reads a file: .csv, .tsv, .json (an array of objects or strings), .jsonl; any other has one path per line, unless its first
 * line is a header of CSV. Relative
 * paths are relative to the file's folder. A file may be in several rows. Any other column or key is one of the user's.
 * False: *problem says why. Free the list in any case.
 */
bool path_list_read(const char *file, const path_list_names *names, path_list *list, char problem[512]);

/* Is it a table or JSON, and not a path in each line? By the name of the file, or the first line of the text. */
bool path_list_has_columns(const char *text, const char *file, const path_list_names *names);

/* The same of a text, which is changed. `file` is its name: for messages, for relative paths, and to tell the format; a text whose
   first line has the path's column among others is CSV, whatever the name. */
bool path_list_read_text(char *text, const char *file, const path_list_names *names, path_list *list,
                         char problem[512]);

/* Adds a whole file. path and label are copied; label may be NULL. */
void path_list_add(path_list *list, const char *path, const char *label);

void path_list_free(path_list *list);

#endif
