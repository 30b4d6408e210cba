#include <weir/clock.h>

#include <time.h>

int64_t weir_clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec;
}
