#include "dataset/sampler/groups.h"

#include <stdlib.h>
#include <string.h>

typedef struct grouped_item {
    uint64_t item;
    uint64_t group;
    uint64_t place; /* in the block, as shuffled */
    uint64_t first; /* of the group's first item there */
} grouped_item;

int weir__groups_make(weir_groups *groups, const uint64_t *of_items, uint64_t num_items, uint64_t block_items)
{
    uint64_t length = block_items < num_items ? block_items : num_items;
    groups->num_items = num_items;
    groups->block_items = length;
    groups->groups = calloc(num_items, sizeof *groups->groups);
    groups->block = calloc(length, sizeof *groups->block);
    if (!groups->groups || !groups->block)
        return WEIR_ENOMEM;
    memcpy(groups->groups, of_items, num_items * sizeof *groups->groups);
    return WEIR_OK;
}

static int compare_groups(const void *a, const void *b)
{
    const grouped_item *left = a, *right = b;
    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static int compare_places(const void *a, const void *b)
{
    const grouped_item *left = a, *right = b;
    if (left->first != right->first)
        return left->first < right->first ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static void make_block(weir_groups *groups, uint64_t first, const weir__permutation *shuffled, uint64_t key)
{
    grouped_item *block = groups->block;
    uint64_t left = groups->num_items - first;
    groups->key = key;
    groups->first = first;
    groups->num = left < groups->block_items ? left : groups->block_items;
    for (uint64_t i = 0; i < groups->num; i++) {
        uint64_t item = weir__permutation_at(shuffled, first + i);
        block[i] = (grouped_item){ .item = item, .group = groups->groups[item], .place = i };
    }
    qsort(block, groups->num, sizeof *block, compare_groups);
    for (uint64_t i = 0; i < groups->num; i++)
        block[i].first = i && block[i].group == block[i - 1].group ? block[i - 1].first : block[i].place;
    qsort(block, groups->num, sizeof *block, compare_places);
}

uint64_t weir__groups_at(weir_groups *groups, uint64_t place, const weir__permutation *shuffled, uint64_t key)
{
    uint64_t first = place - place % groups->block_items;
    if (groups->num == 0 || groups->key != key || groups->first != first)
        make_block(groups, first, shuffled, key);
    return groups->block[place - first].item;
}

void weir__groups_free(weir_groups *groups)
{
    free(groups->groups);
    free(groups->block);
    *groups = (weir_groups){ 0 };
}
