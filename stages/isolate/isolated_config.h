/* The operation that runs in a child, and its config, in the first message to it. Internal. */
#ifndef STAGES_ISOLATE_ISOLATED_CONFIG_H
#define STAGES_ISOLATE_ISOLATED_CONFIG_H

#include <weir/op.h>
#include <weir/video.h>

#include "stages/isolate/message.h"

/* The decode stages of weir, which every child program knows; NULL at the end. */
extern const weir_op *const weir__isolated_own_ops[];

/* Puts the config, op->config_size bytes, as it was given by the user. */
void weir__isolated_put_config(isolated_message *message, const weir_op *op, const void *config);

/* The config's input; NULL = it has none. */
const weir_input_config *weir__isolated_input(const weir_op *op, const void *config);

/* Does a config of op want its results in memory of the program? */
bool weir__isolated_has_allocator(const weir_op *op, const void *config);

/* The config that was put, never freed; NULL, with is_bad set, if it is not one of op. */
void *weir__isolated_get_config(isolated_message *message, const weir_op *op);

/* What a result is by the config of its operation, if that is one of ours: a consumer relies on what it has asked for. 0 = it
   depends on the file. */
typedef struct isolated_shape {
    bool is_own; /* false = an operation of a user: all that its config means is unknown */
    uint32_t width, height, longest, shortest;
    uint32_t chunk_frames;
    bool clip_items;
    uint64_t max_frames, max_bytes;
    uint32_t num_clips;  /* of a result; 0 = no axis of clips */
    uint64_t num_frames; /* of a result of clips; 0 = any number */
    weir_pixel pixel;
    weir_layout layout;
    uint32_t channels, sample_rate; /* these are of audio */
    bool planar;
} isolated_shape;

/* The config has been through op->config_init(). */
isolated_shape weir__isolated_shape_of(const weir_op *op, const void *config);

/* How long the body of a result may be: the program copies it, whatever limit of memory the child has. 0 = any length. */
uint64_t weir__isolated_max_body(const isolated_shape *shape);

/* The cost of an item that a decode stage, or an operation that makes the same, has made; NULL = it has none. */
const weir_decode_cost *weir__isolated_cost_of(const weir_item *item);

/* The field in which a result, whose rules hold, differs: "frames.width". NULL = none. num_before: the item's frames in earlier
   chunks; is_more: there are later ones; elapsed_ns: since the item was sent. */
const char *weir__isolated_find_misfit(const isolated_shape *shape, const weir_item *item, uint64_t num_before,
                                       bool is_more, int64_t elapsed_ns);

#endif
