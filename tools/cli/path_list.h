/* Lists of clips with their labels: one path per line, CSV with a header line, or JSON. */
#ifndef TOOLS_CLI_PATH_LIST_H
#define TOOLS_CLI_PATH_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct path_list {
    char **paths;
    char **labels; /* of each path; NULL = none */
    size_t num_paths;
} path_list;

/* The names of the columns, or keys. */
typedef struct path_list_names {
    const char *path, *label;
} path_list_names;

/*
 * Reads a file: .csv, .tsv, .json (an array of objects or strings), .jsonl; any other has one path per line. Relative
 * paths are relative to the file's folder. A column or key that is neither the path nor the label, and
 * a path in several rows, are refused by name. False: *problem says why. Free the list in any case.
 */
bool path_list_read(const char *file, const path_list_names *names, path_list *list, char problem[512]);

/* Both are copied; label may be NULL. */
void path_list_add(path_list *list, const char *path, const char *label);

void path_list_free(path_list *list);

#endif
