/*
 * Many configurations of the engine bench, run in turn: round r runs each of them once, so that what else the machine
 * does meets all alike. Those that are compared stand near each other in a round.
 */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "engine_job.h"

/* One run. */
typedef struct engine_sample {
    double ns_per_item;     /* from the source's first item to the consumer's last */
    double cpu_ns_per_item; /* of the whole process, all threads */
} engine_sample;

/* A configuration, and what was measured of it. */
typedef struct engine_case {
    const char *what; /* "weir", or the peer's name */
    engine_run *run;
    uint32_t op_us;
    engine_job job;         /* num_items and op_spins are set by rounds_run() */
    engine_sample *samples; /* one for each round; NULL before rounds_run() */
} engine_case;

typedef struct engine_rounds {
    uint32_t num_rounds;
    uint32_t run_ms;    /* about as long shall a run be… */
    uint32_t num_items; /* … unless it is to have this many items (0 = by run_ms) */
    double spins_per_us;
    engine_case *cases;
    size_t num_cases;
    size_t max_cases;
} engine_rounds;

#define NO_CASE SIZE_MAX

/* Adds a configuration, unless it is there already. Its index, or NO_CASE if memory is out. */
size_t rounds_add(engine_rounds *rounds, const engine_case *wanted);

/* Finds how many items each is to have, then runs the rounds; the progress is shown on a terminal. 0, or -1 after a line
   on stderr. */
int rounds_run(engine_rounds *rounds);

/* Frees the cases. */
void rounds_free(engine_rounds *rounds);

#endif
