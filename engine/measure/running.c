/*
 * Each pause is a lap of its own in each pipeline, which is measured like others and then not passed on:
 * so laps before and after it are exact. Locks: the registry's of spans, then that of a pipeline.
 */
#include "engine/measure/running.h"

#include <stdio.h>
#include <string.h>

#include "engine/measure/consumer_position.h"
#include "engine/measure/lap.h"
#include "engine/state/lock.h"
#include "engine/trace/trace_ring.h"

/* ---- pauses ----------------------------------------------------------------------------------------------------- */

static weir_pipeline *running; /* guarded by the registry's lock */

/* Without memory, the pipeline goes on as before. */
static int pause_pipeline(weir_pipeline *pipeline, bool is_paused)
{
    if (!weir__position_lock(pipeline))
        return WEIR_ENOMEM;
    if (pipeline->paused != is_paused) {
        pipeline->paused = is_paused;
        weir__laps_switch_locked(pipeline, true);
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

/* ---- the sums of stages ---------------------------------------------------------------------------------------- */

/* The tasks of pipelines that have been freed, in the order in which they ended; the last entry is that of all
   others. Longer names are cut. Guarded by the registry's lock. */
enum { MAX_KEPT = 128 };
static struct kept_sum {
    char name[120];
    weir__stage_sum sum;
} kept[MAX_KEPT];

/* What is in laps that have not been taken. */
static weir__stage_sum sum_open_laps_locked(const weir_node *node)
{
    const weir_pipeline *pipeline = node->pipeline;
    weir__stage_sum open = { 0 };
    for (const weir__lap *lap = pipeline->laps->open; lap; lap = lap->next) {
        const weir__stage_sum sum = weir__stage_sum_of(
            lap->state == LAP_CURRENT ? &node->core.lap : &lap->figures.metrics[node->subject].task);
        if (!lap->paused)
            weir__stage_sum_add(&open, &sum);
    }
    return open;
}

/* Without the tasks before the last reset; the shortest and the longest may be one of the same lap before it. */
static weir__stage_sum sum_node_locked(weir_node *node, bool reset)
{
    weir__stage_sum open = sum_open_laps_locked(node), sum = node->dumped, *before = &node->before_reset;
    weir__stage_sum_add(&sum, &open);
    sum.num_tasks -= before->num_tasks;
    sum.num_failures -= before->num_failures;
    sum.success_ns -= before->success_ns;
    if (reset) {
        node->dumped = (weir__stage_sum){ 0 };
        *before = open;
    }
    return sum;
}

static void keep_sum(const char *name, const weir__stage_sum *sum)
{
    size_t i = 0;
    while (i < MAX_KEPT - 1 && kept[i].name[0] && strncmp(kept[i].name, name, sizeof kept->name - 1) != 0)
        i++;
    if (!kept[i].name[0])
        snprintf(kept[i].name, sizeof kept->name, "%.*s", (int)sizeof kept->name - 1,
                 i < MAX_KEPT - 1 ? name : "others");
    weir__stage_sum_add(&kept[i].sum, sum);
}

static void visit_pipeline(weir_pipeline *pipeline, void (*each)(void *, const char *, const weir__stage_sum *),
                           void *self, bool reset)
{
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir__engine_lock(pipeline);
        weir__stage_sum sum = sum_node_locked(pipeline->nodes[i], reset);
        weir__engine_unlock(pipeline);
        if (sum.num_tasks)
            each(self, pipeline->nodes[i]->name, &sum);
    }
}

void weir__stage_sums_visit(void (*each)(void *self, const char *name, const weir__stage_sum *sum), void *self,
                            bool reset)
{
    weir__spans_lock();
    for (struct kept_sum *one = kept; one < kept + MAX_KEPT; one++) {
        if (one->sum.num_tasks)
            each(self, one->name, &one->sum);
        if (reset)
            one->sum = (weir__stage_sum){ 0 };
    }
    for (weir_pipeline *pipeline = running; pipeline; pipeline = pipeline->next_running)
        if (!is_of_parent(pipeline))
            visit_pipeline(pipeline, each, self, reset);
    weir__spans_unlock();
}

/* ---- beginning and end ----------------------------------------------------------------------------------------- */

void weir__running_add(weir_pipeline *pipeline)
{
    weir__spans_lock();
    pipeline->next_running = running;
    running = pipeline;
    weir__engine_lock(pipeline);
    pipeline->paused = weir__span_is_paused();
    if (pipeline->laps->current) /* nothing is in it yet */
        pipeline->laps->current->paused = pipeline->paused;
    weir__engine_unlock(pipeline);
    if (pipeline->trace && pipeline->paused)
        weir__trace_update(pipeline);
    weir__spans_unlock();
}

void weir__running_remove(weir_pipeline *pipeline)
{
    weir__spans_lock();
    weir_pipeline **link = &running;
    while (*link != pipeline)
        link = &(*link)->next_running;
    *link = pipeline->next_running;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir__engine_lock(pipeline);
        weir__stage_sum sum = sum_node_locked(pipeline->nodes[i], false);
        weir__engine_unlock(pipeline);
        if (sum.num_tasks)
            keep_sum(pipeline->nodes[i]->name, &sum);
    }
    weir__spans_unlock();
}
