/* CPU time of the tasks, from the CPU clocks of the threads. */
#ifndef WEIR_THREAD_CPU_H
#define WEIR_THREAD_CPU_H

#include "state.h"

#define WEIR_CPU_WINDOW_NS (200 * WEIR_MICROSECOND)

/* On the worker's thread, without the lock: around each step, whose begin_ns and end_ns are set. */
void weir_thread_cpu_step_begins(weir_worker *worker, const weir_slot *slot);
void weir_thread_cpu_step_ended(weir_worker *worker, const weir_slot *slot);

/* The thread goes to sleep: what it does until it has woken is nobody's. */
void weir_thread_cpu_sleeps(weir_worker *worker, int64_t now_ns);

/* On the worker's thread, with the lock: what was shared out goes into the metrics of the nodes. */
void weir_thread_cpu_add_locked(weir_worker *worker);

/* The service thread, without the lock: the CPU time of the worker's thread so far. -1 = not known. */
int64_t weir_thread_cpu_read_ns(const weir_worker *worker);

/* The service thread, with the lock: a task that has run for long gets what its thread has used up to that reading. */
void weir_thread_cpu_settle_locked(weir_worker *worker, int64_t cpu_ns);

#endif
