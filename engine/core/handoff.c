/*
 * The hand-off: how results are put into queues, and inputs taken out. Here the ends of epochs and streams are passed
 * on, too, and nodes cancelled. core.h describes the states and the invariants.
 *
 * The functions call each other upstream: taking an item makes room, room lets a blocked slot put its result, that
 * slot takes its next input, which makes room further upstream. Each step of this chain is one node further upstream;
 * ends of epochs and streams travel downstream in the same way. So the depth of the recursion is bounded by the
 * length of the pipeline.
 *
 * An item that a route sets aside: set_result_aside() takes it from its slot, and put_from_aside() puts it into its
 * queue. Only let_waiting_put() puts what has waited. It keeps the order of each branch: first what is set aside,
 * then the slots that are BLOCKED.
 */
#include "engine/core/handoff.h"

#include "engine/base/label.h"
#include "engine/core/merge.h"
#include "engine/core/queue.h"
#include "engine/core/slots.h"

/* ---- turns -------------------------------------------------------------------------------------------------- */

static void join_turns(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    slot->turn_before = node->turn_last;
    slot->turn_after = NULL;
    *(node->turn_last ? &node->turn_last->turn_after : &node->turn_first) = slot;
    node->turn_last = slot;
    slot->has_turn = true;
}

/* The first slot in the order may put; when it has put, the next one may. A loop, because any number may wait. */
static void move_turns(weir__core_node *node)
{
    weir__core_slot *offered = NULL;
    node->moving_turns = true;
    while (node->turn_first && node->turn_first != offered && node->turn_first->state == SLOT_TURN) {
        offered = node->turn_first;
        weir__result_offer(offered);
    }
    node->moving_turns = false;
}

static void leave_turns(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    bool was_first = node->turn_first == slot;
    *(slot->turn_before ? &slot->turn_before->turn_after : &node->turn_first) = slot->turn_after;
    *(slot->turn_after ? &slot->turn_after->turn_before : &node->turn_last) = slot->turn_before;
    slot->has_turn = false;
    if (was_first && !node->moving_turns)
        move_turns(node);
}

/* Call this when the result has been passed on. The next one has no made_ns yet. */
static void forget_result(weir__core_slot *slot)
{
    item_forget(&slot->out);
    slot->out.made_ns = 0;
}

/* ---- setting aside ------------------------------------------------------------------------------------------ */

/* Items, or an end of an epoch, wait for room in the queue. They may do so although it has room: pass_epoch() takes the ends out
   of all inputs before it lets any producer put. */
static bool has_waiting(const weir__queue *queue)
{
    return queue->blocked.first || queue->num_aside;
}

static bool drops_results(const weir__core_node *node)
{
    return node->cancelled && !node->keeps_results;
}

/* Items that are still to be put. */
static bool has_aside(const weir__core_node *node)
{
    return node->num_aside && !drops_results(node);
}

/* The slot has a result for the queue, and no other slot waits for it. */
static bool may_set_aside(const weir__core_slot *slot, const weir__queue *queue)
{
    const weir__core_node *node = slot->node;
    return node->num_aside < node->look_ahead && !slot->is_lifecycle && !drops_results(node) &&
           queue->bytes + queue->aside_bytes < queue->capacity_bytes;
}

static void set_result_aside(weir__core_slot *slot, weir__queue *queue)
{
    weir__core_node *node = slot->node;
    weir__queued_item *entry = queue_entry_at(queue, queue->head + queue->depth + queue->num_aside);
    *entry = (weir__queued_item){ .item = slot->out };
    entry->since_ns = slot->state == SLOT_BLOCKED ? slot->entered_ns : node->graph->now_ns;
    queue->num_aside++;
    queue->aside_bytes += queue_bytes_of(&slot->out);
    node->num_aside++;
    slot->has_out = false;
    forget_result(slot);
}

/* ---- putting ------------------------------------------------------------------------------------------------ */

static bool is_its_turn(const weir__core_slot *slot)
{
    return !slot->has_turn || slot->node->turn_first == slot;
}

static void reset_task(weir__core_slot *slot)
{
    slot->begun = slot->more = slot->run_returned = slot->completed = false;
}

