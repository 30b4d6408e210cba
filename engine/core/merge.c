/*
 * Selects the next input. Most nodes have one. A merge has several, and takes the item that arrived first, or
 * selects an input and waits for it.
 *
 * Round robin goes from the last input that gave an item to the next one that has not ended. Weights use smooth
 * weighted round robin, the load-balancing method of nginx. Each open input gains its weight as credit. The one with
 * the most credit is next, and pays the sum of all weights. With weights 3 and 1 that gives A A B A. If the next
 * input ends without an item, its selection is undone: the previous credits are restored. An input that has reached
 * the end of its epoch, or of the stream, is skipped until all have.
 *
 * Random draws must not depend on when the end of an input becomes known. So all inputs take part in a draw, until a
 * draw selects one that has ended: it is left out from then on, and the next draw decides.
 *
 * A merge that ends with the first input does not skip: it ends when the selected input has ended.
 */
#include "engine/core/merge.h"

#include <string.h>

#include "common/random.h"
#include "engine/core/queue.h"

static bool is_takable(const weir__queue *in)
{
    return in->depth > 0 && !weir__is_epoch_end(&in->entries[in->head].item);
}

/* No more items in this epoch. */
static bool is_finished(const weir__queue *in)
{
    return in->depth > 0 ? weir__is_epoch_end(&in->entries[in->head].item) : in->closed;
}

static weir__queue *choose_by_arrival(const weir__core_node *node)
{
    weir__queue *first = NULL;
    for (uint32_t i = 0; i < node->num_ins; i++) {
        weir__queue *in = node->ins[i];
        if (is_takable(in) && (!first || in->entries[in->head].arrival < first->entries[first->head].arrival))
            first = in;
    }
    return first;
}

/* ---- a join that restores the order ------------------------------------------------------------------------- */

/* A failure drops items anywhere: from then on the remaining items come as they arrive. */
static bool restores_order(const weir__core_node *node)
{
    return node->num_ins > 1 && node->order == WEIR_ORDER_INPUT && !node->graph->failed;
}

static uint64_t lesser_of(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t least_in_queue(const weir__queue *queue)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < queue->depth; i++) {
        const weir_item *item = weir__queue_item_at(queue, queue->head + i);
        if (!weir__is_epoch_end(item))
            least = lesser_of(least, item->order_number);
    }
    return least;
}

/* A slot that flushes counts, too, though no rule asks for it. What a flush makes may come after later items of other
   branches (weir_builder_join()). It does if these come to the join before the flush begins. But the join waits for a
   flush that has begun, so more of its results come in their place. That delays no other result for good: a flush
   ends. */
static uint64_t least_in_slots(const weir__core_node *node)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < node->num_made; i++) {
        const weir__core_slot *slot = node->slots[i];
        if (slot->has_in || slot->has_out || slot->flushing)
            least = lesser_of(least, slot->order_number);
    }
    return least;
}

/* The smallest order number between the route (exclusive) and the end of this queue. UINT64_MAX = no items. Every
   node in between keeps its order, so no smaller number can come out of the queue. */
static uint64_t least_inside(const weir__queue *queue, const weir__core_node *route)
{
    uint64_t least = least_in_queue(queue);
    const weir__core_node *node = queue->producer;
    if (node == route)
        return least;
    least = lesser_of(least, least_in_slots(node));
    for (uint32_t i = 0; node->num_ins > 1 && i < node->num_ins; i++)
        least = lesser_of(least, least_inside(node->ins[i], node->route));
    if (node->num_ins > 1) {
        node = node->route;
        least = lesser_of(least, least_in_slots(node));
    }
    return lesser_of(least, least_inside(node->ins[0], route));
}

static weir__queue *choose_by_order_number(const weir__core_node *node)
{
    weir__queue *first = NULL;
    for (uint32_t i = 0; i < node->num_ins; i++) {
        weir__queue *in = node->ins[i];
        if (is_takable(in) &&
            (!first || in->entries[in->head].item.order_number < first->entries[first->head].item.order_number))
            first = in;
    }
    for (uint32_t i = 0; first && i < node->num_ins; i++) {
        const weir__queue *in = node->ins[i];
        if (in->depth == 0 && !in->closed &&
            least_inside(in, node->route) < first->entries[first->head].item.order_number)
            return NULL;
    }
    return first;
}

/* ---- selection ---------------------------------------------------------------------------------------------- */

static bool is_skipped(const weir__core_node *node, uint32_t input)
{
    return node->merge_end == WEIR_MERGE_END_LAST && is_finished(node->ins[input]);
}

