/*
 * Collects the description of a pipeline, checks it, and makes a running pipeline from it.
 *
 * The builder tracks the queues without a consumer, the open ends. A stage takes the last open end as input, and its
 * own queue replaces it; a source adds one; a merge replaces all by one. Inside a route, the open ends of finished
 * branches wait on the stack of routes until the join.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/struct_copy.h>

#include "engine/run/builder.h"
#include "engine/run/pipeline_start.h"

enum { MAX_BRANCHES = 1024, DEFAULT_LOOK_AHEAD_ITEMS = 16 };

weir_builder *weir_builder_new(void)
{
    return calloc(1, sizeof(weir_builder));
}

void weir_builder_free(weir_builder *builder)
{
    if (!builder)
        return;
    for (uint32_t i = 0; i < builder->num_nodes; i++)
        weir__node_free(builder->nodes[i]);
    free(builder->nodes);
    free(builder->ends);
    free(builder->routes);
    free(builder);
}

/* ---- errors ------------------------------------------------------------------------------------------------- */

static bool is_usable(const weir_builder *builder)
{
    return builder && !builder->error.status;
}

void weir__builder_remember_error(weir_builder *builder, int status, const char *stage)
{
    builder->error.status = status;
    snprintf(builder->error.stage, sizeof builder->error.stage, "%s", stage ? stage : "");
}

static open_route *innermost_route(const weir_builder *builder)
{
    return builder->num_routes ? &builder->routes[builder->num_routes - 1] : NULL;
}

/* The number of open ends that the next stage could continue: those opened since the branch of the route began. */
static uint32_t num_current_ends(const weir_builder *builder)
{
    const open_route *route = innermost_route(builder);
    if (!route)
        return builder->num_ends;
    return builder->num_ends - route->ends_before - (route->branches_begun ? route->branches_begun - 1 : 0);
}

static int check_place(const weir_builder *builder, node_kind kind, weir_error *error)
{
    const open_route *route = innermost_route(builder);
    if (builder->has_sink)
        return weir_error_set(error, WEIR_EINVAL, 0, "nothing may follow the sink: call weir_builder_sink() last");
    if (route && (kind == NODE_SOURCE || kind == NODE_SINK))
        return weir_error_set(error, WEIR_EINVAL, 0, "route %s is still open: call weir_builder_join() first",
                              route->node->short_name);
    if (route && route->branches_begun == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "route %s has no branch yet: call weir_builder_branch() first",
                              route->node->short_name);
    if (kind == NODE_SOURCE)
        return WEIR_OK;
    if (num_current_ends(builder) == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "there is no source yet: call weir_builder_source() first");
    if (num_current_ends(builder) > 1 && kind == NODE_SINK)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%u sources are open: call weir_builder_merge() before weir_builder_sink()",
                              num_current_ends(builder));
    return WEIR_OK;
}

/* ---- adding nodes ------------------------------------------------------------------------------------------- */

int weir__builder_open_end(weir_builder *builder, weir__queue *end)
{
    if (builder->num_ends == builder->room_for_ends) {
        uint32_t room = builder->room_for_ends ? 2 * builder->room_for_ends : 8;
        weir__queue **ends = realloc(builder->ends, room * sizeof(weir__queue *));
        if (!ends)
            return WEIR_ENOMEM;
        builder->ends = ends;
        builder->room_for_ends = room;
    }
    builder->ends[builder->num_ends++] = end;
    return WEIR_OK;
}

int weir__builder_append(weir_builder *builder, weir_node *node)
{
    weir_node **nodes = realloc(builder->nodes, (builder->num_nodes + 1) * sizeof(weir_node *));
    if (!nodes)
        return WEIR_ENOMEM;
    builder->nodes = nodes;
    builder->nodes[builder->num_nodes++] = node;
    return WEIR_OK;
}

/* Adds the node that takes the last spec->num_ins open ends; if it has a single output queue, that queue becomes
   an open end. Returns NULL after an error. */
static weir_node *add_node(weir_builder *builder, weir_node_spec *spec, const weir_stage_options *options)
{
    weir_error *error = &builder->error;
    weir_node *node = NULL;

    int status = check_place(builder, spec->kind, error);
    bool needs_op = spec->kind == NODE_SOURCE || spec->kind == NODE_STAGE;
    if (status == WEIR_OK && needs_op && !spec->op)
        status = weir_error_set(error, WEIR_EINVAL, 0, "the operation of stage %u is NULL", builder->num_nodes);
    if (status == WEIR_OK) {
        builder->num_ends -= spec->num_ins;
        spec->ins = spec->num_ins ? &builder->ends[builder->num_ends] : NULL;
        status = weir__node_new(spec, options, &node, error);
    }
    if (status == WEIR_OK && weir__builder_append(builder, node) != WEIR_OK)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "no memory for another stage");
    else if (status == WEIR_OK && spec->num_outs == 1 &&
             weir__builder_open_end(builder, &node->core.outs[0]) != WEIR_OK)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "no memory for another stage");
    else if (status == WEIR_OK)
        return node;

    weir__builder_remember_error(builder, status, weir__node_name(spec, options));
    if (builder->num_nodes == 0 || builder->nodes[builder->num_nodes - 1] != node)
        weir__node_free(node);
    return NULL;
}

