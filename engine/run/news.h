/* What events of the core have left to be done, before the lock is released. */
#ifndef ENGINE_RUN_NEWS_H
#define ENGINE_RUN_NEWS_H

#include "run_state.h"

/* Asks tasks to stop, says why the pipeline has failed, ends a phase, wakes the service thread. */
void weir__news_handle_locked(weir_pipeline *pipeline);

/* Call it before the lock is released in any way. */
static inline void settle_news_locked(weir_pipeline *pipeline)
{
    bool is_consumable = pipeline->core.consumable;
    if (__builtin_expect(pipeline->core.news != 0, false))
        weir__news_handle_locked(pipeline);
    if (atomic_load_explicit(&pipeline->is_consumable, memory_order_relaxed) == is_consumable)
        return;
    atomic_store_explicit(&pipeline->is_consumable, is_consumable, memory_order_relaxed);
    pipeline->poll_dirty = pipeline->polls;
}

#endif
