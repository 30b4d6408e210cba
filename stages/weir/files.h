/*
 * The files to read: the sources that name them, and patterns for their names, which also the tar stage and the index of a
 * dataset use.
 */
#ifndef WEIR_FILES_H
#define WEIR_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/clip_window.h>
#include <weir/columns.h>
#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- patterns -- */

/* The extensions of the formats that FFmpeg knows as video. Its own lists are not used: what it reads includes .txt
   and .dat, but not .mpg and .ts, which it recognises by their contents. */
#define WEIR_VIDEO_EXTENSIONS \
    "264 265 3g2 3gp amv asf avi avs2 avs3 cavs divx dnxhd dnxhr drc dv dvd f4v flv gxf h261 h263 h264 h265 hevc " \
    "ismv " \
    "ivf " \
    "kux m1v m2t m2ts m2v m4v mj2 mjpeg mjpg mk3d mkv mov mp4 mpe mpeg mpg mpv mts mxf nut obu ogm ogv psp qt rm " \
    "rmvb " \
    "roq ts vc1 vc2 viv vob webm wmv wtv y4m"
#define WEIR_AUDIO_EXTENSIONS "aac flac m4a mkv mov mp3 mp4 ogg opus wav webm"
#define WEIR_IMAGE_EXTENSIONS "bmp gif jpeg jpg png tif tiff webp"

/* Patterns that match names with one of these extensions, in upper or lower case. */
#define WEIR_VIDEO_FILES "*.:video:"
#define WEIR_AUDIO_FILES "*.:audio:"
#define WEIR_IMAGE_FILES "*.:image:"

/*
 * Does the file name of the path match? The pattern is one of the above, or as in fnmatch(3), for example "*.mp4"
 * (upper and lower case differ). With the GNU C library it may also be like "*.@(mkv|webm)". NULL matches every name.
 * A leading dot is not special. Any thread. path NULL: false.
 */
WEIR_API bool weir_file_name_matches(const char *path, const char *pattern);

/* -- the list source -- */

/*
 * The list source: paths (or URLs, or any other strings) that the program already has.
 *
 * Each item's data is a copy of the string (a char *, freed with free()), which is its label, too; in the label, the
 * secrets of a URL are hidden. If the config has starts or ends, the data is a weir_entry with the path, its window, and the number
 * in the list.
 */

/* The array and its strings are copied. */
typedef struct weir_list_config {
    const char *const *paths; /* must not contain NULL */
    size_t num_paths;
    /* num_paths may be 0: the source ends at once (default: WEIR_ENOTFOUND). For a share that may have nothing left. */
    bool may_be_empty;
    /* The number of each path among those with the same identity (weir_item_identity()): in a list of which these paths are
       some, for example a rank's share. Copied. NULL = they are numbered in the order of the paths. */
    const uint64_t *occurrences;
    /* The window of the file that each item is (weir_entry.window). Copied. With windows, each item's data is a
       weir_entry (NULL = the whole files). */
    const weir_clip_window *windows;
    /* Columns of the user's, with an element for each path: the values of each item (weir_entry.values). Copied. With
       columns, too, the data is a weir_entry. */
    const weir_column *columns;
    size_t num_columns;
} weir_list_config;

/* The source. weir_source_list() refuses, and weir_builder_build() reports, a list without paths (WEIR_ENOTFOUND; not with
   `may_be_empty`), one with a NULL, and a window that is none (WEIR_EINVAL). */
extern WEIR_API const weir_op weir_list_source;

/* The same for a list with windows or columns; weir_source_list() chooses. */
extern WEIR_API const weir_op weir_clip_list_source;

/* Adds the source to the builder; see weir_builder_source(). */
static inline void weir_source_list(weir_builder *builder, const weir_list_config *config,
                                    const weir_stage_options *options)
{
    const weir_op *op =
        config && (config->windows || config->num_columns) ? &weir_clip_list_source : &weir_list_source;
    weir_builder_source(builder, op, config, sizeof *config, options);
}

/* -- the directory source -- */

