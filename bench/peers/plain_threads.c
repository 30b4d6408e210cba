/* The work without a pipeline, on the same number of threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/clock.h>

#include "bench/harness/spin.h"
#include "bench/peers/peers.h"
#include "tools/cli/memory.h"

typedef struct plain_run {
    const engine_job *job;
    atomic_uint_fast64_t num_taken;
} plain_run;

static void *work(void *argument)
{
    plain_run *run = argument;
    while (atomic_fetch_add_explicit(&run->num_taken, 1, memory_order_relaxed) < run->job->num_items) {
        for (uint32_t i = 0; i < run->job->num_stages; i++)
            bench_spin(run->job->op_spins);
    }
    return NULL;
}

int bench_run_plain_threads(const engine_job *job, engine_result *result)
{
    plain_run run = { .job = job };
    atomic_init(&run.num_taken, 0);
    pthread_t *threads = memory_get(job->threads, sizeof *threads);
    uint32_t num_threads = 0;
    result->start_ns = weir_clock_ns();
    while (num_threads < job->threads && pthread_create(&threads[num_threads], NULL, work, &run) == 0)
        num_threads++;
    for (uint32_t i = 0; i < num_threads; i++)
        pthread_join(threads[i], NULL);
    result->end_ns = weir_clock_ns();
    free(threads);
    if (num_threads == job->threads)
        return 0;
    fprintf(stderr, "weir-bench: only %u of %u plain threads could be started\n", num_threads, job->threads);
    return -1;
}
