#include "stats/schema/lap_reading.h"

#include <math.h>
#include <string.h>

#include "stats/schema/lap_tables.h"
#include "stats/schema/measures.h"
#include "stats/schema/record_tables.h"

/* A level of time is in seconds, too: "items s". */
static bool is_level_of_time(const weir_metric *metric)
{
    size_t length = strlen(metric->unit);
    return length > 2 && strcmp(metric->unit + length - 2, " s") == 0;
}

static int64_t whole_number(const weir_metric *metric, sqlite3_stmt *row, int column)
{
    return metric->unit[0] == 's' && !metric->unit[1] ? weir__column_ns(row, column)
                                                      : sqlite3_column_int64(row, column);
}

/* Sets the metric's field from a column; NULL = not known, or none. */
static void read_metric(const weir_metric *metric, sqlite3_stmt *row, int column, void *metrics)
{
    char *at = (char *)metrics + metric->offset;
    const bool is_null = metric->kind != WEIR_METRIC_HISTOGRAM && sqlite3_column_type(row, column) == SQLITE_NULL;
    int64_t count;
    switch (metric->kind) {
    case WEIR_METRIC_COUNT:
        count = is_null ? 0 : whole_number(metric, row, column);
        *(uint64_t *)(void *)at = (uint64_t)(count > 0 ? count : 0);
        break;
    case WEIR_METRIC_SUM: *(int64_t *)(void *)at = is_null ? -1 : whole_number(metric, row, column); break;
    case WEIR_METRIC_MIN: *(int64_t *)(void *)at = is_null ? INT64_MAX : whole_number(metric, row, column); break;
    case WEIR_METRIC_MAX: *(int64_t *)(void *)at = is_null ? -1 : whole_number(metric, row, column); break;
    case WEIR_METRIC_LEVEL:
        *(double *)(void *)at =
            is_null ? (double)NAN : sqlite3_column_double(row, column) * (is_level_of_time(metric) ? 1e9 : 1);
        break;
    case WEIR_METRIC_HISTOGRAM: *(const weir_histogram **)(void *)at = NULL; break;
    case WEIR_METRIC_LAST:
    case WEIR_METRIC_LOWEST:
    case WEIR_METRIC_HIGHEST:
    case WEIR_METRIC_GROWTH:
        *(double *)(void *)at = is_null ? (double)NAN : sqlite3_column_double(row, column);
        break;
    }
}

static bool has_capacity(weir_subject subject)
{
    return subject >= WEIR_SUBJECT_QUEUE && subject <= WEIR_SUBJECT_PROCESS;
}

static const char *const kinds[WEIR_NUM_SUBJECTS] = { "stage", NULL, "queue", "pool", "process", "machine" };

static const char *kind_of(weir_subject subject, sqlite3_stmt *row)
{
    if (!weir_subject_has_kinds(subject))
        return kinds[subject];
    const char *kind = weir__column_text(row, WEIR_LAP_OWN);
    return subject == WEIR_SUBJECT_COUNTER && !*kind ? "level" : kind; /* older databases have only these */
}

void weir__lap_read(weir_subject subject, sqlite3_stmt *row, weir_lap_record *lap)
{
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    bool has_steps = sqlite3_column_type(row, WEIR_LAP_FIRST_STEP) != SQLITE_NULL;
    lap->subject = subject;
    lap->id = sqlite3_column_int64(row, WEIR_LAP_ID);
    lap->run_id = sqlite3_column_int64(row, WEIR_LAP_RUN);
    lap->end_unix_ns = weir__column_ns(row, WEIR_LAP_TIMESTAMP);
    lap->elapsed_ns = weir__column_ns(row, WEIR_LAP_ELAPSED);
    lap->suspended_ns = weir__column_known_ns(row, WEIR_LAP_SUSPENDED);
    lap->num_joined = sqlite3_column_int64(row, WEIR_LAP_JOINED);
    lap->name = weir__column_text(row, WEIR_LAP_NAME);
    lap->kind = kind_of(subject, row);
    lap->capacity = has_capacity(subject) ? sqlite3_column_int64(row, WEIR_LAP_OWN) : 0;
    lap->position.phase = weir__column_text(row, WEIR_LAP_PHASE);
    lap->position.mode = weir__column_text(row, WEIR_LAP_MODE);
    lap->position.first_step = has_steps ? sqlite3_column_int64(row, WEIR_LAP_FIRST_STEP) : 0;
    lap->position.last_step = has_steps ? sqlite3_column_int64(row, WEIR_LAP_LAST_STEP) : -1;
    for (int i = 0; i < WEIR_MAX_HISTOGRAMS; i++) {
        int column = WEIR_LAP_PERCENTILES + 2 * i;
        lap->percentiles[i].are_known = sqlite3_column_type(row, column) != SQLITE_NULL;
        lap->percentiles[i].p90 = sqlite3_column_double(row, column);
        lap->percentiles[i].p99 = sqlite3_column_double(row, column + 1);
    }
    for (size_t i = 0; i < metrics->num_metrics; i++)
        read_metric(&metrics->metrics[i], row, WEIR_LAP_METRICS + (int)i, &lap->metrics);
}

const char *weir__lap_read_histograms(weir_subject subject, sqlite3_stmt *row,
                                      weir_histogram times[WEIR_MAX_HISTOGRAMS], weir_metrics *metrics)
{
    const weir_metric_table *table = weir_subject_metrics(subject);
    const char *damaged = NULL;
    for (size_t i = 0; i < table->num_metrics; i++) {
        const int column = WEIR_LAP_METRICS + (int)i;
        if (table->metrics[i].kind != WEIR_METRIC_HISTOGRAM)
            continue;
        bool is_known = sqlite3_column_type(row, column) != SQLITE_NULL;
        const void *bytes = sqlite3_column_blob(row, column);
        size_t size = (size_t)sqlite3_column_bytes(row, column);
        weir_histogram_clear(times);
        if (is_known && weir_histogram_add_encoded(times, bytes, size) != WEIR_OK && !damaged)
            damaged = table->metrics[i].name;
        *weir__metric_histogram_at(&table->metrics[i], metrics) = is_known ? times : NULL;
        times++;
    }
    return damaged;
}
