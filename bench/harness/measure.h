/* One measured run: in a process of its own, so that CPU time and peak memory are that run's alone. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct bench_usage {
    double wall_s;       /* of the work itself */
    double cpu_s;        /* of the whole process, user and system, all threads */
    uint64_t peak_bytes; /* largest resident memory */
} bench_usage;

double bench_seconds(clockid_t clock);

/* The work: fills *result, a plain struct without pointers. 0 = success. */
typedef int bench_work(const void *argument, void *result);

/*
 * Runs the work in a child process and brings back its result and what it used. 0, or -1 after a line on stderr. The
 * caller must have one thread.
 */
int bench_measure(bench_work *work, const void *argument, void *result, size_t result_bytes, bench_usage *usage);

/* Of several runs. */
typedef struct bench_spread {
    double median;
    double min;
    double max;
} bench_spread;

/* Sorts the values. There is at least one. */
bench_spread bench_spread_of(double *values, size_t num_values);

#endif
