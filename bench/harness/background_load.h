/* The CPU share used by other programs: speeds measured under a high background load are not meaningful. */
#ifndef BENCH_HARNESS_BACKGROUND_LOAD_H
#define BENCH_HARNESS_BACKGROUND_LOAD_H

#include "bench/harness/report.h"

typedef struct bench_background_load {
    double idle_s; /* sum over all CPUs since boot; negative = unknown */
    double own_s;  /* CPU time of this process and its ended children */
    double wall_s;
} bench_background_load;

bench_background_load bench_background_load_now(void);

/* CPUs that other programs have used since then, on average; NAN = not known. */
double bench_others_cpus(const bench_background_load *start);

/* Prints the share of the CPU time since `start` that was used neither by this process nor by its children. Adds it
   to the machine data of the report (NULL = none). Prints nothing if the system does not provide it. */
void bench_report_background_load(bench_report *report, const bench_background_load *start);

#endif