static void give_item(weir__core_slot *slot, const weir_item *item)
{
    weir__core_node *node = slot->node;
    node->account.taken++;
    slot->order_number = item->order_number;
    slot->trace_item = weir_trace_item(item->source, item->epoch, item->seq);
    if (!node->has_tasks) {
        weir__slot_enter(slot, SLOT_RUNNING);
        slot->out = *item;
        slot->has_out = true;
        weir__result_offer(slot);
        return;
    }
    if (node->place != WITHIN_EPOCH)
        weir__node_enter_epoch(node, WITHIN_EPOCH, slot);
    if (node->order == WEIR_ORDER_INPUT)
        join_turns(slot);
    slot->in = *item;
    if (node->numbers_inputs)
        slot->in.order_number = slot->order_number = node->next_order_number++;
    slot->has_in = true;
    slot->num_replaced = 0;
    reset_task(slot);
    weir__slot_make_ready(slot);
}

void weir__input_replaced(weir__core_slot *slot)
{
    slot->node->account.created++;
    slot->num_replaced++;
    reset_task(slot);
    weir__slot_make_ready(slot);
}

static void notify_consumer(weir__graph *graph)
{
    if (graph->sink->depth <= 1)
        graph->consumable_ns = graph->now_ns;
    graph->consumable = true;
}

static void put_epoch_end(weir__core_slot *slot, weir__queue *queue)
{
    weir__graph *graph = slot->node->graph;
    queue_push(queue, &slot->out, graph->next_arrival++, graph->now_ns);
    forget_result(slot);
    if (queue->consumer)
        weir__node_resume(queue->consumer); /* a merge may have waited for this input */
    else
        notify_consumer(graph);
}

static void put_item(weir__queue *queue, const weir_item *item, int64_t waited_ns);

/* The slot of this node, which has no tasks, need not hold the item. */
static bool passes_straight(const weir__core_node *node)
{
    return !node->has_tasks && !node->graph->recorder && queue_has_room(node->outs) && !node->outs->blocked.first;
}

static void pass_straight(weir__core_node *node, const weir_item *item)
{
    node->account.taken++;
    put_item(node->outs, item, 0);
}

/* The item has passed the queue, in whose entry behind the last one it may have been put already. */
static void give_directly(weir__queue *queue, const weir_item *item)
{
    weir__core_node *consumer = queue->consumer;
    queue_count_get(queue, queue->producer->graph->now_ns - consumer->idle->entered_ns);
    queue_record(queue, WEIR_TRACE_PASS, item, false);
    weir__merge_taken(consumer, queue);
    if (item == &queue->entries[queue->head].item)
        queue->head = queue_after(queue, queue->head);
    if (consumer->num_ins > 1 || !passes_straight(consumer)) { /* a merge may have reached its end */
        give_item(weir__slot_take_idle(consumer), item);
        return;
    }
    weir__slot_enter(consumer->idle, SLOT_IDLE);
    pass_straight(consumer, item);
}

static void move_item(weir__queue *queue, const weir_item *item)
{
    weir__graph *graph = queue->producer->graph;
    weir__core_node *consumer = queue->consumer;
    if (consumer && weir__merge_takes_directly(consumer, queue)) {
        give_directly(queue, item);
        return;
    }
    queue_push(queue, item, graph->next_arrival++, graph->now_ns);
    if (!consumer)
        notify_consumer(graph);
    else if (consumer->num_ins > 1 && consumer->order == WEIR_ORDER_INPUT)
        weir__node_resume(consumer);
}

/* The queue has room. */
static void put_item(weir__queue *queue, const weir_item *item, int64_t waited_ns)
{
    queue_count_put(queue, waited_ns, 1);
    queue->producer->account.passed_on++;
    move_item(queue, item);
}

/* Moves the result of the slot to a slot that waits for it, or into the queue, which has room. */
static void put_result(weir__core_slot *slot)
{
    weir__queue *queue = &slot->node->outs[slot->out_index];
    if (weir__is_epoch_end(&slot->out)) {
        put_epoch_end(slot, queue);
        return;
    }
    int64_t now_ns = slot->node->graph->now_ns;
    slot->has_out = false;
    put_item(queue, &slot->out, slot->state == SLOT_BLOCKED ? now_ns - slot->entered_ns : 0);
    forget_result(slot);
}

static void epoch_end_was_put(weir__core_slot *lifecycle)
{
    weir__core_node *node = lifecycle->node;
    if (!node->passing_epoch)
        return; /* the end of this epoch has failed the graph: no result of a stage that needs some */
    if (++lifecycle->out_index < node->num_outs) {
        lifecycle->out = weir__epoch_end();
        weir__result_offer(lifecycle);
        return;
    }
    weir__slot_enter(lifecycle, SLOT_IDLE);
    node->passing_epoch = false;
    weir__node_resume(node);
}

