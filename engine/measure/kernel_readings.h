/*
 * What the kernel counts for the threads of the pools, the process and the machine. Each count goes from one moment
 * at which laps are taken to the next. Service thread only.
 */
#ifndef ENGINE_MEASURE_KERNEL_READINGS_H
#define ENGINE_MEASURE_KERNEL_READINGS_H

#include "engine/measure/child_processes.h"
#include "engine/measure/lap.h"
#include "engine/measure/machine_stats.h"
#include "engine/state/kernel_stats.h"

/* A reading of one thread. */
typedef struct weir__thread_reading {
    weir_pool_thread *pool_thread;
    int64_t cpu_ns;
    weir_thread_kernel_stats now;
    weir_pool_metrics counted; /* since the reading before */
    int64_t read_delay_ns;     /* the same */
} weir__thread_reading;

typedef struct weir__kernel_readings {
    weir__thread_reading *threads; /* one for each thread of all pools, surplus ones too */
    uint32_t num_threads;
    uint32_t *num_known; /* for each pool: of its threads, how many have a reading */
    weir_machine_sources machine_sources;
    weir_machine_reading machine; /* the reading before */
    weir__child_memory children;
} weir__kernel_readings;

/* For the process and the machine: the reading, and what was counted since the reading before. */
typedef struct weir__kernel_counts {
    weir_machine_reading now, counted;
} weir__kernel_counts;

/* The threads that the pools have made, surplus ones too. */
uint32_t weir__count_threads(weir_pipeline *pipeline);

/* Reads for the first time. WEIR_OK or WEIR_ENOMEM. */
int weir__kernel_readings_init(weir__kernel_readings *own, weir_pipeline *pipeline);
void weir__kernel_readings_destroy(weir__kernel_readings *own);

/* Reads everything. Without memory, new threads are read the next time. */
void weir__kernel_readings_read(weir__kernel_readings *own, weir_pipeline *pipeline, weir__kernel_counts *counts);

/* Adds the CPU time up to the reading to the tasks that have run for long. */
void weir__kernel_readings_settle_locked(const weir__kernel_readings *own);

/* What was counted since the reading before. What child processes have used for tasks (outside_cpu_ns) counts as if the
   threads of the pools had used it. */
void weir__kernel_readings_sum(weir__kernel_readings *own, const weir_pipeline *pipeline, weir__kernel_counts *counts,
                               int64_t outside_cpu_ns);

/* Adds the share of a lap that lasted from begin_ns to end_ns of the time between the readings, whole_ns. */
void weir__kernel_readings_add_share(const weir__kernel_readings *own, weir__lap *lap,
                                     const weir__kernel_counts *counts, int64_t begin_ns, int64_t end_ns,
                                     int64_t whole_ns);

#endif
