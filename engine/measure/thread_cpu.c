/*
 * CPU time of the tasks.
 *
 * Reading a thread's CPU clock is a system call, more than ten times as expensive as the monotonic clock, so it is
 * not read around every task. The work of a thread is divided into windows, from one reading to the next. The CPU
 * time of a window, minus the time between tasks (in the engine), is divided among the tasks of the window in
 * proportion to their run times. A window never contains a sleep of the thread. A task of a stage whose steps usually
 * take WEIR_CPU_WINDOW_NS or more has a separate window, and a window of shorter tasks is not much longer than that.
 * So the cost is at most about 0.4 %. At the end of a lap, the service thread reads the CPU time of a long task that
 * is still running, or has ended and was the last.
 *
 * A thread that returns from a system call may first have to wait for a CPU. So the CPU clock is read after a hand-off and
 * before the next step begins: such a wait delays no result, and belongs to no task.
 */
#include "thread_cpu.h"

#include <pthread.h>
#include <time.h>

#include "spin_wait.h"

#define LONGEST_HANDOFF_NS (LONGEST_SPIN_NS + 5 * WEIR_MICROSECOND)

static int64_t read_own_ns(void)
{
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0)
        return 0;
    return (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec;
}

static void share_out(weir_worker *worker, int64_t used_ns)
{
    double share = (double)used_ns / (double)worker->window_run_ns;
    for (uint32_t i = 0; i < worker->pool->pipeline->core.num_nodes; i++) {
        worker->shared_ns[i] += (int64_t)((double)worker->run_ns[i] * share);
        worker->run_ns[i] = 0;
    }
    worker->window_run_ns = 0;
    worker->has_shares = true;
}

/* From the end of a step. In the rest of a longer hand-off the thread had no CPU, or waited for the lock. */
static int64_t handoff_ns(const weir_worker *worker, int64_t until_ns)
{
    int64_t passed_ns = until_ns - worker->window_end_ns;
    if (passed_ns < 0) /* the clock was corrected */
        return 0;
    return passed_ns < LONGEST_HANDOFF_NS ? passed_ns : LONGEST_HANDOFF_NS;
}

/* Reads the clock and divides the CPU time used. */
static void close_window(weir_worker *worker)
{
    int64_t now_ns = step_clock_ns(&worker->clock), cpu_ns = read_own_ns();
    int64_t used_ns = cpu_ns - atomic_exchange_explicit(&worker->cpu_base_ns, cpu_ns, memory_order_relaxed);
    used_ns -= worker->window_engine_ns + handoff_ns(worker, now_ns);
    if (used_ns > worker->window_run_ns)
        used_ns = worker->window_run_ns;
    if (worker->window_run_ns > 0)
        share_out(worker, used_ns > 0 ? used_ns : 0);
}

bool weir_thread_cpu_step_begins(weir_worker *worker, const weir_slot *slot)
{
    if (!slot->node->pipeline->core.measures || (worker->window_open && !worker->window_full && !slot->is_long_step))
        return false;
    if (worker->window_open)
        close_window(worker);
    else
        atomic_store_explicit(&worker->cpu_base_ns, read_own_ns(), memory_order_relaxed);
    worker->window_start_ns = worker->window_end_ns = step_clock_ns(&worker->clock);
    worker->window_engine_ns = 0;
    worker->window_open = true;
    worker->window_full = false;
    return true;
}

void weir_thread_cpu_step_ended(weir_worker *worker, const weir_slot *slot)
{
    if (!worker->window_open)
        return;
    int64_t ran_ns = slot->core.end_ns > slot->core.begin_ns ? slot->core.end_ns - slot->core.begin_ns : 0;
    worker->window_engine_ns += handoff_ns(worker, slot->core.begin_ns);
    worker->window_end_ns = slot->core.end_ns;
    if (slot->core.is_lifecycle) {
        worker->window_engine_ns += ran_ns;
        return;
    }
    worker->run_ns[slot->node->core.index] += ran_ns;
    worker->window_run_ns += ran_ns;
    worker->window_full = slot->core.end_ns - worker->window_start_ns >= WEIR_CPU_WINDOW_NS;
}

void weir_thread_cpu_sleeps(weir_worker *worker)
{
    if (worker->window_open && worker->window_run_ns > 0)
        close_window(worker);
    worker->window_open = false;
}

void weir_thread_cpu_add_locked(weir_worker *worker)
{
    worker->long_node = NULL;
    if (!worker->has_shares)
        return;
    weir_pipeline *pipeline = worker->pool->pipeline;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        pipeline->nodes[i]->core.lap.cpu_ns += worker->shared_ns[i];
        pipeline->nodes[i]->total_cpu_ns += worker->shared_ns[i];
        worker->shared_ns[i] = 0;
    }
    worker->has_shares = false;
}

/* ---- at laps, on the service thread -------------------------------------------------------------------------- */

int64_t weir_thread_cpu_read_ns(const weir_worker *worker)
{
    clockid_t clock;
    struct timespec time;
    if (pthread_getcpuclockid(worker->thread, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return -1;
    return (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec;
}

void weir_thread_cpu_settle_locked(weir_worker *worker, int64_t cpu_ns)
{
    const weir_slot *slot = worker->running;
    bool is_long = slot && !slot->core.is_lifecycle &&
                   slot->node->pipeline->core.now_ns - slot->core.entered_ns >= WEIR_CPU_WINDOW_NS;
    weir_node *node = is_long ? slot->node : slot ? NULL : worker->long_node;
    if (cpu_ns < 0 || !node || !node->pipeline->core.measures)
        return;
    int64_t base_ns = atomic_load_explicit(&worker->cpu_base_ns, memory_order_relaxed);
    if (cpu_ns > base_ns && atomic_compare_exchange_strong(&worker->cpu_base_ns, &base_ns, cpu_ns))
        node->core.lap.cpu_ns += cpu_ns - base_ns;
}
