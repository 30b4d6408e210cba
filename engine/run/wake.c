/*
 * Decides which sleeping threads to wake.
 *
 * Waking a sleeping thread costs several microseconds on both sides. If steps are much shorter than that, a second
 * thread would only compete with the first one for the lock. So short steps are left to a thread that is in a short
 * step and will pick again soon; for all other work a thread is woken, one at a time, and that thread checks for more
 * work after it has picked a slot.
 *
 * If a step that was expected to be short takes long, no thread would check. So while work is left to threads in
 * short steps, one of the sleeping threads of the pool is its guard: it checks every millisecond, and takes work that
 * has waited for that long. This needs no thread outside of the pool.
 */
#include "wake.h"

#include "news.h"

bool weir__wake_worker_wanted_locked(weir_pool *pool)
{
    bool invites = pool_invites_locked(pool);
    if (pool->spinning)
        atomic_store_explicit(&pool->invites, invites, memory_order_relaxed);
    if (pool->sleeping <= pool->waking || !needs_guard_locked(pool))
        return false;
    if (invites) {
        uint32_t coming = pool->waking + pool->spinning; /* each takes one slot, and all short steps */
        uint32_t wanted = coming > 0 ? pool->core.num_ready_slow : pool->core.num_ready;
        if (wanted <= coming)
            return false;
    } else if (pool->guarded || pool->waking > 0) {
        return false;
    }
    pool->waking++;
    return true;
}

void weir__wake_all_locked(weir_pipeline *pipeline)
{
    settle_news_locked(pipeline);
    if (weir__wake_consumer_wanted_locked(pipeline))
        uv_cond_signal(&pipeline->consumable);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        if (weir__wake_worker_wanted_locked(pipeline->pools[i]))
            uv_cond_signal(&pipeline->pools[i]->work);
    if (pipeline->wake_service || pipeline->poll_dirty) /* it makes the system call, which is not allowed here */
        sem_post(&pipeline->service_wake);
    pipeline->wake_service = false;
}
