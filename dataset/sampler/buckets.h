/*
 * The order in buckets: items of similar sizes are neighbours, so a batch of them needs little padding. Private to this folder. It
 * does not change after it is made: the item at a position depends only on the keys.
 *
 * The items are sorted by size and divided into buckets of equal total size. In each epoch, each bucket is shuffled, and cut into
 * blocks. The items that are left over in the buckets, in the order of the buckets, are cut into further blocks. Then the blocks
 * are shuffled. Only the last block may be shorter: it stays at the end.
 */
#ifndef DATASET_SAMPLER_BUCKETS_H
#define DATASET_SAMPLER_BUCKETS_H

#include <stdint.h>

#include <weir/status.h>

typedef struct weir_buckets {
    uint64_t num_items;
    uint64_t block_items;
    uint32_t num;
    uint64_t *members; /* the items, by size, then by number */
    /* of each bucket, with one further element for the end: before it */
    uint64_t *starts; /* items */
    uint64_t *blocks; /* whole blocks */
    uint64_t *rests;  /* items that are in no whole block of their bucket */
} weir_buckets;

/* *buckets must be all-zero. WEIR_OK; WEIR_EINVAL (a size is negative or not a number) or WEIR_ENOMEM, with *error filled. Call
   weir__buckets_free() in any case. */
int weir__buckets_make(weir_buckets *buckets, const double *sizes, uint64_t num_items, uint32_t num_buckets,
                       uint64_t block_items, weir_error *error);

/* The item at that place, below num_items, of the epoch with these keys. */
uint64_t weir__buckets_at(const weir_buckets *buckets, uint64_t place, uint64_t blocks_key, uint64_t order_key);

void weir__buckets_free(weir_buckets *buckets);

#endif
