/*
 * Each pause is a lap of its own in each pipeline, which is measured like others and then not passed on:
 * so laps before and after it are exact. Locks: the registry's of spans, then that of a pipeline.
 */
#include "running.h"

#include <stdlib.h>
#include <string.h>

#include "consumer_position.h"
#include "current_part.h"
#include "lock.h"
#include "trace_ring.h"

/* ---- pauses ----------------------------------------------------------------------------------------------------- */

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

/* ---- the sums of stages ---------------------------------------------------------------------------------------- */

/* Of pipelines that have been freed. */
typedef struct kept_sum {
    struct kept_sum *next;
    weir__stage_sum sum;
    char name[];
} kept_sum;

static kept_sum *kept; /* guarded by the registry's lock; in the order in which they ended */

/* What is in parts that have not been taken. */
static weir__stage_sum sum_open_parts_locked(const weir_node *node)
{
    const weir_pipeline *pipeline = node->pipeline;
    weir__stage_sum open = { 0 };
    for (const weir_part *part = pipeline->parts; part; part = part->next) {
        const weir__stage_sum sum =
            weir__stage_sum_of(part == pipeline->part ? &node->core.lap : &part->metrics[node->subject].task);
        if (!part->paused)
            weir__stage_sum_add(&open, &sum);
    }
    return open;
}

/* Without the tasks before the last reset; the shortest and the longest may be one of the same lap before it. */
static weir__stage_sum sum_node_locked(weir_node *node, bool reset)
{
    weir__stage_sum open = sum_open_parts_locked(node), sum = node->dumped, *before = &node->before_reset;
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

/* Without memory, it is lost. */
static void keep_sum(const weir_node *node, const weir__stage_sum *sum)
{
    kept_sum **link = &kept;
    while (*link && strcmp((*link)->name, node->name) != 0)
        link = &(*link)->next;
    if (!*link && (*link = calloc(1, sizeof **link + strlen(node->name) + 1)))
        memcpy((*link)->name, node->name, strlen(node->name) + 1);
    if (*link)
        weir__stage_sum_add(&(*link)->sum, sum);
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
    for (kept_sum *one = kept; one; one = one->next) {
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
    if (pipeline->part) /* nothing is in it yet */
        pipeline->part->paused = pipeline->paused;
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
            keep_sum(pipeline->nodes[i], &sum);
    }
    weir__spans_unlock();
}
