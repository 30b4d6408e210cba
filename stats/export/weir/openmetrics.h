/*
 * The metrics of runs as OpenMetrics text, for Prometheus and compatible tools: from a database, or live, in a file
 * that is rewritten after each lap, for node_exporter's textfile collector:
 *
 *     weir_openmetrics_open("/var/lib/node_exporter/textfile/weir.prom", NULL, &file, &error);
 *     weir_observer observer = weir_openmetrics_observer(file);
 *     weir_builder_build(b, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 }, &p, &error);
 *     …
 *     weir_pipeline_free(p);
 *     weir_openmetrics_close(file, &error);
 *
 * Both hold the same metrics: histograms of task times and queue times, and sums that only increase; the recording
 * derives rates and averages over any interval. Labels are node, rank, run (only from databases), stage or queue. The
 * edges of histogram buckets are powers of two of nanoseconds, so that every count is exact; percentiles within 1 %
 * are exported separately. Two rates, and the limit if the program passes its rules, are gauges. Live they are of the
 * latest lap, and end with the run. From a database they are of all that matches, and only weir_export_write() takes
 * rules.
 */
#ifndef WEIR_OPENMETRICS_H
#define WEIR_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/limit.h>
#include <weir/observer.h>
#include <weir/query.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes the sums of everything that matches the filter (may be NULL), separately for each run. WEIR_OK;
 * WEIR_ENOTFOUND if there is no run; WEIR_EIO if writing to `out` fails; others as for queries. Memory use depends on
 * the number of runs and stages, not on the number of laps.
 *
 * by_lap: writes the sums of stages and queues after each lap, with the time of its end. Such a history is for
 * `promtool tsdb create-blocks-from openmetrics`. Timestamps are in seconds, as in OpenMetrics. Readers of the older
 * Prometheus format, such as `promtool check metrics`, do not accept them.
 */
WEIR_API int weir_openmetrics_export(weir_recording *recording, const weir_filter *filter, bool by_lap, FILE *out,
                                     weir_error *error);

/* -- live */

typedef struct weir_openmetrics_file weir_openmetrics_file;

/* Setting this struct to all-zero is equivalent to defaults. Strings are copied. */
typedef struct weir_openmetrics_options {
    const char *node_id; /* label `node` (NULL = the host's name) */
    int32_t rank;        /* label `rank`: must be different for each process with a file in the same folder */
    const char *command; /* of weir_run_info (NULL = this process's command line, if the system reports it) */
    bool force;          /* a file that is not OpenMetrics text is replaced, too (see weir/output.h) */
    /* The rules that name the limit of each lap: weir_limit (NULL = the metric is left out). They must live as long
       as the file. */
    const weir_limit_rules *limit_rules;
} weir_openmetrics_options;

/* For the inline function below. */
WEIR_API int weir_openmetrics_open_sized(const char *path, const weir_openmetrics_options *options,
                                         size_t options_size, weir_openmetrics_file **file, weir_error *error);

/*
 * Creates the file immediately, with only "# EOF" in it; an older one with metrics is replaced. Its folder must
 * exist. On failure *file is NULL, and *error (may be NULL) holds one line that names the path and the problem.
 * options may be NULL.
 */
static inline int weir_openmetrics_open(const char *path, const weir_openmetrics_options *options,
                                        weir_openmetrics_file **file, weir_error *error)
{
    return weir_openmetrics_open_sized(path, options, sizeof *options, file, error);
}

/*
 * The observer to give to a pipeline; valid until weir_openmetrics_close(). One pipeline at a time: attaching a
 * second one fails with WEIR_EBUSY; when a pipeline starts, the sums start from 0.
 *
 * After each lap the file is replaced as a whole: readers see the old one or the new one. If the file cannot be
 * written, that is logged once until it works again; the run continues.
 */
WEIR_API weir_observer weir_openmetrics_observer(weir_openmetrics_file *file);

/*
 * Frees it; the file stays, with the run's last metrics. Call it after the pipeline has been freed. Returns WEIR_OK
 * or a failure, with *error (may be NULL) filled: the last attempt to write failed, or memory ran out and some
 * metrics are missing. NULL is fine.
 */
WEIR_API int weir_openmetrics_close(weir_openmetrics_file *file, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
