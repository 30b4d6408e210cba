/* Start and end of a pipeline, and the user's queries. core.h and run_state.h explain how it runs. */
#include "engine/run/pipeline_start.h"
#include "engine/state/burst.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/struct_copy.h>

#include "engine/measure/consumer_position.h"
#include "engine/measure/kept_failures.h"
#include "engine/measure/lap_taker.h"
#include "engine/measure/observing.h"
#include "engine/measure/outbox.h"
#include "engine/measure/reporting.h"
#include "engine/measure/running.h"
#include "engine/resume/tracker.h"
#include "engine/run/absence.h"
#include "engine/run/closing.h"
#include "engine/run/node.h"
#include "engine/run/pool.h"
#include "engine/run/run_room.h"
#include "engine/run/service.h"
#include "engine/run/signals.h"
#include "engine/state/failure_log.h"
#include "engine/state/lock.h"
#include "engine/state/thread.h"
#include "engine/trace/trace_ring.h"

/* ---- start and end ------------------------------------------------------------------------------------------ */

static int place_nodes(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_error *error)
{
    int status = WEIR_OK;
    pipeline->core.nodes = calloc(pipeline->core.num_nodes, sizeof(weir__core_node *));
    if (!pipeline->core.nodes)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the pipeline");
    for (uint32_t i = 0; i < pipeline->core.num_nodes && status == WEIR_OK; i++) {
        weir_node *node = pipeline->nodes[i];
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            node->core.outs[j].index = pipeline->num_queues++;
        node->core.source_index = pipeline->num_sources;
        pipeline->num_sources += node->core.num_ins == 0;
        pipeline->core.needs_results |= node->op && node->op->needs_results;
        pipeline->core.nodes[i] = &node->core;
        status = weir__node_place(node, pipeline, i, options, error);
        if (status == WEIR_OK)
            status = weir__node_make_slots(node, error);
    }
    pipeline->core.sink = &pipeline->nodes[pipeline->core.num_nodes - 1]->core.outs[0];
    return status;
}

static int add_pool(weir_pipeline *pipeline, weir_node *owner, uint32_t threads, weir_error *error)
{
    weir_pool *pool;
    int status = weir__pool_new(pipeline, owner, threads, &pool, error);
    if (status == WEIR_OK)
        pipeline->pools[pipeline->num_pools++] = pool;
    else
        weir__pool_free(pool);
    return status;
}

static int make_pools(weir_pipeline *pipeline, uint32_t threads, weir_error *error)
{
    pipeline->pools = calloc(pipeline->core.num_nodes + 1, sizeof *pipeline->pools);
    if (!pipeline->pools)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the pools");
    int status = add_pool(pipeline, NULL, threads ? threads : weir_cpu_budget(), error);
    for (uint32_t i = 0; i < pipeline->core.num_nodes && status == WEIR_OK; i++) {
        weir_node *node = pipeline->nodes[i];
        if (node->op && node->threads)
            status = add_pool(pipeline, node, node->threads, error);
        node->pool = node->op ? pipeline->pools[node->threads ? pipeline->num_pools - 1 : 0] : NULL;
        node->core.pool = node->op ? &node->pool->core : NULL;
    }
    return status;
}

static int make_conditions(weir_pipeline *pipeline, weir_error *error)
{
    int code = uv_cond_init(&pipeline->consumer.consumable);
    pipeline->consumer.consumable_made = code == 0;
    if (code == 0)
        code = weir__reporting_new(pipeline);
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot create a condition variable: %s", uv_strerror(code));
    return WEIR_OK;
}

static int begin_at_epoch(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_error *error)
{
    uint64_t epoch = options->begin_epoch;
    if (epoch == 0)
        return WEIR_OK;
    if (options->num_resume)
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "begin_epoch and resume are both given: a resumed run begins where its checkpoint was made");
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir__core_node *node = pipeline->core.nodes[i];
        if (node->num_ins == 0 && !node->epochs)
            return weir_error_set(error, WEIR_EINVAL, 0, "begin_epoch is %" PRIu64 ", but source %s has no epochs",
                                  epoch, pipeline->nodes[i]->short_name);
        if (node->num_ins == 0)
            weir__source_begin_epoch(node, epoch);
        node->merge_epoch = epoch;
    }
    weir__tracker_begin_epoch(pipeline->tracker, epoch);
    pipeline->position->epoch = epoch;
    return WEIR_OK;
}

