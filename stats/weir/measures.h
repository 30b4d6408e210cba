/*
 * The measures of a lap, or of the sum of several: the stored metrics (weir/metrics.h) and what is derived from them,
 * each described once. Columns of tables, exports, comparisons and plots are generated from these lists, so a metric
 * that is added to weir/metrics.h appears in all of them.
 */
#ifndef WEIR_MEASURES_H
#define WEIR_MEASURES_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The value of a stored metric, in its unit (durations in seconds). NAN if it is not known or does not exist, and for
 * histograms.
 */
WEIR_API double weir_metric_value(const weir_metric *metric, const weir_metrics *metrics);

/* The most histograms that the metrics of a subject have: metrics of the kind WEIR_METRIC_HISTOGRAM. */
enum { WEIR_MAX_HISTOGRAMS = 3 };

typedef struct weir_measure {
    const char *name;  /* key of JSON and CSV, column of the database: "ave_time" */
    const char *title; /* heading in text tables; NULL = only in JSON and CSV */
    const char *unit;  /* "s", "share" (0 to 1), "bytes", "1/s", "tasks", … */
    const char *help;
    int better;                /* 1: more is better, -1: less is, 0: neither */
    const weir_metric *metric; /* the stored metric; NULL = derived */
    double (*derive)(const weir_metrics *metrics, int64_t elapsed_ns); /* of derived ones */
} weir_measure;

/* All measures of a subject except its histograms, in the order of tables. *count is their number. */
WEIR_API const weir_measure *weir_subject_measures(weir_subject subject, size_t *count);

/* NULL = no measure of that name. */
WEIR_API const weir_measure *weir_measure_find(weir_subject subject, const char *name);

/*
 * Its value over elapsed_ns (of all laps together), in its unit; NAN if it is not known, or nothing happened (the
 * mean time of no tasks, a share of no time).
 */
WEIR_API double weir_measure_value(const weir_measure *measure, const weir_metrics *metrics, int64_t elapsed_ns);

/* The same by name; NAN if no measure has that name. */
WEIR_API double weir_measure_of(weir_subject subject, const char *name, const weir_metrics *metrics,
                                int64_t elapsed_ns);

/* Slots × time of a stage or flow node: busy and all kinds of waiting; negative = not known. */
static inline int64_t weir_slots_ns(const weir_task_metrics *task)
{
    if (!task)
        return -1;
    const int64_t parts[] = { task->busy_ns, task->wait_in_ns, task->wait_thread_ns, task->wait_turn_ns,
                              task->wait_out_ns };
    int64_t sum = 0;
    for (int i = 0; i < 5; i++) {
        if (parts[i] < 0)
            return -1;
        sum = parts[i] > INT64_MAX - sum ? INT64_MAX : sum + parts[i];
    }
    return sum;
}

#ifdef __cplusplus
}
#endif

#endif
