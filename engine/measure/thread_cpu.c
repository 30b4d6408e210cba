/*
 * CPU time of the tasks.
 *
 * Reading a thread's CPU clock is a system call, more than ten times as expensive as the monotonic clock. So it is
 * not read around every task. The work of a thread is divided into windows, from one reading to the next. The part of
 * a window's CPU time that belongs to tasks (cpu_window.h) is divided among them in proportion to their run times. A
 * window never contains a sleep of the thread. At the end of a lap, the service thread reads the CPU time of a long
 * task that is still running. It also does so for a long task that has ended and was the last.
 *
 * If the steps of a stage usually take WEIR_LONG_STEP_NS or more, each is a window by itself. It has a reading at its
 * begin and at its end. There are two reasons. In proportion to the run time, a task that sleeps would get the CPU
 * time of others. And a hand-off (to wake the consumer, or in a wait for the lock) may use more CPU time than a task
 * that sleeps. A window of shorter steps is at least WEIR_CPU_WINDOW_NS long, and is closed between a hand-off and
 * the next step. Now and then it is closed before a hand-off, which is then a window of its own and shows what
 * hand-offs use.
 */
#include "engine/measure/thread_cpu.h"

#include <pthread.h>
#include <time.h>

#include "engine/base/readings.h"

static int64_t read_own_ns(void)
{
    int64_t cpu_ns = weir__readings_get()->cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    return cpu_ns < 0 ? 0 : cpu_ns;
}

/* The part of a reading that is in the window which it ends, and that in the window which it begins: what two readings
   differ by that follow each other. The least of some. */
static int64_t measure_reading_ns(void)
{
    int64_t least_ns = INT64_MAX;
    for (int64_t i = 0, before_ns = read_own_ns(), now_ns; i < 8; i++, before_ns = now_ns) {
        now_ns = read_own_ns();
        if (now_ns - before_ns < least_ns)
            least_ns = now_ns - before_ns;
    }
    return least_ns;
}

static void share_out(weir_pool_thread *pool_thread, int64_t used_ns)
{
    double share = (double)used_ns / (double)pool_thread->window.run_ns;
    for (uint32_t i = 0; i < pool_thread->pool->pipeline->core.num_nodes; i++) {
        pool_thread->shared_ns[i] += (int64_t)((double)pool_thread->run_ns[i] * share);
        pool_thread->run_ns[i] = 0;
    }
    pool_thread->has_shares = true;
}

/* Reads the clock and divides the CPU time used; the next window begins. */
static void close_window(weir_pool_thread *pool_thread, int64_t now_ns)
{
    int64_t cpu_ns = read_own_ns();
    int64_t used_ns = cpu_ns - atomic_exchange_explicit(&pool_thread->cpu_base_ns, cpu_ns, memory_order_relaxed);
    used_ns -= pool_thread->reading_ns;
    pool_thread->handoffs.num_unmeasured++;
    if (pool_thread->window.run_ns > 0)
        share_out(pool_thread,
                  weir__cpu_window_tasks_ns(&pool_thread->window, now_ns, used_ns, pool_thread->handoffs.mean_ns));
    else if (pool_thread->window.num_handoffs > 0)
        weir__handoff_sample_add(&pool_thread->handoffs, used_ns);
    weir__cpu_window_begin(&pool_thread->window, now_ns);
}

bool weir__thread_cpu_step_begins(weir_pool_thread *pool_thread, const weir_task *slot)
{
    if (!slot->node->pipeline->core.measures ||
        (pool_thread->window_open && !pool_thread->window_full && !slot->is_long_step))
        return false;
    if (pool_thread->window_open) {
        int64_t now_ns = step_clock_ns(&pool_thread->clock);
        weir__cpu_window_add_handoff(&pool_thread->window, now_ns);
        close_window(pool_thread, now_ns);
    } else {
        if (pool_thread->reading_ns < 0)
            pool_thread->reading_ns = measure_reading_ns();
        atomic_store_explicit(&pool_thread->cpu_base_ns, read_own_ns(), memory_order_relaxed);
    }
    weir__cpu_window_begin(&pool_thread->window, step_clock_ns(&pool_thread->clock));
    pool_thread->window_open = true;
    pool_thread->window_full = false;
    return true;
}

void weir__thread_cpu_step_ended(weir_pool_thread *pool_thread, const weir_task *slot)
{
    if (!pool_thread->window_open)
        return;
    int64_t begin_ns = pool_thread->began_ns, end_ns = slot->core.end_ns;
    if (!slot->is_long_step) /* else the window began with the step */
        weir__cpu_window_add_handoff(&pool_thread->window, begin_ns);
    weir__cpu_window_add_step(&pool_thread->window, begin_ns, end_ns);
    if (!slot->core.is_lifecycle && end_ns > begin_ns)
        pool_thread->run_ns[slot->node->core.index] += end_ns - begin_ns;
    bool is_due = weir__handoff_sample_is_due(&pool_thread->handoffs);
    pool_thread->window_full = is_due || end_ns - pool_thread->window.start_ns >= WEIR_CPU_WINDOW_NS;
    if (slot->is_long_step || is_due)
        close_window(pool_thread, end_ns);
}

void weir__thread_cpu_sleeps(weir_pool_thread *pool_thread)
{
    if (pool_thread->window_open && (pool_thread->window.run_ns > 0 || pool_thread->window_full)) {
        int64_t now_ns = step_clock_ns(&pool_thread->clock);
        weir__cpu_window_add_handoff(&pool_thread->window, now_ns);
        close_window(pool_thread, now_ns);
    }
    pool_thread->window_open = false;
}

static void add_locked(weir_node *node, int64_t cpu_ns)
{
    node->core.lap.cpu_ns += cpu_ns;
    node->total_cpu_ns += cpu_ns;
}

void weir__thread_cpu_add_locked(weir_pool_thread *pool_thread)
{
    pool_thread->long_node = NULL;
    if (!pool_thread->has_shares)
        return;
    weir_pipeline *pipeline = pool_thread->pool->pipeline;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        add_locked(pipeline->nodes[i], pool_thread->shared_ns[i]);
        pool_thread->shared_ns[i] = 0;
    }
    pool_thread->has_shares = false;
}

/* ---- at laps, on the service thread -------------------------------------------------------------------------- */

int64_t weir__thread_cpu_read_ns(const weir_pool_thread *pool_thread)
{
    clockid_t clock;
    return pthread_getcpuclockid(pool_thread->thread, &clock) == 0 ? weir__readings_get()->cpu_ns(clock) : -1;
}

void weir__thread_cpu_settle_locked(weir_pool_thread *pool_thread, int64_t cpu_ns)
{
    const weir_task *slot = pool_thread->running;
    bool is_long = slot && !slot->core.is_lifecycle &&
                   slot->node->pipeline->core.now_ns - slot->core.entered_ns >= WEIR_CPU_WINDOW_NS;
    weir_node *node = is_long ? slot->node : slot ? NULL : pool_thread->long_node;
    if (cpu_ns < 0 || !node || !node->pipeline->core.measures)
        return;
    int64_t base_ns = atomic_load_explicit(&pool_thread->cpu_base_ns, memory_order_relaxed);
    if (cpu_ns > base_ns && atomic_compare_exchange_strong(&pool_thread->cpu_base_ns, &base_ns, cpu_ns))
        add_locked(node, cpu_ns - base_ns);
}
