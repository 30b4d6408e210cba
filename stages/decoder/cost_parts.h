/* The cost of a decoded item as parts of its task. */
#ifndef STAGES_DECODER_COST_PARTS_H
#define STAGES_DECODER_COST_PARTS_H

#include <stddef.h>

#include <weir/decode_cost.h>
#include <weir/op.h>

#include "common/sibling.h"

/* The rows of WEIR_DECODE_PARTS, in their order. */
typedef struct weir_cost_part {
    weir_part_info info;
    size_t offset; /* of the field in weir_decode_cost */
} weir_cost_part;

extern const weir_cost_part weir__cost_parts[];
extern const size_t weir__num_cost_parts;

/* Tells the task what is known of its item so far. On the thread that runs the task. */
WEIR_SIBLING_API void weir__cost_tell(weir_task *task, const weir_decode_cost *cost);

/* Adds the times and errors of another stream of the same item. */
void weir__cost_add(weir_decode_cost *to, const weir_decode_cost *from);

#endif
