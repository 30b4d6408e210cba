/* Decides which sleeping threads to wake. All functions need the lock. */
#ifndef ENGINE_RUN_WAKE_H
#define ENGINE_RUN_WAKE_H

#include "run_state.h"

#define GUARD_INTERVAL_NS (1 * WEIR_MILLISECOND) /* how long work may be left to threads in short steps */

/* Whether there is work for one more thread. Short steps are left to a thread in a short step, which will pick
   again soon. */
static inline bool pool_invites_locked(const weir_pool *pool)
{
    return pool->core.num_ready > 0 && (pool->core.num_running_short == 0 || pool->core.num_ready_slow > 0);
}

/* Work is left to threads in short steps, or they run some in bursts. */
static inline bool needs_guard_locked(const weir_pool *pool)
{
    return pool->core.num_ready > 0 || pool->pipeline->bursts;
}

/* True = the caller must signal one sleeping thread of the pool, which then counts as waking. */
bool weir__wake_worker_wanted_locked(weir_pool *pool);

/* The same for a sleeping consumer. */
static inline bool weir__wake_consumer_wanted_locked(weir_pipeline *pipeline)
{
    if (pipeline->consumers_waiting <= pipeline->consumers_waking || !pipeline->core.consumable)
        return false;
    pipeline->consumers_waking++;
    return true;
}

/* Signals all threads affected by the changes: before the lock is released in another way than by
   weir__engine_unlock(). */
void weir__wake_all_locked(weir_pipeline *pipeline);

/* Whether there is a CPU for a thread that only spins. The CPU of the calling thread counts as taken; `consumer`:
   so does the consumer's. */
static inline bool may_spin_locked(const weir_pipeline *pipeline, bool consumer)
{
    return pipeline->num_awake + consumer <= pipeline->num_cpus;
}

#endif
