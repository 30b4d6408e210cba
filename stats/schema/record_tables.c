#include "stats/schema/record_tables.h"

#include <math.h>
#include <string.h>

#include "common/utf8.h"
#include "stats/schema/schema.h"

#define FIELD(member) offsetof(weir_record, member)
#define TABLE(name, columns) \
    { \
        name, columns, sizeof(columns) / sizeof(columns)[0] \
    }

static const weir_column events[] = {
    { "id", WEIR_FIELD_INT64, FIELD(event.id), NULL },
    { "timestamp", WEIR_FIELD_TIME, FIELD(event.unix_ns), NULL },
    { "event_name", WEIR_FIELD_TEXT, FIELD(event.name), NULL },
    { "run_id", WEIR_FIELD_INT64, FIELD(event.run_id), NULL },
    { "category", WEIR_FIELD_TEXT, FIELD(event.category), NULL },
    { "detail", WEIR_FIELD_TEXT, FIELD(event.detail), NULL },
};

static const weir_column failures[] = {
    { "id", WEIR_FIELD_INT64, FIELD(failure.id), NULL },
    { "timestamp", WEIR_FIELD_TIME, FIELD(failure.unix_ns), NULL },
    { "run_id", WEIR_FIELD_INT64, FIELD(failure.run_id), NULL },
    { "name", WEIR_FIELD_TEXT, FIELD(failure.name), NULL },
    { "seq", WEIR_FIELD_INT64, FIELD(failure.seq), NULL },
    { "label", WEIR_FIELD_TEXT, FIELD(failure.label), NULL },
    { "status", WEIR_FIELD_INT, FIELD(failure.status), NULL },
    { "library_code", WEIR_FIELD_INT, FIELD(failure.library_code), NULL },
    { "message", WEIR_FIELD_TEXT, FIELD(failure.message), NULL },
    { "elapsed", WEIR_FIELD_TIME, FIELD(failure.run_ns), NULL },
    { "identity", WEIR_FIELD_TEXT, FIELD(failure.identity), NULL },
    { "occurrence", WEIR_FIELD_INT64, FIELD(failure.occurrence), NULL },
};

static const weir_column items[] = {
    { "id", WEIR_FIELD_INT64, FIELD(item.id), NULL },
    { "timestamp", WEIR_FIELD_TIME, FIELD(item.unix_ns), NULL },
    { "run_id", WEIR_FIELD_INT64, FIELD(item.run_id), NULL },
    { "name", WEIR_FIELD_TEXT, FIELD(item.name), NULL },
    { "seq", WEIR_FIELD_INT64, FIELD(item.seq), NULL },
    { "label", WEIR_FIELD_TEXT, FIELD(item.label), NULL },
    { "elapsed", WEIR_FIELD_TIME, FIELD(item.run_ns), NULL },
    { "codec", WEIR_FIELD_TEXT, FIELD(item.codec), NULL },
    { "width", WEIR_FIELD_KNOWN_INT, FIELD(item.width), NULL },
    { "height", WEIR_FIELD_KNOWN_INT, FIELD(item.height), NULL },
    { "num_frames", WEIR_FIELD_KNOWN_INT, FIELD(item.num_frames), NULL },
    { "size_bytes", WEIR_FIELD_KNOWN_INT, FIELD(item.size_bytes), NULL },
    { "open_time", WEIR_FIELD_KNOWN_TIME, FIELD(item.open_ns), NULL },
    { "demux_time", WEIR_FIELD_KNOWN_TIME, FIELD(item.demux_ns), NULL },
    { "decode_time", WEIR_FIELD_KNOWN_TIME, FIELD(item.decode_ns), NULL },
    { "scale_time", WEIR_FIELD_KNOWN_TIME, FIELD(item.scale_ns), NULL },
    { "chosen", WEIR_FIELD_TEXT, FIELD(item.chosen), NULL },
    { "num_missing", WEIR_FIELD_INT64, FIELD(item.num_missing), NULL },
    { "num_errors", WEIR_FIELD_INT64, FIELD(item.num_errors), NULL },
    { "identity", WEIR_FIELD_TEXT, FIELD(item.identity), NULL },
    { "occurrence", WEIR_FIELD_INT64, FIELD(item.occurrence), NULL },
    { "parts", WEIR_FIELD_TEXT, FIELD(item.parts), NULL },
};

