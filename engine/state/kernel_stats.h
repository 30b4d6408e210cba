/* What the kernel counts for each thread, from /proc. -1 = not known on this system. */
#ifndef ENGINE_STATE_KERNEL_STATS_H
#define ENGINE_STATE_KERNEL_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/metrics.h>

/* Since the thread began. */
typedef struct weir_thread_kernel_stats {
    weir_pool_metrics counted; /* busy_ns and idle_ns, which the engine measures, are 0 */
    int64_t read_delay_ns;     /* waiting for reads of a disk; 0 if the kernel does not count it */
} weir_thread_kernel_stats;

/* tid: the kernel's number of a thread of this process; 0 = the calling thread. */
void weir__kernel_stats_of_thread(int tid, weir_thread_kernel_stats *stats);

/* Reads the beginning of a file, at most size - 1 bytes, and ends it with a NUL. Returns its length; 0 = it cannot be read,
   or is empty. */
size_t weir__read_start(const char *path, char *text, size_t size);

/* The number after the first `name` in a text; -1 = there is none. */
int64_t weir__number_after(const char *text, const char *name);

#endif
