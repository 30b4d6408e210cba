/*
 * Looks at the threads that run tasks, again and again: of those that sleep, the system call tells what they wait for. Service
 * thread only.
 *
 * A look costs some microseconds for each thread. It is measured, and the next one is so much later that looks take no more than
 * 1/WEIR_LOOK_COST of a CPU.
 */
#ifndef ENGINE_MEASURE_WAIT_LOOKS_H
#define ENGINE_MEASURE_WAIT_LOOKS_H

#include "engine/state/run_state.h"

enum { WEIR_LOOK_COST = 1000 };

typedef struct weir__wait_looks {
    int64_t due_ns;
    struct weir__looked_at *threads; /* room for num_threads */
    uint32_t num_threads;
} weir__wait_looks;

/* Looks at each thread of the pipeline once, if it is time. Returns when to call it again. */
int64_t weir__wait_looks_take(weir__wait_looks *looks, weir_pipeline *pipeline);

void weir__wait_looks_destroy(weir__wait_looks *looks);

#endif
