/*
 * Virtual speedups (C. Curtsinger, E. D. Berger: Coz, SOSP 2015): what a run would gain if one stage were faster by the
 * share f. It cannot be made faster, so everything else is made slower. While a task of the stage runs for t, all other
 * slots and the consumer are held back for f × t. The time by which all are held back is subtracted from the elapsed
 * time:
 *
 *     gain = (items_f / (elapsed_f - held_f)) / (items / elapsed)
 *
 * States. held is the time by which everything should have been held back so far. It grows by f for each second in
 * which at least one step of the chosen stage runs. Each step, and each absence of a consumer, has a credit:
 *   begin   credit = held: a slot that waits for an item, a thread or room was held back by whom it waited for
 *   end     of another stage: sleeps until it was held back as long as held has grown since. Meanwhile it may grow
 *   end     of the chosen stage: owes nothing, also if several slots of it run at once, which are faster at once
 * held grows while steps run, not at their end: what runs beside a long step is held back although it ends before.
 * A step that began before the speedup was switched on has no credit, and is neither held back nor counted. Off, which is
 * the default, each step reads one atomic variable.
 */
#ifndef ENGINE_RUN_SPEEDUP_H
#define ENGINE_RUN_SPEEDUP_H

#include "engine/run/run_room.h"
#include "engine/state/run_state.h"

/* The credit of a step or an absence; held_ns -1 = off. */
typedef struct weir__credit {
    int64_t held_ns;
    uint32_t number; /* of the speedup */
} weir__credit;

/* While there is a speedup. */
weir__credit weir__speedup_begin_on(const weir_pipeline *pipeline, const weir_node *node);

/* At the beginning of a step of `node`, or of an absence (the sink). */
static inline weir__credit weir__speedup_begin(const weir_pipeline *pipeline, const weir_node *node)
{
    const weir__credit none = { .held_ns = -1 };
    bool is_off = !atomic_load_explicit(&pipeline->sped_node, memory_order_relaxed);
    return is_off ? none : weir__speedup_begin_on(pipeline, node);
}

/* At its end, without the lock. Sleeps what is owed, unless *stops (NULL = never). */
void weir__speedup_end(weir_pipeline *pipeline, const weir_node *node, weir__credit credit, const atomic_bool *stops);

/* How long everything was held back since the start, by all speedups. Any thread. */
int64_t weir__speedup_held_ns(const weir_pipeline *pipeline);

#endif
