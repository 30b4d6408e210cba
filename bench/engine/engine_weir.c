/*
 * weir's pipelines for the engine bench. Every stage passes its item on, after some work if the job asks for it.
 *
 * Pending operations pass their task to the completer, a thread that completes all pending tasks at once, like an
 * event loop. Its lock is never held while it calls the engine.
 */
#include "engine_weir.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/engine.h>
#ifdef WEIR_BENCH_STATS
#include <unistd.h>

#include <weir/trace_file.h>
#endif

#include "memory.h"
#include "spin.h"

typedef struct pending_task {
    weir_task *task;
    weir_item *in; /* input of the task */
} pending_task;

typedef struct completer {
    /* immutable after init */
    pthread_t thread;

    /* the completer's thread only */
    pending_task *batch;

    /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t work; /* num_tasks > 0 or quit; with lock */
    pending_task *tasks; /* room for one task per slot; swapped with batch */
    uint32_t num_tasks;
    bool quit;
} completer;

/* The config of the operations. */
typedef struct weir_run {
    const engine_job *job;
    engine_result *result;
    completer *completer; /* NULL = no task is pending */
    weir_observer trace;  /* writes a file */
} weir_run;

/* ---- the completer ------------------------------------------------------------------------------------------ */

static void complete(const pending_task *pending)
{
    weir_item out = { 0 };
    weir_item_move(&out, pending->in);
    weir_task_complete(pending->task, WEIR_OK, &out);
}

/* Moves the pending tasks to the batch; waits until there is one. 0 = no more will come. */
static uint32_t take_batch(completer *self)
{
    pthread_mutex_lock(&self->lock);
    while (self->num_tasks == 0 && !self->quit)
        pthread_cond_wait(&self->work, &self->lock);
    pending_task *batch = self->tasks;
    uint32_t num_tasks = self->num_tasks;
    self->tasks = self->batch;
    self->num_tasks = 0;
    pthread_mutex_unlock(&self->lock);
    self->batch = batch;
    return num_tasks;
}

static void *completer_main(void *argument)
{
    completer *self = argument;
    uint32_t num_tasks;
    while ((num_tasks = take_batch(self)) > 0) {
        for (uint32_t i = 0; i < num_tasks; i++)
            complete(&self->batch[i]);
    }
    return NULL;
}

static void leave_with(completer *self, weir_task *task, weir_item *in)
{
    pthread_mutex_lock(&self->lock);
    self->tasks[self->num_tasks++] = (pending_task){ task, in };
    bool was_empty = self->num_tasks == 1;
    pthread_mutex_unlock(&self->lock);
    if (was_empty)
        pthread_cond_signal(&self->work);
}

static int completer_start(completer *self, const engine_job *job)
{
    size_t max_tasks = (size_t)job->concurrency * job->num_stages;
    self->tasks = memory_get(max_tasks, sizeof *self->tasks);
    self->batch = memory_get(max_tasks, sizeof *self->batch);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->work, NULL);
    if (pthread_create(&self->thread, NULL, completer_main, self) == 0)
        return 0;

    fprintf(stderr, "weir-bench: cannot start the thread that completes pending tasks\n");
    pthread_cond_destroy(&self->work);
    pthread_mutex_destroy(&self->lock);
    free(self->tasks);
    free(self->batch);
    return -1;
}

/* Ends the completer when no task is pending. */
static void completer_end(completer *self)
{
    pthread_mutex_lock(&self->lock);
    self->quit = true;
    pthread_mutex_unlock(&self->lock);
    pthread_cond_signal(&self->work);
    pthread_join(self->thread, NULL);
    pthread_cond_destroy(&self->work);
    pthread_mutex_destroy(&self->lock);
    free(self->tasks);
    free(self->batch);
}

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

static int pass_on_later(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)out;
    const weir_run *run = *(const weir_run **)worker;
    bench_spin(run->job->op_spins);
    leave_with(run->completer, task, in);
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
    .run = pass_on_later,
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
    weir_observer observers[2] = { { .lap = see_lap }, run->trace };
    if (job->trace == ENGINE_TRACE_OFF || job->trace == ENGINE_TRACE_ON)
        observers[1].trace = see_records;
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
                           .observers = observers,
                           .num_observers = 2,
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

static int run_pipeline(const weir_run *run)
{
    if (run->completer && completer_start(run->completer, run->job) != 0)
        return -1;
    weir_pipeline *pipeline = build(run);
    int rc = pipeline ? drain(pipeline, run->job, run->result) : -1;
    weir_pipeline_free(pipeline);
    if (run->completer)
        completer_end(run->completer);
    return rc;
}

#ifdef WEIR_BENCH_STATS
/* Records that are lost are no failure: an operation that does nothing makes them faster than a file is written. */
static int run_traced(weir_run *run)
{
    char path[] = "/tmp/weir-bench-XXXXXX";
    weir_trace_file *file;
    weir_error error = { 0 };
    int descriptor = mkstemp(path);
    weir_trace_options options = { .overwrite = true, .max_bytes = 64 << 20 };
    int rc = descriptor < 0 ? -1 : weir_trace_open(path, &options, &file, &error);
    if (rc != 0) {
        fprintf(stderr, "weir-bench: %s: cannot write a trace: %s\n", path, error.message);
    } else {
        run->trace = weir_trace_observer(file);
        rc = run_pipeline(run);
        weir_trace_close(file, NULL);
    }
    if (descriptor >= 0) {
        close(descriptor);
        unlink(path);
    }
    return rc == 0 ? 0 : -1;
}
#endif

int engine_run_weir(const engine_job *job, engine_result *result)
{
    completer own = { 0 };
    weir_run run = { .job = job, .result = result, .completer = job->shape == ENGINE_PENDING ? &own : NULL };
#ifdef WEIR_BENCH_STATS
    if (job->trace == ENGINE_TRACE_FILE)
        return run_traced(&run);
#endif
    return run_pipeline(&run);
}