static int copy_thread_hooks(weir__run *run, const weir_pipeline_options *options, weir_error *error)
{
    size_t num_hooks = options->num_thread_hooks;
    if (num_hooks == 0)
        return WEIR_OK;
    run->thread_hooks = calloc(num_hooks, sizeof *run->thread_hooks);
    if (!run->thread_hooks)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the thread hooks");
    memcpy(run->thread_hooks, options->thread_hooks, num_hooks * sizeof *run->thread_hooks);
    run->num_thread_hooks = num_hooks;
    return WEIR_OK;
}

static int start_threads(weir_pipeline *pipeline, weir_error *error)
{
    int status = WEIR_OK;
    for (uint32_t i = 0; i < pipeline->num_pools && status == WEIR_OK; i++)
        status = weir__pool_start(pipeline->pools[i], error);
    if (status == WEIR_OK)
        status = weir__observing_start(pipeline, error);
    if (status == WEIR_OK)
        status = weir__service_start(pipeline, error);
    return status;
}

/* Frees everything. Its threads have ended or, after a failed start, never had work. */
static void destroy_pipeline(weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        weir__pool_join(pipeline->pools[i]);
    if (pipeline->reporting && pipeline->reporting->thread_started)
        weir__outbox_close(&pipeline->reporting->outbox);
    weir__observing_join(pipeline);
    weir__observing_destroy(pipeline);
    weir__trace_destroy(pipeline);
    weir__laps_destroy(pipeline);
    weir__service_destroy(pipeline);
    weir__reporting_free(pipeline);
    free(pipeline->failure_log);
    free(pipeline->position);
    if (!pipeline->run->free_closed)
        weir__closing_free(pipeline->run->closing);
    free(pipeline->run->thread_hooks);
    free(pipeline->run);
    weir__tracker_free(pipeline->tracker);
    weir__kept_failures_free(pipeline->kept_failures);
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        weir__node_free(pipeline->nodes[i]);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        weir__pool_free(pipeline->pools[i]);
    if (pipeline->consumer.poll_fd >= 0)
        close(pipeline->consumer.poll_fd);
    if (pipeline->consumer.consumable_made)
        uv_cond_destroy(&pipeline->consumer.consumable);
    free(pipeline->pools);
    free(pipeline->core.nodes);
    free(pipeline->nodes);
    if (weir__pipeline_of_thread == pipeline) /* a signal handler may read it */
        weir__pipeline_of_thread = NULL;
    free(pipeline);
}

static weir_pipeline *pipeline_new(weir_node **nodes, uint32_t num_nodes, const weir_pipeline_options *options)
{
    weir_pipeline *pipeline = calloc(1, sizeof *pipeline);
    weir__run *run = calloc(1, sizeof *run);
    weir__closing *closing = weir__closing_new();
    if (!pipeline || !run || !closing) {
        free(pipeline);
        free(run);
        weir__closing_free(closing);
        for (uint32_t i = 0; i < num_nodes; i++)
            weir__node_free(nodes[i]);
        free(nodes);
        return NULL;
    }
    pipeline->run = run;
    run->speedup.lock = WEIR_MUTEX;
    run->closing = closing;
    run->freed = options->freed;
    run->freed_self = options->freed_self;
    pipeline->num_forks = weir__forks_watch();
    pipeline->nodes = nodes;
    pipeline->consumer.poll_fd = -1;
    pipeline->lock = WEIR_MUTEX;
    pipeline->resize_lock = WEIR_MUTEX;
    pipeline->core.num_nodes = num_nodes;
    pipeline->id = options->id;
    pipeline->stats_interval_ns = options->stats_interval_ns ? options->stats_interval_ns : 60 * WEIR_SECOND;
    if (pipeline->stats_interval_ns > INT64_MAX / 2) /* so that the clock plus an interval does not overflow */
        pipeline->stats_interval_ns = INT64_MAX / 2;
    pipeline->steps_per_lap = options->steps_per_lap;
    pipeline->num_cpus = weir_cpu_budget();
    pipeline->core.measures = !options->no_statistics;
    pipeline->stall_warning_ns = options->stall_warning_ns ? options->stall_warning_ns : 30 * WEIR_SECOND;
    return pipeline;
}

