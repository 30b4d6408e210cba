#include "stages/ffmpeg/local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavformat/avformat.h>

#include "common/above_standard.h"
#include "common/replacement.h"
#include "stages/ffmpeg/ffmpeg_log.h"

/* How often a wait for a pipe checks for an interrupt. */
enum { ASK_INTERVAL_MS = 50 };

static bool is_file_interrupted(const weir_local_file *file)
{
    return file->interrupt.callback && file->interrupt.callback(file->interrupt.opaque);
}

static int check_kind(weir_local_file *file, bool allows_pipes, weir_error *error)
{
    if (S_ISDIR(file->info.st_mode))
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "this is a folder, not a file");
    file->is_pipe = !S_ISREG(file->info.st_mode) && !S_ISBLK(file->info.st_mode);
    if (file->is_pipe && !allows_pipes)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "not a regular file: pipes and devices are refused unless WEIR_ALLOW_PIPES is set");
    return WEIR_OK;
}

/* The descriptor, or FFmpeg's error. Without O_NONBLOCK the open of a pipe would wait for a writer. */
static int open_directly(const char *path, int descriptor, int flags, struct stat *info)
{
    if (path)
        return weir__io_open(path, flags, info);
    int fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 || weir__io_is_given())
        return fd < 0 ? AVERROR(errno) : fd;
    return weir__io_describe(fd, info);
}

/* Starts the separate thread, where one is needed. */
static int choose_thread(weir_local_file *file, weir_local_host *host, const char *path, weir_error *error)
{
    int32_t wanted = host && host->config ? host->config->io_thread : 0;
    bool is_needed = host && path && wanted >= 0 && (wanted > 0 || weir__io_is_remote(path));
    if (!is_needed)
        return WEIR_OK;
    host->io = host->io ? host->io : weir__io_thread_start();
    file->host = host;
    return host->io ? WEIR_OK
                    : weir_error_set(
                          error, WEIR_ESYSTEM, 0,
                          "cannot start a thread to read it: out of memory, or too many reads hang in the kernel");
}

int weir__local_file_open(weir_local_file *file, weir_local_host *host, const char *path, int descriptor,
                          bool allows_pipes, AVIOInterruptCB interrupt, weir_error *error)
{
    enum { FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };
    *file = (weir_local_file){ .interrupt = interrupt };
    int rc = choose_thread(file, host, path, error);
    if (rc != WEIR_OK)
        return rc;
    file->fd = file->host ? weir__io_thread_open(&host->io, path, FLAGS, &file->info, interrupt)
                          : open_directly(path, descriptor, FLAGS, &file->info);
    file->is_open = file->fd >= 0;
    if (file->fd == AVERROR(ENXIO)) /* a socket */
        return weir_error_set(error, WEIR_EUNSUPPORTED, -ENXIO, "not a regular file");
    if (!file->is_open)
        return weir__ffmpeg_error(error, file->fd, "cannot open");
    return check_kind(file, allows_pipes, error);
}

void weir__local_host_free(weir_local_host *host)
{
    weir__io_thread_end(host->io);
    host->io = NULL;
}

void weir__local_file_close(weir_local_file *file)
{
    if (file->is_open && file->host && file->host->io) /* some network file systems write to the server now */
        weir__io_thread_close(&file->host->io, file->fd, file->interrupt);
    else if (file->is_open)
        close(file->fd);
    file->is_open = false;
}

/* A shared descriptor must not be made non-blocking, so it is read only when data is available. */
static ssize_t read_pipe(weir_local_file *file, uint8_t *to, size_t max_bytes)
{
    struct pollfd readable = { .fd = file->fd, .events = POLLIN };
    while (!is_file_interrupted(file)) {
        int rc = poll(&readable, 1, ASK_INTERVAL_MS);
        if (rc < 0 && errno != EINTR)
            return -1;
        ssize_t got = rc > 0 ? read(file->fd, to, max_bytes) : -1;
        if (got >= 0 || (rc > 0 && errno != EAGAIN && errno != EINTR))
            return got;
    }
    errno = ECANCELED;
    return -1;
}

static ssize_t take_head(weir_local_file *file, uint8_t *to, size_t max_bytes)
{
    size_t num_bytes = (size_t)file->num_head < max_bytes ? (size_t)file->num_head : max_bytes;
    memcpy(to, file->head, num_bytes);
    file->num_head -= (int)num_bytes;
    memmove(file->head, file->head + num_bytes, (size_t)file->num_head);
    return (ssize_t)num_bytes;
}

