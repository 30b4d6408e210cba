/* Acquires and releases the lock of the pipeline. */
#ifndef ENGINE_RUN_LOCK_H
#define ENGINE_RUN_LOCK_H

#include "run_state.h"

/* Spins for a while before it sleeps. */
void weir__engine_lock(weir_pipeline *pipeline);

/* Acquires the lock and moves the time of the core to now_ns, which the caller read just before. */
static inline void engine_lock_at(weir_pipeline *pipeline, int64_t now_ns)
{
    weir__engine_lock(pipeline);
    weir__graph_move_time(&pipeline->core, now_ns);
}

/* Releases the lock, then wakes the threads affected by the changes. */
void weir__engine_unlock(weir_pipeline *pipeline);

/*
 * The same for a thread that weir_pipeline_free() does not wait for. The pipeline may be freed as soon as the lock is
 * released, so it wakes the threads first.
 */
void weir__engine_unlock_last(weir_pipeline *pipeline);

#endif
