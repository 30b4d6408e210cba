#include <weir/clock.h>

#include <time.h>

static int64_t read_clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec;
}

int64_t weir_clock_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

int64_t weir_clock_unix_ns(void)
{
    return read_clock_ns(CLOCK_REALTIME);
}