/* The parts of items that have a column, that of their field. Times are in nanoseconds here as there. */
static const struct {
    const char *name;
    weir_part_kind kind;
    size_t offset;
} item_parts[] = {
    { "codec", WEIR_PART_TEXT, FIELD(item.codec) },
    { "width", WEIR_PART_COUNT, FIELD(item.width) },
    { "height", WEIR_PART_COUNT, FIELD(item.height) },
    { "num_frames", WEIR_PART_COUNT, FIELD(item.num_frames) },
    { "size_bytes", WEIR_PART_BYTES, FIELD(item.size_bytes) },
    { "open", WEIR_PART_TIME, FIELD(item.open_ns) },
    { "demux", WEIR_PART_TIME, FIELD(item.demux_ns) },
    { "decode", WEIR_PART_TIME, FIELD(item.decode_ns) },
    { "scale", WEIR_PART_TIME, FIELD(item.scale_ns) },
    { "num_missing", WEIR_PART_COUNT, FIELD(item.num_missing) },
    { "num_errors", WEIR_PART_COUNT, FIELD(item.num_errors) },
};

static const weir_column runs[] = {
    { "run_id", WEIR_FIELD_INT64, FIELD(run.run_id), NULL },
    { "node_id", WEIR_FIELD_TEXT, FIELD(run.node_id), NULL },
    { "rank", WEIR_FIELD_INT, FIELD(run.rank), NULL },
    { "pid", WEIR_FIELD_INT64, FIELD(run.pid), NULL },
    { "started", WEIR_FIELD_TIME, FIELD(run.started_unix_ns), NULL },
    { "ended", WEIR_FIELD_TIME, FIELD(run.ended_unix_ns), NULL },
    { "has_ended", WEIR_FIELD_KNOWN, FIELD(run.has_ended), "t.ended IS NOT NULL" },
    { "status", WEIR_FIELD_INT, FIELD(run.status), NULL },
    { "threads", WEIR_FIELD_INT64, FIELD(run.threads), NULL },
    { "command", WEIR_FIELD_TEXT, FIELD(run.command), NULL },
    { "version", WEIR_FIELD_TEXT, FIELD(run.version), NULL },
    { "entries_lost", WEIR_FIELD_INT64, FIELD(run.entries_lost), NULL },
    { "machine", WEIR_FIELD_TEXT, FIELD(run.machine), NULL },
    { "world", WEIR_FIELD_INT, FIELD(run.world), NULL },
    { "job", WEIR_FIELD_TEXT, FIELD(run.job), NULL },
};

static const weir_column stages[] = {
    { "run_id", WEIR_FIELD_INT64, FIELD(stage.run_id), NULL },
    { "name", WEIR_FIELD_TEXT, FIELD(stage.name), NULL },
    { "kind", WEIR_FIELD_TEXT, FIELD(stage.kind), NULL },
    { "concurrency", WEIR_FIELD_INT64, FIELD(stage.concurrency), NULL },
    { "queue_items", WEIR_FIELD_INT64, FIELD(stage.queue_items), NULL },
    { "queue_bytes", WEIR_FIELD_INT64, FIELD(stage.queue_bytes), NULL },
    { "output_order", WEIR_FIELD_TEXT, FIELD(stage.output_order), NULL },
    { "threads", WEIR_FIELD_INT64, FIELD(stage.threads), NULL },
    { "inputs", WEIR_FIELD_TEXT, FIELD(stage.inputs), NULL },
    { "merge_order", WEIR_FIELD_TEXT, FIELD(stage.merge_order), NULL },
    { "look_ahead_items", WEIR_FIELD_INT64, FIELD(stage.look_ahead_items), NULL },
    { "queue_name", WEIR_FIELD_TEXT, FIELD(stage.queue_name), "t.name || '_queue'" },
};

static const weir_column nodes[] = {
    { "node_id", WEIR_FIELD_TEXT, FIELD(node.node_id), NULL },
    { "num_runs", WEIR_FIELD_INT64, FIELD(node.num_runs), "count(*)" },
    { "started", WEIR_FIELD_TIME, FIELD(node.started_unix_ns), "min(t.started)" },
    { "ended", WEIR_FIELD_TIME, FIELD(node.ended_unix_ns),
      "CASE WHEN count(t.ended) = count(*) THEN max(t.ended) END" },
};

