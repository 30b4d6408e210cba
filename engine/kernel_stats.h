/* What the kernel counts for each thread, from /proc. -1 = not known on this system. */
#ifndef WEIR_KERNEL_STATS_H
#define WEIR_KERNEL_STATS_H

#include <stdint.h>

typedef struct weir_thread_kernel_stats {
    int64_t cpu_ns, run_delay_ns;               /* since the thread began */
    int64_t num_voluntary, num_involuntary;     /* context switches */
    int64_t num_minor_faults, num_major_faults; /* page faults */
} weir_thread_kernel_stats;

/* tid: the kernel's number of a thread of this process; 0 = the calling thread. */
void weir_kernel_stats_of_thread(int tid, weir_thread_kernel_stats *stats);

#endif
