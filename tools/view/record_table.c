#include "record_table.h"

#include <string.h>

static void when(table *t, double unix_time, bool is_known)
{
    if (is_known)
        table_number(t, unix_time);
    else
        table_nothing(t);
}

static void place(table *t, const weir_record_place *where)
{
    table_words(t, where->phase);
    if (where->last_step < where->first_step) {
        table_nothing(t);
        table_nothing(t);
        return;
    }
    table_count(t, where->first_step);
    table_count(t, where->last_step);
}

#define PLACE_COLUMNS \
    { "phase", "phase", TABLE_WORDS }, { "first_step", "from step", TABLE_COUNT }, \
    { \
        "last_step", "to step", TABLE_COUNT \
    }

static const table_column run_columns[] = {
    { "run_id", "run", TABLE_COUNT },        { "node_id", "node", TABLE_WORDS },
    { "rank", "rank", TABLE_COUNT },         { "pid", "pid", TABLE_COUNT },
    { "started", "started", TABLE_WHEN },    { "ended", "ended", TABLE_WHEN },
    { "status", "status", TABLE_WORDS },     { "threads", "threads", TABLE_COUNT },
    { "entries_lost", "lost", TABLE_COUNT }, { "version", "weir", TABLE_WORDS },
    { "command", "command", TABLE_WORDS },
};

static void put_run(table *t, const weir_record *record)
{
    const weir_run_record *run = &record->run;
    table_count(t, run->run_id);
    table_words(t, run->node_id);
    table_count(t, run->rank);
    table_count(t, run->pid);
    table_number(t, run->started);
    when(t, run->ended, run->has_ended);
    if (run->has_ended)
        table_words(t, weir_status_name(run->status));
    else
        table_nothing(t);
    table_count(t, run->threads);
    table_count(t, run->entries_lost);
    table_words(t, run->version);
    table_words(t, run->command);
}

static const table_column stage_columns[] = {
    { "run_id", "run", TABLE_COUNT },        { "name", "stage", TABLE_WORDS },
    { "queue_name", "queue", TABLE_WORDS },  { "kind", "kind", TABLE_WORDS },
    { "concurrency", "slots", TABLE_COUNT }, { "queue_items", "items", TABLE_COUNT },
    { "queue_bytes", "bytes", TABLE_COUNT }, { "output_order", "order", TABLE_WORDS },
};

static void put_stage(table *t, const weir_record *record)
{
    const weir_stage_record *stage = &record->stage;
    table_count(t, stage->run_id);
    table_words(t, stage->name);
    table_words(t, stage->queue_name);
    table_words(t, stage->kind);
    table_count(t, stage->concurrency);
    table_count(t, stage->queue_items);
    table_count(t, stage->queue_bytes);
    table_words(t, stage->output_order);
}

static const table_column phase_columns[] = {
    { "run_id", "run", TABLE_COUNT },     PLACE_COLUMNS,
    { "start_time", "from", TABLE_WHEN }, { "end_time", "to", TABLE_WHEN },
    { "num_laps", "laps", TABLE_COUNT },
};

static void put_phase(table *t, const weir_record *record)
{
    const weir_phase_record *phase = &record->phase;
    table_count(t, phase->run_id);
    place(t, &phase->place);
    table_number(t, phase->start_time);
    table_number(t, phase->end_time);
    table_count(t, phase->num_laps);
}

static const table_column task_columns[] = {
    { "id", NULL, TABLE_COUNT },
    { "run_id", "run", TABLE_COUNT },
    { "timestamp", "time", TABLE_WHEN },
    { "elapsed", "lap", TABLE_TIME },
    { "name", "stage", TABLE_WORDS },
    PLACE_COLUMNS,
    { "num_tasks", "tasks", TABLE_COUNT },
    { "num_failures", "failed", TABLE_COUNT },
    { "num_skipped", "skipped", TABLE_COUNT },
    { "ave_time", "average", TABLE_TIME },
    { "p50_time", "p50", TABLE_TIME },
    { "p90_time", "p90", TABLE_TIME },
    { "p99_time", "p99", TABLE_TIME },
    { "max_time", "max", TABLE_TIME },
    { "failed_time", NULL, TABLE_TIME },
    { "busy_time", "busy", TABLE_TIME },
    { "wait_in_time", "input", TABLE_TIME },
    { "wait_thread_time", "thread", TABLE_TIME },
    { "wait_out_time", "room", TABLE_TIME },
    { "cpu_time", "CPU", TABLE_TIME },
};

