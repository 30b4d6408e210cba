/*
 * The hand-off: how results are put into queues, inputs taken out, and the ends of epochs and streams passed on.
 * state.h describes the states and the invariants. All functions need the lock.
 *
 * The functions call each other upstream: taking an item makes room, room lets a blocked slot put its result, that
 * slot takes its next input, which makes room further upstream. Each step of this chain is one node further upstream;
 * ends of epochs and streams travel downstream in the same way. So the depth of the recursion is bounded by the
 * length of the pipeline.
 */
#include "handoff.h"

#include "cancel.h"
#include "consumer_phase.h"
#include "label.h"
#include "merge.h"
#include "queue.h"
#include "slots.h"

void weir_epoch_end_release(void *data, void *self)
{
    (void)data;
    (void)self;
}

/* ---- putting ------------------------------------------------------------------------------------------------ */

static void join_turns(weir_slot *slot)
{
    weir_node *node = slot->node;
    slot->turn_before = node->turn_last;
    slot->turn_after = NULL;
    *(node->turn_last ? &node->turn_last->turn_after : &node->turn_first) = slot;
    node->turn_last = slot;
    slot->has_turn = true;
}

/* The first slot in the order may put; when it has put, the next one may. A loop, because any number may wait. */
static void move_turns(weir_node *node)
{
    weir_slot *offered = NULL;
    node->moving_turns = true;
    while (node->turn_first && node->turn_first != offered && node->turn_first->state == SLOT_TURN) {
        offered = node->turn_first;
        weir_handoff_offer_locked(offered);
    }
    node->moving_turns = false;
}

static void leave_turns(weir_slot *slot)
{
    weir_node *node = slot->node;
    bool was_first = node->turn_first == slot;
    *(slot->turn_before ? &slot->turn_before->turn_after : &node->turn_first) = slot->turn_after;
    *(slot->turn_after ? &slot->turn_after->turn_before : &node->turn_last) = slot->turn_before;
    slot->has_turn = false;
    if (was_first && !node->moving_turns)
        move_turns(node);
}

static bool is_its_turn(const weir_slot *slot)
{
    return !slot->has_turn || slot->node->turn_first == slot;
}

static void reset_task(weir_slot *slot)
{
    slot->begun = slot->more = slot->run_returned = false;
    atomic_store_explicit(&slot->completed, false, memory_order_relaxed);
}

static void give(weir_slot *slot, const weir_item *item)
{
    weir_node *node = slot->node;
    node->account.taken++;
    slot->order_number = item->order_number;
    slot->trace_item = weir_trace_item(item->source, item->epoch, item->seq);
    if (!node->op) {
        weir_slot_enter_locked(slot, SLOT_RUNNING);
        slot->out = *item;
        slot->has_out = true;
        weir_handoff_offer_locked(slot);
        return;
    }
    if (node->order == WEIR_ORDER_INPUT)
        join_turns(slot);
    slot->in = *item;
    if (node->numbers_inputs)
        slot->in.order_number = slot->order_number = node->next_order_number++;
    slot->label = weir_label_hold(item->label_owner);
    slot->has_in = true;
    reset_task(slot);
    weir_slot_make_ready_locked(slot);
}

static void notify_consumer(weir_pipeline *pipeline)
{
    if (pipeline->sink->depth <= 1)
        pipeline->consumable_ns = pipeline->now_ns;
    set_consumable_locked(pipeline, true);
}

static void put_epoch_end(weir_slot *slot, weir_queue *queue)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    queue_push_locked(queue, &slot->out, pipeline->next_arrival++, pipeline->now_ns);
    item_forget(&slot->out);
    if (queue->consumer)
        weir_handoff_resume_locked(queue->consumer); /* a merge may have waited for this input */
    else
        notify_consumer(pipeline);
}

