/*
 * The child processes that work for this process, as operations have told (weir/op.h), and their memory.
 *
 * A list of places that only grows: one that is free is used again, so it is as long as there were children at the same
 * time. No locks: a child of fork() may find it in any state, and sees none of its parent's.
 */
#ifndef ENGINE_MEASURE_CHILD_PROCESSES_H
#define ENGINE_MEASURE_CHILD_PROCESSES_H

#include <weir/metrics.h>

/* Sets the metrics of children; the others stay. Any thread. */
void weir__child_processes_read(weir_process_metrics *process);

#endif
