/* Shared by the live log and the export of TensorBoard event files. */
#ifndef STATS_EXPORT_TENSORBOARD_H
#define STATS_EXPORT_TENSORBOARD_H

#include <stdint.h>

#include <weir/status.h>

/*
 * "FOLDER/events.out.tfevents.<started>.<node>.<pid>.<number>.weir", freed by the caller; NULL = out of memory.
 * TensorBoard reads files with tfevents in their name, in the order of their names.
 */
char *weir__tensorboard_path(const char *folder, int64_t started_unix_ns, const char *node_id, int64_t pid,
                             unsigned number);

/* Creates a folder and its parents if missing. Returns 0 or an errno. */
int weir__tensorboard_make_folder(const char *folder);

/* Reports that `folder` cannot be written, for an errno; returns the status. */
int weir__tensorboard_error(weir_error *error, int failure, const char *folder);

/* Creates the folder and its parents. Returns 0 or an errno. */
int weir__tensorboard_make_folder(const char *folder);

#endif
