/*
 * weir_set_paused(). Each pause is a lap of its own in each pipeline, which is measured like others and then not passed on:
 * so laps before and after it are exact. Locks: the registry's of spans, then that of a pipeline.
 */
#include "pause.h"

#include "consumer_position.h"
#include "current_part.h"
#include "lock.h"
#include "trace_ring.h"

static weir_pipeline *running; /* guarded by the registry's lock */

/* Without memory, the pipeline goes on as before. */
static int pause_pipeline(weir_pipeline *pipeline, bool is_paused)
{
    if (!weir__position_lock(pipeline))
        return WEIR_ENOMEM;
    if (pipeline->paused != is_paused) {
        pipeline->paused = is_paused;
        weir__part_switch_locked(pipeline, true);
    }
    weir__engine_unlock(pipeline);
    if (pipeline->trace)
        weir__trace_update(pipeline);
    return WEIR_OK;
}

int weir_set_paused(bool is_paused)
{
    int status = WEIR_OK;
    weir__spans_lock();
    weir__span_clock_pause_locked(is_paused);
    for (weir_pipeline *pipeline = running; pipeline; pipeline = pipeline->next_running)
        if (!is_of_parent(pipeline) && pause_pipeline(pipeline, is_paused) != WEIR_OK)
            status = WEIR_ENOMEM;
    weir__spans_unlock();
    return status;
}

void weir__pause_add(weir_pipeline *pipeline)
{
    weir__spans_lock();
    pipeline->next_running = running;
    running = pipeline;
    weir__engine_lock(pipeline);
    pipeline->paused = weir__span_is_paused();
    if (pipeline->part) /* nothing is in it yet */
        pipeline->part->paused = pipeline->paused;
    weir__engine_unlock(pipeline);
    if (pipeline->trace && pipeline->paused)
        weir__trace_update(pipeline);
    weir__spans_unlock();
}

void weir__pause_remove(weir_pipeline *pipeline)
{
    weir__spans_lock();
    weir_pipeline **link = &running;
    while (*link != pipeline)
        link = &(*link)->next_running;
    *link = pipeline->next_running;
    weir__spans_unlock();
}
