/*
 * The index of a dataset is one SQLite file. It has each clip's size, codec, dimensions, duration, frames and label.
 * It also has the broken files, and why they are broken. weir_dataset_build() creates and updates it, as `weir index`
 * does. An open dataset supplies the items of weir_sampler_source; with them, selected frames of a clip are decoded
 * without reading the whole clip first.
 *
 *     weir_dataset_open("clips.weir", NULL, &dataset, &error);
 *     weir_sampler_source_config source = {
 *         .sampler = { .num_items = weir_dataset_count(dataset), .order = WEIR_SAMPLER_SHUFFLED, .seed = 1 },
 *         .items = weir_dataset_items(dataset),
 *     };
 *
 * Clips are numbered in the byte order of their identities (weir_item_identity(); the identity of a local file is its path).
 * Broken clips have no number. The same files have the same numbers on every machine. A list may have several clips of the same
 * file; these follow each other in the order of the list. docs/scale.md describes the tables, for plain SQL.
 *
 * A URL is the same clip with any signature. Its secrets are not stored, so weir_dataset_options.paths gives the addresses again.
 * If URLs have hidden values that may name the object (?key=clips/1.mp4), their identities depend on weir_identity_set_key(): set
 * the same key for each build and for opening.
 */
#ifndef WEIR_DATASET_H
#define WEIR_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/clip_window.h>
#include <weir/columns.h>
#include <weir/decoder_config.h>
#include <weir/input_config.h>
#include <weir/probe.h>
#include <weir/sampler.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- building -------------------------------------------------------------------------------------------------- */

/* The progress and the result of a build. */
typedef struct weir_dataset_progress {
    uint64_t num_clips;              /* rows of the list; 0 = it is a folder, where each file is a clip */
    uint64_t num_found;              /* files so far */
    uint64_t num_total;              /* number of files; 0 = not known yet */
    uint64_t num_unchanged;          /* of these, same as in the index: not read again */
    uint64_t num_indexed;            /* of these, new or changed: read */
    uint64_t num_broken;             /* of those read, unusable */
    uint64_t num_removed;            /* files that no longer exist, removed from the index */
    uint64_t num_unreadable_folders; /* above 0: nothing was removed, as the listing is incomplete */
    uint64_t num_cut; /* of those read, usable, but some frames that the header announces are missing */
} weir_dataset_progress;

/* Setting all fields except root or paths to 0 is equivalent to defaults. Borrowed during the call. */
typedef struct weir_dataset_build_options {
    const char *root; /* a folder; paths are kept relative to it (NULL = paths) */
    const char *glob; /* a pattern for the file names below root, as in file_names.h (NULL = WEIR_VIDEO_FILES) */
    /* Files or URLs (NULL = root). A file that is listed several times is several clips; it is read once, at the first of its
       addresses. */
    const char *const *paths;
    /* of each path; an element may be NULL (NULL = as for root: the folder that a file is in) */
    const char *const *labels;
    size_t num_paths;
    weir_probe_check check; /* how much is decoded to find broken files (default: nothing) */
    bool no_packets;        /* a smaller index, but clips must be read to select frames; see weir_probe_config */
    uint32_t concurrency;   /* files at a time (0 = the CPU budget) */
    /* Called regularly, and at the end, on the calling thread. Return false to stop; what has been read is kept, and
       the next build continues from there. (NULL = not called) */
    bool (*progress)(void *self, const weir_dataset_progress *progress);
    void *self;
    /* The files, those below root that match "*.tar", are uncompressed tar archives, and the clips are their members
       that match glob. The path of a clip is "ARCHIVE!NAME", its label the folder that it is in within the archive.
       Of members with the same name the last one in the archive is the clip, as when tar unpacks it. Links and sparse
       files are left out (default: the files are the clips) */
    bool tar;
    /* Where the bytes of the clips come from, and how frames are decoded, if any are; as in weir_probe_config. */
    const weir_input_config *input;
    size_t input_size;
    const weir_decoder_config *decoder;
    size_t decoder_size;
    const weir_clip_window *windows; /* of each path: the clip is that window of the file (NULL = the whole files) */
    /* Columns of the user's, with an element for each path: the index has them beside its own ("score > 0.5" is a
       condition), and each item has its values (weir_entry.values). At most 200; none may have the name of a column
       of the index, in any letters. Not with root and tar. The index has those of the last build. */
    const weir_column *columns;
    size_t num_columns;
} weir_dataset_build_options;

WEIR_API int weir_dataset_build_sized(const char *path, const weir_dataset_build_options *options,
                                      size_t options_size, weir_dataset_progress *result, weir_error *error);

