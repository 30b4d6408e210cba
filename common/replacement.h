/*
 * A file that is written under an unpredictable temporary name in the same folder, and renamed when it is complete.
 * Internal; compiled into each library and program that writes such files.
 */
#ifndef WEIR_REPLACEMENT_H
#define WEIR_REPLACEMENT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct weir_replacement {
    FILE *file;        /* to write to */
    char *path;        /* the final path */
    char *path_before; /* the temporary path; NULL: path is a pipe or a device, which is written directly */
} weir_replacement;

/*
 * Creates the file, with the permissions of the umask. The same path may be open twice; the last one to be closed
 * stays. Returns 0, or an errno value with nothing to close: EISDIR for a folder.
 */
int weir_replacement_open(weir_replacement *replacement, const char *path);

/* Renames the file to its path, or removes it (keep is false, or the disk is full). Closes in any case. 0 or an errno
   value. */
int weir_replacement_close(weir_replacement *replacement, bool keep);

#endif
