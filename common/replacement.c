/* A predictable name could already exist as a link to another file: hence no names, or random ones, O_EXCL and O_NOFOLLOW. */
#include "common/replacement.h"

#include "common/above_standard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TRIES = 100, MAX_NAME = 200 };

/* "folder/.name.0123456789ab.tmp"; long names are cut. NULL with errno set. */
static char *name_beside(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *beside = NULL;
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return NULL;
    if (asprintf(&beside, "%.*s.%.*s.%012llx.tmp", (int)(name - path), path, MAX_NAME, name,
                 (unsigned long long)(number >> 16)) >= 0)
        return beside;
    errno = ENOMEM;
    return NULL;
}

/* The way to give a nameless file a name. */
static const char *name_descriptor(int fd, char name[32])
{
    snprintf(name, 32, "/proc/self/fd/%d", fd);
    return name;
}

/* In the folder. -1: the file system or the kernel does not support it, or /proc, by which it gets its name, is missing. */
static int create_nameless(const char *folder, mode_t mode)
{
    char name[32];
    int fd = weir__above_standard(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
    if (fd < 0 || access(name_descriptor(fd, name), F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

static int create_hidden(const char *path, char **path_before)
{
    for (int try = 0; try < MAX_TRIES && (*path_before = name_beside(path)); try++) {
        int fd = weir__above_standard(open(*path_before, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
        if (fd >= 0)
            return fd;
        int failure = errno;
        free(*path_before);
        *path_before = NULL;
        errno = failure;
        if (failure != EEXIST)
            break;
    }
    return -1;
}

int weir__part_create(const char *path, char **path_before)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? create_nameless(folder, 0666) : -1;
    free(folder);
    *path_before = NULL;
    return fd >= 0 ? fd : create_hidden(path, path_before);
}

/* A name cannot be given to it while another file has that: it gets a hidden one, which is renamed. */
static int replace_by_nameless(const char *source, const char *path)
{
    int failure = EEXIST;
    char *hidden = NULL;
    for (int try = 0; try < MAX_TRIES && failure == EEXIST; try++) {
        free(hidden);
        hidden = name_beside(path);
        if (!hidden)
            return ENOMEM;
        failure = linkat(AT_FDCWD, source, AT_FDCWD, hidden, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
    }
    if (failure == 0 && rename(hidden, path) != 0) {
        failure = errno;
        unlink(hidden);
    }
    free(hidden);
    return failure;
}

int weir__part_place(int fd, const char *path_before, const char *path)
{
    char name[32];
    if (path_before)
        return rename(path_before, path) == 0 ? 0 : errno;
    if (linkat(AT_FDCWD, name_descriptor(fd, name), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno != EEXIST)
        return errno;
    sigset_t all, before; /* between the two names no signal may end the program */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failure = replace_by_nameless(name, path);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

int weir__folder_sync(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int code = !folder ? ENOMEM : fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    free(folder);
    return code == EINVAL || code == EACCES ? 0 : code;
}

int weir__spool_open(void)
{
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    int fd = weir__above_standard(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
        return fd;
    FILE *file = tmpfile(); /* the file system does not support O_TMPFILE: it is removed after opening */
    if (!file)
        return -1;
    fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    fclose(file);
    return fd;
}

bool weir__is_planted(const char *path)
{
    struct stat info, folder;
    if (lstat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || info.st_uid == geteuid() ||
        info.st_uid == 0)
        return false;
    const char *slash = strrchr(path, '/');
    char *name = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    bool is_owners = name && stat(name, &folder) == 0 && folder.st_uid == info.st_uid;
    free(name);
    return !is_owners;
}

/* ---- databases --------------------------------------------------------------------------------------------------- */

static const int held[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU };
enum { NUM_HELD = sizeof held / sizeof held[0] };

bool weir__signal_waits(void)
{
    sigset_t pending;
    struct sigaction action;
    bool waits = false;
    for (size_t i = 0; i < NUM_HELD && sigpending(&pending) == 0; i++)
        waits |= sigismember(&pending, held[i]) == 1 && sigaction(held[i], NULL, &action) == 0 &&
                 action.sa_handler != SIG_IGN; /* such a one is pending while it is blocked */
    return waits;
}

/* Renames, but does not replace. Some file systems have only one of the two ways. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    return link(from, to) == 0 ? 0 : errno;
}

static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
enum { NUM_ENDINGS = sizeof endings / sizeof endings[0] };

static void remove_all(const char *path)
{
    for (size_t i = 0; i < NUM_ENDINGS; i++) {
        char name[PATH_MAX];
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

/* Who creates it at this moment makes the others later: so it is looked for after them. */
const char *weir__stray_beside(const char *path)
{
    for (size_t i = 1; i < NUM_ENDINGS; i++) {
        char name[PATH_MAX];
        struct stat beside, database;
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        if (lstat(name, &beside) != 0)
            continue;
        bool is_there = stat(path, &database) == 0, is_log = strcmp(endings[i], "-shm") != 0 && beside.st_size > 0;
        if (beside.st_nlink > (is_there ? database.st_nlink : 1) || (is_log && !is_there))
            return endings[i];
    }
    return NULL;
}

/* SQLite tries once more for reading, and then tells that there is no file. */
static int find_folder_failure(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int failure = !folder ? ENOMEM : faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
    free(folder);
    return failure;
}

int weir__make_beside(const char *path, int (*make)(void *self, const char *path_before), void *self)
{
    sigset_t signals, before;
    sigemptyset(&signals);
    for (size_t i = 0; i < NUM_HELD; i++)
        sigaddset(&signals, held[i]);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    char *path_before = name_beside(path);
    int result = path_before ? find_folder_failure(path) : ENOMEM;
    if (result == 0)
        result = make(self, path_before);
    if (result == 0)
        result = rename_new(path_before, path);
    if (path_before)
        remove_all(path_before);
    free(path_before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Pipes and devices cannot be replaced; they are opened directly. -2: it is neither. */
static int open_in_place(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return -2;
    if (!weir__is_planted(path))
        return weir__above_standard(open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC));
    errno = EPERM;
    return -1;
}

static void forget_replacement(weir__replacement *replacement)
{
    free(replacement->path);
    free(replacement->path_before);
    *replacement = (weir__replacement){ 0 };
}

int weir__replacement_open(weir__replacement *replacement, const char *path)
{
    *replacement = (weir__replacement){ .path = strdup(path) };
    int failure = ENOMEM;
    int fd = replacement->path ? open_in_place(path) : -1;
    replacement->is_direct = fd != -2;
    if (fd == -2)
        fd = weir__part_create(path, &replacement->path_before);
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
    forget_replacement(replacement);
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

/* A nameless file is gone with its last descriptor. */
static int dup_descriptor(FILE *file)
{
    return fcntl(fileno(file), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

int weir__replacement_close(weir__replacement *replacement, bool keep)
{
    int failure = fflush(replacement->file) != 0 ? errno
                  : ferror(replacement->file)    ? find_failure(replacement->file)
                                                 : 0;
    const char *before = replacement->path_before;
    int fd = dup_descriptor(replacement->file);
    if (fclose(replacement->file) != 0 && !failure) /* a full disk may be reported only now */
        failure = errno;
    if (!replacement->is_direct && keep && !failure)
        failure = fd >= 0 ? weir__part_place(fd, before, replacement->path) : EMFILE;
    if (before && (!keep || failure))
        unlink(before);
    if (fd >= 0)
        close(fd);
    forget_replacement(replacement);
    return failure;
}
