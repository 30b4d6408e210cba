/*
 * The hand-over: every change of a slot's state, of a queue and of a node's life happens here, in one piece under the
 * lock. internal.h has the states and the invariants.
 *
 * The functions call each other upstream: an item taken makes room, room lets a waiting slot put its result, that slot
 * takes its next input, which makes room before it. Each link of the chain is one node further upstream, so the depth
 * is bounded by the length of the pipeline.
 */
#include "internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "queue.h"

static void check_done(weir_node *node);
static void next_input(weir_slot *slot);
static void offer(weir_slot *slot);

/* ---- slots and lists ---------------------------------------------------------------------------------------- */

static void list_append(weir_slot_list *list, weir_slot *slot)
{
    slot->next = NULL;
    if (list->last)
        list->last->next = slot;
    else
        list->first = slot;
    list->last = slot;
}

static weir_slot *list_take_first(weir_slot_list *list)
{
    weir_slot *first = list->first;
    list->first = first->next;
    if (!list->first)
        list->last = NULL;
    return first;
}

static void enter(weir_slot *slot, slot_state state)
{
    int64_t now_ns = slot->node->pipeline->now_ns;
    if (!slot->chore)
        slot->node->time_ns[slot->state] += now_ns - slot->since_ns;
    slot->since_ns = slot->entered_ns = now_ns;
    slot->state = state;
}

static void enter_idle(weir_slot *slot)
{
    weir_node *node = slot->node;
    enter(slot, SLOT_IDLE);
    slot->next = node->idle;
    node->idle = slot;
    node->num_idle++;
}

static weir_slot *take_idle(weir_node *node)
{
    weir_slot *slot = node->idle;
    node->idle = slot->next;
    node->num_idle--;
    return slot;
}

/* ---- what threads may pick ---------------------------------------------------------------------------------- */

/* Before its start hooks have run a stage starts no task; the chore that runs them, and a cancelled stage's slots,
   need not wait. */
static bool may_run(const weir_node *node, const weir_slot *slot)
{
    return slot->chore || node->cancelled || (node->state != NODE_NEW && node->state != NODE_STARTING);
}

static void change_num_ready(weir_pool *pool, int change)
{
    uint32_t ready = atomic_load_explicit(&pool->num_ready, memory_order_relaxed);
    atomic_store_explicit(&pool->num_ready, ready + (uint32_t)change, memory_order_relaxed);
}

static uint32_t ready_bit(const weir_node *node)
{
    return node->pipeline->num_nodes - 1 - node->index;
}

static void append_ready(weir_node *node, weir_slot *slot)
{
    uint32_t bit = ready_bit(node);
    list_append(&node->ready, slot);
    node->pool->ready_nodes[bit / 64] |= UINT64_C(1) << (bit % 64);
    change_num_ready(node->pool, 1);
}

