/* Which files earlier runs have finished, as their databases say. */
#ifndef TOOLS_RECORD_RECORD_ENDED_H
#define TOOLS_RECORD_RECORD_ENDED_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/item.h>
#include <weir/query.h>

/* A file that is finished: its identity (weir_identity). */
typedef struct record_end {
    char *address;
    uint64_t occurrence;
} record_end;

/* All-zero is empty. */
typedef struct record_ended {
    record_end *ends; /* sorted */
    size_t num_ends;
    uint64_t num_records;
    uint64_t num_unnamed;   /* tasks in the laps of which there is no record: not every file was recorded */
    uint64_t num_tasks;     /* in the laps */
    uint64_t num_failures;  /* of these */
    bool leaves_out_failed; /* set it before reading: files of which there is only a failure are not finished */
} record_ended;

/* Adds the files that were decoded or failed in the runs of a database that match the filter (NULL = all). */
int record_ended_read(record_ended *ended, weir_recording *recording, const weir_filter *filter, weir_error *error);

/* The same of all runs of the database at `path` and of those of ranks beside it. WEIR_ENOTFOUND if there is none. */
int record_ended_read_all(record_ended *ended, const char *path, weir_error *error);

/* Finds the databases of ranks beside the one at `path`; call globfree() in any case. */
int record_rank_databases(const char *path, glob_t *found, weir_error *error);

/* Whether the file is finished. ended NULL: false. */
bool record_ended_has(const record_ended *ended, weir_identity identity);

/* How many files are finished; one that several runs have finished counts once. */
size_t record_ended_count(const record_ended *ended);

void record_ended_free(record_ended *ended);

/* As a pattern of glob() in which all characters stand for themselves; to be freed. */
char *record_escape_pattern(const char *path);

/* "run.db" is "run.rank3.db" for rank 3, or "run.rank*.db" for "*". The caller frees it. */
char *record_rank_path(const char *path, const char *rank);

#endif
