#include "engine/run/node.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/struct_copy.h>
#include <weir/version.h>

#include "engine/base/label.h"
#include "engine/measure/kept_failures.h"
#include "engine/run/types.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

#define LONGEST_INTERVAL_NS (INT64_MAX / 2) /* WEIR_FOREVER, to which a time can be added */

enum { DEFAULT_QUEUE_ITEMS = 2, DEFAULT_SINK_ITEMS = 3 };

static const char *const kind_names[] = { "source", "stage", "route", "merge", "merge", "sink" };

static int fail_node_memory(const weir_node *node, weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for stage %s",
                          node && node->short_name ? node->short_name : "");
}

static bool is_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    return name && name[0] && name[strspn(name, allowed)] == '\0' && strlen(name) <= 64;
}

static const char *max_failures_mistake(const weir_max_failures *max)
{
    switch (max->kind) {
    case WEIR_FAILURES_ANY:
        return max->count || max->num || max->den
                   ? "has numbers, but no kind: set kind to WEIR_FAILURES_COUNT or _RATE"
                   : NULL;
    case WEIR_FAILURES_COUNT:
        return max->num || max->den ? "is a count, but num or den is set"
               : max->count < -1    ? "is a count below -1; use -1 for any number"
                                    : NULL;
    case WEIR_FAILURES_RATE:
        return max->count            ? "is a rate, but count is set"
               : max->den == 0       ? "is a rate with a denominator of 0"
               : max->num > max->den ? "is a rate above 1"
                                     : NULL;
    default: return "has a kind that is not a weir_failures_kind";
    }
}

int weir__node_check_max_failures(const weir_max_failures *max, weir_error *error)
{
    const char *mistake = max_failures_mistake(max);
    return mistake ? weir_error_set(error, WEIR_EINVAL, 0, "max_failures %s", mistake) : WEIR_OK;
}

/* Tables and hooks stand in arrays or are extern, so their size cannot tell their version: what this version does not know
   is in their reserved members. */
static int refuse_reserved(const void *const *reserved, size_t count, const char *name, weir_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (reserved[i])
            return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                  "%s: the program sets a member that weir %s does not know: update the library",
                                  name, WEIR_VERSION);
    return WEIR_OK;
}

int weir__node_check_task_hooks(const weir_task_hook *hooks, size_t num_hooks, weir_error *error)
{
    if (num_hooks > 0 && !hooks)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_task_hooks is %zu, but task_hooks is NULL", num_hooks);
    int status = WEIR_OK;
    for (size_t i = 0; i < num_hooks && status == WEIR_OK; i++)
        status = refuse_reserved(hooks[i].reserved, LENGTH(hooks[i].reserved), "weir_task_hook", error);
    return status;
}

int weir__node_check_thread_hooks(const weir_thread_hook *hooks, size_t num_hooks, weir_error *error)
{
    if (num_hooks > 0 && !hooks)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_thread_hooks is %zu, but thread_hooks is NULL", num_hooks);
    int status = WEIR_OK;
    for (size_t i = 0; i < num_hooks && status == WEIR_OK; i++)
        status = refuse_reserved(hooks[i].reserved, LENGTH(hooks[i].reserved), "weir_thread_hook", error);
    return status;
}

static int check_numbers(const weir_stage_options *options, weir_error *error)
{
    if (options->concurrency > WEIR_MAX_SLOTS)
        return weir_error_set(error, WEIR_EINVAL, 0, "concurrency is %u, the largest is %d", options->concurrency,
                              WEIR_MAX_SLOTS);
    if (options->queue_items > WEIR_MAX_QUEUE_ITEMS)
        return weir_error_set(error, WEIR_EINVAL, 0, "queue_items is %u, the largest is %d", options->queue_items,
                              WEIR_MAX_QUEUE_ITEMS);
    if (options->threads > WEIR_MAX_THREADS)
        return weir_error_set(error, WEIR_EINVAL, 0, "threads is %u, the largest is %d", options->threads,
                              WEIR_MAX_THREADS);
    if (options->task_deadline_ns < 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "task_deadline_ns is negative; use 0 for none");
    if (options->stats_interval_ns < 0 && options->stats_interval_ns != WEIR_FOREVER)
        return weir_error_set(error, WEIR_EINVAL, 0, "stats_interval_ns is negative and not WEIR_FOREVER");
    if (options->output_order != WEIR_ORDER_COMPLETION && options->output_order != WEIR_ORDER_INPUT)
        return weir_error_set(error, WEIR_EINVAL, 0, "output_order is %d, which is not a weir_order",
                              (int)options->output_order);
    return WEIR_OK;
}

