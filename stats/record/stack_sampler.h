/*
 * Samples of the functions of all threads of the process: the stack of each thread after each 1/99 s of its CPU time. They are
 * counted by the lap that was current, and by the stage, pool or thread.
 */
#ifndef STATS_RECORD_STACK_SAMPLER_H
#define STATS_RECORD_STACK_SAMPLER_H

#include <weir/status.h>

#include "stats/record/stack_tree.h"

/* The most functions of a stack; of deeper ones, those are left out that began it. */
enum { WEIR_STACK_FRAMES = 60 };

/* One for the process: each further start counts with the first, and the last stop ends it. It uses SIGPROF, and refuses
   (WEIR_EBUSY) if the program does. Any thread. */
int weir__stack_sampler_start(weir_error *error);
void weir__stack_sampler_stop(void);

/* The CPU time that a sample stands for. */
int64_t weir__stack_sampler_period_ns(void);

/* Samples that were taken from the sampler. A function has a larger number than its callers. */
typedef struct weir_stack_samples {
    weir_stack_count *counts;
    size_t num_counts;
    uint64_t num_lost; /* of the process, since the last call */
} weir_stack_samples;

/* Takes those of these laps (weir_lap.ids). Free counts with free(). Between start and stop; any thread. */
weir_stack_samples weir__stack_sampler_take(const uint64_t *lap_ids, size_t num_ids);

/* A call of the tree, with its function; its text is valid until the sampler is stopped. Between start and stop; any thread. */
const char *weir__stack_sampler_call(uint32_t call, uint32_t *caller);

/* The name of samples. The same. */
const char *weir__stack_sampler_name(uint32_t name);

#endif
