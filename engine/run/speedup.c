#include "engine/run/speedup.h"

#include "engine/base/readings.h"
#include "engine/run/node.h"
#include "engine/run/pipeline_start.h"
#include "engine/run/run_room.h"
#include "engine/state/lock.h"

enum { HELD_SLICE_NS = 10 * 1000 * 1000 };

static void raise_delayed(weir_pipeline *pipeline, int64_t credit_ns)
{
    int64_t delayed_ns = atomic_load(&pipeline->run->speedup.delayed_ns);
    while (delayed_ns < credit_ns &&
           !atomic_compare_exchange_weak(&pipeline->run->speedup.delayed_ns, &delayed_ns, credit_ns))
        continue;
}

static void sleep_ns(int64_t ns)
{
    weir__readings_get()->sleep(ns < HELD_SLICE_NS ? ns : HELD_SLICE_NS);
}

void weir__speedup_settle(weir_pipeline *pipeline, const weir_node *node, int64_t credit_ns, int64_t run_ns,
                          const atomic_bool *stops)
{
    const weir_node *sped = atomic_load(&pipeline->sped_node);
    if (credit_ns < 0 || !sped)
        return;
    if (sped == node) {
        credit_ns += (int64_t)((double)run_ns * atomic_load(&pipeline->run->speedup.share));
        raise_delayed(pipeline, credit_ns);
    }
    int64_t start_ns = weir_clock_ns(), owed_ns = atomic_load(&pipeline->run->speedup.delayed_ns) - credit_ns;
    while (owed_ns > 0 && !(stops && atomic_load(stops)) && atomic_load(&pipeline->sped_node)) {
        sleep_ns(owed_ns);
        owed_ns = atomic_load(&pipeline->run->speedup.delayed_ns) - credit_ns - (weir_clock_ns() - start_ns);
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
    atomic_store(&pipeline->sped_node, NULL); /* no step may see the new stage with the old share */
    atomic_store(&pipeline->run->speedup.share, share);
    atomic_store(&pipeline->sped_node, share > 0 ? node : NULL);
    weir__engine_unlock(pipeline);
    return WEIR_OK;
}
