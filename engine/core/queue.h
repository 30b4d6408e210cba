/* A bounded ring of items that measures its own level. */
#ifndef ENGINE_CORE_QUEUE_H
#define ENGINE_CORE_QUEUE_H

#include "engine/core/core.h"

static inline void queue_record(const weir__queue *queue, weir_trace_kind kind, const weir_item *item, bool dropped)
{
    const weir__recorder *recorder = queue->producer->graph->recorder;
    if (__builtin_expect(recorder != NULL, false))
        recorder->level(queue, kind, item, dropped);
}

static inline weir_item weir__epoch_end(void)
{
    return (weir_item){ .release = weir__epoch_end_release };
}

static inline bool queue_has_room(const weir__queue *queue)
{
    return queue->depth < queue->capacity && queue->bytes < queue->capacity_bytes;
}

/* `num` puts, each of which has waited that long. */
static inline void queue_count_put(weir__queue *queue, int64_t waited_ns, uint32_t num)
{
    queue->total_put += num;
    if (!queue->producer->graph->measures)
        return;
    queue->lap.num_put += num;
    queue->lap.put_ns += num * waited_ns;
    if (waited_ns < queue->lap.min_put_ns)
        queue->lap.min_put_ns = waited_ns;
    if (waited_ns > queue->lap.max_put_ns)
        queue->lap.max_put_ns = waited_ns;
    live_histogram_record(queue->put_times, waited_ns, num);
}

/* A get that has waited that long: see queue_get(). An item that passes the queue without being in it is got, too. */
static inline void queue_count_get(weir__queue *queue, int64_t waited_ns)
{
    queue->total_got++;
    if (!queue->producer->graph->measures)
        return;
    queue->lap.num_items++;
    queue->lap.get_ns += waited_ns;
    if (waited_ns < queue->lap.min_get_ns)
        queue->lap.min_get_ns = waited_ns;
    if (waited_ns > queue->lap.max_get_ns)
        queue->lap.max_get_ns = waited_ns;
    live_histogram_record(queue->get_times, waited_ns, 1);
}

/* Source to sink. */
static inline void queue_count_latency(weir__queue *queue, int64_t latency_ns)
{
    if (!queue->latencies)
        return;
    if (latency_ns < 0)
        latency_ns = 0; /* the CPUs' clocks differ */
    queue->lap.latency_ns += latency_ns;
    if (latency_ns < queue->lap.min_latency_ns)
        queue->lap.min_latency_ns = latency_ns;
    if (latency_ns > queue->lap.max_latency_ns)
        queue->lap.max_latency_ns = latency_ns;
    live_histogram_record(queue->latencies, latency_ns, 1);
}

/* What an item counts in the queue: no sum of a full queue is above INT64_MAX. */
static inline uint64_t queue_bytes_of(const weir_item *item)
{
    const uint64_t most_bytes = INT64_MAX / WEIR_MAX_QUEUE_ITEMS;
    return item->size_bytes < most_bytes ? item->size_bytes : most_bytes;
}

static inline uint32_t queue_after(const weir__queue *queue, uint32_t at)
{
    return at + 1 < queue->num_entries ? at + 1 : 0;
}

/* at: from the head's place on. */
static inline weir__queued_item *queue_entry_at(const weir__queue *queue, uint32_t at)
{
    return &queue->entries[at < queue->num_entries ? at : at - queue->num_entries];
}

/* The item may be in its entry already. */
static inline void queue_push(weir__queue *queue, const weir_item *item, uint64_t arrival, int64_t now_ns)
{
    weir__queue_settle(queue, now_ns);
    weir__queued_item *entry = queue_entry_at(queue, queue->head + queue->depth);
    if (item != &entry->item)
        entry->item = *item;
    entry->arrival = arrival;
    queue->depth++;
    queue->num_epoch_ends += weir__is_epoch_end(item);
    queue->bytes += queue_bytes_of(item);
    if (weir__queue_num_items(queue) > queue->lap.max_depth)
        queue->lap.max_depth = weir__queue_num_items(queue);
    if ((int64_t)queue->bytes > queue->lap.max_bytes)
        queue->lap.max_bytes = (int64_t)queue->bytes;
    queue_record(queue, weir__is_epoch_end(item) ? WEIR_TRACE_EPOCH : WEIR_TRACE_PUT, item, false);
}

/* Removes the head of the queue, which was copied before. */
static inline void queue_skip(weir__queue *queue, int64_t now_ns)
{
    const weir_item *item = &queue->entries[queue->head].item;
    weir__queue_settle(queue, now_ns);
    queue->head = queue_after(queue, queue->head);
    queue->depth--;
    queue->num_epoch_ends -= weir__is_epoch_end(item);
    queue->bytes -= queue_bytes_of(item);
}

/* dropped: nobody takes the item. */
static inline void queue_pop(weir__queue *queue, weir_item *item, int64_t now_ns, bool dropped)
{
    *item = queue->entries[queue->head].item;
    queue_skip(queue, now_ns);
    queue_record(queue, weir__is_epoch_end(item) ? WEIR_TRACE_LEVEL : WEIR_TRACE_GET, item, dropped);
}

/* A consumer that has waited that long gets the item, or the end of an epoch, which is not counted. item: NULL = the head is an
   item that was copied before, and nobody records. */
static inline void queue_get(weir__queue *queue, weir_item *item, int64_t waited_ns, int64_t now_ns)
{
    if (item)
        queue_pop(queue, item, now_ns, false);
    else
        queue_skip(queue, now_ns);
    if (!item || !weir__is_epoch_end(item))
        queue_count_get(queue, waited_ns);
}

#endif
