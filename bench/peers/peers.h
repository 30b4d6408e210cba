/*
 * What the engine bench compares weir with. Each does the same job: a source, stages that hand on what they get, a
 * consumer; items are pointers or numbers. To add one: its file here, its line in peers.c's table.
 */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include "engine_job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_peer {
    const char *name;
    const char *what;    /* for the reader of the table */
    const char *library; /* that it needs, and Debian's packages with it; NULL = none */
    const char *version; /* of the library as built with, NULL = none */
    engine_run *run;     /* NULL = not built: the library was not there */
    bool own_threads;    /* one for the source and one for each stage, whatever the job says */
} bench_peer;

/* Ends with a NULL name. */
extern const bench_peer bench_peers[];

/* No peer, but what is left when the pipeline is taken away: threads that take items from a common counter and do the
   work of all their stages. */
engine_run bench_run_plain_threads;

engine_run bench_run_mutex_queue;
engine_run bench_run_tbb_flow_limiter;
engine_run bench_run_tbb_flow;
engine_run bench_run_tbb_pipeline;

#ifdef __cplusplus
}
#endif

#endif
