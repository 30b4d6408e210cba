/*
 * CPU time of the tasks.
 *
 * Reading a thread's CPU clock is a system call, ten times as dear as the monotonic clock, so it is not read around
 * every task. A thread's CPU time since its last reading is shared out among the tasks it ran since, in proportion to
 * how long they ran. Where that could be wrong by much it is read in between: before and after each task of a stage
 * whose steps usually take WINDOW_NS or more, and at least every WINDOW_NS. So what is shared is never more than about
 * WINDOW_NS of short tasks, the cost is at most 0.4 %, and a lap sees the part of a long task that lies in it.
 */
#include "internal.h"

#include <pthread.h>
#include <time.h>

#define WINDOW_NS (100 * WEIR_MICROSECOND)

static int64_t read_cpu_ns(weir_worker *worker)
{
    struct timespec time;
    if (!worker->clock_known)
        worker->clock_known = pthread_getcpuclockid(worker->thread, &worker->cpu_clock) == 0;
    if (!worker->clock_known || clock_gettime(worker->cpu_clock, &time) != 0)
        return worker->cpu_read_ns;
    return (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec;
}

static void count_running(weir_worker *worker)
{
    if (!worker->running)
        return;
    int64_t now_ns = worker->pool->pipeline->now_ns;
    int64_t ran_ns = now_ns - worker->busy_since_ns;
    uint32_t index = worker->running->node->index;
    if (ran_ns > 0 && worker->window_ns[index] == 0)
        worker->window_nodes[worker->num_window_nodes++] = index;
    worker->window_ns[index] += ran_ns;
    worker->shared_ns += ran_ns;
    worker->busy_since_ns = now_ns;
}

/* Reads the clock and shares out what has been used since the last reading. */
static void settle(weir_worker *worker)
{
    weir_pipeline *pipeline = worker->pool->pipeline;
    int64_t cpu_ns = read_cpu_ns(worker);
    int64_t used_ns = cpu_ns - worker->cpu_read_ns;
    if (used_ns > worker->shared_ns)
        used_ns = worker->shared_ns; /* the rest went into looking for work, and waking */
    worker->cpu_read_ns = cpu_ns;
    worker->cpu_read_at_ns = pipeline->now_ns;
    if (worker->shared_ns == 0)
        return;

    for (uint32_t i = 0; i < worker->num_window_nodes; i++) {
        uint32_t index = worker->window_nodes[i];
        double share = (double)worker->window_ns[index] / (double)worker->shared_ns;
        pipeline->nodes[index]->lap.cpu_ns += (int64_t)(share * (double)used_ns);
        worker->window_ns[index] = 0;
    }
    worker->num_window_nodes = 0;
    worker->shared_ns = 0;
}

void weir_cpu_time_task_starts_locked(weir_worker *worker, weir_slot *slot)
{
    if (!worker->pool->pipeline->measures)
        return;
    int64_t now_ns = worker->pool->pipeline->now_ns;
    if (slot->node->typical_ns >= WINDOW_NS && worker->cpu_read_at_ns != now_ns)
        settle(worker);
    worker->running = slot->chore ? NULL : slot;
    worker->busy_since_ns = now_ns;
}

void weir_cpu_time_task_ended_locked(weir_worker *worker)
{
    if (!worker->running)
        return;
    count_running(worker);
    worker->running = NULL;
    if (worker->pool->pipeline->now_ns - worker->cpu_read_at_ns >= WINDOW_NS)
        settle(worker);
}

void weir_cpu_time_idle_locked(weir_worker *worker)
{
    if (worker->shared_ns)
        settle(worker);
}

void weir_cpu_time_settle_locked(weir_pool *pool)
{
    for (uint32_t i = 0; i < pool->num_workers; i++) {
        weir_worker *worker = &pool->workers[i];
        count_running(worker);
        if (worker->shared_ns)
            settle(worker);
    }
}
