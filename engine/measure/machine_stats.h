/*
 * What the kernel counts for this process and for the machine, from /proc and the control group. -1 = not known on
 * this system. Files are opened for each reading: a pipeline keeps no descriptors, and a reading without free
 * descriptors only knows less.
 */
#ifndef ENGINE_MEASURE_MACHINE_STATS_H
#define ENGINE_MEASURE_MACHINE_STATS_H

#include <stdbool.h>

#include <weir/metrics.h>

/* How throttling is found out; made once, because the process seldom moves to another group. */
typedef struct weir_machine_sources {
    char cpu_stat_path[4096]; /* of the control group that limits the CPU time; "" = none */
    bool counts_read_delay;   /* the kernel measures how long threads wait for reads */
} weir_machine_sources;

/* Sums since the start of the process or the machine; levels (kind MAX) are those of now. */
typedef struct weir_machine_reading {
    weir_process_metrics process; /* without what the pools know: pool_cpu_ns, run_delay_ns, read_delay_ns */
    weir_machine_metrics machine; /* other_cpu_ns: of all processes, this one included */
} weir_machine_reading;

void weir__machine_sources_init(weir_machine_sources *sources);

/* Any thread. Takes about 70 µs on a machine with two CPUs. */
void weir__machine_read(const weir_machine_sources *sources, weir_machine_reading *reading);

/* What was counted between two readings; levels are those of the second. -1 = not known, or the counter was reset. */
void weir__metrics_subtract(const weir_metric_table *table, const void *now, const void *before, void *counted);
void weir__machine_subtract(const weir_machine_reading *now, const weir_machine_reading *before,
                            weir_machine_reading *counted);

#endif
