/* The tables of metrics.h as data, and addition by kind. */
#include <weir/metrics.h>

#include <math.h>
#include <stddef.h>

#define ROW(type, field, name, kind, unit, meaning) \
    { name, WEIR_METRIC_##kind, unit, meaning, offsetof(type, field) },
#define TASK_ROW(...)    ROW(weir_task_metrics, __VA_ARGS__)
#define QUEUE_ROW(...)   ROW(weir_queue_metrics, __VA_ARGS__)
#define POOL_ROW(...)    ROW(weir_pool_metrics, __VA_ARGS__)
#define PROCESS_ROW(...) ROW(weir_process_metrics, __VA_ARGS__)
#define MACHINE_ROW(...) ROW(weir_machine_metrics, __VA_ARGS__)
#define SPAN_ROW(...)    ROW(weir_span_metrics, __VA_ARGS__)
#define COUNTER_ROW(...) ROW(weir_counter_metrics, __VA_ARGS__)

static const weir_metric task_rows[] = { WEIR_TASK_METRICS(TASK_ROW) };
static const weir_metric queue_rows[] = { WEIR_QUEUE_METRICS(QUEUE_ROW) };
static const weir_metric pool_rows[] = { WEIR_POOL_METRICS(POOL_ROW) };
static const weir_metric process_rows[] = { WEIR_PROCESS_METRICS(PROCESS_ROW) };
static const weir_metric machine_rows[] = { WEIR_MACHINE_METRICS(MACHINE_ROW) };
static const weir_metric span_rows[] = { WEIR_SPAN_METRICS(SPAN_ROW) };
static const weir_metric counter_rows[] = { WEIR_COUNTER_METRICS(COUNTER_ROW) };

#define TABLE(of) \
    { \
        of##_rows, sizeof of##_rows / sizeof of##_rows[0], sizeof(weir_##of##_metrics) \
    }
static const weir_metric_table tables[WEIR_NUM_SUBJECTS] = {
    [WEIR_SUBJECT_STAGE] = TABLE(task),      [WEIR_SUBJECT_FLOW] = TABLE(task),
    [WEIR_SUBJECT_QUEUE] = TABLE(queue),     [WEIR_SUBJECT_POOL] = TABLE(pool),
    [WEIR_SUBJECT_PROCESS] = TABLE(process), [WEIR_SUBJECT_MACHINE] = TABLE(machine),
    [WEIR_SUBJECT_SPAN] = TABLE(span),       [WEIR_SUBJECT_COUNTER] = TABLE(counter),
};

const weir_metric_table *weir_subject_metrics(weir_subject subject)
{
    return &tables[(unsigned)subject < WEIR_NUM_SUBJECTS ? subject : WEIR_SUBJECT_STAGE];
}

void weir_metrics_clear(const weir_metric_table *table, void *values)
{
    for (size_t i = 0; table && values && i < table->num_metrics; i++) {
        void *value = (char *)values + table->metrics[i].offset;
        switch (table->metrics[i].kind) {
        case WEIR_METRIC_COUNT: *(uint64_t *)value = 0; break;
        case WEIR_METRIC_SUM:
        case WEIR_METRIC_MAX: *(int64_t *)value = 0; break;
        case WEIR_METRIC_MIN: *(int64_t *)value = INT64_MAX; break;
        case WEIR_METRIC_LEVEL: *(double *)value = 0; break;
        case WEIR_METRIC_HISTOGRAM: *(const weir_histogram **)value = NULL; break;
        case WEIR_METRIC_LAST:
        case WEIR_METRIC_LOWEST:
        case WEIR_METRIC_HIGHEST:
        case WEIR_METRIC_GROWTH: *(double *)value = NAN; break;
        }
    }
}

static int64_t sum_or_unknown(int64_t one, int64_t other)
{
    if (one < 0 || other < 0)
        return -1;
    return one > INT64_MAX - other ? INT64_MAX : one + other;
}

static int64_t max_or_unknown(int64_t max, int64_t value)
{
    return value > max || (value < 0 && max == 0) ? value : max;
}

/* Adds a value of a kind for which NaN means not known. */
static double add_if_known(weir_metric_kind kind, double sum, double value)
{
    switch (kind) {
    case WEIR_METRIC_LAST: return isnan(value) ? sum : value;
    case WEIR_METRIC_LOWEST: return value < sum || isnan(sum) ? value : sum;
    case WEIR_METRIC_HIGHEST: return value > sum || isnan(sum) ? value : sum;
    case WEIR_METRIC_GROWTH: return isnan(value) ? sum : value + (isnan(sum) ? 0 : sum);
    default: return sum;
    }
}

void weir_metrics_add(const weir_metric_table *table, void *to, const void *from)
{
    for (size_t i = 0; table && to && from && i < table->num_metrics; i++) {
        weir_metric_kind kind = table->metrics[i].kind;
        void *into = (char *)to + table->metrics[i].offset;
        const void *value = (const char *)from + table->metrics[i].offset;
        int64_t *whole = into;
        const int64_t *part = value;
        double *real = into;
        switch (kind) {
        case WEIR_METRIC_COUNT: *(uint64_t *)into += *(const uint64_t *)value; break;
        case WEIR_METRIC_SUM: *whole = sum_or_unknown(*whole, *part); break;
        case WEIR_METRIC_MAX: *whole = max_or_unknown(*whole, *part); break;
        case WEIR_METRIC_MIN: *whole = *part < *whole ? *part : *whole; break;
        case WEIR_METRIC_LEVEL: *real += *(const double *)value; break;
        case WEIR_METRIC_HISTOGRAM: break;
        case WEIR_METRIC_LAST:
        case WEIR_METRIC_LOWEST:
        case WEIR_METRIC_HIGHEST:
        case WEIR_METRIC_GROWTH: *real = add_if_known(kind, *real, *(const double *)value); break;
        }
    }
}
