/* Combines several items into one, and splits them again. */
#ifndef WEIR_BATCH_H
#define WEIR_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/item.h>
#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The data of a result of weir_aggregate. It owns its items; to take one out, move it and leave an empty item
   behind. */
typedef struct weir_batch {
    size_t num_items;
    weir_item *items; /* with their own seq and label */
    size_t num_taken; /* number of items that weir_disaggregate has passed on */
} weir_batch;

/* The type of items whose data is a weir_batch. */
#define WEIR_TYPE_BATCH "weir.batch"

/* The weir_item.release of such an item; self is not used. */
WEIR_API void weir_batch_release(void *data, void *self);

/* Frees the batch and releases its items. NULL is accepted. Any thread. */
static inline void weir_batch_free(weir_batch *batch)
{
    weir_batch_release(batch, NULL);
}

typedef struct weir_aggregate_config {
    size_t num_items; /* items per batch; at least 1 */
    bool drop_last;   /* an incomplete batch at the end, or at the end of an epoch, is released instead of passed on;
                         its items count as skipped */
} weir_aggregate_config;

/*
 * Collects num_items items into one weir_batch, whose size is the sum of theirs, with the label and seq of its last
 * item. No batch crosses the end of an epoch. With a concurrency above 1 each slot collects separate batches: which
 * items share a batch depends on timing, and the incomplete batches at the end come in the order of their seq. For
 * other ways to collect items, write an operation that returns WEIR_KEPT and has a flush function.
 */
extern WEIR_API const weir_op weir_aggregate;

static inline void weir_pipe_aggregate(weir_builder *builder, const weir_aggregate_config *config,
                                       const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_aggregate, config, sizeof *config, options);
}

/* Passes on the items of a weir_batch one by one, each with its own label and number. */
extern WEIR_API const weir_op weir_disaggregate;

static inline void weir_pipe_disaggregate(weir_builder *builder, const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_disaggregate, NULL, 0, options);
}

#ifdef __cplusplus
}
#endif

#endif
