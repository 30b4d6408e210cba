/*
 * A pool: threads that pick the ready slot nearest the sink, run one step of it and pick again. A thread that finds
 * no work spins for a moment, without the lock, before it sleeps, because waking a sleeping thread costs more than
 * most hand-offs. Only one thread at a time spins, only for as long as this was useful recently, and only if no other
 * thread of the engine needs the CPU.
 */
#include "engine/run/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/label.h"
#include "engine/measure/live_sums.h"
#include "engine/measure/thread_cpu.h"
#include "engine/run/run_room.h"
#include "engine/run/task_run.h"
#include "engine/state/burst.h"
#include "engine/state/lock.h"
#include "engine/state/spin_wait.h"
#include "engine/state/thread.h"

static bool has_work_locked(const weir_pool *pool)
{
    return pool->quit || pool_invites_locked(pool);
}

static void spin_for_work_locked(weir_pool *pool)
{
    int64_t spin_ns = pool->spin_ns;
    pool->spinning = true;
    atomic_store_explicit(&pool->invites, has_work_locked(pool), memory_order_relaxed);
    weir__engine_unlock(pool->pipeline);
    weir__spin(&pool->invites, spin_ns);
    weir__engine_lock_for_step(pool->pipeline, weir_clock_ns());
    pool->spinning = false;
}

static bool is_surplus_locked(const weir_worker *worker)
{
    return worker->index >= atomic_load_explicit(&worker->pool->num_workers, memory_order_relaxed);
}

/* A thread is there for as long as it runs a step, also when it has become surplus. */
static void count_leaving_locked(weir_pool *pool)
{
    weir__pool_settle_locked(pool);
    pool->num_leaving = 0;
    for (uint32_t i = atomic_load(&pool->num_workers); i < pool->num_made; i++)
        pool->num_leaving += pool->workers[i]->running ? 1 : 0;
}

static void wait_once_locked(weir_pool *pool)
{
    pool->sleeping++;
    weir__engine_wait_locked(pool->pipeline, &pool->work, WEIR_FOREVER);
    pool->sleeping--;
    if (pool->waking)
        pool->waking--;
}

static bool may_go_on_locked(const weir_worker *worker)
{
    const weir_pool *pool = worker->pool;
    return pool->quit || (!is_surplus_locked(worker) && has_work_locked(pool));
}

/* Until there is work for the thread, and it is not surplus. Its CPU time is added up before, with the lock released
   meanwhile. It may have been woken for work when it is surplus: another thread must take that then. */
static void sleep_for_work_locked(weir_worker *worker)
{
    weir_pool *pool = worker->pool;
    weir_pipeline *pipeline = pool->pipeline;
    weir__engine_unlock(pipeline);
    weir__thread_cpu_sleeps(worker);
    weir__engine_lock(pipeline);
    weir__thread_cpu_add_locked(worker);
    if (may_go_on_locked(worker))
        return;
    weir__wake_all_locked(pipeline);
    pipeline->waking.num_awake--;
    do {
        if (!is_surplus_locked(worker)) {
            wait_once_locked(pool);
            continue;
        }
        weir__wake_all_locked(pipeline);
        weir__engine_wait_locked(pipeline, &pool->parked, WEIR_FOREVER);
    } while (!may_go_on_locked(worker));
    pipeline->waking.num_awake++;
}

static void wait_for_work_locked(weir_worker *worker)
{
    weir_pool *pool = worker->pool;
    int64_t start_ns = pool->pipeline->core.now_ns;
    if (pool->spinning) {
        sleep_for_work_locked(worker);
        return;
    }
    if (may_spin_locked(pool->pipeline, pool->pipeline->consumer.waiting == 0))
        spin_for_work_locked(pool);
    if (!has_work_locked(pool))
        sleep_for_work_locked(worker);
    pool->spin_ns = weir__spin_adapt(pool->spin_ns, pool->pipeline->core.now_ns - start_ns);
}

