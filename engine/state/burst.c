#include "burst.h"

#include <weir/clock.h>

#include "label.h"

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

void weir__burst_plan_locked(weir_worker *worker, const weir_slot *slot)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    weir__burst *burst = &worker->burst;
    bool is_awaited = pipeline->poll_fd >= 0 || pipeline->consumers_waiting > pipeline->consumers_waking;
    if (is_awaited || atomic_load_explicit(&pipeline->sped_node, memory_order_relaxed))
        return;
    burst->plan = weir__slot_plan_ahead(&slot->core, MAX_BURST - 1);
    if (!burst->plan.num_steps)
        return;
    burst->num_passed = burst->num_told = 0;
    atomic_store_explicit(&burst->progress, 0, memory_order_relaxed);
    burst->next = pipeline->bursts;
    pipeline->bursts = worker;
}

bool weir__burst_continue(weir_worker *worker, weir__slot *core)
{
    weir__burst *burst = &worker->burst;
    uint32_t index = burst->num_passed;
    if (index == burst->plan.num_steps || core->status != WEIR_OK || core->end_ns - worker->began_ns >= LONGEST_NS)
        return false;

    const weir__node *node = core->node;
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

static void tell_steps_locked(weir_worker *worker, uint32_t progress)
{
    weir__burst *burst = &worker->burst;
    uint32_t num_passed = progress % ENDED, num_told = burst->num_told;
    burst->num_told = num_passed;
    weir__steps_passed(&worker->running->core, &burst->steps[num_told], num_passed - num_told);
}

void weir__bursts_tell_locked(weir_pipeline *pipeline, bool ends)
{
    for (weir_worker *worker = pipeline->bursts; worker; worker = worker->burst.next) {
        atomic_uint *progress = &worker->burst.progress;
        tell_steps_locked(worker, ends ? atomic_fetch_or_explicit(progress, ENDED, memory_order_acq_rel)
                                       : atomic_load_explicit(progress, memory_order_acquire));
    }
}

void weir__burst_end_locked(weir_worker *worker)
{
    weir__burst *burst = &worker->burst;
    weir_worker **link = &worker->pool->pipeline->bursts;
    if (!burst->plan.num_steps)
        return;
    burst->plan.num_steps = 0;
    while (*link != worker)
        link = &(*link)->burst.next;
    *link = burst->next;
}
