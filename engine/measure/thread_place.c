/* Where a thread is, read on that thread, perhaps in a signal handler: nothing here takes a lock or memory. */
#include <weir/observer.h>

#include "engine/spans/spans.h"
#include "engine/state/run_state.h"
#include "engine/state/thread.h"

bool weir_thread_place_read(weir_thread_place *place)
{
    const weir_pool_thread *pool_thread = weir__own_pool_thread;
    const weir_task *slot = pool_thread ? pool_thread->running : NULL; /* only this thread changes it */
    if (!place)
        return false;
    *place = (weir_thread_place){
        .lap_id = weir__span_is_paused() ? 0 : weir__span_lap_of_thread(weir__pipeline_of_thread),
        .name = slot          ? slot->node->name
                : pool_thread ? pool_thread->pool->name
                              : NULL,
    };
    return place->lap_id;
}
