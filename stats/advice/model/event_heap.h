/* A heap of slots, ordered by time, then by arrival, so that a simulation is the same on every machine. */
#ifndef STATS_ADVICE_MODEL_EVENT_HEAP_H
#define STATS_ADVICE_MODEL_EVENT_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct event_entry {
    double at;
    uint64_t number;
    void *who;
} event_entry;

typedef struct event_heap {
    event_entry *entries; /* owned by the caller; room for all slots of the simulation */
    size_t count;
    uint64_t next_number;
} event_heap;

static inline bool event_is_before(const event_entry *one, const event_entry *other)
{
    return one->at < other->at || (one->at == other->at && one->number < other->number);
}

static inline void event_push(event_heap *heap, double at, void *who)
{
    event_entry entry = { at, heap->next_number++, who };
    size_t i = heap->count++;
    for (; i > 0 && event_is_before(&entry, &heap->entries[(i - 1) / 2]); i = (i - 1) / 2)
        heap->entries[i] = heap->entries[(i - 1) / 2];
    heap->entries[i] = entry;
}

static inline void *event_pop(event_heap *heap)
{
    void *who = heap->entries[0].who;
    event_entry last = heap->entries[--heap->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count && event_is_before(&heap->entries[child + 1], &heap->entries[child]))
            child++;
        if (!event_is_before(&heap->entries[child], &last))
            break;
        heap->entries[i] = heap->entries[child];
    }
    heap->entries[i] = last;
    return who;
}

#endif