/* A cancelled task may still have the label and the flags of the one before. */
static void task_starts_locked(weir_slot *slot)
{
    slot->label = weir__label_hold(slot->core.in.label_owner);
    slot->warn_after_ns = slot->node->pipeline->stall_warning_ns;
    slot->suspended_ns = 0;
    atomic_store_explicit(&slot->was_completed, false, memory_order_release);
    atomic_store_explicit(&slot->should_stop, false, memory_order_relaxed);
    atomic_store_explicit(&slot->is_overdue, false, memory_order_relaxed);
}

static void step_starts_locked(weir_worker *worker, weir_slot *slot)
{
    if (slot->core.starts_task)
        task_starts_locked(slot);
    if (slot->node->task_deadline_ns && !slot->node->watched)
        slot->node->watched = worker->pool->pipeline->waking.wake_service = true;
    slot->is_long_step = slot->node->core.typical_ns >= WEIR_LONG_STEP_NS;
    worker->running = slot;
    slot->thread = worker;
    atomic_store_explicit(&worker->told_began_ns, 0, memory_order_relaxed);
    worker->busy_since_ns = worker->pool->pipeline->core.now_ns;
    if (is_surplus_locked(worker)) /* at the end, all threads help */
        count_leaving_locked(worker->pool);
    weir__burst_plan_locked(worker, slot);
}

/* Its first failure is remembered, and the label of a task that is over is released later, without the lock. */
static void end_step_locked(weir_worker *worker, weir_slot *slot)
{
    weir_node *node = slot->node;
    uint64_t failures = node->core.total_failures;
    bool task_over = !slot->core.is_lifecycle && slot->core.status != WEIR_MORE && slot->core.status != WEIR_PENDING;
    weir__burst_end_locked(worker);
    weir__step_ended(&slot->core);
    if (node->core.total_failures != failures && !node->first_error.status)
        node->first_error = slot->error;
    if (task_over) {
        worker->spent_label = slot->label;
        slot->label = NULL;
    }
}

static void step_has_ended_locked(weir_worker *worker, weir_slot *slot)
{
    weir_pool *pool = worker->pool;
    int64_t since_ns = worker->began_ns > worker->busy_since_ns ? worker->began_ns : worker->busy_since_ns;
    worker->running = NULL;
    if (slot->core.end_ns > since_ns)
        pool->lap.busy_ns += slot->core.end_ns - since_ns;
    if (is_surplus_locked(worker))
        count_leaving_locked(pool);
    weir__thread_cpu_add_locked(worker);
    if (slot->core.end_ns - worker->began_ns >= WEIR_CPU_WINDOW_NS && !slot->is_long_step && !slot->core.is_lifecycle)
        worker->long_node = slot->node;
    end_step_locked(worker, slot);
}

/* Without the lock: this may free the label. */
static void release_spent_label(weir_worker *worker)
{
    weir__label_release(worker->spent_label);
    worker->spent_label = NULL;
}

/* When the step begins: after a mark that has found it not begun. Busy time is never less than run time, although the clock
   may go back by some ns. */
static void begin_step(weir_worker *worker, weir_slot *slot)
{
    int64_t now_ns = 0;
    if (weir__thread_cpu_step_begins(worker, slot))
        now_ns = worker->window.start_ns;
    else if (worker->pool->pipeline->core.measures)
        now_ns = step_clock_ns(&worker->clock);
    now_ns = now_ns > slot->core.entered_ns ? now_ns : slot->core.entered_ns;
    int64_t marked_ns = -atomic_exchange_explicit(&worker->told_began_ns, now_ns, memory_order_relaxed);
    worker->began_ns = slot->core.begin_ns = now_ns > marked_ns ? now_ns : marked_ns;
}

