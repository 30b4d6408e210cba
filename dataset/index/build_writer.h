/* Writes the rows of a build into the index. Private to this room; on the thread that called weir_dataset_build(). */
#ifndef DATASET_INDEX_BUILD_WRITER_H
#define DATASET_INDEX_BUILD_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <weir/dataset.h>
#include <weir/files.h>
#include <weir/item.h>

#include "dataset/index/build_archives.h"
#include "dataset/index/build_list.h"

/* Used by the calling thread only, except `look` and `members`. */
typedef struct index_build {
    const char *path;            /* of memory: for messages */
    weir_dataset_memory *memory; /* NULL = a file */
    const weir_dataset_build_options *options;
    char *root; /* absolute: the index may be opened from elsewhere; "" = a list */
    sqlite3 *db;
    sqlite3_stmt *put_clip, *put_packets, *drop_packets;
    build_look look;
    seen_rows written;
    build_members members;
    weir_directory_counts listed;
    weir_dataset_progress progress;
    uint64_t num_skipped;        /* by the lookup stage: unchanged */
    uint64_t num_unchanged_urls; /* that the probe has only opened */
    bool is_in_transaction;
    bool has_changed;
    int64_t next_write_ns, next_tell_ns;
    weir_error *error;
} index_build;

/* Functions that return a status return WEIR_OK, or the failure with *self->error filled. */

/* The statements of the open index, self->db, and the connection of the lookup stage. */
int weir__build_prepare(index_build *self);

/* Writes all rows of the file that was probed (a weir_probe_result), within a transaction; nothing if it is unchanged. */
int weir__build_put_clip(index_build *self, const weir_item *item);

/* Writes the archives that cannot be used, as clips that cannot. The pipeline has ended. */
int weir__build_put_broken_archives(index_build *self);

/* Writes the paths of files that are unchanged, but are listed under another signature. The pipeline has ended. */
int weir__build_put_renamed(index_build *self);

/* Ends the transaction, if there is one. */
int weir__build_commit(index_build *self);

/* Removes the rows of files that are gone, numbers the clips, and marks the index as complete. */
int weir__build_finish(index_build *self, bool was_complete);

void weir__build_free_statements(index_build *self);

#endif
