/* One measured run in a separate process, so that CPU time and peak memory belong to that run only. */
#ifndef BENCH_HARNESS_MEASURE_H
#define BENCH_HARNESS_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct bench_usage {
    double wall_s;       /* of the work only */
    double cpu_s;        /* of the whole process, user and system, all threads */
    uint64_t peak_bytes; /* largest resident memory */
} bench_usage;

double bench_seconds(clockid_t clock);

/* The work to measure: fills *result, a plain struct without pointers. Returns 0 on success. */
typedef int bench_work(const void *argument, void *result);

/*
 * Runs the work in a child process, and gets its result and its resource usage. Returns 0, or -1 after an error
 * message on stderr. The calling process must be single-threaded.
 */
int bench_measure(bench_work *work, const void *argument, void *result, size_t result_bytes, bench_usage *usage);

/* Median and extremes of several runs. */
typedef struct bench_spread {
    double median;
    double min;
    double max;
} bench_spread;

/* Sorts the values; at least one. */
bench_spread bench_spread_of(double *values, size_t num_values);

#endif
