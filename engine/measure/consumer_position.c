#include "engine/measure/consumer_position.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/label.h"
#include "engine/measure/lap.h"
#include "engine/measure/observing.h"
#include "engine/measure/position.h"
#include "engine/state/lock.h"
#include "engine/trace/trace_ring.h"

int weir__position_new(weir_pipeline *pipeline)
{
    pipeline->position = calloc(1, sizeof *pipeline->position);
    if (!pipeline->position)
        return WEIR_ENOMEM;
    pipeline->position->steps_in_lap = pipeline->steps_per_lap; /* the first step ends a lap */
    return WEIR_OK;
}

bool weir__position_lock(weir_pipeline *pipeline)
{
    enum { NUM_SPARES = 2 };
    engine_lock_at(pipeline, weir_clock_ns());
    while (pipeline->core.measures && pipeline->laps->num_spares < NUM_SPARES) {
        weir__engine_unlock(pipeline);
        weir__lap *spare = weir__lap_new(pipeline);
        if (!spare)
            return false;
        engine_lock_at(pipeline, weir_clock_ns());
        weir__laps_add_spare_locked(pipeline->laps, spare);
    }
    pipeline->laps->tail_marked |= pipeline->core.over;
    return true;
}

static void change_locked(weir_pipeline *pipeline, char *place, const char *name)
{
    memcpy(place, name, strlen(name) + 1);
    weir__laps_switch_locked(pipeline, false);
}

/* Before the first step, the program has started. This is known only now. */
static void name_startup_locked(weir_pipeline *pipeline)
{
    for (weir__lap *lap = pipeline->laps->open; lap; lap = lap->next)
        if (!lap->phase[0])
            memcpy(lap->phase, "startup", sizeof "startup");
}

/* The step ends, if there is one: it is a span of the current lap. Returns its length; negative = none. */
static int64_t end_step_locked(weir_pipeline *pipeline, int64_t now)
{
    int64_t start = pipeline->position->step_start, step_ns = now > start ? now - start : 0;
    pipeline->position->step_start = 0;
    if (!start || weir__span_is_paused())
        return -1;
    weir__laps_add_step_locked(pipeline, step_ns);
    return step_ns;
}

int weir_pipeline_mark_step(weir_pipeline *pipeline, int64_t step)
{
    if (!pipeline)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    if (!weir__position_lock(pipeline))
        return WEIR_ENOMEM;
    bool begins = step != WEIR_NO_STEP, is_first = begins && !pipeline->position->steps_marked;
    int64_t now = weir__span_now_ns(), step_ns = end_step_locked(pipeline, now);
    if (is_first) {
        name_startup_locked(pipeline);
        pipeline->position->steps_marked = true;
    }
    if (is_first && !pipeline->position->phase_named) {
        memcpy(pipeline->position->phase, "loop", sizeof "loop");
        weir__trace_place_locked(pipeline, WEIR_TRACE_PHASE, NULL, "loop");
    }
    bool had_step = pipeline->position->has_step;
    int64_t before = pipeline->position->step;
    pipeline->position->has_step = begins;
    pipeline->position->step = step;
    pipeline->position->step_start = begins ? now : 0;
    bool ends_interval =
        pipeline->steps_per_lap && (!begins || pipeline->position->steps_in_lap >= pipeline->steps_per_lap);
    pipeline->position->steps_in_lap = !begins         ? pipeline->steps_per_lap
                                       : ends_interval ? 1
                                                       : pipeline->position->steps_in_lap + 1;
    weir__laps_switch_locked(pipeline, ends_interval);
    weir__trace_mark_locked(pipeline, WEIR_TRACE_STEP, step);
    weir__engine_unlock(pipeline);
    weir__span_add_step(step_ns);
    if (had_step)
        weir__observing_mark(pipeline, WEIR_MARK_STEP, false, before, "");
    if (begins)
        weir__observing_mark(pipeline, WEIR_MARK_STEP, true, step, "");
    return WEIR_OK;
}

