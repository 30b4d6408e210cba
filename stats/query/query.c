/* Single records: for each kind, the columns and how a row is read. */
#include <weir/query.h>

#include <stdlib.h>
#include <string.h>

#include "database_path.h"
#include "database_reader.h"
#include "lap_rows.h"
#include "phase_spans.h"
#include "schema.h"
#include "sql_select.h"

typedef struct record_kind record_kind;

struct weir_query {
    weir_reader *reader;
    const record_kind *kind;
    weir_record record;
    sqlite3_stmt *statement; /* NULL = at the end, or phases */
    weir_marks marks;

    /* laps */
    weir_histogram times[WEIR_MAX_HISTOGRAMS]; /* of the record */
    bool tolerates_damage;

    /* WEIR_RECORD_PHASE */
    weir_phase_spans phases;
    int64_t num_left; /* up to the filter's limit */
};

struct record_kind {
    weir_sql_selection selection;
    int (*read)(weir_query *query, sqlite3_stmt *row, weir_error *error);
};

/* -- laps */

void weir_query_tolerate_damage(weir_query *query)
{
    query->tolerates_damage = true;
}

static weir_subject subject_of(weir_record_kind kind)
{
    return kind < WEIR_RECORD_PROCESS ? (weir_subject)kind : WEIR_SUBJECT_PROCESS + (kind - WEIR_RECORD_PROCESS);
}

static int read_lap(weir_query *query, sqlite3_stmt *row, weir_error *error)
{
    weir_lap_record *lap = &query->record.lap;
    weir_subject subject = subject_of(query->record.kind);
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    weir_histogram *times[WEIR_MAX_HISTOGRAMS];
    bool has[WEIR_MAX_HISTOGRAMS];
    size_t count = weir_subject_histograms(subject, histograms);
    weir_lap_read(subject, row, lap);
    for (size_t i = 0; i < count; i++) {
        times[i] = &query->times[i];
        weir_histogram_clear(times[i]);
    }
    const char *damaged = weir_lap_add_histograms(subject, row, times, has);
    if (damaged && !query->tolerates_damage)
        return weir_error_set(error, WEIR_EDATA, 0, "database %s is damaged: row %lld of %s has no valid %s",
                              weir_path_for_message(query->reader->path).text, (long long)lap->id,
                              weir_lap_tables[subject].name, damaged);
    for (size_t i = 0; i < count; i++)
        *weir_metric_histogram_at(histograms[i].metric, &lap->metrics) =
            has[i] && !(damaged && strcmp(damaged, histograms[i].metric->name) == 0) ? times[i] : NULL;
    return weir_lap_find_phase(&query->marks, lap, error);
}

/* -- points in time */

static int read_event(weir_query *query, sqlite3_stmt *row, weir_error *error)
{
    (void)error;
    query->record.event = (weir_event_record){
        .id = sqlite3_column_int64(row, 0),
        .run_id = sqlite3_column_int64(row, 1),
        .unix_ns = weir_column_ns(row, 2),
        .name = weir_column_text(row, 3),
        .category = weir_column_text(row, 4),
        .detail = weir_column_text(row, 5),
    };
    return WEIR_OK;
}

static int read_failure(weir_query *query, sqlite3_stmt *row, weir_error *error)
{
    (void)error;
    query->record.failure = (weir_failure_record){
        .id = sqlite3_column_int64(row, 0),
        .run_id = sqlite3_column_int64(row, 1),
        .unix_ns = weir_column_ns(row, 2),
        .run_ns = weir_column_ns(row, 3),
        .name = weir_column_text(row, 4),
        .seq = sqlite3_column_int64(row, 5),
        .label = weir_column_text(row, 6),
        .status = sqlite3_column_int(row, 7),
        .library_code = sqlite3_column_int(row, 8),
        .message = weir_column_text(row, 9),
    };
    return WEIR_OK;
}

/* In the database, 0 means not known. */
static int64_t count_or_unknown(sqlite3_stmt *row, int column)
{
    int64_t count = sqlite3_column_int64(row, column);
    return count ? count : -1;
}

static int64_t time_or_unknown(sqlite3_stmt *row, int column)
{
    int64_t ns = weir_column_ns(row, column);
    return ns > 0 ? ns : -1;
}

static int read_item(weir_query *query, sqlite3_stmt *row, weir_error *error)
{
    (void)error;
    query->record.item = (weir_item_record){
        .id = sqlite3_column_int64(row, 0),
        .run_id = sqlite3_column_int64(row, 1),
        .unix_ns = weir_column_ns(row, 2),
        .run_ns = weir_column_ns(row, 3),
        .name = weir_column_text(row, 4),
        .seq = sqlite3_column_int64(row, 5),
        .label = weir_column_text(row, 6),
        .codec = weir_column_text(row, 7),
        .width = count_or_unknown(row, 8),
        .height = count_or_unknown(row, 9),
        .num_frames = count_or_unknown(row, 10),
        .size_bytes = count_or_unknown(row, 11),
        .open_ns = time_or_unknown(row, 12),
        .demux_ns = time_or_unknown(row, 13),
        .decode_ns = time_or_unknown(row, 14),
        .scale_ns = time_or_unknown(row, 15),
    };
    return WEIR_OK;
}

