/* Several items as one, and back. */
#ifndef WEIR_BATCH_H
#define WEIR_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/item.h>
#include <weir/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The data of an aggregate's result. It owns its items: whoever takes one out leaves an empty one behind. */
typedef struct weir_batch {
    size_t num_items;
    weir_item *items;     /* with their own seq and label */
    size_t num_taken;     /* of these, how many weir_disaggregate has handed on */
    uint64_t reserved[4]; /* 0 */
} weir_batch;

/* The type of items whose data is a weir_batch. */
#define WEIR_TYPE_BATCH "weir.batch"

/* The release function of such a result; releases the items. NULL is fine. Any thread. */
WEIR_API void weir_batch_free(weir_batch *batch);

/* The same for weir_item.release; self is not used. */
WEIR_API void weir_batch_release(void *data, void *self);

typedef struct weir_aggregate_config {
    size_t num_items; /* of a batch; at least 1 */
    bool drop_last;   /* an incomplete batch at the end, or at the end of an epoch, is released instead of handed on;
                         its items count as skipped */
    uint64_t reserved[4]; /* 0 */
} weir_aggregate_config;

/*
 * Collects num_items items into one weir_batch, whose size is the sum of theirs, with the label and seq of its last one.
 * No batch crosses the end of an epoch. With a concurrency above 1 each slot collects batches of its own: which items
 * share a batch depends on timing, and the incomplete ones at the end come in the order of their seq. For another
 * way of collecting write an operation that returns WEIR_KEPT and has a flush function.
 */
extern WEIR_API const weir_op weir_aggregate;

/* Hands on the items of a weir_batch one by one, each with its own label. */
extern WEIR_API const weir_op weir_disaggregate;

#ifdef __cplusplus
}
#endif

#endif
