#include <weir/query.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "database_reader.h"
#include "lap_rows.h"
#include "record.h"

/* ---- how the pipeline was built ----------------------------------------------------------------------------- */

typedef struct replayed_run {
    weir_stage_info *infos;
    uint32_t num_stages;
    weir_record_entry *entries; /* have the texts of the infos */
} replayed_run;

static void free_run(replayed_run *run)
{
    for (weir_record_entry *entry = run->entries, *next; entry; entry = next) {
        next = entry->next;
        free(entry);
    }
    free(run->infos);
}

static int add_stage(void *self, const weir_record *record, weir_error *error)
{
    replayed_run *run = self;
    weir_stage_info *infos = weir__array_grow(run->infos, run->num_stages, sizeof *infos);
    weir_record_entry *entry = weir__record_entry_of(record);
    run->infos = infos ? infos : run->infos;
    if (!infos || !entry) {
        free(entry);
        return weir__reader_out_of_memory(error);
    }
    const weir_stage_record *stage = &entry->record.stage;
    entry->next = run->entries;
    run->entries = entry;
    infos[run->num_stages++] = (weir_stage_info){
        .name = stage->name,
        .queue_name = stage->queue_name,
        .kind = stage->kind,
        .output_order = stage->output_order,
        .inputs = stage->inputs,
        .merge_order = stage->merge_order,
        .concurrency = (uint32_t)stage->concurrency,
        .queue_items = (uint32_t)stage->queue_items,
        .queue_bytes = (uint64_t)stage->queue_bytes,
        .threads = (uint64_t)(stage->threads > 0 ? stage->threads : 0),
    };
    return WEIR_OK;
}

/* ---- its laps ----------------------------------------------------------------------------------------------- */

int weir__laps_in_order(weir_reader *reader, const weir_filter *filter, weir_record_function *each, void *self,
                        weir_error *error)
{
    weir_query *queries[WEIR_NUM_SUBJECTS] = { 0 };
    const weir_record *next[WEIR_NUM_SUBJECTS] = { 0 }; /* NULL = no more */
    int status = WEIR_OK, first = -1;
    for (int i = 0; i < WEIR_NUM_SUBJECTS && status == WEIR_OK; i++) {
        status = weir_query_begin(reader, weir_record_kind_of((weir_subject)i), filter, &queries[i], error);
        if (status == WEIR_OK && (status = weir_query_next(queries[i], &next[i], error)) == WEIR_EOF)
            status = WEIR_OK;
    }
    while (status == WEIR_OK) {
        first = -1;
        for (int i = 0; i < WEIR_NUM_SUBJECTS; i++)
            if (next[i] && (first < 0 || next[i]->lap.end_unix_ns < next[first]->lap.end_unix_ns))
                first = i;
        if (first < 0)
            break;
        status = each(self, next[first], error);
        if (status == WEIR_OK && (status = weir_query_next(queries[first], &next[first], error)) == WEIR_EOF)
            status = WEIR_OK;
    }
    for (int i = 0; i < WEIR_NUM_SUBJECTS; i++)
        weir_query_end(queries[i]);
    return status;
}

/* What the observer is given. */
typedef struct replaying {
    const weir_observer *observer;
    weir_lap lap; /* the current one */
    char phase[64], mode[64];
    uint64_t num_laps;
} replaying;

static void end_lap(replaying *r)
{
    if (r->num_laps && r->observer->lap_end)
        r->observer->lap_end(r->observer->self, &r->lap);
}

static void begin_lap(replaying *r, const weir_lap_record *first)
{
    snprintf(r->phase, sizeof r->phase, "%s", first->position.phase);
    snprintf(r->mode, sizeof r->mode, "%s", first->position.mode);
    r->lap = (weir_lap){
        .number = r->num_laps++,
        .end_unix_ns = first->end_unix_ns,
        .elapsed_ns = first->elapsed_ns,
        .num_joined = (uint32_t)first->num_joined,
        .position = { .mode = r->mode,
                      .phase = r->phase,
                      .first_step = first->position.first_step,
                      .last_step = first->position.last_step },
    };
}

static int give_lap(void *self, const weir_record *given, weir_error *error)
{
    static const int64_t same_ns = 1000; /* times in the database are exact to a quarter of it */
    replaying *r = self;
    const weir_lap_record *record = &given->lap;
    (void)error;
    if (r->num_laps == 0 || record->end_unix_ns > r->lap.end_unix_ns + same_ns) {
        end_lap(r);
        begin_lap(r, record);
    }
    if (r->observer->lap)
        r->observer->lap(r->observer->self, &(weir_subject_lap){ .lap = &r->lap,
                                                                 .subject = record->subject,
                                                                 .name = record->name,
                                                                 .kind = record->kind,
                                                                 .capacity = (uint64_t)record->capacity,
                                                                 .metrics = record->metrics });
    return WEIR_OK;
}

int weir_replay(weir_reader *reader, const weir_filter *filter, const weir_observer *observer, weir_error *error)
{
    if (!reader || !observer)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter own = filter ? *filter : (weir_filter){ .run_id = WEIR_LAST_RUN };
    weir_run_record record;
    replayed_run run = { 0 };
    int status = weir_reader_find_run(reader, own.run_id, &record, error);
    if (status != WEIR_OK)
        return status;
    own.run_id = record.run_id;
    weir_run_info info = { .start_unix_ns = record.started_unix_ns, .threads = (uint32_t)record.threads };
    status =
        weir_reader_each(reader, WEIR_RECORD_STAGE, &(weir_filter){ .run_id = own.run_id }, add_stage, &run, error);
    if (status == WEIR_OK && run.num_stages == 0)
        status = weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                "run %lld of %s does not say which stages it had; record it again",
                                (long long)own.run_id, weir_reader_path(reader));
    if (status == WEIR_OK) {
        sscanf(run.infos[0].name, "%u", &info.pipeline_id);
        info.stages = run.infos;
        info.num_stages = run.num_stages;
        if (observer->run_start)
            observer->run_start(observer->self, &info);
        replaying r = { .observer = observer };
        status = weir__laps_in_order(reader, &own, give_lap, &r, error);
        if (status == WEIR_OK)
            end_lap(&r);
    }
    free_run(&run);
    return status;
}