static void run_worker(weir_worker *worker)
{
    weir_pool *pool = worker->pool;
    weir_pipeline *pipeline = pool->pipeline;
    weir__engine_lock_for_step(pipeline, weir_clock_ns());
    pipeline->waking.num_awake++;
    for (;;) {
        if (is_surplus_locked(worker) && !pool->quit)
            sleep_for_work_locked(worker);
        weir_slot *slot = (weir_slot *)weir__crew_pick(&pool->core);
        if (slot) {
            step_starts_locked(worker, slot);
            weir__engine_unlock(pipeline);
            release_spent_label(worker);
            begin_step(worker, slot);
            weir__run_step(worker, slot);
            weir__engine_lock_for_step(pipeline, slot->core.end_ns);
            step_has_ended_locked(worker, slot);
        } else if (pool->quit) {
            break;
        } else {
            wait_for_work_locked(worker);
        }
    }
    pipeline->waking.num_awake--;
    weir__engine_unlock(pipeline);
    release_spent_label(worker);
}

/* Inside the thread hooks from `index` on, the first of which is the outermost. */
static void run_hooked(weir_worker *worker, size_t index)
{
    const weir__run *run = worker->pool->pipeline->run;
    if (index == run->num_thread_hooks) {
        run_worker(worker);
        return;
    }
    const weir_thread_hook *hook = &run->thread_hooks[index];
    void *state = hook->begin ? hook->begin(hook->self, worker->pool->name) : NULL;
    run_hooked(worker, index + 1);
    if (hook->end)
        hook->end(hook->self, state);
}

static void worker_main(void *argument)
{
    weir_worker *worker = argument;
    weir__pipeline_of_thread = worker->pool->pipeline;
    weir__worker_of_thread = worker;
    atomic_store(&worker->tid, (int)syscall(SYS_gettid));
    run_hooked(worker, 0);
}

/* NULL = out of memory. */
static weir_worker *make_worker(weir_pool *pool, uint32_t index)
{
    uint32_t num_nodes = pool->pipeline->core.num_nodes;
    weir_worker *worker = calloc(1, sizeof *worker + 2 * num_nodes * sizeof *worker->cpu_ns);
    if (!worker)
        return NULL;
    worker->pool = pool;
    worker->index = index;
    worker->reading_ns = -1;
    worker->run_ns = worker->cpu_ns;
    worker->shared_ns = worker->cpu_ns + num_nodes;
    return worker;
}

static int make_workers(weir_pool *pool, uint32_t num_workers)
{
    uint32_t num_nodes = pool->pipeline->core.num_nodes;
    pool->core.graph = &pool->pipeline->core;
    pool->core.num_words = (num_nodes + 63) / 64;
    pool->core.ready_ranks = calloc(pool->core.num_words, sizeof *pool->core.ready_ranks);
    pool->core.ranks = calloc(num_nodes, sizeof *pool->core.ranks);
    pool->workers = calloc(WEIR_MAX_THREADS, sizeof(weir_worker *)); /* memory that is not written is not used */
    if (!pool->core.ready_ranks || !pool->core.ranks || !pool->workers)
        return WEIR_ENOMEM;
    for (; pool->num_made < num_workers; pool->num_made++)
        if (!(pool->workers[pool->num_made] = make_worker(pool, pool->num_made)))
            return WEIR_ENOMEM;
    atomic_store(&pool->num_workers, num_workers);
    return WEIR_OK;
}

int weir__pool_new(weir_pipeline *pipeline, weir_node *owner, uint32_t num_workers, weir_pool **made,
                   weir_error *error)
{
    weir_pool *pool = *made = calloc(1, sizeof *pool);
    if (!pool)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a pool of threads");
    pool->pipeline = pipeline;
    pool->owner = owner;
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_POOL), &pool->lap);
    int length =
        owner ? asprintf(&pool->name, "%s_pool", owner->name) : asprintf(&pool->name, "%u:pool", pipeline->id);
    if (length < 0)
        pool->name = NULL;
    if (!pool->name || make_workers(pool, num_workers) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a pool of %u threads", num_workers);
    int code = uv_cond_init(&pool->work);
    pool->work_made = code == 0;
    if (code == 0)
        code = uv_cond_init(&pool->parked);
    pool->parked_made = pool->work_made && code == 0;
    return code == 0 ? WEIR_OK
                     : weir_error_set(error, WEIR_ESYSTEM, code, "cannot create a condition variable: %s",
                                      uv_strerror(code));
}

