#include "engine/measure/lap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/measure/live_sums.h"
#include "engine/state/lock.h"
#include "engine/trace/trace_ring.h"

/* A mode and phase that has lasted this long ends its interval: it is a lap of its own, or the end of one. */
static const int64_t long_position_ns = 1 * WEIR_SECOND;

/* Laps that are not taken yet: with MANY_OPEN of them the interval ends; with MAX_OPEN no lap begins. */
enum { MANY_OPEN = 32, MAX_OPEN = 256 };

static void change_state(weir__lap *lap, weir__lap_state from, weir__lap_state to)
{
    assert(lap->state == from);
    (void)from;
    lap->state = to;
}

/* ---- making and freeing --------------------------------------------------------------------------------------- */

weir__lap *weir__lap_new(const weir_pipeline *pipeline)
{
    static _Atomic uint64_t num_made;
    weir__lap *lap = calloc(1, sizeof *lap);
    if (!lap)
        return NULL;
    lap->pipeline = pipeline;
    lap->id = 1 + atomic_fetch_add(&num_made, 1);
    lap->state = LAP_SPARE;
    lap->info.position = (weir_lap_position){ .mode = lap->mode, .phase = lap->phase, .last_step = -1 };
    lap->info.ids = &lap->id;
    lap->info.num_ids = 1;
    if (weir__lap_figures_init(&lap->figures, &pipeline->laps->subjects) == WEIR_OK)
        return lap;
    weir__lap_free(lap);
    return NULL;
}

void weir__lap_free(weir__lap *lap)
{
    for (weir__lap *next; lap; lap = next) {
        next = lap->next;
        weir__lap_figures_destroy(&lap->figures);
        free(lap->ids);
        free(lap);
    }
}

/* ---- positions ----------------------------------------------------------------------------------------------- */

static void extend_steps(weir_lap_position *position, int64_t first_step, int64_t last_step)
{
    if (last_step < first_step)
        return;
    if (position->last_step < position->first_step)
        position->first_step = first_step;
    position->last_step = last_step;
}

void weir__lap_info_extend(weir_lap *first, const weir_lap *next)
{
    first->end_unix_ns = next->end_unix_ns;
    first->elapsed_ns += next->elapsed_ns;
    first->suspended_ns += next->suspended_ns;
    first->num_joined += next->num_joined;
    extend_steps(&first->position, next->position.first_step, next->position.last_step);
}

bool weir__lap_is_at(const weir__lap *lap, const char *mode, const char *phase)
{
    return strcmp(lap->mode, mode) == 0 && strcmp(lap->phase, phase) == 0;
}

/* The link to the lap of this mode and phase in a list; the last link if there is none. */
static weir__lap **find_lap(weir__lap **laps, const char *mode, const char *phase)
{
    while (*laps && !weir__lap_is_at(*laps, mode, phase))
        laps = &(*laps)->next;
    return laps;
}

static void append_lap(weir__lap **link, weir__lap *lap)
{
    while (*link)
        link = &(*link)->next;
    *link = lap;
}

/* ---- spare, current, left -------------------------------------------------------------------------------------- */

void weir__laps_add_spare_locked(weir__laps *laps, weir__lap *spare)
{
    spare->next = laps->spares;
    laps->spares = spare;
    laps->num_spares++;
}

static void add_current_step_locked(weir_pipeline *pipeline)
{
    const weir__position *at = pipeline->position;
    if (at->has_step)
        extend_steps(&pipeline->laps->current->info.position, at->step, at->step);
}

static void leave_lap_locked(weir_pipeline *pipeline)
{
    weir__lap *lap = pipeline->laps->current;
    weir__live_sums_save_locked(pipeline, &lap->figures);
    lap->info.elapsed_ns += pipeline->core.now_ns - pipeline->laps->since_ns;
    change_state(lap, LAP_CURRENT, LAP_LEFT);
}

