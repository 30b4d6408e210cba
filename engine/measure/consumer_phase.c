#include "consumer_phase.h"

#include <string.h>

#include "label.h"
#include "lock.h"
#include "spans.h"
#include "trace_ring.h"

static void no_steps(weir_consumer_phase *phase)
{
    phase->first_step = 0;
    phase->last_step = -1;
}

void weir__phase_init(weir_consumer_phase *phase)
{
    *phase = (weir_consumer_phase){ 0 };
    no_steps(phase);
}

/* label: the same name; NULL = phase is a static text. */
static void change_phase_locked(weir_pipeline *pipeline, const char *phase, struct weir_label *label)
{
    bool named = label != NULL;
    weir_consumer_phase *next = &pipeline->next_phase;
    if (strcmp(next->phase, phase) == 0 && next->phase_named == named)
        return;
    memcpy(next->phase, phase, strlen(phase) + 1);
    next->phase_named = named;
    pipeline->cut_lap = true;
    pipeline->wake_service = true;
    weir__trace_phase_locked(pipeline, label, phase);
}

static void note_step(weir_consumer_phase *phase, int64_t step)
{
    if (phase->last_step < phase->first_step)
        phase->first_step = step;
    phase->last_step = step;
    phase->steps_marked = true;
}

/* The step that a mark ends becomes a span. */
static void end_step(const weir_pipeline *pipeline, int64_t start, int64_t end)
{
    if (!start || weir__span_is_paused())
        return;
    weir_span_name *name = weir_span_name_get("weir", "step");
    if (!name)
        return;
    atomic_store_explicit(&name->kind, SPAN_KIND_FRAME, memory_order_relaxed);
    weir__span_store_add(pipeline, name, end > start ? end - start : 0);
}

int weir_pipeline_mark_step(weir_pipeline *pipeline, int64_t step)
{
    if (!pipeline)
        return WEIR_EINVAL;
    int64_t now = weir__span_now_ns();
    engine_lock_at(pipeline, weir_clock_ns());
    pipeline->tail_marked |= pipeline->core.over;
    bool first = !pipeline->next_phase.steps_marked;
    if (first && !pipeline->phase.phase_named)
        memcpy(pipeline->phase.phase, "startup", sizeof "startup"); /* known only now: the first step was marked */
    pipeline->next_phase.steps_marked = true;
    if (first && !pipeline->next_phase.phase_named)
        change_phase_locked(pipeline, "loop", NULL);
    if (pipeline->steps_per_lap && pipeline->steps_in_lap++ >= pipeline->steps_per_lap) {
        pipeline->steps_in_lap = 1;
        pipeline->cut_lap = pipeline->wake_service = true;
    }
    note_step(pipeline->cut_lap ? &pipeline->next_phase : &pipeline->phase, step);
    int64_t start = pipeline->step_start;
    pipeline->step_start = now;
    weir__trace_mark_locked(pipeline, WEIR_TRACE_STEP, step);
    weir__engine_unlock(pipeline);
    end_step(pipeline, start, now);
    return WEIR_OK;
}

int weir_pipeline_mark_phase(weir_pipeline *pipeline, const char *phase)
{
    if (!pipeline || !phase || !phase[0] || strlen(phase) >= MAX_PHASE)
        return WEIR_EINVAL;
    weir_item named = { 0 };
    if (!weir__label_set(&named, phase))
        return WEIR_ENOMEM;
    int64_t now = weir__span_now_ns();
    engine_lock_at(pipeline, weir_clock_ns());
    pipeline->tail_marked |= pipeline->core.over;
    change_phase_locked(pipeline, phase, named.label_owner);
    int64_t start = pipeline->step_start;
    pipeline->step_start = 0;
    weir__engine_unlock(pipeline);
    weir_item_release(&named);
    end_step(pipeline, start, now);
    return weir_pipeline_event(pipeline, "phase", "user", phase);
}

void weir__phase_end_run(weir_pipeline *pipeline)
{
    int64_t now = weir__span_now_ns();
    engine_lock_at(pipeline, weir_clock_ns());
    int64_t start = pipeline->step_start;
    pipeline->step_start = 0;
    pipeline->tail_marked |= start != 0;
    weir__engine_unlock(pipeline);
    end_step(pipeline, start, now);
}

void weir__phase_sources_ended_locked(weir_pipeline *pipeline)
{
    if (pipeline->next_phase.steps_marked && !pipeline->next_phase.phase_named)
        change_phase_locked(pipeline, "finish", NULL);
}

void weir__phase_lap_ended_locked(weir_pipeline *pipeline, weir_consumer_phase *ended)
{
    *ended = pipeline->phase;
    if (pipeline->cut_lap)
        pipeline->phase = pipeline->next_phase;
    else
        no_steps(&pipeline->phase);
    no_steps(&pipeline->next_phase);
    pipeline->cut_lap = false;
}
