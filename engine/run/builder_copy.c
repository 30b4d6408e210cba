/*
 * One description made of another. A config is copied as when it was given: op->config_init() gets the bytes of one that it
 * has already checked, and duplicates what they point to.
 */
#include "engine/run/builder.h"

#include <stdlib.h>
#include <string.h>

/* What is copied: copies[i] is the copy of node i, NULL = it has none. */
typedef struct copying {
    const weir_builder *from;
    weir_builder *to;
    weir_node **copies;
    bool in_order; /* stages keep the order of their inputs */
} copying;

static int copying_begin(copying *work, const weir_builder *from)
{
    *work = (copying){ .from = from };
    work->to = weir_builder_new();
    work->copies = calloc(from->num_nodes + 1, sizeof(weir_node *));
    if (work->to && work->copies)
        return WEIR_OK;
    weir_builder_free(work->to);
    free(work->copies);
    return WEIR_ENOMEM;
}

static uint32_t index_of(const weir_builder *builder, const weir__core_node *core)
{
    uint32_t index = 0;
    while (&builder->nodes[index]->core != core)
        index++;
    return index;
}

static weir_node *copy_of(const copying *work, const weir__core_node *core)
{
    return work->copies[index_of(work->from, core)];
}

static weir__queue *copy_of_queue(const copying *work, const weir__queue *queue)
{
    return &copy_of(work, queue->producer)->core.outs[queue - queue->producer->outs];
}

static int copy_merging(const copying *work, weir_node *copy, const weir_node *node)
{
    copy->core.merge_order = node->core.merge_order;
    copy->core.merge_end = node->core.merge_end;
    copy->core.merge_seed = node->core.merge_seed;
    copy->core.route = node->core.route ? &copy_of(work, node->core.route)->core : NULL;
    if (!node->core.weights)
        return WEIR_OK;
    size_t size = node->core.num_ins * sizeof *node->core.weights;
    copy->core.weights = malloc(size);
    if (!copy->core.weights)
        return WEIR_ENOMEM;
    memcpy(copy->core.weights, node->core.weights, size);
    return WEIR_OK;
}

static int make_copy(copying *work, const weir_node *node, weir__queue **ins, weir_node **copy)
{
    weir_node_spec spec = weir__node_spec(node);
    weir_stage_options options = weir__node_options(node);
    bool is_route_of_many = spec.kind == NODE_ROUTE && options.concurrency > 1;
    if (work->in_order && (spec.kind == NODE_STAGE || spec.kind == NODE_JOIN || is_route_of_many))
        options.output_order = WEIR_ORDER_INPUT;
    for (uint32_t i = 0; i < spec.num_ins; i++)
        ins[i] = copy_of_queue(work, node->core.ins[i]);
    spec.ins = ins;
    int status = weir__node_new(&spec, &options, copy, &work->to->error);
    return status == WEIR_OK ? copy_merging(work, *copy, node) : status;
}

static int copy_node(copying *work, uint32_t index)
{
    const weir_node *node = work->from->nodes[index];
    weir_node *copy = NULL;
    weir__queue **ins = calloc(node->core.num_ins + 1, sizeof(weir__queue *));
    int status = ins ? make_copy(work, node, ins, &copy) : WEIR_ENOMEM;
    free(ins);
    if (status == WEIR_OK)
        status = weir__builder_append(work->to, copy);
    if (status == WEIR_OK) {
        work->copies[index] = copy;
        return WEIR_OK;
    }
    weir__node_free(copy);
    if (!work->to->error.status)
        weir_error_set(&work->to->error, status, 0, "no memory for a copy of the stage");
    weir__builder_remember_error(work->to, status, node->short_name);
    return status;
}

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

