/*
 * The pipeline's lock, and whom to wake when it is given back.
 *
 * It is held for tens of nanoseconds, so whoever finds it taken looks again a while before sleeping. The pauses between
 * two looks grow: a thread that has just done one hand-over can do some more while its data is in its cache, which is
 * worth more than strict turns.
 *
 * Waking a sleeping thread costs several microseconds on both sides. Where steps are brisk, much shorter than that, a
 * second thread would only fight the first one for the lock, so what is ready is left to the thread that will look again
 * at once. Should that one's step, against all experience, take long, the statistics thread notices within BACKSTOP_NS
 * and wakes another one. In the same way a sleeping consumer is woken for several results at once where more will be
 * there within microseconds.
 */
#include "internal.h"

#include <sched.h>

#if defined(__x86_64__) || defined(__i386__)
#define cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define cpu_relax() __asm__ volatile("yield")
#else
#define cpu_relax() ((void)0)
#endif

enum { LOCK_LOOKS = 10, SPIN_LOOKS = 64 /* about a microsecond */ };

void weir_engine_lock(weir_pipeline *pipeline)
{
    for (int look = 0; look < LOCK_LOOKS; look++) {
        if (uv_mutex_trylock(&pipeline->lock) == 0)
            return;
        for (int pause = 0; pause < 4 << look; pause++)
            cpu_relax();
    }
    uv_mutex_lock(&pipeline->lock);
}

void weir_engine_move_time_locked(weir_pipeline *pipeline, int64_t now_ns)
{
    if (now_ns > pipeline->now_ns)
        pipeline->now_ns = now_ns;
}

void weir_engine_lock_at(weir_pipeline *pipeline, int64_t now_ns)
{
    weir_engine_lock(pipeline);
    weir_engine_move_time_locked(pipeline, now_ns);
}

/* Is something ready that a thread should be found for? What is brisk is left to a brisk thread. */
static bool invites_locked(weir_pool *pool)
{
    weir_pipeline *pipeline = pool->pipeline;
    if (pool->num_ready == 0 || pool->num_brisk == 0 || pool->num_ready_slow > 0)
        return pool->num_ready > 0;
    if (pool->num_brisk < pool->num_workers && !pipeline->wants_backstop)
        pipeline->wants_backstop = pipeline->wake_statistics = true;
    return false;
}

/* True if one more thread of the pool should be woken; it then counts as waking. Each thread that wakes looks again
   when it has taken something, so that one at a time is enough. */
static bool wants_wake_locked(weir_pool *pool)
{
    bool invites = invites_locked(pool);
    atomic_store_explicit(&pool->invites, invites, memory_order_relaxed);
    uint32_t coming = pool->waking + pool->spinning;
    uint32_t wanted = coming > 0 ? pool->num_ready_slow : pool->num_ready; /* who comes takes all that is brisk */
    if (!invites || wanted <= coming || pool->sleeping <= pool->waking)
        return false;
    pool->waking++;
    return true;
}

/* True = a result lies there and the consumer sleeps. */
static bool consumer_backstop_locked(weir_pipeline *pipeline)
{
    if (!atomic_load_explicit(&pipeline->is_consumable, memory_order_relaxed) ||
        pipeline->consumers_waiting <= pipeline->consumers_waking)
        return false;
    if (pipeline->now_ns - pipeline->consumable_ns >= LINGER_NS) {
        pipeline->consumers_waking++;
        uv_cond_signal(&pipeline->consumable);
    }
    return true;
}

bool weir_engine_backstop_locked(weir_pipeline *pipeline)
{
    bool again = consumer_backstop_locked(pipeline);
    for (uint32_t i = 0; i < pipeline->num_pools; i++) {
        weir_pool *pool = pipeline->pools[i];
        if (pool->num_ready == 0 || pool->num_brisk == 0 || pool->num_brisk == pool->num_workers)
            continue;
        again = true;
        if (pipeline->now_ns - pool->picked_ns < BACKSTOP_NS || pool->sleeping <= pool->waking)
            continue;
        pool->waking++;
        uv_cond_signal(&pool->work);
    }
    return again;
}

