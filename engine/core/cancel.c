/*
 * Stop and failure. A cancelled node starts no task: its running tasks are asked to stop, and the thread that picks a
 * slot next releases what the slot holds. A failure cancels the failing node (except for the results that it has
 * already made) and everything upstream of it, and ends the other sources. Nodes downstream or in other chains run on
 * until they get no more input.
 */
#include "cancel.h"

#include "handoff.h"
#include "queue.h"
#include "slots.h"
#include "task_end.h"

/* From now on a task that does not stop is worth a warning. */
static void ask_to_stop(weir_slot *slot)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    int64_t age_ns = slot->run_ns + pipeline->now_ns - slot->entered_ns;
    atomic_store_explicit(&slot->should_stop, true, memory_order_relaxed);
    if (pipeline->stall_warning_ns != WEIR_FOREVER)
        slot->warn_after_ns = age_ns + WEIR_SECOND;
    pipeline->wake_service = true;
}

static void cancel_slot(weir_slot *slot, bool keep_result)
{
    switch (slot->state) {
    case SLOT_PENDING:
        ask_to_stop(slot);
        weir_cancel_pending_locked(slot);
        break;
    case SLOT_RUNNING: ask_to_stop(slot); break;
    case SLOT_TURN:
    case SLOT_BLOCKED:
        if (keep_result || (!slot->has_out && !is_epoch_end(&slot->out)))
            break; /* the result stays, or is just being put: handoff.c goes on with the slot */
        if (slot->node->op)
            weir_slot_make_ready_locked(slot); /* so that a thread releases what it holds */
        else
            weir_slot_enter_idle_locked(slot); /* weir_cancel_take_leftover_locked() finds it */
        break;
    default: break;
    }
}

static void drop_kept(weir_node *node)
{
    for (uint32_t i = 0; i < node->num_made; i++) {
        node->account.merged -= node->slots[i]->num_kept;
        node->account.dropped += node->slots[i]->num_kept;
        node->slots[i]->num_kept = 0;
    }
}

static void drop_results(weir_node *node)
{
    for (uint32_t i = 0; i < node->num_outs; i++)
        node->outs[i].blocked = (weir_slot_list){ 0 };
    if (node->passing_epoch) {
        weir_slot_enter_locked(&node->lifecycle, SLOT_IDLE);
        node->passing_epoch = false;
    }
}

static void cancel(weir_node *node, bool keep_results)
{
    if (node->state == NODE_DONE || (node->cancelled && (keep_results || !node->keeps_results)))
        return;
    node->cancelled = true;
    node->keeps_results = keep_results;
    if (!keep_results)
        drop_results(node);
    for (uint32_t i = 0; i < node->num_made; i++)
        cancel_slot(node->slots[i], keep_results);
    drop_kept(node);
    weir_slots_open_gate_locked(node);
    weir_handoff_check_end_locked(node);
}

void weir_cancel_before_locked(weir_node *node)
{
    for (uint32_t i = 0; i < node->num_ins; i++) {
        weir_node *before = node->ins[i]->producer;
        if (before->state == NODE_DONE || (before->cancelled && !before->keeps_results))
            continue; /* everything upstream is cancelled, too */
        cancel(before, false);
        weir_cancel_before_locked(before);
    }
}

void weir_cancel_by_failure_locked(weir_node *node, const weir_error *error)
{
    weir_pipeline *pipeline = node->pipeline;
    if (!pipeline->failed && !pipeline->stopped) {
        pipeline->failed = true;
        pipeline->error = *error;
        pipeline->wake_service = true; /* it reports the event to the observers */
    }
    cancel(node, true);
    weir_cancel_before_locked(node);
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        if (pipeline->nodes[i]->num_ins == 0)
            cancel(pipeline->nodes[i], true); /* of other chains: their results are still passed on */
}

void weir_cancel_by_stop_locked(weir_pipeline *pipeline)
{
    if (pipeline->stopped || pipeline->over)
        return;
    pipeline->stopped = true;
    pipeline->wake_service = true;
    set_consumable_locked(pipeline, true);
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        cancel(pipeline->nodes[i], false);
    weir_handoff_check_over_locked(pipeline);
}

/* ---- op->cancel --------------------------------------------------------------------------------------------- */

void weir_cancel_pending_locked(weir_slot *slot)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    if (!slot->node->op->cancel || slot->cancel_called || slot->cancel_queued)
        return;
    slot->cancel_queued = true;
    slot->next_to_cancel = NULL;
    *pipeline->to_cancel_end = slot;
    pipeline->to_cancel_end = &slot->next_to_cancel;
    pipeline->wake_service = true;
}

/* The task may have been completed since it was queued, and its slot may already have another task. */
static bool is_to_be_cancelled(const weir_slot *slot)
{
    bool unwanted = slot->node->cancelled || atomic_load_explicit(&slot->overdue, memory_order_relaxed);
    return slot->state == SLOT_PENDING && unwanted && !slot->cancel_called;
}

weir_slot *weir_cancel_take_locked(weir_pipeline *pipeline)
{
    while (pipeline->to_cancel) {
        weir_slot *slot = pipeline->to_cancel;
        pipeline->to_cancel = slot->next_to_cancel;
        if (!pipeline->to_cancel)
            pipeline->to_cancel_end = &pipeline->to_cancel;
        slot->cancel_queued = false;
        if (!is_to_be_cancelled(slot))
            continue;
        slot->cancel_called = slot->cancelling = true;
        return slot;
    }
    return NULL;
}

void weir_cancel_called_locked(weir_slot *slot)
{
    slot->cancelling = false;
    if (atomic_load_explicit(&slot->completed, memory_order_relaxed))
        weir_step_completed_locked(slot);
}

/* ---- leftover items ----------------------------------------------------------------------------------------- */

static bool take_from_queues(weir_node *node, weir_item *item)
{
    for (uint32_t i = 0; i < node->num_outs; i++) {
        weir_queue *queue = &node->outs[i];
        if (queue->depth == 0)
            continue;
        queue_pop_locked(queue, item, node->pipeline->now_ns, true);
        queue->total_dropped += !is_epoch_end(item);
        return true;
    }
    return false;
}

bool weir_cancel_take_leftover_locked(weir_pipeline *pipeline, weir_item *item)
{
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        if (take_from_queues(node, item))
            return true;
        if (node->op || !node->slots[0]->has_out)
            continue;
        *item = node->slots[0]->out;
        node->slots[0]->has_out = false;
        node->account.dropped++;
        return true;
    }
    return false;
}
