#include "stats/advice/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

int weir__model_new(weir_model **model, weir_error *error)
{
    if (!model)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir__model_new(): the address for the model is NULL");
    *model = calloc(1, sizeof **model);
    if (!*model)
        return weir__model_no_memory(error);
    (*model)->recorded.cpus = (*model)->recorded.threads = weir_cpu_budget();
    (*model)->measured = (*model)->baseline = NAN;
    return WEIR_OK;
}

static void free_node(weir_model_node *node)
{
    free((void *)(uintptr_t)node->name);
    free((void *)(uintptr_t)node->inputs);
    free((void *)(uintptr_t)node->branches);
    free((void *)(uintptr_t)node->weights);
    free((void *)(uintptr_t)node->shares);
    free((void *)(uintptr_t)node->times);
}

void weir__model_clear(weir_model *model)
{
    for (size_t i = 0; i < model->num_laps; i++)
        free(model->laps[i]);
    free(model->others);
    free(model->current);
    for (size_t i = 0; i < model->num_nodes; i++)
        free_node(&model->recorded.nodes[i]);
    for (size_t i = 0; i < model->num_queues; i++)
        free(model->queues[i].name);
    for (size_t i = 0; i < model->num_pools; i++)
        free(model->pools[i].name);
    free(model->recorded.nodes);
    free(model->shown.nodes);
    free(model->wanted);
    free(model->settings);
    free(model->queues);
    free(model->pools);
    *model = (weir_model){ .recorded = { .threads = model->recorded.threads, .cpus = model->recorded.cpus },
                           .measured = NAN,
                           .baseline = NAN };
}

void weir__model_free(weir_model *model)
{
    if (model)
        weir__model_clear(model);
    free(model);
}

/* -- nodes */

static const char *const kinds[] = { "source", "stage", "route", "merge", "sink" };

static const char *kind_of(const char *kind)
{
    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return kinds[i];
    return NULL;
}

static bool has_negative_share(const weir_model_node *node)
{
    for (uint32_t i = 0; i < node->num_shares; i++)
        if (!node->shares || !(node->shares[i] >= 0))
            return true;
    return false;
}

static bool has_possible_times(const weir_model_node *node)
{
    return node->cpu_s >= 0 && node->pending_s >= 0 && node->time_s >= 0 && isfinite(node->time_s) &&
           node->cpu_s + node->pending_s <= node->time_s * (1 + 1e-9) && node->results >= 0;
}

static const char *mistake_in_inputs(const weir_model *model, const weir_model_node *node)
{
    for (uint32_t i = 0; i < node->num_inputs; i++)
        if (!node->inputs || node->inputs[i] >= model->num_nodes)
            return "an input is not a node that was added before";
    for (uint32_t i = 0; node->branches && i < node->num_inputs; i++)
        if (node->branches[i] > 0 && node->branches[i] >= model->recorded.nodes[node->inputs[i]].num_shares)
            return "an input has no such branch";
    return NULL;
}

static const char *mistake_in_node(const weir_model *model, const weir_model_node *node)
{
    if (!node->name || !*node->name)
        return "it has no name";
    if (!kind_of(node->kind))
        return "its kind is not source, stage, route, merge or sink";
    if (model->num_nodes == 0 && strcmp(node->kind, "source") != 0)
        return "the first node must be a source";
    if (model->num_nodes && strcmp(model->recorded.nodes[model->num_nodes - 1].kind, "sink") == 0)
        return "nothing can follow the sink";
    if (node->concurrency > WEIR_MAX_SLOTS)
        return "it has more slots than the engine allows";
    const char *mistake = mistake_in_inputs(model, node);
    if (mistake)
        return mistake;
    if (has_negative_share(node))
        return "a share is negative";
    return has_possible_times(node) ? NULL : "its times are negative, or cpu_s and pending_s are more than time_s";
}

static void *copy_of(const void *from, size_t size, bool *is_missing)
{
    void *copy = from && size ? malloc(size) : NULL;
    if (copy)
        memcpy(copy, from, size);
    *is_missing |= from && size && !copy;
    return copy;
}

/* With its own texts and arrays, and without zeros that stand for defaults. */
static weir_model_node node_copy(const weir_model *model, const weir_model_node *node, bool *is_missing)
{
    weir_model_node own = *node;
    uint32_t before = (uint32_t)model->num_nodes - 1;
    bool follows = node->num_inputs == 0 && strcmp(node->kind, "source") != 0;
    own.kind = kind_of(node->kind);
    own.concurrency = node->concurrency ? node->concurrency : 1;
    own.queue_items = node->queue_items ? node->queue_items : strcmp(node->kind, "sink") == 0 ? 3 : 2;
    own.results = node->results > 0 ? node->results : 1;
    own.num_inputs = follows ? 1 : node->num_inputs;
    own.name = copy_of(node->name, strlen(node->name) + 1, is_missing);
    own.inputs = copy_of(follows ? &before : node->inputs, own.num_inputs * sizeof *own.inputs, is_missing);
    own.branches = copy_of(node->branches, own.num_inputs * sizeof *own.branches, is_missing);
    own.weights = copy_of(node->weights, own.num_inputs * sizeof *own.weights, is_missing);
    own.shares = copy_of(node->shares, own.num_shares * sizeof *own.shares, is_missing);
    own.times = copy_of(node->times, sizeof *own.times, is_missing);
    return own;
}

int weir__model_add(weir_model *model, const weir_model_node *node, weir_error *error)
{
    if (!model || !node)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    const char *mistake = mistake_in_node(model, node);
    if (mistake)
        return weir_error_set(error, WEIR_EINVAL, 0, "node %zu (%s) of the model: %s", model->num_nodes,
                              node->name ? node->name : "", mistake);
    weir_model_node *nodes = weir__array_grow(model->recorded.nodes, model->num_nodes, sizeof *nodes);
    if (!nodes)
        return weir__model_no_memory(error);
    model->recorded.nodes = nodes;
    weir_model_node *shown = weir__array_grow(model->shown.nodes, model->num_nodes, sizeof *shown);
    if (!shown)
        return weir__model_no_memory(error);
    model->shown.nodes = shown;
    double *wanted = weir__array_grow(model->wanted, model->num_nodes, sizeof *wanted);
    if (!wanted)
        return weir__model_no_memory(error);
    model->wanted = wanted;
    bool is_missing = false;
    nodes[model->num_nodes] = node_copy(model, node, &is_missing);
    if (is_missing) {
        free_node(&nodes[model->num_nodes]);
        return weir__model_no_memory(error);
    }
    model->num_nodes++;
    model->baseline = NAN;
    weir__model_show(model);
    return WEIR_OK;
}

size_t weir__model_find(const weir_model *model, const char *name)
{
    size_t found = model->num_nodes;
    for (size_t i = 0; i < model->num_nodes; i++) {
        if (strcmp(name, model->recorded.nodes[i].name) == 0)
            return i;
        if (!weir_name_matches(name, model->recorded.nodes[i].name))
            continue;
        if (found < model->num_nodes)
            return model->num_nodes;
        found = i;
    }
    return found;
}

size_t weir__model_num_laps(const weir_model *model)
{
    if (!model)
        return 0;
    size_t count = model->num_laps == 0 && model->others ? model->others->num_laps : 0;
    for (size_t i = 0; i < model->num_laps; i++)
        count += model->laps[i]->num_laps;
    return count;
}
