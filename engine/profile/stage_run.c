#include "engine/profile/stage_run.h"

#include <inttypes.h>
#include <string.h>

#include <weir/clock.h>

#include "engine/base/kernel_files.h"

/* How often should_stop() is asked, and how often memory is looked at. */
#define LOOK_NS   (20 * WEIR_MILLISECOND)
#define MEMORY_NS (100 * WEIR_MILLISECOND)

int weir__profile_limits_check(profile_limits *limits, weir_error *error)
{
    const weir_profile_options *options = limits->options;
    int64_t now_ns = weir_clock_ns();
    if (now_ns < limits->next_look_ns)
        return WEIR_OK;
    limits->next_look_ns = now_ns + LOOK_NS;
    if (options->should_stop && options->should_stop(options->should_stop_self))
        return weir_error_set(error, WEIR_ESTOPPED, 0, "the profile was stopped");
    if (now_ns < limits->end_ns)
        return WEIR_OK;
    return weir_error_set(error, WEIR_ETIMEDOUT, 0,
                          "the profile takes longer than its limit of %g s: raise it, or set fewer items",
                          (double)options->time_limit_ns / WEIR_SECOND);
}

/* WEIR_OK with an item, WEIR_EOF, WEIR_EFAILED, or the status of the limits with *error filled. */
static int next_result(weir_pipeline *pipeline, weir_item *item, profile_limits *limits, weir_error *error)
{
    int status = WEIR_ETIMEDOUT;
    while (status == WEIR_ETIMEDOUT || status == WEIR_EPOCH) {
        int limit = weir__profile_limits_check(limits, error);
        if (limit != WEIR_OK)
            return limit;
        status = weir_pipeline_next(pipeline, item, LOOK_NS);
    }
    return status;
}

static int add_sink_and_build(weir_builder *builder, const weir_observer *observer, weir_pipeline **pipeline,
                              weir_error *error)
{
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .stats_interval_ns = MEMORY_NS,
                                      .observers = observer,
                                      .num_observers = observer ? 1 : 0 };
    return weir_builder_build(builder, &options, pipeline, error);
}

/* ---- inputs --------------------------------------------------------------------------------------------------------- */

typedef struct making {
    stage_inputs *inputs;
    uint64_t num_items, min_items;
    int64_t end_ns; /* of making more than min_items */
} making;

static bool has_enough(const making *work, const weir_profile_options *options)
{
    const stage_inputs *inputs = work->inputs;
    if (inputs->num_items >= work->num_items)
        return true;
    return inputs->bytes >= options->max_bytes ||
           (!options->items && inputs->num_items >= work->min_items && weir_clock_ns() >= work->end_ns);
}

static int take_inputs(const making *work, weir_pipeline *pipeline, profile_limits *limits, weir_error *error)
{
    int status = WEIR_OK;
    while (status == WEIR_OK && !has_enough(work, limits->options)) {
        weir_item item;
        status = next_result(pipeline, &item, limits, error);
        if (status == WEIR_OK && weir__stage_inputs_add(work->inputs, &item) != WEIR_OK) {
            weir_item_release(&item);
            status = weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the inputs of a stage: set max_bytes");
        }
    }
    work->inputs->is_all = work->inputs->num_items < work->num_items;
    return status == WEIR_EOF ? WEIR_OK : status;
}

int weir__stage_inputs_make(stage_inputs *inputs, const weir_builder *builder, uint32_t index, uint64_t num_items,
                            uint64_t min_items, profile_limits *limits, weir_error *error)
{
    weir_builder *upstream;
    weir_pipeline *pipeline;
    int status = weir__builder_copy_upstream(builder, index, &upstream, error);
    if (status == WEIR_OK)
        status = add_sink_and_build(upstream, NULL, &pipeline, error);
    if (status != WEIR_OK)
        return status;
    making work = { inputs, num_items, min_items, weir_clock_ns() + limits->options->run_ns };
    status = take_inputs(&work, pipeline, limits, error);
    if (status == WEIR_EFAILED)
        status = weir_pipeline_error(pipeline, NULL, error);
    weir_pipeline_free(pipeline);
    if (status == WEIR_OK && inputs->num_items == 0)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "it gets no inputs: the upstream stages have made none");
    return status;
}

/* ---- what is measured ------------------------------------------------------------------------------------------------ */

/* The sums of all laps; the observer thread fills it, until the pipeline is freed. */
typedef struct run_figures {
    const char *kind; /* of what is measured */
    weir_task_metrics tasks;
    int64_t resident_bytes; /* the largest, with children; negative = not known */
    weir_error failure;     /* the first one */
} run_figures;

static void keep_first_failure(void *self, const weir_failure *failure)
{
    weir_error *first = &((run_figures *)self)->failure;
    if (first->status != WEIR_OK)
        return;
    weir_error_set(first, failure->status, failure->library_code, "%s%s%s", failure->label,
                   failure->label[0] ? ": " : "", failure->message);
}

static void add_lap(void *self, const weir_subject_lap *lap)
{
    run_figures *figures = self;
    bool is_wanted = lap->subject == WEIR_SUBJECT_STAGE || lap->subject == WEIR_SUBJECT_FLOW;
    if (is_wanted && strcmp(lap->kind, figures->kind) == 0) {
        weir_metrics_add(weir_subject_metrics(lap->subject), &figures->tasks, &lap->metrics.task);
    } else if (lap->subject == WEIR_SUBJECT_PROCESS) {
        const weir_process_metrics *process = &lap->metrics.process;
        int64_t children = process->child_pss_bytes >= 0 ? process->child_pss_bytes : process->child_resident_bytes;
        int64_t resident = process->resident_bytes + (children > 0 ? children : 0);
        if (process->resident_bytes > 0 && resident > figures->resident_bytes)
            figures->resident_bytes = resident;
    }
}