/* Copies a struct of the program to *own. False = an error, now or earlier. */
static bool copy_struct(weir_builder *builder, void *own, size_t own_size, const void *given, size_t given_size,
                        const char *name)
{
    return is_usable(builder) && weir_struct_copy(own, own_size, given, given_size, name, &builder->error) == WEIR_OK;
}

static bool copy_stage_options(weir_builder *builder, weir_stage_options *own, const weir_stage_options *given,
                               size_t given_size)
{
    return copy_struct(builder, own, sizeof *own, given, given_size, "weir_stage_options");
}

void weir_builder_source_sized(weir_builder *builder, const weir_op *op, const void *config, size_t config_size,
                               const weir_stage_options *options, size_t options_size)
{
    weir_stage_options own;
    weir_node_spec spec = {
        .kind = NODE_SOURCE, .op = op, .config = config, .config_size = config_size, .num_outs = 1
    };
    if (!copy_stage_options(builder, &own, options, options_size))
        return;
    own.name = own.name ? own.name : "src";
    add_node(builder, &spec, &own);
}

void weir_builder_pipe_sized(weir_builder *builder, const weir_op *op, const void *config, size_t config_size,
                             const weir_stage_options *options, size_t options_size)
{
    weir_stage_options own;
    weir_node_spec spec = {
        .kind = NODE_STAGE, .op = op, .config = config, .config_size = config_size, .num_ins = 1, .num_outs = 1
    };
    if (copy_stage_options(builder, &own, options, options_size))
        add_node(builder, &spec, &own);
}

void weir__builder_add_copy(weir_builder *builder, const weir_node *node, const weir_stage_options *options)
{
    weir_node_spec spec = weir__node_spec(node);
    if (is_usable(builder))
        add_node(builder, &spec, options);
}

void weir_builder_sink_sized(weir_builder *builder, const weir_stage_options *options, size_t options_size)
{
    weir_stage_options own;
    weir_node_spec spec = { .kind = NODE_SINK, .num_ins = 1, .num_outs = 1 };
    if (copy_stage_options(builder, &own, options, options_size) && add_node(builder, &spec, &own))
        builder->has_sink = true;
}

/* ---- merges and routes -------------------------------------------------------------------------------------- */

static int set_weights(weir_node *node, const weir_merge_config *config, weir_error *error)
{
    bool is_random = config->order == WEIR_MERGE_RANDOM, has_weights = config->weights || config->num_weights;
    if (config->order != WEIR_MERGE_WEIGHTED && !is_random && has_weights)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "weights are given, but order is not WEIR_MERGE_WEIGHTED or WEIR_MERGE_RANDOM");
    if (config->seed && !is_random)
        return weir_error_set(error, WEIR_EINVAL, 0, "seed is given, but order is not WEIR_MERGE_RANDOM");
    if (config->order != WEIR_MERGE_WEIGHTED && !has_weights)
        return WEIR_OK;
    if (config->num_weights != node->core.num_ins || !config->weights)
        return weir_error_set(error, WEIR_EINVAL, 0, "%zu weights are given, but %u inputs are merged",
                              config->weights ? config->num_weights : 0, node->core.num_ins);
    node->core.weights = calloc(node->core.num_ins, sizeof *node->core.weights);
    if (!node->core.weights)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the weights");
    for (uint32_t i = 0; i < node->core.num_ins; i++) {
        node->core.weights[i] = config->weights[i];
        if (node->core.weights[i] == 0)
            return weir_error_set(error, WEIR_EINVAL, 0, "weight %u is 0; leave the input out instead", i);
    }
    return WEIR_OK;
}

/* In the middle of an epoch the other sources cannot be asked to go on with the next. */
static int check_merge_end(weir_builder *builder, weir_merge_end end)
{
    if ((unsigned)end > WEIR_MERGE_END_FIRST)
        return weir_error_set(&builder->error, WEIR_EINVAL, 0, "end is %d, which is not a weir_merge_end", (int)end);
    for (uint32_t i = 0; end == WEIR_MERGE_END_FIRST && i < builder->num_nodes; i++)
        if (builder->nodes[i]->core.epochs)
            return weir_error_set(
                &builder->error, WEIR_EINVAL, 0,
                "end is WEIR_MERGE_END_FIRST, but source %s has epochs: only sources without epochs "
                "can end with the first",
                builder->nodes[i]->short_name);
    return WEIR_OK;
}

