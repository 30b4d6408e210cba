/* Single records: for each kind, the columns and how a row is read. */
#include <weir/query.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "stats/read/lap_rows.h"
#include "stats/read/open_recording.h"
#include "stats/read/phase_spans.h"
#include "stats/read/record_selections.h"
#include "stats/record/record.h"
#include "stats/schema/database_path.h"
#include "stats/schema/record_tables.h"

struct weir_query {
    weir_recording *recording;
    weir_record record;
    sqlite3_stmt *statement; /* NULL = at the end */

    /* laps */
    weir_histogram times[WEIR_MAX_HISTOGRAMS]; /* of the record */
};

/* -- laps */

weir_subject weir__subject_of_laps(weir_record_kind kind)
{
    return kind < WEIR_RECORD_PROCESS ? (weir_subject)kind : WEIR_SUBJECT_PROCESS + (kind - WEIR_RECORD_PROCESS);
}

static int read_lap(weir_query *query, sqlite3_stmt *row, weir_error *error)
{
    weir_lap_record *lap = &query->record.lap;
    weir_subject subject = weir__subject_of_laps(query->record.kind);
    weir__lap_read(subject, row, lap);
    const char *damaged = query->recording->skips_histograms
                              ? NULL
                              : weir__lap_read_histograms(subject, row, query->times, &lap->metrics);
    if (damaged)
        return weir_error_set(error, WEIR_EDATA, 0, "database %s is damaged: row %lld of %s has no valid %s",
                              weir__path_for_message(query->recording->path).text, (long long)lap->id,
                              weir__lap_tables[subject].name, damaged);
    return WEIR_OK;
}

/* -- single rows */

static void read_row(weir_query *query, sqlite3_stmt *row)
{
    weir__record_read(row, query->record.kind, &query->record);
    weir_content_record *content = &query->record.content;
    if (query->record.kind == WEIR_RECORD_CONTENT && !*content->path)
        content->path = query->recording->path;
}

/* -- the contents */

/* The tables with a name and a time, by whatever columns they have; and the files that events name and that exist. */
static int begin_contents(weir_query *query, const weir_filter *filter, weir_error *error)
{
    static const char files[] =
        " UNION ALL SELECT 'trace', '', r.node_id, '', '', count(*), min(r.started), max(coalesce(r.ended, "
        "t.timestamp)),"
        " f.value"
        " FROM event_stats t JOIN run r USING (run_id), json_each(weir_existing_files(t.detail)) f WHERE "
        "t.event_name = 'trace_file' AND"
        " (?1 = 0 OR run_id = ?1) AND (?2 IS NULL OR weir_name(?2, 'trace')) GROUP BY f.value, r.node_id";
    const char *tables[WEIR_NUM_SUBJECTS + 4] = { "event_stats", "task_failures", "item_stats", "stack_stats" };
    weir_recording *recording = query->recording;
    sqlite3_str *sql = sqlite3_str_new(recording->db);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        tables[subject + 4] = weir__lap_tables[subject].name;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        bool is_lap_table = i >= 3;
        const char *name = i == 0 ? "event_name" : "name";
        sqlite3_str_appendf(
            sql,
            "%s SELECT '%s', t.%s, " WEIR_NODE_OF_LAP " AS node, %s AS mode, %s AS phase, count(*),"
            " min(t.timestamp%s), max(t.timestamp), '' FROM %s t "
            "WHERE (?1 = 0 OR t.run_id = ?1) AND (?2 IS NULL OR weir_name(?2, t.%s)) GROUP BY t.%s, 3, 4, 5",
            i ? " UNION ALL" : "", tables[i], name, is_lap_table ? "t.mode" : "''",
            is_lap_table ? WEIR_PHASE_OF_LAP : "''", i ? " - t.elapsed" : "", tables[i], name, name);
    }
    sqlite3_str_appendall(sql, files);
    char *text = sqlite3_str_finish(sql);
    int code = text ? sqlite3_prepare_v2(recording->db, text, -1, &query->statement, NULL) : SQLITE_NOMEM;
    if (query->statement) {
        sqlite3_bind_int64(query->statement, 1, filter->run_id);
        sqlite3_bind_text(query->statement, 2, filter->name, -1, SQLITE_TRANSIENT);
    }
    weir__recording_note_sql(recording, query->statement);
    sqlite3_free(text);
    return code == SQLITE_OK ? WEIR_OK : weir__recording_error(recording, code, error);
}

/* -- the kinds */

static const weir_sql_selection phases = {
    .kind = WEIR_ROWS_LAPS,
    .table = "queue_stats",
    .begin = "lap AS (",
    .condition = "AND " WEIR_LAPS_OF_ONE_QUEUE,
    .end = "), " WEIR_SPANS(WEIR_WITH_A_PLACE_OR_GAP) " SELECT * FROM span ORDER BY run_id, number LIMIT"
                                                      " CASE :limit WHEN 0 THEN -1 ELSE :limit END",
};

const weir_sql_selection weir__record_selections[WEIR_NUM_RECORD_KINDS] = {
    [WEIR_RECORD_TASK] = { .kind = WEIR_ROWS_LAPS, .table = "task_stats", .name_column = "t.name" },
    [WEIR_RECORD_EVENT] = { .kind = WEIR_ROWS_POINTS, .name_column = "t.event_name" },
    [WEIR_RECORD_FAILURE] = { .kind = WEIR_ROWS_POINTS, .name_column = "t.name", .length = "t.elapsed" },
    [WEIR_RECORD_ITEM] = { .kind = WEIR_ROWS_POINTS, .name_column = "t.name", .length = "t.elapsed" },
    [WEIR_RECORD_RUN] = { .kind = WEIR_ROWS_RUNS },
    [WEIR_RECORD_STAGE] = { .kind = WEIR_ROWS_STAGES, .name_column = "t.name" },
    [WEIR_RECORD_NODE] = { .kind = WEIR_ROWS_NODES },
    [WEIR_RECORD_STACK] = { .kind = WEIR_ROWS_STAGES },
    [WEIR_RECORD_SAMPLES] = { .kind = WEIR_ROWS_LAPS, .name_column = "t.name" },
};

