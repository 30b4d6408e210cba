/*
 * The lock is not held while a file is read: a thread may end its step meanwhile, and then sleeps because it has no work. So a
 * look counts only if the thread runs the same step before and after it.
 */
#include "engine/measure/wait_looks.h"

#include <stdlib.h>

#include "engine/measure/kernel_readings.h"
#include "engine/measure/wait_call.h"
#include "engine/state/lock.h"

/* Between two looks. Shorter: the wake-ups of the service thread would delay tasks; longer: a run of some seconds shows little. */
static const int64_t least_ns = 20 * WEIR_MILLISECOND, most_ns = WEIR_SECOND;

typedef struct weir__looked_at {
    weir_pool_thread *pool_thread;
    const weir_task *slot;
    int64_t began_ns; /* when the step began; others follow later */
    weir_wait wait;   /* WEIR_NUM_WAITS = it was awake */
} weir__looked_at;

/* Room for all threads of the pools. False = out of memory. */
static bool make_room(weir__wait_looks *looks, weir_pipeline *pipeline)
{
    uint32_t num_threads = weir__count_threads(pipeline);
    if (num_threads <= looks->num_threads)
        return true;
    weir__looked_at *threads = realloc(looks->threads, num_threads * sizeof *threads);
    if (!threads)
        return false;
    looks->threads = threads;
    looks->num_threads = num_threads;
    return true;
}

static bool runs_task_locked(const weir_pool_thread *pool_thread)
{
    return pool_thread->running && !pool_thread->running->core.is_lifecycle;
}

/* 0 or less: not yet. */
static int64_t step_began_ns(const weir_pool_thread *pool_thread)
{
    return atomic_load_explicit(&pool_thread->reported_began_ns, memory_order_relaxed);
}

/* Returns how many threads run a task. */
static uint32_t find_running_locked(const weir__wait_looks *looks, const weir_pipeline *pipeline)
{
    uint32_t num = 0;
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        for (uint32_t j = 0; j < pipeline->pools[i]->num_made && num < looks->num_threads; j++) {
            weir_pool_thread *pool_thread = pipeline->pools[i]->threads[j];
            if (runs_task_locked(pool_thread) && atomic_load(&pool_thread->tid))
                looks->threads[num++] = (weir__looked_at){ pool_thread, pool_thread->running,
                                                           step_began_ns(pool_thread), WEIR_NUM_WAITS };
        }
    return num;
}

static void count_look_locked(const weir__looked_at *at)
{
    weir_node *node = at->slot->node;
    weir_task_metrics *lap = &node->core.lap;
    uint64_t *const counts[WEIR_NUM_WAITS + 1] = {
        [WEIR_WAIT_FILE] = &lap->num_file_waits,       [WEIR_WAIT_NETWORK] = &lap->num_network_waits,
        [WEIR_WAIT_PROCESS] = &lap->num_process_waits, [WEIR_WAIT_LOCK] = &lap->num_lock_waits,
        [WEIR_WAIT_SLEEP] = &lap->num_sleep_waits,     [WEIR_WAIT_OTHER] = &lap->num_other_waits,
    };
    lap->num_looks++;
    node->total_looks.num++;
    if (at->wait == WEIR_NUM_WAITS)
        return;
    ++*counts[at->wait];
    node->total_looks.waits[at->wait]++;
}

/* False = this system does not tell, or a thread has just ended. */
static bool look_at_threads(weir__wait_looks *looks, weir_pipeline *pipeline)
{
    char text[128];
    bool can_read = true;
    weir__engine_lock(pipeline);
    uint32_t num = find_running_locked(looks, pipeline);
    weir__engine_unlock(pipeline);
    for (uint32_t i = 0; i < num && can_read; i++) {
        can_read =
            weir__wait_call_read(atomic_load(&looks->threads[i].pool_thread->tid), text, sizeof text) == WEIR_OK;
        looks->threads[i].wait = can_read ? weir__wait_of_call(text) : WEIR_NUM_WAITS;
    }
    if (!can_read)
        return false;
    weir__engine_lock(pipeline);
    for (uint32_t i = 0; i < num; i++) {
        const weir__looked_at *at = &looks->threads[i];
        if (at->pool_thread->running == at->slot && step_began_ns(at->pool_thread) == at->began_ns)
            count_look_locked(at);
    }
    weir__engine_unlock(pipeline);
    return true;
}

int64_t weir__wait_looks_take(weir__wait_looks *looks, weir_pipeline *pipeline)
{
    int64_t begin_ns = weir_clock_ns();
    if (begin_ns < looks->due_ns)
        return looks->due_ns;
    if (atomic_load(&pipeline->sped_node)) /* what a speedup holds back would count as a sleep */
        return looks->due_ns = begin_ns + least_ns;
    bool can_read = !make_room(looks, pipeline) || look_at_threads(looks, pipeline);
    int64_t end_ns = weir_clock_ns(), pause_ns = WEIR_LOOK_COST * (end_ns - begin_ns);
    pause_ns = pause_ns < least_ns ? least_ns : pause_ns > most_ns ? most_ns : pause_ns;
    looks->due_ns = end_ns + (can_read ? pause_ns : most_ns);
    return looks->due_ns;
}

void weir__wait_looks_destroy(weir__wait_looks *looks)
{
    free(looks->threads);
}