/* -- runs, stages and nodes */

static int read_run(weir_query *query, sqlite3_stmt *row, weir_error *error)
{
    (void)error;
    weir_reader_read_run(row, &query->record.run);
    return WEIR_OK;
}

static int read_stage(weir_query *query, sqlite3_stmt *row, weir_error *error)
{
    (void)error;
    query->record.stage = (weir_stage_record){
        .run_id = sqlite3_column_int64(row, 0),
        .name = weir_column_text(row, 1),
        .queue_name = weir_column_text(row, 2),
        .kind = weir_column_text(row, 3),
        .output_order = weir_column_text(row, 4),
        .concurrency = sqlite3_column_int64(row, 5),
        .queue_items = sqlite3_column_int64(row, 6),
        .queue_bytes = sqlite3_column_int64(row, 7),
        .threads = sqlite3_column_int64(row, 8),
        .inputs = weir_column_text(row, 9),
        .merge_order = weir_column_text(row, 10),
    };
    return WEIR_OK;
}

static int read_node(weir_query *query, sqlite3_stmt *row, weir_error *error)
{
    (void)error;
    query->record.node = (weir_node_record){
        .node_id = weir_column_text(row, 0),
        .num_runs = sqlite3_column_int64(row, 1),
        .started_unix_ns = weir_column_ns(row, 2),
        .ended_unix_ns = weir_column_ns(row, 3),
    };
    return WEIR_OK;
}

/* -- the kinds */

/* Kinds whose columns depend on the database have none here. */
static const record_kind kinds[] = {
    [WEIR_RECORD_TASK] = { { .kind = WEIR_ROWS_LAPS }, read_lap },
    [WEIR_RECORD_FLOW] = { { .kind = WEIR_ROWS_LAPS }, read_lap },
    [WEIR_RECORD_QUEUE] = { { .kind = WEIR_ROWS_LAPS }, read_lap },
    [WEIR_RECORD_POOL] = { { .kind = WEIR_ROWS_LAPS }, read_lap },
    [WEIR_RECORD_PROCESS] = { { .kind = WEIR_ROWS_LAPS }, read_lap },
    [WEIR_RECORD_MACHINE] = { { .kind = WEIR_ROWS_LAPS }, read_lap },
    [WEIR_RECORD_EVENT] = { { .kind = WEIR_ROWS_POINTS,
                              .table = "event_stats",
                              .columns = "t.id, t.run_id, t.timestamp, t.event_name, t.category, t.detail",
                              .name_column = "t.event_name" },
                            read_event },
    [WEIR_RECORD_FAILURE] = { { .kind = WEIR_ROWS_POINTS,
                                .table = "task_failures",
                                .columns = "t.id, t.run_id, t.timestamp, t.elapsed, t.name, t.seq, t.label, "
                                           "t.status, t.library_code, t.message",
                                .name_column = "t.name",
                                .length = "t.elapsed" },
                              read_failure },
    [WEIR_RECORD_ITEM] = { { .kind = WEIR_ROWS_POINTS,
                             .table = "item_stats",
                             .name_column = "t.name",
                             .length = "t.elapsed" },
                           read_item },
    [WEIR_RECORD_RUN] = { { .kind = WEIR_ROWS_RUNS, .table = "run" }, read_run },
    [WEIR_RECORD_STAGE] = { { .kind = WEIR_ROWS_STAGES, .table = "stage", .name_column = "t.name" }, read_stage },
    [WEIR_RECORD_NODE] = { { .kind = WEIR_ROWS_NODES,
                             .table = "run",
                             .columns = "t.node_id, count(*), min(t.started), "
                                        "CASE WHEN count(t.ended) = count(*) THEN max(t.ended) END" },
                           read_node },
    [WEIR_RECORD_PHASE] = { { .kind = WEIR_ROWS_LAPS }, NULL },
};

#define STAGE_COLUMNS \
    "t.run_id, t.name, t.name || '_queue', t.kind, t.output_order, t.concurrency, t.queue_items, t.queue_bytes, "

/* The columns of item_stats for a record; columns that the table lacks are NULL. */
static const char *const item_columns[] = { "id",        "run_id",     "timestamp",   "elapsed",
                                            "name",      "seq",        "label",       "codec",
                                            "width",     "height",     "num_frames",  "size_bytes",
                                            "open_time", "demux_time", "decode_time", "scale_time" };