static weir_slot *take_ready(weir_node *node)
{
    uint32_t bit = ready_bit(node);
    weir_slot *slot = list_take_first(&node->ready);
    if (!node->ready.first)
        node->pool->ready_nodes[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
    change_num_ready(node->pool, -1);
    return slot;
}

static void make_ready(weir_slot *slot)
{
    weir_node *node = slot->node;
    enter(slot, SLOT_READY);
    if (may_run(node, slot))
        append_ready(node, slot);
    else
        list_append(&node->gated, slot);
}

/* Lets the slots that have waited for the start hooks run. */
static void open_gate(weir_node *node)
{
    while (node->gated.first)
        append_ready(node, list_take_first(&node->gated));
}

static weir_node *nearest_ready_node(weir_pool *pool)
{
    for (uint32_t word = 0; word < pool->num_words; word++)
        if (pool->ready_nodes[word]) {
            uint32_t bit = word * 64 + (uint32_t)__builtin_ctzll(pool->ready_nodes[word]);
            return pool->pipeline->nodes[pool->pipeline->num_nodes - 1 - bit];
        }
    return NULL;
}

weir_slot *flow_pick_locked(weir_pool *pool)
{
    if (atomic_load_explicit(&pool->num_ready, memory_order_relaxed) == 0)
        return NULL;

    weir_node *node = nearest_ready_node(pool);
    weir_slot *slot = take_ready(node);
    enter(slot, SLOT_RUNNING);
    slot->given_up = node->cancelled && node->state != NODE_ENDING;
    if (!slot->begun && !slot->given_up) {
        slot->start_ns = pool->pipeline->now_ns;
        slot->run_ns = 0;
        atomic_store_explicit(&slot->should_stop, false, memory_order_relaxed);
        if (!node->in)
            slot->in.seq = pool->pipeline->next_seq;
    }
    return slot;
}

/* ---- putting and taking ------------------------------------------------------------------------------------- */

static void give(weir_slot *slot, const weir_item *item)
{
    weir_node *node = slot->node;
    node->account.taken++;
    if (node->order == WEIR_ORDER_INPUT) {
        slot->turn_before = node->turn_last;
        slot->turn_after = NULL;
        *(node->turn_last ? &node->turn_last->turn_after : &node->turn_first) = slot;
        node->turn_last = slot;
    }
    if (node->op) {
        slot->in = *item;
        slot->has_in = true;
        slot->begun = slot->more = slot->completed = slot->run_returned = false;
        make_ready(slot);
    } else {
        slot->out = *item;
        slot->has_out = true;
        offer(slot);
    }
}

static bool is_its_turn(const weir_slot *slot)
{
    return slot->node->order != WEIR_ORDER_INPUT || slot->node->in == NULL || slot->node->turn_first == slot;
}

static void leave_turn(weir_slot *slot)
{
    weir_node *node = slot->node;
    bool was_first = node->turn_first == slot;
    *(slot->turn_before ? &slot->turn_before->turn_after : &node->turn_first) = slot->turn_after;
    *(slot->turn_after ? &slot->turn_after->turn_before : &node->turn_last) = slot->turn_before;
    if (was_first && node->turn_first && node->turn_first->state == SLOT_HOLDING && node->turn_first->has_out)
        offer(node->turn_first);
}

/* The slot's result goes to a slot that waits for it, or into the queue, which has room. */
static void put(weir_slot *slot)
{
    weir_queue *queue = &slot->node->out;
    weir_pipeline *pipeline = slot->node->pipeline;
    weir_node *consumer = queue->consumer;

    queue_count_put_locked(queue, slot->state == SLOT_HOLDING ? pipeline->now_ns - slot->entered_ns : 0);
    slot->node->account.handed_on++;
    slot->has_out = false;
    if (consumer && consumer->idle && queue->depth == 0 && !consumer->cancelled) {
        weir_slot *taker = take_idle(consumer);
        queue_count_get_locked(queue, pipeline->now_ns - taker->entered_ns);
        give(taker, &slot->out);
    } else {
        queue_push_locked(queue, &slot->out, pipeline->now_ns);
        if (!consumer)
            atomic_store_explicit(&pipeline->is_consumable, true, memory_order_relaxed);
    }
}

/* What follows when a result has been put: the rest of the same input, or the next one. */
static void go_on(weir_slot *slot)
{
    if (slot->more)
        make_ready(slot);
    else
        next_input(slot);
}

static void offer(weir_slot *slot)
{
    weir_queue *queue = &slot->node->out;
    bool its_turn = is_its_turn(slot);
    if (its_turn && queue_has_room_locked(queue) && !queue->holders.first) {
        put(slot);
        go_on(slot);
        return;
    }
    if (slot->state != SLOT_HOLDING)
        enter(slot, SLOT_HOLDING);
    if (its_turn)
        list_append(&queue->holders, slot);
}

/* The queue may have room: lets those who wait for it put. */
static void let_in(weir_queue *queue)
{
    while (queue->holders.first && queue_has_room_locked(queue)) {
        weir_slot *slot = list_take_first(&queue->holders);
        put(slot);
        go_on(slot);
    }
}

/* The slot has nothing to do any more: it takes its next input, if there is one. */
static void next_input(weir_slot *slot)
{
    weir_node *node = slot->node;
    weir_queue *in = node->in;
    if (in && node->order == WEIR_ORDER_INPUT)
        leave_turn(slot);

    if (node->cancelled || (in ? in->depth == 0 : node->exhausted)) {
        enter_idle(slot);
        check_done(node);
    } else if (in) {
        weir_item item;
        queue_pop_locked(in, &item, node->pipeline->now_ns);
        queue_count_get_locked(in, 0);
        give(slot, &item);
        let_in(in);
    } else {
        slot->begun = slot->more = slot->completed = slot->run_returned = false;
        make_ready(slot);
    }
}

void flow_deliver_locked(weir_pipeline *pipeline, weir_item *item, int64_t waited_ns)
{
    weir_queue *queue = pipeline->sink;
    queue_pop_locked(queue, item, pipeline->now_ns);
    queue_count_get_locked(queue, waited_ns);
    let_in(queue);
    if (queue->depth == 0 && !queue->closed && !pipeline->stopped)
        atomic_store_explicit(&pipeline->is_consumable, false, memory_order_relaxed);
    flow_check_over_locked(pipeline);
}

/* ---- life and end of a node --------------------------------------------------------------------------------- */

void flow_check_over_locked(weir_pipeline *pipeline)
{
    if (pipeline->over || pipeline->live_nodes || (pipeline->sink->depth && !pipeline->stopped))
        return;
    pipeline->over = true;
    pipeline->wake_statistics = true;
}

static void finish(weir_node *node)
{
    weir_pipeline *pipeline = node->pipeline;
    node->state = NODE_DONE;
    node->out.closed = true;
    pipeline->live_nodes--;
    if (node->out.consumer)
        check_done(node->out.consumer);
    else
        atomic_store_explicit(&pipeline->is_consumable, true, memory_order_relaxed);
    flow_check_over_locked(pipeline);
}

/* If nothing can come in any more and nothing is left inside, the node ends. */
static void check_done(weir_node *node)
{
    bool no_more = node->cancelled || (node->in ? node->in->closed && node->in->depth == 0 : node->exhausted);
    if (!no_more || node->num_idle < node->num_slots)
        return;
    if (node->state == NODE_OPEN && node->stage_hooks_begun) {
        node->state = NODE_ENDING;
        make_ready(&node->chore);
    } else if (node->state == NODE_OPEN) {
        finish(node);
    }
}

static void chore_ended(weir_node *node)
{
    weir_slot *chore = &node->chore;
    bool failed = chore->status < 0;
    enter(chore, SLOT_IDLE);
    if (node->state == NODE_STARTING) {
        node->state = NODE_OPEN;
        if (failed)
            flow_fail_locked(node, &chore->error);
        open_gate(node);
        check_done(node);
    } else {
        if (failed)
            flow_fail_locked(node, &chore->error);
        finish(node);
    }
}

void flow_start_locked(weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        node->chore.since_ns = pipeline->now_ns;
        node->out.level_since_ns = pipeline->now_ns;
        for (uint32_t j = 0; j < node->num_slots; j++) {
            node->slots[j]->since_ns = node->slots[j]->entered_ns = pipeline->now_ns;
            enter_idle(node->slots[j]);
        }
        if (node->num_stage_hooks) {
            node->state = NODE_STARTING;
            make_ready(&node->chore);
        } else {
            node->state = NODE_OPEN;
        }
    }
    next_input(take_idle(pipeline->nodes[0]));
}

