/*
 * Time: `now` is real time. Tasks in their CPU part share the CPUs equally, so all of them advance at the same speed;
 * `work` is the CPU time that such a task has got since the start. A task that needs c seconds of CPU ends when `work`
 * has grown by c. So there are two heaps, one in real time for delays and one in `work` for CPU parts, and events never
 * move.
 */
#include "simulator.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "event_heap.h"
#include "random.h"

enum { MOST_EVENTS = 20000000 };

typedef struct sim_slot sim_slot;
typedef struct sim_node sim_node;

typedef struct sim_list {
    sim_slot *first, *last;
} sim_list;

typedef struct sim_item {
    uint64_t order, arrival;
} sim_item;

typedef struct sim_queue {
    sim_node *producer, *consumer; /* NULL: the sink's queue */
    sim_item *entries;             /* ring of num_entries, a power of two */
    size_t head, depth, num_entries;
    size_t most; /* capacity, the byte bound included */
    sim_list blocked;
    double since, depth_s;
} sim_queue;

struct sim_slot {
    sim_node *node; /* NULL: the consumer */
    sim_state state;
    double since;
    sim_slot *next, *turn_before, *turn_after;
    uint64_t order;
    bool has_turn, has_out, begun, completing, is_late;
    uint32_t out;                             /* the queue of its result, of the node's */
    uint64_t num_results, num_steps;          /* that its task has still to make */
    double delay_s, cpu_s, late_s, pending_s; /* of each step */
    double cpu_since;
    double credit; /* of batches and pieces: the part of a result that its inputs have made so far */
};

struct sim_node {
    const weir_model_node *model;
    size_t index;
    bool has_tasks, is_source, in_order, is_ordered_join;
    sim_queue **ins, *outs;
    uint32_t num_ins, num_outs, due, last_taken;
    int64_t *credits;
    double *shares; /* of a route: the upper ends of its branches' ranges, from 0 to 1 */
    sim_slot *slots, *idle, *turn_first, *turn_last;
    sim_list ready;
    int pool;
    bool passing_items, moving_turns;
    double time_s[SIM_STATES], cpu_done_s, cpu_wait_s;
    uint64_t num_tasks, num_results;
    /* lengths of tasks: a deck that is shuffled when it has been dealt, or is dealt evenly */
    double *deck;
    bool is_even;
    size_t deck_size, dealt;
    /* an ordered join: the route where its branches begin, and how many items of each number are in between */
    const sim_node *route;
    uint32_t *inside;
    uint64_t first_inside, last_inside; /* numbers below and from here on have no items */
    size_t num_inside;                  /* of `inside`, a power of two */
    bool numbers_inputs;
    uint64_t next_order;
};

typedef struct sim_run {
    const sim_spec *spec;
    weir_error *error;
    sim_node *nodes;
    size_t num_nodes;
    uint32_t *free_threads; /* of each pool; 0 is the pipeline's, then one for each node */
    sim_slot consumer;
    sim_queue *sink;
    double now, work;
    size_t num_on_cpu;
    event_heap delays, works;
    uint64_t random, next_arrival, num_delivered;
    double consumer_busy_s;
    bool out_of_memory;
} sim_run;

/* ---- chance ------------------------------------------------------------------------------------------------- */

static uint64_t next_random(sim_run *run)
{
    return weir_random_next(&run->random);
}

static double next_share(sim_run *run)
{
    return (double)(next_random(run) >> 11) * 0x1p-53;
}

/* The golden ratio takes the places of the deck in an order in which any part of it comes at even intervals. */
static double deal_evenly(sim_node *node)
{
    double place = (double)++node->dealt * 0.6180339887498949;
    return node->deck[(size_t)((place - floor(place)) * (double)node->deck_size)];
}

static double deal_length(sim_run *run, sim_node *node)
{
    if (node->is_even)
        return deal_evenly(node);
    if (node->dealt == 0)
        for (size_t i = node->deck_size; i > 1; i--) {
            size_t other = (size_t)(next_random(run) % i);
            double length = node->deck[i - 1];
            node->deck[i - 1] = node->deck[other];
            node->deck[other] = length;
        }
    double length = node->deck[node->dealt++];
    node->dealt = node->dealt == node->deck_size ? 0 : node->dealt;
    return length;
}

/* ---- slots and lists ---------------------------------------------------------------------------------------- */

