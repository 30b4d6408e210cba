#include "engine/core/slots.h"

void weir__list_append(weir__slot_list *list, weir__core_slot *slot)
{
    slot->next = NULL;
    if (list->last)
        list->last->next = slot;
    else
        list->first = slot;
    list->last = slot;
}

weir__core_slot *weir__list_take_first(weir__slot_list *list)
{
    weir__core_slot *first = list->first;
    list->first = first->next;
    if (!list->first)
        list->last = NULL;
    return first;
}

/* A running slot is busy from the moment its thread began the step; until then it waited for the thread. */
static void count_time(weir__core_slot *slot, int64_t until_ns)
{
    int64_t *time_ns = slot->node->time_ns;
    time_ns[weir__slot_time(slot)] += until_ns - slot->since_ns;
    if (slot->state == SLOT_RUNNING && slot->begin_ns > slot->since_ns) {
        time_ns[SLOT_RUNNING] -= slot->begin_ns - slot->since_ns;
        time_ns[SLOT_READY] += slot->begin_ns - slot->since_ns;
    }
}

/* When the slot enters its next state: now, but a step has ended before its thread, which may have had to wait for a CPU
   or for the driver, could say so. What was counted in an earlier lap remains there. */
static int64_t entry_ns(const weir__core_slot *slot)
{
    if (slot->state != SLOT_RUNNING)
        return slot->node->graph->now_ns;
    return slot->end_ns > slot->since_ns ? slot->end_ns : slot->since_ns;
}

void weir__slot_enter(weir__core_slot *slot, slot_state state)
{
    int64_t at_ns = entry_ns(slot);
    if (!slot->is_lifecycle && slot->node->graph->measures)
        count_time(slot, at_ns);
    if (__builtin_expect(slot->node->graph->recorder != NULL, false))
        slot->node->graph->recorder->state(slot, state, at_ns);
    slot->since_ns = slot->entered_ns = at_ns;
    slot->state = state;
}

static void settle_idle(weir__core_slot *slot)
{
    int64_t now_ns = slot->node->graph->now_ns;
    if (slot->node->graph->measures)
        count_time(slot, now_ns);
    slot->since_ns = now_ns;
}

void weir__node_enter_epoch(weir__core_node *node, epoch_place place, weir__core_slot *taken)
{
    for (weir__core_slot *slot = node->idle; slot; slot = slot->next)
        settle_idle(slot);
    if (taken && taken->state == SLOT_IDLE)
        settle_idle(taken);
    node->place = place;
}

void weir__slots_end_idle(weir__core_node *node)
{
    for (weir__core_slot *slot = node->idle; slot; slot = slot->next) {
        settle_idle(slot);
        if (node->graph->recorder)
            node->graph->recorder->state(slot, (slot_state)TIME_ENDED, node->graph->now_ns);
    }
}

void weir__slot_enter_idle(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    weir__slot_enter(slot, SLOT_IDLE);
    slot->next = node->idle;
    node->idle = slot;
    node->num_idle++;
}

weir__core_slot *weir__slot_take_idle(weir__core_node *node)
{
    weir__core_slot *slot = node->idle;
    node->idle = slot->next;
    node->num_idle--;
    return slot;
}

/* A stage starts no task before its start hooks have run; the lifecycle slot, which runs them, and the slots of a
   cancelled stage do not wait for this. */
static bool may_run(const weir__core_node *node, const weir__core_slot *slot)
{
    return slot->is_lifecycle || node->cancelled || (node->state != NODE_NEW && node->state != NODE_STARTING);
}

static void append_ready_node(weir__core_node *node)
{
    weir__core_pool *pool = node->pool;
    weir__node_list *list = &pool->ranks[node->rank];
    node->next_ready = NULL;
    *(list->last ? &list->last->next_ready : &list->first) = node;
    list->last = node;
    pool->ready_ranks[node->rank / 64] |= UINT64_C(1) << (node->rank % 64);
}

static void append_ready(weir__core_node *node, weir__core_slot *slot)
{
    if (!node->ready.first)
        append_ready_node(node);
    weir__list_append(&node->ready, slot);
    slot->is_short_step = !slot->is_lifecycle && node->typical_ns < WEIR__SHORT_STEP_NS;
    node->pool->num_ready_slow += !slot->is_short_step;
    node->pool->num_ready++;
}

void weir__slot_make_ready(weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    weir__slot_enter(slot, SLOT_READY);
    if (may_run(node, slot))
        append_ready(node, slot);
    else
        weir__list_append(&node->gated, slot);
}

void weir__slots_open_gate(weir__core_node *node)
{
    while (node->gated.first)
        append_ready(node, weir__list_take_first(&node->gated));
}