/* ---- the end of a step -------------------------------------------------------------------------------------- */

static void count_success(weir_slot *slot)
{
    weir_node *node = slot->node;
    node->num_tasks++;
    node->total_tasks++;
    node->success_ns += slot->run_ns;
    if (slot->run_ns > node->max_ns)
        node->max_ns = slot->run_ns;
    if (node->in)
        weir_histogram_record(node->run_times, slot->run_ns);
}

static bool too_many_failures(const weir_node *node)
{
    const weir_max_failures *max = &node->max_failures;
    switch (max->kind) {
    case WEIR_FAILURES_COUNT: return max->count >= 0 && node->total_failures > (uint64_t)max->count;
    case WEIR_FAILURES_RATE:
        return node->total_tasks >= 100 && node->total_failures * max->den > node->total_tasks * max->num;
    default: return false;
    }
}

static void fail_over_budget(weir_node *node, const weir_error *last)
{
    weir_error error = *last;
    snprintf(error.message, sizeof error.message,
             "%llu of %llu tasks failed, more than max_failures allows; the last one: %.400s",
             (unsigned long long)node->total_failures, (unsigned long long)node->total_tasks, last->message);
    flow_fail_locked(node, &error);
}

static void count_failure(weir_slot *slot)
{
    weir_node *node = slot->node;
    node->num_tasks++;
    node->total_tasks++;
    node->num_failures++;
    node->total_failures++;
    node->failed_ns += slot->run_ns;
    node->account.failed += node->in ? 1 : 0;
    if (!node->first_error.status)
        node->first_error = slot->error;
    if (!node->in)
        flow_fail_locked(node, &slot->error);
    else if (too_many_failures(node))
        fail_over_budget(node, &slot->error);
}

