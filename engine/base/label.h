/* Private functions of items. Any thread. A label is a reference-counted text with the identity of the item, shared by
   all items made from one item. */
#ifndef ENGINE_BASE_LABEL_H
#define ENGINE_BASE_LABEL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/item.h>

/* Adds or removes a reference. NULL is accepted. */
struct weir_label *weir__label_hold(struct weir_label *label);
void weir__label_release(struct weir_label *label);

const char *weir__label_text(const struct weir_label *label); /* "" for NULL */

/* `out` was made from `in`: gives it the same number and, unless it already has a label, the same label. False =
   out of memory; `out` then has no label. */
bool weir__label_inherit(weir_item *out, const weir_item *in);

/* Sets the label and the identity of the item, made of an address. False = out of memory; the item is unchanged. */
bool weir__label_set(weir_item *item, const char *address, uint64_t occurrence);

/* Follows items that have tickets (weir_item.tickets is not 0): whoever gives tickets to items sets it before. The functions are
   called on the thread that releases or moves the item. */
typedef struct weir_item_watcher {
    void (*tickets_released)(weir_item *item);                          /* by weir_item_release() */
    void (*tickets_move)(weir_item *to, weir_item *from, bool is_kept); /* by weir_item_move(), weir_item_keep() */
} weir_item_watcher;

extern _Atomic(const weir_item_watcher *) weir__item_watcher; /* NULL = no item has tickets */

static inline const weir_item_watcher *item_watcher(void)
{
    return atomic_load_explicit(&weir__item_watcher, memory_order_acquire);
}

/* The item's data and label have another owner now. It keeps its number, as gcc clears a whole item with `rep stos`,
   which is slow for 96 bytes. */
static inline void item_forget(weir_item *item)
{
    item->data = NULL;
    item->size_bytes = 0;
    item->release = NULL;
    item->release_self = NULL;
    item->type = NULL;
    item->label = NULL;
    item->label_owner = NULL;
    item->tickets = 0;
}

/* Releases the item's data and label. It keeps its number. */
static inline void item_drop(weir_item *item)
{
    if (item->release && item->data)
        item->release(item->data, item->release_self);
    if (item->label_owner)
        weir__label_release(item->label_owner);
    if (item->tickets)
        item_watcher()->tickets_released(item);
    item_forget(item);
}

#endif
