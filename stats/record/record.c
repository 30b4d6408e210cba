#include "record.h"

#include <stdlib.h>
#include <string.h>

/* Creates an entry with room for `extra_bytes` after it, at *room. */
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

/* Copies *text to *room, sets *text to the copy and advances *room. */
static void keep_text(const char **text, char **room)
{
    size_t size = text_bytes(*text);
    memcpy(*room, *text ? *text : "", size);
    *text = *room;
    *room += size;
}

/* -- laps */

static weir_lap_record record_of(weir_subject subject, const weir_lap *lap, const char *name, const char *kind)
{
    bool has_place = lap->place.phase; /* without a phase there are no steps */
    return (weir_lap_record){
        .subject = subject,
        .end_unix_ns = lap->end_unix_ns,
        .elapsed_ns = lap->elapsed_ns,
        .suspended_ns = lap->suspended_ns,
        .num_joined = lap->num_joined,
        .name = name,
        .kind = kind,
        .place = { .phase = has_place ? lap->place.phase : "",
                   .first_step = has_place ? lap->place.first_step : 0,
                   .last_step = has_place ? lap->place.last_step : -1 },
    };
}

weir_lap_record weir_record_of_stage_lap(const weir_stage_lap *lap)
{
    bool is_stage = !lap->kind || strcmp(lap->kind, "stage") == 0;
    weir_lap_record record = record_of(is_stage ? WEIR_SUBJECT_STAGE : WEIR_SUBJECT_FLOW, lap->lap, lap->name,
                                       is_stage ? "stage" : lap->kind);
    record.metrics.task = lap->metrics;
    return record;
}

weir_lap_record weir_record_of_queue_lap(const weir_queue_lap *lap)
{
    weir_lap_record record = record_of(WEIR_SUBJECT_QUEUE, lap->lap, lap->name, "queue");
    record.capacity = lap->capacity;
    record.metrics.queue = lap->metrics;
    return record;
}

weir_lap_record weir_record_of_pool_lap(const weir_pool_lap *lap)
{
    weir_lap_record record = record_of(WEIR_SUBJECT_POOL, lap->lap, lap->name, "pool");
    record.capacity = lap->num_threads;
    record.metrics.pool = lap->metrics;
    return record;
}

weir_lap_record weir_record_of_process_lap(const weir_process_lap *lap)
{
    weir_lap_record record = record_of(WEIR_SUBJECT_PROCESS, lap->lap, lap->name, "process");
    record.capacity = lap->num_cpus;
    record.metrics.process = lap->metrics;
    return record;
}

weir_lap_record weir_record_of_machine_lap(const weir_machine_lap *lap)
{
    weir_lap_record record = record_of(WEIR_SUBJECT_MACHINE, lap->lap, lap->name, "machine");
    record.metrics.machine = lap->metrics;
    return record;
}

weir_lap_record weir_record_of_span_lap(const weir_span_lap *lap)
{
    weir_lap_record record = record_of(WEIR_SUBJECT_SPAN, lap->lap, lap->name, lap->kind);
    record.metrics.span = lap->metrics;
    return record;
}

weir_lap_record weir_record_of_counter_lap(const weir_counter_lap *lap)
{
    weir_lap_record record = record_of(WEIR_SUBJECT_COUNTER, lap->lap, lap->name, "counter");
    record.metrics.counter = lap->metrics;
    return record;
}

/* Not only the engine may call observers: NULL counts as an empty histogram. */
static const weir_histogram *times_of(const weir_metric_histogram *histogram, const weir_lap_record *lap)
{
    static const weir_histogram no_times;
    weir_metrics metrics = lap->metrics;
    const weir_histogram *times = *weir_metric_histogram_at(histogram->metric, &metrics);
    return times ? times : &no_times;
}

weir_entry *weir_entry_of_lap(const weir_lap_record *lap)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir_subject_histograms(lap->subject, histograms);
    size_t extra_bytes = text_bytes(lap->name) + text_bytes(lap->kind) + text_bytes(lap->place.phase);
    for (size_t i = 0; i < count; i++)
        extra_bytes += weir_histogram_encode(times_of(&histograms[i], lap), NULL, 0);

    char *room;
    weir_entry *entry = new_entry(WEIR_ENTRY_LAP, lap->end_unix_ns, extra_bytes, &room);
    if (!entry)
        return NULL;
    const char *end = room + extra_bytes;
    entry->lap.record = *lap;
    keep_text(&entry->lap.record.name, &room);
    keep_text(&entry->lap.record.kind, &room);
    keep_text(&entry->lap.record.place.phase, &room);
    for (size_t i = 0; i < count; i++) {
        weir_stored_histogram *stored = &entry->lap.histograms[i];
        stored->bytes = room;
        stored->size_bytes = weir_histogram_encode(times_of(&histograms[i], lap), room, (size_t)(end - room));
        room += stored->size_bytes;
        *weir_metric_histogram_at(histograms[i].metric, &entry->lap.record.metrics) = NULL;
    }
    return entry;
}

/* -- the others */

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
    /* The structs come first: the end of the entry is aligned for them. */
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
