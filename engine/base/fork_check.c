#include "engine/base/fork_check.h"

#include <pthread.h>

atomic_uint weir__num_forks;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&weir__num_forks, 1, memory_order_relaxed);
}

static void watch_forks_once(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

unsigned weir__forks_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks_once);
    return forks_now();
}
