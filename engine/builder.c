/* Collects what the user describes, checks it, and makes a running pipeline of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "node.h"
#include "pipeline.h"

struct weir_builder {
    weir_node **nodes; /* upstream first */
    uint32_t num_nodes;
    bool has_source, has_sink;
    weir_error error; /* the first mistake */
};

weir_builder *weir_builder_new(void)
{
    return calloc(1, sizeof(weir_builder));
}

void weir_builder_free(weir_builder *builder)
{
    if (!builder)
        return;
    for (uint32_t i = 0; i < builder->num_nodes; i++)
        node_free(builder->nodes[i]);
    free(builder->nodes);
    free(builder);
}

static int check_place(const weir_builder *builder, node_kind kind, weir_error *error)
{
    if (kind == NODE_SOURCE && builder->has_source)
        return weir_error_set(error, WEIR_EINVAL, 0, "there is a source already: call weir_source() once");
    if (kind != NODE_SOURCE && !builder->has_source)
        return weir_error_set(error, WEIR_EINVAL, 0, "there is no source yet: call weir_source() first");
    if (builder->has_sink)
        return weir_error_set(error, WEIR_EINVAL, 0, "nothing may come behind the sink: call weir_sink() last");
    return WEIR_OK;
}

static int append(weir_builder *builder, weir_node *node, weir_error *error)
{
    weir_node **nodes = realloc(builder->nodes, (builder->num_nodes + 1) * sizeof(*nodes));
    if (!nodes) {
        node_free(node);
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for another stage");
    }
    builder->nodes = nodes;
    builder->nodes[builder->num_nodes++] = node;
    return WEIR_OK;
}

static void add(weir_builder *builder, node_kind kind, const weir_op *op, const void *config,
                const weir_stage_options *options)
{
    if (!builder || builder->error.status)
        return;

    weir_error *error = &builder->error;
    weir_node *node = NULL;
    int status = check_place(builder, kind, error);
    if (status == WEIR_OK && kind != NODE_SINK && !op)
        status = weir_error_set(error, WEIR_EINVAL, 0, "the operation is NULL");
    if (status == WEIR_OK)
        status = node_new(kind, op, config, options, &node, error);
    if (status == WEIR_OK)
        status = append(builder, node, error);
    else
        node_free(node);

    if (status != WEIR_OK) {
        const char *name = options && options->name ? options->name : op && op->name ? op->name : "sink";
        error->status = status;
        snprintf(error->stage, sizeof error->stage, "%s", name);
        return;
    }
    builder->has_source |= kind == NODE_SOURCE;
    builder->has_sink |= kind == NODE_SINK;
}

void weir_source(weir_builder *builder, const weir_op *op, const void *config, const weir_stage_options *options)
{
    add(builder, NODE_SOURCE, op, config, options);
}

void weir_pipe(weir_builder *builder, const weir_op *op, const void *config, const weir_stage_options *options)
{
    add(builder, NODE_STAGE, op, config, options);
}

void weir_sink(weir_builder *builder, uint32_t queue_items)
{
    add(builder, NODE_SINK, NULL, NULL, &(weir_stage_options){ .queue_items = queue_items });
}

static int check_complete(weir_builder *builder, const weir_pipeline_options *options, weir_error *error)
{
    if (builder->error.status) {
        if (error)
            *error = builder->error;
        return builder->error.status;
    }
    if (!builder->has_source)
        return weir_error_set(error, WEIR_EINVAL, 0, "the pipeline has no source: call weir_source()");
    if (!builder->has_sink)
        return weir_error_set(error, WEIR_EINVAL, 0, "the pipeline has no sink: call weir_sink() last");
    if (options->stats_interval_ns < 0 && options->stats_interval_ns != WEIR_FOREVER)
        return weir_error_set(error, WEIR_EINVAL, 0, "stats_interval_ns is negative and not WEIR_FOREVER");
    if (options->max_failures.kind == WEIR_FAILURES_RATE && options->max_failures.den == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "max_failures is a rate with a denominator of 0");
    return WEIR_OK;
}

int weir_build(weir_builder *builder, const weir_pipeline_options *options, weir_pipeline **made, weir_error *error)
{
    static const weir_pipeline_options defaults = { 0 };
    options = options ? options : &defaults;
    *made = NULL;
    if (error)
        *error = (weir_error){ 0 };
    if (!builder)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a builder");

    int status = check_complete(builder, options, error);
    if (status == WEIR_OK) {
        status = pipeline_start(builder->nodes, builder->num_nodes, options, made, error);
        builder->nodes = NULL; /* the pipeline's now, or freed */
        builder->num_nodes = 0;
    }
    weir_builder_free(builder);
    return status;
}