/* Time is counted from now on. */
static int begin_time(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_error *error)
{
    int64_t start_ns = pipeline->start_ns = weir_clock_ns();
    pipeline->failure_log = weir__failure_log_new();
    if (options->kept_failures)
        pipeline->kept_failures = weir__kept_failures_new(options->kept_failures);
    if (!pipeline->failure_log || !pipeline->kept_failures != !options->kept_failures ||
        weir__laps_init(pipeline, start_ns) != WEIR_OK ||
        weir__trace_init(pipeline, options->trace_records) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the statistics");
    pipeline->reporting->start_unix_ns = weir__laps_unix_at_ns(pipeline, start_ns);
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        pipeline->nodes[i]->core.may_run_ahead = weir__burst_allowed(pipeline->nodes[i]);
    weir__graph_prepare(&pipeline->core, start_ns);
    if (!options->trace_off)
        weir__trace_begin(pipeline);
    return WEIR_OK;
}

int weir__pipeline_start(weir_node **nodes, uint32_t num_nodes, const weir_pipeline_options *options,
                         weir_pipeline **made, weir_error *error)
{
    weir_pipeline *pipeline = pipeline_new(nodes, num_nodes, options);
    if (!pipeline)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the pipeline");

    int status = make_conditions(pipeline, error);
    if (status == WEIR_OK && weir__position_new(pipeline) != WEIR_OK)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the pipeline");
    if (status == WEIR_OK)
        status = weir__observing_init(pipeline, options, error);
    if (status == WEIR_OK)
        status = place_nodes(pipeline, options, error);
    if (status == WEIR_OK)
        status = weir__tracker_new(pipeline, options, &pipeline->tracker, error);
    if (status == WEIR_OK)
        status = begin_at_epoch(pipeline, options, error);
    if (status == WEIR_OK)
        status = copy_thread_hooks(pipeline->run, options, error);
    if (status == WEIR_OK)
        status = make_pools(pipeline, options->threads, error);
    if (status == WEIR_OK)
        status = weir__service_init(pipeline, error);
    if (status == WEIR_OK)
        status = begin_time(pipeline, options, error);
    if (status == WEIR_OK)
        status = start_threads(pipeline, error);
    if (status != WEIR_OK) {
        destroy_pipeline(pipeline);
        return status;
    }

    weir__outbox_add_start(&pipeline->reporting->outbox);
    weir__running_add(pipeline);
    *made = pipeline; /* before tasks start: they may use it */
    engine_lock_at(pipeline, weir_clock_ns());
    weir__graph_start(&pipeline->core);
    pipeline->waking.wake_service = true;
    weir__engine_unlock(pipeline);
    return WEIR_OK;
}

int weir_pipeline_stop(weir_pipeline *pipeline)
{
    if (!pipeline)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    engine_lock_at(pipeline, weir_clock_ns());
    weir__graph_stop(&pipeline->core);
    weir__engine_unlock(pipeline);
    return WEIR_OK;
}

/* Asserts that no item was lost. */
static bool is_accounted_for(weir_pipeline *pipeline)
{
    weir_account account;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        if (weir_pipeline_account(pipeline, pipeline->nodes[i]->name, &account) != WEIR_OK || account.in_flight != 0)
            return false;
    return weir_pipeline_account(pipeline, NULL, &account) == WEIR_OK && account.in_flight == 0;
}

/* What was reported before is part of the run. free_closed: see run_room.h. False = somebody else closes it. */
static bool close_run(weir_pipeline *pipeline, void (*free_closed)(weir_pipeline *pipeline))
{
    weir__position_end(pipeline);
    engine_lock_at(pipeline, weir_clock_ns());
    bool is_first = !pipeline->closing;
    if (is_first) {
        pipeline->run->free_closed = free_closed;
        pipeline->closing = true;
    }
    pipeline->waking.wake_service = true;
    weir__engine_unlock(pipeline);
    return is_first;
}

/* The service thread has ended its work. */
static void free_ended(weir_pipeline *pipeline)
{
    weir__running_remove(pipeline);
    weir__observing_join(pipeline);
    pipeline->reporting->thread_started = false;
    assert(is_accounted_for(pipeline));
    (void)is_accounted_for;
    void (*freed)(void *self) = pipeline->run->freed;
    void *freed_self = pipeline->run->freed_self;
    destroy_pipeline(pipeline);
    if (freed)
        freed(freed_self);
}

void weir_pipeline_free(weir_pipeline *pipeline)
{
    if (!pipeline || is_of_parent(pipeline)) /* its threads and locks are the parent's: the child keeps the memory */
        return;
    weir_pipeline_stop(pipeline);
    if (weir__pipeline_of_thread == pipeline) {
        weir_log(WEIR_LOG_ERROR,
                 "weir_pipeline_free() was called on one of the pipeline's own threads, which it would have to "
                 "join: the pipeline is stopped, but not freed");
        return;
    }
    weir__absence_forget(pipeline);
    weir__signals_forget(pipeline);
    close_run(pipeline, NULL);
    weir__service_join(pipeline);
    free_ended(pipeline);
}

int weir_pipeline_close(weir_pipeline *pipeline, int64_t timeout_ns)
{
    if (!pipeline || (timeout_ns < 0 && timeout_ns != WEIR_FOREVER))
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    weir_pipeline_stop(pipeline);
    weir__absence_forget(pipeline);
    weir__signals_forget(pipeline);
    weir__closing *closing = pipeline->run->closing;
    uv_thread_t service_thread = pipeline->run->service.thread;
    bool is_own = weir__pipeline_of_thread == pipeline;
    if (!close_run(pipeline, free_ended))
        return WEIR_EINVAL;
    return weir__closing_wait(closing, service_thread, is_own ? 0 : timeout_ns);
}

/* ---- errors, accounts, events ------------------------------------------------------------------------------- */

weir_node *weir__pipeline_find(const weir_pipeline *pipeline, const char *stage)
{
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        if (strcmp(pipeline->nodes[i]->name, stage) == 0)
            return pipeline->nodes[i];
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        if (strcmp(pipeline->nodes[i]->short_name, stage) == 0)
            return pipeline->nodes[i];
    return NULL;
}

int weir_pipeline_error(weir_pipeline *pipeline, const char *stage, weir_error *error)
{
    if (!pipeline || !error)
        return WEIR_EINVAL;
    *error = (weir_error){ 0 };
    if (is_of_parent(pipeline))
        return weir_error_set(error, WEIR_EFORKED, 0, "%s", weir_status_text(WEIR_EFORKED));
    weir_node *node = stage ? weir__pipeline_find(pipeline, stage) : NULL;
    if (stage && !node)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "the pipeline has no stage \"%s\"", stage);
    weir__engine_lock(pipeline);
    *error = stage ? node->first_error : pipeline->error;
    weir__engine_unlock(pipeline);
    return error->status;
}