/* Continues after a result has been put: with the rest of the same input, or the next input. */
static void continue_slot(weir__core_slot *slot)
{
    if (slot->is_lifecycle)
        epoch_end_was_put(slot);
    else if (slot->more)
        weir__slot_make_ready(slot);
    else
        weir__slot_next_input(slot);
}

void weir__result_offer(weir__core_slot *slot)
{
    weir__queue *queue = &slot->node->outs[slot->out_index];
    bool its_turn = is_its_turn(slot);
    if (its_turn && queue_has_room(queue) && !has_waiting(queue)) {
        put_result(slot);
        continue_slot(slot);
        return;
    }
    if (its_turn && !queue->blocked.first && may_set_aside(slot, queue)) {
        set_result_aside(slot, queue);
        continue_slot(slot);
        return;
    }
    weir__slot_enter(slot, its_turn ? SLOT_BLOCKED : SLOT_TURN);
    if (its_turn)
        weir__list_append(&queue->blocked, slot);
}

/* ---- taking ------------------------------------------------------------------------------------------------- */

/* The first item that is set aside for the queue, which has room, is put: it is in the entry behind the last one. */
static void put_from_aside(weir__queue *queue)
{
    weir__core_node *node = queue->producer;
    const weir__queued_item *entry = queue_entry_at(queue, queue->head + queue->depth);
    queue->num_aside--;
    queue->aside_bytes -= queue_bytes_of(&entry->item);
    node->num_aside--;
    put_item(queue, &entry->item, node->graph->now_ns - entry->since_ns);
}

/* What waits for room in any queue of the route is set aside as soon as that is possible. */
static void set_blocked_aside(weir__core_node *node)
{
    for (uint32_t i = 0; i < node->num_outs; i++) {
        weir__queue *queue = &node->outs[i];
        while (queue->blocked.first && may_set_aside(queue->blocked.first, queue)) {
            weir__core_slot *slot = weir__list_take_first(&queue->blocked);
            set_result_aside(slot, queue);
            continue_slot(slot);
        }
    }
}

/* The queue may have room: what waits for it is put. */
static void let_waiting_put(weir__queue *queue)
{
    weir__core_node *node = queue->producer;
    bool sets_aside = queue->num_aside && !drops_results(node);
    while (sets_aside && queue->num_aside && queue_has_room(queue))
        put_from_aside(queue);
    while (queue->blocked.first && queue_has_room(queue)) {
        weir__core_slot *slot = weir__list_take_first(&queue->blocked);
        put_result(slot);
        continue_slot(slot);
    }
    if (!sets_aside)
        return;
    set_blocked_aside(node);
    if (!node->num_aside)
        weir__node_check_end(node);
}

static void take_input(weir__core_slot *slot, weir__queue *in, int64_t waited_ns)
{
    weir_item item;
    queue_get(in, &item, waited_ns, slot->node->graph->now_ns);
    weir__merge_taken(slot->node, in);
    if (passes_straight(slot->node) && slot->node->passing_items)
        pass_straight(slot->node, &item);
    else
        give_item(slot, &item);
    let_waiting_put(in);
}

static void pass_input(weir__core_slot *slot, weir__queue *in)
{
    const weir_item *item = &in->entries[in->head].item;
    slot->order_number = item->order_number;
    slot->trace_item = weir_trace_item(item->source, item->epoch, item->seq);
    queue_get(in, NULL, 0, slot->node->graph->now_ns);
    let_waiting_put(in);
}

void weir__result_pass(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    weir__queue *out = node->outs;
    move_item(out, weir__queue_item_at(out, out->head + out->depth));
    if (node->num_ins) {
        pass_input(slot, node->ins[0]);
    } else {
        node->next_seq++;
        slot->trace_item = weir_trace_item(node->source_index, node->epochs_ended, node->next_seq);
    }
}

void weir__passes_count(weir__core_slot *slot, uint32_t num)
{
    weir__core_node *node = slot->node;
    queue_count_put(node->outs, 0, num);
    node->account.passed_on += num;
    node->account.taken += num;
}

static void retire_slot(weir__core_slot *slot)
{
    weir__slot_enter(slot, SLOT_RETIRED);
    slot->node->num_slots--;
    weir__node_check_end(slot->node);
}

