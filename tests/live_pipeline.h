/*
 * A pipeline that runs until it is stopped, with its consumer on a thread of its own: src, read (or read, parse, scale), sink.
 * For what changes settings while items flow.
 */
#ifndef WEIR_TESTS_LIVE_PIPELINE_H
#define WEIR_TESTS_LIVE_PIPELINE_H

#include "tests/support.h"

typedef int (*live_work)(void *worker, weir_item *in, weir_item *out, weir_task *task);

/* Tasks of 3 ms that wait: each by itself; one after the other. */
int wait_alone(void *worker, weir_item *in, weir_item *out, weir_task *task);
int wait_in_turn(void *worker, weir_item *in, weir_item *out, weir_task *task);

typedef struct live_pipeline {
    weir_pipeline *pipeline;
    pthread_t consumer;
    int64_t step_ns; /* the consumer marks steps that take this long (0 = it only takes items) */
    int64_t num_steps;
    bool has_own_threads; /* the last stage: as many as slots */
    uint32_t num_stages;  /* that do the same work (0 = 1, at most 3) */
    live_work make;       /* what the source does (NULL = it always has an item) */
    uint32_t queue_items; /* of the source, which fills them at once (0 = the default) */
} live_pipeline;

/* Starts it, with step_ns as it is. */
void live_pipeline_start(live_pipeline *own, live_work work, uint32_t slots, uint32_t threads);
void live_pipeline_stop(live_pipeline *own);

#endif
