#include "listing.h"

#include <math.h>
#include <stdio.h>

#include "figures.h"

static void put_known(table *t, int64_t count)
{
    if (count < 0)
        table_nothing(t);
    else
        table_count(t, count);
}

static void put_known_time(table *t, double time)
{
    table_number(t, time < 0 ? NAN : time);
}

static void put_steps(table *t, const weir_record_place *place)
{
    bool has_steps = place->last_step >= place->first_step;
    if (has_steps) {
        table_count(t, place->first_step);
        table_count(t, place->last_step);
    } else {
        table_nothing(t);
        table_nothing(t);
    }
}

/* -- a row of each kind */

static void put_run(table *t, const weir_record *record)
{
    figures_put_run(t, &record->run);
}

static void put_node(table *t, const weir_record *record)
{
    table_words(t, record->node.node_id);
    table_count(t, record->node.num_runs);
    table_number(t, record->node.started);
    table_number(t, record->node.ended != 0 ? record->node.ended : NAN);
}

static void put_stage(table *t, const weir_record *record)
{
    const weir_stage_record *stage = &record->stage;
    table_count(t, stage->run_id);
    table_words(t, stage->name);
    table_words(t, stage->kind);
    table_count(t, stage->concurrency);
    table_words(t, stage->queue_name);
    table_count(t, stage->queue_items);
    if (stage->queue_bytes)
        table_count(t, stage->queue_bytes);
    else
        table_nothing(t);
    table_words(t, stage->output_order);
}

static void put_phase(table *t, const weir_record *record)
{
    const weir_phase_record *phase = &record->phase;
    table_count(t, phase->run_id);
    table_words(t, phase->place.phase);
    table_number(t, phase->start_time);
    table_number(t, phase->end_time);
    table_number(t, phase->end_time - phase->start_time);
    put_steps(t, &phase->place);
    table_count(t, phase->num_laps);
}

static void put_event(table *t, const weir_record *record)
{
    const weir_event_record *event = &record->event;
    table_number(t, event->timestamp);
    table_count(t, event->run_id);
    table_words(t, event->category);
    table_words(t, event->name);
    table_words(t, event->detail);
}

static void put_failure(table *t, const weir_record *record)
{
    const weir_failure_record *failure = &record->failure;
    table_number(t, failure->timestamp);
    table_count(t, failure->run_id);
    table_words(t, failure->name);
    table_count(t, failure->seq);
    table_words(t, failure->label);
    table_words(t, weir_status_name(failure->status));
    table_count(t, failure->library_code);
    table_words(t, failure->message);
    table_number(t, failure->elapsed);
}

static void put_item(table *t, const weir_record *record)
{
    const weir_item_record *item = &record->item;
    table_number(t, item->timestamp);
    table_count(t, item->run_id);
    table_words(t, item->name);
    table_count(t, item->seq);
    table_number(t, item->elapsed);
    table_words(t, item->codec);
    put_known(t, item->width);
    put_known(t, item->height);
    put_known(t, item->num_frames);
    put_known(t, item->size_bytes);
    put_known_time(t, item->open_time);
    put_known_time(t, item->demux_time);
    put_known_time(t, item->decode_time);
    put_known_time(t, item->scale_time);
    table_words(t, item->label);
}

/* -- their columns */

static const table_column node_columns[] = {
    { "node_id", "node", TABLE_WORDS },
    { "num_runs", "runs", TABLE_COUNT },
    { "started", "first started", TABLE_WHEN },
    { "ended", "last ended", TABLE_WHEN },
};

static const table_column stage_columns[] = {
    { "run_id", "run", TABLE_COUNT },        { "name", "stage", TABLE_WORDS },
    { "kind", "kind", TABLE_WORDS },         { "concurrency", "slots", TABLE_COUNT },
    { "queue_name", "queue", TABLE_WORDS },  { "queue_items", "items", TABLE_COUNT },
    { "queue_bytes", "bytes", TABLE_BYTES }, { "output_order", "order", TABLE_WORDS },
};

static const table_column phase_columns[] = {
    { "run_id", "run", TABLE_COUNT },        { "phase", "phase", TABLE_WORDS },
    { "start_time", "from", TABLE_WHEN },    { "end_time", "to", TABLE_WHEN },
    { "elapsed", "length", TABLE_TIME },     { "first_step", "from step", TABLE_COUNT },
    { "last_step", "to step", TABLE_COUNT }, { "num_laps", "laps", TABLE_COUNT },
};

static const table_column event_columns[] = {
    { "timestamp", "time", TABLE_WHEN }, { "run_id", "run", TABLE_COUNT },    { "category", "category", TABLE_WORDS },
    { "name", "event", TABLE_WORDS },    { "detail", "detail", TABLE_WORDS },
};

static const table_column failure_columns[] = {
    { "timestamp", "time", TABLE_WHEN },     { "run_id", "run", TABLE_COUNT },
    { "name", "stage", TABLE_WORDS },        { "seq", "item", TABLE_COUNT },
    { "label", "label", TABLE_WORDS },       { "status", "status", TABLE_WORDS },
    { "library_code", "code", TABLE_COUNT }, { "message", "message", TABLE_WORDS },
    { "elapsed", "after", TABLE_TIME },
};

static const table_column item_columns[] = {
    { "timestamp", NULL, TABLE_WHEN },       { "run_id", "run", TABLE_COUNT },
    { "name", "stage", TABLE_WORDS },        { "seq", NULL, TABLE_COUNT },
    { "elapsed", "time", TABLE_TIME },       { "codec", "codec", TABLE_WORDS },
    { "width", "width", TABLE_COUNT },       { "height", "height", TABLE_COUNT },
    { "num_frames", "frames", TABLE_COUNT }, { "size_bytes", "bytes", TABLE_BYTES },
    { "open_time", "open", TABLE_TIME },     { "demux_time", "demux", TABLE_TIME },
    { "decode_time", "decode", TABLE_TIME }, { "scale_time", "scale", TABLE_TIME },
    { "label", "label", TABLE_WORDS },
};

#define COLUMNS(of) of, sizeof of / sizeof of[0]

static const struct listing {
    weir_record_kind kind;
    const table_column *columns;
    size_t num_columns; /* 0 = those of runs */
    void (*put)(table *t, const weir_record *record);
} listings[] = {
    { WEIR_RECORD_RUN, figures_run_columns, 0, put_run },
    { WEIR_RECORD_NODE, COLUMNS(node_columns), put_node },
    { WEIR_RECORD_STAGE, COLUMNS(stage_columns), put_stage },
    { WEIR_RECORD_PHASE, COLUMNS(phase_columns), put_phase },
    { WEIR_RECORD_EVENT, COLUMNS(event_columns), put_event },
    { WEIR_RECORD_FAILURE, COLUMNS(failure_columns), put_failure },
    { WEIR_RECORD_ITEM, COLUMNS(item_columns), put_item },
};

const char *const listing_words[] = { "runs", "nodes", "stages", "phases", "events", "failures", "items", NULL };

int listing_print(const tool_call *call, weir_reader *reader, int what, const weir_filter *filter, int64_t *count,
                  weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    const struct listing *listing = &listings[what];
    size_t num_columns = listing->num_columns ? listing->num_columns : figures_num_run_columns;
    int status = weir_query_begin(reader, listing->kind, filter, &query, error);
    if (status != WEIR_OK)
        return status;
    table *t = table_begin(stdout, tool_format(call), listing->columns, num_columns);
    while ((status = weir_query_next(query, &record, error)) == WEIR_OK)
        listing->put(t, record);
    *count = (int64_t)table_rows(t);
    table_end_alone(t);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}
