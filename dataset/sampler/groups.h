/*
 * The order in groups: within each block of the shuffled items, the items of a group come one after the other, as the clips of one
 * file. Groups come in the order of their first item in the block, and the items of a group in the shuffled order. Private to this
 * room. One thread at a time.
 */
#ifndef DATASET_SAMPLER_GROUPS_H
#define DATASET_SAMPLER_GROUPS_H

#include <stdint.h>

#include <weir/status.h>

#include "dataset/sampler/permutation.h"

typedef struct weir_groups {
    uint64_t *groups; /* of each item; NULL = none */
    uint64_t num_items;
    uint64_t block_items; /* at most num_items */

    /* the last block that was asked for */
    struct grouped_item *block;
    uint64_t key; /* of its permutation */
    uint64_t first;
    uint64_t num; /* 0 = there is none yet */
} weir_groups;

/* *groups is all-zero. WEIR_OK or WEIR_ENOMEM. In any case weir__groups_free(). */
int weir__groups_make(weir_groups *groups, const uint64_t *of_items, uint64_t num_items, uint64_t block_items);

/* The item at that place, below num_items, of the shuffled order, whose permutation was made with the key. */
uint64_t weir__groups_at(weir_groups *groups, uint64_t place, const weir__permutation *shuffled, uint64_t key);

void weir__groups_free(weir_groups *groups);

#endif