static void enter_lap_locked(weir_pipeline *pipeline, weir__lap *lap, weir__lap_state from)
{
    change_state(lap, from, LAP_CURRENT);
    weir__live_sums_load_locked(pipeline, &lap->figures);
    append_lap(&pipeline->laps->open, lap);
    pipeline->laps->current = lap;
    pipeline->laps->since_ns = pipeline->core.now_ns;
    weir__span_set_lap(pipeline, lap->id);
    add_current_step_locked(pipeline);
}

/* A spare lap, which is in no list, becomes the current one, of the current mode and phase. */
static void begin_lap_locked(weir_pipeline *pipeline, weir__lap *spare)
{
    memcpy(spare->mode, pipeline->position->mode, sizeof spare->mode);
    memcpy(spare->phase, pipeline->position->phase, sizeof spare->phase);
    spare->paused = pipeline->paused;
    enter_lap_locked(pipeline, spare, LAP_SPARE);
}

/* The link to the first lap of the interval that goes on. */
static weir__lap **find_interval(weir__laps *laps)
{
    weir__lap **first = &laps->open;
    for (weir__lap *lap = laps->open; lap; lap = lap->next)
        if (lap->ends_interval)
            first = &lap->next;
    return first;
}

static uint32_t count_laps(const weir__lap *lap)
{
    uint32_t count = 0;
    for (; lap; lap = lap->next)
        count++;
    return count;
}

static weir__lap *unlink_first(weir__lap **link)
{
    weir__lap *first = *link;
    *link = first->next;
    first->next = NULL;
    return first;
}

void weir__laps_switch_locked(weir_pipeline *pipeline, bool ends_interval)
{
    weir__laps *laps = pipeline->laps;
    const weir__position *at = pipeline->position;
    weir__lap *before = laps->current;
    if (!before)
        return; /* nothing is measured */
    uint32_t num_open = count_laps(laps->open);
    bool stays = weir__lap_is_at(before, at->mode, at->phase);
    ends_interval |= !stays && (num_open >= MANY_OPEN || pipeline->core.now_ns - laps->since_ns >= long_position_ns);
    weir__lap **link = find_lap(find_interval(laps), at->mode, at->phase);
    bool begins = ends_interval || !*link;
    bool is_full = num_open >= MAX_OPEN && before->paused == pipeline->paused;
    if ((stays && !ends_interval) || (begins && (!laps->spares || is_full))) {
        add_current_step_locked(pipeline);
        return;
    }
    laps->num_spares -= begins;
    leave_lap_locked(pipeline);
    weir__lap *next = unlink_first(begins ? &laps->spares : link);
    if (ends_interval) {
        before->ends_interval = laps->interval_ended = pipeline->waking.wake_service = true;
        weir__trace_mark_locked(pipeline, WEIR_TRACE_LAP, 0);
    }
    if (begins)
        begin_lap_locked(pipeline, next);
    else
        enter_lap_locked(pipeline, next, LAP_LEFT);
}

void weir__laps_add_step_locked(weir_pipeline *pipeline, int64_t step_ns)
{
    if (pipeline->laps->current)
        weir__lap_figures_add_step(&pipeline->laps->current->figures, step_ns);
}

bool weir__lap_is_open(weir_pipeline *pipeline, uint64_t id)
{
    weir__engine_lock(pipeline);
    const weir__lap *lap = pipeline->laps->open;
    while (lap && lap->id != id)
        lap = lap->next;
    weir__engine_unlock(pipeline);
    return lap;
}

/* ---- taken --------------------------------------------------------------------------------------------------- */

/*
 * A reading of CPU time may be a little later than the end of the laps: what is more than the busy time belongs to the lap
 * that is current now. Returns the CPU time in other processes, of which one task may have used more than its own.
 */
