/* Handles the end of a step: counts it, and moves the slot to its next state. All functions need the lock. */
#include "task_end.h"

#include <stdio.h>

#include "cancel.h"
#include "handoff.h"
#include "slots.h"
#include "trace_ring.h"

static void count_success(weir_slot *slot)
{
    weir_node *node = slot->node;
    node->lap.num_tasks++;
    node->total_tasks++;
    node->lap.success_ns += slot->run_ns;
    if (slot->run_ns > node->lap.max_ns)
        node->lap.max_ns = slot->run_ns;
    if (slot->run_ns < node->lap.min_ns)
        node->lap.min_ns = slot->run_ns;
    if (node->pipeline->measures)
        live_histogram_record(node->run_times, slot->run_ns);
}

/* The task of the slot, or its flush, is over: it has no input any more. */
static void task_over(weir_slot *slot)
{
    if (slot->flushing)
        slot->needs_flush = false;
    else if (slot->node->op->flush && slot->worker_live)
        slot->needs_flush = true;
    slot->has_in = slot->more = slot->flushing = false;
    slot->thread->spent_label = slot->label;
    slot->label = NULL;
}

static void next(weir_slot *slot)
{
    weir_node *node = slot->node;
    task_over(slot);
    weir_handoff_next_input_locked(slot);
    if (node->ordered_join)
        weir_handoff_item_gone_locked(node);
}

/* The inputs that the worker had kept did not become part of a result; they are added to this count. */
static void count_kept_as(weir_slot *slot, uint64_t *count)
{
    slot->node->account.merged -= slot->num_kept;
    *count += slot->num_kept;
    slot->num_kept = 0;
}

/* ---- failures ----------------------------------------------------------------------------------------------- */

enum { RATE_TASKS = 100 /* the rate is not checked before */ };

static bool too_many_failures(const weir_node *node)
{
    const weir_max_failures *max = &node->max_failures;
    switch (max->kind) {
    case WEIR_FAILURES_COUNT: return max->count >= 0 && node->total_failures > (uint64_t)max->count;
    case WEIR_FAILURES_RATE:
        return node->total_tasks >= RATE_TASKS && node->total_failures * max->den > node->total_tasks * max->num;
    default: return false;
    }
}

static void fail_over_budget(weir_node *node, const weir_error *one, const char *which)
{
    weir_error error = *one;
    snprintf(error.message, sizeof error.message,
             "%llu of %llu tasks failed, more than max_failures allows; %s: %.400s",
             (unsigned long long)node->total_failures, (unsigned long long)node->total_tasks, which, one->message);
    weir_cancel_by_failure_locked(node, &error);
}

/* The first tasks may have failed before the rate was checked, and none since. */
static void check_first_tasks(weir_node *node)
{
    if (node->total_tasks == RATE_TASKS && !node->cancelled && too_many_failures(node))
        fail_over_budget(node, &node->first_error, "the first");
}

static void count_failure(weir_slot *slot)
{
    weir_node *node = slot->node;
    node->lap.num_tasks++;
    node->total_tasks++;
    node->lap.num_failures++;
    node->total_failures++;
    node->lap.failed_ns += slot->run_ns;
    node->account.failed += slot->has_in;
    if (slot->flushing)
        count_kept_as(slot, &node->account.failed);
    if (!node->first_error.status)
        node->first_error = slot->error;
    if (node->num_ins == 0)
        weir_cancel_by_failure_locked(node, &slot->error);
    else if (too_many_failures(node))
        fail_over_budget(node, &slot->error, "the last");
}

static void step_failed(weir_slot *slot)
{
    count_failure(slot);
    next(slot);
}

/* ---- the other results -------------------------------------------------------------------------------------- */

/* The task is over, and its items are lost. */
static void drop(weir_slot *slot)
{
    slot->node->account.dropped += (uint64_t)slot->has_in + (uint64_t)slot->has_out;
    slot->has_out = false;
    next(slot);
}

