#include "slots.h"

#include "thread_cpu.h"
#include "trace_ring.h"
#include "wake.h"

void weir_list_append(weir_slot_list *list, weir_slot *slot)
{
    slot->next = NULL;
    if (list->last)
        list->last->next = slot;
    else
        list->first = slot;
    list->last = slot;
}

weir_slot *weir_list_take_first(weir_slot_list *list)
{
    weir_slot *first = list->first;
    list->first = first->next;
    if (!list->first)
        list->last = NULL;
    return first;
}

/* A running slot is busy from the moment its thread began the step; until then it waited for the thread. */
static void count_time(weir_slot *slot, int64_t now_ns)
{
    int64_t *time_ns = slot->node->time_ns;
    time_ns[slot->state] += now_ns - slot->since_ns;
    if (slot->state == SLOT_RUNNING && slot->begin_ns > slot->since_ns) {
        time_ns[SLOT_RUNNING] -= slot->begin_ns - slot->since_ns;
        time_ns[SLOT_READY] += slot->begin_ns - slot->since_ns;
    }
}

void weir_slot_enter_locked(weir_slot *slot, slot_state state)
{
    int64_t now_ns = slot->node->pipeline->now_ns;
    if (!slot->is_lifecycle)
        count_time(slot, now_ns);
    trace_state_locked(slot, state);
    slot->since_ns = slot->entered_ns = now_ns;
    slot->state = state;
}

void weir_slot_enter_idle_locked(weir_slot *slot)
{
    weir_node *node = slot->node;
    weir_slot_enter_locked(slot, SLOT_IDLE);
    slot->next = node->idle;
    node->idle = slot;
    node->num_idle++;
}

weir_slot *weir_slot_take_idle_locked(weir_node *node)
{
    weir_slot *slot = node->idle;
    node->idle = slot->next;
    node->num_idle--;
    return slot;
}

/* A stage starts no task before its start hooks have run; the lifecycle slot, which runs them, and the slots of a
   cancelled stage do not wait for this. */
static bool may_run(const weir_node *node, const weir_slot *slot)
{
    return slot->is_lifecycle || node->cancelled || (node->state != NODE_NEW && node->state != NODE_STARTING);
}

static uint32_t ready_bit(const weir_node *node)
{
    return node->pipeline->num_nodes - 1 - node->index;
}

static void append_ready(weir_node *node, weir_slot *slot)
{
    uint32_t bit = ready_bit(node);
    weir_list_append(&node->ready, slot);
    slot->is_short_step = !slot->is_lifecycle && node->typical_ns < SHORT_STEP_NS;
    slot->is_long_step = node->typical_ns >= WEIR_CPU_WINDOW_NS;
    node->pool->ready_nodes[bit / 64] |= UINT64_C(1) << (bit % 64);
    node->pool->num_ready_slow += !slot->is_short_step;
    node->pool->num_ready++;
}

static weir_slot *take_ready(weir_node *node)
{
    uint32_t bit = ready_bit(node);
    weir_slot *slot = weir_list_take_first(&node->ready);
    if (!node->ready.first)
        node->pool->ready_nodes[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
    node->pool->num_ready_slow -= !slot->is_short_step;
    node->pool->num_ready--;
    return slot;
}

void weir_slot_make_ready_locked(weir_slot *slot)
{
    weir_node *node = slot->node;
    weir_slot_enter_locked(slot, SLOT_READY);
    if (may_run(node, slot))
        append_ready(node, slot);
    else
        weir_list_append(&node->gated, slot);
}

void weir_slots_open_gate_locked(weir_node *node)
{
    while (node->gated.first)
        append_ready(node, weir_list_take_first(&node->gated));
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

/* The item of a source is numbered by source and epoch, independent of the other sources. */
static void number_item(weir_slot *slot)
{
    slot->in.source = slot->node->source_index;
    slot->in.epoch = slot->node->epochs_ended;
    slot->in.seq = slot->node->next_seq;
    slot->trace_item = weir_trace_item(slot->in.source, slot->in.epoch, slot->in.seq);
}

static void begin_task(weir_slot *slot)
{
    slot->run_ns = 0;
    slot->num_pieces = 0;
    slot->warn_after_ns = slot->node->pipeline->stall_warning_ns;
    atomic_store_explicit(&slot->should_stop, false, memory_order_relaxed);
    atomic_store_explicit(&slot->overdue, false, memory_order_relaxed);
    slot->cancel_called = false;
    if (slot->node->num_ins == 0)
        number_item(slot);
}

weir_slot *weir_slot_pick_locked(weir_pool *pool)
{
    if (pool->num_ready == 0)
        return NULL;

    weir_node *node = nearest_ready_node(pool);
    weir_slot *slot = take_ready(node);
    weir_slot_enter_locked(slot, SLOT_RUNNING);
    pool->num_short_steps += slot->is_short_step;
    pool->picked_ns = pool->pipeline->now_ns;
    slot->finishing = atomic_load_explicit(&slot->completed, memory_order_relaxed);
    slot->abandoned = node->cancelled && node->state != NODE_ENDING;
    if (!slot->begun && !slot->abandoned && !slot->is_lifecycle)
        begin_task(slot);
    return slot;
}
