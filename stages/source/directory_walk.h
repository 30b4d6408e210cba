/*
 * The walk through the folders below a root, one file a call. Internal; the directory source and
 * weir_directory_count() are made of it. One thread at a time for each walk.
 */
#ifndef WEIR_STAGES_WALK_H
#define WEIR_STAGES_WALK_H

#include <weir/directory.h>

typedef struct weir_walk weir_walk;

/* Told of each folder that could not be read, with errno's number. The path is valid during the call only. */
typedef void weir_walk_unreadable(void *self, const char *path, int errno_code);

/* Is config->root a folder that can be read? WEIR_OK, or the failure with *error filled. */
int weir_walk_check(const weir_directory_config *config, weir_error *error);

/* Borrows config's strings until weir_walk_close(). NULL = out of memory. */
weir_walk *weir_walk_open(const weir_directory_config *config, weir_walk_unreadable *unreadable, void *self);

/* The next path, valid until the next call, or the end: WEIR_OK, WEIR_EOF or WEIR_ENOMEM. */
int weir_walk_next(weir_walk *walk, const char **path);

/* Folders listed so far. */
uint64_t weir_walk_num_folders(const weir_walk *walk);

/* NULL is fine. */
void weir_walk_close(weir_walk *walk);

#endif
