#include "engine/state/burst.h"

#include <weir/clock.h>

#include "engine/base/label.h"

/* A burst ends when it has lasted that long, as a spinning consumer waits for its end. For steps that take longer than some
   hundred ns it saves little. */
#define LONGEST_NS WEIR__SHORT_STEP_NS

enum { ENDED = 1 << 16 }; /* in progress */

bool weir__burst_allowed(const weir_node *node)
{
    const weir_pipeline *pipeline = node->pipeline;
    return node->op && node->num_task_hooks == 0 && !node->task_deadline_ns && !pipeline->tracker &&
           pipeline->num_pools == 1;
}

void weir__burst_plan_locked(weir_pool_thread *pool_thread, const weir_task *slot)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    weir__burst *burst = &pool_thread->burst;
    bool is_awaited = pipeline->consumer.poll_fd >= 0 || (pipeline->consumer.waiting > pipeline->consumer.waking &&
                                                          pipeline->consumer.waiting > pipeline->consumer.patient);
    if (is_awaited || atomic_load_explicit(&pipeline->sped_node, memory_order_relaxed))
        return;
    burst->plan = weir__slot_plan_ahead(&slot->core, MAX_BURST - 1);
    if (!burst->plan.num_steps)
        return;
    burst->num_passed = burst->num_reported = 0;
    atomic_store_explicit(&burst->progress, 0, memory_order_relaxed);
    burst->next = pipeline->bursts;
    pipeline->bursts = pool_thread;
}

bool weir__burst_continue(weir_pool_thread *pool_thread, weir__core_slot *core)
{
    weir__burst *burst = &pool_thread->burst;
    uint32_t index = burst->num_passed;
    if (index == burst->plan.num_steps || core->status != WEIR_OK ||
        core->end_ns - pool_thread->began_ns >= LONGEST_NS)
        return false;

    const weir__core_node *node = core->node;
    weir_item next = { .source = core->in.source, .epoch = core->in.epoch, .seq = core->in.seq + 1 };
    if (node->num_ins)
        next = *weir__queue_item_at(node->ins[0], burst->plan.first_in + index);
    weir_item *out = weir__queue_item_at(node->outs, burst->plan.first_out + index);
    *out = core->out;
    if (!out->made_ns)
        out->made_ns = node->num_ins ? core->in.made_ns : core->end_ns;
    burst->steps[index] =
        (weir__passed_step){ .begin_ns = core->begin_ns, .end_ns = core->end_ns, .run_ns = core->step_run_ns };
    if (!atomic_compare_exchange_strong_explicit(&burst->progress, &index, index + 1, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return false;
    burst->num_passed = index + 1;
    item_forget(&core->out);
    core->in = next;
    core->begin_ns = core->end_ns;
    core->step_run_ns = 0;
    return true;
}

/* ---- taking ahead ------------------------------------------------------------------------------------------- */

void weir__ahead_plan_locked(weir_pipeline *pipeline, const void *taker)
{
    weir__ahead *ahead = &pipeline->consumer.ahead;
    const weir__queue *sink = pipeline->core.sink;
    if (!atomic_load_explicit(&ahead->taker, memory_order_relaxed))
        atomic_store_explicit(&ahead->taker, taker, memory_order_release);
    if (atomic_load_explicit(&ahead->taker, memory_order_relaxed) != taker)
        return;
    ahead->num_planned = weir__graph_plan_takes(&pipeline->core, MAX_AHEAD);
    for (uint32_t i = 0; i < ahead->num_planned; i++)
        ahead->items[i] = *weir__queue_item_at(sink, sink->head + i);
    ahead->num_reported = 0;
    ahead->is_open = ahead->num_planned > 0;
    atomic_store_explicit(&ahead->progress, 0, memory_order_release);
}

bool weir__ahead_take(weir_pipeline *pipeline, const void *taker, weir_item *item, int64_t now_ns)
{
    weir__ahead *ahead = &pipeline->consumer.ahead;
    if (atomic_load_explicit(&ahead->taker, memory_order_acquire) != taker)
        return false;
    unsigned index = atomic_load_explicit(&ahead->progress, memory_order_acquire);
    if (index >= ahead->num_planned)
        return false;
    ahead->taken_ns[index] = now_ns;
    if (!atomic_compare_exchange_strong_explicit(&ahead->progress, &index, index + 1, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return false;
    *item = ahead->items[index];
    return true;
}

/* ---- telling the core --------------------------------------------------------------------------------------- */

static unsigned read_progress(atomic_uint *progress, bool ends)
{
    unsigned read = ends ? atomic_fetch_or_explicit(progress, ENDED, memory_order_acq_rel)
                         : atomic_load_explicit(progress, memory_order_acquire);
    return read % ENDED;
}

/* Tells the core the passed steps that had ended by until_ns. */
static void tell_steps_locked(weir_pipeline *pipeline, bool ends, int64_t until_ns)
{
    for (weir_pool_thread *pool_thread = pipeline->bursts; pool_thread; pool_thread = pool_thread->burst.next) {
        weir__burst *burst = &pool_thread->burst;
        uint32_t num_passed = read_progress(&burst->progress, ends), first = burst->num_reported,
                 num_reported = first;
        while (num_reported < num_passed && burst->steps[num_reported].end_ns <= until_ns)
            num_reported++;
        burst->num_reported = num_reported;
        weir__steps_passed(&pool_thread->running->core, &burst->steps[first], num_reported - first);
    }
}

/* `ends`: no more items are taken ahead; ends_bursts: no more steps pass. */
static void tell_taken_locked(weir_pipeline *pipeline, bool ends, bool ends_bursts)
{
    weir__ahead *ahead = &pipeline->consumer.ahead;
    unsigned num_taken = ahead->is_open ? read_progress(&ahead->progress, ends) : 0;
    while (ahead->num_reported < num_taken) {
        int64_t taken_ns = ahead->taken_ns[ahead->num_reported++];
        tell_steps_locked(pipeline, ends_bursts, taken_ns);
        weir__item_taken(&pipeline->core, taken_ns);
    }
    ahead->is_open &= !ends;
}

void weir__bursts_tell_locked(weir_pipeline *pipeline, bool ends)
{
    tell_taken_locked(pipeline, ends, ends);
    tell_steps_locked(pipeline, ends, INT64_MAX);
}

void weir__ahead_end_locked(weir_pipeline *pipeline)
{
    tell_taken_locked(pipeline, true, false);
}

void weir__burst_end_locked(weir_pool_thread *pool_thread)
{
    weir__burst *burst = &pool_thread->burst;
    weir_pool_thread **link = &pool_thread->pool->pipeline->bursts;
    if (!burst->plan.num_steps)
        return;
    burst->plan.num_steps = 0;
    while (*link != pool_thread)
        link = &(*link)->burst.next;
    *link = burst->next;
}
