/*
 * The monotonic clock for threads that read it often, in each step or span: the time stamp counter, corrected by CLOCK_MONOTONIC at
 * least every 200 µs. It costs half as much as CLOCK_MONOTONIC, which waits until all earlier instructions have ended.
 * The kernel must use the counter itself, which means that it is the same on all CPUs; else this clock is
 * CLOCK_MONOTONIC. May go back by some ns when corrected; the clocks of two threads differ by some ns: callers must
 * clamp.
 */
#ifndef ENGINE_STATE_STEP_CLOCK_H
#define ENGINE_STATE_STEP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* The clock of one thread; all-zero is valid. */
typedef struct weir_step_clock {
    int64_t base_ns; /* the last reading of CLOCK_MONOTONIC */
    uint64_t base_ticks;
    uint64_t valid_ticks; /* for how long the base is used */
    uint64_t ns_per_tick; /* with 32 bits behind the point; 0 = not known yet */
    int64_t first_ns;     /* the rate is measured from this reading on; 0 = none yet */
    uint64_t first_ticks;
} weir_step_clock;

static inline uint64_t tick_count(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

/* Whether ticks are counted at a constant rate, the same on all CPUs, and the monotonic clock is the real one. */
bool weir__ticks_are_usable(void);

/* Reads weir_clock_ns(). */
int64_t weir__step_clock_correct(weir_step_clock *clock);

static inline int64_t step_clock_ns(weir_step_clock *clock)
{
    uint64_t passed = tick_count() - clock->base_ticks;
    if (__builtin_expect(passed < clock->valid_ticks, true))
        return clock->base_ns + (int64_t)(passed * clock->ns_per_tick >> 32);
    return weir__step_clock_correct(clock);
}

#endif
