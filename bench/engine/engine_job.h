/* One run of something that brings items from a source through stages to a consumer: what it is asked, what it answers. */
#ifndef BENCH_ENGINE_JOB_H
#define BENCH_ENGINE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum engine_shape {
    ENGINE_LINE = 0, /* one stage after the other */
    ENGINE_ROUTE,    /* ENGINE_BRANCHES branches of num_stages stages each, the items in turn */
    ENGINE_PENDING,  /* the operations return WEIR_PENDING, another thread completes them */
} engine_shape;

enum { ENGINE_BRANCHES = 4 };

typedef struct engine_job {
    uint64_t num_items;
    uint64_t op_spins; /* bench_spin() of each stage's operation (0 = it does nothing) */
    uint32_t num_stages;
    uint32_t threads;
    uint32_t queue_items; /* capacity behind the source and behind each stage */

    /* weir's alone; the peers have one slot for each stage, in a line, and no statistics */
    uint32_t concurrency; /* slots of each stage */
    engine_shape shape;
    bool in_order; /* output_order = input */
    bool no_statistics;
} engine_job;

typedef struct engine_result {
    int64_t start_ns; /* weir_clock_ns() when the source was first asked */
    int64_t end_ns;   /* … when the consumer had the last item */
} engine_result;

/* Runs a job. 0, or -1 after a line on stderr. All threads have ended when it returns. */
typedef int engine_run(const engine_job *job, engine_result *result);

#ifdef __cplusplus
}
#endif

#endif