static int copy_open_parts(copying *work)
{
    const weir_builder *from = work->from;
    weir_builder *to = work->to;
    int status = WEIR_OK;
    for (uint32_t i = 0; i < from->num_ends && status == WEIR_OK; i++)
        status = weir__builder_open_end(to, copy_of_queue(work, from->ends[i]));
    if (status != WEIR_OK || from->num_routes == 0)
        return status;
    to->routes = calloc(from->num_routes, sizeof *to->routes);
    if (!to->routes)
        return WEIR_ENOMEM;
    for (; to->num_routes < from->num_routes; to->num_routes++) {
        to->routes[to->num_routes] = from->routes[to->num_routes];
        to->routes[to->num_routes].node = copy_of(work, &from->routes[to->num_routes].node->core);
    }
    return WEIR_OK;
}

weir_builder *weir_builder_copy(const weir_builder *builder)
{
    copying work;
    if (!builder || copying_begin(&work, builder) != WEIR_OK)
        return NULL;
    work.to->error = builder->error; /* then nothing will be built of either */
    work.to->has_sink = builder->has_sink;
    int status = builder->error.status;
    for (uint32_t i = 0; i < builder->num_nodes && status == WEIR_OK; i++)
        status = copy_node(&work, i);
    if (status == WEIR_OK && copy_open_parts(&work) != WEIR_OK)
        weir_error_set(&work.to->error, WEIR_ENOMEM, 0, "no memory for a copy of the description");
    free(work.copies);
    return work.to;
}

/* ---- a part of it ------------------------------------------------------------------------------------------------- */

/* Marks what is upstream of a node, and not the node itself. */
static void mark_upstream(const weir_builder *builder, uint32_t index, bool *wanted)
{
    wanted[index] = true;
    for (uint32_t i = index + 1; i-- > 0;) /* upstream first */
        for (uint32_t j = 0; wanted[i] && j < builder->nodes[i]->core.num_ins; j++)
            wanted[index_of(builder, builder->nodes[i]->core.ins[j]->producer)] = true;
    wanted[index] = false;
}

/* The index of a wanted route whose join is not; num_nodes = none. */
static uint32_t find_cut_route(const weir_builder *builder, const bool *wanted)
{
    for (uint32_t i = 0; i < builder->num_nodes; i++) {
        bool is_cut = wanted[i] && weir__node_kind(builder->nodes[i]) == NODE_ROUTE;
        for (uint32_t j = i + 1; is_cut && j < builder->num_nodes; j++)
            is_cut = !wanted[j] || builder->nodes[j]->core.route != &builder->nodes[i]->core;
        if (is_cut)
            return i;
    }
    return builder->num_nodes;
}

static int copy_wanted(const weir_builder *builder, uint32_t index, const bool *wanted, weir_builder **made,
                       weir_error *error)
{
    copying work;
    const weir__queue *feed = builder->nodes[index]->core.ins[0];
    uint32_t route = find_cut_route(builder, wanted);
    if (route < builder->num_nodes)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "the stage is in a branch of route %s, which decides what it gets",
                              builder->nodes[route]->short_name);
    if (copying_begin(&work, builder) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a copy of the description");
    work.in_order = true;
    int status = WEIR_OK;
    for (uint32_t i = 0; i < index && status == WEIR_OK; i++)
        if (wanted[i])
            status = copy_node(&work, i);
    if (status == WEIR_OK && weir__builder_open_end(work.to, copy_of_queue(&work, feed)) != WEIR_OK)
        weir_error_set(&work.to->error, WEIR_ENOMEM, 0, "no memory for a copy of the description");
    free(work.copies);
    *made = work.to;
    return WEIR_OK;
}

int weir__builder_copy_upstream(const weir_builder *builder, uint32_t index, weir_builder **made, weir_error *error)
{
    bool *wanted = calloc(builder->num_nodes, sizeof *wanted);
    if (!wanted)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a copy of the description");
    mark_upstream(builder, index, wanted);
    int status = copy_wanted(builder, index, wanted, made, error);
    free(wanted);
    return status;
}
