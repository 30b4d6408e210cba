/* Which files earlier runs have finished, as their databases say. */
#ifndef TOOLS_RECORD_RECORD_ENDED_H
#define TOOLS_RECORD_RECORD_ENDED_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/query.h>

/* All-zero is empty. */
typedef struct record_ended {
    char **labels; /* sorted; those of URLs are without their secrets */
    size_t num_labels;
    char **doubtful; /* sorted labels that several different URLs of the inputs have: none of these is left out */
    size_t num_doubtful;
    uint64_t num_records;
    uint64_t num_unnamed;   /* tasks in the laps of which there is no record: not every file was recorded */
    uint64_t num_tasks;     /* in the laps */
    uint64_t num_failures;  /* of these */
    bool leaves_out_failed; /* set it before reading: files of which there is only a failure are not finished */
} record_ended;

/* Adds the files that were decoded or failed in the runs of a database that match the filter (NULL = all). */
int record_ended_read(record_ended *ended, weir_reader *reader, const weir_filter *filter, weir_error *error);

/* The same of all runs of the database at `path` and of those of ranks beside it. WEIR_ENOTFOUND if there is none. */
int record_ended_read_all(record_ended *ended, const char *path, weir_error *error);

/* Finds the databases of ranks beside the one at `path`; call globfree() in any case. */
int record_rank_databases(const char *path, glob_t *found, weir_error *error);

/* Finds out which paths only differ in what labels hide. occurrences: of each path, how many equal ones have a lower
   number, in any order. */
void record_ended_compare_inputs(record_ended *ended, const char *const *paths, size_t num_paths,
                                 size_t *occurrences);

/* How many times the file was finished. ended NULL is 0. */
size_t record_ended_count(const record_ended *ended, const char *path);
void record_ended_free(record_ended *ended);

/* As a pattern of glob() in which all characters stand for themselves; to be freed. */
char *record_escape_pattern(const char *path);

/* "run.db" is "run.rank3.db" for rank 3, or "run.rank*.db" for "*". The caller frees it. */
char *record_rank_path(const char *path, const char *rank);

#endif
