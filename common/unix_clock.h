/* The wall clock, for timestamps. Durations are measured with weir_clock_ns(). */
#ifndef COMMON_UNIX_CLOCK_H
#define COMMON_UNIX_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since 1970-01-01 UTC. Any thread. */
static inline int64_t unix_clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

#endif