int weir_pipeline_next_failure(weir_pipeline *pipeline, weir_kept_failure **failure)
{
    if (!pipeline || !failure)
        return WEIR_EINVAL;
    *failure = is_of_parent(pipeline) ? NULL : weir__kept_failures_take(pipeline->kept_failures);
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    return *failure ? WEIR_OK : WEIR_ENOTFOUND;
}

static uint64_t num_gone(const weir_account *account)
{
    return account->passed_on + account->skipped + account->failed + account->dropped + account->merged;
}

static void add_up_locked(const weir_pipeline *pipeline, weir_account *account)
{
    account->passed_on = pipeline->core.sink->total_got;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        const weir_node *node = pipeline->nodes[i];
        account->taken += node->core.num_ins == 0 ? node->core.account.taken : 0;
        account->created += node->core.account.created;
        account->skipped += node->core.account.skipped;
        account->failed += node->core.account.failed;
        account->dropped += node->core.account.dropped;
        account->merged += node->core.account.merged;
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            account->dropped += node->core.outs[j].total_dropped;
    }
}

int weir_pipeline_account_sized(weir_pipeline *pipeline, const char *stage, weir_account *account,
                                size_t account_size)
{
    if (!pipeline || !account)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    weir_node *node = stage ? weir__pipeline_find(pipeline, stage) : NULL;
    weir_account own = { 0 };
    weir__engine_lock(pipeline);
    if (node)
        own = node->core.account;
    else if (!stage)
        add_up_locked(pipeline, &own);
    weir__engine_unlock(pipeline);
    own.in_flight = own.taken + own.created - num_gone(&own);
    weir_struct_fill(account, account_size, &own, sizeof own);
    return stage && !node ? WEIR_ENOTFOUND : WEIR_OK;
}

int weir_pipeline_set_held(weir_pipeline *pipeline, uint64_t bytes)
{
    if (!pipeline || bytes > WEIR__MOST_HELD_BYTES)
        return WEIR_EINVAL;
    weir__held *held = &pipeline->nodes[pipeline->core.num_nodes - 1]->held;
    weir__held_set(held, &held->shared, (int64_t)bytes);
    return WEIR_OK;
}

int weir_pipeline_event(weir_pipeline *pipeline, const char *name, const char *category, const char *detail)
{
    if (!pipeline || !name)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    return weir__outbox_add_event(pipeline, name, category, detail);
}