static void append(sim_list *list, sim_slot *slot)
{
    slot->next = NULL;
    *(list->last ? &list->last->next : &list->first) = slot;
    list->last = slot;
}

static sim_slot *take_first(sim_list *list)
{
    sim_slot *first = list->first;
    list->first = first->next;
    list->last = list->first ? list->last : NULL;
    return first;
}

static void enter(sim_run *run, sim_slot *slot, sim_state state)
{
    slot->node->time_s[slot->state] += run->now - slot->since;
    slot->since = run->now;
    slot->state = state;
}

static void enter_idle(sim_run *run, sim_slot *slot)
{
    enter(run, slot, SIM_IDLE);
    slot->next = slot->node->idle;
    slot->node->idle = slot;
}

static sim_slot *take_idle(sim_node *node)
{
    sim_slot *slot = node->idle;
    node->idle = slot->next;
    return slot;
}

static void make_ready(sim_run *run, sim_slot *slot)
{
    enter(run, slot, SIM_READY);
    append(&slot->node->ready, slot);
}

/* ---- queues ------------------------------------------------------------------------------------------------- */

static void settle(sim_run *run, sim_queue *queue)
{
    queue->depth_s += (double)queue->depth * (run->now - queue->since);
    queue->since = run->now;
}

static void push(sim_run *run, sim_queue *queue, uint64_t order)
{
    settle(run, queue);
    if (queue->depth == queue->num_entries) {
        size_t size = queue->num_entries ? 2 * queue->num_entries : 4;
        sim_item *entries = malloc(size * sizeof *entries);
        if (!entries) {
            run->out_of_memory = true;
            return;
        }
        for (size_t i = 0; i < queue->depth; i++)
            entries[i] = queue->entries[(queue->head + i) & (queue->num_entries - 1)];
        free(queue->entries);
        queue->entries = entries;
        queue->num_entries = size;
        queue->head = 0;
    }
    queue->entries[(queue->head + queue->depth++) & (queue->num_entries - 1)] =
        (sim_item){ order, run->next_arrival++ };
}

static uint64_t pop(sim_run *run, sim_queue *queue)
{
    settle(run, queue);
    uint64_t order = queue->entries[queue->head].order;
    queue->head = (queue->head + 1) & (queue->num_entries - 1);
    queue->depth--;
    return order;
}

/* ---- joins that restore the order --------------------------------------------------------------------------- */

static void resume(sim_run *run, sim_node *node);

static void count_inside(sim_run *run, sim_node *join, uint64_t order, int change)
{
    while (order - join->first_inside >= join->num_inside) {
        size_t size = join->num_inside ? 2 * join->num_inside : 64;
        uint32_t *counts = calloc(size, sizeof *counts);
        if (!counts) {
            run->out_of_memory = true;
            return;
        }
        for (uint64_t i = join->first_inside; i < join->last_inside; i++)
            counts[i & (size - 1)] = join->inside[i & (join->num_inside - 1)];
        free(join->inside);
        join->inside = counts;
        join->num_inside = size;
    }
    uint32_t *count = &join->inside[order & (join->num_inside - 1)];
    *count = (uint32_t)((int)*count + change);
    if (order >= join->last_inside)
        join->last_inside = order + 1;
    while (join->first_inside < join->last_inside && !join->inside[join->first_inside & (join->num_inside - 1)])
        join->first_inside++;
}

/* Items appear or vanish at a node: counts them in all ordered joins around it. */
static void count_around(sim_run *run, sim_node *node, uint64_t order, int change)
{
    for (size_t i = node->index + 1; i < run->num_nodes; i++) {
        sim_node *join = &run->nodes[i];
        if (!join->is_ordered_join || join->route->index >= node->index)
            continue;
        count_inside(run, join, order, change);
        if (change < 0)
            resume(run, join);
    }
}

/* A route has put an item. */
static void enters_branches(sim_run *run, sim_node *route, uint64_t order)
{
    for (size_t i = route->index + 1; i < run->num_nodes; i++)
        if (run->nodes[i].is_ordered_join && run->nodes[i].route == route)
            count_inside(run, &run->nodes[i], order, 1);
}

/* ---- merges ------------------------------------------------------------------------------------------------- */

