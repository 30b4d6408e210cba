/* Acquires and releases the lock of the pipeline. Before it is released, the work that events of the core have left
   is done. The sleeping threads that are needed are chosen, too (see lock.c). */
#ifndef ENGINE_STATE_LOCK_H
#define ENGINE_STATE_LOCK_H

#include "engine/state/run_state.h"

/* How often the service thread looks for work that was left to threads in short steps for too long. */
#define GUARD_INTERVAL_NS (1 * WEIR_MILLISECOND)

/* Spins for a while before it sleeps. Ends all bursts: none of their steps passes while the lock is held. */
void weir__engine_lock(weir_pipeline *pipeline);

/* Acquires the lock and moves the time of the core to now_ns, which the caller read just before. */
static inline void engine_lock_at(weir_pipeline *pipeline, int64_t now_ns)
{
    weir__engine_lock(pipeline);
    weir__graph_move_time(&pipeline->core, now_ns);
}

/* The same, but bursts go on. Only to pick or end a step, or to take an item. */
void weir__engine_lock_for_step(weir_pipeline *pipeline, int64_t now_ns);

/* Signals all threads affected by the changes: before the lock is released by waiting. */
void weir__wake_all_locked(weir_pipeline *pipeline);

/* Waits for a signal, at most timeout_ns, without the lock; then acquires it for a step. */
void weir__engine_wait_locked(weir_pipeline *pipeline, uv_cond_t *cond, int64_t timeout_ns);

/* Releases the lock, then wakes the threads affected by the changes. */
void weir__engine_unlock(weir_pipeline *pipeline);

/* For the service thread: wakes the threads that were not woken in time for what was left to others. False = nothing was
   left since the last call, so none is needed until the service thread is woken. */
bool weir__engine_guard(weir_pipeline *pipeline);

/*
 * The same for a thread that weir_pipeline_free() does not wait for. The pipeline may be freed as soon as the lock is
 * released, so it wakes the threads first.
 */
void weir__engine_unlock_last(weir_pipeline *pipeline);

/* The consumer has enough items for the time that it takes to wake a thread. */
static inline bool consumer_has_enough_locked(const weir_pipeline *pipeline)
{
    const weir__queue *sink = pipeline->core.sink;
    return pipeline->num_pools == 1 && pipeline->consumer.waiting <= pipeline->consumer.waking &&
           !pipeline->core.stopped && !pipeline->core.failed && sink->depth > sink->capacity / 2;
}

/* Whether there is work for one more thread. Short steps are left to a thread in a short step, which will pick again soon, and
   while the consumer has enough; but not for long. */
static inline bool pool_invites_locked(const weir_pool *pool)
{
    const weir__core_pool *core_pool = &pool->core;
    if (core_pool->num_ready == 0)
        return false;
    if (core_pool->num_ready_slow > 0 || core_pool->graph->now_ns - core_pool->picked_ns >= GUARD_INTERVAL_NS / 2)
        return true;
    return core_pool->num_running_short == 0 && !consumer_has_enough_locked(pool->pipeline);
}

/* Threads of the pipeline's pool will soon acquire the lock again. */
static inline bool runs_short_steps_locked(const weir_pipeline *pipeline)
{
    const weir__core_pool *core_pool = &pipeline->pools[0]->core;
    return pipeline->num_pools == 1 &&
           (core_pool->num_running_short > 0 || core_pool->num_ready > core_pool->num_ready_slow);
}

/* Whether there is a CPU for a thread that only spins. The CPU of the calling thread counts as taken; `consumer`:
   so does the consumer's. */
static inline bool may_spin_locked(const weir_pipeline *pipeline, bool consumer)
{
    return pipeline->waking.num_awake + consumer <= pipeline->num_cpus;
}

#endif
