/* Handles the end of a step: counts it, and moves the slot to its next state. */
#include "engine/core/handoff.h"
#include "engine/core/queue.h"
#include "engine/core/slots.h"

static void count_success(weir__core_node *node, int64_t run_ns)
{
    node->total_tasks++;
    if (!node->graph->measures)
        return;
    node->lap.num_tasks++;
    node->lap.success_ns += run_ns;
    if (run_ns > node->lap.max_ns)
        node->lap.max_ns = run_ns;
    if (run_ns < node->lap.min_ns)
        node->lap.min_ns = run_ns;
    live_histogram_record(node->run_times, run_ns, 1);
}

/* The task of the slot, or its flush, is over: it has no input any more. */
static void task_over(weir__core_slot *slot)
{
    if (slot->flushing) {
        slot->needs_flush = false;
    } else if (slot->node->has_flush && slot->worker_live) {
        slot->needs_flush = true;
        slot->last_in = (weir_item){ .source = slot->in.source,
                                     .epoch = slot->in.epoch,
                                     .seq = slot->in.seq,
                                     .order_number = slot->in.order_number,
                                     .made_ns = slot->in.made_ns };
    }
    slot->has_in = slot->more = slot->flushing = false;
}

/* The slot takes its next input. */
static void end_task(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    task_over(slot);
    weir__slot_next_input(slot);
    if (node->ordered_join)
        weir__node_item_gone(node);
}

/* The inputs that the worker had kept did not become part of a result; they are added to this count. */
static void count_kept_as(weir__core_slot *slot, uint64_t *count)
{
    slot->node->account.merged -= slot->num_kept;
    *count += slot->num_kept;
    slot->num_kept = 0;
}

/* ---- failures ----------------------------------------------------------------------------------------------- */

enum { RATE_TASKS = 100 /* the rate is not checked before */ };

/* What an earlier run left over may be what it could not do: it is not a random sample. */
static uint64_t failures_left_over(const weir__core_node *node)
{
    uint64_t num_left_over = node->graph->num_left_over;
    return node->total_failures < num_left_over ? node->total_failures : num_left_over;
}

static bool is_rate_above(const weir__core_node *node, const weir_max_failures *max)
{
    uint64_t left_over = failures_left_over(node), num_tasks = node->total_tasks - left_over;
    return num_tasks >= RATE_TASKS && (node->total_failures - left_over) * max->den > num_tasks * max->num;
}

static bool too_many_failures(const weir__core_node *node)
{
    const weir_max_failures *max = &node->max_failures;
    switch (max->kind) {
    case WEIR_FAILURES_COUNT: return max->count >= 0 && node->total_failures > (uint64_t)max->count;
    case WEIR_FAILURES_RATE: return is_rate_above(node, max);
    default: return false;
    }
}

/* The first tasks may have failed before the rate was checked, and none since. */
static void check_first_tasks(weir__core_node *node)
{
    if (node->total_tasks - failures_left_over(node) == RATE_TASKS && !node->cancelled && too_many_failures(node))
        weir__graph_fail(node, NULL, WEIR__FAILURE_FIRST);
}

static void count_failure(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    node->lap.num_tasks++;
    node->total_tasks++;
    node->lap.num_failures++;
    node->total_failures++;
    node->lap.failed_ns += slot->run_ns;
    node->total_failed_ns += slot->run_ns;
    node->account.failed += slot->has_in;
    if (slot->flushing)
        count_kept_as(slot, &node->account.failed);
    if (node->num_ins == 0)
        weir__graph_fail(node, slot, WEIR__FAILURE_ITSELF);
    else if (too_many_failures(node))
        weir__graph_fail(node, slot, WEIR__FAILURE_LAST);
    else if (slot->place == WEIR__PLACE_LOST)
        weir__graph_fail(node, slot, WEIR__FAILURE_PLACE);
}

static void step_failed(weir__core_slot *slot)
{
    count_failure(slot);
    if (slot->place == WEIR__PLACE_FILLED)
        weir__input_replaced(slot); /* also if the node is cancelled: a thread then releases the other input */
    else
        end_task(slot);
}