static int start_worker(weir_worker *worker)
{
    char name[32]; /* truncated */
    const weir_node *owner = worker->pool->owner;
    snprintf(name, sizeof name, "%.9s/%u", owner ? owner->short_name : "weir", worker->index);
    int code = weir__thread_start(&worker->thread, name, worker_main, worker);
    worker->started = code == 0;
    return code;
}

int weir__pool_start(weir_pool *pool, weir_error *error)
{
    for (uint32_t i = 0; i < pool->num_made; i++) {
        int code = start_worker(pool->workers[i]);
        if (code != 0)
            return weir_error_set(error, WEIR_ESYSTEM, code, "cannot start thread %u of %u: %s", i + 1,
                                  pool->num_made, uv_strerror(code));
    }
    return WEIR_OK;
}

/* ---- changing their number ---------------------------------------------------------------------------------- */

/* With resize_lock. Adds one worker, with a thread that parks at once. */
static int add_worker(weir_pool *pool)
{
    weir_worker *worker = make_worker(pool, pool->num_made);
    if (!worker)
        return WEIR_ENOMEM;
    if (start_worker(worker) != 0) {
        free(worker);
        return WEIR_ESYSTEM;
    }
    weir__engine_lock(pool->pipeline);
    pool->workers[pool->num_made++] = worker;
    weir__engine_unlock(pool->pipeline);
    return WEIR_OK;
}

int weir__pool_resize(weir_pool *pool, uint32_t num_workers, uint32_t *before, uint32_t *now)
{
    weir_pipeline *pipeline = pool->pipeline;
    uv_mutex_lock(&pipeline->resize_lock);
    int status = pool->quit ? WEIR_ESTOPPED : WEIR_OK; /* written with resize_lock, too */
    *before = *now = atomic_load(&pool->num_workers);
    while (pool->num_made < num_workers && status == WEIR_OK)
        status = add_worker(pool);
    if (status != WEIR_ESTOPPED) {
        engine_lock_at(pipeline, weir_clock_ns());
        weir__pool_settle_locked(pool);
        *now = num_workers < pool->num_made ? num_workers : pool->num_made;
        atomic_store(&pool->num_workers, *now);
        count_leaving_locked(pool);
        uv_cond_broadcast(&pool->parked);
        uv_cond_broadcast(&pool->work);
        weir__engine_unlock(pipeline);
    }
    uv_mutex_unlock(&pipeline->resize_lock);
    return status;
}

void weir__pool_join(weir_pool *pool)
{
    if (!pool->work_made)
        return; /* no thread was started */
    uv_mutex_lock(&pool->pipeline->resize_lock);
    weir__engine_lock(pool->pipeline);
    pool->quit = true;
    uv_cond_broadcast(&pool->work);
    if (pool->parked_made)
        uv_cond_broadcast(&pool->parked);
    weir__engine_unlock_last(pool->pipeline);
    uv_mutex_unlock(&pool->pipeline->resize_lock);
    for (uint32_t i = 0; i < pool->num_made; i++)
        if (pool->workers[i]->started)
            uv_thread_join(&pool->workers[i]->thread);
}

void weir__pool_free(weir_pool *pool)
{
    if (!pool)
        return;
    if (pool->work_made)
        uv_cond_destroy(&pool->work);
    if (pool->parked_made)
        uv_cond_destroy(&pool->parked);
    for (uint32_t i = 0; i < pool->num_made; i++)
        free(pool->workers[i]);
    free(pool->workers);
    free(pool->core.ranks);
    free(pool->core.ready_ranks);
    free(pool->name);
    free(pool);
}
