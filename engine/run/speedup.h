/*
 * Virtual speedups (C. Curtsinger, E. D. Berger: Coz, SOSP 2015): what a run would gain if one stage were faster by the
 * share f. It cannot be made faster, so everything else is made slower: while a task of the stage runs for t, every other
 * slot, and the consumer, is held back for f × t. The time by which all are held back is taken off the elapsed time:
 *
 *     gain = (items_f / (elapsed_f - held_f)) / (items / elapsed)
 *
 * States. held (delayed_ns of the pipeline) is the time by which everything should have been held back so far. Each step, and each
 * absence of a consumer, has a credit:
 *   begin   credit = held: a slot that waits for an item, a thread or room was held back by whom it waited for
 *   end     of the chosen stage: credit += f × t, and held = max(held, credit). Several slots of it that run at once are
 *           faster at once: their credits grow side by side
 *   end     of any: sleeps until credit = held
 * A step that began before the speedup was switched on has no credit, and is neither held back nor counted. Off, which is
 * the default, each step reads one atomic variable.
 */
#ifndef ENGINE_RUN_SPEEDUP_H
#define ENGINE_RUN_SPEEDUP_H

#include "engine/run/run_room.h"
#include "engine/state/run_state.h"

/* At the beginning of a step or an absence: its credit; -1 = off. */
static inline int64_t weir__speedup_credit(const weir_pipeline *pipeline)
{
    bool is_off = !atomic_load_explicit(&pipeline->sped_node, memory_order_relaxed);
    return is_off ? -1 : atomic_load_explicit(&pipeline->run->speedup.delayed_ns, memory_order_relaxed);
}

/* At its end, without the lock: `node` has run for run_ns (the sink: the consumer was away). Sleeps what is owed, unless
   *stops (NULL = never). */
void weir__speedup_settle(weir_pipeline *pipeline, const weir_node *node, int64_t credit_ns, int64_t run_ns,
                          const atomic_bool *stops);

#endif
