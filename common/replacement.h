/*
 * A file that has no name until it is complete: whatever ends the program, nothing is left. Where the file system does not
 * support that (O_TMPFILE), it is written under a hidden, unpredictable name in the same folder, and renamed.
 * Internal; compiled into each library and program that writes such files.
 *
 * A link at the path is replaced, and the file that it leads to stays as it is. Only a link to a pipe or a device is
 * followed, unless somebody else has planted it: see weir__is_planted().
 */
#ifndef COMMON_REPLACEMENT_H
#define COMMON_REPLACEMENT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct weir__replacement {
    FILE *file;        /* to write to */
    char *path;        /* the final path */
    char *path_before; /* the hidden path; NULL = it has no name */
    bool is_direct;    /* path is a pipe or a device, which is written directly */
} weir__replacement;

/*
 * Creates the file, with the permissions of the umask. The same path may be open twice; the last one to be closed
 * stays. Returns 0, or an errno value with nothing to close: EISDIR for a folder.
 */
int weir__replacement_open(weir__replacement *replacement, const char *path);

/* Creates such a file for `path`, for reading and writing; *path_before is its hidden path, to be freed, or NULL = it has no
   name. Returns the descriptor, above 2; or -1 with errno set and *path_before NULL. */
int weir__part_create(const char *path, char **path_before);

/* Gives it the name `path`; an existing file is replaced. Returns 0 or an errno value, with nothing changed. */
int weir__part_place(int fd, const char *path_before, const char *path);

/* Waits until the names in the folder of the path are on the disk. Returns 0, also on a file system that cannot do so and for a
   folder that may not be read, or an errno value. */
int weir__folder_sync(const char *path);

/* A nameless file for reading and writing in $TMPDIR or /tmp. Returns the descriptor, above 2, or -1 with errno set. */
int weir__spool_open(void);

/*
 * Whether the path is a link, a pipe or a device of another user: not of this user, not of root, and not of the owner
 * of its folder. Such a path is not used, as somebody may have put it there to get or to direct what is written. The
 * kernel's fs.protected_symlinks has the same rule for folders like /tmp.
 */
bool weir__is_planted(const char *path);

/*
 * Returns the ending of a file beside the database `path` (-wal, -shm, -journal) that cannot belong to it, or NULL. This is
 * a log that is not empty although there is no database, or a file with more names (hard links) than the database. SQLite
 * would take the log of another database for that of this one, or write over the file.
 */
const char *weir__stray_beside(const char *path);

/*
 * For a database, which its library has to create by name: calls make(self, path_before), and gives what it has made the
 * name `path`. If make() fails, nothing is left, nor of the files beside a database (-wal, -shm, -journal). SIGINT, SIGTERM
 * and SIGHUP wait until it is done, if they come to this thread. Returns 0, what make() returns, or an errno value:
 * EEXIST if somebody else has made a file there in the meantime, which stays.
 */
int weir__make_beside(const char *path, int (*make)(void *self, const char *path_before), void *self);

/* Whether one of these signals waits: a long make() ends then. */
bool weir__signal_waits(void);

/* Renames the file to its path, or removes it (keep is false, or the disk is full). Closes in any case. 0 or an errno
   value. */
int weir__replacement_close(weir__replacement *replacement, bool keep);

#endif
