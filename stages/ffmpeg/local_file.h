/*
 * A local file, with read and seek functions for FFmpeg. Internal. One thread at a time for each file.
 *
 * Opening never waits, and the checks use the open descriptor, so that the file cannot be replaced in between. A wait
 * for a pipe can be interrupted by `interrupt`. The open or read of a regular file cannot be interrupted, but
 * `interrupt` is checked before it. Where it may block for ever, it runs on a separate thread, which can be
 * abandoned.
 */
#ifndef STAGES_FFMPEG_LOCAL_FILE_H
#define STAGES_FFMPEG_LOCAL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avio.h>

#include <weir/input_config.h>
#include <weir/status.h>

#include "common/sibling.h"
#include "stages/ffmpeg/io_thread.h"

/* The thread for calls that may block for ever; kept from file to file. All-zero is valid. */
typedef struct weir_local_host {
    const weir_input_config *config; /* its io_thread says when (NULL = the default) */
    weir_io_thread *io;
} weir_local_host;

typedef struct weir_local_file {
    bool is_open;
    bool is_pipe; /* or a terminal or device: it is read once, from the front */
    int fd;
    int64_t position; /* of the next byte, if it is not a pipe */
    int64_t offset;   /* only this part of a regular file is read, and positions are relative to it */
    int64_t length;   /* of the part; 0 = to the end of the file */
    uint8_t head[16]; /* of a pipe: bytes read for a check, to be returned next */
    int num_head;
    weir_local_host *host; /* its thread reads; NULL = the calling thread */
    struct stat info;      /* when it was opened: asking again may hang */
    AVIOInterruptCB interrupt;
} weir_local_file;

/*
 * Opens a path or, if path is NULL, an inherited descriptor. WEIR_OK, or the failure: WEIR_EUNSUPPORTED for anything
 * but regular files and disks, unless pipes are allowed. Afterwards weir__local_file_close(), whatever the result.
 */
int weir__local_file_open(weir_local_file *file, weir_local_host *host, const char *path, int descriptor,
                          bool allows_pipes, AVIOInterruptCB interrupt, weir_error *error);

/* Can FFmpeg not read the data of the pipe from front to back? MP4, whose header may be at its end, GIF and APNG. Waits
   for the first bytes. */
bool weir__local_file_wants_seeking(weir_local_file *file);

/* Replaces a pipe by an unnamed temporary file with all its data, at most max_bytes. */
int weir__local_file_keep(weir_local_file *file, uint64_t max_bytes, weir_error *error);

/* `self` is the file. Bytes, or FFmpeg's error. */
int weir__local_file_read(void *self, uint8_t *to, int max_bytes);
int64_t weir__local_file_seek(void *self, int64_t offset, int whence);

WEIR_SIBLING_API void weir__local_file_close(weir_local_file *file);

WEIR_SIBLING_API void weir__local_host_free(weir_local_host *host);

#endif
