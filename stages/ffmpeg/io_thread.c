/* One request at a time. The caller and the thread share one block; the last of them to leave frees it. */
#include "stages/ffmpeg/io_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libavutil/error.h>

#include <weir/clock.h>

/* Sequential reads are read ahead in larger blocks. */
enum {
    FIRST_BYTES = 32 << 10,
    BLOCK_BYTES = 256 << 10,
    ASK_INTERVAL_MS = 50,
    STACK_BYTES = 128 << 10,
    MAX_LEFT = 64
};

typedef enum request { REQUEST_NONE = 0, REQUEST_OPEN, REQUEST_READ, REQUEST_CLOSE, REQUEST_END } request;

/* Abandoned threads of the process that still wait for the kernel. */
static atomic_uint num_left;

struct weir_io_thread {
    pthread_mutex_t lock;
    pthread_cond_t asked;    /* request, or is_left; with lock */
    pthread_cond_t answered; /* request is REQUEST_NONE again; with lock */

    /* guarded by lock */
    request request;
    bool is_left; /* the caller no longer waits for the answer */

    /* the thread's while there is a request, the caller's otherwise */
    char *path;
    int flags;
    int fd;
    struct stat info;
    int64_t position; /* of the block */
    int num_wanted;
    int result; /* or AVERROR */

    /* the caller's */
    int next_bytes;
    uint8_t block[BLOCK_BYTES];
};

static void free_io(weir_io_thread *io)
{
    pthread_cond_destroy(&io->asked);
    pthread_cond_destroy(&io->answered);
    pthread_mutex_destroy(&io->lock);
    free(io->path);
    free(io);
}

/* For a process without a file system. Written between two items: the parent sends the next file only when the item
   is done. The lock makes it known here. */
static struct {
    pthread_mutex_t lock;
    bool is_on;
    char *path; /* NULL = none */
    int fd;     /* or AVERROR */
    struct stat info;
} given = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool weir__io_give(const char *path, int fd, const struct stat *info)
{
    pthread_mutex_lock(&given.lock);
    if (given.path && given.fd >= 0)
        close(given.fd);
    free(given.path);
    given.is_on = true;
    given.path = path ? strdup(path) : NULL;
    given.fd = fd;
    given.info = *info;
    bool is_kept = given.path || !path;
    pthread_mutex_unlock(&given.lock);
    return is_kept;
}

bool weir__io_is_given(void)
{
    pthread_mutex_lock(&given.lock);
    bool is_on = given.is_on;
    pthread_mutex_unlock(&given.lock);
    return is_on;
}

int weir__io_describe(int fd, struct stat *info)
{
    if (fstat(fd, info) == 0)
        return fd;
    int code = errno;
    close(fd);
    return AVERROR(code);
}

static int open_given(const char *path, struct stat *info)
{
    int fd = AVERROR(ENOENT);
    pthread_mutex_lock(&given.lock);
    if (given.path && strcmp(path, given.path) == 0) {
        *info = given.info;
        fd = given.fd < 0 ? given.fd : fcntl(given.fd, F_DUPFD_CLOEXEC, 3);
        if (fd == -1 && given.fd >= 0)
            fd = AVERROR(errno);
    }
    pthread_mutex_unlock(&given.lock);
    return fd;
}

int weir__io_open(const char *path, int flags, struct stat *info)
{
    if (weir__io_is_given())
        return open_given(path, info);
    int fd = open(path, flags);
    return fd < 0 ? AVERROR(errno) : weir__io_describe(fd, info);
}

static int do_open(weir_io_thread *io)
{
    io->fd = weir__io_open(io->path, io->flags, &io->info);
    return io->fd;
}

static int do_read(weir_io_thread *io)
{
    ssize_t got;
    do
        got = pread(io->fd, io->block, (size_t)io->num_wanted, io->position);
    while (got < 0 && errno == EINTR);
    return got < 0 ? AVERROR(errno) : (int)got;
}

