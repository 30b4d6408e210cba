/*
 * Which input is next. Most nodes have one. A merge has several, and takes the item that arrived first, or takes turns.
 *
 * Turns are those of smooth weighted round robin (as nginx balances load): each open input gains its weight as credit,
 * the one with the most credit is due and pays the sum of all weights. With weights 3 and 1 that is A A B A. An input
 * that has come to the end of its epoch, or of everything, is left out until all have.
 */
#include "queue.h"

static bool is_takable(const weir_queue *in)
{
    return in->depth > 0 && !is_epoch_end(&in->entries[in->head].item);
}

/* Nothing more is to come in this epoch. */
static bool is_finished(const weir_queue *in)
{
    return in->depth > 0 ? is_epoch_end(&in->entries[in->head].item) : in->closed;
}

static weir_queue *choose_by_arrival(weir_node *node)
{
    weir_queue *first = NULL;
    for (uint32_t i = 0; i < node->num_ins; i++) {
        weir_queue *in = node->ins[i];
        if (is_takable(in) && (!first || in->entries[in->head].arrival < first->entries[first->head].arrival))
            first = in;
    }
    return first;
}

static weir_queue *choose_due(weir_node *node)
{
    if (node->due_in && !is_finished(node->due_in))
        return node->due_in;

    int64_t all_weights = 0;
    uint32_t due = node->num_ins;
    for (uint32_t i = 0; i < node->num_ins; i++) {
        if (is_finished(node->ins[i]))
            continue;
        int64_t weight = node->weights ? node->weights[i] : 1;
        node->credits[i] += weight;
        all_weights += weight;
        if (due == node->num_ins || node->credits[i] > node->credits[due])
            due = i;
    }
    node->due_in = NULL;
    if (due < node->num_ins) {
        node->credits[due] -= all_weights;
        node->due_in = node->ins[due];
    }
    return node->due_in;
}

weir_queue *weir_merge_choose_locked(weir_node *node)
{
    if (node->cancelled || node->passing_epoch)
        return NULL;
    if (node->num_ins == 1)
        return is_takable(node->ins[0]) ? node->ins[0] : NULL;
    if (node->merge_order == WEIR_MERGE_ARRIVAL)
        return choose_by_arrival(node);
    weir_queue *due = choose_due(node);
    return due && is_takable(due) ? due : NULL;
}

bool weir_merge_takes_directly_locked(weir_node *node, const weir_queue *in)
{
    if (!node->idle || node->cancelled || node->passing_epoch || in->depth > 0)
        return false;
    return node->num_ins == 1 || node->merge_order == WEIR_MERGE_ARRIVAL || choose_due(node) == in;
}

void weir_merge_taken_locked(weir_node *node)
{
    node->due_in = NULL;
}
