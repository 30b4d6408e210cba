/*
 * Opens, reads and closes a file on a separate thread. So a call that blocks in the kernel (a network file system
 * whose server is gone) can be abandoned. Internal. One thread at a time may use it.
 *
 * An abandoned thread ends when its system call returns; until then it keeps its stack and its buffer, but nothing of
 * the caller's.
 */
#ifndef STAGES_FFMPEG_IO_THREAD_H
#define STAGES_FFMPEG_IO_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <libavformat/avio.h>

#include "common/sibling.h"

typedef struct weir_io_thread weir_io_thread;

/* Is the path below a mount point of a network file system or of FUSE? Compares the path as written; the mount of "/"
   does not count. The list of mounts is at most five seconds old. Any thread. */
bool weir__io_is_remote(const char *path);

/* Opens a file: the descriptor, with *info filled; or FFmpeg's error. In a process without a file system, which has been
   given its file, only that one. */
int weir__io_open(const char *path, int flags, struct stat *info);

/* The descriptor, with *info filled; or FFmpeg's error, and it is closed. */
int weir__io_describe(int fd, struct stat *info);

/* From now on this process has no file system, but this file, open as fd (< 0: FFmpeg's error that opening it gives).
   Takes the descriptor. A NULL path: none. Between two items. False: out of memory. */
WEIR_SIBLING_API bool weir__io_give(const char *path, int fd, const struct stat *info);
bool weir__io_is_given(void);

/* NULL = out of memory or threads, or 64 threads have been abandoned already. */
weir_io_thread *weir__io_thread_start(void);

/* The following three return if `interrupt` requests it; then the thread is abandoned with its descriptor, *io is NULL,
   and the result is FFmpeg's AVERROR_EXIT. */

/* The descriptor, with *info filled; or FFmpeg's error. */
int weir__io_thread_open(weir_io_thread **io, const char *path, int flags, struct stat *info,
                         AVIOInterruptCB interrupt);

/* Bytes (0 = the end) or FFmpeg's error. */
int weir__io_thread_read(weir_io_thread **io, int fd, uint8_t *to, int max_bytes, int64_t position,
                         AVIOInterruptCB interrupt);

void weir__io_thread_close(weir_io_thread **io, int fd, AVIOInterruptCB interrupt);

/* Ends the thread. NULL is fine. */
void weir__io_thread_end(weir_io_thread *io);

#endif
