#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue.h"

enum { DEFAULT_QUEUE_ITEMS = 2, DEFAULT_SINK_ITEMS = 3, MAX_QUEUE_ITEMS = 1 << 24, MAX_SLOTS = 1 << 16 };

static const char *const kind_names[] = { "source", "stage", "sink" };

static int no_memory(const weir_node *node, weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for stage %s",
                          node && node->short_name ? node->short_name : "");
}

static bool is_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    return name && name[0] && name[strspn(name, allowed)] == '\0' && strlen(name) <= 64;
}

static int check_options(node_kind kind, const weir_op *op, const weir_stage_options *options, weir_error *error)
{
    const char *name = options->name ? options->name : op ? op->name : "sink";
    if (!is_name(name))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "\"%s\" is no stage name; use 1 to 64 of the characters A-Z a-z 0-9 _ . -",
                              name ? name : "");
    if (op && !op->run)
        return weir_error_set(error, WEIR_EINVAL, 0, "the operation has no run function");
    if (kind == NODE_SOURCE && options->concurrency > 1)
        return weir_error_set(error, WEIR_EINVAL, 0, "concurrency is %u, but a source has one slot",
                              options->concurrency);
    if (options->concurrency > MAX_SLOTS)
        return weir_error_set(error, WEIR_EINVAL, 0, "concurrency is %u, the largest is %d", options->concurrency,
                              MAX_SLOTS);
    if (options->queue_items > MAX_QUEUE_ITEMS)
        return weir_error_set(error, WEIR_EINVAL, 0, "queue_items is %u, the largest is %d", options->queue_items,
                              MAX_QUEUE_ITEMS);
    if (options->threads > MAX_SLOTS)
        return weir_error_set(error, WEIR_EINVAL, 0, "threads is %u, the largest is %d", options->threads, MAX_SLOTS);
    if (options->output_order != WEIR_ORDER_COMPLETION && options->output_order != WEIR_ORDER_INPUT)
        return weir_error_set(error, WEIR_EINVAL, 0, "output_order is %d, which is no weir_order",
                              (int)options->output_order);
    if (options->max_failures.kind == WEIR_FAILURES_RATE && options->max_failures.den == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "max_failures is a rate with a denominator of 0");
    return WEIR_OK;
}

static int copy_config(weir_node *node, const void *config, weir_error *error)
{
    const weir_op *op = node->op;
    node->config = (void *)(uintptr_t)config;
    if (!op || op->config_size == 0)
        return WEIR_OK;

    node->config = calloc(1, op->config_size);
    if (!node->config)
        return no_memory(node, error);
    node->config_owned = true;
    if (config)
        memcpy(node->config, config, op->config_size);
    int status = op->config_init ? op->config_init(node->config, error) : WEIR_OK;
    if (status == WEIR_OK) {
        node->config_live = true;
        return WEIR_OK;
    }
    return weir_error_set(error, status < 0 ? status : WEIR_EINVAL, 0, "the options of the stage are not valid");
}

static int append_task_hooks(weir_node *node, const weir_task_hook *hooks, size_t num_hooks)
{
    if (num_hooks == 0)
        return WEIR_OK;
    size_t num_all = node->num_task_hooks + num_hooks;
    weir_task_hook *all = realloc(node->task_hooks, num_all * sizeof *all);
    if (!all)
        return WEIR_ENOMEM;
    memcpy(all + node->num_task_hooks, hooks, num_hooks * sizeof *all);
    node->task_hooks = all;
    node->num_task_hooks = num_all;
    return WEIR_OK;
}

static int copy_hooks(weir_node *node, const weir_stage_options *options)
{
    if (options->num_stage_hooks) {
        node->stage_hooks = calloc(options->num_stage_hooks, sizeof *node->stage_hooks);
        if (!node->stage_hooks)
            return WEIR_ENOMEM;
        memcpy(node->stage_hooks, options->stage_hooks, options->num_stage_hooks * sizeof *node->stage_hooks);
        node->num_stage_hooks = options->num_stage_hooks;
    }
    return append_task_hooks(node, options->task_hooks, options->num_task_hooks);
}

