/* Inputs of one stage that are kept in memory, and a source that passes them on. Each has one owner at a time: these inputs, and
   then the pipeline. One thread at a time. */
#ifndef ENGINE_PROFILE_STAGE_INPUTS_H
#define ENGINE_PROFILE_STAGE_INPUTS_H

#include <weir/item.h>
#include <weir/op.h>
#include <weir/pipeline.h>

/* All-zero is empty. */
typedef struct stage_inputs {
    weir_item *items; /* those from `next` on are owned */
    uint64_t num_items, room, next;
    uint64_t bytes;
    bool is_all;      /* there are no more, or no more may be kept */
    int64_t start_ns; /* when the source was first asked; 0 = not yet */
    weir_op op;       /* of the source */
} stage_inputs;

/* Takes the item. WEIR_OK; or WEIR_ENOMEM, and the item is still the caller's. */
int weir__stage_inputs_add(stage_inputs *inputs, weir_item *item);

/* Adds a source of the inputs, which must outlive the pipeline. makes: their types, as in weir_op; must outlive it, too. */
void weir__stage_inputs_add_source(stage_inputs *inputs, const char *makes, weir_builder *builder,
                                   const weir_stage_options *options);

/* Releases what is left. */
void weir__stage_inputs_clear(stage_inputs *inputs);

#endif