static sim_queue *choose_first(const sim_node *node)
{
    sim_queue *first = NULL;
    for (uint32_t i = 0; i < node->num_ins; i++) {
        sim_queue *in = node->ins[i];
        if (in->depth == 0)
            continue;
        const sim_item *item = &in->entries[in->head], *least = first ? &first->entries[first->head] : NULL;
        if (!least || (node->is_ordered_join ? item->order < least->order : item->arrival < least->arrival))
            first = in;
    }
    if (first && node->is_ordered_join && first->entries[first->head].order > node->first_inside)
        return NULL;
    return first;
}

static uint32_t next_by_weight(sim_node *node)
{
    int64_t all = 0;
    uint32_t due = 0;
    for (uint32_t i = 0; i < node->num_ins; i++) {
        int64_t weight = node->model->weights ? node->model->weights[i] : 1;
        node->credits[i] += weight;
        all += weight;
        if (node->credits[i] > node->credits[due])
            due = i;
    }
    node->credits[due] -= all;
    return due;
}

static sim_queue *choose_due(sim_node *node)
{
    if (node->model->merge_order == WEIR_MERGE_ROUND_ROBIN)
        return node->ins[(node->last_taken + 1) % node->num_ins];
    if (node->due == node->num_ins)
        node->due = next_by_weight(node);
    return node->ins[node->due];
}

static bool selects_input(const sim_node *node)
{
    return node->num_ins > 1 && !node->is_ordered_join && node->model->merge_order != WEIR_MERGE_ARRIVAL;
}

static sim_queue *choose(sim_node *node)
{
    if (!selects_input(node))
        return choose_first(node);
    sim_queue *due = choose_due(node);
    return due->depth ? due : NULL;
}

static bool takes_directly(sim_node *node, const sim_queue *in)
{
    if (node->is_ordered_join || !node->idle || in->depth > 0)
        return false;
    return !selects_input(node) || choose_due(node) == in;
}

static void taken(sim_node *node, const sim_queue *in)
{
    node->due = node->num_ins;
    for (uint32_t i = 0; i < node->num_ins; i++)
        if (node->ins[i] == in)
            node->last_taken = i;
}

/* ---- the hand-off: as engine/core/handoff.c ---------------------------------------------------------------------- */

static void offer(sim_run *run, sim_slot *slot);
static void next_input(sim_run *run, sim_slot *slot);

static void leave_turns(sim_run *run, sim_slot *slot)
{
    sim_node *node = slot->node;
    bool was_first = node->turn_first == slot;
    sim_slot *offered = NULL;
    *(slot->turn_before ? &slot->turn_before->turn_after : &node->turn_first) = slot->turn_after;
    *(slot->turn_after ? &slot->turn_after->turn_before : &node->turn_last) = slot->turn_before;
    slot->has_turn = false;
    if (!was_first || node->moving_turns)
        return;
    node->moving_turns = true;
    while (node->turn_first && node->turn_first != offered && node->turn_first->state == SIM_TURN)
        offer(run, offered = node->turn_first);
    node->moving_turns = false;
}

static void give(sim_run *run, sim_slot *slot, uint64_t order)
{
    sim_node *node = slot->node;
    slot->order = order;
    if (!node->has_tasks) {
        enter(run, slot, SIM_RUNNING);
        slot->has_out = true;
        slot->out = 0;
        if (node->is_ordered_join)
            count_inside(run, node, order, -1);
        offer(run, slot);
        return;
    }
    if (node->in_order) {
        slot->turn_before = node->turn_last;
        slot->turn_after = NULL;
        *(node->turn_last ? &node->turn_last->turn_after : &node->turn_first) = slot;
        node->turn_last = slot;
        slot->has_turn = true;
    }
    if (node->numbers_inputs)
        slot->order = node->next_order++;
    make_ready(run, slot);
}

static void start_consumer(sim_run *run);

static void put(sim_run *run, sim_slot *slot)
{
    sim_node *node = slot->node;
    sim_queue *queue = &node->outs[slot->out];
    sim_node *consumer = queue->consumer;
    slot->has_out = false;
    node->num_results++;
    if (node->num_outs > 1)
        enters_branches(run, node, slot->order);
    if (consumer && takes_directly(consumer, queue)) {
        sim_slot *taker = take_idle(consumer);
        taken(consumer, queue);
        give(run, taker, slot->order);
        return;
    }
    push(run, queue, slot->order);
    if (!consumer)
        start_consumer(run);
    else if (consumer->is_ordered_join)
        resume(run, consumer);
}

