/* CPU time of the tasks, from the CPU clocks of the threads. */
#ifndef ENGINE_MEASURE_THREAD_CPU_H
#define ENGINE_MEASURE_THREAD_CPU_H

#include "engine/state/run_state.h"

#define WEIR_CPU_WINDOW_NS (200 * WEIR_MICROSECOND)
#define WEIR_LONG_STEP_NS  (100 * WEIR_MICROSECOND)

/* Pool thread's thread, without the lock: before each step. True = it took a while, until pool_thread->window.start_ns. */
bool weir__thread_cpu_step_begins(weir_pool_thread *pool_thread, const weir_task *slot);

/* Pool thread's thread, without the lock: after each step or burst, from pool_thread->began_ns to the slot's end_ns. */
void weir__thread_cpu_step_ended(weir_pool_thread *pool_thread, const weir_task *slot);

/* The thread is about to sleep: its CPU time until it has woken belongs to no task. */
void weir__thread_cpu_sleeps(weir_pool_thread *pool_thread);

/* Pool thread's thread, with the lock: adds the divided time to the metrics of the nodes. */
void weir__thread_cpu_add_locked(weir_pool_thread *pool_thread);

/* Service thread, without the lock: the CPU time of the pool_thread's thread so far. -1 = not known. */
int64_t weir__thread_cpu_read_ns(const weir_pool_thread *pool_thread);

/* Service thread, with the lock: adds the CPU time up to that reading to a task that has run for long. It does so
   also if the task has ended since the thread's last reading. */
void weir__thread_cpu_settle_locked(weir_pool_thread *pool_thread, int64_t cpu_ns);

#endif