static void put_item(weir_slot *slot, weir_queue *queue)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    weir_node *consumer = queue->consumer;
    queue_count_put_locked(queue, slot->state == SLOT_BLOCKED ? pipeline->now_ns - slot->entered_ns : 0);
    slot->node->account.handed_on++;
    slot->has_out = false;
    if (consumer && weir_merge_takes_directly_locked(consumer, queue)) {
        weir_slot *taker = weir_slot_take_idle_locked(consumer);
        queue_count_get_locked(queue, pipeline->now_ns - taker->entered_ns);
        trace_queue_locked(queue, WEIR_TRACE_PASS, &slot->out, 0);
        weir_merge_taken_locked(consumer, queue);
        give(taker, &slot->out);
        item_forget(&slot->out);
    } else {
        queue_push_locked(queue, &slot->out, pipeline->next_arrival++, pipeline->now_ns);
        item_forget(&slot->out);
        if (!consumer)
            notify_consumer(pipeline);
        else if (consumer->num_ins > 1 && consumer->order == WEIR_ORDER_INPUT)
            weir_handoff_resume_locked(consumer);
    }
}

/* Moves the result of the slot to a slot that waits for it, or into the queue, which has room. */
static void put(weir_slot *slot)
{
    weir_queue *queue = &slot->node->outs[slot->out_index];
    if (is_epoch_end(&slot->out))
        put_epoch_end(slot, queue);
    else
        put_item(slot, queue);
}

static void epoch_end_was_put(weir_slot *lifecycle)
{
    weir_node *node = lifecycle->node;
    if (++lifecycle->out_index < node->num_outs) {
        lifecycle->out = epoch_end();
        weir_handoff_offer_locked(lifecycle);
        return;
    }
    weir_slot_enter_locked(lifecycle, SLOT_IDLE);
    node->passing_epoch = false;
    weir_handoff_resume_locked(node);
}

/* Continues after a result has been put: with the rest of the same input, or the next input. */
static void go_on(weir_slot *slot)
{
    if (slot->is_lifecycle)
        epoch_end_was_put(slot);
    else if (slot->more)
        weir_slot_make_ready_locked(slot);
    else
        weir_handoff_next_input_locked(slot);
}

void weir_handoff_offer_locked(weir_slot *slot)
{
    weir_queue *queue = &slot->node->outs[slot->out_index];
    bool its_turn = is_its_turn(slot);
    if (its_turn && queue_has_room_locked(queue) && !queue->blocked.first) {
        put(slot);
        go_on(slot);
        return;
    }
    weir_slot_enter_locked(slot, its_turn ? SLOT_BLOCKED : SLOT_TURN);
    if (its_turn)
        weir_list_append(&queue->blocked, slot);
}

/* ---- taking ------------------------------------------------------------------------------------------------- */

/* The queue may have room: lets blocked slots put their results. */
static void let_in(weir_queue *queue)
{
    while (queue->blocked.first && queue_has_room_locked(queue)) {
        weir_slot *slot = weir_list_take_first(&queue->blocked);
        put(slot);
        go_on(slot);
    }
}

static void take(weir_slot *slot, weir_queue *in, int64_t waited_ns)
{
    weir_item item;
    queue_pop_locked(in, &item, slot->node->pipeline->now_ns, false);
    queue_count_get_locked(in, waited_ns);
    weir_merge_taken_locked(slot->node, in);
    give(slot, &item);
    let_in(in);
}

static void retire(weir_slot *slot)
{
    weir_slot_enter_locked(slot, SLOT_RETIRED);
    slot->node->num_slots--;
    weir_handoff_check_end_locked(slot->node);
}

static void source_next(weir_slot *slot)
{
    if (slot->node->exhausted || slot->node->cancelled) {
        weir_slot_enter_idle_locked(slot);
        weir_handoff_check_end_locked(slot->node);
    } else {
        reset_task(slot);
        weir_slot_make_ready_locked(slot);
    }
}

/* For the slot of a node without an operation: passes on all available items while there is room. A loop, because
   there may be many. */
static void pass_items(weir_slot *slot)
{
    weir_node *node = slot->node;
    weir_queue *in;
    if (node->passing_items)
        return; /* the loop goes on */
    node->passing_items = true;
    while (!slot->has_out && (in = weir_merge_choose_locked(node)))
        take(slot, in, 0);
    node->passing_items = false;
    if (slot->has_out)
        return;
    weir_slot_enter_idle_locked(slot);
    weir_handoff_check_end_locked(node);
}

