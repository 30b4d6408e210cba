/* A lap of all nodes, queues and pools, taken and waiting to be told. No locks: one thread at a time. */
#ifndef WEIR_LAP_RECORD_H
#define WEIR_LAP_RECORD_H

#include "state.h"

/* A histogram in its stored form; NULL = empty. */
typedef struct weir_stored_histogram {
    uint8_t *bytes;
    size_t size_bytes;
} weir_stored_histogram;

typedef struct weir_lap_record {
    weir_lap lap; /* place.phase points to: */
    weir_consumer_phase phase;
    const weir_pipeline *pipeline;
    weir_task_metrics *nodes;      /* one for each node */
    weir_queue_metrics *queues;    /* one for each queue, in the order of nodes */
    weir_pool_metrics *pools;      /* one for each pool */
    weir_stored_histogram *stored; /* run times of each node, then put and get times of each queue */
} weir_lap_record;

static inline size_t lap_record_num_stored(const weir_pipeline *pipeline)
{
    return pipeline->num_nodes + 2 * (size_t)pipeline->num_queues;
}

/* All-zero metrics. NULL = out of memory. */
weir_lap_record *weir_lap_record_new(const weir_pipeline *pipeline);
void weir_lap_record_free(weir_lap_record *record);

/* Makes `first` a lap that reaches to the end of `second`, which is freed. Without memory the percentiles are those of
   `first` alone; all sums are exact. */
void weir_lap_record_join(weir_lap_record *first, weir_lap_record *second);

/* Stores what was recorded. False = out of memory. */
bool weir_lap_record_store(weir_lap_record *record, size_t index, const weir_live_histogram *recorded);

/* Adds a stored histogram to `to`. */
void weir_lap_record_load(const weir_lap_record *record, size_t index, weir_histogram *to);

#endif
