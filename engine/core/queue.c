#include "queue.h"

#include <stdlib.h>

int weir_queue_init(weir_queue *queue, uint32_t capacity, uint64_t capacity_bytes)
{
    queue->capacity = capacity;
    queue->capacity_bytes = capacity_bytes ? capacity_bytes : UINT64_MAX;
    weir_metrics_clear(weir_queue_metric_table(), &queue->lap);
    queue->entries = calloc(capacity, sizeof *queue->entries);
    queue->put_times = calloc(1, sizeof *queue->put_times);
    queue->get_times = calloc(1, sizeof *queue->get_times);
    return queue->entries && queue->put_times && queue->get_times ? WEIR_OK : WEIR_ENOMEM;
}

void weir_queue_destroy(weir_queue *queue)
{
    free(queue->get_times);
    free(queue->put_times);
    free(queue->entries);
    free(queue->name);
}
