/* Selects the next input of a node. All functions need the lock. */
#ifndef WEIR_MERGE_H
#define WEIR_MERGE_H

#include "state.h"

/* The input from which the node may take an item now, or NULL. */
weir_queue *weir_merge_choose_locked(weir_node *node);

/* Whether an item put into this empty input may go straight to an idle slot of the node. */
bool weir_merge_takes_directly_locked(weir_node *node, const weir_queue *in);

/* Whether the merge must end: it has WEIR_MERGE_END_FIRST, and the selected input (ARRIVAL: any input) has ended. May
   select the next input. */
bool weir_merge_is_over_locked(weir_node *node);

/* Call this after an item of this input was taken. */
void weir_merge_taken_locked(weir_node *node, const weir_queue *in);

/* Call this at the end of an epoch: the selection starts again. */
void weir_merge_new_epoch_locked(weir_node *node);

#endif