static const weir_column laps[] = {
    { "timestamp", WEIR_FIELD_TIME, FIELD(lap.end_unix_ns), NULL },
    { "name", WEIR_FIELD_TEXT, FIELD(lap.name), NULL },
    { "elapsed", WEIR_FIELD_TIME, FIELD(lap.elapsed_ns), NULL },
    { "run_id", WEIR_FIELD_INT64, FIELD(lap.run_id), NULL },
    { "mode", WEIR_FIELD_TEXT, FIELD(lap.position.mode), NULL },
    { "phase", WEIR_FIELD_TEXT, FIELD(lap.position.phase), NULL },
    { "first_step", WEIR_FIELD_STEP, FIELD(lap.position.first_step), NULL },
    { "last_step", WEIR_FIELD_STEP, FIELD(lap.position.last_step), NULL },
    { "suspended_time", WEIR_FIELD_TIME, FIELD(lap.suspended_ns), NULL },
    { "num_joined", WEIR_FIELD_INT64, FIELD(lap.num_joined), NULL },
    { "kind", WEIR_FIELD_TEXT, FIELD(lap.kind), NULL },
    { "capacity", WEIR_FIELD_INT64, FIELD(lap.capacity), NULL },
    { "num_threads", WEIR_FIELD_INT64, FIELD(lap.capacity), NULL },
    { "num_cpus", WEIR_FIELD_INT64, FIELD(lap.capacity), NULL },
};

/* In the order of the columns of WEIR_SPANS (phase_spans.h). */
static const weir_column phases[] = {
    { "run_id", WEIR_FIELD_INT64, FIELD(phase.run_id), NULL },
    { "mode", WEIR_FIELD_TEXT, FIELD(phase.position.mode), NULL },
    { "phase", WEIR_FIELD_TEXT, FIELD(phase.position.phase), NULL },
    { "first_step", WEIR_FIELD_INT64, FIELD(phase.position.first_step), NULL },
    { "last_step", WEIR_FIELD_INT64, FIELD(phase.position.last_step), NULL },
    { "start", WEIR_FIELD_TIME, FIELD(phase.start_unix_ns), NULL },
    { "end", WEIR_FIELD_TIME, FIELD(phase.end_unix_ns), NULL },
    { "num_laps", WEIR_FIELD_INT64, FIELD(phase.num_laps), NULL },
};

/* In the order of the statement in query.c. */
static const weir_column contents[] = {
    { "table", WEIR_FIELD_TEXT, FIELD(content.table), NULL },
    { "name", WEIR_FIELD_TEXT, FIELD(content.name), NULL },
    { "node_id", WEIR_FIELD_TEXT, FIELD(content.node_id), NULL },
    { "mode", WEIR_FIELD_TEXT, FIELD(content.mode), NULL },
    { "phase", WEIR_FIELD_TEXT, FIELD(content.phase), NULL },
    { "num_records", WEIR_FIELD_INT64, FIELD(content.num_records), NULL },
    { "start", WEIR_FIELD_TIME, FIELD(content.start_unix_ns), NULL },
    { "end", WEIR_FIELD_TIME, FIELD(content.end_unix_ns), NULL },
    { "path", WEIR_FIELD_TEXT, FIELD(content.path), NULL },
};

static const weir_column stacks[] = {
    { "run_id", WEIR_FIELD_INT64, FIELD(stack.run_id), NULL },
    { "stack", WEIR_FIELD_INT64, FIELD(stack.stack), NULL },
    { "caller", WEIR_FIELD_INT64, FIELD(stack.caller), NULL },
    { "function", WEIR_FIELD_TEXT, FIELD(stack.function), NULL },
};

static const weir_column samples[] = {
    { "id", WEIR_FIELD_INT64, FIELD(samples.id), NULL },
    { "timestamp", WEIR_FIELD_TIME, FIELD(samples.end_unix_ns), NULL },
    { "run_id", WEIR_FIELD_INT64, FIELD(samples.run_id), NULL },
    { "elapsed", WEIR_FIELD_TIME, FIELD(samples.elapsed_ns), NULL },
    { "name", WEIR_FIELD_TEXT, FIELD(samples.name), NULL },
    { "mode", WEIR_FIELD_TEXT, FIELD(samples.position.mode), NULL },
    { "phase", WEIR_FIELD_TEXT, FIELD(samples.position.phase), NULL },
    { "first_step", WEIR_FIELD_STEP, FIELD(samples.position.first_step), NULL },
    { "last_step", WEIR_FIELD_STEP, FIELD(samples.position.last_step), NULL },
    { "stack", WEIR_FIELD_INT64, FIELD(samples.stack), NULL },
    { "num_samples", WEIR_FIELD_INT64, FIELD(samples.num_samples), NULL },
    { "cpu_time", WEIR_FIELD_TIME, FIELD(samples.cpu_ns), NULL },
};

