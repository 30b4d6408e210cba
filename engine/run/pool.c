/*
 * A pool: threads that pick the ready slot nearest the sink, run one step of it and pick again. A thread that finds
 * no work spins for a moment, without the lock, before it sleeps. The reason is that waking a sleeping thread costs
 * more than most hand-offs. Only one thread at a time spins, and only if no other thread of the engine needs the CPU.
 * It spins only for as long as this was useful recently.
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

static bool is_surplus_locked(const weir_pool_thread *pool_thread)
{
    return pool_thread->index >= atomic_load_explicit(&pool_thread->pool->num_wanted, memory_order_relaxed);
}

/* A thread is there for as long as it runs a step, also when it has become surplus. */
static void count_leaving_locked(weir_pool *pool)
{
    weir__pool_settle_locked(pool);
    pool->num_leaving = 0;
    for (uint32_t i = atomic_load(&pool->num_wanted); i < pool->num_made; i++)
        pool->num_leaving += pool->threads[i]->running ? 1 : 0;
}

static void wait_once_locked(weir_pool *pool)
{
    pool->sleeping++;
    weir__engine_wait_locked(pool->pipeline, &pool->work, WEIR_FOREVER);
    pool->sleeping--;
    if (pool->waking)
        pool->waking--;
}

static bool may_go_on_locked(const weir_pool_thread *pool_thread)
{
    const weir_pool *pool = pool_thread->pool;
    return pool->quit || (!is_surplus_locked(pool_thread) && has_work_locked(pool));
}

/* Until there is work for the thread, and it is not surplus. Its CPU time is added up before, with the lock released
   meanwhile. It may have been woken for work when it is surplus: another thread must take that then. */
static void sleep_for_work_locked(weir_pool_thread *pool_thread)
{
    weir_pool *pool = pool_thread->pool;
    weir_pipeline *pipeline = pool->pipeline;
    weir__engine_unlock(pipeline);
    weir__thread_cpu_sleeps(pool_thread);
    weir__engine_lock(pipeline);
    weir__thread_cpu_add_locked(pool_thread);
    if (may_go_on_locked(pool_thread))
        return;
    weir__wake_all_locked(pipeline);
    pipeline->waking.num_awake--;
    do {
        if (!is_surplus_locked(pool_thread)) {
            wait_once_locked(pool);
            continue;
        }
        weir__wake_all_locked(pipeline);
        weir__engine_wait_locked(pipeline, &pool->parked, WEIR_FOREVER);
    } while (!may_go_on_locked(pool_thread));
    pipeline->waking.num_awake++;
}

static void wait_for_work_locked(weir_pool_thread *pool_thread)
{
    weir_pool *pool = pool_thread->pool;
    int64_t start_ns = pool->pipeline->core.now_ns;
    if (pool->spinning) {
        sleep_for_work_locked(pool_thread);
        return;
    }
    if (may_spin_locked(pool->pipeline, pool->pipeline->consumer.waiting == 0))
        spin_for_work_locked(pool);
    if (!has_work_locked(pool))
        sleep_for_work_locked(pool_thread);
    pool->spin_ns = weir__spin_adapt(pool->spin_ns, pool->pipeline->core.now_ns - start_ns);
}

/* A cancelled task may still have the label and the flags of the task that the slot had before. */
static void task_starts_locked(weir_task *slot)
{
    slot->label = weir__label_hold(slot->core.in.label_owner);
    slot->warn_after_ns = slot->node->pipeline->stall_warning_ns;
    slot->suspended_ns = 0;
    atomic_store_explicit(&slot->was_completed, false, memory_order_release);
    atomic_store_explicit(&slot->should_stop, false, memory_order_relaxed);
    atomic_store_explicit(&slot->is_overdue, false, memory_order_relaxed);
}

static void step_starts_locked(weir_pool_thread *pool_thread, weir_task *slot)
{
    if (slot->core.starts_task)
        task_starts_locked(slot);
    if (slot->node->task_deadline_ns && !slot->node->watched)
        slot->node->watched = pool_thread->pool->pipeline->waking.wake_service = true;
    slot->is_long_step = slot->node->core.typical_ns >= WEIR_LONG_STEP_NS;
    pool_thread->running = slot;
    slot->thread = pool_thread;
    atomic_store_explicit(&pool_thread->reported_began_ns, 0, memory_order_relaxed);
    pool_thread->busy_since_ns = pool_thread->pool->pipeline->core.now_ns;
    if (is_surplus_locked(pool_thread)) /* at the end, all threads help */
        count_leaving_locked(pool_thread->pool);
    weir__burst_plan_locked(pool_thread, slot);
}

/* The first failure of the step is remembered. The label of a task that is over is released later, without the
   lock. */
