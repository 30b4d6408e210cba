/* What the kernel counts for each thread, from /proc. -1 = not known on this system. */
#ifndef ENGINE_STATE_KERNEL_STATS_H
#define ENGINE_STATE_KERNEL_STATS_H

#include <stdint.h>

#include <weir/metrics.h>

/* Since the thread began. */
typedef struct weir_thread_kernel_stats {
    weir_pool_metrics counted; /* busy_ns and idle_ns, which the engine measures, are 0 */
    int64_t read_delay_ns;     /* waiting for reads of a disk; 0 if the kernel does not count it */
} weir_thread_kernel_stats;

/* tid: the kernel's number of a thread of this process; 0 = the calling thread. */
void weir__kernel_stats_of_thread(int tid, weir_thread_kernel_stats *stats);

#endif
