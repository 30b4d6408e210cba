/*
 * The shuffle buffer: for streams whose length and order nobody knows beforehand. It holds num_items items; for each that
 * comes in, a random one of those it holds goes out. At the end of an epoch, and of the stream, the rest follows, in random
 * order; no item crosses it. Where the items are known beforehand, weir_sampler_source shuffles all of them, without a
 * buffer.
 *
 * Items keep their data, type and label. Which one goes out is decided by the seed and the epoch and number of the one that
 * comes in: with inputs in order (WEIR_ORDER_INPUT before it) and a concurrency of 1 runs repeat exactly. With a higher
 * one each slot has a buffer of its own.
 */
#ifndef WEIR_SHUFFLE_H
#define WEIR_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_shuffle_config {
    size_t num_items; /* that it holds; at least 1, which changes nothing about the order */
    uint64_t seed;
    uint64_t reserved[4]; /* 0 */
} weir_shuffle_config;

extern WEIR_API const weir_op weir_shuffle;

#ifdef __cplusplus
}
#endif

#endif
