/*
 * The figures of runs for TensorBoard, as event files in a folder: of what a database holds, or live, lap by lap, while
 * TensorBoard looks on:
 *
 *     weir_tensorboard_open("logs/loader", NULL, &log, &error);
 *     weir_observer observer = weir_tensorboard_observer(log);
 *     weir_builder_build(b, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 }, &p, &error);
 *     …
 *     weir_pipeline_free(p);
 *     weir_tensorboard_close(log, &error);
 *
 * Both hold the same: scalars and histograms named "<stage or queue>/<figure>" for each lap; what the run was, its
 * events and its failures as text. A step of TensorBoard's is a lap, counted from 0; "consumer/step" has the steps that
 * the consumer marked.
 *
 * In a build without protobuf-c both fail with WEIR_EUNSUPPORTED, and say so.
 */
#ifndef WEIR_TENSORBOARD_H
#define WEIR_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/observer.h>
#include <weir/options.h>
#include <weir/query.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes all that fulfils the filter (may be NULL) below the folder `log_dir`, which is made if missing: an event file in
 * a folder for each run, "run-3" or, of ranks above 0, "run-3-rank-1". Done again, it replaces the files that it wrote.
 * WEIR_OK; WEIR_ENOTFOUND if there is no run; WEIR_EIO and others; *error (may be NULL) names the path. Memory does not
 * depend on how much there is.
 */
WEIR_API int weir_tensorboard_export(weir_reader *reader, const weir_filter *filter, const char *log_dir,
                                     weir_error *error);

/* -- live */

typedef struct weir_tensorboard_log weir_tensorboard_log;

/* Setting this struct to all-0 is equivalent to defaults. Strings are copied. */
typedef struct weir_tensorboard_options {
    const char *node_id; /* in the file's name and the run's text (NULL = the host's name) */
    int32_t rank;        /* in the run's text */
    const char *command; /* in the run's text (NULL = this process's command line, where the system tells it) */
} weir_tensorboard_options;

/* For the inline function below; see <weir/options.h>. */
WEIR_API int weir_tensorboard_open_sized(const char *log_dir, const weir_tensorboard_options *options,
                                         size_t options_size, weir_tensorboard_log **log, weir_error *error);

/*
 * Makes the folder, with those above it, and an event file in it, with a name of its own. On failure *log is NULL, and
 * *error (may be NULL) says in one line that names the path what is in the way. options may be NULL.
 */
static inline int weir_tensorboard_open(const char *log_dir, const weir_tensorboard_options *options,
                                        weir_tensorboard_log **log, weir_error *error)
{
    return weir_tensorboard_open_sized(log_dir, options, sizeof *options, log, error);
}

/*
 * The observer to give to a pipeline; valid until weir_tensorboard_close(). All-zero for NULL. One pipeline at a time: attaching a second one fails
 * with WEIR_EBUSY; their laps are counted on in the same file.
 *
 * A lap is written as a whole when it has ended. One that cannot be written is given up; that is logged, once until it
 * works again, and the run goes on.
 */
WEIR_API weir_observer weir_tensorboard_observer(weir_tensorboard_log *log);

/*
 * Writes what is left, closes and frees. Call it when the pipeline has been freed. WEIR_OK, or WEIR_EIO, WEIR_ENOMEM,
 * with *error (may be NULL), if anything had to be given up. NULL is fine.
 */
WEIR_API int weir_tensorboard_close(weir_tensorboard_log *log, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
