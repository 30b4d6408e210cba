/* The stored metrics of a subject, and the histograms among them. */
#ifndef STATS_SCHEMA_MEASURES_H
#define STATS_SCHEMA_MEASURES_H

#include <weir/query.h>

#include "common/sibling.h"

/* A histogram of metrics, and the metric that is the sum of its values. */
typedef struct weir_metric_histogram {
    const weir_metric *metric;
    const char *name; /* "time", "put_time", "get_time", "latency" */
    const char *sum;  /* the name of the metric that is its sum */
} weir_metric_histogram;

/* The histograms of a subject; returns how many there are. */
WEIR_SIBLING_API size_t weir__subject_histograms(weir_subject subject,
                                                 weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS]);

/* The address of that histogram in the metrics. */
WEIR_SIBLING_API const weir_histogram **weir__metric_histogram_at(const weir_metric *metric, weir_metrics *metrics);

/* The value of a stored metric, in its unit (durations in seconds). NAN if it is not known or does not exist, and for
   histograms. */
WEIR_SIBLING_API double weir__metric_value(const weir_metric *metric, const weir_metrics *metrics);

#endif
