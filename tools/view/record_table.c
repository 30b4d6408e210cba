#include "tools/view/record_table.h"

#include <string.h>

#include "tools/view/metric_table.h"

#define AT(field) offsetof(weir_record, field)

static void put_position(table *t, const weir_record_position *position)
{
    table_words(t, position->mode);
    table_words(t, position->phase);
    if (position->last_step < position->first_step) {
        table_nothing(t);
        table_nothing(t);
        return;
    }
    table_count(t, position->first_step);
    table_count(t, position->last_step);
}

#define POSITION_COLUMNS \
    { "mode", "mode", TABLE_WORDS }, { "phase", "phase", TABLE_WORDS }, { "first_step", "from step", TABLE_COUNT }, \
    { \
        "last_step", "to step", TABLE_COUNT \
    }

static const table_column run_columns[] = {
    { "run_id", "run", TABLE_COUNT },        { "node_id", "node", TABLE_WORDS },
    { "rank", "rank", TABLE_COUNT },         { "pid", "pid", TABLE_COUNT },
    { "started", "started", TABLE_WHEN },    { "ended", "ended", TABLE_WHEN },
    { "duration", "duration", TABLE_TIME },  { "state", "state", TABLE_VERDICT },
    { "status", NULL, TABLE_WORDS },         { "threads", "threads", TABLE_COUNT },
    { "entries_lost", "lost", TABLE_COUNT }, { "version", "weir", TABLE_WORDS },
    { "command", "command", TABLE_WORDS },   { "machine", NULL, TABLE_WORDS },
};

static void put_run(table *t, const weir_record *record)
{
    const weir_run_record *run = &record->run;
    bool is_of_spdl = strcmp(run->version, "SPDL") == 0; /* which stores no status, and counts no losses */
    table_count(t, run->run_id);
    table_words(t, run->node_id);
    table_count(t, run->rank);
    table_known(t, run->pid > 0 ? run->pid : 0);
    table_when(t, run->started_unix_ns);
    table_when(t, run->ended_unix_ns);
    table_duration(t, run->has_ended ? run->ended_unix_ns - run->started_unix_ns : -1);
    table_words(t, is_of_spdl ? "ended" : weir_run_state_name(weir_run_state_of(run)));
    if (run->has_ended && !is_of_spdl)
        table_words(t, weir_status_name(run->status));
    else
        table_nothing(t);
    table_known(t, run->threads);
    if (is_of_spdl)
        table_nothing(t);
    else
        table_count(t, run->entries_lost);
    table_words(t, run->version);
    table_words(t, run->command);
    table_words(t, run->machine);
}

static const table_column stage_columns[] = {
    { "run_id", "run", TABLE_COUNT },        { "name", "stage", TABLE_WORDS },
    { "queue_name", "queue", TABLE_WORDS },  { "kind", "kind", TABLE_WORDS },
    { "concurrency", "slots", TABLE_COUNT }, { "queue_items", "items", TABLE_COUNT },
    { "queue_bytes", "bytes", TABLE_COUNT }, { "output_order", "order", TABLE_WORDS },
};

static const size_t stage_fields[] = { AT(stage.run_id), AT(stage.name), AT(stage.queue_name), AT(stage.kind) };

/* SPDL does not store how a stage was built. */
static void put_settings(table *t, const weir_record *record)
{
    const weir_stage_record *stage = &record->stage;
    table_known(t, stage->concurrency);
    table_known(t, stage->queue_items);
    if (stage->queue_items)
        table_count(t, stage->queue_bytes);
    else
        table_nothing(t);
    table_words(t, stage->output_order);
}

static const table_column phase_columns[] = {
    { "run_id", "run", TABLE_COUNT },     POSITION_COLUMNS,
    { "start_time", "from", TABLE_WHEN }, { "end_time", "to", TABLE_WHEN },
    { "num_laps", "laps", TABLE_COUNT },
};

