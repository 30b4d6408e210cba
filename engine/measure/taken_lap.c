#include "taken_lap.h"

#include <stdlib.h>

weir_taken_lap *weir__taken_lap_new(const weir_pipeline *pipeline)
{
    weir_taken_lap *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    record->pipeline = pipeline;
    record->nodes = calloc(pipeline->core.num_nodes, sizeof *record->nodes);
    record->queues = calloc(pipeline->num_queues, sizeof *record->queues);
    record->pools = calloc(pipeline->num_pools, sizeof *record->pools);
    record->stored = calloc(taken_lap_num_stored(pipeline), sizeof *record->stored);
    if (record->nodes && record->queues && record->pools && record->stored)
        return record;
    weir__taken_lap_free(record);
    return NULL;
}

void weir__taken_lap_free(weir_taken_lap *record)
{
    if (!record)
        return;
    for (size_t i = 0; record->stored && i < taken_lap_num_stored(record->pipeline); i++)
        free(record->stored[i].bytes);
    for (size_t i = 0; i < record->num_marks; i++)
        free(record->marks[i].times.bytes);
    free(record->marks);
    free(record->stored);
    free(record->pools);
    free(record->queues);
    free(record->nodes);
    free(record);
}

bool weir__stored_histogram_set(weir_stored_histogram *stored, const weir_histogram *histogram)
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

bool weir__taken_lap_store(weir_taken_lap *record, size_t index, const weir_live_histogram *recorded)
{
    weir_histogram *histogram = calloc(1, sizeof *histogram);
    if (!histogram)
        return false;
    weir__live_histogram_add_to(histogram, recorded);
    bool stored = histogram->count == 0 || weir__stored_histogram_set(&record->stored[index], histogram);
    free(histogram);
    return stored;
}

void weir__taken_lap_load(const weir_taken_lap *record, size_t index, weir_histogram *to)
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
        weir__taken_lap_load(first, i, joined);
        weir__taken_lap_load(second, i, joined);
        weir__stored_histogram_set(&first->stored[i], joined);
        weir_histogram_clear(joined);
    }
    free(joined);
}

weir_taken_mark *weir__taken_lap_add_mark(weir_taken_lap *record, const weir_span_name *name)
{
    size_t count = record->num_marks;
    if ((count & (count - 1)) == 0) { /* a power of two is full */
        weir_taken_mark *grown = realloc(record->marks, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown)
            return NULL;
        record->marks = grown;
    }
    record->marks[count] = (weir_taken_mark){ .name = name };
    return &record->marks[record->num_marks++];
}

/* Adds to the mark of that name, or moves the mark. */
static void join_mark(weir_taken_lap *first, weir_taken_mark *mark, weir_histogram *joined)
{
    weir_taken_mark *to = first->marks, *end = first->marks + first->num_marks;
    while (to < end && to->name != mark->name)
        to++;
    if (to == end) {
        to = weir__taken_lap_add_mark(first, mark->name);
        if (to)
            *to = *mark;
        mark->times.bytes = to ? NULL : mark->times.bytes;
        return;
    }
    weir_metrics_add(weir_subject_metrics(mark->name->counter ? WEIR_SUBJECT_COUNTER : WEIR_SUBJECT_SPAN), &to->span,
                     &mark->span);
    if (!joined || !mark->times.bytes)
        return;
    weir_histogram_clear(joined);
    weir_histogram_add_encoded(joined, to->times.bytes, to->times.size_bytes);
    weir_histogram_add_encoded(joined, mark->times.bytes, mark->times.size_bytes);
    weir__stored_histogram_set(&to->times, joined);
}

static void join_marks(weir_taken_lap *first, weir_taken_lap *second)
{
    weir_histogram *joined = second->num_marks ? calloc(1, sizeof *joined) : NULL;
    for (size_t i = 0; i < second->num_marks; i++)
        join_mark(first, &second->marks[i], joined);
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

void weir__taken_lap_join(weir_taken_lap *first, weir_taken_lap *second)
{
    const weir_pipeline *pipeline = first->pipeline;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_STAGE), &first->nodes[i], &second->nodes[i]);
    for (uint32_t i = 0; i < pipeline->num_queues; i++)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &first->queues[i], &second->queues[i]);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_POOL), &first->pools[i], &second->pools[i]);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &first->process, &second->process);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &first->machine, &second->machine);
    join_histograms(first, second);
    join_marks(first, second);
    first->lap.end_unix_ns = second->lap.end_unix_ns;
    first->lap.elapsed_ns += second->lap.elapsed_ns;
    first->lap.suspended_ns += second->lap.suspended_ns;
    first->lap.num_joined += second->lap.num_joined;
    join_steps(&first->lap.position, &second->lap.position);
    weir__taken_lap_free(second);
}
