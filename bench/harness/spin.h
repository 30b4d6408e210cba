/* Work of a known length: a number of loop iterations, without reading the clock. */
#ifndef BENCH_HARNESS_SPIN_H
#define BENCH_HARNESS_SPIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs this many iterations; none can be optimised away or overlap with the next. Any thread. */
void bench_spin(uint64_t turns);

/* The number of iterations per microsecond of an otherwise idle CPU. Takes some milliseconds. */
double bench_spins_per_us(void);

#ifdef __cplusplus
}
#endif

#endif