static void *io_main(void *argument)
{
    weir_io_thread *io = argument;
    pthread_mutex_lock(&io->lock);
    while (io->request != REQUEST_END && !io->is_left) {
        request asked = io->request;
        if (asked == REQUEST_NONE) {
            pthread_cond_wait(&io->asked, &io->lock);
            continue;
        }
        pthread_mutex_unlock(&io->lock);
        int result = asked == REQUEST_OPEN ? do_open(io) : asked == REQUEST_READ ? do_read(io) : close(io->fd);
        pthread_mutex_lock(&io->lock);
        if (io->is_left && (asked == REQUEST_READ || (asked == REQUEST_OPEN && result >= 0)))
            close(io->fd);
        io->result = result;
        io->request = REQUEST_NONE;
        pthread_cond_signal(&io->answered);
    }
    bool was_left = io->is_left;
    pthread_mutex_unlock(&io->lock);
    if (was_left)
        atomic_fetch_sub(&num_left, 1);
    free_io(io);
    return NULL;
}

/* Blocks the program's signals; detached, as it may have to be abandoned. */
static int start_thread(weir_io_thread *io)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0)
        return rc;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES > PTHREAD_STACK_MIN ? STACK_BYTES : (size_t)PTHREAD_STACK_MIN);
    sigfillset(&all);
    sigdelset(&all, SIGPROF); /* see thread.c */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, &attributes, io_main, io);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

