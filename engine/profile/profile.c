/*
 * Goes through a description, upstream first. For each stage and each number of slots, one pipeline makes inputs and is freed; then
 * another one runs the stage alone on them.
 *
 * How many inputs, if the program does not say. At the end of a measurement, slots have no input while others have
 * their last ones, for half a task on average. With n inputs and s slots, that is (s - 1) / 2n of the slot time. So
 * there are ten inputs for each slot of the largest number. While the first measurement of a stage lasts less than
 * run_ns, it is repeated with more. The upstream stages need not make more than one for each slot if that takes
 * longer than run_ns. All measurements of a stage get as many.
 */
#include <stdlib.h>

#include <weir/struct_copy.h>

#include "engine/base/kernel_files.h"
#include "engine/profile/stage_run.h"

#define RUN_NS (2 * WEIR_SECOND)

enum {
    MEMORY_PARTS = 4,  /* of the available memory, one is for inputs */
    MAX_DEFAULTS = 32, /* numbers of slots: powers of two, and one */
    TASKS_PER_SLOT = 10,
    FASTEST_GROWTH = 16, /* a run that is too short says little about the length of a longer one */
};

typedef struct profile {
    const weir_builder *builder;
    weir_profile_options options;
    profile_limits limits;
    weir_profile_function *report;
    void *self;
    double *results_per_task; /* of each node: 1 = not measured */
    weir_error *error;        /* never NULL */
} profile;

/* The numbers of slots of one stage. */
typedef struct slot_numbers {
    uint32_t defaults[MAX_DEFAULTS];
    const uint32_t *all;
    size_t num;
    uint32_t largest;
} slot_numbers;

static void choose_slots(const profile *p, const weir_node *node, slot_numbers *numbers)
{
    uint32_t budget = weir_cpu_budget(), own = node->concurrency;
    uint32_t limit = own > budget ? own : budget;
    numbers->all = p->options.concurrencies;
    numbers->num = p->options.num_concurrencies;
    if (!numbers->num) {
        numbers->all = numbers->defaults;
        bool has_own = false;
        for (uint32_t slots = 1; slots <= limit && slots <= WEIR_MAX_SLOTS; slots *= 2) {
            if (!has_own && slots > own)
                numbers->defaults[numbers->num++] = own;
            has_own |= slots >= own;
            numbers->defaults[numbers->num++] = slots;
        }
        if (!has_own)
            numbers->defaults[numbers->num++] = own;
    }
    numbers->largest = 0;
    for (size_t i = 0; i < numbers->num; i++)
        if (numbers->all[i] > numbers->largest)
            numbers->largest = numbers->all[i];
}

/* How many inputs of a node are made of one item of its source, on the way through the first branches and inputs. */
static double inputs_per_source_item(const profile *p, uint32_t index)
{
    double share = 1;
    const weir_node *node = p->builder->nodes[index];
    for (uint32_t i = index; i-- > 0;) {
        if (node->core.num_ins && node->core.ins[0]->producer == &p->builder->nodes[i]->core) {
            share *= p->results_per_task[i];
            node = p->builder->nodes[i];
        }
    }
    return share;
}

static weir_profile_result begin_result(const profile *p, uint32_t index)
{
    const weir_node *node = p->builder->nodes[index];
    return (weir_profile_result){
        .name = node->short_name,
        .op = node->op->name ? node->op->name : "",
        .kind = node->kind,
        .index = index,
    };
}

static void report(const profile *p, weir_profile_result *result)
{
    double share = inputs_per_source_item(p, result->index);
    result->source_items_per_s = share > 0 ? result->items_per_s / share : 0;
    p->report(p->self, result);
}

/* After the failure of a measured stage that was reported. */
static int fail_after(const profile *p, const weir_profile_result *result)
{
    *p->error = result->error;
    return result->error.status;
}

static int name_stage(const profile *p, const weir_node *node, int status)
{
    if (status != WEIR_OK && !p->error->stage[0])
        snprintf(p->error->stage, sizeof p->error->stage, "%s", node->short_name);
    return status;
}

static int profile_source(profile *p, uint32_t index)
{
    const weir_node *node = p->builder->nodes[index];
    weir_profile_result result = begin_result(p, index);
    result.slots = 1;
    result.threads = node->threads ? node->threads : 1;
    result.is_own = true;
    result.gain = 1;
    int status = weir__source_run_alone(node, &result, &p->limits, p->error);
    if (status != WEIR_OK)
        return name_stage(p, node, status);
    report(p, &result);
    return result.error.status ? fail_after(p, &result) : WEIR_OK;
}

/* A single measurement with inputs of its own. *is_all: there are no more. */
static int measure_once(profile *p, weir_profile_result *result, uint64_t num_items, uint64_t min_items, bool *is_all)
{
    const weir_node *node = p->builder->nodes[result->index];
    stage_inputs inputs = { 0 };
    int status =
        weir__stage_inputs_make(&inputs, p->builder, result->index, num_items, min_items, &p->limits, p->error);
    if (status == WEIR_OK)
        status = weir__stage_run_alone(&inputs, node, result, &p->limits, p->error);
    *is_all = inputs.is_all;
    weir__stage_inputs_clear(&inputs);
    return status;
}

/* How many inputs would last for run_ns. */
static uint64_t next_number(const profile *p, const weir_profile_result *result)
{
    double factor = (double)p->options.run_ns / (double)(result->elapsed_ns > 0 ? result->elapsed_ns : 1);
    factor = factor > FASTEST_GROWTH ? FASTEST_GROWTH : factor;
    return (uint64_t)((double)result->num_inputs * factor) + 1;
}

