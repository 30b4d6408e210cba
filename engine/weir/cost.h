/* What one item cost, as the stage that made it measured it: told by stages, recorded by observers and hooks. */
#ifndef WEIR_COST_H
#define WEIR_COST_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/item.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All-zero is unknown, in every field but the last two. */
typedef struct weir_item_cost {
    char codec[32]; /* "h264" */
    uint32_t width; /* of the source, in pixels */
    uint32_t height;
    uint64_t num_frames; /* in the result */
    uint64_t size_bytes; /* of the source */
    int64_t open_ns;     /* until the codec was ready */
    int64_t demux_ns;    /* reading and taking apart */
    int64_t decode_ns;
    int64_t scale_ns;
    uint64_t num_missing; /* frames that damage has cost, as far as it is known */
    uint64_t num_errors;  /* packets that could not be read or decoded, and frames that had to be patched up */
} weir_item_cost;

/* Fills *cost (all-zero before) from what a task has made; false = nothing is known of such an item. */
typedef bool weir_item_cost_function(const weir_item *out, weir_item_cost *cost);

#ifdef __cplusplus
}
#endif

#endif
