/* weir's pipelines for the engine bench. Every stage passes its item on, after some work if the job asks for it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/engine.h>

#include "bench/harness/spin.h"
#include "bench/peers/peers.h"

/* The config of the operations. */
typedef struct weir_run {
    const engine_job *job;
    engine_result *result;
    weir_observer trace; /* writes a file */
} weir_run;

/* ---- operations --------------------------------------------------------------------------------------------- */

typedef struct source_worker {
    const weir_run *run;
    uint64_t num_made;
} source_worker;

static int source_init(void *worker, const void *config, weir_task *task)
{
    (void)task;
    source_worker *source = worker;
    source->run = config;
    source->run->result->start_ns = weir_clock_ns();
    return WEIR_OK;
}

static int source_next(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    (void)task;
    source_worker *source = worker;
    if (source->num_made == source->run->job->num_items)
        return WEIR_EOF;
    source->num_made++;
    out->data = source;
    return WEIR_OK;
}

static int stage_init(void *worker, const void *config, weir_task *task)
{
    (void)task;
    *(const weir_run **)worker = config;
    return WEIR_OK;
}

static int pass_on(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)task;
    const weir_run *run = *(const weir_run **)worker;
    bench_spin(run->job->op_spins);
    weir_item_move(out, in);
    return WEIR_OK;
}

static int complete_at_once(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const weir_run *run = *(const weir_run **)worker;
    bench_spin(run->job->op_spins);
    weir_item_move(out, in);
    weir_task_complete(task, WEIR_OK, out);
    return WEIR_PENDING;
}

static int round_robin(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item->seq % ENGINE_BRANCHES);
}

static const weir_op source_op = {
    .name = "count",
    .worker_size = sizeof(source_worker),
    .worker_init = source_init,
    .run = source_next,
};
static const weir_op stage_op = {
    .name = "nothing",
    .worker_size = sizeof(const weir_run *),
    .worker_init = stage_init,
    .run = pass_on,
};
static const weir_op pending_op = {
    .name = "later",
    .worker_size = sizeof(const weir_run *),
    .worker_init = stage_init,
    .run = complete_at_once,
};

/* ---- the run ------------------------------------------------------------------------------------------------ */

static void add_stages(weir_builder *builder, const weir_run *run)
{
    const engine_job *job = run->job;
    weir_stage_options options = {
        .concurrency = job->concurrency,
        .queue_items = job->queue_items,
        .output_order = job->in_order ? WEIR_ORDER_INPUT : WEIR_ORDER_COMPLETION,
    };
    for (uint32_t i = 0; i < job->num_stages; i++)
        weir_builder_pipe(builder, job->shape == ENGINE_PENDING ? &pending_op : &stage_op, run, 0, &options);
}

static void add_route(weir_builder *builder, const weir_run *run)
{
    weir_stage_options options = { .queue_items = run->job->queue_items };
    weir_builder_route(builder, &(weir_route_config){ .pick = round_robin, .num_branches = ENGINE_BRANCHES },
                       &options);
    for (int i = 0; i < ENGINE_BRANCHES; i++) {
        weir_builder_branch(builder);
        add_stages(builder, run);
    }
    weir_builder_join(builder, &options);
}

/* An observer of laps, so that laps are taken. */
static void see_lap(void *self, const weir_subject_lap *lap)
{
    (void)self;
    (void)lap;
}

static void see_records(void *self, const weir_trace_batch *batch)
{
    (void)self;
    (void)batch;
}

static weir_pipeline *build(const weir_run *run)
{
    const engine_job *job = run->job;
    weir_observer observer = { .lap = see_lap, .trace = job->trace == ENGINE_NO_TRACE ? NULL : see_records };
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source_op, run, 0, &(weir_stage_options){ .queue_items = job->queue_items });
    if (job->shape == ENGINE_ROUTE)
        add_route(builder, run);
    else
        add_stages(builder, run);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = job->queue_items });
    weir_builder_build(builder,
                       &(weir_pipeline_options){
                           .threads = job->threads,
                           .stats_interval_ns = WEIR_SECOND,
                           .observers = &observer,
                           .num_observers = 1,
                           .no_statistics = job->no_statistics,
                           .trace_off = job->trace == ENGINE_TRACE_OFF,
                           .checkpoints = job->checkpoints ? WEIR_CHECKPOINTS_DELIVERED : WEIR_CHECKPOINTS_OFF,
                       },
                       &pipeline, &error);
    if (!pipeline)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    return pipeline;
}

static int drain(weir_pipeline *pipeline, const engine_job *job, engine_result *result)
{
    uint64_t num_items = 0;
    weir_item item;
    int rc;
    while ((rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        num_items++;
        weir_item_release(&item);
    }
    result->end_ns = weir_clock_ns();
    if (rc == WEIR_EOF && num_items == job->num_items)
        return 0;
    fprintf(stderr, "weir-bench: %" PRIu64 " of %" PRIu64 "  items arrived, then %s\n", num_items, job->num_items,
            weir_status_name(rc));
    return -1;
}

int engine_run_weir(const engine_job *job, engine_result *result)
{
    weir_run run = { .job = job, .result = result };
    weir_pipeline *pipeline = build(&run);
    int rc = pipeline ? drain(pipeline, job, result) : -1;
    weir_pipeline_free(pipeline);
    return rc;
}
