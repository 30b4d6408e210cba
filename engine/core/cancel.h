/* Stop and failure. All with the lock held. */
#ifndef WEIR_CANCEL_H
#define WEIR_CANCEL_H

#include "state.h"

void weir_cancel_by_failure_locked(weir_node *node, const weir_error *error);
void weir_cancel_by_stop_locked(weir_pipeline *pipeline);

/* Everything upstream of the node, which has ended; its items are dropped. */
void weir_cancel_before_locked(weir_node *node);

/* The result of a pending task is no longer wanted: a caller thread calls op->cancel, once. */
void weir_cancel_pending_locked(weir_slot *slot);

/* Takes the next task for which op->cancel is to be called. NULL = none. */
weir_slot *weir_cancel_take_locked(weir_pipeline *pipeline);

/* op->cancel has returned. */
void weir_cancel_called_locked(weir_slot *slot);

/* Takes one leftover item after the run is over. False = no more. */
bool weir_cancel_take_leftover_locked(weir_pipeline *pipeline, weir_item *item);

#endif
