/* The input files of a bench. */
#ifndef BENCH_HARNESS_CLIP_FILES_H
#define BENCH_HARNESS_CLIP_FILES_H

#include <stddef.h>

#include <weir/op.h>

/* A zeroed struct is an empty list. */
typedef struct bench_files {
    char **paths;
    size_t num_paths;
} bench_files;

/*
 * Adds the files below the folder whose names match. root may be NULL (the user gave no folder), which is an error.
 * Returns 0, or -1 after an error message on stderr, also if no file matches. Uses a pipeline, whose threads have
 * ended when this returns.
 */
int bench_files_find(bench_files *files, const char *root, const char *glob);

/* Frees the paths; the list is empty afterwards. */
void bench_files_free(bench_files *files);

/* A source of the paths: endless, in an order that is the same in all runs and does not follow the folder. Its config
   is a bench_files, which must outlive the pipeline. */
extern const weir_op bench_files_op;

#endif