void weir_builder_merge_sized(weir_builder *builder, const weir_merge_config *config, size_t config_size,
                              const weir_stage_options *options, size_t options_size)
{
    weir_merge_config own_config;
    weir_stage_options own;
    if (!copy_struct(builder, &own_config, sizeof own_config, config, config_size, "weir_merge_config") ||
        !copy_stage_options(builder, &own, options, options_size))
        return;
    if (innermost_route(builder)) {
        weir_error_set(&builder->error, WEIR_EINVAL, 0,
                       "route %s is still open: its branches end with weir_builder_join()",
                       innermost_route(builder)->node->short_name);
        weir__builder_remember_error(builder, WEIR_EINVAL, own.name ? own.name : "merge");
        return;
    }
    weir_node_spec spec = { .kind = NODE_MERGE, .num_ins = num_current_ends(builder), .num_outs = 1 };
    weir_node *node = add_node(builder, &spec, &own);
    if (!node)
        return;
    node->core.merge_order = own_config.order;
    node->core.merge_end = own_config.end;
    node->core.merge_seed = own_config.seed;
    int status = set_weights(node, &own_config, &builder->error);
    if (status == WEIR_OK && (unsigned)own_config.order > WEIR_MERGE_RANDOM)
        status = weir_error_set(&builder->error, WEIR_EINVAL, 0, "order is %d, which is not a weir_merge_order",
                                (int)own_config.order);
    if (status == WEIR_OK)
        status = check_merge_end(builder, own_config.end);
    if (status != WEIR_OK)
        weir__builder_remember_error(builder, status, node->short_name);
}

static uint32_t look_ahead_of(const weir_route_config *config)
{
    if (config->look_ahead_items == WEIR_NO_LOOK_AHEAD)
        return 0;
    return config->look_ahead_items ? config->look_ahead_items : DEFAULT_LOOK_AHEAD_ITEMS;
}

static int check_route(void *config, weir_error *error)
{
    weir_route_config *route = config;
    if (!route->pick)
        return weir_error_set(error, WEIR_EINVAL, 0, "the route has no pick function");
    if (route->num_branches == 0 || route->num_branches > MAX_BRANCHES)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_branches is %u; a route has 1 to %d branches",
                              route->num_branches, MAX_BRANCHES);
    if (look_ahead_of(route) > WEIR_MAX_QUEUE_ITEMS)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "look_ahead_items is %u, above %d; use 0 for the default, WEIR_NO_LOOK_AHEAD for none",
                              route->look_ahead_items, WEIR_MAX_QUEUE_ITEMS);
    return WEIR_OK;
}