/*
 * Makes or updates the index at `path`. Files whose size and modification time are those of the index are not read again.
 * URLs whose server reports the same version (weir_probe_result.validator) are only opened. Results are written once a second;
 * after a stop or a kill, the next build continues from there. *result (may be NULL) is filled in any case.
 * Returns WEIR_OK, WEIR_ESTOPPED or a failure. After a failure *error (may be NULL) is filled. WEIR_ENOTFOUND: no
 * such folder. WEIR_EDATA: `path` is another kind of file, which is not changed. WEIR_EUNSUPPORTED: an index of a
 * newer version. The others are WEIR_EINVAL, WEIR_EACCESS, WEIR_EBUSY, WEIR_EIO and WEIR_ENOMEM.
 */
static inline int weir_dataset_build(const char *path, const weir_dataset_build_options *options,
                                     weir_dataset_progress *result, weir_error *error)
{
    return weir_dataset_build_sized(path, options, sizeof *options, result, error);
}

/* An index in memory. Immutable: any thread, also several at once. */
typedef struct weir_dataset_memory weir_dataset_memory;

WEIR_API int weir_dataset_build_memory_sized(const weir_dataset_build_options *options, size_t options_size,
                                             weir_dataset_memory **memory, weir_dataset_progress *result,
                                             weir_error *error);

/*
 * The same in memory, for folders that are small enough to be read at each start. It takes about 1 kB per clip, and
 * its packets, and at most 1 GiB, SQLite's limit. All files are read. weir_dataset_options.memory opens it, any
 * number of times. weir_dataset_ask_memory() answers questions. The results are those of weir_dataset_build(); on
 * failure *memory is NULL.
 */
static inline int weir_dataset_build_memory(const weir_dataset_build_options *options, weir_dataset_memory **memory,
                                            weir_dataset_progress *result, weir_error *error)
{
    return weir_dataset_build_memory_sized(options, sizeof *options, memory, result, error);
}

/* Datasets that were opened from it go on to work: the memory is free once the last one is closed. NULL is fine. */
WEIR_API void weir_dataset_memory_free(weir_dataset_memory *memory);

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* An open index. One thread at a time for each. */
typedef struct weir_dataset weir_dataset;

/* Setting this struct to all-zero is equivalent to defaults. Borrowed during the call. */
typedef struct weir_dataset_options {
    /* an SQL condition on the columns of `clip`; the matching clips are renumbered from 0; 8 bytes per clip: "duration
       > 2 AND label <> 'sneezing'" (NULL = all) */
    const char *where;
    /* only these labels; class i is the i-th of them (NULL = all labels, in byte order) */
    const char *const *classes;
    size_t num_classes;
    const char *root;  /* the folder of the clips (NULL = where it was when the index was built) */
    bool ignore_mtime; /* for a copy without modification times: compare only sizes to detect changed files */
    /* The addresses of clips that are URLs with secrets, because the index does not have the secrets: the list of the build, or
       URLs of the same objects with new signatures. Their order does not matter, and there may be other paths among them.
       Addresses that are needed are copied (NULL = there is no such URL). */
    const char *const *paths;
    size_t num_paths;
    const weir_dataset_memory *memory; /* open this index; the path is NULL (NULL = the one at the path) */
    /* It is not an error if no clip of the index can be used, or none matches (default: it is an error). */
    bool may_be_empty;
} weir_dataset_options;

WEIR_API int weir_dataset_open_sized(const char *path, const weir_dataset_options *options, size_t options_size,
                                     weir_dataset **dataset, weir_error *error);

/*
 * Returns WEIR_OK or a failure. After a failure *dataset is NULL and *error (may be NULL) is filled. WEIR_ENOTFOUND:
 * there is no such file or root, or no clip matches the condition. Or a class has no clips, or the address of a URL
 * is not among the paths. WEIR_EINVAL: the condition is not valid SQL. WEIR_EDATA: not an index, or an incomplete
 * one. The others are WEIR_EUNSUPPORTED, WEIR_EACCESS, WEIR_EIO and WEIR_ENOMEM. options may be NULL.
 */
static inline int weir_dataset_open(const char *path, const weir_dataset_options *options, weir_dataset **dataset,
                                    weir_error *error)
{
    return weir_dataset_open_sized(path, options, sizeof *options, dataset, error);
}

/* NULL is fine. */
WEIR_API void weir_dataset_close(weir_dataset *dataset);

/* The number of clips, without broken ones. NULL is 0. */
WEIR_API uint64_t weir_dataset_count(const weir_dataset *dataset);

/* A hash of the contents (identities, sizes, labels, starts and ends, the user's columns, conditions). A different
   value means different items. NULL is 0. */
WEIR_API uint64_t weir_dataset_fingerprint(const weir_dataset *dataset);

/* The user's columns: their names and kinds, without values; they live as long as the dataset. */
WEIR_API const weir_column *weir_dataset_columns(const weir_dataset *dataset, size_t *num_columns);

/* For weir_sampler_source_config.items: from then on only the pipeline may use the dataset. */
WEIR_API weir_sampler_items weir_dataset_items(weir_dataset *dataset);

