/* The files that a bench runs on. */
#ifndef BENCH_FILES_H
#define BENCH_FILES_H

#include <stddef.h>

/* Setting this struct to all-0 makes an empty list. */
typedef struct bench_files {
    char **paths;
    size_t num_paths;
    size_t max_paths;
} bench_files;

/* Adds a copy of the path. 0, or -1 after a line on stderr. */
int bench_files_add(bench_files *files, const char *path);

/*
 * Adds the files below the folder whose names match; root NULL is what a user gives who has forgotten it. 0, or -1 after a
 * line on stderr: also if there is none. A pipeline does it, whose threads have ended when this returns.
 */
int bench_files_find(bench_files *files, const char *root, const char *glob);

/* Frees the paths; the list is empty then. */
void bench_files_free(bench_files *files);

#endif
