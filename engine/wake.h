/* Which sleeping threads to wake. All with the lock held. */
#ifndef WEIR_WAKE_H
#define WEIR_WAKE_H

#include "state.h"

#define BRISK_NS (2 * WEIR_MICROSECOND) /* a step that takes less is not worth waking a thread for */
#define GUARD_NS (1 * WEIR_MILLISECOND) /* how long work may be left to threads at brisk steps */

/* Is there work for one more thread? Brisk work is left to a thread at a brisk step, which will look again at once. */
static inline bool pool_invites_locked(const weir_pool *pool)
{
    return pool->num_ready > 0 && (pool->num_brisk == 0 || pool->num_ready_slow > 0);
}

/* True = one sleeping thread of the pool is to be signalled; it then counts as waking. */
bool weir_wake_worker_wanted_locked(weir_pool *pool);

/* The same for a sleeping consumer. */
static inline bool weir_wake_consumer_wanted_locked(weir_pipeline *pipeline)
{
    if (pipeline->consumers_waiting <= pipeline->consumers_waking ||
        !atomic_load_explicit(&pipeline->is_consumable, memory_order_relaxed))
        return false;
    pipeline->consumers_waking++;
    return true;
}

/* Signals all threads that the changes concern: before the lock is given back otherwise than by weir_engine_unlock(). */
void weir_wake_all_locked(weir_pipeline *pipeline);

/* Is there a CPU left for a thread that only looks? Its own counts as taken; `consumer`: so does the consumer's. */
static inline bool may_spin_locked(const weir_pipeline *pipeline, bool consumer)
{
    return pipeline->num_awake + consumer <= pipeline->num_cpus;
}

#endif
