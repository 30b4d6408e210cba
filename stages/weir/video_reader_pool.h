/*
 * A pool keeps video readers open, so a file that is read again need not be opened and indexed again.
 *
 *     weir_video_reader_pool *pool = NULL;
 *     int rc = weir_video_reader_pool_new(&pool, NULL, 0, &error);
 *     …
 *     rc = weir_video_reader_pool_take(pool, &(weir_video_source){ .path = "clip.mp4" }, sizeof(weir_video_source), &reader, &error);
 *     if (rc == WEIR_OK)
 *         rc = weir_video_reader_frames(reader, &sampling, sizeof sampling, NULL, 0, &frames, &error);
 *     weir_video_reader_pool_give_back(pool, reader);
 *     …
 *     weir_video_reader_pool_free(pool);
 *
 * A reader from a pool gives the same frames, times and error texts as a new one from weir_video_reader_open().
 *
 * Any thread may call these functions, at the same time as others. One thread at a time uses a reader that was taken.
 * Two threads that take the same path at the same time get two readers. After fork(), the child must not use the
 * parent's pool.
 *
 * Which files are kept: regular files that a path names, and that are still the same at the next take. A file is the same if
 * its device, inode, size, and times of change and modification are. Otherwise, it is opened anew. These are never kept: URLs,
 * pipes, and files that were modified less than two seconds before they were opened, because a further change may not show in
 * their time. A reader is not kept, either, if its last request failed, found damage, or was for all frames or the first
 * frames.
 */
#ifndef WEIR_VIDEO_READER_POOL_H
#define WEIR_VIDEO_READER_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>
#include <weir/version.h>
#include <weir/video.h>
#include <weir/video_reader.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_video_reader_pool weir_video_reader_pool;

/* Setting this struct to all-zero is equivalent to defaults. What it points to is copied. */
typedef struct weir_video_reader_pool_config {
    /* The most open readers of the pool. Each has one descriptor. To stay within this number, the pool closes readers
       that are not in use, the least recently used first. It does not refuse to open more that are in use at the same
       time. (0 = a quarter of the process's limit of descriptors, and at most 256) */
    uint32_t max_open;
    /* The most memory of the readers that are not in use. It counts their packets, and their tables of packets and
       frames. It does not count what FFmpeg keeps of an open file besides its table of packets. Decoded frames are
       freed when a reader is given back, except by a video stage (keep_open in weir/video.h). (0 = 256 MiB) */
    uint64_t max_bytes;
    /* The options of all readers, as for weir_video_reader_open() (NULL = the defaults). */
    const weir_video_config *video;
    size_t video_size; /* sizeof(weir_video_config), if video is given */
} weir_video_reader_pool_config;

/* WEIR_OK: the caller frees *pool with weir_video_reader_pool_free(). Otherwise *pool is NULL, and *error (may be NULL) is filled:
   WEIR_EINVAL or WEIR_ENOMEM. */
WEIR_API int weir_video_reader_pool_new(weir_video_reader_pool **pool, const weir_video_reader_pool_config *config,
                                        size_t config_size, weir_error *error);

/*
 * An open reader of the source's path: one that was kept, or a new one. Its should_stop and self are those of the
 * source; its packets are copied. Its epoch and number are 0, as those of a new reader. WEIR_OK: the caller gives
 * *reader back. Otherwise *reader is NULL, *error (may be NULL) is filled, and the status is that of
 * weir_video_reader_open(); WEIR_EINVAL for bytes and functions, which stay the caller's.
 */
WEIR_API int weir_video_reader_pool_take(weir_video_reader_pool *pool, const weir_video_source *source,
                                         size_t source_size, weir_video_reader **reader, weir_error *error);

/* The reader is not the caller's any more: it is kept, or freed. NULL is fine. Frames that it has returned stay valid. */
WEIR_API void weir_video_reader_pool_give_back(weir_video_reader_pool *pool, weir_video_reader *reader);

/* Closes all readers that are not in use. NULL is fine. */
WEIR_API void weir_video_reader_pool_drop(weir_video_reader_pool *pool);

/* What a pool has done so far, and what it has now. */
typedef struct weir_video_reader_pool_figures {
    uint64_t num_taken;    /* readers, so far */
    uint64_t num_reused;   /* of these, they were open already */
    uint64_t num_replaced; /* of these, they were opened anew because the file was another one */
    uint64_t num_closed;   /* to stay within the limits */
    uint32_t num_used;     /* readers that are in use now */
    uint32_t num_idle;     /* open readers that are not in use now */
    uint64_t idle_bytes;   /* of these, as max_bytes counts them */
} weir_video_reader_pool_figures;

/* Fills *figures, figures_size bytes. WEIR_OK or WEIR_EINVAL. */
WEIR_API int weir_video_reader_pool_figures_get(weir_video_reader_pool *pool, weir_video_reader_pool_figures *figures,
                                                size_t figures_size);

/* Frees the pool with its readers. All must have been given back. NULL is fine. */
WEIR_API void weir_video_reader_pool_free(weir_video_reader_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
