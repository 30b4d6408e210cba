/* The part of `weir-bench verdict` about real decoding. */
#ifndef BENCH_VERDICT_CLIP_BENCH_H
#define BENCH_VERDICT_CLIP_BENCH_H

#include <stdbool.h>

#include "bench/harness/report.h"

typedef struct clip_settings {
    const char *only;        /* scenes whose name contains this; NULL = all */
    const char *dataset_dir; /* these videos instead of made ones; NULL = made ones */
    bool verbose;
} clip_settings;

typedef struct clip_score {
    int num_explained, num_explained_right, num_tuned, num_tuned_right;
} clip_score;

/* Runs the scenes, prints a line for each, and adds to the score. Returns 0, or -1 if one could not be run. */
int clip_bench_run(const clip_settings *settings, bench_report *report, clip_score *score);

#endif
