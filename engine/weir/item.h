/* What flows: one value on its way, with what is known about it. */
#ifndef WEIR_ITEM_H
#define WEIR_ITEM_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One owner at a time: moved, never shared. An operation sets data, size_bytes, release and, where it knows a better
 * one, label; the rest is the engine's. All-zero is an empty item.
 */
typedef struct weir_item {
    void *data;
    size_t size_bytes;              /* counts against queue_bytes; 0 = not counted */
    void (*release)(void *data);    /* frees data; NULL = nothing to free; runs on any thread */
    uint64_t seq;                   /* number in source order; set by the engine */
    const char *label;              /* what a person calls it (a path, a URL); the engine makes its own copy when
                                           the operation returns, and what is made of the item inherits it */
    struct weir_label *label_owner; /* the engine's; operations leave it alone */
} weir_item;

/* Releases the data and forgets it; the item is empty afterwards. An empty one is left alone. Any thread. */
WEIR_API void weir_item_release(weir_item *item);

/* Moves data, size and release from `in` to `out`; `in` keeps seq and label. For operations that pass data on. */
WEIR_API void weir_item_move(weir_item *out, weir_item *in);

/* Moves data, size and release from `in` to `to`, and gives `to` the seq and the label, too: for operations that keep an
   item beyond their task (WEIR_KEPT). Release `to` with weir_item_release(). */
WEIR_API void weir_item_keep(weir_item *to, weir_item *in);

#ifdef __cplusplus
}
#endif

#endif