static const weir_record_table tables[WEIR_NUM_RECORD_KINDS] = {
    [WEIR_RECORD_EVENT] = TABLE("event_stats", events),
    [WEIR_RECORD_FAILURE] = TABLE("task_failures", failures),
    [WEIR_RECORD_ITEM] = TABLE("item_stats", items),
    [WEIR_RECORD_RUN] = TABLE("run", runs),
    [WEIR_RECORD_STAGE] = TABLE("stage", stages),
    [WEIR_RECORD_NODE] = TABLE("run", nodes),
    [WEIR_RECORD_PHASE] = TABLE("", phases),
    [WEIR_RECORD_CONTENT] = TABLE("", contents),
    [WEIR_RECORD_STACK] = TABLE("stack", stacks),
    [WEIR_RECORD_SAMPLES] = TABLE("stack_stats", samples),
    [WEIR_RECORD_TASK] = TABLE("", laps),
    [WEIR_RECORD_FLOW] = TABLE("", laps),
    [WEIR_RECORD_QUEUE] = TABLE("", laps),
    [WEIR_RECORD_POOL] = TABLE("", laps),
    [WEIR_RECORD_PROCESS] = TABLE("", laps),
    [WEIR_RECORD_MACHINE] = TABLE("", laps),
    [WEIR_RECORD_SPAN] = TABLE("", laps),
    [WEIR_RECORD_COUNTER] = TABLE("", laps),
};

const weir_record_table *weir__record_table_of(weir_record_kind kind)
{
    return &tables[kind];
}

bool weir__record_take_part(weir_record *item, const weir_item_part *part)
{
    for (size_t i = 0; i < sizeof item_parts / sizeof item_parts[0]; i++) {
        if (part->info->kind != item_parts[i].kind || strcmp(part->info->name, item_parts[i].name) != 0)
            continue;
        void *field = (char *)item + item_parts[i].offset;
        if (part->info->kind == WEIR_PART_TEXT)
            *(const char **)field = part->text;
        else
            *(int64_t *)field = part->number;
        return true;
    }
    return false;
}

bool weir__record_is_lap(weir_record_kind kind)
{
    return tables[kind].columns == laps;
}

/* -- making tables */

/* Has a value of its own in a new row. */
static bool is_inserted(const weir_column *column)
{
    return !column->expression && strcmp(column->name, "id") != 0;
}

/* With defaults: older programs and databases lack later columns. */
const char *weir__record_column_type(const weir_column *column)
{
    if (strcmp(column->name, "id") == 0)
        return "INTEGER PRIMARY KEY";
    if (strcmp(column->name, "run_id") == 0)
        return WEIR_RUN_REFERENCE;
    switch (column->kind) {
    case WEIR_FIELD_TEXT: return "TEXT NOT NULL DEFAULT ''";
    case WEIR_FIELD_TIME:
    case WEIR_FIELD_KNOWN_TIME: return "REAL NOT NULL DEFAULT 0";
    case WEIR_FIELD_STEP: return "INTEGER";
    default: return "INTEGER NOT NULL DEFAULT 0";
    }
}

/* -- reading */

const char *weir__column_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

int64_t weir__column_ns(sqlite3_stmt *row, int column)
{
    double ns = sqlite3_column_double(row, column) * 1e9;
    return fabs(ns) < 4e18 ? llround(ns) : 0; /* so that the difference of two does not overflow */
}

int64_t weir__column_known_ns(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? -1 : weir__column_ns(row, column);
}

char *weir__record_expressions(weir_record_kind kind)
{
    const weir_record_table *table = &tables[kind];
    sqlite3_str *text = sqlite3_str_new(NULL);
    for (size_t i = 0; i < table->num_columns; i++) {
        const char *name = table->columns[i].name, *expression = table->columns[i].expression;
        sqlite3_str_appendf(text, "%s%s%s AS \"%w\"", i ? ", " : "", expression ? "" : "t.",
                            expression ? expression : name, name);
    }
    return sqlite3_str_finish(text);
}

/* NULL: a range without any step in it, in which the last one is before the first. */
static int64_t read_step(sqlite3_stmt *row, int column, const char *name)
{
    bool is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
    return is_null ? -(strcmp(name, "last_step") == 0) : sqlite3_column_int64(row, column);
}

