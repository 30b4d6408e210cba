#include "stages/memory/kept_items.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

struct weir_kept_item {
    weir_item item;
    atomic_uint references; /* the set's and those of loans */
};

bool weir__kept_items_has_room(const weir_kept_items *kept)
{
    return kept->num_items < kept->max_items && kept->num_bytes < kept->max_bytes;
}

static void drop_reference(struct weir_kept_item *own)
{
    if (atomic_fetch_sub_explicit(&own->references, 1, memory_order_acq_rel) > 1)
        return;
    weir_item_release(&own->item);
    free(own);
}

static void end_loan(void *data, void *self)
{
    (void)data;
    drop_reference(self);
}

static void lend_item(struct weir_kept_item *own, weir_item *to)
{
    atomic_fetch_add_explicit(&own->references, 1, memory_order_relaxed);
    to->data = own->item.data;
    to->size_bytes = own->item.size_bytes;
    to->type = own->item.type;
    to->release = end_loan;
    to->release_self = own;
}

bool weir__kept_items_add(weir_kept_items *kept, weir_item *item)
{
    struct weir_kept_item **items = realloc(kept->items, (kept->num_items + 1) * sizeof(struct weir_kept_item *));
    if (!items)
        return false;
    kept->items = items;
    struct weir_kept_item *own = calloc(1, sizeof *own);
    if (!own)
        return false;
    atomic_init(&own->references, 1);
    weir_item_keep(&own->item, item);
    items[kept->num_items++] = own;
    kept->num_bytes += own->item.size_bytes;
    lend_item(own, item);
    return true;
}

void weir__kept_items_lend(weir_kept_items *kept, weir_item *item)
{
    assert(kept->num_items > 0);
    size_t at = kept->next;
    for (size_t i = 0; i < kept->num_items; i++) {
        size_t other = (kept->next + i) % kept->num_items;
        if (atomic_load_explicit(&kept->items[other]->references, memory_order_acquire) == 1) {
            at = other;
            break;
        }
    }
    kept->next = (at + 1) % kept->num_items;
    *item = (weir_item){ 0 };
    weir_item_copy_label(item, &kept->items[at]->item);
    lend_item(kept->items[at], item);
}

void weir__kept_items_free(weir_kept_items *kept)
{
    for (size_t i = 0; i < kept->num_items; i++)
        drop_reference(kept->items[i]);
    free(kept->items);
    *kept = (weir_kept_items){ 0 };
}