static void source_next(weir__core_slot *slot)
{
    if (slot->node->exhausted || slot->node->cancelled) {
        weir__slot_enter_idle(slot);
        weir__node_check_end(slot->node);
    } else {
        reset_task(slot);
        weir__slot_make_ready(slot);
    }
}

/* For the slot of a node without an operation: passes on all available items while there is room. A loop, because
   there may be many. */
static void pass_items(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    weir__queue *in;
    if (node->passing_items)
        return; /* the loop goes on */
    node->passing_items = true;
    while (!slot->has_out && (in = weir__merge_choose(node)))
        take_input(slot, in, 0);
    node->passing_items = false;
    if (slot->has_out)
        return;
    weir__slot_enter_idle(slot);
    weir__node_check_end(node);
}

void weir__slot_next_input(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    if (!node->has_tasks) {
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
        retire_slot(slot);
        return;
    }
    weir__queue *in = weir__merge_choose(node);
    if (in) {
        take_input(slot, in, 0);
    } else {
        weir__slot_enter_idle(slot);
        weir__node_check_end(node);
    }
}

void weir__node_resume(weir__core_node *node)
{
    weir__queue *in;
    while (node->num_ins && node->idle && (in = weir__merge_choose(node))) {
        weir__core_slot *slot = weir__slot_take_idle(node);
        take_input(slot, in, node->graph->now_ns - slot->entered_ns);
    }
    weir__node_check_end(node);
}

void weir__node_item_gone(weir__core_node *node)
{
    for (weir__core_node *join = node->ordered_join; join; join = join->ordered_join)
        weir__node_resume(join);
}

int weir__graph_deliver(weir__graph *graph, weir_item *item, int64_t waited_ns, int64_t late_ns)
{
    weir__queue *queue = graph->sink;
    int status = WEIR_OK;
    queue_get(queue, item, waited_ns, graph->now_ns);
    if (graph->measures)
        queue->lap.late_ns += late_ns;
    if (weir__is_epoch_end(item)) {
        *item = (weir_item){ 0 };
        status = WEIR_EPOCH;
    } else {
        queue_count_latency(queue, graph->now_ns - item->made_ns);
    }
    let_waiting_put(queue);
    if (queue->depth == 0 && !queue->closed && !graph->stopped)
        graph->consumable = false;
    weir__graph_check_over(graph);
    return status;
}

bool weir__graph_awaits_room(const weir__graph *graph)
{
    const weir__queue *queue = graph->sink;
    while (has_waiting(queue) && !queue->producer->has_tasks && queue->producer->num_ins == 1)
        queue = queue->producer->ins[0]; /* the producer passes items on, as many as there is room for */
    return has_waiting(queue);
}

uint32_t weir__graph_plan_takes(const weir__graph *graph, uint32_t most)
{
    const weir__queue *queue = graph->sink;
    if (queue->depth < 2 || queue->num_epoch_ends || graph->recorder || graph->stopped ||
        weir__graph_awaits_room(graph))
        return 0;
    return queue->depth - 1 < most ? queue->depth - 1 : most;
}

void weir__item_taken(weir__graph *graph, int64_t taken_ns)
{
    weir__queue *queue = graph->sink;
    weir__graph_move_time(graph, taken_ns);
    queue_count_latency(queue, taken_ns - queue->entries[queue->head].item.made_ns);
    queue_get(queue, NULL, 0, graph->now_ns);
    let_waiting_put(queue);
}

/* ---- ends of epochs and of streams -------------------------------------------------------------------------- */

typedef enum epoch_or_end { NEITHER, EPOCH_REACHED, END_REACHED } epoch_or_end;

static epoch_or_end find_epoch_or_end(weir__core_node *node)
{
    if (node->cancelled || weir__merge_is_over(node))
        return END_REACHED;
    if (node->num_ins == 0)
        return node->exhausted ? END_REACHED : NEITHER;

    epoch_or_end found = END_REACHED;
    for (uint32_t i = 0; i < node->num_ins; i++) {
        const weir__queue *in = node->ins[i];
        if (in->depth == 0 && !in->closed)
            return NEITHER;
        if (in->depth > 0 && !weir__is_epoch_end(&in->entries[in->head].item))
            return NEITHER;
        if (in->depth > 0)
            found = EPOCH_REACHED;
    }
    return found;
}

static void unlink_idle(weir__core_node *node, weir__core_slot *slot)
{
    weir__core_slot **link = &node->idle;
    while (*link != slot)
        link = &(*link)->next;
    *link = slot->next;
    node->num_idle--;
}

