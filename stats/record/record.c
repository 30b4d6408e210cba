#include "record.h"

#include <stdlib.h>
#include <string.h>

/* Makes an entry with room for `extra_bytes` behind it, at *room. */
static weir_entry *new_entry(weir_entry_kind kind, int64_t unix_ns, size_t extra_bytes, char **room)
{
    weir_entry *entry = malloc(sizeof *entry + extra_bytes);
    if (!entry)
        return NULL;
    memset(entry, 0, sizeof *entry);
    entry->kind = kind;
    entry->unix_ns = unix_ns;
    *room = (char *)(entry + 1);
    return entry;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 1;
}

/* Copies *text to *room, and has both point to what follows. */
static void keep_text(const char **text, char **room)
{
    size_t size = text_bytes(*text);
    memcpy(*room, *text ? *text : "", size);
    *text = *room;
    *room += size;
}

/* A place without a phase is none: it says nothing of steps. */
static void keep_phase(weir_lap_place *place, char **room)
{
    if (!place->phase)
        *place = (weir_lap_place){ .last_step = -1 };
    keep_text(&place->phase, room);
}

/* An observer may be driven by others than the engine: no histogram is an empty one. */
static const weir_histogram no_times;

static size_t spread_bytes(const weir_histogram *times)
{
    return weir_histogram_encode(times ? times : &no_times, NULL, 0);
}

/* A bucket's middle may lie above the longest time in it: no percentile is above max_ns. */
static int64_t quantile_ns(const weir_histogram *times, double quantile, int64_t max_ns)
{
    int64_t time_ns = weir_histogram_quantile_ns(times, quantile);
    return time_ns < max_ns ? time_ns : max_ns;
}

static void keep_spread(weir_spread *spread, const weir_histogram *times, int64_t max_ns, char **room)
{
    times = times ? times : &no_times;
    *spread = (weir_spread){
        .p50_ns = quantile_ns(times, 0.5, max_ns),
        .p90_ns = quantile_ns(times, 0.9, max_ns),
        .p99_ns = quantile_ns(times, 0.99, max_ns),
        .encoded = *room,
        .encoded_bytes = spread_bytes(times),
    };
    *room += weir_histogram_encode(times, *room, spread->encoded_bytes);
}

static size_t stage_info_bytes(const weir_stage_info *stage)
{
    return sizeof *stage + text_bytes(stage->name) + text_bytes(stage->queue_name) + text_bytes(stage->kind) +
           text_bytes(stage->output_order);
}

weir_entry *weir_entry_of_run_start(const weir_run_info *info)
{
    size_t extra_bytes = 0;
    for (uint32_t i = 0; i < info->num_stages; i++)
        extra_bytes += stage_info_bytes(&info->stages[i]);

    char *room;
    weir_entry *entry = new_entry(WEIR_ENTRY_RUN_START, info->start_unix_ns, extra_bytes, &room);
    if (!entry)
        return NULL;
    entry->run_start = *info;
    /* The structs first: they need their alignment, which the entry's end has. */
    weir_stage_info *stages = (weir_stage_info *)(void *)room;
    room += info->num_stages * sizeof *stages;
    for (uint32_t i = 0; i < info->num_stages; i++) {
        stages[i] = info->stages[i];
        keep_text(&stages[i].name, &room);
        keep_text(&stages[i].queue_name, &room);
        keep_text(&stages[i].kind, &room);
        keep_text(&stages[i].output_order, &room);
    }
    entry->run_start.stages = stages;
    return entry;
}

weir_entry *weir_entry_of_stage_lap(const weir_stage_lap *lap)
{
    char *room;
    weir_entry *entry = new_entry(
        WEIR_ENTRY_STAGE_LAP, lap->lap->end_unix_ns,
        text_bytes(lap->name) + text_bytes(lap->lap->place.phase) + spread_bytes(lap->metrics.run_times), &room);
    if (!entry)
        return NULL;
    entry->stage.lap = *lap;
    entry->stage.time = *lap->lap;
    entry->stage.lap.lap = &entry->stage.time;
    entry->stage.lap.metrics.run_times = NULL;
    keep_text(&entry->stage.lap.name, &room);
    keep_phase(&entry->stage.time.place, &room);
    keep_spread(&entry->stage.run_times, lap->metrics.run_times, lap->metrics.max_ns, &room);
    return entry;
}

weir_entry *weir_entry_of_queue_lap(const weir_queue_lap *lap)
{
    char *room;
    weir_entry *entry = new_entry(WEIR_ENTRY_QUEUE_LAP, lap->lap->end_unix_ns,
                                  text_bytes(lap->name) + text_bytes(lap->lap->place.phase) +
                                      spread_bytes(lap->metrics.put_times) + spread_bytes(lap->metrics.get_times),
                                  &room);
    if (!entry)
        return NULL;
    entry->queue.lap = *lap;
    entry->queue.time = *lap->lap;
    entry->queue.lap.lap = &entry->queue.time;
    entry->queue.lap.metrics.put_times = entry->queue.lap.metrics.get_times = NULL;
    keep_text(&entry->queue.lap.name, &room);
    keep_phase(&entry->queue.time.place, &room);
    keep_spread(&entry->queue.put_times, lap->metrics.put_times, INT64_MAX, &room);
    keep_spread(&entry->queue.get_times, lap->metrics.get_times, INT64_MAX, &room);
    return entry;
}

weir_entry *weir_entry_of_failure(const weir_failure *failure)
{
    char *room;
    weir_entry *entry =
        new_entry(WEIR_ENTRY_FAILURE, failure->unix_ns,
                  text_bytes(failure->name) + text_bytes(failure->label) + text_bytes(failure->message), &room);
    if (!entry)
        return NULL;
    entry->failure = *failure;
    keep_text(&entry->failure.name, &room);
    keep_text(&entry->failure.label, &room);
    keep_text(&entry->failure.message, &room);
    return entry;
}

weir_entry *weir_entry_of_event(const weir_event *event)
{
    char *room;
    weir_entry *entry =
        new_entry(WEIR_ENTRY_EVENT, event->unix_ns,
                  text_bytes(event->name) + text_bytes(event->category) + text_bytes(event->detail), &room);
    if (!entry)
        return NULL;
    entry->event = *event;
    keep_text(&entry->event.name, &room);
    keep_text(&entry->event.category, &room);
    keep_text(&entry->event.detail, &room);
    return entry;
}

weir_entry *weir_entry_of_item(const weir_item_entry *item, int64_t unix_ns)
{
    char *room;
    weir_entry *entry = new_entry(WEIR_ENTRY_ITEM, unix_ns, text_bytes(item->name) + text_bytes(item->label), &room);
    if (!entry)
        return NULL;
    entry->item = *item;
    keep_text(&entry->item.name, &room);
    keep_text(&entry->item.label, &room);
    return entry;
}

weir_entry *weir_entry_of_run_end(const weir_run_end *end)
{
    char *room;
    weir_entry *entry = new_entry(WEIR_ENTRY_RUN_END, end->end_unix_ns, 0, &room);
    if (entry)
        entry->run_end = *end;
    return entry;
}

bool weir_entry_is_boundary(const weir_entry *entry)
{
    return entry->kind == WEIR_ENTRY_RUN_START || entry->kind == WEIR_ENTRY_RUN_END;
}
