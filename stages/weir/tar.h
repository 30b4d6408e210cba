/*
 * The tar stage: paths of archives come in, the files in them go out, as they are read, in memory.
 *
 * In: an item whose data is the path of a tar archive (a char *), plain or compressed with gzip, bzip2, xz, zstd or lz4,
 * as weir_directory_source with .glob = "*.tar" and weir_list_source make them. Out: one item for each file in it: its
 * data is a weir_bytes * (freed with weir_bytes_free()), its name the file's in the archive, its label "archive!name", its
 * size_bytes all the memory it takes. For decode stages.
 *
 * The archive is read as a stream, one file at a time, under back-pressure: memory does not grow with its size. As many
 * archives are read at once as the stage has slots; reading blocks, so give it threads of its own
 * (weir_stage_options.threads).
 *
 * It is a stage and not a source, so that a bad archive is one failed task with its path, and not the end of the run:
 * WEIR_ENOTFOUND (missing, or no file in it that matches), WEIR_EACCESS, WEIR_EDATA (no tar archive, or a damaged one; what
 * came before the damage has been handed on), WEIR_ELIMIT (files in it were over max_bytes and were left out; all others
 * have been handed on), WEIR_EIO, WEIR_ENOMEM.
 */
#ifndef WEIR_TAR_H
#define WEIR_TAR_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/export.h>
#include <weir/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setting this struct to all-0 is equivalent to defaults. Strings are copied. */
typedef struct weir_tar_config {
    const char
        *glob;    /* which files are items, as fnmatch(3) has them: "*.mp4" (NULL = all). Only the last part of the
                         name is compared. The others are passed over */
    bool samples; /* the archive is in the layout of WebDataset: files whose names are the same up to the first dot
                         of their last part lie side by side and are one sample ("a/17.mp4", "a/17.cls", "a/17.json").
                         Then an item is the sample's first file that matches, with the others behind it
                         (weir_bytes.next); samples without a match are passed over. Names that begin with a dot belong
                         to none */
    uint64_t max_bytes;   /* of one item (0 = 1 GiB) */
    uint64_t reserved[8]; /* 0 */
} weir_tar_config;

/* The stage. Where weir was built without libarchive, weir_builder_pipe() refuses it with WEIR_EUNSUPPORTED. */
extern WEIR_API const weir_op weir_tar_read;

#ifdef __cplusplus
}
#endif

#endif
