/* A pipeline's beginning and end, and what its user may ask of it. internal.h explains how it runs. */
#include "pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

/* ---- beginning and end -------------------------------------------------------------------------------------- */

static int place_nodes(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_error *error)
{
    int status = WEIR_OK;
    for (uint32_t i = 0; i < pipeline->num_nodes && status == WEIR_OK; i++) {
        weir_node *node = pipeline->nodes[i];
        pipeline->num_queues += node->num_outs;
        pipeline->live_sources += node->num_ins == 0;
        status = weir_node_place(node, pipeline, i, options, error);
        if (status == WEIR_OK)
            status = weir_node_make_slots(node, error);
    }
    pipeline->sink = &pipeline->nodes[pipeline->num_nodes - 1]->outs[0];
    return status;
}

static int add_pool(weir_pipeline *pipeline, uint32_t threads, weir_error *error)
{
    weir_pool *pool;
    int status = weir_pool_new(pipeline, threads, &pool, error);
    if (status == WEIR_OK)
        pipeline->pools[pipeline->num_pools++] = pool;
    else
        weir_pool_free(pool);
    return status;
}

static int make_pools(weir_pipeline *pipeline, uint32_t threads, weir_error *error)
{
    pipeline->pools = calloc(pipeline->num_nodes + 1, sizeof *pipeline->pools);
    if (!pipeline->pools)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the pools");
    int status = add_pool(pipeline, threads ? threads : weir_cpu_budget(), error);
    for (uint32_t i = 0; i < pipeline->num_nodes && status == WEIR_OK; i++) {
        weir_node *node = pipeline->nodes[i];
        if (node->op && node->threads)
            status = add_pool(pipeline, node->threads, error);
        node->pool = node->op ? pipeline->pools[node->threads ? pipeline->num_pools - 1 : 0] : NULL;
    }
    return status;
}

static int make_lock(weir_pipeline *pipeline, weir_error *error)
{
    int code = uv_mutex_init(&pipeline->lock);
    pipeline->lock_made = code == 0;
    if (code == 0) {
        code = uv_cond_init(&pipeline->consumable);
        pipeline->consumable_made = code == 0;
    }
    if (code == 0)
        code = weir_poll_fd_init(pipeline);
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot make a lock: %s", uv_strerror(code));
    return WEIR_OK;
}

static int start_threads(weir_pipeline *pipeline, weir_error *error)
{
    int status = WEIR_OK;
    for (uint32_t i = 0; i < pipeline->num_pools && status == WEIR_OK; i++)
        status = weir_pool_start(pipeline->pools[i], error);
    if (status == WEIR_OK)
        status = weir_statistics_start(pipeline, error);
    return status;
}

static bool wants_failures(const weir_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->num_observers; i++)
        if (pipeline->observers[i].failure)
            return true;
    return false;
}

/* Copies the observers and tells them that they are to be used. */
static int attach_observers(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_error *error)
{
    if (options->num_observers == 0)
        return WEIR_OK;
    if (!options->observers)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_observers is %zu, but observers is NULL",
                              options->num_observers);
    pipeline->observers = calloc(options->num_observers, sizeof *pipeline->observers);
    if (!pipeline->observers)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the observers");
    for (; pipeline->num_observers < options->num_observers; pipeline->num_observers++) {
        const weir_observer *observer = &options->observers[pipeline->num_observers];
        int status = observer->attach ? observer->attach(observer->self, error) : WEIR_OK;
        if (status != WEIR_OK)
            return weir_error_set(error, status < 0 ? status : WEIR_EINVAL, 0, "an observer refused to be attached");
        pipeline->observers[pipeline->num_observers] = *observer;
    }
    return WEIR_OK;
}

static void detach_observers(weir_pipeline *pipeline)
{
    while (pipeline->num_observers > 0) {
        const weir_observer *observer = &pipeline->observers[--pipeline->num_observers];
        if (observer->detach)
            observer->detach(observer->self);
    }
    free(pipeline->observers);
}

/* Frees everything; its threads have ended or, after a failed start, have had nothing to do. */
static void destroy(weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        weir_pool_join(pipeline->pools[i]);
    weir_statistics_destroy(pipeline);
    detach_observers(pipeline);
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        weir_node_free(pipeline->nodes[i]);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        weir_pool_free(pipeline->pools[i]);
    weir_poll_fd_destroy(pipeline);
    if (pipeline->consumable_made)
        uv_cond_destroy(&pipeline->consumable);
    if (pipeline->lock_made)
        uv_mutex_destroy(&pipeline->lock);
    free(pipeline->pools);
    free(pipeline->nodes);
    free(pipeline);
}

