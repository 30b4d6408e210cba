/*
 * The libraries that the engine bench compares with weir. Each runs the same job: a source, stages that pass on their
 * input, a consumer; items are pointers or numbers. To add one, add its file here and a line to the table in peers.c.
 */
#ifndef BENCH_PEERS_PEERS_H
#define BENCH_PEERS_PEERS_H

#include "bench/peers/engine_job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_peer {
    const char *name;
    const char *what;    /* description for the table */
    const char *library; /* required library, with its Debian packages; NULL = none */
    const char *version; /* of the library as built with, NULL = none */
    engine_run *run;     /* NULL = not built: the library is missing */
    bool own_threads;    /* one for the source and one for each stage; ignores the number of threads of the job */
} bench_peer;

/* Ends with a NULL name. */
extern const bench_peer bench_peers[];

/* Not a peer, but the work without a pipeline: threads that take items from a common counter and do the work of
   all their stages. */
engine_run bench_run_plain_threads;

engine_run engine_run_weir; /* ../engine/engine_weir.c */

engine_run bench_run_mutex_queue;
engine_run bench_run_tbb_flow;
engine_run bench_run_tbb_pipeline;

#ifdef __cplusplus
}
#endif

#endif