/* The index of the next input; num_ins = all have ended. */
static uint32_t next_in_rotation(const weir__core_node *node)
{
    uint32_t last = node->last_taken < node->num_ins ? node->last_taken : node->num_ins - 1;
    for (uint32_t step = 1; step <= node->num_ins; step++) {
        uint32_t i = (last + step) % node->num_ins;
        if (!is_skipped(node, i))
            return i;
    }
    return node->num_ins;
}

static uint32_t next_by_weight(weir__core_node *node)
{
    int64_t all_weights = 0;
    uint32_t due = node->num_ins;
    memcpy(node->credits + node->num_ins, node->credits, node->num_ins * sizeof *node->credits);
    for (uint32_t i = 0; i < node->num_ins; i++) {
        if (is_skipped(node, i))
            continue;
        node->credits[i] += node->weights[i];
        all_weights += node->weights[i];
        if (due == node->num_ins || node->credits[i] > node->credits[due])
            due = i;
    }
    if (due < node->num_ins)
        node->credits[due] -= all_weights;
    return due;
}

/* The first draw of an input that has not ended, or has not been found to have. */
static uint32_t next_at_random(weir__core_node *node)
{
    for (;;) {
        uint64_t all_weights = 0;
        uint32_t due = 0;
        for (uint32_t i = 0; i < node->num_ins; i++)
            all_weights += (uint64_t)node->credits[i];
        if (all_weights == 0)
            return node->num_ins;
        uint64_t value = weir__random_below(&node->merge_random, all_weights);
        for (; value >= (uint64_t)node->credits[due]; due++)
            value -= (uint64_t)node->credits[due];
        if (!is_skipped(node, due))
            return due;
        node->credits[due] = 0;
    }
}

static weir__queue *choose_due(weir__core_node *node)
{
    bool is_random = node->merge_order == WEIR_MERGE_RANDOM;
    if (node->merge_order == WEIR_MERGE_ROUND_ROBIN) {
        node->due = next_in_rotation(node);
    } else if (node->due < node->num_ins && is_skipped(node, node->due)) {
        if (is_random)
            node->credits[node->due] = 0;
        else
            memcpy(node->credits, node->credits + node->num_ins, node->num_ins * sizeof *node->credits);
        node->due = node->num_ins;
    }
    if (node->due == node->num_ins && node->merge_order != WEIR_MERGE_ROUND_ROBIN)
        node->due = is_random ? next_at_random(node) : next_by_weight(node);
    return node->due < node->num_ins ? node->ins[node->due] : NULL;
}

bool weir__merge_is_over(weir__core_node *node)
{
    if (node->merge_end == WEIR_MERGE_END_LAST)
        return false;
    if (node->merge_order != WEIR_MERGE_ARRIVAL)
        return is_finished(choose_due(node));
    bool is_over = false;
    for (uint32_t i = 0; i < node->num_ins; i++)
        is_over |= is_finished(node->ins[i]);
    return is_over;
}

weir__queue *weir__merge_choose(weir__core_node *node)
{
    if (node->cancelled || node->passing_epoch)
        return NULL;
    if (node->num_ins == 1)
        return is_takable(node->ins[0]) ? node->ins[0] : NULL;
    if (restores_order(node))
        return choose_by_order_number(node);
    if (weir__merge_is_over(node))
        return NULL;
    if (node->merge_order == WEIR_MERGE_ARRIVAL)
        return choose_by_arrival(node);
    weir__queue *due = choose_due(node);
    return due && is_takable(due) ? due : NULL;
}

bool weir__merge_takes_directly(weir__core_node *node, const weir__queue *in)
{
    if (restores_order(node))
        return false; /* another input may be first */
    if (!node->idle || node->cancelled || node->passing_epoch || in->depth > 0)
        return false;
    if (node->num_ins == 1)
        return true;
    return !weir__merge_is_over(node) && (node->merge_order == WEIR_MERGE_ARRIVAL || choose_due(node) == in);
}

void weir__merge_taken(weir__core_node *node, const weir__queue *in)
{
    node->due = node->num_ins;
    for (uint32_t i = 0; node->num_ins > 1 && i < node->num_ins; i++)
        if (node->ins[i] == in)
            node->last_taken = i;
}

void weir__merge_new_epoch(weir__core_node *node)
{
    node->due = node->last_taken = node->num_ins;
    if (!node->credits)
        return;
    memset(node->credits, 0, 2 * node->num_ins * sizeof *node->credits);
    if (node->merge_order != WEIR_MERGE_RANDOM)
        return;
    node->merge_random = weir__random_seed(node->merge_seed, node->merge_epoch++);
    for (uint32_t i = 0; i < node->num_ins; i++)
        node->credits[i] = node->weights ? node->weights[i] : 1;
}
