/* What the kernel counts for each thread, from /proc. -1 = not known on this system. */
#ifndef ENGINE_STATE_KERNEL_STATS_H
#define ENGINE_STATE_KERNEL_STATS_H

#include <stddef.h>
#include <stdint.h>

typedef struct weir_thread_kernel_stats {
    int64_t cpu_ns, run_delay_ns;               /* since the thread began */
    int64_t num_voluntary, num_involuntary;     /* context switches */
    int64_t num_minor_faults, num_major_faults; /* page faults */
    int64_t read_delay_ns;                      /* waiting for reads of a disk; 0 if the kernel does not count it */
} weir_thread_kernel_stats;

/* tid: the kernel's number of a thread of this process; 0 = the calling thread. */
void weir__kernel_stats_of_thread(int tid, weir_thread_kernel_stats *stats);

/* Reads the beginning of a file, at most size - 1 bytes, and ends it with a NUL. Returns its length; 0 = it cannot be read,
   or is empty. */
size_t weir__read_start(const char *path, char *text, size_t size);

/* The number after the first `name` in a text; -1 = there is none. */
int64_t weir__number_after(const char *text, const char *name);

#endif
