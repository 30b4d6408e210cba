/*
 * A bounded set of items that is lent out again and again, in rotation: for replays. Internal; compiled into each
 * library that uses it. One thread at a time calls these functions; loans are released on any thread, also after the
 * set has been freed: an item is freed with its last loan.
 */
#ifndef STAGES_MEMORY_KEPT_ITEMS_H
#define STAGES_MEMORY_KEPT_ITEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/item.h>

typedef struct weir_kept_items {
    /* immutable after init */
    size_t max_items;
    uint64_t max_bytes; /* may be exceeded by one item */

    struct weir_kept_item **items;
    size_t num_items;
    uint64_t num_bytes;
    size_t next; /* to be lent */
} weir_kept_items;

/* Is there room for one more? */
bool weir__kept_items_has_room(const weir_kept_items *kept);

/* Moves the data of the item into the set and makes *item a loan of it; label and origin are copied. False = out of
   memory: nothing has changed. */
bool weir__kept_items_add(weir_kept_items *kept, weir_item *item);

/* Sets *item to a loan of the next item that is not lent; if all are, of the next one, which then has several
   holders. The label is valid while the loan is. The set must not be empty. */
void weir__kept_items_lend(weir_kept_items *kept, weir_item *item);

void weir__kept_items_free(weir_kept_items *kept);

#endif