static void put_phase(table *t, const weir_record *record)
{
    const weir_phase_record *phase = &record->phase;
    table_count(t, phase->run_id);
    put_position(t, &phase->position);
    table_when(t, phase->start_unix_ns);
    table_when(t, phase->end_unix_ns);
    table_count(t, phase->num_laps);
}

/* A lap: these, then all measures. */
static const table_column lap_columns[] = {
    { "id", NULL, TABLE_COUNT },
    { "run_id", "run", TABLE_COUNT },
    { "timestamp", "time", TABLE_WHEN },
    { "elapsed", "lap", TABLE_TIME },
    { "name", "name", TABLE_WORDS },
    { "kind", NULL, TABLE_WORDS },
    POSITION_COLUMNS,
    { "suspended", NULL, TABLE_TIME },
    { "num_joined", NULL, TABLE_COUNT },
    { "capacity", "capacity", TABLE_COUNT },
};

static const size_t lap_fields[] = { AT(lap.id),         AT(lap.run_id), AT(lap.end_unix_ns),
                                     AT(lap.elapsed_ns), AT(lap.name),   AT(lap.kind) };

static void put_lap(table *t, const weir_record *record)
{
    const weir_lap_record *lap = &record->lap;
    put_position(t, &lap->position);
    table_duration(t, lap->suspended_ns);
    table_count(t, lap->num_joined);
    table_known(t, lap->capacity);
    weir_total total = weir_total_of_lap(lap);
    metric_put_measures(t, &total);
}

static const table_column event_columns[] = {
    { "id", NULL, TABLE_COUNT },      { "run_id", "run", TABLE_COUNT },        { "timestamp", "time", TABLE_WHEN },
    { "name", "event", TABLE_WORDS }, { "category", "category", TABLE_WORDS }, { "detail", "detail", TABLE_WORDS },
};

static const size_t event_fields[] = { AT(event.id),   AT(event.run_id),   AT(event.unix_ns),
                                       AT(event.name), AT(event.category), AT(event.detail) };

static const table_column failure_columns[] = {
    { "id", NULL, TABLE_COUNT },
    { "run_id", "run", TABLE_COUNT },
    { "timestamp", "time", TABLE_WHEN },
    { "elapsed", "after", TABLE_TIME },
    { "name", "stage", TABLE_WORDS },
    { "seq", "item", TABLE_COUNT },
    { "label", "label", TABLE_WORDS },
    { "status", "status", TABLE_WORDS },
    { "library_code", "code", TABLE_COUNT },
    { "message", "message", TABLE_WORDS },
};

static const size_t failure_fields[] = { AT(failure.id),     AT(failure.run_id), AT(failure.unix_ns),
                                         AT(failure.run_ns), AT(failure.name),   AT(failure.seq),
                                         AT(failure.label) };

static void put_reason(table *t, const weir_record *record)
{
    table_words(t, weir_status_name(record->failure.status));
    table_count(t, record->failure.library_code);
    table_words(t, record->failure.message);
}

static const table_column item_columns[] = {
    { "id", NULL, TABLE_COUNT },
    { "run_id", "run", TABLE_COUNT },
    { "timestamp", NULL, TABLE_WHEN },
    { "elapsed", "time", TABLE_TIME },
    { "name", "stage", TABLE_WORDS },
    { "seq", NULL, TABLE_COUNT },
    { "label", "label", TABLE_WORDS },
    { "codec", "codec", TABLE_WORDS },
    { "width", "width", TABLE_COUNT },
    { "height", "height", TABLE_COUNT },
    { "num_frames", "frames", TABLE_COUNT },
    { "size_bytes", "bytes", TABLE_BYTES },
    { "open_time", "open", TABLE_TIME },
    { "demux_time", "demux", TABLE_TIME },
    { "decode_time", "decode", TABLE_TIME },
    { "scale_time", "scale", TABLE_TIME },
    { "num_missing", "lost", TABLE_COUNT },
    { "num_errors", "errors", TABLE_COUNT },
    { "parts", "parts", TABLE_WORDS },
};