static int check_output_order(node_kind kind, const weir_stage_options *options, weir_error *error)
{
    bool can_order = kind == NODE_STAGE || kind == NODE_JOIN || (kind == NODE_ROUTE && options->concurrency > 1);
    if (options->output_order == WEIR_ORDER_COMPLETION || can_order)
        return WEIR_OK;
    return weir_error_set(error, WEIR_EINVAL, 0, "output_order is given, but a %s %s", kind_names[kind],
                          kind == NODE_MERGE ? "has no order of inputs; see weir_merge_config.order"
                                             : "with one slot keeps its order");
}

static int check_without_tasks(node_kind kind, const weir_stage_options *options, weir_error *error)
{
    const char *what = kind_names[kind];
    if (options->concurrency > 1)
        return weir_error_set(error, WEIR_EINVAL, 0, "concurrency is %u, but a %s has one slot", options->concurrency,
                              what);
    if (options->num_task_hooks)
        return weir_error_set(error, WEIR_EINVAL, 0, "task_hooks are given, but a %s has no tasks to hook", what);
    if (options->max_failures.kind != WEIR_FAILURES_ANY)
        return weir_error_set(error, WEIR_EINVAL, 0, "max_failures is given, but a %s cannot fail", what);
    return WEIR_OK;
}

static int check_kind(node_kind kind, const weir_stage_options *options, weir_error *error)
{
    const char *what = kind_names[kind];
    bool has_tasks = kind == NODE_STAGE || kind == NODE_ROUTE;
    uint32_t slots = options->concurrency ? options->concurrency : 1;
    int status = check_output_order(kind, options, error);
    if (status == WEIR_OK && !has_tasks)
        status = check_without_tasks(kind, options, error);
    if (status != WEIR_OK)
        return status;
    if (kind != NODE_SOURCE && options->epochs)
        return weir_error_set(error, WEIR_EINVAL, 0, "epochs are given, but only sources have them");
    if (kind >= NODE_MERGE && (options->threads || options->num_stage_hooks || options->task_deadline_ns))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "threads, stage_hooks or a deadline are given, but a %s runs nothing", what);
    if (options->threads > slots)
        return weir_error_set(error, WEIR_EINVAL, 0, "threads is %u, but concurrency is %u: %u would never run",
                              options->threads, slots, options->threads - slots);
    return WEIR_OK;
}

static int check_stage_options(node_kind kind, const weir_op *op, const char *name, const weir_stage_options *options,
                               weir_error *error)
{
    if (!is_name(name))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "\"%s\" is not a valid stage name; use 1 to 64 of the characters A-Z a-z 0-9 _ . -",
                              name ? name : "");
    if (op && !op->run)
        return weir_error_set(error, WEIR_EINVAL, 0, "the operation has no run function");
    if (options->num_stage_hooks > 0 && !options->stage_hooks)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_stage_hooks is %zu, but stage_hooks is NULL",
                              options->num_stage_hooks);
    int status = op ? refuse_reserved(op->reserved, LENGTH(op->reserved), "weir_op", error) : WEIR_OK;
    for (size_t i = 0; i < options->num_stage_hooks && status == WEIR_OK; i++) {
        const weir_stage_hook *hook = &options->stage_hooks[i];
        status = refuse_reserved(hook->reserved, LENGTH(hook->reserved), "weir_stage_hook", error);
    }
    if (status == WEIR_OK)
        status = check_numbers(options, error);
    if (status == WEIR_OK)
        status = check_kind(kind, options, error);
    if (status == WEIR_OK)
        status = weir__node_check_task_hooks(options->task_hooks, options->num_task_hooks, error);
    if (status == WEIR_OK)
        status = weir__node_check_max_failures(&options->max_failures, error);
    return status;
}

static int check_config_size(const weir_op *op, const weir_node_spec *spec, weir_error *error)
{
    if (!spec->config || (op->config_size == 0) == (spec->config_size == 0))
        return WEIR_OK;
    if (op->config_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "config_size is %zu, but the operation does not copy its config: pass 0",
                              spec->config_size);
    return weir_error_set(error, WEIR_EINVAL, 0, "config_size is 0: pass the size of the config, which has %zu bytes",
                          op->config_size);
}