/* May a result lie there a little, so that the consumer is woken for several at once? Not if it would be for long. */
static bool may_linger_locked(weir_pipeline *pipeline)
{
    const weir_queue *sink = pipeline->sink;
    if (pipeline->stopped || sink->closed || 2 * sink->depth >= sink->capacity || pipeline->pools[0]->num_soon == 0 ||
        pipeline->now_ns - pipeline->consumable_ns >= LINGER_NS)
        return false;
    if (!pipeline->wants_backstop)
        pipeline->wants_backstop = pipeline->wake_statistics = true;
    return true;
}

static bool wants_consumer_locked(weir_pipeline *pipeline)
{
    if (!atomic_load_explicit(&pipeline->is_consumable, memory_order_relaxed))
        return false;
    if (pipeline->consumers_waiting <= pipeline->consumers_waking || may_linger_locked(pipeline))
        return false;
    pipeline->consumers_waking++;
    return true;
}

void weir_engine_unlock(weir_pipeline *pipeline)
{
    bool wake_consumer = wants_consumer_locked(pipeline);
    bool wake_first = wants_wake_locked(pipeline->pools[0]);
    for (uint32_t i = 1; i < pipeline->num_pools; i++)
        if (wants_wake_locked(pipeline->pools[i]))
            uv_cond_signal(&pipeline->pools[i]->work);
    bool wake_statistics = pipeline->wake_statistics;
    pipeline->wake_statistics = false;
    bool poll_dirty = pipeline->poll_dirty;
    pipeline->poll_dirty = false;
    uv_mutex_unlock(&pipeline->lock);

    if (wake_first)
        uv_cond_signal(&pipeline->pools[0]->work);
    if (wake_consumer)
        uv_cond_signal(&pipeline->consumable);
    if (wake_statistics)
        uv_async_send(&pipeline->wake);
    if (poll_dirty)
        weir_poll_fd_apply(pipeline);
}

void weir_engine_wake_locked(weir_pipeline *pipeline)
{
    if (wants_consumer_locked(pipeline))
        uv_cond_signal(&pipeline->consumable);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        if (wants_wake_locked(pipeline->pools[i]))
            uv_cond_signal(&pipeline->pools[i]->work);
    if (pipeline->wake_statistics || pipeline->poll_dirty) /* no system call here: that thread makes it */
        uv_async_send(&pipeline->wake);
    pipeline->wake_statistics = false;
}

void weir_engine_unlock_last(weir_pipeline *pipeline)
{
    weir_engine_wake_locked(pipeline);
    uv_mutex_unlock(&pipeline->lock);
}

bool weir_engine_may_spin_locked(const weir_pipeline *pipeline, bool consumer)
{
    return pipeline->num_awake + consumer <= pipeline->num_cpus;
}

bool weir_engine_spin(atomic_uint *wanted, int64_t spin_ns)
{
    int64_t end_ns = weir_clock_ns() + spin_ns;
    do {
        for (int look = 0; look < SPIN_LOOKS; look++) {
            if (atomic_load_explicit(wanted, memory_order_relaxed))
                return true;
            cpu_relax();
        }
        sched_yield(); /* to who could make it so, if all CPUs are taken */
    } while (weir_clock_ns() < end_ns);
    return false;
}

int64_t weir_engine_spin_adapt(int64_t spin_ns, int64_t waited_ns)
{
    static const int64_t shortest_ns = 500, longest_ns = 20 * WEIR_MICROSECOND;
    static const int64_t worth_ns = 50 * WEIR_MICROSECOND; /* such a wait was mostly that of being woken */
    int64_t adapted_ns = waited_ns < worth_ns ? 2 * spin_ns : spin_ns / 2;
    if (adapted_ns < shortest_ns)
        return shortest_ns;
    return adapted_ns < longest_ns ? adapted_ns : longest_ns;
}