static int64_t divide_cpu_locked(weir_node *node, weir__lap *taken)
{
    int64_t outside_ns = atomic_exchange_explicit(&node->outside_cpu_ns, 0, memory_order_relaxed);
    int64_t busy_ns = 0, cpu_ns = 0, up_to_ns = 0;
    for (weir__lap *lap = taken; lap; lap = lap->next) {
        busy_ns += lap->figures.metrics[node->subject].task.busy_ns;
        cpu_ns += lap->figures.metrics[node->subject].task.cpu_ns;
    }
    if (cpu_ns > busy_ns) {
        node->core.lap.cpu_ns += cpu_ns - busy_ns;
        cpu_ns = busy_ns;
    }
    for (weir__lap *lap = taken; lap; lap = lap->next) {
        weir_task_metrics *task = &lap->figures.metrics[node->subject].task;
        int64_t begin_ns = up_to_ns;
        up_to_ns = lap->next ? up_to_ns + task->busy_ns : busy_ns;
        task->cpu_ns = weir__share_of(cpu_ns, begin_ns, up_to_ns, busy_ns);
        weir__add_known(&task->cpu_ns, weir__share_of(outside_ns, begin_ns, up_to_ns, busy_ns));
    }
    return outside_ns;
}

/* Moves what a node has used to the laps that were taken, and to the sums of weir_span_dump(). */
static void finish_node_locked(weir_node *node, weir__lap *taken, int64_t *outside_cpu_ns)
{
    weir__add_known(outside_cpu_ns, divide_cpu_locked(node, taken));
    for (const weir__lap *lap = taken; lap; lap = lap->next) {
        const weir__stage_sum sum = weir__stage_sum_of(&lap->figures.metrics[node->subject].task);
        if (!lap->paused)
            weir__stage_sum_add(&node->dumped, &sum);
    }
}

/* Removes the laps of the intervals that have ended; with `fresh`, all of them. */
static weir__lap *unlink_open_locked(weir_pipeline *pipeline, weir__lap *fresh)
{
    weir__laps *laps = pipeline->laps;
    weir__lap *taken = laps->open, **open = find_interval(laps);
    if (fresh && laps->current)
        leave_lap_locked(pipeline);
    if (fresh) {
        laps->open = NULL;
        begin_lap_locked(pipeline, fresh);
    } else if (open == &laps->open) {
        taken = NULL; /* no interval has ended */
    } else {
        laps->open = *open;
        *open = NULL;
    }
    laps->interval_ended = false;
    return taken;
}

weir__lap *weir__laps_take_locked(weir_pipeline *pipeline, weir__lap *fresh, int64_t *outside_cpu_ns)
{
    weir__lap *taken = unlink_open_locked(pipeline, fresh);
    *outside_cpu_ns = 0;
    for (uint32_t i = 0; taken && i < pipeline->core.num_nodes; i++)
        finish_node_locked(pipeline->nodes[i], taken, outside_cpu_ns);
    for (weir__lap *lap = taken; lap; lap = lap->next)
        change_state(lap, LAP_LEFT, LAP_TAKEN);
    return taken;
}

/* ---- waiting, queued, joined -------------------------------------------------------------------------------------- */

void weir__lap_add_waiting(weir__lap **waiting, weir__lap *lap)
{
    weir__lap **link = find_lap(waiting, lap->mode, lap->phase);
    change_state(lap, LAP_TAKEN, LAP_WAITING);
    if (*link) {
        weir__lap *before = unlink_first(link);
        weir__lap_join(before, lap);
        lap = before;
    }
    append_lap(waiting, lap);
}

void weir__lap_queue(weir__lap *lap)
{
    change_state(lap, LAP_WAITING, LAP_QUEUED);
}

/* If out of memory, the samples of `second` are in no lap. */
static void join_ids(weir__lap *first, const weir__lap *second)
{
    uint32_t count = first->info.num_ids, more = second->info.num_ids;
    uint64_t *ids = realloc(first->ids, (count + more) * sizeof *ids);
    if (!ids)
        return;
    ids[0] = first->id;
    memcpy(ids + count, second->info.ids, more * sizeof *ids);
    first->ids = ids;
    first->info.ids = ids;
    first->info.num_ids = count + more;
}

void weir__lap_join(weir__lap *first, weir__lap *second)
{
    assert(first->state >= LAP_WAITING && second->state == LAP_WAITING);
    weir__lap_figures_add(&first->figures, &second->figures);
    weir__lap_info_extend(&first->info, &second->info);
    join_ids(first, second);
    second->next = NULL;
    weir__lap_free(second);
}