static int begin_rows(weir_query *query, const weir_filter *filter, weir_error *error)
{
    weir_sql_selection selection = weir__record_selections[query->record.kind];
    char *columns = weir__record_expressions(query->record.kind);
    selection.table = weir__record_table_of(query->record.kind)->name;
    selection.columns = columns ? columns : "no_such_column"; /* an error */
    int status = weir__select(query->recording, &selection, filter, &query->statement, error);
    sqlite3_free(columns);
    return status;
}

static int begin_query(weir_query *query, const weir_filter *filter, weir_error *error)
{
    if (weir__record_is_lap(query->record.kind))
        return weir__lap_select(query->recording, weir__subject_of_laps(query->record.kind), filter, NULL,
                                &query->statement, error);
    if (query->record.kind == WEIR_RECORD_CONTENT)
        return begin_contents(query, filter, error);
    if (query->record.kind != WEIR_RECORD_PHASE)
        return begin_rows(query, filter, error);
    weir_filter laps = *filter; /* of one queue, whatever its name */
    weir_sql_selection selection = phases;
    laps.name = NULL;
    laps.after_id = 0;
    selection.columns = WEIR_LAP_COLUMNS("t.mode", WEIR_PHASE_OF_LAP);
    return weir__select(query->recording, &selection, &laps, &query->statement, error);
}

int weir_query_begin(weir_recording *recording, weir_record_kind kind, const weir_filter *filter, weir_query **begun,
                     weir_error *error)
{
    if (!recording || !begun)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter resolved = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    *begun = NULL;
    if ((size_t)kind >= WEIR_NUM_RECORD_KINDS)
        return weir_error_set(error, WEIR_EINVAL, 0, "no such kind of record: %d", (int)kind);
    weir_query *query = calloc(1, sizeof *query);
    if (!query)
        return weir__recording_out_of_memory(error);
    query->recording = recording;
    query->record.kind = kind;
    int status = weir__recording_resolve_run(recording, &resolved.run_id, error);
    if (status == WEIR_OK)
        status = begin_query(query, &resolved, error);
    if (status == WEIR_OK)
        *begun = query;
    else
        weir_query_end(query);
    return status;
}

static int next_row(weir_query *query, weir_error *error)
{
    int code = query->statement ? sqlite3_step(query->statement) : SQLITE_DONE;
    if (code == SQLITE_ROW && weir__record_is_lap(query->record.kind))
        return read_lap(query, query->statement, error);
    if (code == SQLITE_ROW) {
        read_row(query, query->statement);
        return WEIR_OK;
    }
    if (code != SQLITE_DONE)
        return weir__recording_error(query->recording, code, error);
    sqlite3_finalize(query->statement); /* another step would restart it */
    query->statement = NULL;
    return WEIR_EOF;
}

int weir_query_next(weir_query *query, const weir_record **record, weir_error *error)
{
    if (!query || !record)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = next_row(query, error);
    *record = status == WEIR_OK ? &query->record : NULL;
    return status;
}

void weir_query_end(weir_query *query)
{
    if (!query)
        return;
    sqlite3_finalize(query->statement);
    free(query);
}

/* -- copies of records */

static int keep_record(void *self, const weir_record *record, weir_error *error)
{
    weir_records *records = self;
    const weir_record **all = weir__array_grow(records->all, records->count, sizeof *all);
    weir_record_entry *entry = all ? weir__record_entry_of(record) : NULL;
    records->all = all ? all : records->all;
    if (!entry)
        return weir__recording_out_of_memory(error);
    all[records->count++] = &entry->record;
    return WEIR_OK;
}

int weir_records_read(weir_recording *recording, weir_record_kind kind, const weir_filter *filter,
                      weir_records *records, weir_error *error)
{
    if (!recording || !records)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *records = (weir_records){ 0 };
    int status = weir_recording_each(recording, kind, filter, keep_record, records, error);
    if (status != WEIR_OK)
        weir_records_free(records);
    return status;
}

void weir_records_free(weir_records *records)
{
    for (size_t i = 0; records && i < records->count; i++)
        free((void *)(uintptr_t)records->all[i]); /* the first member of an entry */
    if (records)
        free(records->all);
    if (records)
        *records = (weir_records){ 0 };
}

/* -- laps of all subjects */

int weir_recording_each_lap(weir_recording *recording, const weir_filter *filter, weir_record_function *each,
                            void *self, weir_error *error)
{
    weir_query *queries[WEIR_NUM_SUBJECTS] = { 0 };
    const weir_record *next[WEIR_NUM_SUBJECTS] = { 0 }; /* NULL = no more */
    int status = each ? WEIR_OK : weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    for (int i = 0; i < WEIR_NUM_SUBJECTS && status == WEIR_OK; i++) {
        status = weir_query_begin(recording, weir_record_kind_of((weir_subject)i), filter, &queries[i], error);
        if (status == WEIR_OK && (status = weir_query_next(queries[i], &next[i], error)) == WEIR_EOF)
            status = WEIR_OK;
    }
    while (status == WEIR_OK) {
        int first = -1;
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
    return status == WEIR_EOF ? WEIR_OK : status;
}
