/* Which input of a node is next. All with the lock held. */
#ifndef WEIR_MERGE_H
#define WEIR_MERGE_H

#include "state.h"

/* The input from which the node may take an item now. NULL = none. */
weir_queue *weir_merge_choose_locked(weir_node *node);

/* May an item that is just put into this empty input go straight to an idle slot of the node? */
bool weir_merge_takes_directly_locked(weir_node *node, const weir_queue *in);

/* An item of this input has been taken. */
void weir_merge_taken_locked(weir_node *node, const weir_queue *in);

/* An epoch has ended: turns begin anew. */
void weir_merge_new_epoch_locked(weir_node *node);

#endif
