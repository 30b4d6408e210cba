/* Changes a stage's concurrency while it runs: adds slots, or retires them as soon as they are idle. And a pool's number
   of threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/run/node.h"
#include "engine/run/pipeline_start.h"
#include "engine/run/pool.h"
#include "engine/state/lock.h"

/* With resize_lock. Adds slots that are retired. */
static int add_slots(weir_node *node, uint32_t wanted)
{
    uint32_t made = node->core.num_made;
    weir__core_slot **slots = calloc(wanted, sizeof(weir__core_slot *)), **before = node->core.slots;
    if (!slots)
        return WEIR_ENOMEM;
    memcpy(slots, before, made * sizeof(weir__core_slot *));
    while (made < wanted && (slots[made] = (weir__core_slot *)weir__slot_new(node, made)))
        made++;
    engine_lock_at(node->pipeline, weir_clock_ns());
    weir__node_add_slots(&node->core, slots, made);
    weir__engine_unlock(node->pipeline);
    free(before);
    return made == wanted ? WEIR_OK : WEIR_ENOMEM;
}

static void report_change(weir_pipeline *pipeline, const char *event, const char *name, uint32_t before,
                          uint32_t wanted)
{
    char detail[64];
    snprintf(detail, sizeof detail, "%u -> %u", before, wanted);
    weir_pipeline_event(pipeline, event, name, detail);
}

int weir_pipeline_set_concurrency(weir_pipeline *pipeline, const char *stage, uint32_t concurrency)
{
    if (!pipeline || !stage)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    weir_node *node = weir__pipeline_find(pipeline, stage);
    if (!node)
        return WEIR_ENOTFOUND;
    if (concurrency == 0 || concurrency > WEIR_MAX_SLOTS)
        return WEIR_EINVAL;
    if (!node->op || node->core.num_ins == 0 || node->op->flush)
        return WEIR_EUNSUPPORTED;

    uv_mutex_lock(&pipeline->resize_lock);
    uint32_t before = node->core.num_wanted;
    int status = concurrency > node->core.num_made ? add_slots(node, concurrency) : WEIR_OK;
    if (status == WEIR_OK) {
        engine_lock_at(pipeline, weir_clock_ns());
        weir__node_set_slots(&node->core, concurrency);
        weir__engine_unlock(pipeline);
    }
    uv_mutex_unlock(&pipeline->resize_lock);
    if (status == WEIR_OK && before != concurrency)
        report_change(pipeline, "concurrency", node->name, before, concurrency);
    return status;
}

int weir_pipeline_set_threads(weir_pipeline *pipeline, const char *stage, uint32_t threads)
{
    if (!pipeline)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    weir_node *node = stage ? weir__pipeline_find(pipeline, stage) : NULL;
    if (stage && !node)
        return WEIR_ENOTFOUND;
    if (stage && !node->threads)
        return WEIR_EUNSUPPORTED;
    if (threads == 0 || threads > WEIR_MAX_THREADS)
        return WEIR_EINVAL;
    weir_pool *pool = stage ? node->pool : pipeline->pools[0];
    uint32_t before, now;
    int status = weir__pool_resize(pool, threads, &before, &now);
    if (before != now)
        report_change(pipeline, "threads", pool->name, before, now);
    return status;
}
