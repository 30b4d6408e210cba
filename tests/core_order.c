/*
 * Rules of the order, each derived from what the public headers promise, not from merge.c:
 *
 *   Stages   With WEIR_ORDER_INPUT the results of a stage are put in the order in which it took their inputs, in each
 *            queue. What flushes produce follows, in the order of the numbers of the last inputs, one worker after the
 *            other.
 *   Merges   By arrival: in the order in which the items were put, in each epoch. Round robin: the next input that is not
 *            at its end. At random: the draws of the seed and the epoch, in which an input takes part until a draw hits it
 *            at its end.
 *   Weights  Each open input gains its weight, and the one with the most credit is next, and pays for all. The
 *            schedule decides when a merge gets to know that an input is at its end. So an input at its end may gain
 *            once more, and the others may pay for it. But if it is selected, that selection is as if it had not
 *            been. A set of credits is possible if some knowledge of the ends leads to it. Each item must come from
 *            an input that some possible credits select.
 *
 * Held constant: at most three inputs; runs without a stop or failure (of others the ends are not known); an epoch has at
 * most MAX_EPOCH_ITEMS items.
 */
#include "tests/core_order.h"

#include <string.h>

#include "common/random.h"

enum { MAX_EPOCHS = 8, MAX_EPOCH_ITEMS = 256, MAX_STATES = 64 };

/* How one merge took the items of one epoch. */
typedef struct merged_epoch {
    uint32_t num_put, num_taken;
    uint64_t put[MAX_EPOCH_ITEMS]; /* the items, in this order into its inputs */
    struct {
        uint64_t id;
        uint32_t input;
    } taken[MAX_EPOCH_ITEMS];
} merged_epoch;

typedef struct credit_set {
    uint32_t num;
    int64_t credits[MAX_STATES][MAX_ENDS];
} credit_set;

static core_driver *watched;
static merged_epoch merged[MAX_NODES][MAX_EPOCHS];
static uint64_t taken_as[MAX_DRIVER_ITEMS + 1];  /* of each item: the number of the input that a stage took */
static uint64_t made_from[MAX_DRIVER_ITEMS + 1]; /* of each result: that number; 0 = by a flush */
static uint64_t last_put[MAX_NODES][MAX_ENDS], num_takes; /* of each queue in the order of inputs */
static uint64_t last_flushed[MAX_NODES], flush_epoch[MAX_NODES];
static const char *broken;
static bool too_many; /* for the arrays above: nothing is said about this run */

static void must_hold(bool holds, const char *what)
{
    if (!holds && !broken)
        broken = what;
}

/* ---- what happens --------------------------------------------------------------------------------------------- */

static uint64_t id_of(const weir_item *item)
{
    uint64_t id = (uintptr_t)item->data;
    too_many |= id > MAX_DRIVER_ITEMS || item->epoch >= MAX_EPOCHS;
    return too_many ? 0 : id;
}

static void see_put(const weir__queue *queue, uint64_t id)
{
    const weir__core_node *node = queue->producer;
    if (!node->has_tasks || node->order != WEIR_ORDER_INPUT || node->num_ins == 0 || !made_from[id])
        return;
    uint64_t *last = &last_put[node->index][queue - node->outs];
    must_hold(made_from[id] >= *last, "a stage in the order of its inputs has put a result before an earlier one");
    *last = made_from[id];
}

static uint32_t input_of(const weir__core_node *merge, const weir__queue *queue)
{
    uint32_t i = 0;
    while (merge->ins[i] != queue)
        i++;
    return i;
}

static void see_merge(const weir__queue *queue, const weir_item *item, bool is_put, bool is_taken)
{
    const weir__core_node *node = queue->consumer;
    merged_epoch *epoch = &merged[node->index][item->epoch];
    if (epoch->num_put == MAX_EPOCH_ITEMS) {
        too_many = true;
        return;
    }
    if (is_put)
        epoch->put[epoch->num_put++] = id_of(item);
    if (is_taken) {
        epoch->taken[epoch->num_taken].id = id_of(item);
        epoch->taken[epoch->num_taken++].input = input_of(node, queue);
    }
}

