/* The hand-off of items from slot to queue to slot. All functions except weir_handoff_prepare() need the lock. */
#ifndef WEIR_HANDOFF_H
#define WEIR_HANDOFF_H

#include "state.h"

/* Called before threads exist: time is counted from now on. */
void weir_handoff_prepare(weir_pipeline *pipeline, int64_t now_ns);

void weir_handoff_start_locked(weir_pipeline *pipeline);

/* Passes on the result of the slot, now or as soon as there is room and it is its turn. */
void weir_handoff_offer_locked(weir_slot *slot);

/* The slot has finished its work: it takes its next input, or waits for it. */
void weir_handoff_next_input_locked(weir_slot *slot);

/* If the node has reached the end of an epoch or of the stream and its slots are empty, it passes that end on. */
void weir_handoff_check_end_locked(weir_node *node);

/* An item inside the node was consumed: a downstream join that restores the order may continue. */
void weir_handoff_item_gone_locked(weir_node *node);

/* The idle slots of the node take the available inputs. */
void weir_handoff_resume_locked(weir_node *node);

/* The stage hooks have run. */
void weir_handoff_lifecycle_ended_locked(weir_node *node);

/* Takes the head of the sink queue, which must not be empty: WEIR_OK and an item, or WEIR_EPOCH. waited_ns: how
   long the consumer has waited for it. */
int weir_handoff_deliver_locked(weir_pipeline *pipeline, weir_item *item, int64_t waited_ns);

/* Ends the run if every node has ended and the remaining items are no longer wanted. */
void weir_handoff_check_over_locked(weir_pipeline *pipeline);

#endif