static void go_on(sim_run *run, sim_slot *slot)
{
    if (slot->num_steps > 0)
        make_ready(run, slot);
    else
        next_input(run, slot);
}

static void offer(sim_run *run, sim_slot *slot)
{
    sim_queue *queue = &slot->node->outs[slot->out];
    bool its_turn = !slot->has_turn || slot->node->turn_first == slot;
    if (its_turn && queue->depth < queue->most && !queue->blocked.first) {
        put(run, slot);
        go_on(run, slot);
        return;
    }
    enter(run, slot, its_turn ? SIM_BLOCKED : SIM_TURN);
    if (its_turn)
        append(&queue->blocked, slot);
}

static void let_in(sim_run *run, sim_queue *queue)
{
    while (queue->blocked.first && queue->depth < queue->most) {
        sim_slot *slot = take_first(&queue->blocked);
        put(run, slot);
        go_on(run, slot);
    }
}

static void take(sim_run *run, sim_slot *slot, sim_queue *in)
{
    uint64_t order = pop(run, in);
    taken(slot->node, in);
    give(run, slot, order);
    let_in(run, in);
}

static void pass_items(sim_run *run, sim_slot *slot)
{
    sim_node *node = slot->node;
    sim_queue *in;
    if (node->passing_items)
        return; /* the loop goes on */
    node->passing_items = true;
    while (!slot->has_out && (in = choose(node)))
        take(run, slot, in);
    node->passing_items = false;
    if (!slot->has_out)
        enter_idle(run, slot);
}

static void next_input(sim_run *run, sim_slot *slot)
{
    sim_node *node = slot->node;
    sim_queue *in;
    if (!node->has_tasks) {
        pass_items(run, slot);
        return;
    }
    if (slot->has_turn)
        leave_turns(run, slot);
    if (node->is_source)
        make_ready(run, slot);
    else if ((in = choose(node)))
        take(run, slot, in);
    else
        enter_idle(run, slot);
}

static void resume(sim_run *run, sim_node *node)
{
    sim_queue *in;
    while (node->idle && (in = choose(node)))
        take(run, take_idle(node), in);
}

/* ---- tasks -------------------------------------------------------------------------------------------------- */

/* The CPU part, or the delay after it, or the end if both are 0. */
static void start_cpu(sim_run *run, sim_slot *slot)
{
    slot->cpu_since = run->now;
    run->num_on_cpu++;
    event_push(&run->works, run->work + slot->cpu_s, slot);
}

static void start_step(sim_run *run, sim_slot *slot)
{
    if (slot->delay_s > 0)
        event_push(&run->delays, run->now + slot->delay_s, slot);
    else
        start_cpu(run, slot);
}

static void start_consumer(sim_run *run)
{
    sim_slot *consumer = &run->consumer;
    if (consumer->begun || run->sink->depth == 0)
        return;
    consumer->begun = true;
    pop(run, run->sink);
    const weir_model_node *sink = run->sink->producer->model;
    consumer->since = run->now;
    consumer->delay_s = sink->time_s - sink->cpu_s;
    consumer->cpu_s = sink->cpu_s;
    start_step(run, consumer);
    let_in(run, run->sink);
}

static void begin_task(sim_run *run, sim_slot *slot)
{
    sim_node *node = slot->node;
    const weir_model_node *model = node->model;
    double length = deal_length(run, node), lost = next_share(run);
    slot->begun = true;
    slot->num_results = 0;
    if (lost >= model->skip_share + model->failure_share) {
        slot->credit += model->results * (1 + 1e-12);
        slot->num_results = (uint64_t)slot->credit;
        slot->credit -= (double)slot->num_results;
    }
    slot->num_steps = slot->num_results > 1 ? slot->num_results : 1;
    length /= (double)slot->num_steps;
    slot->cpu_s = length * model->cpu_s;
    slot->pending_s = length * model->pending_s;
    /* Tasks do not all compute at the same time of their lives: the delay comes before and after. */
    double delay_s = length * (model->time_s - model->cpu_s - model->pending_s);
    slot->delay_s = model->cpu_s > 0 ? delay_s * next_share(run) : delay_s;
    slot->late_s = delay_s - slot->delay_s;
    if (slot->num_results > 1)
        count_around(run, node, slot->order, (int)slot->num_results - 1);
    if (node->is_source)
        slot->order = 0;
}

