/* The part of `weir-bench verdict` about pipelines made by chance (random_scene.h). */
#ifndef BENCH_VERDICT_RANDOM_BENCH_H
#define BENCH_VERDICT_RANDOM_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/harness/report.h"

typedef struct random_settings {
    uint32_t num;
    int64_t seed;
    const char *only; /* pipelines whose name contains this; NULL = all */
    double run_s;     /* length of a recorded run */
    bool is_offline;  /* from recordings, instead of runs in progress */
    bool verbose;     /* print each verdict with its evidence */
    bool lists;       /* print the pipelines and their truth, and run none */
} random_settings;

/* Draws the pipelines, judges the verdict on each, and prints a few lines for each and the score. Returns 0, or -1 if one
   could not be run. */
int random_bench_run(const random_settings *settings, bench_report *report);

#endif