static const size_t item_fields[] = {
    AT(item.id),         AT(item.run_id),      AT(item.unix_ns),    AT(item.run_ns),   AT(item.name),
    AT(item.seq),        AT(item.label),       AT(item.codec),      AT(item.width),    AT(item.height),
    AT(item.num_frames), AT(item.size_bytes),  AT(item.open_ns),    AT(item.demux_ns), AT(item.decode_ns),
    AT(item.scale_ns),   AT(item.num_missing), AT(item.num_errors), AT(item.parts)
};

static const table_column node_columns[] = {
    { "node_id", "node", TABLE_WORDS },
    { "num_runs", "runs", TABLE_COUNT },
    { "started", "first started", TABLE_WHEN },
    { "ended", "last ended", TABLE_WHEN },
};

static const size_t node_fields[] = { AT(node.node_id), AT(node.num_runs), AT(node.started_unix_ns),
                                      AT(node.ended_unix_ns) };

static const table_column content_columns[] = {
    { "table", "table", TABLE_WORDS },    { "name", "name", TABLE_WORDS },   { "node_id", "node", TABLE_WORDS },
    { "mode", "mode", TABLE_WORDS },      { "phase", "phase", TABLE_WORDS }, { "num_records", "rows", TABLE_COUNT },
    { "start_time", "from", TABLE_WHEN }, { "end_time", "to", TABLE_WHEN },  { "file", "file", TABLE_WORDS },
};

static const size_t content_fields[] = { AT(content.table),         AT(content.name),        AT(content.node_id),
                                         AT(content.mode),          AT(content.phase),       AT(content.num_records),
                                         AT(content.start_unix_ns), AT(content.end_unix_ns), AT(content.path) };

/* The first columns are fields of the record as they are; `put` writes the cells of the others. */
typedef struct kind_table {
    weir_record_kind kind;
    const table_column *columns;
    size_t num_columns;
    void (*put)(table *t, const weir_record *record); /* NULL = there are no others */
    const size_t *fields;                             /* their offsets */
    size_t num_fields;
} kind_table;

const char *const record_table_names[] = { "runs",   "nodes",    "stages",  "phases",   "tasks", "flow",
                                           "queues", "pools",    "process", "machine",  "spans", "counters",
                                           "events", "failures", "items",   "contents", NULL };

static const kind_table kind_tables[] = {
    { WEIR_RECORD_RUN, TABLE_COLUMNS(run_columns), put_run, NULL, 0 },
    { WEIR_RECORD_NODE, TABLE_COLUMNS(node_columns), NULL, TABLE_COLUMNS(node_fields) },
    { WEIR_RECORD_STAGE, TABLE_COLUMNS(stage_columns), put_settings, TABLE_COLUMNS(stage_fields) },
    { WEIR_RECORD_PHASE, TABLE_COLUMNS(phase_columns), put_phase, NULL, 0 },
    { WEIR_RECORD_TASK, TABLE_COLUMNS(lap_columns), put_lap, TABLE_COLUMNS(lap_fields) },
    { WEIR_RECORD_FLOW, TABLE_COLUMNS(lap_columns), put_lap, TABLE_COLUMNS(lap_fields) },
    { WEIR_RECORD_QUEUE, TABLE_COLUMNS(lap_columns), put_lap, TABLE_COLUMNS(lap_fields) },
    { WEIR_RECORD_POOL, TABLE_COLUMNS(lap_columns), put_lap, TABLE_COLUMNS(lap_fields) },
    { WEIR_RECORD_PROCESS, TABLE_COLUMNS(lap_columns), put_lap, TABLE_COLUMNS(lap_fields) },
    { WEIR_RECORD_MACHINE, TABLE_COLUMNS(lap_columns), put_lap, TABLE_COLUMNS(lap_fields) },
    { WEIR_RECORD_SPAN, TABLE_COLUMNS(lap_columns), put_lap, TABLE_COLUMNS(lap_fields) },
    { WEIR_RECORD_COUNTER, TABLE_COLUMNS(lap_columns), put_lap, TABLE_COLUMNS(lap_fields) },
    { WEIR_RECORD_EVENT, TABLE_COLUMNS(event_columns), NULL, TABLE_COLUMNS(event_fields) },
    { WEIR_RECORD_FAILURE, TABLE_COLUMNS(failure_columns), put_reason, TABLE_COLUMNS(failure_fields) },
    { WEIR_RECORD_ITEM, TABLE_COLUMNS(item_columns), NULL, TABLE_COLUMNS(item_fields) },
    { WEIR_RECORD_CONTENT, TABLE_COLUMNS(content_columns), NULL, TABLE_COLUMNS(content_fields) },
};