/* ---- the other results -------------------------------------------------------------------------------------- */

/* The task is over, and its items are lost. */
static void drop_task(weir__core_slot *slot)
{
    slot->node->account.dropped += (uint64_t)slot->has_in + (uint64_t)slot->has_out;
    slot->has_out = false;
    if (!slot->abandoned && slot->place == WEIR__PLACE_FILLED)
        weir__input_replaced(slot); /* so that a thread releases it */
    else
        end_task(slot);
}

/* When the oldest of the source's items that the result was made of came into being. */
static int64_t find_made_ns(const weir__core_slot *slot)
{
    if (slot->node->num_ins == 0)
        return slot->end_ns;
    if (slot->out.made_ns) /* one that it had kept */
        return slot->out.made_ns;
    return slot->num_kept && slot->kept_ns < slot->in.made_ns ? slot->kept_ns : slot->in.made_ns;
}

static void made_result(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    bool last = slot->status == WEIR_OK;
    if (node->graph->recorder)
        node->graph->recorder->result(slot);
    slot->has_out = true;
    slot->out.made_ns = find_made_ns(slot);
    slot->num_kept = 0;
    if (node->num_ins == 0) {
        node->account.taken++;
        node->next_seq = slot->in.seq + 1;
    }
    if (!last || slot->flushing)
        node->account.created++;
    if (last && !slot->flushing)
        count_success(node, slot->run_ns);
    if (last)
        task_over(slot);
    slot->more = !last;
    slot->num_chunks++;

    if (node->cancelled && !node->keeps_results)
        weir__slot_make_ready(slot); /* so that a thread releases what it holds */
    else
        weir__result_offer(slot);
}

static void made_nothing(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    if (node->num_ins == 0)
        node->next_seq = slot->in.seq; /* it may have passed over an item that is done */
    if (slot->flushing) {
        count_kept_as(slot, &node->account.skipped);
    } else {
        count_success(node, slot->run_ns);
        node->lap.num_skipped++;
        node->account.skipped += slot->has_in;
    }
    end_task(slot);
}

/* One of several results, which was done in an earlier run. */
static void passed_over_result(weir__core_slot *slot)
{
    slot->node->account.created++;
    slot->node->account.skipped++;
    slot->more = true;
    slot->num_chunks++;
    weir__slot_make_ready(slot);
}

static void kept_input(weir__core_slot *slot)
{
    count_success(slot->node, slot->run_ns);
    if (slot->node->cancelled) {
        slot->node->account.dropped++;
    } else {
        slot->node->account.merged++;
        if (!slot->num_kept++ || slot->in.made_ns < slot->kept_ns)
            slot->kept_ns = slot->in.made_ns;
    }
    end_task(slot);
}

static void became_pending(weir__core_slot *slot)
{
    weir__slot_enter(slot, SLOT_PENDING);
    slot->run_returned = true;
    if (slot->completed && !slot->cancelling)
        weir__slot_make_ready(slot);
    else if (slot->node->cancelled || slot->overdue)
        weir__slot_want_cancel(slot);
}

static void epoch_ended(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    node->epochs_ended++;
    node->next_seq = 0;
    node->exhausted = node->epochs && node->epochs != WEIR_ENDLESS && node->epochs_ended >= node->epochs;
    slot->out = weir__epoch_end();
    if (node->cancelled && !node->keeps_results)
        weir__slot_next_input(slot);
    else
        weir__result_offer(slot);
}

static void learn_step_time(weir__core_node *node, int64_t step_ns)
{
    int64_t change_ns = step_ns - node->typical_ns;
    node->typical_ns += (change_ns < 8 * node->typical_ns ? change_ns : 8 * node->typical_ns) / 8;
}

/* The item of a source: it may have passed over some. */
static void count_task(weir__core_slot *slot, bool dropped)
{
    const weir__recorder *recorder = slot->node->graph->recorder;
    if (!recorder)
        return;
    if (slot->node->num_ins == 0)
        slot->trace_item = weir_trace_item(slot->in.source, slot->in.epoch, slot->in.seq);
    recorder->task(slot, dropped);
}

