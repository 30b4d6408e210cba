/* Where the consumer is in its job: steps and phases. A change of phase ends the lap, on the statistics thread. */
#include "internal.h"

#include <string.h>

static void no_steps(weir_place *place)
{
    place->first_step = 0;
    place->last_step = -1;
}

void weir_place_init(weir_place *place)
{
    *place = (weir_place){ 0 };
    no_steps(place);
}

static void change_phase_locked(weir_pipeline *pipeline, const char *phase, bool named)
{
    weir_place *next = &pipeline->next_place;
    if (strcmp(next->phase, phase) == 0 && next->phase_named == named)
        return;
    memcpy(next->phase, phase, strlen(phase) + 1);
    next->phase_named = named;
    pipeline->cut_lap = true;
    pipeline->wake_statistics = true;
}

static void note_step(weir_place *place, int64_t step)
{
    if (place->last_step < place->first_step)
        place->first_step = step;
    place->last_step = step;
    place->steps_marked = true;
}

int weir_pipeline_mark_step(weir_pipeline *pipeline, int64_t step)
{
    if (!pipeline)
        return WEIR_EINVAL;
    weir_engine_lock_at(pipeline, weir_clock_ns());
    bool first = !pipeline->next_place.steps_marked;
    if (first && !pipeline->place.phase_named)
        memcpy(pipeline->place.phase, "startup", sizeof "startup"); /* what this lap has been, it turns out */
    pipeline->next_place.steps_marked = true;
    if (first && !pipeline->next_place.phase_named)
        change_phase_locked(pipeline, "loop", false);
    note_step(pipeline->cut_lap ? &pipeline->next_place : &pipeline->place, step);
    weir_engine_unlock(pipeline);
    return WEIR_OK;
}

int weir_pipeline_mark_phase(weir_pipeline *pipeline, const char *phase)
{
    if (!pipeline || !phase || !phase[0] || strlen(phase) >= MAX_PHASE)
        return WEIR_EINVAL;
    weir_engine_lock_at(pipeline, weir_clock_ns());
    change_phase_locked(pipeline, phase, true);
    weir_engine_unlock(pipeline);
    return weir_pipeline_event(pipeline, "phase", "user", phase);
}

void weir_place_sources_ended_locked(weir_pipeline *pipeline)
{
    if (pipeline->next_place.steps_marked && !pipeline->next_place.phase_named)
        change_phase_locked(pipeline, "finish", false);
}

void weir_place_lap_ended_locked(weir_pipeline *pipeline, weir_place *ended)
{
    *ended = pipeline->place;
    if (pipeline->cut_lap)
        pipeline->place = pipeline->next_place;
    else
        no_steps(&pipeline->place);
    no_steps(&pipeline->next_place);
    pipeline->cut_lap = false;
}
