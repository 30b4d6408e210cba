/*
 * The figures of runs as OpenMetrics text, for Prometheus and what reads its formats: of what a database holds, or live,
 * in a file that is written anew with each lap, as node_exporter's textfile collector wants it:
 *
 *     weir_openmetrics_open("/var/lib/node_exporter/textfile/weir.prom", NULL, &file, &error);
 *     weir_observer observer = weir_openmetrics_observer(file);
 *     weir_builder_build(b, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 }, &p, &error);
 *     …
 *     weir_pipeline_free(p);
 *     weir_openmetrics_close(file, &error);
 *
 * Both tell the same: histograms of the tasks' and the queues' times, and sums that only ever rise; rates and averages
 * over any window are the reader's to derive. Labels are node, rank, run (of databases only), stage or queue.
 * Edges of the histograms' buckets are powers of two of nanoseconds, so that every count is exact; percentiles within 1 %
 * are told beside them.
 */
#ifndef WEIR_OPENMETRICS_H
#define WEIR_OPENMETRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/export.h>
#include <weir/observer.h>
#include <weir/options.h>
#include <weir/query.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes the sums of everything that fulfils the filter (may be NULL), for each run apart. WEIR_OK; WEIR_ENOTFOUND if
 * there is no run; WEIR_EIO if `out` does not take it; others as for queries. Memory depends on the number of runs and
 * stages, not on that of laps.
 */
WEIR_API int weir_openmetrics_export(weir_reader *reader, const weir_filter *filter, FILE *out, weir_error *error);

/*
 * The same, but with what the sums of stages and queues were after each lap, with the time of its end: history, for
 * `promtool tsdb create-blocks-from openmetrics`. Times are in seconds, as OpenMetrics has them; readers of the older
 * Prometheus format, as `promtool check metrics`, take none like that.
 */
WEIR_API int weir_openmetrics_export_laps(weir_reader *reader, const weir_filter *filter, FILE *out,
                                          weir_error *error);

/* -- live */

typedef struct weir_openmetrics_file weir_openmetrics_file;

/* Setting this struct to all-0 is equivalent to defaults. Strings are copied. */
typedef struct weir_openmetrics_options {
    const char *node_id; /* label `node` (NULL = the host's name) */
    int32_t rank;        /* label `rank`: to be different for each process whose file is in the same folder */
    const char *command; /* of weir_run_info (NULL = this process's command line, where the system tells it) */
} weir_openmetrics_options;

/* For the inline function below; see <weir/options.h>. */
WEIR_API int weir_openmetrics_open_sized(const char *path, const weir_openmetrics_options *options,
                                         size_t options_size, weir_openmetrics_file **file, weir_error *error);

/*
 * Makes the file at once, with nothing but "# EOF" in it. Its folder must exist. On failure *file is NULL, and *error
 * (may be NULL) says in one line that names the path what is in the way. options may be NULL.
 */
static inline int weir_openmetrics_open(const char *path, const weir_openmetrics_options *options,
                                        weir_openmetrics_file **file, weir_error *error)
{
    return weir_openmetrics_open_sized(path, options, sizeof *options, file, error);
}

/*
 * The observer to give to a pipeline; valid until weir_openmetrics_close(). One pipeline at a time: attaching a second one fails
 * with WEIR_EBUSY; with each one that starts, the sums begin anew.
 *
 * After each lap the file is replaced as a whole: readers see the old one or the new one. A file that cannot be written
 * is logged, once until it works again; the run goes on.
 */
WEIR_API weir_observer weir_openmetrics_observer(weir_openmetrics_file *file);

/*
 * Frees it; the file stays, with the run's last figures. Call it when the pipeline has been freed. WEIR_OK, or
 * what is wrong with it, also in *error (may be NULL): the last attempt to write failed, or there was no memory for some
 * of it. NULL is fine.
 */
WEIR_API int weir_openmetrics_close(weir_openmetrics_file *file, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
