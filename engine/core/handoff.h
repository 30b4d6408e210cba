/* The hand-off of items from slot to queue to slot, and what ends it. */
#ifndef ENGINE_CORE_HANDOFF_H
#define ENGINE_CORE_HANDOFF_H

#include "engine/core/core.h"

/* Passes on the result of the slot, now or as soon as there is room and it is its turn. */
void weir__result_offer(weir__core_slot *slot);

/* A step has passed. Passes on its result, which is in the entry behind the last item of the queue. Takes out the
   next input, which the slot has. weir__passes_count() counts the puts and items later, within the same event. */
void weir__result_pass(weir__core_slot *slot);
void weir__passes_count(weir__core_slot *slot, uint32_t num);

/* The task of the slot has failed, and its input is another one: the next task begins. */
void weir__input_replaced(weir__core_slot *slot);

/* The slot has finished its work: it takes its next input, or waits for it. */
void weir__slot_next_input(weir__core_slot *slot);

/* The idle slots of the node take the available inputs. */
void weir__node_resume(weir__core_node *node);

/* If the node has reached the end of an epoch or of the stream and its slots are empty, it passes that end on. */
void weir__node_check_end(weir__core_node *node);

/* An item inside the node was consumed: a downstream join that restores the order may continue. */
void weir__node_item_gone(weir__core_node *node);

/* The node is DONE: nothing more comes out of it. */
void weir__node_close(weir__core_node *node);

/* Ends the run if every node has ended and the remaining items are no longer wanted. */
void weir__graph_check_over(weir__graph *graph);

/* The node starts no task any more. keep_results: those that it has already made are passed on, else dropped. */
void weir__node_cancel(weir__core_node *node, bool keep_results);

/* Cancels everything upstream of the node; its items are dropped. */
void weir__nodes_cancel_before(weir__core_node *node);

/* Too many tasks of the node have failed, or its source or stage hook has. slot: whose step it was (NULL = none). */
void weir__graph_fail(weir__core_node *node, weir__core_slot *slot, weir__failure failure);

/* The result of a PENDING task is no longer wanted: its cancel function must be called. */
void weir__slot_want_cancel(weir__core_slot *slot);

#endif