/* Flushes one slot after the other, so that the results come in the order of their numbers. True = a flush is in
   progress. */
static bool start_flush(weir__core_node *node)
{
    weir__core_slot *first = NULL;
    if (!node->has_flush || node->cancelled)
        return false;
    for (uint32_t i = 0; i < node->num_made; i++) {
        weir__core_slot *slot = node->slots[i];
        if (slot->needs_flush && (!first || slot->last_in.seq < first->last_in.seq))
            first = slot;
    }
    if (!first)
        return false;
    unlink_idle(node, first);
    first->flushing = true;
    first->in.source = first->last_in.source;
    first->in.epoch = first->last_in.epoch;
    first->in.seq = first->last_in.seq;
    first->in.order_number = first->last_in.order_number;
    first->in.made_ns = first->last_in.made_ns;
    first->trace_item = weir_trace_item(first->last_in.source, first->last_in.epoch, first->last_in.seq);
    reset_task(first);
    weir__slot_make_ready(first);
    return true;
}

static void pass_epoch(weir__core_node *node)
{
    node->passing_epoch = true;
    if (node->has_tasks)
        weir__node_enter_epoch(node, EPOCH_GAP, NULL);
    weir__merge_new_epoch(node);
    for (uint32_t i = 0; i < node->num_ins; i++) {
        if (node->ins[i]->depth) {
            weir_item end;
            queue_pop(node->ins[i], &end, node->graph->now_ns, false);
        }
    }
    node->lifecycle->out = weir__epoch_end();
    node->lifecycle->out_index = 0;
    weir__result_offer(node->lifecycle);
    for (uint32_t i = 0; i < node->num_ins; i++)
        let_waiting_put(node->ins[i]);
}

void weir__node_close(weir__core_node *node)
{
    weir__graph *graph = node->graph;
    weir__slots_end_idle(node);
    node->state = NODE_DONE;
    graph->live_nodes--;
    if (node->num_ins == 0 && --graph->live_sources == 0)
        graph->news |= WEIR__NEWS_SOURCES_ENDED;
    for (uint32_t i = 0; i < node->num_outs; i++) {
        weir__queue *queue = &node->outs[i];
        weir__queue_settle(queue, graph->now_ns);
        queue->closed = true;
        if (!queue->consumer)
            notify_consumer(graph);
        else
            weir__node_resume(queue->consumer); /* a merge may have waited for this input */
    }
    if (weir__merge_is_over(node))
        weir__nodes_cancel_before(node);
    weir__graph_check_over(graph);
}

static void end_node(weir__core_node *node)
{
    if (node->stage_hooks_begun) {
        node->state = NODE_ENDING;
        weir__slot_make_ready(node->lifecycle);
    } else {
        weir__node_close(node);
    }
}

/* At an end of an epoch or of the stream. Only an epoch that has begun here proves anything. */
static bool has_only_failed(weir__core_node *node)
{
    if (node->num_ends++ < node->graph->num_part_epochs)
        node->part_tasks = node->total_tasks;
    return node->graph->needs_results && !node->cancelled && node->total_tasks > node->part_tasks &&
           node->total_failures == node->total_tasks;
}

/* True = the node has passed it on, and may have reached the next end. */
static bool pass_epoch_or_end(weir__core_node *node)
{
    if (node->state != NODE_OPEN || node->num_idle < node->num_slots || node->passing_epoch)
        return false;
    epoch_or_end reached = find_epoch_or_end(node);
    if (reached == NEITHER || start_flush(node) || (reached == END_REACHED && has_aside(node)))
        return false;
    if (has_only_failed(node))
        weir__graph_fail(node, NULL, WEIR__FAILURE_ALL);
    else if (reached == EPOCH_REACHED)
        pass_epoch(node);
    else
        end_node(node);
    return true;
}

/* Whether the slots have nothing to do because ends of epochs come next in the inputs of the node. */
static bool reaches_epoch_end(weir__core_node *node)
{
    bool may = node->place == WITHIN_EPOCH && node->has_tasks && node->num_idle > 0 && node->num_ins > 0;
    return may && node->ins[0]->num_epoch_ends > 0 && find_epoch_or_end(node) == EPOCH_REACHED;
}

/* A loop, because any number of epochs without an item may wait. */
void weir__node_check_end(weir__core_node *node)
{
    if (node->passing_epoch_or_end)
        return; /* the loop goes on */
    node->passing_epoch_or_end = true;
    if (reaches_epoch_end(node))
        weir__node_enter_epoch(node, EPOCH_TAIL, NULL);
    while (pass_epoch_or_end(node))
        ;
    node->passing_epoch_or_end = false;
}