static void pick_branch(sim_run *run, sim_slot *slot)
{
    const sim_node *node = slot->node;
    slot->out = 0;
    if (node->num_outs < 2)
        return;
    double share = next_share(run);
    while (slot->out + 1 < node->num_outs && share >= node->shares[slot->out])
        slot->out++;
}

static void step_ended(sim_run *run, sim_slot *slot)
{
    sim_node *node = slot->node;
    run->free_threads[node->pool]++;
    if (slot->pending_s > 0 && !slot->completing) {
        slot->completing = true;
        enter(run, slot, SIM_PENDING);
        event_push(&run->delays, run->now + slot->pending_s, slot);
        return;
    }
    slot->completing = false;
    slot->num_steps--;
    if (slot->num_steps == 0) {
        slot->begun = false;
        node->num_tasks++;
    }
    if (slot->num_results > 0) {
        slot->num_results--;
        slot->has_out = true;
        pick_branch(run, slot);
        offer(run, slot);
    } else {
        uint64_t order = slot->order;
        next_input(run, slot);
        if (!node->is_source)
            count_around(run, node, order, -1);
    }
}

static void run_step(sim_run *run, sim_slot *slot)
{
    run->free_threads[slot->node->pool]--;
    enter(run, slot, SIM_RUNNING);
    if (slot->completing) {
        step_ended(run, slot);
        return;
    }
    if (!slot->begun)
        begin_task(run, slot);
    start_step(run, slot);
}

/* Free threads take the ready slots nearest the sink. A step that only brings the result of a pending task ends at
   once, and may make slots ready nearer the sink. */
static void dispatch(sim_run *run)
{
    for (size_t i = run->num_nodes; i-- > 0;) {
        sim_node *node = &run->nodes[i];
        while (node->ready.first && run->free_threads[node->pool] > 0) {
            sim_slot *slot = take_first(&node->ready);
            bool ends_at_once = slot->completing;
            run_step(run, slot);
            if (ends_at_once) {
                i = run->num_nodes;
                break;
            }
        }
    }
}

/* ---- time --------------------------------------------------------------------------------------------------- */

/* CPU time per second that each task on a CPU gets. */
static double speed(const sim_run *run)
{
    double wanted = (double)run->num_on_cpu + run->spec->background;
    return wanted > run->spec->cpus ? run->spec->cpus / wanted : 1;
}

static void advance(sim_run *run, double span_s)
{
    run->now += span_s;
    run->work += span_s * (run->num_on_cpu ? speed(run) : 0);
}

static void cpu_part_ended(sim_run *run, sim_slot *slot)
{
    run->num_on_cpu--;
    if (slot->node) {
        slot->node->cpu_done_s += slot->cpu_s;
        slot->node->cpu_wait_s += run->now - slot->cpu_since - slot->cpu_s;
        if (slot->late_s > 0) {
            slot->is_late = true;
            event_push(&run->delays, run->now + slot->late_s, slot);
            return;
        }
        step_ended(run, slot);
        return;
    }
    run->consumer_busy_s += run->now - slot->since;
    run->num_delivered++;
    slot->begun = false;
    start_consumer(run);
}

