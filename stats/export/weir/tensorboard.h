/*
 * The metrics of runs for TensorBoard, as event files in a folder: from a database, or live, lap by lap, while
 * TensorBoard reads them:
 *
 *     weir_tensorboard_open("logs/loader", NULL, &log, &error);
 *     weir_observer observer = weir_tensorboard_observer(log);
 *     weir_builder_build(b, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 }, &p, &error);
 *     …
 *     weir_pipeline_free(p);
 *     weir_tensorboard_close(log, &error);
 *
 * Both hold the same: scalars and histograms named "<stage or queue>/<metric>" for each lap. A TensorBoard step is a
 * lap, counted from 0; "consumer/step" has the steps that the consumer marked. TensorBoard shows the group "0 overview" first:
 * rates, the limit, CPUs, memory, failures and levels of queues, ten scalars at most.
 */
#ifndef WEIR_TENSORBOARD_H
#define WEIR_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>

#include <weir/limit.h>
#include <weir/observer.h>
#include <weir/query.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes all records that match the filter (may be NULL) below the folder `log_dir`, which is created if missing.
 * Each run has a folder with an event file: "run-3" or, for ranks above 0, "run-3-rank-1". Calling it again replaces
 * the files that it wrote. WEIR_OK; WEIR_ENOTFOUND if there is no run; WEIR_EIO and others; *error (may be NULL)
 * names the path. Memory use does not depend on the amount of data.
 */
WEIR_API int weir_tensorboard_export(weir_recording *recording, const weir_filter *filter, const char *log_dir,
                                     weir_error *error);

/* -- live */

typedef struct weir_tensorboard_log weir_tensorboard_log;

/* Setting this struct to all-zero is equivalent to defaults. Strings are copied. */
typedef struct weir_tensorboard_options {
    const char *node_id; /* in the file's name (NULL = the host's name) */
    /* The rules that name the limit of each lap: "0 overview/limit" (NULL = it is left out). They must live as long
       as the log. */
    const weir_limit_rules *limit_rules;
} weir_tensorboard_options;

/* For the inline function below. */
WEIR_API int weir_tensorboard_open_sized(const char *log_dir, const weir_tensorboard_options *options,
                                         size_t options_size, weir_tensorboard_log **log, weir_error *error);

/*
 * Creates the folder, its parents, and an event file with a unique name in it. On failure *log is NULL, and *error
 * (may be NULL) holds one line that names the path and the problem. options may be NULL.
 */
static inline int weir_tensorboard_open(const char *log_dir, const weir_tensorboard_options *options,
                                        weir_tensorboard_log **log, weir_error *error)
{
    return weir_tensorboard_open_sized(log_dir, options, sizeof *options, log, error);
}

/*
 * The observer to give to a pipeline; valid until weir_tensorboard_close(). All-zero for NULL. One pipeline at a
 * time: attaching a second one fails with WEIR_EBUSY; later pipelines continue the lap count in the same file.
 *
 * A lap is written as a whole when it has ended. A lap that cannot be written is dropped; that is logged once until
 * writing works again, and the run continues.
 */
WEIR_API weir_observer weir_tensorboard_observer(weir_tensorboard_log *log);

/*
 * Writes the rest, closes and frees. Call it after the pipeline has been freed. WEIR_OK; or WEIR_EIO or WEIR_ENOMEM,
 * with *error (may be NULL) filled, if anything had to be dropped. NULL is fine.
 */
WEIR_API int weir_tensorboard_close(weir_tensorboard_log *log, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