static void put_task(table *t, const weir_record *record)
{
    const weir_task_record *task = &record->task;
    table_count(t, task->id);
    table_count(t, task->run_id);
    table_number(t, task->timestamp);
    table_number(t, task->elapsed);
    table_words(t, task->name);
    place(t, &task->place);
    table_count(t, task->num_tasks);
    table_count(t, task->num_failures);
    table_count(t, task->num_skipped);
    table_number(t, task->ave_time);
    table_number(t, task->p50_time);
    table_number(t, task->p90_time);
    table_number(t, task->p99_time);
    table_number(t, task->max_time);
    table_number(t, task->failed_time);
    table_number(t, task->busy_time);
    table_number(t, task->wait_in_time);
    table_number(t, task->wait_thread_time);
    table_number(t, task->wait_out_time);
    table_number(t, task->cpu_time);
}

static const table_column queue_columns[] = {
    { "id", NULL, TABLE_COUNT },
    { "run_id", "run", TABLE_COUNT },
    { "timestamp", "time", TABLE_WHEN },
    { "elapsed", "lap", TABLE_TIME },
    { "name", "queue", TABLE_WORDS },
    PLACE_COLUMNS,
    { "num_items", "items", TABLE_COUNT },
    { "num_put", NULL, TABLE_COUNT },
    { "capacity", "capacity", TABLE_COUNT },
    { "ave_put_time", "put", TABLE_TIME },
    { "p90_put_time", "p90", TABLE_TIME },
    { "p99_put_time", "p99", TABLE_TIME },
    { "ave_get_time", "get", TABLE_TIME },
    { "p90_get_time", "p90", TABLE_TIME },
    { "p99_get_time", "p99", TABLE_TIME },
    { "occupancy_rate", "occupied", TABLE_SHARE },
    { "ave_depth", "depth", TABLE_REAL },
    { "max_depth", "max", TABLE_COUNT },
    { "ave_bytes", "bytes", TABLE_BYTES },
    { "max_bytes", "max", TABLE_BYTES },
};

static void put_queue(table *t, const weir_record *record)
{
    const weir_queue_record *queue = &record->queue;
    table_count(t, queue->id);
    table_count(t, queue->run_id);
    table_number(t, queue->timestamp);
    table_number(t, queue->elapsed);
    table_words(t, queue->name);
    place(t, &queue->place);
    table_count(t, queue->num_items);
    table_count(t, queue->num_put);
    table_count(t, queue->capacity);
    table_number(t, queue->ave_put_time);
    table_number(t, queue->p90_put_time);
    table_number(t, queue->p99_put_time);
    table_number(t, queue->ave_get_time);
    table_number(t, queue->p90_get_time);
    table_number(t, queue->p99_get_time);
    table_number(t, queue->occupancy_rate);
    table_number(t, queue->ave_depth);
    table_count(t, queue->max_depth);
    table_number(t, queue->ave_bytes);
    table_count(t, queue->max_bytes);
}

static const table_column event_columns[] = {
    { "id", NULL, TABLE_COUNT },      { "run_id", "run", TABLE_COUNT },        { "timestamp", "time", TABLE_WHEN },
    { "name", "event", TABLE_WORDS }, { "category", "category", TABLE_WORDS }, { "detail", "detail", TABLE_WORDS },
};

static void put_event(table *t, const weir_record *record)
{
    const weir_event_record *event = &record->event;
    table_count(t, event->id);
    table_count(t, event->run_id);
    table_number(t, event->timestamp);
    table_words(t, event->name);
    table_words(t, event->category);
    table_words(t, event->detail);
}

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