bool weir__local_file_wants_seeking(weir_local_file *file)
{
    static const struct magic {
        int at;
        const char *bytes; /* four */
    } kinds[] = { { 4, "ftyp" /* after the size of the box */ }, { 0, "GIF8" }, { 0, "\x89PNG" } };
    ssize_t got = 1;
    while (got > 0 && file->num_head < (int)sizeof file->head) {
        got = read_pipe(file, file->head + file->num_head, sizeof file->head - (size_t)file->num_head);
        file->num_head += got > 0 ? (int)got : 0;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (file->num_head >= kinds[i].at + 4 && memcmp(file->head + kinds[i].at, kinds[i].bytes, 4) == 0)
            return true;
    return false;
}

static ssize_t read_some(weir_local_file *file, uint8_t *to, size_t max_bytes)
{
    ssize_t got;
    if (file->is_pipe && file->num_head > 0)
        return take_head(file, to, max_bytes);
    if (file->is_pipe)
        return read_pipe(file, to, max_bytes);
    do
        got = pread(file->fd, to, max_bytes, file->offset + file->position);
    while (got < 0 && errno == EINTR);
    file->position += got > 0 ? got : 0;
    return got;
}

/* An abandoned thread owns the descriptor. */
static int read_on_thread(weir_local_file *file, uint8_t *to, int max_bytes)
{
    weir_io_thread **io = &file->host->io;
    int got = *io ? weir__io_thread_read(io, file->fd, to, max_bytes, file->offset + file->position, file->interrupt)
                  : AVERROR_EXIT;
    file->is_open = *io;
    file->position += got > 0 ? got : 0;
    return got == 0 ? AVERROR_EOF : got;
}

int weir__local_file_read(void *self, uint8_t *to, int max_bytes)
{
    weir_local_file *file = self;
    if (is_file_interrupted(file))
        return AVERROR_EXIT;
    if (file->length > 0 && max_bytes > file->length - file->position)
        max_bytes = file->position < file->length ? (int)(file->length - file->position) : 0;
    if (max_bytes == 0)
        return AVERROR_EOF;
    if (file->host && !file->is_pipe)
        return read_on_thread(file, to, max_bytes);
    ssize_t got = read_some(file, to, (size_t)max_bytes);
    if (got < 0)
        return errno == ECANCELED ? AVERROR_EXIT : AVERROR(errno);
    return got == 0 ? AVERROR_EOF : (int)got;
}

/* stat() has no size of a block device. */
static int64_t size_of(const weir_local_file *file)
{
    if (file->length > 0)
        return file->length;
    int64_t size_bytes = file->host ? file->info.st_size : lseek(file->fd, 0, SEEK_END);
    return size_bytes < 0 ? AVERROR(errno) : size_bytes;
}

int64_t weir__local_file_seek(void *self, int64_t offset, int whence)
{
    weir_local_file *file = self;
    int64_t from = 0;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return size_of(file);
    case SEEK_SET: break;
    case SEEK_CUR: from = file->position; break;
    case SEEK_END: from = size_of(file); break;
    default: return AVERROR(EINVAL);
    }
    if (from < 0 || offset < -from || offset > INT64_MAX - from)
        return AVERROR(EINVAL);
    file->position = from + offset;
    return file->position;
}

/* ---- pipes that are read more than once ----------------------------------------------------------- */

static int open_nameless(void)
{
    int fd = weir__spool_open();
    return fd < 0 && weir__io_is_given()
               ? weir__above_standard(memfd_create("weir-pipe", MFD_CLOEXEC)) /* a process without a file system */
               : fd;
}

static int copy_bytes(int fd, const uint8_t *bytes, size_t num_bytes)
{
    while (num_bytes > 0) {
        ssize_t written = write(fd, bytes, num_bytes);
        if (written < 0 && errno != EINTR)
            return AVERROR(errno);
        bytes += written > 0 ? written : 0;
        num_bytes -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int copy_pipe(weir_local_file *file, int to, uint64_t max_bytes, weir_error *error)
{
    static const char *const what = "cannot write the data of the pipe to a temporary file";
    uint8_t block[32 << 10];
    uint64_t num_bytes = 0;
    int got;
    while ((got = weir__local_file_read(file, block, sizeof block)) > 0) {
        num_bytes += (uint64_t)got;
        if (num_bytes > max_bytes)
            return weir_error_set(error, WEIR_ELIMIT, 0,
                                  "the pipe has more than %" PRIu64 " bytes: raise max_pipe_bytes", max_bytes);
        int rc = copy_bytes(to, block, (size_t)got);
        if (rc < 0)
            return weir__ffmpeg_error(error, rc, what);
    }
    return got == AVERROR_EOF ? WEIR_OK : weir__ffmpeg_error(error, got, "cannot read");
}

int weir__local_file_keep(weir_local_file *file, uint64_t max_bytes, weir_error *error)
{
    int fd = open_nameless();
    if (fd < 0)
        return weir__ffmpeg_error(error, AVERROR(errno), "cannot create a temporary file for the data of the pipe");
    int rc = copy_pipe(file, fd, max_bytes, error);
    if (rc != WEIR_OK) {
        close(fd);
        return rc;
    }
    close(file->fd);
    file->fd = fd;
    file->is_pipe = false;
    file->host = NULL;
    file->position = 0;
    return WEIR_OK;
}
