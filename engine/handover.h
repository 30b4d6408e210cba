/* The hand-over of items from slot to queue to slot. All but weir_handover_prepare() with the lock held. */
#ifndef WEIR_HANDOVER_H
#define WEIR_HANDOVER_H

#include "state.h"

/* Before there are threads: from now on time counts. */
void weir_handover_prepare(weir_pipeline *pipeline, int64_t now_ns);

void weir_handover_start_locked(weir_pipeline *pipeline);

/* The slot's result goes on, now or as soon as there is room and it is its turn. */
void weir_handover_offer_locked(weir_slot *slot);

/* The slot has nothing to do any more: it takes its next input, or waits for it. */
void weir_handover_next_input_locked(weir_slot *slot);

/* If nothing is left inside the node and it has come to the end of an epoch or of everything, it goes on to that. */
void weir_handover_check_end_locked(weir_node *node);

/* An item inside the node has come to its end: a join behind it that restores the order may go on. */
void weir_handover_item_gone_locked(weir_node *node);

/* The node's idle slots take what they may. */
void weir_handover_resume_locked(weir_node *node);

/* The stage hooks have run. */
void weir_handover_lifecycle_ended_locked(weir_node *node);

/* Takes the head of the sink queue, which must not be empty: WEIR_OK and an item, or WEIR_EPOCH. waited_ns: how long the
   consumer has waited for it. */
int weir_handover_deliver_locked(weir_pipeline *pipeline, weir_item *item, int64_t waited_ns);

/* The run is over when every node has ended and nobody wants what is left. */
void weir_handover_check_over_locked(weir_pipeline *pipeline);

#endif
