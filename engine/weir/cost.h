/* The cost of one item, as measured by the stage that made it: reported by stages, recorded by observers and
   hooks. */
#ifndef WEIR_COST_H
#define WEIR_COST_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/item.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 means unknown, except in the last two fields. */
typedef struct weir_item_cost {
    char codec[32]; /* "h264" */
    uint32_t width; /* of the source, in pixels */
    uint32_t height;
    uint64_t num_frames; /* in the result */
    uint64_t size_bytes; /* of the source */
    int64_t open_ns;     /* until the codec was ready */
    int64_t demux_ns;    /* reading and demuxing */
    int64_t decode_ns;
    int64_t scale_ns;
    uint64_t num_missing; /* frames lost to damage, as far as known */
    uint64_t num_errors;  /* packets that could not be read or decoded, and frames that had to be concealed */
} weir_item_cost;

/* Fills *cost (zeroed by the caller) for the result of a task; returns false if the cost of such an item is not
   known. */
typedef bool weir_item_cost_function(const weir_item *out, weir_item_cost *cost);

#ifdef __cplusplus
}
#endif

#endif
