/* Whether fork() has copied an object into this process, without the threads that work for it. Any thread. */
#ifndef ENGINE_BASE_FORK_CHECK_H
#define ENGINE_BASE_FORK_CHECK_H

#include <stdatomic.h>

/* The number of forks between the process that first called weir__forks_watch() and this one. */
extern atomic_uint weir__num_forks;

/* Begins to count forks, once for each process. Returns the number of now, which an object keeps. */
unsigned weir__forks_watch(void);

static inline unsigned forks_now(void)
{
    return atomic_load_explicit(&weir__num_forks, memory_order_relaxed);
}

#endif