int node_new(node_kind kind, const weir_op *op, const void *config, const weir_stage_options *options,
             weir_node **made, weir_error *error)
{
    static const weir_stage_options defaults = { 0 };
    options = options ? options : &defaults;
    *made = NULL;
    int status = check_options(kind, op, options, error);
    if (status != WEIR_OK)
        return status;

    weir_node *node = *made = calloc(1, sizeof *node);
    if (!node)
        return no_memory(node, error);
    node->op = op;
    node->kind = kind_names[kind];
    node->short_name = strdup(options->name ? options->name : op ? op->name : "sink");
    node->order = options->output_order;
    node->max_failures = options->max_failures;
    node->threads = options->threads;
    node->num_slots = options->concurrency ? options->concurrency : 1;
    uint32_t default_items = kind == NODE_SINK ? DEFAULT_SINK_ITEMS : DEFAULT_QUEUE_ITEMS;
    node->run_times = calloc(1, sizeof *node->run_times);
    if (queue_init(&node->out, options->queue_items ? options->queue_items : default_items, options->queue_bytes) !=
            WEIR_OK ||
        !node->short_name || !node->run_times || copy_hooks(node, options) != WEIR_OK)
        return no_memory(node, error);
    return copy_config(node, config, error);
}

static char *format_name(const weir_node *node, bool of_queue)
{
    const char *short_name = strcmp(node->kind, "source") == 0 ? "src" : node->short_name;
    char concurrency[16] = "";
    if (node->num_slots > 1)
        snprintf(concurrency, sizeof concurrency, "[%u]", node->num_slots);

    char *name;
    int length = asprintf(&name, "%u:%u:%s%s%s", node->pipeline->id, node->index, short_name, concurrency,
                          of_queue ? "_queue" : "");
    return length < 0 ? NULL : name;
}

int node_place(weir_node *node, weir_pipeline *pipeline, uint32_t index, const weir_pipeline_options *options,
               weir_error *error)
{
    node->pipeline = pipeline;
    node->index = index;
    node->name = format_name(node, false);
    node->out.name = format_name(node, true);
    if (!node->name || !node->out.name)
        return no_memory(node, error);
    if (!node->op || !node->in)
        return WEIR_OK;

    if (node->max_failures.kind == WEIR_FAILURES_ANY)
        node->max_failures = options->max_failures;
    weir_task_hook *own = node->task_hooks;
    size_t num_own = node->num_task_hooks;
    node->task_hooks = NULL;
    node->num_task_hooks = 0;
    int status = append_task_hooks(node, options->task_hooks, options->num_task_hooks);
    if (status == WEIR_OK)
        status = append_task_hooks(node, own, num_own);
    free(own);
    return status == WEIR_OK ? WEIR_OK : no_memory(node, error);
}

static weir_slot *slot_new(weir_node *node)
{
    weir_slot *slot = calloc(1, sizeof *slot);
    if (!slot)
        return NULL;
    slot->node = node;
    atomic_init(&slot->should_stop, false);
    size_t worker_size = node->op ? node->op->worker_size : 0;
    slot->worker = worker_size ? calloc(1, worker_size) : NULL;
    slot->hook_states = node->hook_bytes ? calloc(1, node->hook_bytes) : NULL;
    if ((worker_size && !slot->worker) || (node->hook_bytes && !slot->hook_states)) {
        free(slot->worker);
        free(slot->hook_states);
        free(slot);
        return NULL;
    }
    return slot;
}

static void slot_free(weir_slot *slot)
{
    if (!slot)
        return;
    if (slot->worker_live && slot->node->op->worker_free)
        slot->node->op->worker_free(slot->worker);
    free(slot->worker);
    free(slot->hook_states);
    free(slot);
}

int node_make_slots(weir_node *node, weir_error *error)
{
    for (size_t i = 0; i < node->num_task_hooks; i++) {
        size_t *size = &node->task_hooks[i].state_size;
        *size = (*size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
        node->hook_bytes += *size;
    }
    node->chore.node = node;
    node->chore.chore = true;
    atomic_init(&node->chore.should_stop, false);
    node->slots = calloc(node->num_slots, sizeof *node->slots);
    for (uint32_t i = 0; node->slots && i < node->num_slots; i++)
        if (!(node->slots[i] = slot_new(node)))
            return no_memory(node, error);
    return node->slots ? WEIR_OK : no_memory(node, error);
}

void node_free(weir_node *node)
{
    if (!node)
        return;
    for (uint32_t i = 0; node->slots && i < node->num_slots; i++)
        slot_free(node->slots[i]);
    free(node->slots);
    if (node->config_live && node->op->config_free)
        node->op->config_free(node->config);
    if (node->config_owned)
        free(node->config);
    queue_destroy(&node->out);
    free(node->run_times);
    free(node->task_hooks);
    free(node->stage_hooks);
    free(node->short_name);
    free(node->name);
    free(node);
}