/*
 * The directory source: the files below a folder, as paths.
 *
 * Each item's data is the path (a char *, freed with free()): the root, a slash, and the path below the root. The
 * path is also the item's label. size_bytes is 0.
 *
 * The listing streams: folders are read in chunks, and the first path is delivered before the rest is listed. A
 * folder's files come before those of its subfolders (not with `sorted`). One folder is open at a time, however deep the
 * tree. Memory holds the names of the subfolders at each level (with `sorted`, the names of all entries). It also
 * holds up to 100 bytes for each folder so far. A stop is checked at each entry, even if nothing matches.
 *
 * Links to files and folders are followed. Each folder (device and inode) is listed once, under the first name that
 * leads to it, so link loops end. Only `sorted` makes that name the same on every machine.
 *
 * A folder that cannot be read completely is logged as an error with its name, counted and recorded as the event
 * "unreadable_folder"; the listing continues but is incomplete: see weir_directory_counts. If it is the root, the
 * source fails. A broken link is passed on if its name matches, so that the failure is reported with its name. Pipes,
 * sockets and devices are skipped.
 */

/* What the source has found so far; with epochs, in the current one. */
typedef struct weir_directory_counts {
    uint64_t files;              /* that match and are accepted */
    uint64_t folders;            /* listed, the root included */
    uint64_t unreadable_folders; /* not read completely: above 0 the listing is incomplete */
} weir_directory_counts;

/* Setting all fields except root to 0 is equivalent to defaults. Strings are copied. */
typedef struct weir_directory_config {
    const char *root; /* a folder, or a link to one */
    const char *glob; /* a pattern for file names: "*.mp4", WEIR_VIDEO_FILES, ... (NULL = every file); see
                         weir_file_name_matches() */
    bool sorted;      /* sort the entries of each folder by name, in byte order (default: the file system's order).
                         Holds a folder's names in memory */
    bool flat;        /* only the root, not its subfolders */
    /* Updated by the source's thread (NULL = not needed). Must outlive the pipeline; read it after
       weir_pipeline_next() has returned WEIR_EOF or after weir_pipeline_free(). */
    weir_directory_counts *counts;
    /* Whether to deliver this file (NULL = all): for the shares of several processes, or to skip finished files.
       number: its number in this listing, from 0; it is the same in every process if `sorted` is set. Called on the
       source's thread, or by weir_directory_count(); must not block. The path is valid during the call. */
    bool (*accept)(void *self, const char *path, uint64_t number);
    void *accept_self; /* for `accept` and `occurrence` */
    bool may_be_empty; /* it is fine if no file matches: the source ends (default: it fails) */
    /* The number of the file among those with the same identity (weir_item_identity()), if other sources may also have it
       (NULL = 0). Called in the same way as `accept`, with accept_self. */
    uint64_t (*occurrence)(void *self, const char *path);
} weir_directory_config;

/*
 * The source. If no file of the listing matches, the source fails, and so does the pipeline, with the error of
 * weir_directory_count(). It does not fail with `may_be_empty`. It also does not fail if files match but `accept`
 * takes none of them. Nor does it fail if the files that match were done before, in the run that is resumed.
 * weir_source_directory() refuses a root that is missing or not a folder (WEIR_ENOTFOUND), not readable
 * (WEIR_EACCESS) or not given (WEIR_EINVAL). weir_builder_build() reports it.
 */
extern WEIR_API const weir_op weir_directory_source;

/* Adds the source to the builder; see weir_builder_source(). */
static inline void weir_source_directory(weir_builder *builder, const weir_directory_config *config,
                                         const weir_stage_options *options)
{
    weir_builder_source(builder, &weir_directory_source, config, sizeof *config, options);
}

WEIR_API int weir_directory_count_sized(const weir_directory_config *config, size_t config_size, uint64_t at_most,
                                        uint64_t *count, weir_error *error);

/*
 * Counts the files that the source would find, up to at_most (1 = is there any?; UINT64_MAX = all). config->counts is not
 * changed. Unreadable folders are skipped without a message, because the source will report them. Any thread. *count is set in
 * any case. WEIR_OK, or a failure, with *error (may be NULL) filled: what weir_directory_source refuses, or one of
 * these. WEIR_EACCESS or WEIR_EIO if there is no file, but a folder that could not be read. WEIR_ENOTFOUND if nothing
 * matches; but not with `may_be_empty`, nor if `accept` takes nothing of what matches. The error says what was looked
 * for, and what is there instead, by extension. For example "no file in DIR or its subfolders matches *.mp4; it has 3
 * other videos: 1 .avi, 1 .mkv, 1 .MP4".
 */
static inline int weir_directory_count(const weir_directory_config *config, uint64_t at_most, uint64_t *count,
                                       weir_error *error)
{
    return weir_directory_count_sized(config, sizeof *config, at_most, count, error);
}

#ifdef __cplusplus
}
#endif

#endif
