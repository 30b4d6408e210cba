/* The table of peers; CMake defines which libraries are available. */
#include "bench/peers/peers.h"

#include <stddef.h>

#ifdef BENCH_TBB_VERSION
#define TBB(function) .library = "oneTBB (libtbb-dev, g++)", .version = BENCH_TBB_VERSION, .run = function
#else
#define TBB(function) .library = "oneTBB (libtbb-dev, g++)"
#endif

const bench_peer bench_peers[] = {
    {
        .name = "mutex_queue",
        .what = "bounded queues of a mutex and two condition variables, a thread for each stage",
        .run = bench_run_mutex_queue,
        .own_threads = true,
    },
    {
        .name = "tbb_flow",
        .what = "oneTBB's flow graph after a limiter_node, total number of items limited",
        TBB(bench_run_tbb_flow),
    },
    {
        .name = "tbb_pipeline",
        .what = "oneTBB's parallel_pipeline, total number of items limited",
        TBB(bench_run_tbb_pipeline),
    },
    { .name = NULL },
};
