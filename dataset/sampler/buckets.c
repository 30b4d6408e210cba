#include "dataset/sampler/buckets.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/random.h"
#include "dataset/sampler/permutation.h"

/* Sizes are compared and added up as integers, so that all machines agree. */
static const double size_unit = UINT64_C(1) << 31;

/* ---- making them ------------------------------------------------------------------------------------------------ */

typedef struct sized {
    uint64_t item;
    uint64_t size;
} sized;

static int compare_sizes(const void *a, const void *b)
{
    const sized *left = a;
    const sized *right = b;
    if (left->size != right->size)
        return left->size < right->size ? -1 : 1;
    return left->item < right->item ? -1 : left->item > right->item;
}

static int find_largest(const double *sizes, uint64_t num_items, double *largest, weir_error *error)
{
    *largest = 0;
    for (uint64_t i = 0; i < num_items; i++) {
        if (!(sizes[i] >= 0) || !isfinite(sizes[i]))
            return weir_error_set(
                error, WEIR_EINVAL, 0,
                "sampler: the size of item %" PRIu64 " is %g; it must be a finite number, 0 or above", i, sizes[i]);
        *largest = sizes[i] > *largest ? sizes[i] : *largest;
    }
    return WEIR_OK;
}

/* Buckets of equal total size. */
static void divide(weir_buckets *buckets, const sized *items)
{
    uint64_t total = 0, sum = 0;
    uint32_t bucket = 0;
    for (uint64_t i = 0; i < buckets->num_items; i++)
        total += items[i].size;
    for (uint64_t i = 0; i < buckets->num_items; i++) {
        while (bucket + 1 < buckets->num && sum >= total / buckets->num * (bucket + 1) && sum > 0)
            buckets->starts[++bucket] = i;
        buckets->members[i] = items[i].item;
        sum += items[i].size;
    }
    while (bucket < buckets->num)
        buckets->starts[++bucket] = buckets->num_items;
}

static void count_blocks(weir_buckets *buckets)
{
    for (uint32_t i = 0; i < buckets->num; i++) {
        uint64_t length = buckets->starts[i + 1] - buckets->starts[i];
        buckets->blocks[i + 1] = buckets->blocks[i] + length / buckets->block_items;
        buckets->rests[i + 1] = buckets->rests[i] + length % buckets->block_items;
    }
}

int weir__buckets_make(weir_buckets *buckets, const double *sizes, uint64_t num_items, uint32_t num_buckets,
                       uint64_t block_items, weir_error *error)
{
    double largest;
    int rc = find_largest(sizes, num_items, &largest, error);
    if (rc != WEIR_OK)
        return rc;
    *buckets = (weir_buckets){ .num_items = num_items, .block_items = block_items, .num = num_buckets };
    buckets->members = calloc(num_items, sizeof *buckets->members);
    buckets->starts = calloc((size_t)num_buckets + 1, sizeof *buckets->starts);
    buckets->blocks = calloc((size_t)num_buckets + 1, sizeof *buckets->blocks);
    buckets->rests = calloc((size_t)num_buckets + 1, sizeof *buckets->rests);
    sized *items = calloc(num_items, sizeof *items);
    if (items && buckets->members && buckets->starts && buckets->blocks && buckets->rests) {
        for (uint64_t i = 0; i < num_items; i++)
            items[i] = (sized){ .item = i, .size = largest > 0 ? (uint64_t)(sizes[i] / largest * size_unit) : 0 };
        qsort(items, num_items, sizeof *items, compare_sizes);
        divide(buckets, items);
        count_blocks(buckets);
    } else {
        rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    free(items);
    return rc;
}

void weir__buckets_free(weir_buckets *buckets)
{
    free(buckets->members);
    free(buckets->starts);
    free(buckets->blocks);
    free(buckets->rests);
    *buckets = (weir_buckets){ 0 };
}

/* ---- the order -------------------------------------------------------------------------------------------------- */

/* The bucket with that number of a block, or of an item of the rest: the last one that begins at it or before. */
static uint32_t bucket_with(const weir_buckets *buckets, const uint64_t *before, uint64_t number)
{
    uint32_t low = 0, high = buckets->num;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (before[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t member_at(const weir_buckets *buckets, uint32_t bucket, uint64_t place, uint64_t order_key)
{
    uint64_t length = buckets->starts[bucket + 1] - buckets->starts[bucket];
    weir__permutation items = weir__permutation_make(length, weir__random_seed(order_key, bucket));
    return buckets->members[buckets->starts[bucket] + weir__permutation_at(&items, place)];
}

uint64_t weir__buckets_at(const weir_buckets *buckets, uint64_t place, uint64_t blocks_key, uint64_t order_key)
{
    uint64_t length = buckets->block_items, num_whole = buckets->num_items / length;
    uint64_t block = place / length, within = place % length;
    if (block < num_whole) {
        weir__permutation blocks = weir__permutation_make(num_whole, blocks_key);
        block = weir__permutation_at(&blocks, block);
    }
    uint64_t num_own = buckets->blocks[buckets->num];
    if (block < num_own) {
        uint32_t bucket = bucket_with(buckets, buckets->blocks, block);
        return member_at(buckets, bucket, (block - buckets->blocks[bucket]) * length + within, order_key);
    }
    uint64_t rest = (block - num_own) * length + within;
    uint32_t bucket = bucket_with(buckets, buckets->rests, rest);
    uint64_t num_before = (buckets->blocks[bucket + 1] - buckets->blocks[bucket]) * length;
    return member_at(buckets, bucket, num_before + rest - buckets->rests[bucket], order_key);
}