static void task_step_ended(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    slot->run_ns += slot->step_run_ns;
    learn_step_time(node, slot->end_ns - slot->begin_ns);

    bool dropped = slot->abandoned || (slot->status < 0 && node->cancelled);
    if (slot->status != WEIR_PENDING)
        count_task(slot, dropped);
    if (dropped) {
        drop_task(slot);
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
        weir__slot_next_input(slot);
        break;
    default: step_failed(slot); break;
    }
    check_first_tasks(node);
}

/* ---- steps that have passed --------------------------------------------------------------------------------------- */

/* The slot was busy from the beginning of the step, and stays so. */
static void pass_time_of(weir__core_slot *slot, const weir__passed_step *step)
{
    weir__core_node *node = slot->node;
    int64_t end_ns = step->end_ns > slot->since_ns ? step->end_ns : slot->since_ns;
    int64_t begin_ns = step->begin_ns > slot->since_ns ? step->begin_ns : slot->since_ns;
    weir__graph_move_time(node->graph, end_ns);
    node->time_ns[SLOT_READY] += begin_ns - slot->since_ns;
    node->time_ns[SLOT_RUNNING] += end_ns - begin_ns;
    slot->since_ns = slot->entered_ns = end_ns;
}

void weir__steps_passed(weir__core_slot *slot, const weir__passed_step *steps, uint32_t num_steps)
{
    for (uint32_t i = 0; i < num_steps; i++) {
        pass_time_of(slot, &steps[i]);
        learn_step_time(slot->node, steps[i].end_ns - steps[i].begin_ns);
        count_success(slot->node, steps[i].run_ns);
        weir__result_pass(slot);
    }
    if (num_steps)
        weir__passes_count(slot, num_steps);
    const weir__core_node *node = slot->node;
    if (node->pool->ranks[node->rank].first)
        slot->node->num_turns_ahead += num_steps;
}

static void lifecycle_ended(weir__core_slot *lifecycle)
{
    weir__core_node *node = lifecycle->node;
    bool starting = node->state == NODE_STARTING;
    weir__slot_enter(lifecycle, SLOT_IDLE);
    if (starting)
        node->state = NODE_OPEN;
    if (lifecycle->status < 0)
        weir__graph_fail(node, lifecycle, WEIR__FAILURE_ITSELF);
    if (starting) {
        weir__slots_open_gate(node);
        weir__node_check_end(node);
    } else {
        weir__node_close(node);
    }
}

void weir__step_ended(weir__core_slot *slot)
{
    slot->node->pool->num_running_short -= slot->is_short_step;
    if (slot->is_lifecycle)
        lifecycle_ended(slot);
    else
        task_step_ended(slot);
}

/* ---- pending tasks ---------------------------------------------------------------------------------------------- */

void weir__task_completed(weir__core_slot *slot)
{
    slot->completed = true;
    if (!slot->run_returned || slot->cancelling)
        return;
    slot->run_ns += slot->node->graph->now_ns - slot->entered_ns;
    weir__slot_make_ready(slot);
}

void weir__task_overdue(weir__core_slot *slot)
{
    slot->overdue = true;
    if (slot->state == SLOT_PENDING)
        weir__slot_want_cancel(slot);
}

/* The task may have been completed since it was queued, and its slot may already have another task. */
static bool is_to_be_cancelled(const weir__core_slot *slot)
{
    bool unwanted = slot->node->cancelled || slot->overdue;
    return slot->state == SLOT_PENDING && unwanted && !slot->cancel_called;
}

weir__core_slot *weir__cancel_take(weir__graph *graph)
{
    while (graph->to_cancel) {
        weir__core_slot *slot = graph->to_cancel;
        graph->to_cancel = slot->next_to_cancel;
        if (!graph->to_cancel)
            graph->to_cancel_end = &graph->to_cancel;
        slot->cancel_queued = false;
        if (!is_to_be_cancelled(slot))
            continue;
        slot->cancel_called = slot->cancelling = true;
        return slot;
    }
    return NULL;
}

void weir__cancel_returned(weir__core_slot *slot)
{
    slot->cancelling = false;
    if (slot->completed)
        weir__task_completed(slot);
}