/* False: nothing can happen any more. */
static bool next_event(sim_run *run)
{
    double until_delay = run->delays.count ? run->delays.entries[0].at - run->now : DBL_MAX;
    double until_work = run->works.count ? (run->works.entries[0].at - run->work) / speed(run) : DBL_MAX;
    if (run->delays.count + run->works.count == 0)
        return false;
    if (until_delay < until_work) {
        advance(run, until_delay > 0 ? until_delay : 0);
        sim_slot *slot = event_pop(&run->delays);
        if (slot->state == SIM_PENDING && slot->node)
            make_ready(run, slot);
        else if (slot->is_late) {
            slot->is_late = false;
            step_ended(run, slot);
        } else
            start_cpu(run, slot);
    } else {
        advance(run, until_work > 0 ? until_work : 0);
        cpu_part_ended(run, event_pop(&run->works));
    }
    return true;
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

/* The route where the branches of a join begin: the first one upstream that no other join closes. */
static const sim_node *route_of(const sim_node *join)
{
    int num_open = 0;
    const sim_node *node = join;
    while (node->num_ins > 0) {
        node = node->ins[0]->producer;
        if (node->num_outs > 1 && num_open-- == 0)
            return node;
        num_open += node->num_ins > 1;
    }
    return NULL;
}

static bool init_node(sim_run *run, size_t index)
{
    sim_node *node = &run->nodes[index];
    const weir_model_node *model = node->model = &run->spec->nodes[index];
    node->index = index;
    node->is_source = strcmp(model->kind, "source") == 0;
    node->has_tasks = node->is_source || strcmp(model->kind, "stage") == 0 || strcmp(model->kind, "route") == 0;
    node->in_order = node->has_tasks && model->output_order == WEIR_ORDER_INPUT;
    node->pool = model->threads ? (int)index + 1 : 0;
    node->num_outs = model->num_shares > 1 ? model->num_shares : 1;
    node->num_ins = model->num_inputs;
    node->due = node->num_ins;
    node->last_taken = node->num_ins ? node->num_ins - 1 : 0;
    node->deck_size = run->spec->num_lengths[index];
    node->is_even = run->spec->is_even && run->spec->is_even[index];
    node->outs = calloc(node->num_outs, sizeof *node->outs);
    node->shares = calloc(node->num_outs, sizeof *node->shares);
    node->ins = calloc(node->num_ins + 1, sizeof(sim_queue *));
    node->credits = calloc(node->num_ins + 1, sizeof *node->credits);
    node->slots = calloc(model->concurrency, sizeof *node->slots);
    node->deck = calloc(node->deck_size + 1, sizeof *node->deck);
    if (!node->outs || !node->shares || !node->ins || !node->credits || !node->slots || !node->deck)
        return false;
    memcpy(node->deck, run->spec->lengths[index], node->deck_size * sizeof *node->deck);
    double by_bytes = model->queue_bytes && model->item_bytes > 0
                          ? ceil((double)model->queue_bytes / model->item_bytes)
                          : (double)model->queue_items;
    for (uint32_t i = 0; i < node->num_outs; i++) {
        node->outs[i].producer = node;
        node->outs[i].most = (size_t)fmin(by_bytes, fmin(model->queue_items, run->spec->most_queued));
        node->shares[i] = (i ? node->shares[i - 1] : 0) + (model->num_shares > 1 ? model->shares[i] : 1);
    }
    for (uint32_t i = 0; i < node->num_outs; i++)
        node->shares[i] /= node->shares[node->num_outs - 1];
    for (uint32_t i = model->concurrency; i-- > 0;) {
        node->slots[i].node = node;
        enter_idle(run, &node->slots[i]);
    }
    run->free_threads[index + 1] = model->threads;
    return true;
}

/* Without `branches`, the first node that takes from a route gets the first branch. */
static void connect(sim_run *run, sim_node *node)
{
    for (uint32_t i = 0; i < node->num_ins; i++) {
        sim_node *producer = &run->nodes[node->model->inputs[i]];
        uint32_t out = node->model->branches ? node->model->branches[i] : 0;
        while (!node->model->branches && producer->outs[out].consumer)
            out++;
        node->ins[i] = &producer->outs[out];
        node->ins[i]->consumer = node;
    }
    node->is_ordered_join = node->num_ins > 1 && node->model->output_order == WEIR_ORDER_INPUT;
    node->route = node->is_ordered_join ? route_of(node) : NULL;
    node->is_ordered_join = node->route;
}

static void number_outermost(sim_run *run)
{
    for (size_t i = 0; i < run->num_nodes; i++) {
        const sim_node *join = &run->nodes[i];
        bool is_outermost = join->is_ordered_join;
        for (size_t j = i + 1; j < run->num_nodes && is_outermost; j++)
            is_outermost = !run->nodes[j].is_ordered_join || run->nodes[j].route->index > join->route->index;
        if (is_outermost)
            run->nodes[join->route->index].numbers_inputs = true;
    }
}

static bool init(sim_run *run)
{
    size_t num_slots = 1;
    for (size_t i = 0; i < run->num_nodes; i++)
        num_slots += run->spec->nodes[i].concurrency;
    run->nodes = calloc(run->num_nodes, sizeof *run->nodes);
    run->free_threads = calloc(run->num_nodes + 1, sizeof *run->free_threads);
    run->delays.entries = calloc(num_slots, sizeof(event_entry));
    run->works.entries = calloc(num_slots, sizeof(event_entry));
    if (!run->nodes || !run->free_threads || !run->delays.entries || !run->works.entries)
        return false;
    run->free_threads[0] = run->spec->threads;
    for (size_t i = 0; i < run->num_nodes; i++)
        if (!init_node(run, i))
            return false;
    for (size_t i = 0; i < run->num_nodes; i++)
        connect(run, &run->nodes[i]);
    number_outermost(run);
    run->sink = &run->nodes[run->num_nodes - 1].outs[0];
    return true;
}

static void free_run(sim_run *run)
{
    for (size_t i = 0; run->nodes && i < run->num_nodes; i++) {
        sim_node *node = &run->nodes[i];
        for (uint32_t j = 0; node->outs && j < node->num_outs; j++)
            free(node->outs[j].entries);
        free(node->outs);
        free(node->shares);
        free(node->ins);
        free(node->credits);
        free(node->slots);
        free(node->deck);
        free(node->inside);
    }
    free(run->nodes);
    free(run->free_threads);
    free(run->delays.entries);
    free(run->works.entries);
}

/* Until the consumer has had this many items. */
static int run_until(sim_run *run, uint64_t num_items)
{
    uint64_t num_events = 0;
    while (run->num_delivered < num_items) {
        if (run->out_of_memory)
            return weir_error_set(run->error, WEIR_ENOMEM, 0, "no memory to simulate the pipeline");
        if (++num_events > MOST_EVENTS || !next_event(run))
            return weir_error_set(run->error, WEIR_ELIMIT, 0,
                                  "the simulated pipeline delivers too few results: %llu of %llu after %llu events",
                                  (unsigned long long)run->num_delivered, (unsigned long long)num_items,
                                  (unsigned long long)num_events);
        dispatch(run);
    }
    return WEIR_OK;
}

/* Brings all times up to now, and sets them to 0 if the measured part begins. */
static void settle_all(sim_run *run, bool begins)
{
    for (size_t i = 0; i < run->num_nodes; i++) {
        sim_node *node = &run->nodes[i];
        for (uint32_t j = 0; j < node->model->concurrency; j++)
            enter(run, &node->slots[j], node->slots[j].state);
        for (uint32_t j = 0; j < node->num_outs; j++) {
            settle(run, &node->outs[j]);
            node->outs[j].depth_s *= !begins;
        }
        if (begins) {
            memset(node->time_s, 0, sizeof node->time_s);
            node->cpu_done_s = node->cpu_wait_s = 0;
            node->num_tasks = node->num_results = 0;
        }
    }
    if (begins)
        run->consumer_busy_s = 0;
}

static void read_result(const sim_run *run, double start_s, sim_result *result)
{
    double span_s = result->elapsed_s = run->now - start_s;
    result->throughput = (double)run->spec->num_items / span_s;
    result->consumer_share = run->consumer_busy_s / span_s;
    for (size_t i = 0; i < run->num_nodes; i++) {
        const sim_node *node = &run->nodes[i];
        sim_node_result *to = &result->nodes[i];
        *to = (sim_node_result){ .tasks_per_s = (double)node->num_tasks / span_s,
                                 .results_per_s = (double)node->num_results / span_s,
                                 .cpus = node->cpu_done_s / span_s,
                                 .cpu_wait = fmax(0, node->cpu_wait_s) / span_s };
        for (int state = 0; state < SIM_STATES; state++)
            to->time_s[state] = node->time_s[state];
        for (uint32_t j = 0; j < node->num_outs; j++)
            to->queue_depth += node->outs[j].depth_s / span_s;
    }
}

int weir_simulate(const sim_spec *spec, sim_result *result, weir_error *error)
{
    sim_run run = { .spec = spec, .error = error, .num_nodes = spec->num_nodes, .random = spec->seed };
    int status = init(&run) ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "no memory to simulate the pipeline");
    double start_s = 0;
    if (status == WEIR_OK) {
        for (size_t i = 0; i < run.num_nodes; i++)
            if (run.nodes[i].is_source)
                next_input(&run, take_idle(&run.nodes[i]));
        dispatch(&run);
        status = run_until(&run, spec->num_start);
        settle_all(&run, true);
        start_s = run.now;
    }
    if (status == WEIR_OK)
        status = run_until(&run, spec->num_start + spec->num_items);
    if (status == WEIR_OK && run.now <= start_s)
        status = weir_error_set(error, WEIR_EINVAL, 0, "no part of the pipeline takes any time: nothing limits it");
    if (status == WEIR_OK) {
        settle_all(&run, false);
        read_result(&run, start_s, result);
    }
    free_run(&run);
    return status;
}