static int copy_config(weir_node *node, const weir_node_spec *spec, weir_error *error)
{
    const weir_op *op = node->op;
    node->config = (void *)(uintptr_t)spec->config;
    if (!op)
        return WEIR_OK;
    int status = check_config_size(op, spec, error);
    if (status != WEIR_OK || op->config_size == 0)
        return status;

    node->config = calloc(1, op->config_size);
    if (!node->config)
        return fail_node_memory(node, error);
    node->config_owned = true;
    status = weir_struct_copy(node->config, op->config_size, spec->config, spec->config_size,
                              "the config of the stage", error);
    if (status != WEIR_OK)
        return status;
    status = op->config_init ? op->config_init(node->config, error) : WEIR_OK;
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
        node->core.has_stage_hooks = true;
    }
    return append_task_hooks(node, options->task_hooks, options->num_task_hooks);
}

/* WEIR_OK or WEIR_ENOMEM; queue_destroy() must be called in any case. */
static int queue_init(weir__queue *queue, uint32_t capacity, uint64_t capacity_bytes)
{
    queue->capacity = capacity;
    queue->num_entries = capacity + queue->producer->look_ahead;
    queue->capacity_bytes = capacity_bytes ? capacity_bytes : UINT64_MAX;
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &queue->lap);
    queue->entries = calloc(queue->num_entries, sizeof *queue->entries);
    return queue->entries ? WEIR_OK : WEIR_ENOMEM;
}

static void queue_destroy(weir__queue *queue)
{
    free(queue->entries);
    free(queue->name);
}

static int make_queues(weir_node *node, const weir_node_spec *spec, const weir_stage_options *options)
{
    uint32_t default_items = spec->kind == NODE_SINK ? DEFAULT_SINK_ITEMS : DEFAULT_QUEUE_ITEMS;
    node->core.look_ahead = spec->look_ahead;
    node->core.outs = calloc(spec->num_outs, sizeof *node->core.outs);
    if (!node->core.outs)
        return WEIR_ENOMEM;
    for (; node->core.num_outs < spec->num_outs; node->core.num_outs++) {
        weir__queue *queue = &node->core.outs[node->core.num_outs];
        queue->producer = &node->core;
        if (queue_init(queue, options->queue_items ? options->queue_items : default_items, options->queue_bytes) !=
            WEIR_OK) {
            queue_destroy(queue);
            return WEIR_ENOMEM;
        }
    }
    return WEIR_OK;
}

static int join_inputs(weir_node *node, const weir_node_spec *spec)
{
    if (spec->num_ins == 0)
        return WEIR_OK;
    node->core.ins = calloc(spec->num_ins, sizeof(weir__queue *));
    node->core.credits = calloc(2 * (size_t)spec->num_ins, sizeof *node->core.credits);
    if (!node->core.ins || !node->core.credits)
        return WEIR_ENOMEM;
    memcpy(node->core.ins, spec->ins, spec->num_ins * sizeof(weir__queue *));
    node->core.num_ins = spec->num_ins;
    for (uint32_t i = 0; i < node->core.num_ins; i++)
        node->core.ins[i]->consumer = &node->core;
    return WEIR_OK;
}

static const weir_node *producer_of(const weir_node *node, uint32_t input)
{
    return (const weir_node *)node->core.ins[input]->producer;
}

static int check_input(weir_node *node, const weir_node *before, weir_error *error)
{
    const char *takes = node->op ? node->op->takes : NULL;
    if (!takes)
        return WEIR_OK;
    if (!before->makes)
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "stage %s takes \"%s\", but the upstream stage %s does not declare what it makes: set `makes` "
            "in its weir_op",
            node->short_name, takes, before->short_name);
    weir_type_match match = weir__types_match(takes, before->makes);
    node->checks_types = match != WEIR_TYPES_FIT;
    if (match != WEIR_TYPES_DIFFER)
        return WEIR_OK;
    return weir_error_set(error, WEIR_EINVAL, 0, "stage %s takes \"%s\", but the upstream stage %s makes \"%s\"",
                          node->short_name, takes, before->short_name, before->makes);
}

/* The types passed on by nodes without a user operation: the types of all inputs, if all are declared. */
static int unite_inputs(weir_node *node)
{
    for (uint32_t i = 0; i < node->core.num_ins; i++) {
        const char *before = producer_of(node, i)->makes;
        char *all = before ? weir__types_unite(i ? node->makes : "", before) : NULL;
        free(node->makes);
        node->makes = all;
        if (before && !all)
            return WEIR_ENOMEM;
        if (!all)
            break;
    }
    return WEIR_OK;
}