/* The task is over and has nothing to hand on. */
static void drop(weir_slot *slot)
{
    slot->node->account.dropped += (uint64_t)slot->has_in + (uint64_t)slot->has_out;
    slot->has_in = slot->has_out = slot->more = false;
    free(slot->report);
    slot->report = NULL;
    next_input(slot);
}

static void step_failed(weir_slot *slot)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    weir_report *report = slot->report;
    slot->report = NULL;
    slot->has_in = slot->more = false;
    count_failure(slot);
    if (report) {
        report->failure.run_ns = slot->run_ns;
        report_append_locked(pipeline, report);
    }
    if (pipeline->num_reports < MAX_REPORTS) {
        next_input(slot);
    } else {
        slot->reporting = true;
        enter(slot, SLOT_HOLDING);
        list_append(&pipeline->report_waiters, slot);
    }
}

void flow_reports_taken_locked(weir_pipeline *pipeline)
{
    while (pipeline->report_waiters.first && pipeline->num_reports < MAX_REPORTS) {
        weir_slot *slot = list_take_first(&pipeline->report_waiters);
        slot->reporting = false;
        next_input(slot);
    }
}

static void step_made_result(weir_slot *slot)
{
    weir_node *node = slot->node;
    slot->more = slot->status == WEIR_MORE;
    slot->has_out = true;
    if (!node->in) {
        node->account.taken++;
        node->pipeline->next_seq++;
    }
    if (slot->more) {
        node->account.created++;
    } else {
        slot->has_in = false;
        count_success(slot);
    }
    if (node->cancelled && !node->keeps_results)
        make_ready(slot); /* to be released */
    else
        offer(slot);
}

static void step_pending(weir_slot *slot)
{
    enter(slot, SLOT_PENDING);
    slot->run_returned = true;
    if (slot->completed)
        make_ready(slot);
    else if (slot->node->cancelled)
        slot->node->pipeline->wake_statistics = true; /* which calls op->cancel */
}

void flow_completed_locked(weir_slot *slot)
{
    slot->completed = true;
    if (!slot->run_returned)
        return;
    slot->run_ns += slot->node->pipeline->now_ns - slot->entered_ns;
    make_ready(slot);
}

static void task_step_ended(weir_slot *slot)
{
    weir_node *node = slot->node;
    int64_t step_ns = node->pipeline->now_ns - slot->entered_ns;
    slot->run_ns += step_ns;
    node->typical_ns += (step_ns - node->typical_ns) / 8;

    if (slot->given_up || (slot->status < 0 && node->cancelled)) {
        drop(slot);
        return;
    }
    switch (slot->status) {
    case WEIR_OK:
    case WEIR_MORE: step_made_result(slot); break;
    case WEIR_PENDING: step_pending(slot); break;
    case WEIR_SKIP:
        count_success(slot);
        node->num_skipped++;
        node->account.skipped += slot->has_in;
        slot->has_in = slot->more = false;
        next_input(slot);
        break;
    case WEIR_EOF:
        node->exhausted = true;
        next_input(slot);
        break;
    default: step_failed(slot); break;
    }
}

