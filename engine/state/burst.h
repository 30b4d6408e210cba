/*
 * Bursts: a thread runs several short steps of a slot one after the other, without the lock in between (see core.h).
 *
 * Its thread adds the steps that pass, and whoever acquires the lock tells the core about them. So everything that is seen
 * with the lock is as if each step had ended with the lock. But an operation may take long in the middle of a burst.
 * It takes for ever if it waits for something that needs a result of the burst. A thread that sleeps would not see
 * this result. So there are no bursts while a consumer that is not patient (lock.c) sleeps, or while a consumer polls
 * a descriptor. A consumer that is about to do that ends the bursts in progress. So does everybody else who acquires
 * the lock, except to pick or end a step or to take an item. A burst that was ended passes no step any more, as both
 * are one atomic operation on `progress`. The service thread ends bursts every millisecond while there are any.
 */
#ifndef ENGINE_STATE_BURST_H
#define ENGINE_STATE_BURST_H

#include "engine/state/run_state.h"

/* Whether steps of the node may be run in bursts, as far as this is known when the pipeline is built. */
bool weir__burst_allowed(const weir_node *node);

/* The thread has picked the slot: plans a burst. */
void weir__burst_plan_locked(weir_pool_thread *pool_thread, const weir_task *slot);

/* Thread of the pool_thread, without the lock: the step has ended. True = it has passed, and the step of the next input is to
   be run. */
bool weir__burst_continue(weir_pool_thread *pool_thread, weir__core_slot *core);

/*
 * The consumer takes an item with the lock, and those behind it without, from copies that it made meanwhile. To take
 * one is one atomic operation on `progress`, so a plan that was ended gives no more items. Only one thread takes
 * ahead, the first consumer; others end its plan. The items stay in the sink queue until the core is told, also when
 * the run is stopped.
 */

/* Call this when an item was taken with the lock. taker: identifies the calling thread. */
void weir__ahead_plan_locked(weir_pipeline *pipeline, const void *taker);

/* Without the lock. False = the next item must be taken with the lock. */
bool weir__ahead_take(weir_pipeline *pipeline, const void *taker, weir_item *item, int64_t now_ns);

/* No more items are taken ahead. */
void weir__ahead_end_locked(weir_pipeline *pipeline);

/* Tells the core about all steps that have passed, and items that were taken, in the order of time; `ends`: there will be no
   more. */
void weir__bursts_tell_locked(weir_pipeline *pipeline, bool ends);

/* The last step of the burst has ended; call it before weir__step_ended(). */
void weir__burst_end_locked(weir_pool_thread *pool_thread);

#endif
