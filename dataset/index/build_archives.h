/* The archives of a build: the stage that lists their members, and those that cannot be used. Private to this room. */
#ifndef DATASET_INDEX_BUILD_ARCHIVES_H
#define DATASET_INDEX_BUILD_ARCHIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/op.h>
#include <weir/status.h>

#include "dataset/index/tar_members.h"

/* An archive that cannot be used, or not as a whole. */
typedef struct broken_archive {
    char *path;
    uint64_t number;
    weir_error error;
} broken_archive;

/* The state of the stage that lists archives. Used only by its slot's thread until the pipeline has ended. */
typedef struct build_members {
    const char *glob;
    weir_tar_members tar; /* the open archive */
    broken_archive *broken;
    size_t num_broken;
    bool is_out_of_memory;
} build_members;

/* Takes paths of archives and makes an entry of each member that matches. Its config is a build_members. */
extern const weir_op weir__build_members_op;

void weir__build_members_free(build_members *self);

#endif
