/*
 * A hand-written pipeline: a bounded output queue for the source and for each stage, one thread for the source and
 * for each stage; the caller consumes. No statistics, no stop, no failures. NULL is the end of the stream.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/clock.h>

#include "bench/harness/spin.h"
#include "bench/peers/peers.h"
#include "tools/cli/memory.h"

typedef struct mutex_queue {
    /* immutable after init */
    void **items; /* ring of `capacity` */
    uint32_t capacity;

    /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t not_empty; /* depth > 0; with lock */
    pthread_cond_t not_full;  /* depth < capacity; with lock */
    uint32_t head;
    uint32_t depth;
} mutex_queue;

/* One thread: takes items from `in` (NULL: makes the items), and puts them into `out`. */
typedef struct queue_worker {
    const engine_job *job;
    engine_result *result;
    mutex_queue *in;
    mutex_queue *out;
    pthread_t thread;
} queue_worker;

static void queue_init(mutex_queue *queue, uint32_t capacity)
{
    queue->capacity = capacity;
    queue->items = memory_get(capacity, sizeof *queue->items);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->not_empty, NULL);
    pthread_cond_init(&queue->not_full, NULL);
}

static void queue_destroy(mutex_queue *queue)
{
    pthread_cond_destroy(&queue->not_full);
    pthread_cond_destroy(&queue->not_empty);
    pthread_mutex_destroy(&queue->lock);
    free(queue->items);
}

static void queue_put(mutex_queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->depth == queue->capacity)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    queue->items[(queue->head + queue->depth) % queue->capacity] = item;
    queue->depth++;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_signal(&queue->not_empty);
}

static void *queue_get(mutex_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->depth == 0)
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    void *item = queue->items[queue->head];
    queue->head = (queue->head + 1) % queue->capacity;
    queue->depth--;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_signal(&queue->not_full);
    return item;
}

static void *source_main(void *argument)
{
    queue_worker *worker = argument;
    worker->result->start_ns = weir_clock_ns();
    for (uint64_t i = 0; i < worker->job->num_items; i++)
        queue_put(worker->out, worker);
    queue_put(worker->out, NULL);
    return NULL;
}

static void *stage_main(void *argument)
{
    queue_worker *worker = argument;
    void *item;
    while ((item = queue_get(worker->in))) {
        bench_spin(worker->job->op_spins);
        queue_put(worker->out, item);
    }
    queue_put(worker->out, NULL);
    return NULL;
}

static int start(queue_worker *worker)
{
    return pthread_create(&worker->thread, NULL, worker->in ? stage_main : source_main, worker);
}

/* Starts the source last. If a thread cannot be started, its queue gets an end of stream instead, so no items flow
   and nothing hangs. */
static int run_threads(queue_worker *workers, const engine_job *job, engine_result *result)
{
    uint32_t num_workers = job->num_stages + 1;
    uint32_t first = num_workers; /* this thread and all downstream of it run */
    while (first > 0 && start(&workers[first - 1]) == 0)
        first--;
    if (first > 0)
        queue_put(workers[first - 1].out, NULL);

    uint64_t num_items = 0;
    while (queue_get(workers[num_workers - 1].out))
        num_items++;
    result->end_ns = weir_clock_ns();
    for (uint32_t i = first; i < num_workers; i++)
        pthread_join(workers[i].thread, NULL);
    if (num_items == job->num_items)
        return 0;
    fprintf(stderr, "weir-bench: mutex_queue: %" PRIu64 " of %" PRIu64 " items arrived\n", num_items, job->num_items);
    return -1;
}

int bench_run_mutex_queue(const engine_job *job, engine_result *result)
{
    uint32_t num_workers = job->num_stages + 1;
    mutex_queue *queues = memory_get(num_workers, sizeof *queues);
    queue_worker *workers = memory_get(num_workers, sizeof *workers);
    for (uint32_t i = 0; i < num_workers; i++) {
        queue_init(&queues[i], job->queue_items);
        workers[i] =
            (queue_worker){ .job = job, .result = result, .in = i ? &queues[i - 1] : NULL, .out = &queues[i] };
    }
    int rc = run_threads(workers, job, result);
    for (uint32_t i = 0; i < num_workers; i++)
        queue_destroy(&queues[i]);
    free(workers);
    free(queues);
    return rc;
}
