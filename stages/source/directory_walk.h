/*
 * Walks through the folders below a root, one file per call. Internal; the directory source and
 * weir_directory_count() use it. One thread at a time for each walk.
 */
#ifndef STAGES_SOURCE_DIRECTORY_WALK_H
#define STAGES_SOURCE_DIRECTORY_WALK_H

#include <weir/files.h>

typedef struct weir_walk weir_walk;

/* Callbacks of a walk; each may be NULL. */
typedef struct weir_walk_listener {
    void *self;
    /* a folder could not be read completely; errno_code is that of the failure; the path is valid during the call */
    void (*unreadable)(void *self, const char *path, int errno_code);
    bool (*should_stop)(void *self); /* called at each entry */
} weir_walk_listener;

/* Is config->root a folder that can be read? WEIR_OK, or the failure with *error filled. */
int weir__walk_check(const weir_directory_config *config, weir_error *error);

/* Borrows config's strings until weir__walk_close(); the listener (may be NULL) is copied. NULL = out of memory. */
weir_walk *weir__walk_open(const weir_directory_config *config, const weir_walk_listener *listener);

/* The next path, valid until the next call, or the end: WEIR_OK, WEIR_EOF, WEIR_ESTOPPED, WEIR_ENOMEM, or WEIR_EIO:
   the root cannot be read (see weir__walk_root_errno()). */
int weir__walk_next(weir_walk *walk, const char **path);
int weir__walk_root_errno(const weir_walk *walk);

/* Folders listed so far. */
uint64_t weir__walk_num_folders(const weir_walk *walk);

/* NULL is fine. */
void weir__walk_close(weir_walk *walk);

/* The first folder that could not be read. */
typedef struct weir_unread_folder {
    int errno_code; /* 0 = none */
    char path[400]; /* may be cut */
} weir_unread_folder;

/* Keeps this one, unless there is one already. */
void weir__unread_folder_keep(weir_unread_folder *unread, const char *path, int errno_code);

/* Fills *error for a folder in which nothing matches: what was looked for, and what is there instead. Lists the folder
   again; the listener (may be NULL) can end that. Returns WEIR_ENOTFOUND. */
int weir__directory_refuse_empty(const weir_directory_config *config, const weir_walk_listener *listener,
                                 weir_error *error);

/* "no video in PLACE", "no file in PLACE matches *.mp4". Returns WEIR_ENOTFOUND. */
int weir__file_names_refuse(const char *pattern, const char *place, weir_error *error);

#endif
