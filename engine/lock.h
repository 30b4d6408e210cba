/* The pipeline's lock: taking it and giving it back. */
#ifndef WEIR_LOCK_H
#define WEIR_LOCK_H

#include "state.h"

/* Looks a while whether the lock becomes free before it sleeps. True = it was free at once. */
bool weir_engine_lock(weir_pipeline *pipeline);

/* Moves pipeline->now_ns on to now_ns, unless it is there already. */
static inline void engine_move_time_locked(weir_pipeline *pipeline, int64_t now_ns)
{
    if (now_ns > pipeline->now_ns)
        pipeline->now_ns = now_ns;
}

/* Takes the lock and moves pipeline->now_ns on to now_ns, which was read just before. */
static inline bool engine_lock_at(weir_pipeline *pipeline, int64_t now_ns)
{
    bool at_once = weir_engine_lock(pipeline);
    engine_move_time_locked(pipeline, now_ns);
    return at_once;
}

/* Gives the lock back, then wakes the threads that the changes concern. True = there were none. */
bool weir_engine_unlock(weir_pipeline *pipeline);

/*
 * The same for a thread that weir_pipeline_free() does not wait for: the pipeline may be gone as soon as the lock is free,
 * so it wakes first.
 */
void weir_engine_unlock_last(weir_pipeline *pipeline);

#endif
