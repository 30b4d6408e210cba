/* Where the paths come from: folders that are listed, and given paths and URLs. */
#ifndef TOOLS_RECORD_RECORD_INPUTS_H
#define TOOLS_RECORD_RECORD_INPUTS_H

#include <weir/files.h>

#include <weir/sampler.h>

#include "common/name_count.h"
#include "tools/cli/path_list.h"
#include "tools/record/record_ended.h"
#include "tools/record/record_settings.h"

/* Which files of the inputs this process takes: the same rule in every process. */
typedef struct record_share {
    weir_world world;
    /* By a hash of the identity, not by the number. Then the files that are left are spread over the processes, even
       if only those of one process are left. This also holds if the processes read different states of the databases,
       or sign URLs themselves. */
    bool by_identity;
    record_ended ended;               /* files that are skipped */
    const record_ended *ended_before; /* the same, of earlier runs (NULL = none) */
} record_share;

/* One folder of the inputs. Immutable while sources use it. */
typedef struct record_listing {
    const struct record_inputs *inputs;
    /* The number of the folder. It is added to the numbers of its files, so small folders do not all begin with rank
       0. */
    size_t number;
} record_listing;

typedef struct record_inputs {
    record_share share;
    weir_directory_config *folders;
    weir_directory_counts *counts; /* of each folder, counted by its source */
    record_listing *listings;      /* of each folder, used by its source */
    size_t num_folders;
    const char **paths;        /* files and URLs of the share */
    uint64_t *occurrences;     /* of each of these: its number among those of all_paths with the same identity */
    weir_clip_window *windows; /* of each: its window of the file */
    size_t *rows;              /* of each: that of `clips` */
    size_t num_paths;
    bool has_windows;       /* a start or end is given */
    weir_column *columns;   /* of the paths: the user's, as `clips` has them; NULL = none */
    const char **all_paths; /* of all processes */
    uint64_t *all_occurrences;
    size_t num_all_paths;
    weir_name_counts names; /* of their identities, if there are folders, which may have the same files */
    char *list;             /* the text of --list, which paths points into */
    path_list clips;        /* or its rows */
} record_inputs;

/* Returns 0, or reports the error on stderr and returns the exit status 2. The errors: an input is missing, or is not
   a file, folder or URL; or there is no file to decode. inputs->share has been set and selects files; it may select
   none. Free `inputs` in any case. */
int record_inputs_open(const record_settings *settings, record_inputs *inputs);

/* Calls `take` for each file of a share: of inputs->share or of another process. Path and occurrence are the identity. */
typedef void record_file_function(void *self, const char *path, uint64_t occurrence);
void record_inputs_each(const record_inputs *inputs, const record_share *share, record_file_function *take,
                        void *self);

/* How many files there are in the share; this takes as long as listing the folders. */
uint64_t record_inputs_count(const record_inputs *inputs);

/* Once the run has ended: tells how many folders could not be read, or not to the end. Returns the exit status, which is
   not RECORD_DONE then. */
int record_inputs_tell_unreadable(const record_settings *settings, const record_inputs *inputs, int exit_status);

void record_inputs_free(record_inputs *inputs);

/* The names of the files that are decoded. */
const char *record_glob(const record_settings *settings);

#endif