static weir_pipeline *pipeline_new(weir_node **nodes, uint32_t num_nodes, const weir_pipeline_options *options)
{
    weir_pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline) {
        for (uint32_t i = 0; i < num_nodes; i++)
            weir_node_free(nodes[i]);
        free(nodes);
        return NULL;
    }
    pipeline->nodes = nodes;
    pipeline->num_nodes = pipeline->live_nodes = num_nodes;
    pipeline->id = options->id;
    pipeline->stats_interval_ns = options->stats_interval_ns ? options->stats_interval_ns : 60 * WEIR_SECOND;
    pipeline->num_cpus = weir_cpu_budget();
    pipeline->measures = !options->no_statistics;
    pipeline->stall_warning_ns = options->stall_warning_ns ? options->stall_warning_ns : 30 * WEIR_SECOND;
    pipeline->reports_end = &pipeline->reports;
    weir_place_init(&pipeline->place);
    weir_place_init(&pipeline->next_place);
    atomic_init(&pipeline->is_consumable, 0);
    atomic_init(&pipeline->stop_wanted, false);
    atomic_init(&pipeline->stop_signal, 0);
    atomic_init(&pipeline->next_on_signal, NULL);
    return pipeline;
}

int weir_pipeline_start(weir_node **nodes, uint32_t num_nodes, const weir_pipeline_options *options,
                        weir_pipeline **made, weir_error *error)
{
    weir_pipeline *pipeline = pipeline_new(nodes, num_nodes, options);
    if (!pipeline)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the pipeline");

    int status = attach_observers(pipeline, options, error);
    pipeline->wants_failures = wants_failures(pipeline);
    if (status == WEIR_OK)
        status = make_lock(pipeline, error);
    if (status == WEIR_OK)
        status = place_nodes(pipeline, options, error);
    if (status == WEIR_OK)
        status = make_pools(pipeline, options->threads, error);
    if (status == WEIR_OK)
        status = weir_statistics_init(pipeline, error);
    if (status == WEIR_OK) {
        int64_t start_ns = weir_clock_ns();
        pipeline->start_unix_ns = weir_statistics_unix_at_ns(pipeline, start_ns);
        weir_flow_prepare(pipeline, start_ns);
        status = start_threads(pipeline, error);
    }
    if (status != WEIR_OK) {
        destroy(pipeline);
        return status;
    }

    *made = pipeline; /* before tasks start: they may use it */
    weir_engine_lock_at(pipeline, weir_clock_ns());
    weir_flow_start_locked(pipeline);
    weir_engine_unlock(pipeline);
    return WEIR_OK;
}

int weir_pipeline_stop(weir_pipeline *pipeline)
{
    if (!pipeline)
        return WEIR_EINVAL;
    weir_engine_lock_at(pipeline, weir_clock_ns());
    weir_end_by_stop_locked(pipeline);
    weir_engine_unlock(pipeline);
    return WEIR_OK;
}

_Thread_local const weir_pipeline *weir_pipeline_of_thread;

/* Nothing may be lost. */
static bool is_accounted_for(weir_pipeline *pipeline)
{
    weir_account account;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        if (weir_pipeline_account(pipeline, pipeline->nodes[i]->name, &account) != WEIR_OK || account.in_flight != 0)
            return false;
    return weir_pipeline_account(pipeline, NULL, &account) == WEIR_OK && account.in_flight == 0;
}

void weir_pipeline_free(weir_pipeline *pipeline)
{
    if (!pipeline)
        return;
    weir_pipeline_stop(pipeline);
    if (weir_pipeline_of_thread == pipeline) {
        weir_log(WEIR_LOG_ERROR,
                 "weir_pipeline_free() was called on one of the pipeline's own threads, for whose end it would "
                 "wait: the pipeline is stopped, but not freed");
        return;
    }
    weir_signals_forget(pipeline);
    weir_statistics_join(pipeline);
    assert(is_accounted_for(pipeline));
    (void)is_accounted_for;
    destroy(pipeline);
}

/* ---- the consumer ------------------------------------------------------------------------------------------- */

static void sleep_consumer_locked(weir_pipeline *pipeline, int64_t deadline_ns)
{
    weir_engine_wake_locked(pipeline);
    pipeline->consumers_waiting++;
    if (deadline_ns == WEIR_FOREVER)
        uv_cond_wait(&pipeline->consumable, &pipeline->lock);
    else if (deadline_ns > pipeline->now_ns)
        uv_cond_timedwait(&pipeline->consumable, &pipeline->lock, (uint64_t)(deadline_ns - pipeline->now_ns));
    pipeline->consumers_waiting--;
    if (pipeline->consumers_waking)
        pipeline->consumers_waking--;
    weir_engine_move_time_locked(pipeline, weir_clock_ns());
}

static void wait_consumable_locked(weir_pipeline *pipeline, int64_t deadline_ns)
{
    int64_t start_ns = pipeline->now_ns;
    int64_t spin_ns = pipeline->consumer_spin_ns;
    if (deadline_ns != WEIR_FOREVER && deadline_ns - start_ns < spin_ns)
        spin_ns = deadline_ns - start_ns;
    if (weir_engine_may_spin_locked(pipeline, true)) {
        weir_engine_unlock(pipeline);
        weir_engine_spin(&pipeline->is_consumable, spin_ns);
        weir_engine_lock_at(pipeline, weir_clock_ns());
    }
    if (!atomic_load_explicit(&pipeline->is_consumable, memory_order_relaxed))
        sleep_consumer_locked(pipeline, deadline_ns);
    pipeline->consumer_spin_ns = weir_engine_spin_adapt(pipeline->consumer_spin_ns, pipeline->now_ns - start_ns);
}