weir_io_thread *weir__io_thread_start(void)
{
    weir_io_thread *io = calloc(1, sizeof *io);
    pthread_condattr_t monotonic;
    if (!io || atomic_load(&num_left) >= MAX_LEFT) {
        free(io);
        return NULL;
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->asked, NULL);
    pthread_cond_init(&io->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (start_thread(io) == 0)
        return io;
    free_io(io);
    return NULL;
}

static void wait_a_little_locked(weir_io_thread *io)
{
    int64_t until_ns = weir_clock_ns() + ASK_INTERVAL_MS * WEIR_MILLISECOND;
    struct timespec until = { until_ns / WEIR_SECOND, until_ns % WEIR_SECOND };
    pthread_cond_timedwait(&io->answered, &io->lock, &until);
}

/* Waits for the answer, or abandons the thread. The interrupt callback runs without the lock. */
static int ask_thread(weir_io_thread **leave, request what, AVIOInterruptCB interrupt)
{
    weir_io_thread *io = *leave;
    bool is_left = false;
    pthread_mutex_lock(&io->lock);
    io->request = what;
    pthread_cond_signal(&io->asked);
    while (io->request != REQUEST_NONE && !is_left) {
        wait_a_little_locked(io);
        if (io->request == REQUEST_NONE || !interrupt.callback)
            continue;
        pthread_mutex_unlock(&io->lock);
        is_left = interrupt.callback(interrupt.opaque);
        pthread_mutex_lock(&io->lock);
    }
    is_left &= io->request != REQUEST_NONE;
    io->is_left = is_left;
    if (is_left)
        atomic_fetch_add(&num_left, 1);
    int result = is_left ? AVERROR_EXIT : io->result;
    pthread_mutex_unlock(&io->lock); /* an abandoned block is freed by its thread */
    if (is_left)
        *leave = NULL;
    return result;
}

int weir__io_thread_open(weir_io_thread **io, const char *path, int flags, struct stat *info,
                         AVIOInterruptCB interrupt)
{
    weir_io_thread *self = *io;
    free(self->path);
    self->path = strdup(path);
    if (!self->path)
        return AVERROR(ENOMEM);
    self->flags = flags;
    self->result = 0;
    self->num_wanted = 0;
    self->next_bytes = FIRST_BYTES;
    int fd = ask_thread(io, REQUEST_OPEN, interrupt);
    if (fd >= 0) {
        *info = self->info;
        self->result = 0; /* the block is empty */
    }
    return fd;
}

int weir__io_thread_read(weir_io_thread **io, int fd, uint8_t *to, int max_bytes, int64_t position,
                         AVIOInterruptCB interrupt)
{
    weir_io_thread *self = *io;
    int64_t end = self->position + (self->result > 0 ? self->result : 0);
    bool is_there = self->num_wanted > 0 && position >= self->position && position < end;
    if (!is_there) {
        bool goes_on = self->num_wanted > 0 && position == end;
        self->next_bytes = goes_on ? self->next_bytes * 2 : FIRST_BYTES;
        self->next_bytes = self->next_bytes > BLOCK_BYTES ? BLOCK_BYTES : self->next_bytes;
        self->fd = fd;
        self->position = position;
        self->num_wanted = self->next_bytes;
        int got = ask_thread(io, REQUEST_READ, interrupt);
        if (got <= 0)
            return got;
        end = position + got;
    }
    int num_bytes = end - position < max_bytes ? (int)(end - position) : max_bytes;
    memcpy(to, self->block + (position - self->position), (size_t)num_bytes);
    return num_bytes;
}

void weir__io_thread_close(weir_io_thread **io, int fd, AVIOInterruptCB interrupt)
{
    (*io)->fd = fd;
    ask_thread(io, REQUEST_CLOSE, interrupt);
}

void weir__io_thread_end(weir_io_thread *io)
{
    if (!io)
        return;
    pthread_mutex_lock(&io->lock);
    io->request = REQUEST_END;
    pthread_cond_signal(&io->asked);
    pthread_mutex_unlock(&io->lock);
}

/* ---- which file systems --------------------------------------------------------------------------------------- */

static bool is_remote_kind(const char *kind)
{
    static const char *const kinds[] = { "nfs", "nfs4", "cifs",   "smb3", "smbfs",  "ceph",
                                         "9p",  "afs",  "lustre", "gpfs", "beegfs", "orangefs" };
    if (strncmp(kind, "fuse", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    }
    return false;
}

/* "\040" is a space. */
static void unescape_text(char *text)
{
    unsigned character;
    char *to = text;
    while (*text) {
        bool is_octal = sscanf(text, "\\%3o", &character) == 1 && strlen(text) >= 4;
        *to++ = is_octal ? (char)(unsigned char)character : *text;
        text += is_octal ? 4 : 1;
    }
    *to = '\0';
}

/* The mount points of such file systems, each followed by a newline. */
static struct {
    pthread_mutex_t lock;

    /* guarded by lock */
    char *points;
    size_t num_bytes;
    int64_t read_ns; /* 0 = never */
} remote = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void read_points_locked(void)
{
    char *line = NULL;
    size_t max_bytes = 0;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    free(remote.points);
    remote.points = NULL;
    FILE *points = mounts ? open_memstream(&remote.points, &remote.num_bytes) : NULL;
    while (points && getline(&line, &max_bytes, mounts) > 0) {
        char point[PATH_MAX], kind[64];
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1 || sscanf(rest, " - %63s", kind) != 1)
            continue;
        unescape_text(point);
        if (is_remote_kind(kind))
            fprintf(points, "%s\n", point);
    }
    free(line);
    if (points)
        fclose(points);
    if (mounts)
        fclose(mounts);
    remote.read_ns = weir_clock_ns();
}

/* Is the path below one of them? "/" does not count: it would match every path. */
static bool is_below_points_locked(const char *path)
{
    for (const char *point = remote.points; point && *point; point = strchr(point, '\n') + 1) {
        size_t length = strcspn(point, "\n");
        if (length > 1 && strncmp(path, point, length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return true;
    }
    return false;
}

bool weir__io_is_remote(const char *path)
{
    const int64_t fresh_ns = 5 * WEIR_SECOND;
    char absolute[2 * PATH_MAX + 2];
    char folder[PATH_MAX] = "";
    bool is_relative = path[0] != '/';
    pthread_mutex_lock(&remote.lock);
    if (remote.read_ns == 0 || weir_clock_ns() - remote.read_ns > fresh_ns)
        read_points_locked();
    bool has_points = remote.points && *remote.points;
    if (has_points && is_relative && !getcwd(folder, sizeof folder))
        folder[0] = '\0';
    if (has_points)
        snprintf(absolute, sizeof absolute, "%s%s%s", folder, is_relative ? "/" : "", path);
    bool is_remote = has_points && is_below_points_locked(absolute);
    pthread_mutex_unlock(&remote.lock);
    return is_remote;
}
