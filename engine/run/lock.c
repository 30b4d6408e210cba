/*
 * The lock of the pipeline. It is held for tens of nanoseconds, so a thread that finds it taken spins for some
 * microseconds, with growing pauses, before it sleeps. The lock is not fair: a thread that has just finished a hand-
 * off can do a few more while its data is in its cache, which improves throughput.
 */
#include "lock.h"

#include "burst.h"
#include "news.h"
#include "poll_fd.h"
#include "spin_wait.h"
#include "wake.h"

enum { MAX_SPINS = 32, LONGEST_PAUSE = 32 /* times cpu_relax(): about a microsecond */ };

static void acquire_lock(weir_pipeline *pipeline)
{
    for (int look = 0, pause = 4; look < MAX_SPINS; look++) {
        if (uv_mutex_trylock(&pipeline->lock) == 0)
            return;
        for (int i = 0; i < pause; i++)
            cpu_relax();
        pause = 2 * pause < LONGEST_PAUSE ? 2 * pause : LONGEST_PAUSE;
    }
    uv_mutex_lock(&pipeline->lock);
}

static void tell_bursts_locked(weir_pipeline *pipeline, bool ends)
{
    if (pipeline->bursts)
        weir__bursts_tell_locked(pipeline, ends);
}

void weir__engine_lock(weir_pipeline *pipeline)
{
    acquire_lock(pipeline);
    tell_bursts_locked(pipeline, true);
}

void weir__engine_lock_for_step(weir_pipeline *pipeline, int64_t now_ns)
{
    acquire_lock(pipeline);
    tell_bursts_locked(pipeline, false);
    weir__graph_move_time(&pipeline->core, now_ns);
}

void weir__engine_wait_locked(weir_pipeline *pipeline, uv_cond_t *cond, int64_t timeout_ns)
{
    if (timeout_ns == WEIR_FOREVER)
        uv_cond_wait(cond, &pipeline->lock);
    else
        uv_cond_timedwait(cond, &pipeline->lock, (uint64_t)timeout_ns);
    tell_bursts_locked(pipeline, false);
    weir__graph_move_time(&pipeline->core, weir_clock_ns());
}

void weir__engine_unlock(weir_pipeline *pipeline)
{
    settle_news_locked(pipeline);
    bool wake_consumer = weir__wake_consumer_wanted_locked(pipeline);
    bool wake_first = weir__wake_worker_wanted_locked(pipeline->pools[0]);
    for (uint32_t i = 1; i < pipeline->num_pools; i++)
        if (weir__wake_worker_wanted_locked(pipeline->pools[i]))
            uv_cond_signal(&pipeline->pools[i]->work);
    bool wake_service = pipeline->wake_service;
    bool poll_dirty = pipeline->poll_dirty;
    pipeline->wake_service = pipeline->poll_dirty = false;
    uv_mutex_unlock(&pipeline->lock);

    if (wake_first)
        uv_cond_signal(&pipeline->pools[0]->work);
    if (wake_consumer)
        uv_cond_signal(&pipeline->consumable);
    if (wake_service)
        sem_post(&pipeline->service_wake);
    if (poll_dirty)
        weir__poll_fd_apply(pipeline);
}

void weir__engine_unlock_last(weir_pipeline *pipeline)
{
    weir__wake_all_locked(pipeline);
    uv_mutex_unlock(&pipeline->lock);
}
