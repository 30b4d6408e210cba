/* A predictable name could already exist as a link to another file: hence random names, O_EXCL and O_NOFOLLOW. */
#include "replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TRIES = 100, SUFFIX_BYTES = 24 };

/* Creates a file next to `path`; writes its name to path_before. Returns the descriptor, or -1 with errno set. */
static int create_beside(const char *path, char *path_before)
{
    for (int try = 0; try < MAX_TRIES; try++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -1;
        sprintf(path_before, "%s.%012llx.tmp", path, (unsigned long long)(number >> 16));
        int fd = open(path_before, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Pipes and devices cannot be replaced; they are opened directly. -2: it is neither. */
static int open_in_place(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return -2;
    return open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
}

static void forget(weir_replacement *replacement)
{
    free(replacement->path);
    free(replacement->path_before);
    *replacement = (weir_replacement){ 0 };
}

int weir_replacement_open(weir_replacement *replacement, const char *path)
{
    *replacement = (weir_replacement){ .path = strdup(path) };
    int failure = ENOMEM;
    int fd = replacement->path ? open_in_place(path) : -1;
    if (fd == -2) {
        replacement->path_before = malloc(strlen(path) + SUFFIX_BYTES);
        fd = replacement->path_before ? create_beside(path, replacement->path_before) : -1;
    }
    if (fd < 0)
        failure = replacement->path && errno ? errno : ENOMEM;
    else if (!(replacement->file = fdopen(fd, "w")))
        failure = errno;
    if (replacement->file)
        return 0;
    if (fd >= 0) {
        close(fd);
        if (replacement->path_before)
            unlink(replacement->path_before);
    }
    forget(replacement);
    return failure;
}

/* Why an earlier write failed, of which only the mark is left: the next one fails for the same reason. */
static int find_failure(FILE *file)
{
    static const char zeros[1 << 16];
    struct stat info;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) /* a regular file is not kept */
        return EIO;
    for (int i = 0; i < 2; i++) /* a part of the first may fit */
        if (write(fileno(file), zeros, sizeof zeros) < 0)
            return errno;
    return EIO;
}

int weir_replacement_close(weir_replacement *replacement, bool keep)
{
    int failure = fflush(replacement->file) != 0 ? errno
                  : ferror(replacement->file)    ? find_failure(replacement->file)
                                                 : 0;
    if (fclose(replacement->file) != 0 && !failure) /* a full disk may be reported only now */
        failure = errno;
    const char *before = replacement->path_before;
    if (before && keep && !failure && rename(before, replacement->path) != 0)
        failure = errno;
    if (before && (!keep || failure))
        unlink(before);
    forget(replacement);
    return failure;
}
