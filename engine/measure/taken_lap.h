/* A finished lap of all nodes, queues and pools, waiting to be delivered. No locks: one thread at a time. */
#ifndef ENGINE_MEASURE_TAKEN_LAP_H
#define ENGINE_MEASURE_TAKEN_LAP_H

#include "spans.h"

/* An encoded histogram; NULL = empty. */
typedef struct weir_stored_histogram {
    uint8_t *bytes;
    size_t size_bytes;
} weir_stored_histogram;

/* A span or counter of user code. */
typedef struct weir_taken_mark {
    const weir_span_name *name;
    union {
        weir_span_metrics span;
        weir_counter_metrics counter; /* name->counter is not NULL */
    };
    weir_stored_histogram times; /* of a span */
} weir_taken_mark;

typedef struct weir_taken_lap {
    weir_lap lap; /* place.phase points to phase below: */
    weir_consumer_phase phase;
    const weir_pipeline *pipeline;
    weir_task_metrics *nodes;   /* one for each node */
    weir_queue_metrics *queues; /* one for each queue, in the order of nodes */
    weir_pool_metrics *pools;   /* one for each pool */
    weir_process_metrics process;
    weir_machine_metrics machine;
    weir_stored_histogram *stored; /* run times of each node, put and get times of each queue, latencies */
    weir_taken_mark *marks;
    size_t num_marks;
} weir_taken_lap;

static inline size_t taken_lap_num_stored(const weir_pipeline *pipeline)
{
    return pipeline->core.num_nodes + 2 * (size_t)pipeline->num_queues + 1;
}

static inline size_t taken_lap_latencies(const weir_pipeline *pipeline)
{
    return taken_lap_num_stored(pipeline) - 1;
}

/* All-zero metrics. NULL = out of memory. */
weir_taken_lap *weir__taken_lap_new(const weir_pipeline *pipeline);
void weir__taken_lap_free(weir_taken_lap *record);

/* Extends `first` to the end of `second`, and frees `second`. If out of memory, the percentiles are those of
   `first` alone; all sums are exact. */
void weir__taken_lap_join(weir_taken_lap *first, weir_taken_lap *second);

/* Encodes the recorded histogram. False = out of memory. */
bool weir__taken_lap_store(weir_taken_lap *record, size_t index, const weir_live_histogram *recorded);

/* Encodes the histogram, and frees what was stored before. False = out of memory: it is unchanged. */
bool weir__stored_histogram_set(weir_stored_histogram *stored, const weir_histogram *histogram);

/* Adds an all-zero mark. NULL = out of memory. Valid until the next call. */
weir_taken_mark *weir__taken_lap_add_mark(weir_taken_lap *record, const weir_span_name *name);

/* Adds an encoded histogram to `to`. */
void weir__taken_lap_load(const weir_taken_lap *record, size_t index, weir_histogram *to);

#endif
