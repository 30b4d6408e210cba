/*
 * What the files of the kernel say about threads, the machine and memory: those figures that several rooms ask for.
 * -1 = not known on this system. Any thread.
 */
#ifndef ENGINE_BASE_KERNEL_FILES_H
#define ENGINE_BASE_KERNEL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/sibling.h"

/* Reads the beginning of a file, see readings.h. */
WEIR_SIBLING_API size_t weir__read_start(const char *path, char *text, size_t size);

/* The number after the first `name` in a text; -1 = there is none. */
WEIR_SIBLING_API int64_t weir__number_after(const char *text, const char *name);

/* How long a thread or process ran, and how long it waited for a CPU. */
typedef struct weir__schedule {
    int64_t cpu_ns, delay_ns;
} weir__schedule;

/* `task`: its folder, "/proc/self/task/17" or "/proc/17". False = not known. */
WEIR_SIBLING_API bool weir__schedule_read(const char *task, weir__schedule *schedule);

/* The sum over all threads of this process that the engine has named with a number ("read/3"): these are the threads
   of pools. False = not known. */
WEIR_SIBLING_API bool weir__schedule_read_pools(weir__schedule *sum);

/* The times of all CPUs of the machine since its start; all are -1 where the kernel does not count. */
typedef struct weir__machine_cpus {
    int64_t busy_ns, idle_ns, disk_idle_ns, stolen_ns;
} weir__machine_cpus;

WEIR_SIBLING_API void weir__machine_cpus_read(weir__machine_cpus *cpus);

/* Memory: of a process, by its folder ("/proc/self", "/proc/17"); what the programs of the machine can still get. */
WEIR_SIBLING_API int64_t weir__resident_bytes_read(const char *process);
WEIR_SIBLING_API int64_t weir__available_bytes_read(void);

/* The limit of the memory of this process's control group, of version 2 or 1; UINT64_MAX = none. */
WEIR_SIBLING_API uint64_t weir__group_memory_read(void);

#endif
