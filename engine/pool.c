/*
 * A pool: threads that pick what is ready, nearest the sink first, run one step of it and pick again. A thread that
 * finds nothing looks on for a moment, without the lock, before it sleeps, because waking a sleeping thread costs more
 * than most hand-overs: one at a time does so, only for as long as that has paid lately, and only if no other thread of
 * ours wants the CPU.
 */
#include "internal.h"

#include <stdlib.h>

static bool has_work(const weir_pool *pool)
{
    return pool->quit || atomic_load_explicit(&pool->invites, memory_order_relaxed);
}

static void spin_for_work_locked(weir_pool *pool)
{
    int64_t spin_ns = pool->spin_ns;
    pool->spinning = true;
    weir_engine_unlock(pool->pipeline);
    weir_engine_spin(&pool->invites, spin_ns);
    weir_engine_lock_at(pool->pipeline, weir_clock_ns());
    pool->spinning = false;
}

static void sleep_for_work_locked(weir_pool *pool)
{
    weir_pipeline *pipeline = pool->pipeline;
    weir_engine_wake_locked(pipeline);
    pool->sleeping++;
    pipeline->num_awake--;
    uv_cond_wait(&pool->work, &pipeline->lock);
    pipeline->num_awake++;
    pool->sleeping--;
    if (pool->waking)
        pool->waking--;
    weir_engine_move_time_locked(pipeline, weir_clock_ns());
}

static void wait_for_work_locked(weir_worker *worker)
{
    weir_pool *pool = worker->pool;
    int64_t start_ns = pool->pipeline->now_ns;
    weir_cpu_time_idle_locked(worker);
    if (pool->spinning) {
        sleep_for_work_locked(pool);
        return;
    }
    if (weir_engine_may_spin_locked(pool->pipeline, pool->pipeline->consumers_waiting == 0))
        spin_for_work_locked(pool);
    if (!has_work(pool))
        sleep_for_work_locked(pool);
    pool->spin_ns = weir_engine_spin_adapt(pool->spin_ns, pool->pipeline->now_ns - start_ns);
}

static void worker_main(void *argument)
{
    weir_worker *worker = argument;
    weir_pool *pool = worker->pool;
    weir_pipeline *pipeline = pool->pipeline;

    weir_pipeline_of_thread = pipeline;
    weir_engine_lock_at(pipeline, weir_clock_ns());
    pipeline->num_awake++;
    for (;;) {
        weir_slot *slot = weir_slot_pick_locked(pool);
        if (slot) {
            weir_cpu_time_task_starts_locked(worker, slot);
            weir_engine_unlock(pipeline);
            weir_run_step(slot);
            weir_engine_lock_at(pipeline, pipeline->measures ? weir_clock_ns() : 0);
            pool->num_brisk -= slot->pace == PACE_BRISK;
            pool->num_soon -= slot->pace != PACE_SLOW;
            weir_cpu_time_task_ended_locked(worker);
            weir_step_ended_locked(slot);
        } else if (pool->quit) {
            break;
        } else {
            wait_for_work_locked(worker);
        }
    }
    pipeline->num_awake--;
    weir_engine_unlock(pipeline);
}

int weir_pool_new(weir_pipeline *pipeline, uint32_t num_workers, weir_pool **made, weir_error *error)
{
    weir_pool *pool = calloc(1, sizeof *pool);
    *made = pool;
    if (!pool)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a pool of threads");
    pool->pipeline = pipeline;
    pool->num_words = (pipeline->num_nodes + 63) / 64;
    pool->ready_nodes = calloc(pool->num_words, sizeof *pool->ready_nodes);
    pool->workers = calloc(num_workers, sizeof *pool->workers);
    if (!pool->ready_nodes || !pool->workers)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a pool of %u threads", num_workers);

    pool->num_workers = num_workers;
    for (uint32_t i = 0; i < num_workers; i++) {
        weir_worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->window_ns = calloc(pipeline->num_nodes, sizeof *worker->window_ns);
        worker->window_nodes = calloc(pipeline->num_nodes, sizeof *worker->window_nodes);
        if (!worker->window_ns || !worker->window_nodes)
            return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a pool of %u threads", num_workers);
    }
    int code = uv_cond_init(&pool->work);
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot make a condition variable: %s", uv_strerror(code));
    pool->work_made = true;
    return WEIR_OK;
}

int weir_pool_start(weir_pool *pool, weir_error *error)
{
    for (uint32_t i = 0; i < pool->num_workers; i++) {
        weir_worker *worker = &pool->workers[i];
        int code = uv_thread_create(&worker->thread, worker_main, worker);
        if (code != 0)
            return weir_error_set(error, WEIR_ESYSTEM, code, "cannot start thread %u of %u: %s", i + 1,
                                  pool->num_workers, uv_strerror(code));
        worker->started = true;
    }
    return WEIR_OK;
}

void weir_pool_join(weir_pool *pool)
{
    if (!pool->work_made)
        return; /* no thread was started */
    weir_engine_lock(pool->pipeline);
    pool->quit = true;
    uv_cond_broadcast(&pool->work);
    weir_engine_unlock_last(pool->pipeline);
    for (uint32_t i = 0; i < pool->num_workers; i++)
        if (pool->workers[i].started)
            uv_thread_join(&pool->workers[i].thread);
}

void weir_pool_free(weir_pool *pool)
{
    if (!pool)
        return;
    if (pool->work_made)
        uv_cond_destroy(&pool->work);
    for (uint32_t i = 0; i < pool->num_workers; i++) {
        free(pool->workers[i].window_nodes);
        free(pool->workers[i].window_ns);
    }
    free(pool->workers);
    free(pool->ready_nodes);
    free(pool);
}
