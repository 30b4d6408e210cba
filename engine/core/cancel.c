/*
 * Stop and failure. A cancelled node starts no task: its running tasks are asked to stop, and the thread that picks a
 * slot next releases what the slot holds. A failure cancels the failing node (except for the results that it has
 * already made) and everything upstream of it, and ends the other sources. Nodes downstream or in other chains run on
 * until they get no more input.
 */
#include "engine/core/handoff.h"
#include "engine/core/queue.h"

void weir__graph_stop(weir__graph *graph)
{
    if (graph->stopped || graph->over)
        return;
    graph->stopped = true;
    graph->consumable = true;
    graph->news |= WEIR__NEWS_STOPPED;
    for (uint32_t i = 0; i < graph->num_nodes; i++)
        weir__node_cancel(graph->nodes[i], false);
    weir__graph_check_over(graph);
}

/* ---- leftover items ----------------------------------------------------------------------------------------- */

/* The queue is empty: what was set aside for it is in its first entries. */
static void take_aside(weir__queue *queue, weir_item *item)
{
    *item = queue->entries[queue->head].item;
    queue->head = queue_after(queue, queue->head);
    queue->num_aside--;
    queue->producer->num_aside--;
    queue->producer->account.dropped++;
}

static bool take_from_queues(weir__core_node *node, weir_item *item)
{
    for (uint32_t i = 0; i < node->num_outs; i++) {
        weir__queue *queue = &node->outs[i];
        if (queue->depth == 0 && queue->num_aside) {
            take_aside(queue, item);
            return true;
        }
        if (queue->depth == 0)
            continue;
        queue_pop(queue, item, node->graph->now_ns, true);
        queue->total_dropped += !weir__is_epoch_end(item);
        return true;
    }
    return false;
}

bool weir__leftover_take(weir__graph *graph, weir_item *item)
{
    for (uint32_t i = 0; i < graph->num_nodes; i++) {
        weir__core_node *node = graph->nodes[i];
        if (take_from_queues(node, item))
            return true;
        if (node->has_tasks || !node->slots[0]->has_out)
            continue;
        *item = node->slots[0]->out;
        node->slots[0]->has_out = false;
        node->account.dropped++;
        return true;
    }
    return false;
}
