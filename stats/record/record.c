#include "stats/record/record.h"

#include <stdlib.h>
#include <string.h>

#include "stats/schema/measures.h"
#include "stats/schema/record_tables.h"

/* ---- the engine's reports ------------------------------------------------------------------------------------------- */

static void take_record(void *self, const weir_record *record)
{
    ((weir_record_taker *)self)->take(self, record);
}

weir_record_position weir__record_position_of(const weir_lap *lap)
{
    const weir_lap_position *at = &lap->position;
    bool has_phase = at->phase; /* without a phase there are no steps */
    return (weir_record_position){ .mode = at->mode ? at->mode : "",
                                   .phase = has_phase ? at->phase : "",
                                   .first_step = has_phase ? at->first_step : 0,
                                   .last_step = has_phase ? at->last_step : -1 };
}

static void on_lap(void *self, const weir_subject_lap *lap)
{
    const weir_lap *of = lap->lap;
    take_record(self, &(weir_record){ .kind = weir_record_kind_of(lap->subject),
                                      .lap = { .subject = lap->subject,
                                               .end_unix_ns = of->end_unix_ns,
                                               .elapsed_ns = of->elapsed_ns,
                                               .suspended_ns = of->suspended_ns,
                                               .num_joined = of->num_joined,
                                               .name = lap->name,
                                               .kind = lap->kind,
                                               .capacity = (int64_t)lap->capacity,
                                               .position = weir__record_position_of(of),
                                               .metrics = lap->metrics } });
}

const char *weir__stored_identity(const weir_identity *identity, const char *label)
{
    return !identity->address || strcmp(identity->address, label) == 0 ? "" : identity->address;
}

static void record_failure(void *self, const weir_failure *failure)
{
    take_record(self,
                &(weir_record){ .kind = WEIR_RECORD_FAILURE,
                                .failure = { .unix_ns = failure->unix_ns,
                                             .run_ns = failure->run_ns,
                                             .name = failure->name,
                                             .seq = (int64_t)failure->seq,
                                             .label = failure->label,
                                             .status = failure->status,
                                             .library_code = failure->library_code,
                                             .message = failure->message,
                                             .identity = weir__stored_identity(&failure->identity, failure->label),
                                             .occurrence = (int64_t)failure->identity.occurrence } });
}

static void record_event(void *self, const weir_event *event)
{
    take_record(self, &(weir_record){ .kind = WEIR_RECORD_EVENT,
                                      .event = { .unix_ns = event->unix_ns,
                                                 .name = event->name,
                                                 .category = event->category,
                                                 .detail = event->detail } });
}

static void record_run_start(void *self, const weir_run_info *info)
{
    take_record(self, &(weir_record){ .kind = WEIR_RECORD_RUN,
                                      .run = { .started_unix_ns = info->start_unix_ns, .threads = info->threads } });
    for (uint32_t i = 0; i < info->num_stages; i++) {
        const weir_stage_info *stage = &info->stages[i];
        take_record(self, &(weir_record){ .kind = WEIR_RECORD_STAGE,
                                          .stage = { .name = stage->name,
                                                     .kind = stage->kind,
                                                     .concurrency = stage->concurrency,
                                                     .queue_items = stage->queue_items,
                                                     .queue_bytes = weir__at_most_int64(stage->queue_bytes),
                                                     .output_order = stage->output_order,
                                                     .threads = weir__at_most_int64(stage->threads),
                                                     .inputs = stage->inputs,
                                                     .merge_order = stage->merge_order,
                                                     .look_ahead_items = stage->look_ahead_items } });
    }
}

static void record_run_end(void *self, const weir_run_end *end)
{
    take_record(self, &(weir_record){
                          .kind = WEIR_RECORD_RUN,
                          .run = { .has_ended = true, .ended_unix_ns = end->end_unix_ns, .status = end->status } });
}

weir_observer weir__record_observer(weir_record_taker *self)
{
    return (weir_observer){
        .self = self,
        .run_start = record_run_start,
        .lap = on_lap,
        .failure = record_failure,
        .event = record_event,
        .run_end = record_run_end,
    };
}

/* ---- copies --------------------------------------------------------------------------------------------------------- */

/* Copies the texts to `room` (NULL = nowhere). Returns their size. */
static size_t keep_texts(weir_record *record, char *room)
{
    const weir_record_table *table = weir__record_table_of(record->kind);
    size_t used = 0;
    for (size_t i = 0; i < table->num_columns; i++) {
        if (table->columns[i].kind != WEIR_FIELD_TEXT)
            continue;
        const char **text = (const char **)(void *)((char *)record + table->columns[i].offset);
        size_t size = *text ? strlen(*text) + 1 : 1;
        if (room)
            *text = memcpy(room + used, *text ? *text : "", size);
        used += size;
    }
    return used;
}

/* Encodes those of a lap, which lose them, to `room` (NULL = nowhere). Returns their size. */
static size_t keep_histograms(weir_record *record, weir_stored_histogram stored[], char *room, size_t room_bytes)
{
    static const weir_histogram no_times; /* other code than the engine may call observers, too: NULL counts as an
                                             empty histogram */
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t used = 0;
    for (size_t i = 0, count = weir__subject_histograms(record->lap.subject, histograms); i < count; i++) {
        const weir_histogram **times = weir__metric_histogram_at(histograms[i].metric, &record->lap.metrics);
        size_t size = weir_histogram_encode(*times ? *times : &no_times, room ? room + used : NULL,
                                            room ? room_bytes - used : 0);
        if (room) {
            stored[i] = (weir_stored_histogram){ room + used, size };
            *times = NULL;
        }
        used += size;
    }
    return used;
}

weir_record_entry *weir__record_entry_of(const weir_record *record)
{
    weir_record copy = *record;
    const bool is_lap = weir__record_is_lap(record->kind);
    size_t text_bytes = keep_texts(&copy, NULL);
    size_t histogram_bytes = is_lap ? keep_histograms(&copy, NULL, NULL, 0) : 0;
    weir_record_entry *entry = malloc(sizeof *entry + text_bytes + histogram_bytes);
    if (!entry)
        return NULL;
    char *room = (char *)(entry + 1);
    *entry = (weir_record_entry){ .record = copy };
    keep_texts(&entry->record, room);
    if (is_lap)
        keep_histograms(&entry->record, entry->histograms, room + text_bytes, histogram_bytes);
    return entry;
}

bool weir__record_entry_is_boundary(const weir_record_entry *entry)
{
    const weir_record_kind kind = entry->record.kind;
    return kind == WEIR_RECORD_RUN || kind == WEIR_RECORD_STAGE || kind == WEIR_RECORD_STACK;
}
