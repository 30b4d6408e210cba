/* Work of a known length: so many turns of a computation, without a look at the clock. */
#ifndef BENCH_SPIN_H
#define BENCH_SPIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Computes for this many turns; none of them can be left out or overlap with the next. Any thread. */
void bench_spin(uint64_t turns);

/* How many turns a CPU of this machine does in a microsecond, when nobody else uses it. Takes some milliseconds. */
double bench_spins_per_us(void);

#ifdef __cplusplus
}
#endif

#endif
