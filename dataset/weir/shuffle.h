/*
 * The shuffle buffer, for streams whose length and order are not known in advance. It holds num_items items; for each
 * input it outputs a random one of those it holds. At the end of an epoch or of the stream it outputs the rest in
 * random order; no item crosses the end of an epoch. If the items are known in advance, use weir_sampler_source,
 * which shuffles all of them without a buffer.
 *
 * Items keep their data, type and label. The choice depends on the seed, and on the epoch and number of the input
 * item: with inputs in order (WEIR_ORDER_INPUT upstream) and a concurrency of 1, runs are reproducible. With a higher
 * concurrency each slot has a separate buffer.
 */
#ifndef WEIR_SHUFFLE_H
#define WEIR_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/op.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_shuffle_config {
    size_t num_items; /* size of the buffer; at least 1, which keeps the order */
    uint64_t seed;
} weir_shuffle_config;

extern WEIR_API const weir_op weir_shuffle;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_shuffle(weir_builder *builder, const weir_shuffle_config *config,
                                     const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_shuffle, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