static int set_types(weir_node *node, node_kind kind, weir_error *error)
{
    int status = WEIR_OK;
    if (kind == NODE_SOURCE || kind == NODE_STAGE) {
        assert(node->op);
        node->makes = node->op->makes ? strdup(node->op->makes) : NULL;
        status = node->op->makes && !node->makes ? WEIR_ENOMEM : WEIR_OK;
    } else {
        status = unite_inputs(node);
    }
    if (status != WEIR_OK)
        return fail_node_memory(node, error);
    return node->core.num_ins ? check_input(node, producer_of(node, 0), error) : WEIR_OK;
}

int weir__node_new(const weir_node_spec *spec, const weir_stage_options *options, weir_node **made, weir_error *error)
{
    const char *name = weir__node_name(spec, options);
    *made = NULL;
    int status = check_stage_options(spec->kind, spec->op, name, options, error);
    if (status != WEIR_OK)
        return status;

    weir_node *node = *made = calloc(1, sizeof *node);
    if (!node)
        return fail_node_memory(node, error);
    node->op = spec->op;
    node->core.has_tasks = node->op;
    node->core.has_flush = node->op && node->op->flush;
    node->core.has_cancel = node->op && node->op->cancel;
    node->kind = kind_names[spec->kind];
    node->short_name = strdup(name);
    node->core.order = options->output_order;
    node->core.max_failures = options->max_failures;
    node->threads = options->threads;
    node->task_deadline_ns = options->task_deadline_ns;
    node->stats_interval_ns =
        options->stats_interval_ns == WEIR_FOREVER ? LONGEST_INTERVAL_NS : options->stats_interval_ns;
    node->core.epochs = options->epochs;
    node->concurrency = options->concurrency ? options->concurrency : 1;
    node->core.typical_ns = 10 * WEIR__SHORT_STEP_NS; /* assumed to be long until measured */
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &node->core.lap);
    node->makes_one_type = node->op && weir__types_is_one(node->op->makes);
    if (!node->short_name || copy_hooks(node, options) != WEIR_OK || make_queues(node, spec, options) != WEIR_OK ||
        join_inputs(node, spec) != WEIR_OK)
        return fail_node_memory(node, error);
    status = set_types(node, spec->kind, error);
    return status == WEIR_OK ? copy_config(node, spec, error) : status;
}

const char *weir__node_name(const weir_node_spec *spec, const weir_stage_options *options)
{
    if (options->name)
        return options->name;
    return spec->op ? spec->op->name : kind_names[spec->kind];
}

node_kind weir__node_kind(const weir_node *node)
{
    node_kind kind = NODE_SOURCE;
    while (kind != NODE_SINK && strcmp(kind_names[kind], node->kind) != 0)
        kind++;
    return kind == NODE_MERGE && node->core.route ? NODE_JOIN : kind;
}

weir_node_spec weir__node_spec(const weir_node *node)
{
    return (weir_node_spec){ .kind = weir__node_kind(node),
                             .op = node->op,
                             .config = node->config,
                             .config_size = node->config && node->op ? node->op->config_size : 0,
                             .ins = node->core.ins,
                             .num_ins = node->core.num_ins,
                             .num_outs = node->core.num_outs,
                             .look_ahead = node->core.look_ahead };
}

weir_stage_options weir__node_options(const weir_node *node)
{
    const weir__queue *queue = &node->core.outs[0];
    return (weir_stage_options){
        .name = node->short_name,
        .concurrency = node->concurrency,
        .queue_items = queue->capacity,
        .queue_bytes = queue->capacity_bytes == UINT64_MAX ? 0 : queue->capacity_bytes,
        .threads = node->threads,
        .output_order = node->core.order,
        .max_failures = node->core.max_failures,
        .stage_hooks = node->stage_hooks,
        .num_stage_hooks = node->num_stage_hooks,
        .task_hooks = node->task_hooks,
        .num_task_hooks = node->num_task_hooks,
        .task_deadline_ns = node->task_deadline_ns,
        .epochs = node->core.epochs,
        .stats_interval_ns = node->stats_interval_ns == LONGEST_INTERVAL_NS ? WEIR_FOREVER : node->stats_interval_ns,
    };
}

static char *format_name(const weir_node *node, const char *suffix)
{
    char concurrency[16] = "";
    if (node->concurrency > 1)
        snprintf(concurrency, sizeof concurrency, "[%u]", node->concurrency);

    char *name;
    int length =
        asprintf(&name, "%u:%u:%s%s%s", node->pipeline->id, node->core.index, node->short_name, concurrency, suffix);
    return length < 0 ? NULL : name;
}

