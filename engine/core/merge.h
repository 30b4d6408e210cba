/* Selects the next input of a node. */
#ifndef ENGINE_CORE_MERGE_H
#define ENGINE_CORE_MERGE_H

#include "engine/core/core.h"

/* The input from which the node may take an item now, or NULL. */
weir__queue *weir__merge_choose(weir__core_node *node);

/* Whether an item put into this empty input may go straight to an idle slot of the node. */
bool weir__merge_takes_directly(weir__core_node *node, const weir__queue *in);

/* Whether the merge must end: it has WEIR_MERGE_END_FIRST, and the selected input (ARRIVAL: any input) has ended. May
   select the next input. */
bool weir__merge_is_over(weir__core_node *node);

/* Call this after an item of this input was taken. */
void weir__merge_taken(weir__core_node *node, const weir__queue *in);

/* Call this at the end of an epoch: the selection starts again. */
void weir__merge_new_epoch(weir__core_node *node);

#endif
