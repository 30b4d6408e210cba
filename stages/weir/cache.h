/*
 * The cache stage: passes items on and keeps some of them; then it replays what it has kept, and takes no more input.
 * What comes before it fills its queues and stands still, so the rest of the program gets results as from an
 * infinitely fast loader: measure how fast a training loop runs then, and what the loader costs it is known. For a
 * loop that can call a function, weir_headspace_next() does it all (<weir/headspace.h>).
 *
 * Put it last, before the sink, with one slot. Replayed items share the data of what was kept: whoever gets them must
 * not change it, and releases them as any other item. An item is lent again while it is still in use only if all are.
 * If the input ends before the replay has begun, it begins then. Events "cache" say when it begins and ends.
 */
#ifndef WEIR_CACHE_H
#define WEIR_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setting this struct to all-zero is equivalent to defaults. */
typedef struct weir_cache_config {
    size_t num_items;      /* items kept at most (0 = 32) */
    uint64_t max_bytes;    /* of the kept items; may be exceeded by one (0 = 1 GiB) */
    uint64_t replay_after; /* items passed on before the replay (0 = as soon as no more will be kept) */
    uint64_t num_replays; /* items replayed, after which all further input is passed on (0 = replay until the pipeline
                              is stopped) */
    uint64_t reserved[4]; /* 0 */
} weir_cache_config;

/* The stage. */
extern WEIR_API const weir_op weir_cache;

#ifdef __cplusplus
}
#endif

#endif
