/* Changes a stage's concurrency while it runs: adds slots, or retires them as soon as they are idle. And a pool's number
   of threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock.h"
#include "node.h"
#include "pipeline_start.h"
#include "pool.h"

/* Slots to be added, and the array that will hold all slots. */
typedef struct slot_addition {
    weir__slot **slots;
    uint32_t num_before, num_after;
} slot_addition;

static void free_addition(slot_addition *addition)
{
    for (uint32_t i = addition->num_before; addition->slots && i < addition->num_after; i++)
        weir__slot_free((weir_slot *)addition->slots[i]);
    free(addition->slots);
}

static int make_addition(weir_node *node, slot_addition *addition)
{
    addition->slots = calloc(addition->num_after, sizeof(weir__slot *));
    if (!addition->slots)
        return WEIR_ENOMEM;
    for (uint32_t i = addition->num_before; i < addition->num_after; i++)
        if (!(addition->slots[i] = (weir__slot *)weir__slot_new(node, i)))
            return WEIR_ENOMEM;
    return WEIR_OK;
}

/* Moves the addition to the node; the old array is left in it, to be freed. */
static void install_locked(weir_node *node, slot_addition *addition)
{
    weir__slot **before = node->core.slots;
    if (node->core.num_made)
        memcpy(addition->slots, before, node->core.num_made * sizeof(weir__slot *));
    weir__node_add_slots(&node->core, addition->slots, addition->num_after);
    addition->slots = before;
    addition->num_before = addition->num_after;
}

/* False = another thread has added slots in the meantime. */
static bool try_set(weir_node *node, slot_addition *addition, uint32_t wanted, uint32_t *before)
{
    weir_pipeline *pipeline = node->pipeline;
    engine_lock_at(pipeline, weir_clock_ns());
    bool fits = node->core.num_made == addition->num_before || wanted <= node->core.num_made;
    if (fits) {
        *before = node->core.num_wanted;
        if (wanted > node->core.num_made)
            install_locked(node, addition);
        weir__node_set_slots(&node->core, wanted);
    }
    weir__engine_unlock(pipeline);
    return fits;
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
    weir_node *node = weir__pipeline_find(pipeline, stage);
    if (!node)
        return WEIR_ENOTFOUND;
    if (concurrency == 0 || concurrency > WEIR_MAX_SLOTS)
        return WEIR_EINVAL;
    if (!node->op || node->core.num_ins == 0 || node->op->flush)
        return WEIR_EUNSUPPORTED;

    for (;;) {
        weir__engine_lock(pipeline);
        slot_addition addition = { .num_before = node->core.num_made };
        weir__engine_unlock(pipeline);
        uint32_t before = 0;
        addition.num_after = concurrency > addition.num_before ? concurrency : addition.num_before;
        int status = concurrency > addition.num_before ? make_addition(node, &addition) : WEIR_OK;
        bool set = status == WEIR_OK && try_set(node, &addition, concurrency, &before);
        free_addition(&addition);
        if (set && before != concurrency)
            report_change(pipeline, "concurrency", node->name, before, concurrency);
        if (set || status != WEIR_OK)
            return status;
    }
}

int weir_pipeline_set_threads(weir_pipeline *pipeline, const char *stage, uint32_t threads)
{
    if (!pipeline)
        return WEIR_EINVAL;
    weir_node *node = stage ? weir__pipeline_find(pipeline, stage) : NULL;
    if (stage && !node)
        return WEIR_ENOTFOUND;
    if (stage && !node->threads)
        return WEIR_EUNSUPPORTED;
    if (threads == 0 || threads > WEIR_MAX_THREADS)
        return WEIR_EINVAL;
    weir_pool *pool = stage ? node->pool : pipeline->pools[0];
    uint32_t before = threads;
    int status = weir__pool_resize(pool, threads, &before);
    uint32_t now = atomic_load(&pool->num_workers);
    if (before != now && status != WEIR_EBUSY && status != WEIR_ESTOPPED)
        report_change(pipeline, "threads", pool->name, before, now);
    return status;
}