static uint32_t nearest_ready_rank(const weir__core_pool *pool)
{
    uint32_t word = 0;
    while (!pool->ready_ranks[word])
        word++;
    return word * 64 + (uint32_t)__builtin_ctzll(pool->ready_ranks[word]);
}

/* A node whose burst took the turns of others gives as many up to them. If it is alone, nobody is kept waiting. */
static weir__core_node *find_next_turn(weir__node_list *list)
{
    while (list->first != list->last && list->first->num_turns_ahead) {
        weir__core_node *node = list->first;
        node->num_turns_ahead--;
        list->first = node->next_ready;
        node->next_ready = NULL;
        list->last->next_ready = node;
        list->last = node;
    }
    list->first->num_turns_ahead = 0;
    return list->first;
}

/* The node whose turn it is; if it has more ready slots, its next turn is after those of the others. */
static weir__core_slot *take_ready(weir__core_pool *pool)
{
    uint32_t rank = nearest_ready_rank(pool);
    weir__node_list *list = &pool->ranks[rank];
    weir__core_node *node = find_next_turn(list);
    weir__core_slot *slot = weir__list_take_first(&node->ready);
    list->first = node->next_ready;
    if (!list->first) {
        list->last = NULL;
        pool->ready_ranks[rank / 64] &= ~(UINT64_C(1) << (rank % 64));
    }
    if (node->ready.first)
        append_ready_node(node);
    pool->num_ready_slow -= !slot->is_short_step;
    pool->num_ready--;
    return slot;
}

/* The item of a source is numbered by source and epoch, independent of the other sources. */
static void number_item(weir__core_slot *slot)
{
    slot->in.source = slot->node->source_index;
    slot->in.epoch = slot->node->epochs_ended;
    slot->in.seq = slot->node->next_seq;
    slot->trace_item = weir_trace_item(slot->in.source, slot->in.epoch, slot->in.seq);
}

static void begin_slot_task(weir__core_slot *slot)
{
    slot->begun = true;
    slot->run_ns = 0;
    slot->num_chunks = 0;
    slot->overdue = slot->cancel_called = false;
    if (slot->node->num_ins == 0)
        number_item(slot);
}

weir__core_slot *weir__core_pool_pick(weir__core_pool *pool)
{
    if (pool->num_ready == 0)
        return NULL;

    weir__core_slot *slot = take_ready(pool);
    const weir__core_node *node = slot->node;
    weir__slot_enter(slot, SLOT_RUNNING);
    pool->num_running_short += slot->is_short_step;
    pool->picked_ns = pool->graph->now_ns;
    slot->finishing = slot->completed;
    slot->abandoned = node->cancelled && node->state != NODE_ENDING;
    slot->starts_task = !slot->begun && !slot->abandoned && !slot->is_lifecycle;
    if (slot->starts_task)
        begin_slot_task(slot);
    return slot;
}

static bool is_short(const weir__core_node *node)
{
    return node->typical_ns < WEIR__SHORT_STEP_NS;
}

/* The results of the node may wait for a few short steps: their consumer would not use them for longer work
   meanwhile. The results must not fill several idle slots either. Each of these has a worker state, which one thread
   would use in turn. */
static bool results_may_wait(const weir__core_node *node)
{
    const weir__core_node *after = node->outs[0].consumer;
    if (!after->has_tasks)
        return after->outs[0].consumer == NULL; /* the sink */
    return !after->idle || (is_short(after) && after->num_slots == 1);
}

static uint32_t num_inputs_ahead(const weir__core_slot *slot, uint32_t most)
{
    const weir__queue *in = slot->node->ins[0];
    uint32_t num = 0;
    for (; num < most && num < in->depth; num++) {
        const weir_item *item = weir__queue_item_at(in, in->head + num);
        if (weir__is_epoch_end(item) || item->label_owner != slot->in.label_owner)
            break;
    }
    return num;
}

/* The last step of a burst puts its result like any other step. */
weir__plan weir__slot_plan_ahead(const weir__core_slot *slot, uint32_t most)
{
    const weir__core_node *node = slot->node;
    const weir__queue *out = node->outs;
    if (!node->may_run_ahead || !slot->starts_task || slot->num_replaced || node->graph->recorder ||
        node->num_slots != 1 || node->num_wanted != 1 || !is_short(node) || out->depth + 1 >= out->capacity ||
        !results_may_wait(node))
        return (weir__plan){ 0 };
    uint32_t num = out->capacity - out->depth - 1;
    weir__plan plan = { .num_steps = num < most ? num : most, .first_out = out->head + out->depth };
    if (node->num_ins) {
        plan.num_steps = num_inputs_ahead(slot, plan.num_steps);
        plan.first_in = node->ins[0]->head;
    }
    if (plan.first_out >= out->num_entries)
        plan.first_out -= out->num_entries;
    return plan;
}