static void put_failure(table *t, const weir_record *record)
{
    const weir_failure_record *failure = &record->failure;
    table_count(t, failure->id);
    table_count(t, failure->run_id);
    table_number(t, failure->timestamp);
    table_number(t, failure->elapsed);
    table_words(t, failure->name);
    table_count(t, failure->seq);
    table_words(t, failure->label);
    table_words(t, weir_status_name(failure->status));
    table_count(t, failure->library_code);
    table_words(t, failure->message);
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
};

static void known_count(table *t, int64_t count)
{
    if (count < 0)
        table_nothing(t);
    else
        table_count(t, count);
}

static void put_item(table *t, const weir_record *record)
{
    const weir_item_record *item = &record->item;
    table_count(t, item->id);
    table_count(t, item->run_id);
    table_number(t, item->timestamp);
    table_number(t, item->elapsed);
    table_words(t, item->name);
    table_count(t, item->seq);
    table_words(t, item->label);
    table_words(t, item->codec);
    known_count(t, item->width);
    known_count(t, item->height);
    known_count(t, item->num_frames);
    known_count(t, item->size_bytes);
    when(t, item->open_time, item->open_time >= 0);
    when(t, item->demux_time, item->demux_time >= 0);
    when(t, item->decode_time, item->decode_time >= 0);
    when(t, item->scale_time, item->scale_time >= 0);
}

static const table_column node_columns[] = {
    { "node_id", "node", TABLE_WORDS },
    { "num_runs", "runs", TABLE_COUNT },
    { "started", "first started", TABLE_WHEN },
    { "ended", "last ended", TABLE_WHEN },
};

static void put_node(table *t, const weir_record *record)
{
    const weir_node_record *node = &record->node;
    table_words(t, node->node_id);
    table_count(t, node->num_runs);
    when(t, node->started, true);
    when(t, node->ended, node->ended != 0);
}

typedef struct kind_table {
    weir_record_kind kind;
    const table_column *columns;
    size_t num_columns;
    void (*put)(table *t, const weir_record *record);
} kind_table;

#define COLUMNS(columns) columns, sizeof(columns) / sizeof((columns)[0])

const char *const record_table_names[] = { "runs",   "nodes",  "stages",   "phases", "tasks",
                                           "queues", "events", "failures", "items",  NULL };

static const kind_table kind_tables[] = {
    { WEIR_RECORD_RUN, COLUMNS(run_columns), put_run },
    { WEIR_RECORD_NODE, COLUMNS(node_columns), put_node },
    { WEIR_RECORD_STAGE, COLUMNS(stage_columns), put_stage },
    { WEIR_RECORD_PHASE, COLUMNS(phase_columns), put_phase },
    { WEIR_RECORD_TASK, COLUMNS(task_columns), put_task },
    { WEIR_RECORD_QUEUE, COLUMNS(queue_columns), put_queue },
    { WEIR_RECORD_EVENT, COLUMNS(event_columns), put_event },
    { WEIR_RECORD_FAILURE, COLUMNS(failure_columns), put_failure },
    { WEIR_RECORD_ITEM, COLUMNS(item_columns), put_item },
};

_Static_assert(sizeof kind_tables / sizeof kind_tables[0] + 1 ==
                   sizeof record_table_names / sizeof record_table_names[0],
               "a table for each name");

int record_table(FILE *out, table_format format, int which, weir_reader *reader, const weir_filter *filter,
                 int64_t *num_rows, weir_error *error)
{
    const kind_table *wanted = &kind_tables[which];
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(reader, wanted->kind, filter, &query, error);
    if (status != WEIR_OK)
        return status;
    table *t = table_begin(out, format, wanted->columns, wanted->num_columns);
    if (!t)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        wanted->put(t, record);
    if (num_rows)
        *num_rows = (int64_t)table_rows(t);
    table_end(t);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}