void weir__graph_check_over(weir__graph *graph)
{
    if (graph->over || graph->live_nodes || (graph->sink->depth && !graph->stopped))
        return;
    graph->over = true;
    graph->news |= WEIR__NEWS_OVER;
}

/* ---- cancelling ------------------------------------------------------------------------------------------------- */

/* The result of a pending task is no longer wanted. */
void weir__slot_want_cancel(weir__core_slot *slot)
{
    weir__graph *graph = slot->node->graph;
    if (!slot->node->has_cancel || slot->cancel_called || slot->cancel_queued)
        return;
    slot->cancel_queued = true;
    slot->next_to_cancel = NULL;
    *graph->to_cancel_end = slot;
    graph->to_cancel_end = &slot->next_to_cancel;
    graph->news |= WEIR__NEWS_TO_CANCEL;
}

static void cancel_slot(weir__core_slot *slot, bool keep_result)
{
    switch (slot->state) {
    case SLOT_PENDING: weir__slot_want_cancel(slot); break;
    case SLOT_TURN:
    case SLOT_BLOCKED:
        if (keep_result || (!slot->has_out && !weir__is_epoch_end(&slot->out)))
            break; /* the result stays, or is just being put: handoff.c goes on with the slot */
        if (slot->node->has_tasks)
            weir__slot_make_ready(slot); /* so that a thread releases what it holds */
        else
            weir__slot_enter_idle(slot); /* weir__leftover_take() finds it */
        break;
    default: break;
    }
}

static void drop_kept(weir__core_node *node)
{
    for (uint32_t i = 0; i < node->num_made; i++) {
        node->account.merged -= node->slots[i]->num_kept;
        node->account.dropped += node->slots[i]->num_kept;
        node->slots[i]->num_kept = 0;
    }
}

static void drop_results(weir__core_node *node)
{
    for (uint32_t i = 0; i < node->num_outs; i++)
        node->outs[i].blocked = (weir__slot_list){ 0 };
    if (node->passing_epoch) {
        weir__slot_enter(node->lifecycle, SLOT_IDLE);
        node->passing_epoch = false;
    }
}

void weir__node_cancel(weir__core_node *node, bool keep_results)
{
    if (node->state == NODE_DONE || (node->cancelled && (keep_results || !node->keeps_results)))
        return;
    node->cancelled = true;
    node->keeps_results = keep_results;
    node->graph->news |= WEIR__NEWS_CANCELLED;
    if (!keep_results)
        drop_results(node);
    for (uint32_t i = 0; i < node->num_made; i++)
        cancel_slot(node->slots[i], keep_results);
    drop_kept(node);
    weir__slots_open_gate(node);
    weir__node_check_end(node);
}

void weir__nodes_cancel_before(weir__core_node *node)
{
    for (uint32_t i = 0; i < node->num_ins; i++) {
        weir__core_node *before = node->ins[i]->producer;
        if (before->state == NODE_DONE || (before->cancelled && !before->keeps_results))
            continue; /* everything upstream is cancelled, too */
        weir__node_cancel(before, false);
        weir__nodes_cancel_before(before);
    }
}

/* From now on they do not wait for earlier items, which may have been dropped. */
static void resume_joins(weir__graph *graph)
{
    for (uint32_t i = 0; i < graph->num_nodes; i++)
        if (graph->nodes[i]->num_ins > 1 && graph->nodes[i]->order == WEIR_ORDER_INPUT)
            weir__node_resume(graph->nodes[i]);
}

void weir__graph_fail(weir__core_node *node, weir__core_slot *slot, weir__failure failure)
{
    weir__graph *graph = node->graph;
    bool is_first = !graph->failed && !graph->stopped;
    if (is_first) {
        graph->failed = true;
        graph->failure = failure;
        graph->failed_node = node;
        graph->failed_slot = slot;
        graph->news |= WEIR__NEWS_FAILED;
    }
    weir__node_cancel(node, true);
    weir__nodes_cancel_before(node);
    for (uint32_t i = 0; i < graph->num_nodes; i++)
        if (graph->nodes[i]->num_ins == 0)
            weir__node_cancel(graph->nodes[i], true); /* of other chains: their results are still passed on */
    if (is_first)
        resume_joins(graph);
}
