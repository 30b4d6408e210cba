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

/* A histogram of metrics, and the metric that is the sum of its values. */
typedef struct weir_metric_histogram {
    const weir_metric *metric;
    const char *name; /* "time", "put_time", "get_time", "latency" */
    const char *sum;  /* the name of the metric that is its sum */
} weir_metric_histogram;

/* The histograms of a subject; returns how many there are. */
enum { WEIR_MAX_HISTOGRAMS = 3 };
WEIR_API size_t weir_subject_histograms(weir_subject subject, weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS]);

/* The address of that histogram in the metrics. */
WEIR_API const weir_histogram **weir_metric_histogram_at(const weir_metric *metric, weir_metrics *metrics);

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
WEIR_API int64_t weir_slots_ns(const weir_task_metrics *task);

#ifdef __cplusplus
}
#endif

#endif
