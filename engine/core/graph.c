/* Before the first event, the first event, and changes of the number of slots. */
#include "engine/core/handoff.h"
#include "engine/core/merge.h"
#include "engine/core/slots.h"

void weir__epoch_end_release(void *data, void *self)
{
    (void)data;
    (void)self;
}

/* The join restores the order in which items entered its route: all nodes between the two keep their order, joins
   included, and the outermost such route numbers the items. */
static void keep_order(weir__graph *graph, weir__core_node *join)
{
    for (uint32_t i = join->route->index + 1; i < join->index; i++)
        if (graph->nodes[i]->route && graph->nodes[i]->order != WEIR_ORDER_INPUT) {
            graph->nodes[i]->order = WEIR_ORDER_INPUT;
            keep_order(graph, graph->nodes[i]);
        }
    join->route->order = WEIR_ORDER_INPUT;
    join->route->numbers_inputs = true;
    for (uint32_t i = join->route->index + 1; i < join->index; i++) {
        weir__core_node *inside = graph->nodes[i];
        inside->order = WEIR_ORDER_INPUT;
        inside->numbers_inputs = false;
        if (!inside->ordered_join)
            inside->ordered_join = join;
    }
}

/* Without order, flushes and limits of bytes; and a rate of failures is checked after each task. */
static bool may_run_ahead(const weir__core_node *node)
{
    return node->has_tasks && !node->has_flush && !node->ordered_join && node->order != WEIR_ORDER_INPUT &&
           node->num_outs == 1 && node->outs[0].capacity_bytes == UINT64_MAX &&
           node->max_failures.kind != WEIR_FAILURES_RATE;
}

static void prepare_node(weir__core_node *node, int64_t now_ns)
{
    weir__merge_new_epoch(node);
    node->may_run_ahead = node->may_run_ahead && may_run_ahead(node);
    for (uint32_t i = 0; i < node->num_outs; i++)
        node->outs[i].level_since_ns = now_ns;
    for (uint32_t i = 0; i < node->num_made; i++) {
        node->slots[i]->since_ns = now_ns;
        weir__slot_enter_idle(node->slots[i]);
    }
}

static void limit_look_ahead(weir__core_node *node)
{
    if (node->num_outs == 1 || node->ordered_join || node->numbers_inputs)
        node->look_ahead = 0;
}

/* Nodes on the longest way to the sink: less than the number of nodes, and less downstream than upstream. */
static uint32_t distance_to_sink(const weir__core_node *node)
{
    uint32_t distance = 0;
    for (uint32_t i = 0; i < node->num_outs; i++) {
        const weir__core_node *next = node->outs[i].consumer;
        if (next && next->rank + 1 > distance)
            distance = next->rank + 1;
    }
    return distance;
}

void weir__graph_prepare(weir__graph *graph, int64_t now_ns)
{
    graph->now_ns = now_ns;
    graph->live_nodes = graph->num_nodes;
    graph->to_cancel_end = &graph->to_cancel;
    for (uint32_t i = graph->num_nodes; i-- > 0;)
        graph->nodes[i]->rank = distance_to_sink(graph->nodes[i]);
    for (uint32_t i = 0; i < graph->num_nodes; i++) {
        weir__core_node *node = graph->nodes[i];
        graph->live_sources += node->num_ins == 0;
        if (node->route && node->order == WEIR_ORDER_INPUT)
            keep_order(graph, node); /* inner joins come first, and have not been told to keep an outer order */
        prepare_node(node, now_ns);
    }
    for (uint32_t i = 0; i < graph->num_nodes; i++)
        limit_look_ahead(graph->nodes[i]); /* the joins behind it have given it their order */
}

void weir__graph_start(weir__graph *graph)
{
    for (uint32_t i = 0; i < graph->num_nodes; i++) {
        weir__core_node *node = graph->nodes[i];
        node->state = node->has_stage_hooks ? NODE_STARTING : NODE_OPEN;
        if (node->has_stage_hooks)
            weir__slot_make_ready(node->lifecycle);
    }
    for (uint32_t i = 0; i < graph->num_nodes; i++)
        if (graph->nodes[i]->num_ins == 0)
            weir__slot_next_input(weir__slot_take_idle(graph->nodes[i]));
}

/* ---- the number of slots ---------------------------------------------------------------------------------------- */

void weir__node_add_slots(weir__core_node *node, weir__core_slot **slots, uint32_t num_made)
{
    for (uint32_t i = node->num_made; i < num_made; i++) {
        slots[i]->state = SLOT_RETIRED;
        slots[i]->since_ns = node->graph->now_ns;
    }
    node->slots = slots;
    node->num_made = num_made;
}

void weir__node_set_slots(weir__core_node *node, uint32_t num_wanted)
{
    node->num_wanted = num_wanted;
    for (uint32_t i = 0; i < node->num_made && node->num_slots < num_wanted; i++) {
        if (node->slots[i]->state != SLOT_RETIRED)
            continue;
        node->num_slots++;
        weir__slot_enter_idle(node->slots[i]);
    }
    while (node->idle && node->num_slots > num_wanted) {
        weir__slot_enter(weir__slot_take_idle(node), SLOT_RETIRED);
        node->num_slots--;
    }
    weir__node_resume(node);
}
