#include "taken_lap.h"

#include <stdlib.h>

weir_taken_lap *weir_taken_lap_new(const weir_pipeline *pipeline)
{
    weir_taken_lap *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    record->pipeline = pipeline;
    record->nodes = calloc(pipeline->num_nodes, sizeof *record->nodes);
    record->queues = calloc(pipeline->num_queues, sizeof *record->queues);
    record->pools = calloc(pipeline->num_pools, sizeof *record->pools);
    record->stored = calloc(taken_lap_num_stored(pipeline), sizeof *record->stored);
    if (record->nodes && record->queues && record->pools && record->stored)
        return record;
    weir_taken_lap_free(record);
    return NULL;
}

void weir_taken_lap_free(weir_taken_lap *record)
{
    if (!record)
        return;
    for (size_t i = 0; record->stored && i < taken_lap_num_stored(record->pipeline); i++)
        free(record->stored[i].bytes);
    free(record->stored);
    free(record->pools);
    free(record->queues);
    free(record->nodes);
    free(record);
}

static bool store(weir_stored_histogram *stored, const weir_histogram *histogram)
{
    size_t size_bytes = weir_histogram_encode(histogram, NULL, 0);
    uint8_t *bytes = malloc(size_bytes);
    if (!bytes)
        return false;
    weir_histogram_encode(histogram, bytes, size_bytes);
    free(stored->bytes);
    *stored = (weir_stored_histogram){ bytes, size_bytes };
    return true;
}

bool weir_taken_lap_store(weir_taken_lap *record, size_t index, const weir_live_histogram *recorded)
{
    weir_histogram *histogram = calloc(1, sizeof *histogram);
    if (!histogram)
        return false;
    weir_live_histogram_add_to(histogram, recorded);
    bool stored = histogram->count == 0 || store(&record->stored[index], histogram);
    free(histogram);
    return stored;
}

void weir_taken_lap_load(const weir_taken_lap *record, size_t index, weir_histogram *to)
{
    const weir_stored_histogram *stored = &record->stored[index];
    if (stored->bytes)
        weir_histogram_add_encoded(to, stored->bytes, stored->size_bytes);
}

static void join_histograms(weir_taken_lap *first, const weir_taken_lap *second)
{
    weir_histogram *joined = calloc(1, sizeof *joined);
    for (size_t i = 0; joined && i < taken_lap_num_stored(first->pipeline); i++) {
        if (!second->stored[i].bytes)
            continue;
        weir_taken_lap_load(first, i, joined);
        weir_taken_lap_load(second, i, joined);
        store(&first->stored[i], joined);
        weir_histogram_clear(joined);
    }
    free(joined);
}

static void join_steps(weir_lap_position *position, const weir_lap_position *next)
{
    if (next->last_step < next->first_step)
        return;
    if (position->last_step < position->first_step)
        position->first_step = next->first_step;
    position->last_step = next->last_step;
}

void weir_taken_lap_join(weir_taken_lap *first, weir_taken_lap *second)
{
    const weir_pipeline *pipeline = first->pipeline;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        weir_metrics_add(weir_task_metric_table(), &first->nodes[i], &second->nodes[i]);
    for (uint32_t i = 0; i < pipeline->num_queues; i++)
        weir_metrics_add(weir_queue_metric_table(), &first->queues[i], &second->queues[i]);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        weir_metrics_add(weir_pool_metric_table(), &first->pools[i], &second->pools[i]);
    weir_metrics_add(weir_process_metric_table(), &first->process, &second->process);
    weir_metrics_add(weir_machine_metric_table(), &first->machine, &second->machine);
    join_histograms(first, second);
    first->lap.end_unix_ns = second->lap.end_unix_ns;
    first->lap.elapsed_ns += second->lap.elapsed_ns;
    first->lap.suspended_ns += second->lap.suspended_ns;
    first->lap.num_joined += second->lap.num_joined;
    join_steps(&first->lap.position, &second->lap.position);
    weir_taken_lap_free(second);
}
