/*
 * The cache stage: passes items on and keeps some of them; then it replays the kept items, and takes no more input. The
 * stages upstream fill their queues and then block, so downstream sees an infinitely fast loader. The speed of a
 * training loop before and during the replay shows the cost of loading. If the loop can call a function,
 * weir_headspace_next() measures this directly (<weir/headspace.h>).
 *
 * Put it last, before the sink, with one slot. Replayed items share the data of the kept items: the consumer must not
 * change it, and releases them like other items. An item that is still in use is replayed again only if all kept items
 * are in use. If the input ends before the replay has begun, the replay begins then. An event "cache" is reported when
 * the replay begins and ends.
 */
#ifndef WEIR_CACHE_H
#define WEIR_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setting this struct to all-zero is equivalent to defaults. */
typedef struct weir_cache_config {
    size_t num_items;      /* maximum number of kept items (0 = 32) */
    uint64_t max_bytes;    /* of the kept items; may be exceeded by one (0 = 1 GiB) */
    uint64_t replay_after; /* items passed on before the replay (0 = as soon as no more will be kept) */
    uint64_t num_replays; /* items replayed, after which all further input is passed on (0 = replay until the pipeline
                              is stopped) */
} weir_cache_config;

extern WEIR_API const weir_op weir_cache;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_cache(weir_builder *builder, const weir_cache_config *config,
                                   const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_cache, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
