#include <weir/query.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "database_reader.h"
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
    weir_record_entry *entry = weir__record_entry_of_record(record);
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

/* The kinds of laps side by side, each in the order of time. */
typedef struct lap_cursor {
    weir_query *queries[WEIR_NUM_SUBJECTS];
    const weir_lap_record *next[WEIR_NUM_SUBJECTS]; /* NULL = no more */
} lap_cursor;

static int move_on(lap_cursor *cursor, int subject, weir_error *error)
{
    const weir_record *record;
    int status = weir_query_next(cursor->queries[subject], &record, error);
    cursor->next[subject] = status == WEIR_OK ? &record->lap : NULL;
    return status == WEIR_EOF ? WEIR_OK : status;
}

static void replay_lap(const weir_observer *observer, const weir_lap *lap, const weir_lap_record *record)
{
    if (observer->lap)
        observer->lap(observer->self, &(weir_subject_lap){ .lap = lap,
                                                           .subject = record->subject,
                                                           .name = record->name,
                                                           .kind = record->kind,
                                                           .capacity = (uint64_t)record->capacity,
                                                           .metrics = record->metrics });
}

/* The earliest lap that has not been given yet. *found = false: there is none. */
static int give_lap(lap_cursor *cursor, const weir_observer *observer, uint64_t number, bool *found,
                    weir_error *error)
{
    static const int64_t same_ns = 1000; /* times in the database are exact to a quarter of it */
    const weir_lap_record *first = NULL;
    char phase[64] = "", mode[64] = "";
    int status = WEIR_OK;
    for (int i = 0; i < WEIR_NUM_SUBJECTS; i++)
        if (cursor->next[i] && (!first || cursor->next[i]->end_unix_ns < first->end_unix_ns))
            first = cursor->next[i];
    *found = first != NULL;
    if (!first)
        return WEIR_OK;
    snprintf(phase, sizeof phase, "%s", first->position.phase ? first->position.phase : "");
    snprintf(mode, sizeof mode, "%s", first->position.mode ? first->position.mode : "");
    weir_lap lap = {
        .number = number,
        .end_unix_ns = first->end_unix_ns,
        .elapsed_ns = first->elapsed_ns,
        .num_joined = (uint32_t)first->num_joined,
        .position = { .mode = mode,
                      .phase = phase,
                      .first_step = first->position.first_step,
                      .last_step = first->position.last_step },
    };
    for (int i = 0; i < WEIR_NUM_SUBJECTS; i++)
        while (status == WEIR_OK && cursor->next[i] && cursor->next[i]->end_unix_ns <= lap.end_unix_ns + same_ns) {
            replay_lap(observer, &lap, cursor->next[i]);
            status = move_on(cursor, i, error);
        }
    if (status == WEIR_OK && observer->lap_end)
        observer->lap_end(observer->self, &lap);
    return status;
}

static int give_laps(weir_reader *reader, const weir_filter *filter, const weir_observer *observer, weir_error *error)
{
    lap_cursor cursor = { 0 };
    int status = WEIR_OK;
    for (int i = 0; i < WEIR_NUM_SUBJECTS && status == WEIR_OK; i++) {
        status = weir_query_begin(reader, weir_record_kind_of((weir_subject)i), filter, &cursor.queries[i], error);
        if (status == WEIR_OK)
            status = move_on(&cursor, i, error);
    }
    bool found = true;
    for (uint64_t number = 0; found && status == WEIR_OK; number++)
        status = give_lap(&cursor, observer, number, &found, error);
    for (int i = 0; i < WEIR_NUM_SUBJECTS; i++)
        weir_query_end(cursor.queries[i]);
    return status;
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
        status = give_laps(reader, &own, observer, error);
    }
    free_run(&run);
    return status;
}