static void end_step_locked(weir_pool_thread *pool_thread, weir_task *slot)
{
    weir_node *node = slot->node;
    uint64_t failures = node->core.total_failures;
    bool task_over = !slot->core.is_lifecycle && slot->core.status != WEIR_MORE && slot->core.status != WEIR_PENDING;
    weir__burst_end_locked(pool_thread);
    weir__step_ended(&slot->core);
    if (node->core.total_failures != failures && !node->first_error.status)
        node->first_error = slot->error;
    if (task_over) {
        pool_thread->spent_label = slot->label;
        slot->label = NULL;
    }
}

static void step_has_ended_locked(weir_pool_thread *pool_thread, weir_task *slot)
{
    weir_pool *pool = pool_thread->pool;
    int64_t since_ns =
        pool_thread->began_ns > pool_thread->busy_since_ns ? pool_thread->began_ns : pool_thread->busy_since_ns;
    pool_thread->running = NULL;
    if (slot->core.end_ns > since_ns)
        pool->lap.busy_ns += slot->core.end_ns - since_ns;
    if (is_surplus_locked(pool_thread))
        count_leaving_locked(pool);
    weir__thread_cpu_add_locked(pool_thread);
    if (slot->core.end_ns - pool_thread->began_ns >= WEIR_CPU_WINDOW_NS && !slot->is_long_step &&
        !slot->core.is_lifecycle)
        pool_thread->long_node = slot->node;
    end_step_locked(pool_thread, slot);
}

/* Without the lock: this may free the label. */
static void release_spent_label(weir_pool_thread *pool_thread)
{
    weir__label_release(pool_thread->spent_label);
    pool_thread->spent_label = NULL;
}

/* When the step begins: after a mark that has found it not begun. Busy time is never less than run time, although the clock
   may go back by some ns. */
static void begin_step(weir_pool_thread *pool_thread, weir_task *slot)
{
    int64_t now_ns = 0;
    if (weir__thread_cpu_step_begins(pool_thread, slot))
        now_ns = pool_thread->window.start_ns;
    else if (pool_thread->pool->pipeline->core.measures)
        now_ns = step_clock_ns(&pool_thread->clock);
    now_ns = now_ns > slot->core.entered_ns ? now_ns : slot->core.entered_ns;
    int64_t marked_ns = -atomic_exchange_explicit(&pool_thread->reported_began_ns, now_ns, memory_order_relaxed);
    pool_thread->began_ns = slot->core.begin_ns = now_ns > marked_ns ? now_ns : marked_ns;
}

static void run_pool_thread(weir_pool_thread *pool_thread)
{
    weir_pool *pool = pool_thread->pool;
    weir_pipeline *pipeline = pool->pipeline;
    weir__engine_lock_for_step(pipeline, weir_clock_ns());
    pipeline->waking.num_awake++;
    for (;;) {
        if (is_surplus_locked(pool_thread) && !pool->quit)
            sleep_for_work_locked(pool_thread);
        weir_task *slot = (weir_task *)weir__core_pool_pick(&pool->core);
        if (slot) {
            step_starts_locked(pool_thread, slot);
            weir__engine_unlock(pipeline);
            release_spent_label(pool_thread);
            begin_step(pool_thread, slot);
            weir__run_step(pool_thread, slot);
            weir__engine_lock_for_step(pipeline, slot->core.end_ns);
            step_has_ended_locked(pool_thread, slot);
        } else if (pool->quit) {
            break;
        } else {
            wait_for_work_locked(pool_thread);
        }
    }
    pipeline->waking.num_awake--;
    weir__engine_unlock(pipeline);
    release_spent_label(pool_thread);
}

/* Inside the thread hooks from `index` on, the first of which is the outermost. */
static void run_hooked(weir_pool_thread *pool_thread, size_t index)
{
    const weir__run *run = pool_thread->pool->pipeline->run;
    if (index == run->num_thread_hooks) {
        run_pool_thread(pool_thread);
        return;
    }
    const weir_thread_hook *hook = &run->thread_hooks[index];
    void *state = hook->begin ? hook->begin(hook->self, pool_thread->pool->name) : NULL;
    run_hooked(pool_thread, index + 1);
    if (hook->end)
        hook->end(hook->self, state);
}

static void pool_thread_main(void *argument)
{
    weir_pool_thread *pool_thread = argument;
    weir__pipeline_of_thread = pool_thread->pool->pipeline;
    weir__own_pool_thread = pool_thread;
    atomic_store(&pool_thread->tid, (int)syscall(SYS_gettid));
    run_hooked(pool_thread, 0);
}