static void see_level(const weir__queue *queue, weir_trace_kind kind, const weir_item *item, bool dropped)
{
    bool is_put = kind == WEIR_TRACE_PUT || kind == WEIR_TRACE_PASS;
    bool is_taken = kind == WEIR_TRACE_GET || kind == WEIR_TRACE_PASS;
    uint64_t id = id_of(item);
    if (too_many || dropped || (!is_put && !is_taken))
        return;
    if (is_put)
        see_put(queue, id);
    if (queue->consumer && queue->consumer->num_ins > 1)
        see_merge(queue, item, is_put, is_taken);
    if (is_taken && queue->consumer && queue->consumer->has_tasks)
        taken_as[id] = ++num_takes;
}

static void see_state(const weir__core_slot *slot, slot_state state, int64_t at_ns)
{
    (void)state;
    must_hold(at_ns <= slot->node->graph->now_ns, "a slot enters a state in the future");
}

static void see_task(const weir__core_slot *slot, bool dropped)
{
    (void)slot;
    (void)dropped;
}

static void see_result(const weir__core_slot *slot)
{
    weir__core_node *node = slot->node;
    if (!slot->flushing)
        return;
    bool is_new = flush_epoch[node->index] != slot->in.epoch + 1;
    must_hold(is_new || slot->in.seq >= last_flushed[node->index],
              "workers are not flushed in the order of their last inputs");
    flush_epoch[node->index] = slot->in.epoch + 1;
    last_flushed[node->index] = slot->in.seq;
}

void order_made(core_driver *driver, const driver_slot *slot, uint64_t id)
{
    uint64_t in = (uintptr_t)slot->core.in.data;
    if (!driver->graph.recorder || id > MAX_DRIVER_ITEMS || in > MAX_DRIVER_ITEMS)
        return;
    made_from[id] = slot->core.flushing ? 0 : taken_as[in];
}

void order_begin(core_driver *driver)
{
    static const weir__recorder recorder = { see_state, see_level, see_task, see_result };
    driver->graph.recorder = &recorder;
    watched = driver;
    broken = NULL;
    too_many = false;
    num_takes = 0;
    for (uint32_t i = 0; i < driver->graph.num_nodes; i++)
        for (uint32_t j = 0; j < MAX_EPOCHS; j++)
            merged[i][j].num_put = merged[i][j].num_taken = 0;
    memset(taken_as, 0, sizeof taken_as);
    memset(made_from, 0, sizeof made_from);
    memset(last_put, 0, sizeof last_put);
    memset(flush_epoch, 0, sizeof flush_epoch);
}

/* ---- merges --------------------------------------------------------------------------------------------------- */

static bool follows_arrival(const merged_epoch *epoch)
{
    for (uint32_t i = 0; i < epoch->num_taken; i++)
        if (epoch->taken[i].id != epoch->put[i])
            return false;
    return true;
}

static bool follows_rotation(const weir__core_node *node, const merged_epoch *epoch, uint32_t *left)
{
    for (uint32_t i = 0, next = 0; i < epoch->num_taken; i++, next++) {
        while (!left[next % node->num_ins])
            next++;
        if (epoch->taken[i].input != next % node->num_ins)
            return false;
        left[next % node->num_ins]--;
    }
    return true;
}

static bool follows_draws(const weir__core_node *node, uint64_t number, const merged_epoch *epoch, uint32_t *left)
{
    uint64_t state = weir__random_seed(node->merge_seed, number), weights[MAX_ENDS], all = 0;
    for (uint32_t i = 0; i < node->num_ins; i++)
        all += weights[i] = node->weights[i];
    for (uint32_t i = 0; i < epoch->num_taken;) {
        uint64_t value = weir__random_below(&state, all);
        uint32_t input = 0;
        for (; value >= weights[input]; input++)
            value -= weights[input];
        if (!left[input]) {
            all -= weights[input];
            weights[input] = 0;
            continue;
        }
        if (epoch->taken[i++].input != input)
            return false;
        left[input]--;
    }
    return true;
}

