/* Acquires and releases the lock of the pipeline. */
#ifndef ENGINE_RUN_LOCK_H
#define ENGINE_RUN_LOCK_H

#include "run_state.h"

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

/* Waits for a signal, at most timeout_ns, without the lock; then does the same. */
void weir__engine_wait_locked(weir_pipeline *pipeline, uv_cond_t *cond, int64_t timeout_ns);

/* Releases the lock, then wakes the threads affected by the changes. */
void weir__engine_unlock(weir_pipeline *pipeline);

/*
 * The same for a thread that weir_pipeline_free() does not wait for. The pipeline may be freed as soon as the lock is
 * released, so it wakes the threads first.
 */
void weir__engine_unlock_last(weir_pipeline *pipeline);

#endif
