/*
 * Decodes the groups of one file on several threads. Each thread takes the next group (group_cut.h), and decodes it
 * with a decoder of its own. Of its frames it makes the pictures of the request. The caller's thread reads the
 * packets, and takes the pictures in order. Internal. One thread at a time for each pool.
 *
 * What it gives is what one thread gives, byte by byte. Damage, a failure, or another delay of the decoder at the
 * start of a group makes that uncertain. Then the pool is doubtful: the caller frees it, and decodes with one thread.
 */
#ifndef STAGES_READER_GROUP_POOL_H
#define STAGES_READER_GROUP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/picture_config.h>
#include <weir/status.h>

#include "stages/reader/file_packets.h"
#include "stages/scale/scaler.h"

/* The pictures that are made of the frames. */
typedef struct weir_group_pictures {
    /* Without a filter; a whole copy, which outlives the pool. NULL = none are made. */
    const weir_picture_config *config;
    size_t picture_bytes; /* of each, as far as the header tells; 0 = it does not */
} weir_group_pictures;

/* The picture of a frame. */
typedef struct weir_group_picture {
    const uint8_t *data;
    int width;
    int height;
    weir_scaled scaled;
} weir_group_picture;

typedef struct weir_group_pool weir_group_pool;

/*
 * Before the first frame of an open file that can be read again. Looks at the first packets, which are then in the
 * file's cache. *pool is NULL if a pool would not help: the file has too few groups, one thread is wanted, or the
 * pictures of a group would take too much memory. WEIR_OK, or the failure with *error filled, and *pool is NULL.
 */
int weir__group_pool_open(weir_group_pool **pool, weir_file_packets *file, const weir_group_pictures *pictures,
                          weir_error *error);

/* WEIR_OK: the next frame's facts are in decoder->frame, without pixels, and its picture is
   weir__group_pool_picture(). WEIR_EOF: no more. WEIR_MORE: the pool is doubtful. Or a failure with *error filled. */
int weir__group_pool_next(weir_group_pool *pool, weir_error *error);

/* The picture of the last frame, valid until the next one is asked for. NULL pool: NULL. */
const weir_group_picture *weir__group_pool_picture(const weir_group_pool *pool);

/* The bytes of the pictures that wait; the most that have waited; and their limit: a quarter of max_decoder_bytes, which few
   pictures may exceed (group_pool.c). */
uint64_t weir__group_pool_bytes(weir_group_pool *pool);
uint64_t weir__group_pool_peak_bytes(weir_group_pool *pool);
uint64_t weir__group_pool_max_bytes(const weir_group_pool *pool);

/* Ends the threads after the packet that each has in work. */
void weir__group_pool_free(weir_group_pool *pool);

#endif