void weir_handoff_next_input_locked(weir_slot *slot)
{
    weir_node *node = slot->node;
    if (!node->op) {
        pass_items(slot);
        return;
    }
    if (slot->has_turn)
        leave_turns(slot);
    if (node->num_ins == 0) {
        source_next(slot);
        return;
    }
    if (node->num_slots > node->num_wanted) {
        retire(slot);
        return;
    }
    weir_queue *in = weir_merge_choose_locked(node);
    if (in) {
        take(slot, in, 0);
    } else {
        weir_slot_enter_idle_locked(slot);
        weir_handoff_check_end_locked(node);
    }
}

void weir_handoff_resume_locked(weir_node *node)
{
    weir_queue *in;
    while (node->num_ins && node->idle && (in = weir_merge_choose_locked(node))) {
        weir_slot *slot = weir_slot_take_idle_locked(node);
        take(slot, in, node->pipeline->now_ns - slot->entered_ns);
    }
    weir_handoff_check_end_locked(node);
}

void weir_handoff_item_gone_locked(weir_node *node)
{
    for (weir_node *join = node->ordered_join; join; join = join->ordered_join)
        weir_handoff_resume_locked(join);
}

int weir_handoff_deliver_locked(weir_pipeline *pipeline, weir_item *item, int64_t waited_ns)
{
    weir_queue *queue = pipeline->sink;
    int status = WEIR_OK;
    queue_pop_locked(queue, item, pipeline->now_ns, false);
    if (is_epoch_end(item)) {
        *item = (weir_item){ 0 };
        status = WEIR_EPOCH;
    } else {
        queue_count_get_locked(queue, waited_ns);
    }
    let_in(queue);
    if (queue->depth == 0 && !queue->closed && !pipeline->stopped)
        set_consumable_locked(pipeline, false);
    weir_handoff_check_over_locked(pipeline);
    return status;
}

/* ---- ends of epochs and of streams -------------------------------------------------------------------------- */

typedef enum epoch_or_end { NEITHER, EPOCH_REACHED, END_REACHED } epoch_or_end;

static epoch_or_end find_epoch_or_end(weir_node *node)
{
    if (node->cancelled || weir_merge_is_over_locked(node))
        return END_REACHED;
    if (node->num_ins == 0)
        return node->exhausted ? END_REACHED : NEITHER;

    epoch_or_end found = END_REACHED;
    for (uint32_t i = 0; i < node->num_ins; i++) {
        const weir_queue *in = node->ins[i];
        if (in->depth == 0 && !in->closed)
            return NEITHER;
        if (in->depth > 0 && !is_epoch_end(&in->entries[in->head].item))
            return NEITHER;
        if (in->depth > 0)
            found = EPOCH_REACHED;
    }
    return found;
}

static void unlink_idle(weir_node *node, weir_slot *slot)
{
    weir_slot **link = &node->idle;
    while (*link != slot)
        link = &(*link)->next;
    *link = slot->next;
    node->num_idle--;
}

/* Flushes one slot after the other, so that the results come in the order of their numbers. True = a flush is in
   progress. */
static bool start_flush(weir_node *node)
{
    weir_slot *first = NULL;
    if (!node->op || !node->op->flush || node->cancelled)
        return false;
    for (uint32_t i = 0; i < node->num_made; i++) {
        weir_slot *slot = node->slots[i];
        if (slot->needs_flush && (!first || slot->kept.seq < first->kept.seq))
            first = slot;
    }
    if (!first)
        return false;
    unlink_idle(node, first);
    first->flushing = true;
    first->trace_item = weir_trace_item(first->kept.source, first->kept.epoch, first->kept.seq);
    reset_task(first);
    weir_slot_make_ready_locked(first);
    return true;
}

