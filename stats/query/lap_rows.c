#include "lap_rows.h"

#include <math.h>
#include <string.h>

int weir_lap_select(weir_reader *reader, weir_subject subject, const weir_filter *filter, bool unordered,
                    sqlite3_stmt **statement, weir_error *error)
{
    const weir_lap_table *table = &weir_lap_tables[subject];
    int code;
    *statement = NULL;
    char *columns = weir_lap_table_expressions(reader->db, subject, &code);
    if (code != SQLITE_OK)
        return weir_reader_error(reader, code, error);
    if (!columns)
        return WEIR_OK;
    weir_sql_selection selection = {
        .kind = WEIR_ROWS_LAPS,
        .table = table->name,
        .columns = columns,
        .name_column = "t.name",
        .length = table->longest && strstr(columns, table->longest) ? table->longest : NULL,
        .unordered = unordered,
    };
    int status = weir_select(reader, &selection, filter, statement, error);
    sqlite3_free(columns);
    return status;
}

/* Sets the metric's field from a column; NULL = not known, or none. */
static void read_metric(const weir_metric *metric, sqlite3_stmt *row, int column, void *metrics)
{
    char *at = (char *)metrics + metric->offset;
    size_t length = strlen(metric->unit);
    bool is_time = strcmp(metric->unit, "s") == 0, is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
    bool is_level_of_time = length > 2 && strcmp(metric->unit + length - 2, " s") == 0;
    int64_t whole = is_time ? weir_column_ns(row, column) : sqlite3_column_int64(row, column);
    switch (metric->kind) {
    case WEIR_METRIC_COUNT: *(uint64_t *)(void *)at = (uint64_t)(whole > 0 ? whole : 0); break;
    case WEIR_METRIC_SUM: *(int64_t *)(void *)at = is_null ? -1 : whole; break;
    case WEIR_METRIC_MIN: *(int64_t *)(void *)at = is_null ? INT64_MAX : whole; break;
    case WEIR_METRIC_MAX: *(int64_t *)(void *)at = is_null ? -1 : whole; break;
    case WEIR_METRIC_LEVEL:
        *(double *)(void *)at =
            is_null ? (double)NAN : sqlite3_column_double(row, column) * (is_level_of_time ? 1e9 : 1);
        break;
    case WEIR_METRIC_HISTOGRAM: *(const weir_histogram **)(void *)at = NULL; break;
    case WEIR_METRIC_LAST:
    case WEIR_METRIC_LOWEST:
    case WEIR_METRIC_HIGHEST:
        *(double *)(void *)at = is_null ? (double)NAN : sqlite3_column_double(row, column);
        break;
    }
}

static bool has_capacity(weir_subject subject)
{
    return subject >= WEIR_SUBJECT_QUEUE && subject <= WEIR_SUBJECT_PROCESS;
}

static const char *const kinds[WEIR_NUM_SUBJECTS] = { "stage",   NULL,      "queue", "pool",
                                                      "process", "machine", NULL,    "counter" };

void weir_lap_read(weir_subject subject, sqlite3_stmt *row, weir_lap_record *lap)
{
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    bool has_steps = sqlite3_column_type(row, WEIR_LAP_FIRST_STEP) != SQLITE_NULL;
    lap->subject = subject;
    lap->id = sqlite3_column_int64(row, WEIR_LAP_ID);
    lap->run_id = sqlite3_column_int64(row, WEIR_LAP_RUN);
    lap->end_unix_ns = weir_column_ns(row, WEIR_LAP_TIMESTAMP);
    lap->elapsed_ns = weir_column_ns(row, WEIR_LAP_ELAPSED);
    lap->suspended_ns = weir_column_known_ns(row, WEIR_LAP_SUSPENDED);
    lap->num_joined = sqlite3_column_int64(row, WEIR_LAP_JOINED);
    lap->name = weir_column_text(row, WEIR_LAP_NAME);
    lap->kind = kinds[subject] ? kinds[subject] : weir_column_text(row, WEIR_LAP_OWN);
    lap->capacity = has_capacity(subject) ? sqlite3_column_int64(row, WEIR_LAP_OWN) : 0;
    lap->position.phase = weir_column_text(row, WEIR_LAP_PHASE);
    lap->position.first_step = has_steps ? sqlite3_column_int64(row, WEIR_LAP_FIRST_STEP) : 0;
    lap->position.last_step = has_steps ? sqlite3_column_int64(row, WEIR_LAP_LAST_STEP) : -1;
    for (size_t i = 0; i < metrics->num_metrics; i++)
        read_metric(&metrics->metrics[i], row, WEIR_LAP_METRICS + (int)i, &lap->metrics);
}

int weir_lap_find_phase(weir_marks *marks, weir_lap_record *lap, weir_error *error)
{
    bool is_marked = false;
    int status = *lap->position.phase ? WEIR_OK : weir_marks_of(marks, lap->run_id, &is_marked, error);
    if (is_marked)
        lap->position.phase = "startup";
    return status;
}

/* -- histograms */

/* Reads one varint at *at and advances; false if there is none. */
static bool read_varint(const uint8_t *bytes, size_t size_bytes, size_t *at, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < size_bytes && shift < 49; shift += 7) {
        uint8_t byte = bytes[(*at)++];
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/*
 * weir_histogram_add_encoded() in one pass instead of two, because most of the time is spent here. If the bytes are
 * invalid, a part may have been added; this does not matter, because the result is then discarded.
 */
static bool add_stored(weir_histogram *to, const uint8_t *bytes, size_t size_bytes)
{
    uint64_t index = 0, first = WEIR_HISTOGRAM_BUCKETS, step, count, total = 0;
    if (size_bytes == 0 || bytes[0] != 1)
        return false;
    for (size_t at = 1; at < size_bytes;) {
        if (at + 1 < size_bytes && !((bytes[at] | bytes[at + 1]) & 0x80)) { /* nearly all */
            step = bytes[at];
            count = bytes[at + 1];
            at += 2;
        } else if (!read_varint(bytes, size_bytes, &at, &step) || !read_varint(bytes, size_bytes, &at, &count))
            return false;
        index += step;
        if (index >= WEIR_HISTOGRAM_BUCKETS || count == 0)
            return false;
        uint64_t room = WEIR_HISTOGRAM_MAX_COUNT - to->buckets[index];
        uint64_t added = count < room ? count : room;
        to->buckets[index] += added;
        total += added;
        first = first < index ? first : index;
    }
    if (first < WEIR_HISTOGRAM_BUCKETS) {
        to->first = to->count && to->first < first ? to->first : (uint32_t)first;
        to->last = to->count && to->last > index ? to->last : (uint32_t)index;
    }
    to->count += total;
    return true;
}

const char *weir_lap_add_histograms(weir_subject subject, sqlite3_stmt *row, weir_histogram *const times[],
                                    bool has[WEIR_MAX_HISTOGRAMS])
{
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    const char *damaged = NULL;
    size_t which = 0;
    for (size_t i = 0; i < metrics->num_metrics; i++) {
        if (metrics->metrics[i].kind != WEIR_METRIC_HISTOGRAM)
            continue;
        int column = WEIR_LAP_METRICS + (int)i;
        has[which] = sqlite3_column_type(row, column) != SQLITE_NULL;
        const void *bytes = sqlite3_column_blob(row, column);
        size_t size = (size_t)sqlite3_column_bytes(row, column);
        if (has[which] && !add_stored(times[which], bytes, bytes ? size : 0) && !damaged)
            damaged = metrics->metrics[i].name;
        which++;
    }
    return damaged;
}
