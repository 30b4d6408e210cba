/*
 * Runs many configurations of the engine bench, interleaved: each round runs each of them once, so that background
 * load affects all alike. Compared configurations are close to each other in a round.
 */
#ifndef BENCH_ENGINE_ROUNDS_H
#define BENCH_ENGINE_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "engine_job.h"

/* One run. */
typedef struct engine_sample {
    double ns_per_item;     /* from the first item of the source to the last item of the consumer */
    double cpu_ns_per_item; /* of the whole process, all threads */
} engine_sample;

/* A configuration and its measurements. */
typedef struct engine_case {
    const char *what; /* or the name of the peer */
    engine_run *run;
    uint32_t op_us;
    engine_job job;         /* num_items and op_spins are set by rounds_run() */
    engine_sample *samples; /* one for each round; NULL before rounds_run() */
} engine_case;

typedef struct engine_rounds {
    uint32_t num_rounds;
    uint32_t run_ms;    /* approximate length of a run */
    uint32_t num_items; /* fixed number of items (0 = by run_ms) */
    double spins_per_us;
    engine_case *cases;
    size_t num_cases;
} engine_rounds;

#define NO_CASE SIZE_MAX

/* Adds a configuration unless it already exists. Returns its index. */
size_t rounds_add(engine_rounds *rounds, const engine_case *wanted);

/* Calibrates the number of items of each case, then runs the rounds; shows the progress on a terminal. Returns 0,
   or -1 after an error message on stderr. */
int rounds_run(engine_rounds *rounds);

/* Frees the cases. */
void rounds_free(engine_rounds *rounds);

#endif