/* "t.id, t.run_id, …", or *columns is NULL: no such table. Returns a SQLITE_ code. */
static int find_item_columns(weir_reader *reader, char **columns)
{
    sqlite3_str *text = sqlite3_str_new(reader->db);
    int num_found = 0, code = SQLITE_OK;
    for (size_t i = 0; i < sizeof item_columns / sizeof item_columns[0] && code == SQLITE_OK; i++) {
        bool found = false;
        code = weir_table_has_column(reader->db, "item_stats", item_columns[i], &found);
        num_found += found;
        sqlite3_str_appendf(text, "%s%s%s", i ? ", " : "", found ? "t." : "NULL AS ", item_columns[i]);
    }
    *columns = sqlite3_str_finish(text);
    if (num_found == 0) {
        sqlite3_free(*columns);
        *columns = NULL;
    }
    return code;
}

static int begin_items(weir_query *query, const weir_filter *filter, weir_error *error)
{
    weir_sql_selection selection = query->kind->selection;
    char *columns;
    int code = find_item_columns(query->reader, &columns);
    if (code != SQLITE_OK)
        return weir_reader_error(query->reader, code, error);
    if (!columns)
        return WEIR_OK; /* no table, no records */
    selection.columns = columns;
    int status = weir_select(query->reader, &selection, filter, &query->statement, error);
    sqlite3_free(columns);
    return status;
}

static int begin(weir_query *query, const weir_filter *filter, weir_error *error)
{
    weir_sql_selection selection = query->kind->selection;
    switch (query->record.kind) {
    case WEIR_RECORD_TASK:
    case WEIR_RECORD_FLOW:
    case WEIR_RECORD_QUEUE:
    case WEIR_RECORD_POOL:
    case WEIR_RECORD_PROCESS:
    case WEIR_RECORD_MACHINE:
        return weir_lap_select(query->reader, subject_of(query->record.kind), filter, false, &query->statement,
                               error);
    case WEIR_RECORD_PHASE:
        query->num_left = filter->limit > 0 ? filter->limit : INT64_MAX;
        return weir_phase_spans_begin(&query->phases, query->reader, filter, error);
    case WEIR_RECORD_ITEM: return begin_items(query, filter, error);
    case WEIR_RECORD_RUN: selection.columns = weir_run_columns(query->reader); break;
    case WEIR_RECORD_STAGE:
        selection.columns = query->reader->schema >= WEIR_SCHEMA_WITH_WIRING ? STAGE_COLUMNS
                                "t.threads, t.inputs, t.merge_order"
                                                                             : STAGE_COLUMNS "0, '', ''";
        break;
    default: break;
    }
    return weir_select(query->reader, &selection, filter, &query->statement, error);
}

int weir_query_begin(weir_reader *reader, weir_record_kind kind, const weir_filter *filter, weir_query **begun,
                     weir_error *error)
{
    if (!reader || !begun)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter resolved = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    *begun = NULL;
    if ((size_t)kind >= sizeof kinds / sizeof kinds[0])
        return weir_error_set(error, WEIR_EINVAL, 0, "no such kind of record: %d", (int)kind);
    weir_query *query = calloc(1, sizeof *query);
    if (!query)
        return weir_reader_out_of_memory(error);
    query->reader = query->marks.reader = reader;
    query->kind = &kinds[kind];
    query->record.kind = kind;
    int status = weir_reader_resolve_run(reader, &resolved.run_id, error);
    if (status == WEIR_OK)
        status = begin(query, &resolved, error);
    if (status == WEIR_OK)
        *begun = query;
    else
        weir_query_end(query);
    return status;
}

static int next_phase(weir_query *query, weir_error *error)
{
    if (query->num_left == 0)
        return WEIR_EOF;
    query->num_left--;
    return weir_phase_spans_next(&query->phases, &query->record.phase, error);
}

static int next_row(weir_query *query, weir_error *error)
{
    int code = query->statement ? sqlite3_step(query->statement) : SQLITE_DONE;
    if (code == SQLITE_ROW)
        return query->kind->read(query, query->statement, error);
    if (code != SQLITE_DONE)
        return weir_reader_error(query->reader, code, error);
    sqlite3_finalize(query->statement); /* another step would restart it */
    query->statement = NULL;
    return WEIR_EOF;
}

int weir_query_next(weir_query *query, const weir_record **record, weir_error *error)
{
    if (!query || !record)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = query->kind->read ? next_row(query, error) : next_phase(query, error);
    *record = status == WEIR_OK ? &query->record : NULL;
    return status;
}

void weir_query_end(weir_query *query)
{
    if (!query)
        return;
    sqlite3_finalize(query->statement);
    weir_marks_free(&query->marks);
    weir_phase_spans_end(&query->phases);
    free(query);
}