void weir__record_read(sqlite3_stmt *row, weir_record_kind kind, weir_record *record)
{
    const weir_record_table *table = &tables[kind];
    for (size_t i = 0; i < table->num_columns; i++) {
        void *field = (char *)record + table->columns[i].offset;
        int column = (int)i;
        int64_t known;
        switch (table->columns[i].kind) {
        case WEIR_FIELD_STEP: *(int64_t *)field = read_step(row, column, table->columns[i].name); break;
        case WEIR_FIELD_INT64: *(int64_t *)field = sqlite3_column_int64(row, column); break;
        case WEIR_FIELD_INT: *(int *)field = sqlite3_column_int(row, column); break;
        case WEIR_FIELD_TEXT: *(const char **)field = weir__column_text(row, column); break;
        case WEIR_FIELD_TIME: *(int64_t *)field = weir__column_ns(row, column); break;
        case WEIR_FIELD_KNOWN: *(bool *)field = sqlite3_column_int(row, column) != 0; break;
        case WEIR_FIELD_KNOWN_INT:
            known = sqlite3_column_int64(row, column);
            *(int64_t *)field = known ? known : -1;
            break;
        case WEIR_FIELD_KNOWN_TIME:
            known = weir__column_ns(row, column);
            *(int64_t *)field = known > 0 ? known : -1;
            break;
        }
    }
}

/* -- inserting */

char *weir__record_insertion(weir_record_kind kind)
{
    const weir_record_table *table = &tables[kind];
    sqlite3_str *names = sqlite3_str_new(NULL), *marks = sqlite3_str_new(NULL);
    for (size_t i = 0; i < table->num_columns; i++)
        if (is_inserted(&table->columns[i])) {
            sqlite3_str_appendf(names, "%s%s", sqlite3_str_length(names) ? ", " : "", table->columns[i].name);
            sqlite3_str_appendall(marks, sqlite3_str_length(marks) ? ", ?" : "?");
        }
    char *columns = sqlite3_str_finish(names), *values = sqlite3_str_finish(marks);
    char *text =
        columns && values ? sqlite3_mprintf("INSERT INTO %s (%s) VALUES (%s)", table->name, columns, values) : NULL;
    sqlite3_free(columns);
    sqlite3_free(values);
    return text;
}

static bool is_utf8(const char *text)
{
    size_t length;
    while (*text && (length = weir__utf8_length(text)))
        text += length;
    return !*text;
}

int weir__bind_text(sqlite3_stmt *statement, int column, const char *text)
{
    text = text ? text : "";
    return is_utf8(text) ? sqlite3_bind_text64(statement, column, text, strlen(text), SQLITE_STATIC, SQLITE_UTF8)
                         : sqlite3_bind_blob64(statement, column, text, strlen(text), SQLITE_STATIC);
}

static const weir_record_position *position_of(const weir_record *record)
{
    return record->kind == WEIR_RECORD_SAMPLES ? &record->samples.position : &record->lap.position;
}

int weir__record_bind_column(sqlite3_stmt *insert, int at, const weir_column *column, const weir_record *record)
{
    const weir_field_kind kind = column->kind;
    const void *field = (const char *)record + column->offset;
    switch (kind) {
    case WEIR_FIELD_TEXT: return weir__bind_text(insert, at, *(const char *const *)field);
    case WEIR_FIELD_INT: return sqlite3_bind_int(insert, at, *(const int *)field);
    case WEIR_FIELD_KNOWN_INT:
    case WEIR_FIELD_KNOWN_TIME:
        if (*(const int64_t *)field < 0)
            return sqlite3_bind_int(insert, at, 0);
        break;
    case WEIR_FIELD_STEP:
        if (position_of(record)->last_step < position_of(record)->first_step)
            return sqlite3_bind_null(insert, at);
        break;
    default: break;
    }
    int64_t number = *(const int64_t *)field;
    return kind == WEIR_FIELD_TIME || kind == WEIR_FIELD_KNOWN_TIME
               ? sqlite3_bind_double(insert, at, (double)number / 1e9)
               : sqlite3_bind_int64(insert, at, number);
}

int weir__record_bind(sqlite3_stmt *insert, weir_record_kind kind, const weir_record *record)
{
    const weir_record_table *table = &tables[kind];
    int at = 0, code = SQLITE_OK;
    for (size_t i = 0; i < table->num_columns && code == SQLITE_OK; i++)
        if (is_inserted(&table->columns[i]))
            code = weir__record_bind_column(insert, ++at, &table->columns[i], record);
    return code;
}
