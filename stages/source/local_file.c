#include "local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavformat/avformat.h>

#include "ffmpeg_log.h"

/* How often a wait for a pipe looks whether it is still wanted. */
enum { ASK_INTERVAL_MS = 50 };

static bool is_interrupted(const weir_local_file *file)
{
    return file->interrupt.callback && file->interrupt.callback(file->interrupt.opaque);
}

static int check_kind(weir_local_file *file, bool allows_pipes, weir_error *error)
{
    struct stat info;
    if (fstat(file->fd, &info) != 0)
        return weir_ffmpeg_error(error, AVERROR(errno), "cannot open");
    if (S_ISDIR(info.st_mode))
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "this is a folder, not a file");
    file->is_pipe = !S_ISREG(info.st_mode) && !S_ISBLK(info.st_mode);
    if (file->is_pipe && !allows_pipes)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "this is no regular file: pipes and devices are read where WEIR_ALLOW_PIPES is set");
    return WEIR_OK;
}

int weir_local_file_open(weir_local_file *file, const char *path, int descriptor, bool allows_pipes,
                         AVIOInterruptCB interrupt, weir_error *error)
{
    *file = (weir_local_file){ .interrupt = interrupt };
    /* without O_NONBLOCK a pipe's open would wait for somebody who writes */
    file->fd =
        path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    file->is_open = file->fd >= 0;
    if (!file->is_open && errno == ENXIO) /* a socket */
        return weir_error_set(error, WEIR_EUNSUPPORTED, -ENXIO, "this is no regular file");
    if (!file->is_open)
        return weir_ffmpeg_error(error, AVERROR(errno), "cannot open");
    return check_kind(file, allows_pipes, error);
}

void weir_local_file_close(weir_local_file *file)
{
    if (file->is_open)
        close(file->fd);
    file->is_open = false;
}

/* A descriptor that others share is never made non-blocking, so it is read only when there is something. */
static ssize_t read_pipe(weir_local_file *file, uint8_t *to, size_t max_bytes)
{
    struct pollfd readable = { .fd = file->fd, .events = POLLIN };
    while (!is_interrupted(file)) {
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

static ssize_t read_some(weir_local_file *file, uint8_t *to, size_t max_bytes)
{
    ssize_t got;
    if (file->is_pipe)
        return read_pipe(file, to, max_bytes);
    do
        got = pread(file->fd, to, max_bytes, file->position);
    while (got < 0 && errno == EINTR);
    file->position += got > 0 ? got : 0;
    return got;
}

int weir_local_file_read(void *self, uint8_t *to, int max_bytes)
{
    weir_local_file *file = self;
    if (is_interrupted(file))
        return AVERROR_EXIT;
    ssize_t got = read_some(file, to, (size_t)max_bytes);
    if (got < 0)
        return errno == ECANCELED ? AVERROR_EXIT : AVERROR(errno);
    return got == 0 ? AVERROR_EOF : (int)got;
}

/* A disk's size is not in its status. */
static int64_t size_of(const weir_local_file *file)
{
    int64_t size_bytes = lseek(file->fd, 0, SEEK_END);
    return size_bytes < 0 ? AVERROR(errno) : size_bytes;
}

int64_t weir_local_file_seek(void *self, int64_t offset, int whence)
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

/* ---- what comes out of a pipe, to be read more than once ----------------------------------------------------------- */

static int open_nameless(void)
{
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
        return fd;
    FILE *file = tmpfile(); /* the file system knows no O_TMPFILE */
    if (!file)
        return -1;
    fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    fclose(file);
    return fd;
}

static int write_all(int fd, const uint8_t *bytes, size_t num_bytes)
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
    static const char *const what = "cannot keep what comes out of the pipe in a temporary file";
    uint8_t block[32 << 10];
    uint64_t num_bytes = 0;
    int got;
    while ((got = weir_local_file_read(file, block, sizeof block)) > 0) {
        num_bytes += (uint64_t)got;
        if (num_bytes > max_bytes)
            return weir_error_set(error, WEIR_ELIMIT, 0,
                                  "more than %" PRIu64 " bytes come out of the pipe: raise max_pipe_bytes",
                                  max_bytes);
        int rc = write_all(to, block, (size_t)got);
        if (rc < 0)
            return weir_ffmpeg_error(error, rc, what);
    }
    return got == AVERROR_EOF ? WEIR_OK : weir_ffmpeg_error(error, got, "cannot read");
}

int weir_local_file_keep(weir_local_file *file, uint64_t max_bytes, weir_error *error)
{
    int fd = open_nameless();
    if (fd < 0)
        return weir_ffmpeg_error(error, AVERROR(errno),
                                 "cannot make a temporary file for what comes out of the pipe");
    int rc = copy_pipe(file, fd, max_bytes, error);
    if (rc != WEIR_OK) {
        close(fd);
        return rc;
    }
    close(file->fd);
    file->fd = fd;
    file->is_pipe = false;
    file->position = 0;
    return WEIR_OK;
}