/* What weir_pipeline_next() answers when there is no item, or none is to be given. */
static int end_status_locked(const weir_pipeline *pipeline)
{
    if (pipeline->failed)
        return WEIR_EFAILED;
    return pipeline->stopped ? WEIR_ESTOPPED : WEIR_EOF;
}

int weir_pipeline_next(weir_pipeline *pipeline, weir_item *item, int64_t timeout_ns)
{
    if (!pipeline || !item || (timeout_ns < 0 && timeout_ns != WEIR_FOREVER))
        return WEIR_EINVAL;
    int64_t start_ns = pipeline->measures || timeout_ns > 0 ? weir_clock_ns() : 0;
    int64_t deadline_ns = timeout_ns < 0 || timeout_ns > INT64_MAX - start_ns ? WEIR_FOREVER : start_ns + timeout_ns;
    bool waited = false;
    int status;

    weir_engine_lock_at(pipeline, start_ns);
    for (;;) {
        if (!pipeline->stopped && pipeline->sink->depth) {
            status = weir_flow_deliver_locked(pipeline, item, waited ? pipeline->now_ns - start_ns : 0);
            break;
        }
        if (pipeline->stopped || pipeline->sink->closed) {
            status = end_status_locked(pipeline);
            break;
        }
        if (deadline_ns != WEIR_FOREVER && pipeline->now_ns >= deadline_ns) {
            status = WEIR_ETIMEDOUT;
            break;
        }
        wait_consumable_locked(pipeline, deadline_ns);
        waited = true;
    }
    weir_engine_unlock(pipeline);
    return status;
}

/* ---- errors, accounts, events ------------------------------------------------------------------------------- */

int weir_pipeline_error(weir_pipeline *pipeline, weir_error *error)
{
    if (!pipeline || !error)
        return WEIR_EINVAL;
    weir_engine_lock(pipeline);
    *error = pipeline->error;
    weir_engine_unlock(pipeline);
    return error->status;
}

weir_node *weir_pipeline_find(const weir_pipeline *pipeline, const char *stage)
{
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        if (strcmp(pipeline->nodes[i]->name, stage) == 0)
            return pipeline->nodes[i];
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        if (strcmp(pipeline->nodes[i]->short_name, stage) == 0)
            return pipeline->nodes[i];
    return NULL;
}

int weir_pipeline_stage_error(weir_pipeline *pipeline, const char *stage, weir_error *error)
{
    if (!pipeline || !stage || !error)
        return WEIR_EINVAL;
    weir_node *node = weir_pipeline_find(pipeline, stage);
    *error = (weir_error){ 0 };
    if (!node)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "the pipeline has no stage \"%s\"", stage);
    weir_engine_lock(pipeline);
    *error = node->first_error;
    weir_engine_unlock(pipeline);
    return error->status;
}

static uint64_t gone(const weir_account *account)
{
    return account->handed_on + account->skipped + account->failed + account->dropped + account->merged;
}

static void add_up_locked(const weir_pipeline *pipeline, weir_account *account)
{
    account->handed_on = pipeline->sink->total_got;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        const weir_node *node = pipeline->nodes[i];
        account->taken += node->num_ins == 0 ? node->account.taken : 0;
        account->created += node->account.created;
        account->skipped += node->account.skipped;
        account->failed += node->account.failed;
        account->dropped += node->account.dropped;
        account->merged += node->account.merged;
        for (uint32_t j = 0; j < node->num_outs; j++)
            account->dropped += node->outs[j].total_dropped;
    }
}

int weir_pipeline_account(weir_pipeline *pipeline, const char *stage, weir_account *account)
{
    if (!pipeline || !account)
        return WEIR_EINVAL;
    weir_node *node = stage ? weir_pipeline_find(pipeline, stage) : NULL;
    *account = (weir_account){ 0 };
    if (stage && !node)
        return WEIR_ENOTFOUND;

    weir_engine_lock(pipeline);
    if (node)
        *account = node->account;
    else
        add_up_locked(pipeline, account);
    weir_engine_unlock(pipeline);
    account->in_flight = account->taken + account->created - gone(account);
    return WEIR_OK;
}

int weir_pipeline_event(weir_pipeline *pipeline, const char *name, const char *category, const char *detail)
{
    if (!pipeline || !name)
        return WEIR_EINVAL;
    weir_report *report = weir_report_event(name, category, detail);
    if (!report)
        return WEIR_ENOMEM;
    weir_engine_lock(pipeline);
    weir_report_append_locked(pipeline, report);
    weir_engine_unlock(pipeline);
    return WEIR_OK;
}
