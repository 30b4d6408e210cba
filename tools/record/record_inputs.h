/* Where the paths come from: folders that are listed, and given paths and URLs. */
#ifndef RECORD_INPUTS_H
#define RECORD_INPUTS_H

#include <weir/directory.h>

#include "record_settings.h"

typedef struct record_inputs {
    weir_directory_config *folders;
    weir_directory_counts *counts; /* of each folder, counted by its source */
    size_t num_folders;
    const char **paths; /* files and URLs */
    size_t num_paths;
    char *list; /* the text of --list, which paths points into */
} record_inputs;

/* Returns 0, or reports the error on stderr and returns the exit status 2: an input is missing, is not a file,
   folder or URL, or there is no file to decode. Free `inputs` in any case. */
int record_inputs_open(const record_settings *settings, record_inputs *inputs);

/* How many files there are; this takes as long as listing the folders. */
uint64_t record_inputs_count(const record_inputs *inputs);

/* How many folders could not be read, or not to the end, once the run has ended. */
uint64_t record_inputs_unreadable(const record_inputs *inputs);

void record_inputs_free(record_inputs *inputs);

#endif
