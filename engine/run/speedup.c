#include "engine/run/speedup.h"

#include <stdatomic.h>

#include "engine/base/readings.h"
#include "engine/run/node.h"
#include "engine/run/pipeline_start.h"
#include "engine/run/run_room.h"
#include "engine/state/lock.h"

enum { HELD_SLICE_NS = 10 * 1000 * 1000 };

/* The number of speedups of all pipelines of the process, also of those that have been freed: a credit is of one
   speedup only. */
static atomic_uint num_speedups;

/* The time for which others are held back. It grows as long as a step of the chosen stage runs. */
static int64_t move_held_locked(weir__speedup *own)
{
    int64_t now_ns = weir_clock_ns();
    if (own->num_running > 0 && now_ns > own->since_ns)
        own->held_ns += (int64_t)((double)(now_ns - own->since_ns) * own->share);
    own->since_ns = now_ns;
    return own->held_ns;
}

int64_t weir__speedup_held_ns(const weir_pipeline *pipeline)
{
    weir__speedup *own = &pipeline->run->speedup;
    uv_mutex_lock(&own->lock);
    int64_t held_ns = move_held_locked(own);
    uv_mutex_unlock(&own->lock);
    return held_ns;
}

weir__credit weir__speedup_begin_on(const weir_pipeline *pipeline, const weir_node *node)
{
    weir__speedup *own = &pipeline->run->speedup;
    uv_mutex_lock(&own->lock);
    const weir_node *sped = atomic_load(&pipeline->sped_node);
    weir__credit credit = { .held_ns = sped ? move_held_locked(own) : -1, .number = own->number };
    own->num_running += sped == node ? 1 : 0;
    uv_mutex_unlock(&own->lock);
    return credit;
}

/* 0 if its speedup is over. */
static int64_t owed_ns_locked(weir__speedup *own, weir__credit credit)
{
    return own->number == credit.number ? move_held_locked(own) - credit.held_ns : 0;
}

/* Returns what is owed, without what was slept; 0 for the chosen stage itself, which grows with what is held. */
static int64_t end_step(weir_pipeline *pipeline, const weir_node *node, weir__credit credit)
{
    weir__speedup *own = &pipeline->run->speedup;
    uv_mutex_lock(&own->lock);
    const weir_node *sped = atomic_load(&pipeline->sped_node);
    int64_t owed_ns = owed_ns_locked(own, credit);
    own->num_running -= sped == node && own->number == credit.number ? 1 : 0;
    uv_mutex_unlock(&own->lock);
    return sped == node ? 0 : owed_ns;
}

static int64_t still_owed_ns(const weir_pipeline *pipeline, weir__credit credit)
{
    weir__speedup *own = &pipeline->run->speedup;
    uv_mutex_lock(&own->lock);
    int64_t owed_ns = owed_ns_locked(own, credit);
    uv_mutex_unlock(&own->lock);
    return owed_ns;
}

static void sleep_ns(int64_t ns)
{
    weir__readings_get()->sleep(ns < HELD_SLICE_NS ? ns : HELD_SLICE_NS);
}

void weir__speedup_end(weir_pipeline *pipeline, const weir_node *node, weir__credit credit, const atomic_bool *stops)
{
    if (credit.held_ns < 0)
        return;
    int64_t start_ns = weir_clock_ns(), owed_ns = end_step(pipeline, node, credit);
    while (owed_ns > 0 && !(stops && atomic_load(stops)) && atomic_load(&pipeline->sped_node)) {
        sleep_ns(owed_ns);
        owed_ns = still_owed_ns(pipeline, credit) - (weir_clock_ns() - start_ns);
    }
}

int weir_pipeline_set_speedup(weir_pipeline *pipeline, const char *stage, double share)
{
    if (!pipeline || !(share >= 0 && share < 1))
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    weir_node *node = stage ? weir__pipeline_find(pipeline, stage) : NULL;
    if (stage && !node)
        return WEIR_ENOTFOUND;
    bool is_consumer = node && node == pipeline->nodes[pipeline->core.num_nodes - 1];
    if (node && !node->op && !is_consumer)
        return WEIR_EUNSUPPORTED;
    weir__engine_lock(pipeline); /* against another call; it ends the bursts, and from now on there are none */
    weir__speedup *own = &pipeline->run->speedup;
    uv_mutex_lock(&own->lock);
    move_held_locked(own);
    own->num_running = 0; /* steps that have begun belong to no speedup from now on */
    own->number = atomic_fetch_add(&num_speedups, 1) + 1;
    own->share = share;
    atomic_store(&pipeline->sped_node, share > 0 ? node : NULL);
    uv_mutex_unlock(&own->lock);
    weir__engine_unlock(pipeline);
    return WEIR_OK;
}
