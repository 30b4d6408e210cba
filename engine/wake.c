/*
 * Which sleeping threads to wake.
 *
 * Waking a sleeping thread costs several microseconds on both sides. Where steps are brisk, much shorter than that, a
 * second thread would only fight the first one for the lock. So brisk work is left to the thread that is at a brisk step
 * and will look again at once; all other work gets a thread of its own, one woken thread at a time, which looks again when
 * it has taken something.
 *
 * Should a step that was expected to be brisk take long, nobody would look. So while work is left to threads at brisk
 * steps, one of the pool's sleeping threads is its guard: it looks every millisecond, and takes what has been left for
 * that long. Nothing outside of the pool is needed for that.
 */
#include "wake.h"

bool weir_wake_worker_wanted_locked(weir_pool *pool)
{
    bool invites = pool_invites_locked(pool);
    if (pool->spinning)
        atomic_store_explicit(&pool->invites, invites, memory_order_relaxed);
    if (pool->sleeping <= pool->waking || pool->num_ready == 0)
        return false;
    if (invites) {
        uint32_t coming = pool->waking + pool->spinning; /* each takes one, and all that is brisk */
        uint32_t wanted = coming > 0 ? pool->num_ready_slow : pool->num_ready;
        if (wanted <= coming)
            return false;
    } else if (pool->guarded || pool->waking > 0) {
        return false;
    }
    pool->waking++;
    return true;
}

void weir_wake_all_locked(weir_pipeline *pipeline)
{
    if (weir_wake_consumer_wanted_locked(pipeline))
        uv_cond_signal(&pipeline->consumable);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        if (weir_wake_worker_wanted_locked(pipeline->pools[i]))
            uv_cond_signal(&pipeline->pools[i]->work);
    if (pipeline->wake_service || pipeline->poll_dirty) /* which applies it: no system call here */
        sem_post(&pipeline->service_wake);
    pipeline->wake_service = false;
}
