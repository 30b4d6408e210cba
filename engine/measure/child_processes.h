/*
 * The child processes that work for this process, as operations have reported (weir/op.h), and their memory.
 *
 * A list of places that only grows: one that is free is used again, so it is as long as there were children at the same
 * time. No locks: a child of fork() may find it in any state, and sees none of its parent's.
 */
#ifndef ENGINE_MEASURE_CHILD_PROCESSES_H
#define ENGINE_MEASURE_CHILD_PROCESSES_H

#include <weir/metrics.h>

/*
 * What a reader remembers. The kernel walks all pages of a child for its proportional memory (PSS). The time of a
 * reading is measured. The next one is so much later that they take no more than a thousandth of a CPU. Meanwhile the
 * last sum stands.
 */
typedef struct weir__child_memory {
    int64_t due_ns; /* of the next reading of PSS */
    int64_t pss_bytes;
} weir__child_memory;

/* Sets the metrics of children; the others stay. One thread at a time for each `memory`. */
void weir__child_processes_read(weir__child_memory *memory, weir_process_metrics *process);

#endif
