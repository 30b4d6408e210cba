/*
 * A file of this machine as FFmpeg's reading and seeking functions want it. Internal. One thread at a time for each file.
 *
 * Opening never waits, and what was opened is what is checked, so that nothing can be put in its place in between. Waiting for
 * a pipe ends when `interrupt` says so. The open or read of a regular file cannot be broken off, but is asked about before; where
 * it may take for ever, it happens on a thread of its own, which can be left behind.
 */
#ifndef WEIR_STAGES_LOCAL_FILE_H
#define WEIR_STAGES_LOCAL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avio.h>

#include <weir/status.h>

#include "io_thread.h"

/* Where calls that may take for ever happen; kept from file to file. All-zero is valid. */
typedef struct weir_local_host {
    int io_thread; /* as weir_video_config.io_thread */
    weir_io_thread *io;
} weir_local_host;

typedef struct weir_local_file {
    bool is_open;
    bool is_pipe; /* or a terminal or device: it is read once, from the front */
    int fd;
    int64_t position; /* of the next byte, where it is no pipe */
    uint8_t head[16]; /* of a pipe: read to be looked at, and still to come */
    int num_head;
    weir_local_host *host; /* whose thread reads; NULL = the caller's */
    int64_t size_bytes;    /* if it does */
    AVIOInterruptCB interrupt;
} weir_local_file;

/*
 * Opens a path, or an inherited descriptor by number where path is NULL. WEIR_OK, or the failure: WEIR_EUNSUPPORTED for what
 * is no regular file or disk, unless pipes are allowed. Afterwards weir_local_file_close(), whatever the result.
 */
int weir_local_file_open(weir_local_file *file, weir_local_host *host, const char *path, int descriptor,
                         bool allows_pipes, AVIOInterruptCB interrupt, weir_error *error);

/* Is what comes out of the pipe an MP4 file, whose header may be at its end? Waits for its first bytes. */
bool weir_local_file_wants_seeking(weir_local_file *file);

/* Puts all that comes out of a pipe into a temporary file without a name, of max_bytes at most, which takes its place. */
int weir_local_file_keep(weir_local_file *file, uint64_t max_bytes, weir_error *error);

/* `self` is the file. Bytes, or FFmpeg's error. */
int weir_local_file_read(void *self, uint8_t *to, int max_bytes);
int64_t weir_local_file_seek(void *self, int64_t offset, int whence);

void weir_local_file_close(weir_local_file *file);

void weir_local_host_free(weir_local_host *host);

#endif