void flow_step_ended_locked(weir_slot *slot)
{
    if (slot->chore)
        chore_ended(slot->node);
    else
        task_step_ended(slot);
}

/* ---- stop and failure --------------------------------------------------------------------------------------- */

static void cancel_slot(weir_slot *slot, bool keep_result)
{
    switch (slot->state) {
    case SLOT_PENDING:
        slot->node->pipeline->wake_statistics = true; /* which calls op->cancel */
        /* fall through */
    case SLOT_RUNNING: atomic_store_explicit(&slot->should_stop, true, memory_order_relaxed); break;
    case SLOT_HOLDING:
        if (keep_result || slot->reporting)
            break;
        if (slot->node->op)
            make_ready(slot); /* to be released */
        else
            enter_idle(slot); /* has_out: flow_take_leftover_locked() finds it */
        break;
    default: break;
    }
}

static void cancel(weir_node *node, bool keep_results)
{
    if (node->state == NODE_DONE || (node->cancelled && (keep_results || !node->keeps_results)))
        return;
    node->cancelled = true;
    node->keeps_results = keep_results;
    if (!keep_results)
        node->out.holders = (weir_slot_list){ 0 };
    for (uint32_t i = 0; i < node->num_slots; i++)
        cancel_slot(node->slots[i], keep_results);
    open_gate(node);
    check_done(node);
}

void flow_fail_locked(weir_node *node, const weir_error *error)
{
    weir_pipeline *pipeline = node->pipeline;
    if (!pipeline->failed && !pipeline->stopped) {
        pipeline->failed = true;
        pipeline->error = *error;
        weir_report *report = report_event("failed", "pipeline", error->message);
        if (report)
            report_append_locked(pipeline, report);
    }
    cancel(node, true);
    for (weir_node *before = node; before->in;) {
        before = before->in->producer;
        cancel(before, false);
    }
}

void flow_stop_locked(weir_pipeline *pipeline)
{
    if (pipeline->stopped || pipeline->over)
        return;
    pipeline->stopped = true;
    weir_report *report = report_event("stop", "pipeline", NULL);
    if (report)
        report_append_locked(pipeline, report);
    atomic_store_explicit(&pipeline->is_consumable, true, memory_order_relaxed);
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        cancel(pipeline->nodes[i], false);
    flow_check_over_locked(pipeline);
}

weir_slot *flow_take_uncancelled_locked(weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        if (!node->cancelled || !node->op || !node->op->cancel)
            continue;
        for (uint32_t j = 0; j < node->num_slots; j++) {
            weir_slot *slot = node->slots[j];
            if (slot->state != SLOT_PENDING || slot->cancel_called)
                continue;
            slot->cancel_called = true;
            return slot;
        }
    }
    return NULL;
}

bool flow_take_leftover_locked(weir_pipeline *pipeline, weir_item *item)
{
    assert(pipeline->over);
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        if (node->out.depth) {
            queue_pop_locked(&node->out, item, pipeline->now_ns);
            node->out.total_dropped++;
            return true;
        }
        if (!node->op && node->slots[0]->has_out) {
            *item = node->slots[0]->out;
            node->slots[0]->has_out = false;
            node->account.dropped++;
            return true;
        }
    }
    return false;
}

void flow_settle_locked(weir_pipeline *pipeline)
{
    int64_t now_ns = pipeline->now_ns;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        queue_settle_locked(&node->out, now_ns);
        for (uint32_t j = 0; j < node->num_slots; j++) {
            weir_slot *slot = node->slots[j];
            node->time_ns[slot->state] += now_ns - slot->since_ns;
            slot->since_ns = now_ns;
        }
    }
}
