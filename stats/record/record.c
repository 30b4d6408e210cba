#include "record.h"

#include <stdlib.h>
#include <string.h>

#include "measures.h"
#include "record_tables.h"

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

static void take_record(void *self, const weir_record *record)
{
    ((weir_record_taker *)self)->take(self, record);
}

static void on_lap(void *self, const weir_subject_lap *lap)
{
    const weir_lap *of = lap->lap;
    bool has_phase = of->position.phase; /* without a phase there are no steps */
    take_record(self, &(weir_record){ .kind = weir_record_kind_of(lap->subject),
                                      .lap = { .subject = lap->subject,
                                               .end_unix_ns = of->end_unix_ns,
                                               .elapsed_ns = of->elapsed_ns,
                                               .suspended_ns = of->suspended_ns,
                                               .num_joined = of->num_joined,
                                               .name = lap->name,
                                               .kind = lap->kind,
                                               .capacity = (int64_t)lap->capacity,
                                               .position = { .mode = of->position.mode ? of->position.mode : "",
                                                             .phase = has_phase ? of->position.phase : "",
                                                             .first_step = has_phase ? of->position.first_step : 0,
                                                             .last_step = has_phase ? of->position.last_step : -1 },
                                               .metrics = lap->metrics } });
}

static void record_failure(void *self, const weir_failure *failure)
{
    take_record(self, &(weir_record){ .kind = WEIR_RECORD_FAILURE,
                                      .failure = { .unix_ns = failure->unix_ns,
                                                   .run_ns = failure->run_ns,
                                                   .name = failure->name,
                                                   .seq = (int64_t)failure->seq,
                                                   .label = failure->label,
                                                   .status = failure->status,
                                                   .library_code = failure->library_code,
                                                   .message = failure->message } });
}

static void record_event(void *self, const weir_event *event)
{
    take_record(self, &(weir_record){ .kind = WEIR_RECORD_EVENT,
                                      .event = { .unix_ns = event->unix_ns,
                                                 .name = event->name,
                                                 .category = event->category,
                                                 .detail = event->detail } });
}

weir_observer weir__record_observer(weir_record_taker *self)
{
    return (weir_observer){
        .self = self,
        .lap = on_lap,
        .failure = record_failure,
        .event = record_event,
    };
}

/* Not only the engine may call observers: NULL counts as an empty histogram. */
static const weir_histogram *times_of(const weir_metric_histogram *histogram, const weir_lap_record *lap)
{
    static const weir_histogram no_times;
    weir_metrics metrics = lap->metrics;
    const weir_histogram *times = *weir__metric_histogram_at(histogram->metric, &metrics);
    return times ? times : &no_times;
}

weir_record_entry *weir__record_entry_of_lap(const weir_lap_record *lap)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(lap->subject, histograms);
    size_t extra_bytes = text_bytes(lap->name) + text_bytes(lap->kind) + text_bytes(lap->position.mode) +
                         text_bytes(lap->position.phase);
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
    keep_text(&entry->lap.record.position.mode, &room);
    keep_text(&entry->lap.record.position.phase, &room);
    for (size_t i = 0; i < count; i++) {
        weir_stored_histogram *stored = &entry->lap.histograms[i];
        stored->bytes = room;
        stored->size_bytes = weir_histogram_encode(times_of(&histograms[i], lap), room, (size_t)(end - room));
        room += stored->size_bytes;
        *weir__metric_histogram_at(histograms[i].metric, &entry->lap.record.metrics) = NULL;
    }
    return entry;
}

/* -- the others */

static size_t stage_info_bytes(const weir_stage_info *stage)
{
    return sizeof *stage + text_bytes(stage->name) + text_bytes(stage->queue_name) + text_bytes(stage->kind) +
           text_bytes(stage->output_order) + text_bytes(stage->inputs) + text_bytes(stage->merge_order);
}

weir_record_entry *weir__record_entry_of_run_start(const weir_run_info *info)
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

weir_record_entry *weir__record_entry_of_record(const weir_record *record)
{
    const weir_record_table *table = weir__record_table_of(record->kind);
    size_t extra_bytes = 0;
    char *room;
    for (size_t i = 0; i < table->num_columns; i++)
        if (table->columns[i].kind == WEIR_FIELD_TEXT)
            extra_bytes +=
                text_bytes(*(const char *const *)(const void *)((const char *)record + table->columns[i].offset));
    weir_record_entry *entry = new_entry(WEIR_ENTRY_RECORD, record->event.unix_ns, extra_bytes, &room);
    if (!entry)
        return NULL;
    entry->record = *record;
    for (size_t i = 0; i < table->num_columns; i++)
        if (table->columns[i].kind == WEIR_FIELD_TEXT)
            keep_text((const char **)(void *)((char *)&entry->record + table->columns[i].offset), &room);
    return entry;
}

weir_record_entry *weir__record_entry_of_run_end(const weir_run_end *end)
{
    char *room;
    weir_record_entry *entry = new_entry(WEIR_ENTRY_RUN_END, end->end_unix_ns, 0, &room);
    if (entry)
        entry->run_end = *end;
    return entry;
}

bool weir__record_entry_is_boundary(const weir_record_entry *entry)
{
    return entry->kind == WEIR_ENTRY_RUN_START || entry->kind == WEIR_ENTRY_RUN_END;
}