_Static_assert(sizeof kind_tables / sizeof kind_tables[0] + 1 ==
                   sizeof record_table_names / sizeof record_table_names[0],
               "one table per name");

weir_record_kind record_table_kind(int which)
{
    return kind_tables[which].kind;
}

int record_table_find(const char *name)
{
    int index = 0;
    while (record_table_names[index] && strcmp(record_table_names[index], name) != 0)
        index++;
    return index;
}

static weir_subject subject_of(weir_record_kind kind)
{
    weir_subject subject = WEIR_SUBJECT_STAGE;
    while (weir_record_kind_of(subject) != kind)
        subject++;
    return subject;
}

static size_t fill_columns(table_column columns[METRIC_MAX_COLUMNS], const kind_table *wanted)
{
    size_t count = wanted->num_columns, num_measures = 0;
    memcpy(columns, wanted->columns, count * sizeof *columns);
    if (wanted->put != put_lap)
        return count;
    const weir_measure *measures = weir_subject_measures(subject_of(wanted->kind), &num_measures);
    for (size_t i = 0; i < num_measures; i++)
        columns[count++] = metric_column(&measures[i]);
    return count;
}

/* Numbers below 0 are not known. */
static void put_field(table *t, table_kind kind, const void *field)
{
    switch (kind) {
    case TABLE_WORDS: table_words(t, *(const char *const *)field); break;
    case TABLE_WHEN: table_when(t, *(const int64_t *)field); break;
    case TABLE_TIME: table_duration(t, *(const int64_t *)field); break;
    default:
        if (*(const int64_t *)field < 0)
            table_nothing(t);
        else
            table_count(t, *(const int64_t *)field);
    }
}

static void put_record(table *t, const kind_table *wanted, const weir_record *record)
{
    for (size_t i = 0; i < wanted->num_fields; i++)
        put_field(t, wanted->columns[i].kind, (const char *)record + wanted->fields[i]);
    if (wanted->put)
        wanted->put(t, record);
}

int record_table(FILE *out, table_format format, int which, weir_recording *recording, const weir_filter *filter,
                 int64_t *num_rows, weir_error *error)
{
    const kind_table *wanted = &kind_tables[which];
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(recording, wanted->kind, filter, &query, error);
    if (status != WEIR_OK)
        return status;
    table_column columns[METRIC_MAX_COLUMNS];
    table *t = table_begin(out, format, columns, fill_columns(columns, wanted));
    if (wanted->put == put_lap)
        table_set_keys(t, 5);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        put_record(t, wanted, record);
    if (num_rows)
        *num_rows = (int64_t)table_rows(t);
    table_end(t);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

void record_put_row(table *t, const table_column *columns, size_t num_columns, const weir_row *row, int first)
{
    for (size_t i = 0; i < num_columns; i++) {
        int column = first + (int)i;
        if (weir_row_is_null(row, column))
            table_nothing(t);
        else if (columns[i].kind == TABLE_WORDS)
            table_words(t, weir_row_text(row, column));
        else if (columns[i].kind == TABLE_COUNT)
            table_count(t, weir_row_int(row, column));
        else
            table_number(t, weir_row_real(row, column));
    }
}