static int mark_place(weir_pipeline *pipeline, weir_trace_kind kind, const char *name)
{
    if (!pipeline || !name || !name[0] || strlen(name) >= MAX_MARK)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    weir_item named = { 0 };
    if (!weir__label_set(&named, name, 0))
        return WEIR_ENOMEM;
    bool has_spares = weir__position_lock(pipeline);
    if (has_spares) {
        bool is_mode = kind == WEIR_TRACE_MODE;
        weir_mark_kind reported = is_mode ? WEIR_MARK_MODE : WEIR_MARK_PHASE;
        char *place = is_mode ? pipeline->position->mode : pipeline->position->phase, before[MAX_MARK] = "";
        if (is_mode || pipeline->position->phase_named)
            memcpy(before, place, sizeof before);
        pipeline->position->phase_named |= !is_mode;
        weir__trace_place_locked(pipeline, kind, named.label_owner, name);
        change_locked(pipeline, place, name);
        weir__engine_unlock(pipeline);
        if (before[0])
            weir__observing_mark(pipeline, reported, false, 0, before);
        weir__observing_mark(pipeline, reported, true, 0, name);
    }
    weir_item_release(&named);
    return has_spares ? WEIR_OK : WEIR_ENOMEM;
}

int weir_pipeline_mark_phase(weir_pipeline *pipeline, const char *phase)
{
    return mark_place(pipeline, WEIR_TRACE_PHASE, phase);
}

int weir_pipeline_mark_mode(weir_pipeline *pipeline, const char *mode)
{
    return mark_place(pipeline, WEIR_TRACE_MODE, mode);
}

void weir__position_change_epoch(weir_pipeline *pipeline, int status, uint64_t epoch)
{
    bool has_item = status == WEIR_OK, ends = status != WEIR_OK && status != WEIR_ETIMEDOUT;
    weir__engine_lock(pipeline);
    bool begins = !pipeline->position->in_epoch && (has_item || status == WEIR_EPOCH);
    ends &= pipeline->position->in_epoch || begins;
    if (begins && has_item)
        pipeline->position->epoch = epoch;
    int64_t number = (int64_t)pipeline->position->epoch;
    pipeline->position->in_epoch = (pipeline->position->in_epoch || begins) && !ends;
    pipeline->position->epoch += ends;
    weir__engine_unlock(pipeline);
    if (begins)
        weir__observing_mark(pipeline, WEIR_MARK_EPOCH, true, number, "");
    if (ends)
        weir__observing_mark(pipeline, WEIR_MARK_EPOCH, false, number, "");
}

void weir__position_end(weir_pipeline *pipeline)
{
    engine_lock_at(pipeline, weir_clock_ns());
    pipeline->laps->tail_marked |= pipeline->position->step_start != 0;
    int64_t step_ns = end_step_locked(pipeline, weir__span_now_ns());
    weir__engine_unlock(pipeline);
    weir__span_add_step(step_ns);
    if (pipeline->position->phase_named)
        weir__observing_mark(pipeline, WEIR_MARK_PHASE, false, 0, pipeline->position->phase);
    if (pipeline->position->has_step)
        weir__observing_mark(pipeline, WEIR_MARK_STEP, false, pipeline->position->step, "");
    weir__position_change_epoch(pipeline, WEIR_EOF, 0);
    if (pipeline->position->mode[0])
        weir__observing_mark(pipeline, WEIR_MARK_MODE, false, 0, pipeline->position->mode);
}

void weir__position_sources_ended_locked(weir_pipeline *pipeline)
{
    if (!pipeline->position->steps_marked || pipeline->position->phase_named)
        return;
    weir__trace_place_locked(pipeline, WEIR_TRACE_PHASE, NULL, "finish");
    change_locked(pipeline, pipeline->position->phase, "finish");
}