static void pass_epoch(weir_node *node)
{
    node->passing_epoch = true;
    weir_merge_new_epoch_locked(node);
    for (uint32_t i = 0; i < node->num_ins; i++) {
        if (node->ins[i]->depth) {
            weir_item end;
            queue_pop_locked(node->ins[i], &end, node->pipeline->now_ns, false);
        }
    }
    node->lifecycle.out = epoch_end();
    node->lifecycle.out_index = 0;
    weir_handoff_offer_locked(&node->lifecycle);
    for (uint32_t i = 0; i < node->num_ins; i++)
        let_in(node->ins[i]);
}

static void finish(weir_node *node)
{
    weir_pipeline *pipeline = node->pipeline;
    node->state = NODE_DONE;
    pipeline->live_nodes--;
    if (node->num_ins == 0 && --pipeline->live_sources == 0)
        weir_phase_sources_ended_locked(pipeline);
    for (uint32_t i = 0; i < node->num_outs; i++) {
        weir_queue *queue = &node->outs[i];
        queue->closed = true;
        if (!queue->consumer)
            notify_consumer(pipeline);
        else
            weir_handoff_resume_locked(queue->consumer); /* a merge may have waited for this input */
    }
    if (weir_merge_is_over_locked(node))
        weir_cancel_before_locked(node);
    weir_handoff_check_over_locked(pipeline);
}

static void end_node(weir_node *node)
{
    if (node->stage_hooks_begun) {
        node->state = NODE_ENDING;
        weir_slot_make_ready_locked(&node->lifecycle);
    } else {
        finish(node);
    }
}

/* True = the node has passed it on, and may have reached the next end. */
static bool pass_epoch_or_end(weir_node *node)
{
    if (node->state != NODE_OPEN || node->num_idle < node->num_slots || node->passing_epoch)
        return false;
    epoch_or_end reached = find_epoch_or_end(node);
    if (reached == NEITHER || start_flush(node))
        return false;
    if (reached == EPOCH_REACHED)
        pass_epoch(node);
    else
        end_node(node);
    return true;
}

/* A loop, because any number of epochs without an item may wait. */
void weir_handoff_check_end_locked(weir_node *node)
{
    if (node->passing_epoch_or_end)
        return; /* the loop goes on */
    node->passing_epoch_or_end = true;
    while (pass_epoch_or_end(node))
        ;
    node->passing_epoch_or_end = false;
}

void weir_handoff_check_over_locked(weir_pipeline *pipeline)
{
    if (pipeline->over || pipeline->live_nodes || (pipeline->sink->depth && !pipeline->stopped))
        return;
    pipeline->over = true;
    pipeline->wake_service = true;
}

void weir_handoff_lifecycle_ended_locked(weir_node *node)
{
    weir_slot *lifecycle = &node->lifecycle;
    bool starting = node->state == NODE_STARTING;
    weir_slot_enter_locked(lifecycle, SLOT_IDLE);
    if (starting)
        node->state = NODE_OPEN;
    if (lifecycle->status < 0)
        weir_cancel_by_failure_locked(node, &lifecycle->error);
    if (starting) {
        weir_slots_open_gate_locked(node);
        weir_handoff_check_end_locked(node);
    } else {
        finish(node);
    }
}

void weir_handoff_prepare(weir_pipeline *pipeline, int64_t now_ns)
{
    pipeline->now_ns = now_ns;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        weir_merge_new_epoch_locked(node);
        for (uint32_t j = 0; j < node->num_outs; j++)
            node->outs[j].level_since_ns = now_ns;
        for (uint32_t j = 0; j < node->num_made; j++) {
            node->slots[j]->since_ns = now_ns;
            weir_slot_enter_idle_locked(node->slots[j]);
        }
    }
}

void weir_handoff_start_locked(weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        node->state = node->num_stage_hooks ? NODE_STARTING : NODE_OPEN;
        if (node->num_stage_hooks)
            weir_slot_make_ready_locked(&node->lifecycle);
    }
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        if (pipeline->nodes[i]->num_ins == 0)
            weir_handoff_next_input_locked(weir_slot_take_idle_locked(pipeline->nodes[i]));
}
