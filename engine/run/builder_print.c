/*
 * Prints a description: a line for each node in the order of flow, the branches of a route indented below it. Options
 * that have their default are left out, except slots and queues.
 */
#include "engine/run/builder.h"

#include <inttypes.h>
#include <stdlib.h>

#include "engine/measure/observing.h"

enum { INDENT = 2 }; /* columns */

/* A route whose join is not printed yet. */
typedef struct printed_route {
    const weir_node *node;
    uint32_t num_branches; /* whose heads are printed */
} printed_route;

typedef struct printing {
    FILE *out;
    printed_route *routes; /* innermost last; room for all */
    uint32_t num_routes;
} printing;

static void print_count(FILE *out, uint64_t count, const char *unit)
{
    fprintf(out, "%" PRIu64 " %s%s", count, unit, count == 1 ? "" : "s");
}

static void print_seconds(FILE *out, const char *what, int64_t span_ns)
{
    fprintf(out, "%s %g s", what, (double)span_ns / WEIR_SECOND);
}

static void indent(const printing *to, uint32_t columns)
{
    fprintf(to->out, "%*s", (int)columns, "");
}

/* The heads of a route's branches up to this number, those without stages included. */
static void print_branches(printing *to, uint32_t num_branches)
{
    printed_route *route = &to->routes[to->num_routes - 1];
    for (; route->num_branches < num_branches; route->num_branches++) {
        indent(to, (2 * to->num_routes - 1) * INDENT);
        fprintf(to->out, "branch %" PRIu32 "\n", route->num_branches);
    }
}

static void print_inputs(FILE *out, const weir_node *node)
{
    for (uint32_t i = 0; i < node->core.num_ins; i++)
        fprintf(out, "%s%s", i ? ", " : "", ((const weir_node *)node->core.ins[i]->producer)->short_name);
}

static void print_merging(FILE *out, const weir_node *node)
{
    fputs("merge of ", out);
    print_inputs(out, node);
    fputs("; order ", out);
    weir__merge_order_write(node, out);
    if (node->core.merge_seed)
        fprintf(out, ", seed %" PRIu64, node->core.merge_seed);
    if (node->core.merge_end == WEIR_MERGE_END_FIRST)
        fputs(", ends with the first input", out);
    fputs("; ", out);
}

static void print_what(FILE *out, const weir_node *node, node_kind kind)
{
    const char *op = node->op && node->op->name ? node->op->name : "?";
    if (kind == NODE_MERGE)
        print_merging(out, node);
    else if (kind == NODE_JOIN)
        fprintf(out, "end of route %s, ", ((const weir_node *)node->core.route)->short_name);
    else if (kind == NODE_SOURCE)
        fprintf(out, "source %s, ", op);
    else if (kind == NODE_ROUTE)
        fprintf(out, "route of %" PRIu32 " branches, sets aside up to %" PRIu32 " items, ", node->core.num_outs,
                node->core.look_ahead);
    else if (kind == NODE_STAGE)
        fprintf(out, "%s, ", op);
    if (kind == NODE_STAGE || kind == NODE_ROUTE) {
        print_count(out, node->concurrency, "slot");
        fputs(", ", out);
    }
}

static void print_max_failures(FILE *out, const weir_max_failures *max)
{
    if (max->kind == WEIR_FAILURES_COUNT && max->count >= 0)
        fprintf(out, ", at most %" PRId64 " failures", max->count);
    else if (max->kind == WEIR_FAILURES_COUNT)
        fputs(", any number of failures", out);
    else if (max->kind == WEIR_FAILURES_RATE)
        fprintf(out, ", at most %" PRIu32 " failures in %" PRIu32 " tasks", max->num, max->den);
}

static void print_options(FILE *out, const weir_stage_options *options)
{
    fputs("queue of ", out);
    print_count(out, options->queue_items, "item");
    if (options->queue_bytes)
        fprintf(out, " or %" PRIu64 " bytes", options->queue_bytes);
    if (options->threads) {
        fputs(", ", out);
        print_count(out, options->threads, "thread");
        fputs(" of its own", out);
    }
    if (options->output_order == WEIR_ORDER_INPUT)
        fputs(", in input order", out);
    print_max_failures(out, &options->max_failures);
    if (options->task_deadline_ns)
        print_seconds(out, ", deadline", options->task_deadline_ns);
    if (options->epochs == WEIR_ENDLESS)
        fputs(", epochs without end", out);
    else if (options->epochs) {
        fputs(", ", out);
        print_count(out, options->epochs, "epoch");
    }
    if (options->stats_interval_ns == WEIR_FOREVER)
        fputs(", figures at the end", out);
    else if (options->stats_interval_ns)
        print_seconds(out, ", figures each", options->stats_interval_ns);
    if (options->num_stage_hooks) {
        fputs(", ", out);
        print_count(out, options->num_stage_hooks, "stage hook");
    }
    if (options->num_task_hooks) {
        fputs(", ", out);
        print_count(out, options->num_task_hooks, "task hook");
    }
}

/* Prints the heads of branches that stand before the node. */
static void find_place(printing *to, const weir_node *node, node_kind kind)
{
    if (kind == NODE_JOIN) {
        print_branches(to, node->core.route->num_outs);
        to->num_routes--;
    } else if (to->num_routes && node->core.num_ins == 1) {
        const weir__queue *in = node->core.ins[0];
        if (in->producer == &to->routes[to->num_routes - 1].node->core)
            print_branches(to, (uint32_t)(in - in->producer->outs) + 1);
    }
}

static void print_node(printing *to, const weir_node *node)
{
    node_kind kind = weir__node_kind(node);
    weir_stage_options options = weir__node_options(node);
    find_place(to, node, kind);
    indent(to, 2 * to->num_routes * INDENT);
    fprintf(to->out, "%s: ", node->short_name);
    print_what(to->out, node, kind);
    print_options(to->out, &options);
    fputc('\n', to->out);
    if (kind == NODE_ROUTE)
        to->routes[to->num_routes++] = (printed_route){ .node = node };
}

int weir_builder_print(const weir_builder *builder, FILE *out)
{
    if (!builder || !out)
        return WEIR_EINVAL;
    printing to = { .out = out, .routes = calloc(builder->num_nodes + 1, sizeof *to.routes) };
    if (!to.routes)
        return WEIR_ENOMEM;
    for (uint32_t i = 0; i < builder->num_nodes; i++)
        print_node(&to, builder->nodes[i]);
    if (builder->error.status) {
        char line[WEIR_ERROR_LINE];
        weir_error_format(&builder->error, line, sizeof line);
        fprintf(out, "error: %s\n", line);
    }
    free(to.routes);
    return fflush(out) != 0 || ferror(out) ? WEIR_EIO : WEIR_OK;
}
