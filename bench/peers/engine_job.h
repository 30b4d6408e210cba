/* One run that passes items from a source through stages to a consumer: its parameters and its result. */
#ifndef BENCH_PEERS_ENGINE_JOB_H
#define BENCH_PEERS_ENGINE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum engine_shape {
    ENGINE_LINE = 0, /* one stage after the other */
    ENGINE_ROUTE,    /* ENGINE_BRANCHES branches of num_stages stages each; items go to the branches round robin */
    ENGINE_PENDING,  /* the operations complete their task themselves, and return WEIR_PENDING */
} engine_shape;

/* The raw record of a run (weir/trace.h). */
typedef enum engine_trace {
    ENGINE_NO_TRACE = 0,
    ENGINE_TRACE_OFF, /* it could be switched on */
    ENGINE_TRACE_ON,  /* it goes to an observer that does nothing */
} engine_trace;

enum { ENGINE_BRANCHES = 4 };

typedef struct engine_job {
    uint64_t num_items;
    uint64_t op_spins; /* bench_spin() iterations in each operation (0 = do nothing) */
    uint32_t num_stages;
    uint32_t threads;
    uint32_t queue_items; /* capacity of the output queue of the source and of each stage */

    /* for weir only; the peers have one slot per stage, a chain of stages, and no statistics */
    uint32_t concurrency; /* slots of each stage */
    engine_shape shape;
    bool in_order; /* output_order = input */
    bool no_statistics;
    engine_trace trace;
    bool checkpoints; /* track which items are done */
} engine_job;

typedef struct engine_result {
    int64_t start_ns; /* weir_clock_ns() at the first call of the source */
    int64_t end_ns;   /* weir_clock_ns() when the consumer got the last item */
} engine_result;

/* Runs a job. Returns 0, or -1 after an error message on stderr. All threads have ended when it returns. */
typedef int engine_run(const engine_job *job, engine_result *result);

#ifdef __cplusplus
}
#endif

#endif
