/* A bounded ring of items that measures its own level. All functions need the lock of the pipeline. */
#ifndef WEIR_QUEUE_H
#define WEIR_QUEUE_H

#include "state.h"
#include "trace_ring.h"

/* Adds the time since the last change to the metrics. */
static inline void queue_settle_locked(weir_queue *queue, int64_t now_ns)
{
    uint32_t num_items = queue->depth - queue->num_epoch_ends;
    if (num_items) {
        int64_t span_ns = now_ns - queue->level_since_ns;
        queue->lap.occupied_ns += span_ns;
        queue->lap.depth_ns += (double)span_ns * num_items;
        if (queue->bytes)
            queue->lap.bytes_ns += (double)span_ns * (double)queue->bytes;
    }
    queue->level_since_ns = now_ns;
}

static inline bool queue_has_room_locked(const weir_queue *queue)
{
    return queue->depth < queue->capacity && queue->bytes < queue->capacity_bytes;
}

static inline void queue_count_put_locked(weir_queue *queue, int64_t waited_ns)
{
    queue->lap.num_put++;
    queue->total_put++;
    queue->lap.put_ns += waited_ns;
    if (waited_ns < queue->lap.min_put_ns)
        queue->lap.min_put_ns = waited_ns;
    if (waited_ns > queue->lap.max_put_ns)
        queue->lap.max_put_ns = waited_ns;
    if (queue->producer->pipeline->measures)
        live_histogram_record(queue->put_times, waited_ns);
}

static inline void queue_count_get_locked(weir_queue *queue, int64_t waited_ns)
{
    queue->lap.num_items++;
    queue->total_got++;
    queue->lap.get_ns += waited_ns;
    if (waited_ns < queue->lap.min_get_ns)
        queue->lap.min_get_ns = waited_ns;
    if (waited_ns > queue->lap.max_get_ns)
        queue->lap.max_get_ns = waited_ns;
    if (queue->producer->pipeline->measures)
        live_histogram_record(queue->get_times, waited_ns);
}

static inline void queue_push_locked(weir_queue *queue, const weir_item *item, uint64_t arrival, int64_t now_ns)
{
    queue_settle_locked(queue, now_ns);
    uint32_t tail = queue->head + queue->depth;
    weir_queued_item *entry = &queue->entries[tail < queue->capacity ? tail : tail - queue->capacity];
    entry->item = *item;
    entry->arrival = arrival;
    queue->depth++;
    queue->num_epoch_ends += is_epoch_end(item);
    queue->bytes += item->size_bytes;
    if (queue->depth - queue->num_epoch_ends > queue->lap.max_depth)
        queue->lap.max_depth = queue->depth - queue->num_epoch_ends;
    if ((int64_t)queue->bytes > queue->lap.max_bytes)
        queue->lap.max_bytes = (int64_t)queue->bytes;
    trace_queue_locked(queue, is_epoch_end(item) ? WEIR_TRACE_EPOCH : WEIR_TRACE_PUT, item, 0);
}

/* dropped: nobody takes the item. */
static inline void queue_pop_locked(weir_queue *queue, weir_item *item, int64_t now_ns, bool dropped)
{
    queue_settle_locked(queue, now_ns);
    *item = queue->entries[queue->head].item;
    queue->head = queue->head + 1 < queue->capacity ? queue->head + 1 : 0;
    queue->depth--;
    queue->num_epoch_ends -= is_epoch_end(item);
    queue->bytes -= item->size_bytes;
    trace_queue_locked(queue, is_epoch_end(item) ? WEIR_TRACE_LEVEL : WEIR_TRACE_GET, item, dropped);
}

/* Allocates the ring; the caller sets the name and the neighbours. WEIR_OK or WEIR_ENOMEM. */
int weir_queue_init(weir_queue *queue, uint32_t capacity, uint64_t capacity_bytes);

/* Frees a queue, also after weir_queue_init() failed. The queue must be empty. */
void weir_queue_destroy(weir_queue *queue);

#endif
