/*
 * The files in a plain tar archive: their names, and where their data is. Internal. One thread at a time for each.
 *
 * libarchive reads the headers, as in the tar stage, so both find the same. Links, folders and sparse files are skipped.
 */
#ifndef DATASET_INDEX_TAR_MEMBERS_H
#define DATASET_INDEX_TAR_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/status.h>

/* All-zero is valid. */
typedef struct weir_tar_members {
    struct archive *archive; /* NULL = none */
    int fd;
    bool has_header;              /* the current one, or one before it */
    int64_t size_bytes, mtime_ns; /* of the archive */
    const char *name;             /* of the current member; owned by the archive */
    int64_t size;                 /* of its data */
    int64_t offset;
} weir_tar_members;

/* WEIR_OK, or the failure with *error filled. Afterwards weir__tar_members_close(), whatever the result. */
int weir__tar_members_open(weir_tar_members *tar, const char *path, weir_error *error);

/* WEIR_OK: name, size and offset are those of the next file. WEIR_EOF; or WEIR_EDATA (not a plain tar archive, or
   damaged), WEIR_EIO or WEIR_ENOMEM with *error filled. */
int weir__tar_members_next(weir_tar_members *tar, weir_error *error);

void weir__tar_members_close(weir_tar_members *tar);

#endif