static int run_route(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const weir_route_config *config = weir_task_config(task);
    int branch = config->pick(config->self, in);
    if (branch < 0 || (uint32_t)branch >= config->num_branches)
        return weir_task_fail(task, WEIR_EINVAL, 0,
                              "pick returned branch %d, but there are %u branches, numbered from 0", branch,
                              config->num_branches);
    task->core.out_index = (uint32_t)branch;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op route_op = {
    .name = "route",
    .config_size = sizeof(weir_route_config),
    .config_init = check_route,
    .run = run_route,
};

void weir_builder_route_sized(weir_builder *builder, const weir_route_config *config, size_t config_size,
                              const weir_stage_options *options, size_t options_size)
{
    weir_route_config own_config;
    weir_stage_options own;
    if (!copy_struct(builder, &own_config, sizeof own_config, config, config_size, "weir_route_config") ||
        !copy_stage_options(builder, &own, options, options_size))
        return;
    open_route *routes = realloc(builder->routes, (builder->num_routes + 1) * sizeof *routes);
    if (!routes) {
        weir_error_set(&builder->error, WEIR_ENOMEM, 0, "no memory for another route");
        return;
    }
    builder->routes = routes;
    weir_node_spec spec = {
        .kind = NODE_ROUTE, .op = &route_op, .config = &own_config, .config_size = sizeof own_config, .num_ins = 1
    };
    bool is_number = own_config.num_branches && own_config.num_branches <= MAX_BRANCHES;
    spec.num_outs = is_number ? own_config.num_branches : 1; /* check_route() reports the error */
    if (spec.num_outs > 1 && look_ahead_of(&own_config) <= WEIR_MAX_QUEUE_ITEMS)
        spec.look_ahead = look_ahead_of(&own_config);
    weir_node *node = add_node(builder, &spec, &own);
    if (!node)
        return;
    if (spec.num_outs == 1)
        builder->num_ends--; /* add_node() has opened it; weir_builder_branch() will */
    builder->routes[builder->num_routes++] = (open_route){ .node = node, .ends_before = builder->num_ends };
}

void weir_builder_branch(weir_builder *builder)
{
    if (!is_usable(builder))
        return;
    open_route *route = innermost_route(builder);
    if (!route) {
        weir_error_set(&builder->error, WEIR_EINVAL, 0,
                       "no route is open: call weir_builder_route() before weir_builder_branch()");
    } else if (route->branches_begun == route->node->core.num_outs) {
        weir_error_set(&builder->error, WEIR_EINVAL, 0, "route %s has %u branches, this is one too many",
                       route->node->short_name, route->node->core.num_outs);
        weir__builder_remember_error(builder, WEIR_EINVAL, route->node->short_name);
    } else if (weir__builder_open_end(builder, &route->node->core.outs[route->branches_begun++]) != WEIR_OK) {
        weir_error_set(&builder->error, WEIR_ENOMEM, 0, "no memory for another branch");
    }
}

void weir_builder_join_sized(weir_builder *builder, const weir_stage_options *options, size_t options_size)
{
    weir_stage_options own;
    if (!copy_stage_options(builder, &own, options, options_size))
        return;
    open_route *route = innermost_route(builder);
    if (!route) {
        weir_error_set(&builder->error, WEIR_EINVAL, 0,
                       "no route is open: call weir_builder_route() before weir_builder_join()");
        return;
    }
    if (route->branches_begun < route->node->core.num_outs) {
        weir_error_set(&builder->error, WEIR_EINVAL, 0, "route %s has %u branches, but only %u were described",
                       route->node->short_name, route->node->core.num_outs, route->branches_begun);
        weir__builder_remember_error(builder, WEIR_EINVAL, route->node->short_name);
        return;
    }
    weir_node_spec spec = { .kind = NODE_JOIN, .num_ins = route->node->core.num_outs, .num_outs = 1 };
    weir_node *first = route->node;
    builder->num_routes--;
    own.name = own.name ? own.name : "join";
    weir_node *join = add_node(builder, &spec, &own);
    if (join)
        join->core.route = &first->core;
}

/* ---- building ----------------------------------------------------------------------------------------------- */

static int check_complete(weir_builder *builder, const weir_pipeline_options *options, weir_error *error)
{
    if (builder->num_nodes == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "the pipeline has no source: call weir_builder_source()");
    if (innermost_route(builder))
        return weir_error_set(error, WEIR_EINVAL, 0, "route %s is still open: call weir_builder_join()",
                              innermost_route(builder)->node->short_name);
    if (!builder->has_sink)
        return weir_error_set(error, WEIR_EINVAL, 0, "the pipeline has no sink: call weir_builder_sink() last");
    if (options->threads > WEIR_MAX_THREADS)
        return weir_error_set(error, WEIR_EINVAL, 0, "threads is %u, the largest is %d", options->threads,
                              WEIR_MAX_THREADS);
    if (options->num_observers > 0 && !options->observers)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_observers is %zu, but observers is NULL",
                              options->num_observers);
    if (options->stats_interval_ns < 0 && options->stats_interval_ns != WEIR_FOREVER)
        return weir_error_set(error, WEIR_EINVAL, 0, "stats_interval_ns is negative and not WEIR_FOREVER");
    if (options->stall_warning_ns < 0 && options->stall_warning_ns != WEIR_FOREVER)
        return weir_error_set(error, WEIR_EINVAL, 0, "stall_warning_ns is negative and not WEIR_FOREVER");
    int status = weir__node_check_task_hooks(options->task_hooks, options->num_task_hooks, error);
    if (status == WEIR_OK)
        status = weir__node_check_thread_hooks(options->thread_hooks, options->num_thread_hooks, error);
    return status == WEIR_OK ? weir__node_check_max_failures(&options->max_failures, error) : status;
}

int weir_builder_build_sized(weir_builder *builder, const weir_pipeline_options *options, size_t options_size,
                             weir_pipeline **made, weir_error *error)
{
    weir_pipeline_options own;
    weir_error no_memory = { 0 };
    weir_error *mistake = builder ? &builder->error : &no_memory;
    if (made)
        *made = NULL;
    else
        weir_error_set(mistake, WEIR_EINVAL, 0, "weir_builder_build(): the address for the pipeline is NULL");
    if (!builder)
        weir_error_set(mistake, WEIR_ENOMEM, 0, "no memory for a builder");

    bool is_copied = copy_struct(builder, &own, sizeof own, options, options_size, "weir_pipeline_options");
    int status = is_copied ? check_complete(builder, &own, mistake) : mistake->status;
    if (status == WEIR_OK) {
        assert(builder);
        status = weir__pipeline_start(builder->nodes, builder->num_nodes, &own, made, mistake);
        builder->nodes = NULL; /* now owned by the pipeline, or freed */
        builder->num_nodes = 0;
    }
    if (error)
        *error = *mistake;
    weir_builder_free(builder);
    return status;
}
