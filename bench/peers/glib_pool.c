/*
 * GLib's GThreadPool: one pool of the job's threads, a task in it is one stage of one item, and makes the next one. The
 * pool's queue has no limit, so the items are limited as a whole, to as many as weir's queues together hold: the source, a
 * thread of its own, takes each from a GAsyncQueue of free ones, and the consumer gives it back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <glib.h>

#include <weir/clock.h>

#include "peers.h"
#include "spin.h"

typedef struct glib_item {
    uint32_t stage; /* the next one; only who has the item */
} glib_item;

typedef struct glib_run {
    const engine_job *job;
    engine_result *result;
    GThreadPool *pool;
    GAsyncQueue *free_items;
    GAsyncQueue *results;
} glib_run;

/* To the next stage, or to the consumer. */
static void hand_on(glib_run *run, glib_item *item)
{
    if (item->stage < run->job->num_stages)
        g_thread_pool_push(run->pool, item, NULL);
    else
        g_async_queue_push(run->results, item);
}

static void run_stage(gpointer data, gpointer user_data)
{
    glib_run *run = user_data;
    glib_item *item = data;
    bench_spin(run->job->op_spins);
    item->stage++;
    hand_on(run, item);
}

static gpointer source_main(gpointer argument)
{
    glib_run *run = argument;
    run->result->start_ns = weir_clock_ns();
    for (uint64_t i = 0; i < run->job->num_items; i++) {
        glib_item *item = g_async_queue_pop(run->free_items);
        item->stage = 0;
        hand_on(run, item);
    }
    return NULL;
}

static int flow(glib_run *run)
{
    GThread *source = g_thread_try_new("source", source_main, run, NULL);
    if (!source) {
        fprintf(stderr, "weir-bench: glib_pool: no thread for the source\n");
        return -1;
    }
    for (uint64_t i = 0; i < run->job->num_items; i++)
        g_async_queue_push(run->free_items, g_async_queue_pop(run->results));
    run->result->end_ns = weir_clock_ns();
    g_thread_join(source);
    return 0;
}

int bench_run_glib_pool(const engine_job *job, engine_result *result)
{
    uint32_t num_items = job->queue_items * (job->num_stages + 1);
    glib_item *items = calloc(num_items, sizeof *items);
    GError *error = NULL;
    glib_run run = { .job = job, .result = result };
    run.pool = g_thread_pool_new(run_stage, &run, (gint)job->threads, TRUE, &error);
    if (!items || error) {
        fprintf(stderr, "weir-bench: glib_pool: %s\n", error ? error->message : "out of memory");
        free(items);
        g_clear_error(&error);
        return -1;
    }
    run.free_items = g_async_queue_new();
    run.results = g_async_queue_new();
    for (uint32_t i = 0; i < num_items; i++)
        g_async_queue_push(run.free_items, &items[i]);

    int rc = flow(&run);
    g_thread_pool_free(run.pool, FALSE, TRUE);
    g_async_queue_unref(run.results);
    g_async_queue_unref(run.free_items);
    free(items);
    return rc;
}
