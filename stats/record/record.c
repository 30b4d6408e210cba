#include "record.h"

#include <stdlib.h>
#include <string.h>

/* Creates an entry with room for `extra_bytes` after it, at *room. */
static weir_record_entry *new_entry(weir_record_entry_kind kind, int64_t unix_ns, size_t extra_bytes, char **room)
{
    weir_record_entry *entry = malloc(sizeof *entry + extra_bytes);
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
    bool has_phase = lap->position.phase; /* without a phase there are no steps */
    return (weir_lap_record){
        .subject = subject,
        .end_unix_ns = lap->end_unix_ns,
        .elapsed_ns = lap->elapsed_ns,
        .suspended_ns = lap->suspended_ns,
        .num_joined = lap->num_joined,
        .name = name,
        .kind = kind,
        .position = { .phase = has_phase ? lap->position.phase : "",
                      .first_step = has_phase ? lap->position.first_step : 0,
                      .last_step = has_phase ? lap->position.last_step : -1 },
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

/* Not only the engine may call observers: NULL counts as an empty histogram. */
static const weir_histogram *times_of(const weir_metric_histogram *histogram, const weir_lap_record *lap)
{
    static const weir_histogram no_times;
    weir_metrics metrics = lap->metrics;
    const weir_histogram *times = *weir_metric_histogram_at(histogram->metric, &metrics);
    return times ? times : &no_times;
}

weir_record_entry *weir_record_entry_of_lap(const weir_lap_record *lap)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir_subject_histograms(lap->subject, histograms);
    size_t extra_bytes = text_bytes(lap->name) + text_bytes(lap->kind) + text_bytes(lap->position.phase);
    for (size_t i = 0; i < count; i++)
        extra_bytes += weir_histogram_encode(times_of(&histograms[i], lap), NULL, 0);

    char *room;
    weir_record_entry *entry = new_entry(WEIR_ENTRY_LAP, lap->end_unix_ns, extra_bytes, &room);
    if (!entry)
        return NULL;
    const char *end = room + extra_bytes;
    entry->lap.record = *lap;
    keep_text(&entry->lap.record.name, &room);
    keep_text(&entry->lap.record.kind, &room);
    keep_text(&entry->lap.record.position.phase, &room);
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
           text_bytes(stage->output_order) + text_bytes(stage->inputs) + text_bytes(stage->merge_order);
}

weir_record_entry *weir_record_entry_of_run_start(const weir_run_info *info)
{
    size_t extra_bytes = 0;
    for (uint32_t i = 0; i < info->num_stages; i++)
        extra_bytes += stage_info_bytes(&info->stages[i]);

    char *room;
    weir_record_entry *entry = new_entry(WEIR_ENTRY_RUN_START, info->start_unix_ns, extra_bytes, &room);
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
        keep_text(&stages[i].inputs, &room);
        keep_text(&stages[i].merge_order, &room);
    }
    entry->run_start.stages = stages;
    return entry;
}

/* Where an entry has a text. */
#define TEXT(field) offsetof(weir_record_entry, field)

static const char **text_at(const weir_record_entry *entry, size_t offset)
{
    return (const char **)((uintptr_t)entry + offset);
}

/* Copies an entry with the texts at these offsets. */
static weir_record_entry *copy_entry(const weir_record_entry *from, const size_t *texts, size_t num_texts)
{
    size_t extra_bytes = 0;
    char *room;
    for (size_t i = 0; i < num_texts; i++)
        extra_bytes += text_bytes(*text_at(from, texts[i]));
    weir_record_entry *entry = new_entry(from->kind, from->unix_ns, extra_bytes, &room);
    if (!entry)
        return NULL;
    *entry = *from;
    for (size_t i = 0; i < num_texts; i++)
        keep_text(text_at(entry, texts[i]), &room);
    return entry;
}

weir_record_entry *weir_record_entry_of_failure(const weir_failure *failure)
{
    static const size_t texts[] = { TEXT(failure.name), TEXT(failure.label), TEXT(failure.message) };
    weir_record_entry from = { .kind = WEIR_ENTRY_FAILURE, .unix_ns = failure->unix_ns, .failure = *failure };
    return copy_entry(&from, texts, 3);
}

weir_record_entry *weir_record_entry_of_event(const weir_event *event)
{
    static const size_t texts[] = { TEXT(event.name), TEXT(event.category), TEXT(event.detail) };
    weir_record_entry from = { .kind = WEIR_ENTRY_EVENT, .unix_ns = event->unix_ns, .event = *event };
    return copy_entry(&from, texts, 3);
}

weir_record_entry *weir_record_entry_of_item(const weir_item_entry *item, int64_t unix_ns)
{
    static const size_t texts[] = { TEXT(item.name), TEXT(item.label) };
    return copy_entry(&(weir_record_entry){ .kind = WEIR_ENTRY_ITEM, .unix_ns = unix_ns, .item = *item }, texts, 2);
}

weir_record_entry *weir_record_entry_of_run_end(const weir_run_end *end)
{
    weir_record_entry from = { .kind = WEIR_ENTRY_RUN_END, .unix_ns = end->end_unix_ns, .run_end = *end };
    return copy_entry(&from, NULL, 0);
}

bool weir_record_entry_is_boundary(const weir_record_entry *entry)
{
    return entry->kind == WEIR_ENTRY_RUN_START || entry->kind == WEIR_ENTRY_RUN_END;
}