static int make_names(weir_node *node, weir_error *error)
{
    node->name = format_name(node, "");
    if (!node->name)
        return fail_node_memory(node, error);
    for (uint32_t i = 0; i < node->core.num_outs; i++) {
        char suffix[32] = "_queue";
        if (node->core.num_outs > 1)
            snprintf(suffix, sizeof suffix, ".%u_queue", i);
        node->core.outs[i].name = format_name(node, suffix);
        if (!node->core.outs[i].name)
            return fail_node_memory(node, error);
    }
    return WEIR_OK;
}

int weir__node_place(weir_node *node, weir_pipeline *pipeline, uint32_t index, const weir_pipeline_options *options,
                     weir_error *error)
{
    node->pipeline = pipeline;
    node->core.graph = &pipeline->core;
    node->core.index = index;
    int status = make_names(node, error);
    if (status == WEIR_OK && node->stats_interval_ns && node->stats_interval_ns < pipeline->stats_interval_ns)
        status =
            weir_error_set(error, WEIR_EINVAL, 0,
                           "%s: stats_interval_ns is shorter than the pipeline's (%g s): set that to the shortest",
                           node->name, (double)pipeline->stats_interval_ns / WEIR_SECOND);
    if (status != WEIR_OK || !node->op || node->core.num_ins == 0)
        return status;

    if (node->core.max_failures.kind == WEIR_FAILURES_ANY)
        node->core.max_failures = options->max_failures;
    weir_task_hook *own = node->task_hooks;
    size_t num_own = node->num_task_hooks;
    node->task_hooks = NULL;
    node->num_task_hooks = 0;
    status = append_task_hooks(node, options->task_hooks, options->num_task_hooks);
    if (status == WEIR_OK)
        status = append_task_hooks(node, own, num_own);
    free(own);
    return status == WEIR_OK ? WEIR_OK : fail_node_memory(node, error);
}

weir_task *weir__slot_new(weir_node *node, uint32_t number)
{
    weir_task *slot = calloc(1, sizeof *slot);
    if (!slot)
        return NULL;
    slot->node = node;
    slot->core.node = &node->core;
    slot->trace_number = number;
    slot->warn_after_ns = node->pipeline->stall_warning_ns; /* it may be stopped before its first task begins */
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

void weir__slot_free(weir_task *slot)
{
    if (!slot)
        return;
    weir_item_release(&slot->pending_out); /* from a task that had already ended in another way */
    weir__label_release(slot->label);
    weir__cause_release(slot); /* likewise */
    if (slot->core.worker_live && slot->node->op->worker_free)
        slot->node->op->worker_free(slot->worker);
    free(slot->worker);
    free(slot->hook_states);
    free(slot);
}

/* False = more than any object can have. */
static bool place_hook_states(weir_node *node)
{
    for (size_t i = 0; i < node->num_task_hooks; i++) {
        size_t *size = &node->task_hooks[i].state_size;
        if (*size > PTRDIFF_MAX - sizeof(max_align_t) - node->hook_bytes)
            return false;
        *size = (*size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
        node->hook_bytes += *size;
    }
    return true;
}

int weir__node_make_slots(weir_node *node, weir_error *error)
{
    node->lifecycle.node = node;
    node->lifecycle.core.node = &node->core;
    node->core.lifecycle = &node->lifecycle.core;
    node->lifecycle.core.is_lifecycle = true;
    node->lifecycle.trace_number = WEIR_TRACE_LIFECYCLE;
    node->core.slots = calloc(node->concurrency, sizeof(weir__core_slot *));
    if (!node->core.slots || !place_hook_states(node))
        return fail_node_memory(node, error);
    for (; node->core.num_made < node->concurrency; node->core.num_made++) {
        weir_task *slot = weir__slot_new(node, node->core.num_made);
        if (!slot)
            return fail_node_memory(node, error);
        node->core.slots[node->core.num_made] = &slot->core;
    }
    node->core.num_slots = node->core.num_wanted = node->core.num_made;
    return WEIR_OK;
}

void weir__node_free(weir_node *node)
{
    if (!node)
        return;
    for (uint32_t i = 0; i < node->core.num_made; i++)
        weir__slot_free(weir__slot_at(node, i));
    free(node->core.slots);
    if (node->config_live && node->op->config_free)
        node->op->config_free(node->config);
    if (node->config_owned)
        free(node->config);
    for (uint32_t i = 0; i < node->core.num_outs; i++)
        queue_destroy(&node->core.outs[i]);
    free(node->core.outs);
    free(node->core.ins);
    free(node->core.credits);
    free(node->core.weights);
    free(node->task_hooks);
    free(node->stage_hooks);
    free(node->makes);
    free(node->short_name);
    free(node->name);
    free(node);
}
