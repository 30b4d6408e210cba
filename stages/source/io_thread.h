/*
 * Opens and reads a file on a thread of its own, so that a call which the kernel does not end (a network file system whose
 * server is gone) can be left behind. Internal. One thread at a time may use it.
 *
 * Left behind, the thread ends when the kernel lets it; until then it holds its stack and its buffer, and nothing of the caller's.
 */
#ifndef WEIR_STAGES_IO_THREAD_H
#define WEIR_STAGES_IO_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <libavformat/avio.h>

typedef struct weir_io_thread weir_io_thread;

/* Does the path lie below a mount of a network file system, or of one that is a program (FUSE)? By the path as it is
   written; what is mounted on "/" does not count. The mounts are those of five seconds ago or later. Any thread. */
bool weir_io_is_remote(const char *path);

/* NULL = out of memory or threads, or 64 of them are left behind already. */
weir_io_thread *weir_io_thread_start(void);

/* The following two give FFmpeg's AVERROR_EXIT when `interrupt` said so; then the thread is left behind, with the descriptor it
   reads from, and *io is NULL. */

/* The descriptor, with *info filled; or FFmpeg's error. */
int weir_io_thread_open(weir_io_thread **io, const char *path, int flags, struct stat *info,
                        AVIOInterruptCB interrupt);

/* Bytes (0 = the end) or FFmpeg's error. */
int weir_io_thread_read(weir_io_thread **io, int fd, uint8_t *to, int max_bytes, int64_t position,
                        AVIOInterruptCB interrupt);

/* Ends the thread. NULL is fine. */
void weir_io_thread_end(weir_io_thread *io);

#endif