/* NULL = out of memory. */
static weir_pool_thread *make_thread(weir_pool *pool, uint32_t index)
{
    uint32_t num_nodes = pool->pipeline->core.num_nodes;
    weir_pool_thread *pool_thread = calloc(1, sizeof *pool_thread + 2 * num_nodes * sizeof *pool_thread->cpu_ns);
    if (!pool_thread)
        return NULL;
    pool_thread->pool = pool;
    pool_thread->index = index;
    pool_thread->reading_ns = -1;
    pool_thread->run_ns = pool_thread->cpu_ns;
    pool_thread->shared_ns = pool_thread->cpu_ns + num_nodes;
    return pool_thread;
}

static int make_threads(weir_pool *pool, uint32_t num_threads)
{
    uint32_t num_nodes = pool->pipeline->core.num_nodes;
    pool->core.graph = &pool->pipeline->core;
    pool->core.num_words = (num_nodes + 63) / 64;
    pool->core.ready_ranks = calloc(pool->core.num_words, sizeof *pool->core.ready_ranks);
    pool->core.ranks = calloc(num_nodes, sizeof *pool->core.ranks);
    pool->threads = calloc(WEIR_MAX_THREADS, sizeof(weir_pool_thread *)); /* memory that is not written is not used */
    if (!pool->core.ready_ranks || !pool->core.ranks || !pool->threads)
        return WEIR_ENOMEM;
    for (; pool->num_made < num_threads; pool->num_made++)
        if (!(pool->threads[pool->num_made] = make_thread(pool, pool->num_made)))
            return WEIR_ENOMEM;
    atomic_store(&pool->num_wanted, num_threads);
    return WEIR_OK;
}

int weir__pool_new(weir_pipeline *pipeline, weir_node *owner, uint32_t num_threads, weir_pool **made,
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
    if (!pool->name || make_threads(pool, num_threads) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for a pool of %u threads", num_threads);
    int code = uv_cond_init(&pool->work);
    pool->work_made = code == 0;
    if (code == 0)
        code = uv_cond_init(&pool->parked);
    pool->parked_made = pool->work_made && code == 0;
    return code == 0 ? WEIR_OK
                     : weir_error_set(error, WEIR_ESYSTEM, code, "cannot create a condition variable: %s",
                                      uv_strerror(code));
}

static int start_thread(weir_pool_thread *pool_thread)
{
    char name[32]; /* truncated */
    const weir_node *owner = pool_thread->pool->owner;
    snprintf(name, sizeof name, "%.9s/%u", owner ? owner->short_name : "weir", pool_thread->index);
    int code = weir__thread_start(&pool_thread->thread, name, pool_thread_main, pool_thread);
    pool_thread->started = code == 0;
    return code;
}

int weir__pool_start(weir_pool *pool, weir_error *error)
{
    for (uint32_t i = 0; i < pool->num_made; i++) {
        int code = start_thread(pool->threads[i]);
        if (code != 0)
            return weir_error_set(error, WEIR_ESYSTEM, code, "cannot start thread %u of %u: %s", i + 1,
                                  pool->num_made, uv_strerror(code));
    }
    return WEIR_OK;
}

/* ---- changing their number ---------------------------------------------------------------------------------- */

/* With resize_lock. Adds one pool_thread, with a thread that parks at once. */
static int add_thread(weir_pool *pool)
{
    weir_pool_thread *pool_thread = make_thread(pool, pool->num_made);
    if (!pool_thread)
        return WEIR_ENOMEM;
    if (start_thread(pool_thread) != 0) {
        free(pool_thread);
        return WEIR_ESYSTEM;
    }
    weir__engine_lock(pool->pipeline);
    pool->threads[pool->num_made++] = pool_thread;
    weir__engine_unlock(pool->pipeline);
    return WEIR_OK;
}

int weir__pool_resize(weir_pool *pool, uint32_t num_threads, uint32_t *before, uint32_t *now)
{
    weir_pipeline *pipeline = pool->pipeline;
    uv_mutex_lock(&pipeline->resize_lock);
    int status = pool->quit ? WEIR_ESTOPPED : WEIR_OK; /* written with resize_lock, too */
    *before = *now = atomic_load(&pool->num_wanted);
    while (pool->num_made < num_threads && status == WEIR_OK)
        status = add_thread(pool);
    if (status != WEIR_ESTOPPED) {
        engine_lock_at(pipeline, weir_clock_ns());
        weir__pool_settle_locked(pool);
        *now = num_threads < pool->num_made ? num_threads : pool->num_made;
        atomic_store(&pool->num_wanted, *now);
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
        if (pool->threads[i]->started)
            uv_thread_join(&pool->threads[i]->thread);
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
        free(pool->threads[i]);
    free(pool->threads);
    free(pool->core.ranks);
    free(pool->core.ready_ranks);
    free(pool->name);
    free(pool);
}