static void add_credits(credit_set *set, const int64_t *credits, uint32_t num_ins)
{
    for (uint32_t i = 0; i < set->num; i++)
        if (memcmp(set->credits[i], credits, num_ins * sizeof *credits) == 0)
            return;
    if (set->num == MAX_STATES)
        too_many = true;
    else
        memcpy(set->credits[set->num++], credits, num_ins * sizeof *credits);
}

/* The credits after the selection of `wanted`, for each way in which inputs at their ends (left = 0) may count as open. If
   one of these is selected, nothing has happened, but that it is at its end is known. */
static void add_selections(const weir__core_node *node, const int64_t *before, const uint32_t *left, uint32_t wanted,
                           credit_set *to)
{
    for (uint32_t open = 0; open < 1u << node->num_ins; open++) {
        int64_t credits[MAX_ENDS], all = 0;
        uint32_t due = node->num_ins;
        bool is_possible = true;
        for (uint32_t i = 0; i < node->num_ins; i++) {
            bool is_open = open >> i & 1;
            is_possible &= is_open || !left[i];
            credits[i] = before[i] + (is_open ? node->weights[i] : 0);
            all += is_open ? node->weights[i] : 0;
            if (is_open && (due == node->num_ins || credits[i] > credits[due]))
                due = i;
        }
        if (!is_possible || due != wanted)
            continue;
        credits[due] -= all;
        add_credits(to, credits, node->num_ins);
    }
}

static bool follows_weights(const weir__core_node *node, const merged_epoch *epoch, uint32_t *left)
{
    credit_set sets[2] = { { .num = 1 } };
    memset(sets[0].credits[0], 0, sizeof sets[0].credits[0]);
    for (uint32_t i = 0; i < epoch->num_taken && !too_many; i++) {
        const credit_set *from = &sets[i % 2];
        credit_set *to = &sets[(i + 1) % 2];
        to->num = 0;
        for (uint32_t j = 0; j < from->num; j++)
            add_selections(node, from->credits[j], left, epoch->taken[i].input, to);
        if (to->num == 0)
            return false;
        left[epoch->taken[i].input]--;
    }
    return true;
}

/* `left`: the items of each input that are still to be taken. A merge that ends with its first input skips none. */
static bool follows_order(const weir__core_node *node, uint64_t number, const merged_epoch *epoch)
{
    uint32_t left[MAX_ENDS];
    for (uint32_t i = 0; i < node->num_ins; i++)
        left[i] = node->merge_end == WEIR_MERGE_END_FIRST ? UINT32_MAX : 0;
    for (uint32_t i = 0; i < epoch->num_taken && node->merge_end == WEIR_MERGE_END_LAST; i++)
        left[epoch->taken[i].input]++;
    switch (node->merge_order) {
    case WEIR_MERGE_ROUND_ROBIN: return follows_rotation(node, epoch, left);
    case WEIR_MERGE_WEIGHTED: return follows_weights(node, epoch, left);
    case WEIR_MERGE_RANDOM: return follows_draws(node, number, epoch, left);
    default: return follows_arrival(epoch);
    }
}

void order_check(core_driver *driver)
{
    const weir__graph *graph = &driver->graph;
    if (!graph->recorder || watched != driver || too_many)
        return;
    for (uint32_t i = 0; i < graph->num_nodes && !graph->stopped && !graph->failed; i++) {
        const weir__core_node *node = graph->nodes[i];
        for (uint32_t j = 0; j < MAX_EPOCHS && node->num_ins > 1 && node->order != WEIR_ORDER_INPUT; j++)
            must_hold(follows_order(node, j, &merged[i][j]), "a merge does not follow its order");
    }
    if (broken && !driver->broken && !too_many)
        driver->broken = broken;
}