static void made_result(weir_slot *slot)
{
    weir_node *node = slot->node;
    bool last = slot->status == WEIR_OK;
    weir_trace_label_locked(slot);
    slot->has_out = true;
    slot->num_kept = 0;
    if (node->num_ins == 0) {
        node->account.taken++;
        node->next_seq = slot->in.seq + 1;
    }
    if (!last || slot->flushing)
        node->account.created++;
    if (last && !slot->flushing)
        count_success(slot);
    if (last)
        task_over(slot);
    slot->more = !last;
    slot->num_pieces++;

    if (node->cancelled && !node->keeps_results)
        weir_slot_make_ready_locked(slot); /* so that a thread releases what it holds */
    else
        weir_handoff_offer_locked(slot);
}

static void made_nothing(weir_slot *slot)
{
    weir_node *node = slot->node;
    if (node->num_ins == 0)
        node->next_seq = slot->in.seq; /* it may have passed over an item that is done */
    if (slot->flushing) {
        count_kept_as(slot, &node->account.skipped);
    } else {
        count_success(slot);
        node->lap.num_skipped++;
        node->account.skipped += slot->has_in;
    }
    next(slot);
}

/* One of several results, which was done in an earlier run. */
static void passed_over_result(weir_slot *slot)
{
    slot->node->account.created++;
    slot->node->account.skipped++;
    slot->more = true;
    slot->num_pieces++;
    weir_slot_make_ready_locked(slot);
}

static void kept_input(weir_slot *slot)
{
    count_success(slot);
    if (slot->node->cancelled) {
        slot->node->account.dropped++;
    } else {
        slot->node->account.merged++;
        slot->num_kept++;
    }
    next(slot);
}

static void became_pending(weir_slot *slot)
{
    weir_slot_enter_locked(slot, SLOT_PENDING);
    slot->run_returned = true;
    if (atomic_load_explicit(&slot->completed, memory_order_relaxed) && !slot->cancelling)
        weir_slot_make_ready_locked(slot);
    else if (slot->node->cancelled || atomic_load_explicit(&slot->overdue, memory_order_relaxed))
        weir_cancel_pending_locked(slot);
}

static void epoch_ended(weir_slot *slot)
{
    weir_node *node = slot->node;
    node->epochs_ended++;
    node->next_seq = 0;
    node->exhausted = node->epochs && node->epochs != WEIR_ENDLESS && node->epochs_ended >= node->epochs;
    slot->out = epoch_end();
    if (node->cancelled && !node->keeps_results)
        weir_handoff_next_input_locked(slot);
    else
        weir_handoff_offer_locked(slot);
}

static void learn(weir_node *node, int64_t step_ns)
{
    int64_t change_ns = step_ns - node->typical_ns;
    node->typical_ns += (change_ns < 8 * node->typical_ns ? change_ns : 8 * node->typical_ns) / 8;
}

static void task_step_ended(weir_slot *slot)
{
    weir_node *node = slot->node;
    slot->run_ns += slot->step_run_ns;
    learn(node, slot->end_ns - slot->begin_ns);

    bool dropped = slot->abandoned || (slot->status < 0 && node->cancelled);
    if (slot->status != WEIR_PENDING)
        weir_trace_task_locked(slot, dropped);
    if (dropped) {
        drop(slot);
        return;
    }
    switch (slot->status) {
    case WEIR_MORE:
        if (slot->passed_over) {
            passed_over_result(slot);
            break;
        } /* fall through */
    case WEIR_OK: made_result(slot); break;
    case WEIR_PENDING: became_pending(slot); break;
    case WEIR_SKIP: made_nothing(slot); break;
    case WEIR_KEPT: kept_input(slot); break;
    case WEIR_EPOCH: epoch_ended(slot); break;
    case WEIR_EOF:
        node->exhausted = true;
        weir_handoff_next_input_locked(slot);
        break;
    default: step_failed(slot); break;
    }
    check_first_tasks(node);
}

void weir_step_ended_locked(weir_slot *slot)
{
    if (slot->is_lifecycle)
        weir_handoff_lifecycle_ended_locked(slot->node);
    else
        task_step_ended(slot);
}

void weir_step_completed_locked(weir_slot *slot)
{
    atomic_store_explicit(&slot->completed, true, memory_order_relaxed);
    if (!slot->run_returned || slot->cancelling)
        return;
    slot->run_ns += slot->node->pipeline->now_ns - slot->entered_ns;
    weir_slot_make_ready_locked(slot);
}