/* The classes: the clips' labels. The name is NULL if there is no such class; it lives as long as the dataset. */
WEIR_API uint32_t weir_dataset_num_classes(const weir_dataset *dataset);
WEIR_API const char *weir_dataset_class_name(const weir_dataset *dataset, uint32_t class_id);

/* For weir_sampler_config.classes: the class of each clip, 4 bytes per clip. The caller frees it. WEIR_OK;
   WEIR_ENOTFOUND with *error (may be NULL) filled: a clip has no label; or the statuses of weir_dataset_open(). */
WEIR_API int weir_dataset_read_classes(weir_dataset *dataset, uint32_t **classes, weir_error *error);

/* For weir_sampler_config.sizes: the value of an SQL expression for each clip, such as "width * 1.0 / height" (NULL = the clip's
   duration in seconds). It may use the columns of `clip`, including the user's. 8 bytes per clip; the caller frees it. WEIR_OK;
   WEIR_EINVAL with *error (may be NULL) filled: the expression is not valid SQL, or is not a number for a clip; or the statuses of
   weir_dataset_open(). */
WEIR_API int weir_dataset_read_sizes(weir_dataset *dataset, const char *expression, double **sizes,
                                     weir_error *error);

/* For weir_sampler_config.groups: the number of each clip's file; clips of one file have the same. 8 bytes per clip;
   the caller frees it. WEIR_OK, or the statuses of weir_dataset_open() with *error (may be NULL) filled. */
WEIR_API int weir_dataset_read_files(weir_dataset *dataset, uint64_t **files, weir_error *error);

/* ---- broken clips ---------------------------------------------------------------------------------------------------- */

/* A file that cannot be used, and why. Texts are valid until the next call for this dataset. */
typedef struct weir_broken_clip {
    const char *path;  /* relative to the root, if there is one; of a URL without its secrets */
    const char *label; /* "" = none */
    int status;        /* weir_status, negative */
    int library_code;  /* as in weir_error */
    const char *message;
    uint64_t occurrence; /* among the rows of the list of this file, from 0 */
} weir_broken_clip;

/* How many clips cannot be used, of those that match the dataset's condition and classes. The first call scans the
   index: 8 bytes per broken clip. WEIR_OK, or the statuses of weir_dataset_open() with *error (may be NULL) filled. */
WEIR_API int weir_dataset_count_broken(weir_dataset *dataset, uint64_t *num_broken, weir_error *error);

WEIR_API int weir_dataset_read_broken_sized(weir_dataset *dataset, uint64_t number, weir_broken_clip *clip,
                                            size_t clip_size, weir_error *error);

/* The number-th of them, from 0, in the order of their identities. WEIR_OK; WEIR_ERANGE: `number` is too high; or the
   statuses of weir_dataset_open(), with *error (may be NULL) filled. */
static inline int weir_dataset_read_broken(weir_dataset *dataset, uint64_t number, weir_broken_clip *clip,
                                           weir_error *error)
{
    return weir_dataset_read_broken_sized(dataset, number, clip, sizeof *clip, error);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* What to query, and the columns of a row. */
typedef enum weir_dataset_question {
    WEIR_DATASET_SUMMARY = 0, /* one row of totals */
    WEIR_DATASET_CLASSES,     /* label, clips, broken, frames, duration */
    WEIR_DATASET_CODECS,      /* codec, width, height, clips, frames, duration */
    WEIR_DATASET_DURATIONS,   /* from, to (s; powers of two), clips, duration */
    WEIR_DATASET_BROKEN,      /* path, size_bytes, status, message; includes damaged files that can be used */
    WEIR_DATASET_CLIPS,       /* path (of a URL, without its secrets) and the other columns */
} weir_dataset_question;

/* One cell of an answer. */
typedef struct weir_dataset_cell {
    enum { WEIR_CELL_NOTHING, WEIR_CELL_INTEGER, WEIR_CELL_REAL, WEIR_CELL_TEXT } kind;
    const char *name; /* of the column */
    int64_t integer;
    double real; /* seconds where the name is a duration */
    const char *text;
} weir_dataset_cell;

/*
 * Calls `row` for each row of the answer, in constant memory; cells are valid during the call. The index may be
 * incomplete.
 * where: as in weir_dataset_options; NULL = all. WEIR_OK, a status of weir_dataset_open(), or the first status from
 * `row` other than WEIR_OK.
 */
WEIR_API int weir_dataset_ask(const char *path, weir_dataset_question question, const char *where,
                              int (*row)(void *self, const weir_dataset_cell *cells, size_t num_cells), void *self,
                              weir_error *error);

/* The same of an index in memory. */
WEIR_API int weir_dataset_ask_memory(const weir_dataset_memory *memory, weir_dataset_question question,
                                     const char *where,
                                     int (*row)(void *self, const weir_dataset_cell *cells, size_t num_cells),
                                     void *self, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