static void fill_result(weir_profile_result *result, const run_figures *figures, int64_t before_bytes,
                        uint64_t num_done)
{
    const weir_task_metrics *tasks = &figures->tasks;
    double elapsed_s = (double)result->elapsed_ns / WEIR_SECOND;
    result->num_tasks = tasks->num_tasks;
    result->num_failures = tasks->num_failures;
    result->busy_ns = tasks->busy_ns;
    result->tail_ns = tasks->epoch_tail_ns;
    result->cpu_ns = tasks->cpu_ns;
    result->items_per_s = elapsed_s > 0 ? (double)num_done / elapsed_s : 0;
    result->busy_share = elapsed_s > 0 ? (double)tasks->busy_ns / WEIR_SECOND / (elapsed_s * result->slots) : 0;
    result->cpu_per_item_s = num_done ? (double)tasks->cpu_ns / WEIR_SECOND / (double)num_done : 0;
    bool is_known = before_bytes > 0 && figures->resident_bytes > 0;
    int64_t growth = figures->resident_bytes - before_bytes;
    result->memory_bytes = !is_known ? -1 : growth > 0 ? growth : 0;
}

/* A stage all of whose tasks failed was not measured: how long it takes to fail says nothing about its work. */
static void refuse_if_all_failed(weir_profile_result *result, const weir_error *first)
{
    if (result->error.status != WEIR_OK || result->num_tasks == 0 || result->num_failures < result->num_tasks)
        return;
    result->error = *first;
    snprintf(result->error.stage, sizeof result->error.stage, "%s", result->name);
    snprintf(result->error.message, sizeof result->error.message,
             "%" PRIu64 " of %" PRIu64 " tasks failed; the first: %.400s", result->num_failures, result->num_tasks,
             first->message);
    result->items_per_s = result->busy_share = result->cpu_per_item_s = 0;
}

/* Takes results until the end, max_results, or `until_ns`, and releases them. */
static int take_results(weir_pipeline *pipeline, uint64_t max_results, int64_t until_ns, uint64_t *num_results,
                        profile_limits *limits, weir_error *error)
{
    int status = WEIR_OK;
    while (status == WEIR_OK && *num_results < max_results && (until_ns == INT64_MAX || weir_clock_ns() < until_ns)) {
        weir_item item;
        status = next_result(pipeline, &item, limits, error);
        if (status == WEIR_OK) {
            ++*num_results;
            weir_item_release(&item);
        }
    }
    return status == WEIR_EOF ? WEIR_OK : status;
}

/* What one run measures: of a stage (inputs) or a source (NULL). */
static int run_measured(weir_builder *builder, stage_inputs *inputs, weir_profile_result *result,
                        profile_limits *limits, weir_error *error)
{
    const weir_profile_options *options = limits->options;
    run_figures figures = { .kind = result->kind };
    weir_observer observer = { .self = &figures, .lap = add_lap, .failure = keep_first_failure };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &figures.tasks);
    int64_t before_bytes = weir__resident_bytes_read("/proc/self");
    weir_pipeline *pipeline;
    int status = add_sink_and_build(builder, &observer, &pipeline, error);
    if (status != WEIR_OK)
        return status;
    int64_t start_ns = weir_clock_ns();
    int64_t until_ns = inputs || options->items ? INT64_MAX : start_ns + options->run_ns;
    uint64_t max_results = !inputs && options->items ? options->items : UINT64_MAX;
    status = take_results(pipeline, max_results, until_ns, &result->num_results, limits, error);
    result->elapsed_ns = weir_clock_ns() - (inputs && inputs->start_ns ? inputs->start_ns : start_ns);
    if (status == WEIR_EFAILED)
        weir_pipeline_error(pipeline, NULL, &result->error);
    weir_pipeline_free(pipeline);
    fill_result(result, &figures, before_bytes, inputs ? figures.tasks.num_tasks : result->num_results);
    refuse_if_all_failed(result, &figures.failure);
    return status == WEIR_EFAILED ? WEIR_OK : status;
}

int weir__stage_run_alone(stage_inputs *inputs, const weir_node *node, weir_profile_result *result,
                          profile_limits *limits, weir_error *error)
{
    const weir_node *before = (const weir_node *)node->core.ins[0]->producer;
    weir_stage_options options = weir__node_options(node);
    options.concurrency = result->slots;
    options.threads = result->threads;
    result->num_inputs = inputs->num_items;
    result->kept_bytes = inputs->bytes;
    weir_builder *builder = weir_builder_new();
    /* As many inputs wait as slots may need one at once. An epoch has a tail, which the engine measures. */
    weir_stage_options feed = { .queue_items = result->slots + 1, .epochs = 1 };
    weir__stage_inputs_add_source(inputs, before->makes, builder, &feed);
    weir__builder_add_copy(builder, node, &options);
    return run_measured(builder, inputs, result, limits, error);
}

int weir__source_run_alone(const weir_node *node, weir_profile_result *result, profile_limits *limits,
                           weir_error *error)
{
    weir_stage_options options = weir__node_options(node);
    weir_builder *builder = weir_builder_new();
    weir__builder_add_copy(builder, node, &options);
    return run_measured(builder, NULL, result, limits, error);
}
