/*
 * The directory source: the files below a folder, as paths.
 *
 * Each item's data is the path (a char *, freed with free()), which is its label, too: root, slash, and the way down
 * from it. size_bytes is 0.
 *
 * The listing streams: folders are read in pieces, and the first path comes out before the rest is looked at. What is
 * held is one open folder per level, with `sorted` the entries of those folders, too, and up to 100 bytes for each folder so
 * far. Stop is noticed at each entry, also where nothing matches.
 *
 * Links to files and to folders are followed. Each folder (device and inode) is listed once, under the name by which it is met
 * first, however many links lead to it, so link loops end. Only `sorted` makes that name the same on every machine.
 *
 * A folder that cannot be read, or not to its end, is logged as an error with its name, counted and recorded as the event
 * "unreadable_folder"; the listing goes on, and is not complete: see weir_directory_counts. If it is the root, the source
 * fails. A link to nowhere is handed on if its name matches, so that its failure names it. Pipes, sockets
 * and devices are passed over.
 */
#ifndef WEIR_DIRECTORY_H
#define WEIR_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/op.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the source has met so far; with epochs, in the present one. */
typedef struct weir_directory_counts {
    uint64_t files;              /* that matched */
    uint64_t folders;            /* that were listed, the root included */
    uint64_t unreadable_folders; /* that could not be read, or not to the end: above 0 the listing is not complete */
    uint64_t reserved[8];
} weir_directory_counts;

/* Setting this struct to all-0, but for root, is equivalent to defaults. Strings are copied. */
typedef struct weir_directory_config {
    const char *root; /* a folder, or a link to one */
    const char *glob; /* which names, as fnmatch(3) has them: "*.mp4" (NULL = every file). Only the last part of the
                         path is compared, and a leading dot is a letter like any other */
    bool sorted;      /* in the byte order of the names within each folder, a folder's contents in its own name's
                         place (default: as the file system gives them). Holds a folder's names in memory */
    bool flat;        /* only the root itself, not the folders in it */

    /* Counted into by the source's thread (NULL = not wanted). Must outlive the pipeline; read it after weir_pipeline_next()
       has given WEIR_EOF or after weir_pipeline_free(). */
    weir_directory_counts *counts;
    uint64_t reserved[8]; /* 0 */
} weir_directory_config;

/*
 * The source. weir_builder_source() refuses, and weir_builder_build() reports, a root that is missing or no folder (WEIR_ENOTFOUND),
 * not readable (WEIR_EACCESS) or not given (WEIR_EINVAL).
 */
extern WEIR_API const weir_op weir_directory_source;

/*
 * How many files the source would find, for programs that want to know before they start: counts up to at_most and
 * stops there (1 = is there any?; UINT64_MAX = all). config->counts is left alone; unreadable folders are passed over
 * in silence, as the source will name them. Any thread. *count is set in any case.
 * WEIR_OK, or what weir_directory_source refuses, with *error (may be NULL) filled.
 */
WEIR_API int weir_directory_count(const weir_directory_config *config, uint64_t at_most, uint64_t *count,
                                  weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
