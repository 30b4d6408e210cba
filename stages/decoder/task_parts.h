/* The parts of a decoding task, for traces. */
#ifndef STAGES_DECODER_TASK_PARTS_H
#define STAGES_DECODER_TASK_PARTS_H

#include <weir/item.h>
#include <weir/op.h>

/* cost: of the item so far; *told: of its earlier chunks, kept by the worker. */
static inline void weir__task_tell_parts(weir_task *task, const weir_item_cost *cost, weir_item_cost *told)
{
    if (weir_task_num_chunks(task) == 0)
        *told = (weir_item_cost){ 0 };
    weir_task_add_part(task, "open", cost->open_ns - told->open_ns);
    weir_task_add_part(task, "demux", cost->demux_ns - told->demux_ns);
    weir_task_add_part(task, "decode", cost->decode_ns - told->decode_ns);
    weir_task_add_part(task, "scale", cost->scale_ns - told->scale_ns);
    *told = *cost;
}

#endif