/* *num_items: how many inputs were wanted in the last measurement. */
static int measure(profile *p, weir_profile_result *result, uint64_t min_items, bool may_grow, uint64_t *num_items)
{
    const weir_profile_result empty = *result;
    bool is_all;
    int status;
    for (;;) {
        *result = empty;
        status = measure_once(p, result, *num_items, min_items, &is_all);
        if (status != WEIR_OK || !may_grow || is_all || result->error.status ||
            result->elapsed_ns >= p->options.run_ns)
            return status;
        *num_items = next_number(p, result);
    }
}

static int profile_stage(profile *p, uint32_t index)
{
    const weir_node *node = p->builder->nodes[index];
    slot_numbers numbers;
    choose_slots(p, node, &numbers);
    uint64_t num_items = p->options.items ? p->options.items : (uint64_t)TASKS_PER_SLOT * numbers.largest;
    double first_rate = 0;
    for (size_t i = 0; i < numbers.num; i++) {
        weir_profile_result result = begin_result(p, index);
        uint32_t most_threads = node->threads ? node->threads : WEIR_MAX_THREADS;
        result.slots = numbers.all[i];
        result.threads = result.slots < most_threads ? result.slots : most_threads;
        result.is_own = result.slots == node->concurrency;
        int status = measure(p, &result, numbers.largest, i == 0 && !p->options.items, &num_items);
        if (status == WEIR_EUNSUPPORTED && i == 0) { /* it is in a branch */
            weir_profile_result skipped = begin_result(p, index);
            skipped.error = *p->error;
            *p->error = (weir_error){ 0 };
            p->report(p->self, &skipped);
            return WEIR_OK;
        }
        if (status != WEIR_OK)
            return name_stage(p, node, status);
        first_rate = i ? first_rate : result.items_per_s;
        result.gain = first_rate > 0 ? result.items_per_s / first_rate : 0;
        report(p, &result);
        if (result.error.status)
            return fail_after(p, &result);
        if (result.num_tasks)
            p->results_per_task[index] = (double)result.num_results / (double)result.num_tasks;
    }
    return WEIR_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

static int check_options(const weir_profile_options *options, weir_error *error)
{
    if (options->run_ns < 0 || options->time_limit_ns < 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "%s is negative; use 0 for the default",
                              options->run_ns < 0 ? "run_ns" : "time_limit_ns");
    if (!options->concurrencies != !options->num_concurrencies)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_concurrencies is %zu, but concurrencies is %s",
                              options->num_concurrencies, options->concurrencies ? "given" : "NULL");
    for (size_t i = 0; i < options->num_concurrencies; i++)
        if (options->concurrencies[i] == 0 || options->concurrencies[i] > WEIR_MAX_SLOTS)
            return weir_error_set(error, WEIR_EINVAL, 0, "concurrency %zu is %u; it must be from 1 to %d", i,
                                  options->concurrencies[i], WEIR_MAX_SLOTS);
    return WEIR_OK;
}

static uint64_t default_max_bytes(void)
{
    int64_t available = weir__available_bytes_read();
    uint64_t limit = weir__group_memory_read();
    if (available >= 0 && (uint64_t)available < limit)
        limit = (uint64_t)available;
    return limit / MEMORY_PARTS;
}

static int profile_all(profile *p)
{
    int status = WEIR_OK;
    for (uint32_t i = 0; i < p->builder->num_nodes && status == WEIR_OK; i++) {
        node_kind kind = weir__node_kind(p->builder->nodes[i]);
        if (kind == NODE_SOURCE)
            status = profile_source(p, i);
        else if (kind == NODE_STAGE)
            status = profile_stage(p, i);
    }
    return status;
}

static int start_profile(profile *p)
{
    const weir_builder *builder = p->builder;
    if (builder->error.status) {
        *p->error = builder->error;
        return builder->error.status;
    }
    if (builder->num_nodes == 0)
        return weir_error_set(p->error, WEIR_EINVAL, 0, "the description has no source: call weir_builder_source()");
    p->results_per_task = calloc(builder->num_nodes, sizeof *p->results_per_task);
    if (!p->results_per_task)
        return weir_error_set(p->error, WEIR_ENOMEM, 0, "no memory for a profile");
    for (uint32_t i = 0; i < builder->num_nodes; i++)
        p->results_per_task[i] = 1;
    p->options.run_ns = p->options.run_ns ? p->options.run_ns : RUN_NS;
    p->options.max_bytes = p->options.max_bytes ? p->options.max_bytes : default_max_bytes();
    p->limits.options = &p->options;
    p->limits.end_ns = p->options.time_limit_ns ? weir_clock_ns() + p->options.time_limit_ns : INT64_MAX;
    int status = profile_all(p);
    free(p->results_per_task);
    return status;
}

int weir_profile_sized(const weir_builder *builder, const weir_profile_options *options, size_t options_size,
                       weir_profile_function *report_result, void *self, weir_error *error)
{
    weir_error own_error = { 0 };
    profile p = { .builder = builder, .report = report_result, .self = self, .error = error ? error : &own_error };
    *p.error = (weir_error){ 0 };
    if (!builder || !report_result)
        return weir_error_set(p.error, WEIR_EINVAL, 0,
                              "weir_profile() needs a description and a function that takes results");
    int status =
        weir_struct_copy(&p.options, sizeof p.options, options, options_size, "weir_profile_options", p.error);
    if (status == WEIR_OK)
        status = check_options(&p.options, p.error);
    return status == WEIR_OK ? start_profile(&p) : status;
}
