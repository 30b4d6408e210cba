/*
 * A file that is written beside its place, under a name that nobody can foresee, and put in its place when it is whole.
 * Internal; compiled into each library and program that writes such files.
 */
#ifndef WEIR_REPLACEMENT_H
#define WEIR_REPLACEMENT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct weir_replacement {
    FILE *file;        /* to write to */
    char *path;        /* where it will be */
    char *path_before; /* where it is until then; NULL: path is a pipe or a device, which is written to as it is */
} weir_replacement;

/*
 * Creates the file, with the permissions of the umask. Two at a time for the same path are no matter; the last to be closed
 * stays. 0, or errno's number with nothing to close: EISDIR for a folder.
 */
int weir_replacement_open(weir_replacement *replacement, const char *path);

/* Puts the file in its place, or (keep is false, or the disk is full) removes it. Closes in any case. 0 or errno's number. */
int weir_replacement_close(weir_replacement *replacement, bool keep);

#endif
