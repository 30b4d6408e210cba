/*
 * Headspace: what loading costs a training loop. For some steps the loop gets results of the pipeline, which also keeps
 * a few of them. Then the pipeline stands still, and for the same number of steps the loop gets the kept results. The
 * difference between the lengths of the steps is what an infinitely fast loader would bring. It includes what no metric
 * of the pipeline shows: CPUs and memory bandwidth that loader and training take from each other.
 *
 *     weir_headspace_new(NULL, &headspace, &error);
 *     while ((status = weir_headspace_next(headspace, pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
 *         train(&item);
 *         weir_item_release(&item);
 *         if (weir_headspace_report(headspace, &report) == WEIR_OK && report.is_complete)
 *             break;  // or go on: from here on it only calls weir_pipeline_next()
 *     }
 *     puts(report.text);  // "loading costs you 13.0 % of each step …"
 *     weir_headspace_free(headspace);
 *
 * A step lasts from the return of one weir_headspace_next() to the return of the next; what the loop does after
 * WEIR_EPOCH does not count. If the training runs asynchronously (on a GPU), wait for its end in each step.
 */
#ifndef WEIR_HEADSPACE_H
#define WEIR_HEADSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/item.h>
#include <weir/pipeline.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_headspace weir_headspace;

/* Setting this struct to all-zero is equivalent to defaults. */
typedef struct weir_headspace_options {
    uint32_t warmup_steps; /* steps that do not count, before each of the two rounds; before the second one also those
                              in which tasks of the pipeline still run, up to 1000 (0 = 10) */
    uint32_t num_steps;    /* steps that count, in each round (0 = 50) */
    uint32_t num_items;    /* results kept at most (0 = 8) */
    uint64_t max_bytes;    /* of the kept results; may be exceeded by one (0 = 1 GiB) */
} weir_headspace_options;

/* Of the steps of one round: with one kind of results. */
typedef struct weir_headspace_times {
    uint64_t num_steps;
    double mean_s;           /* length of a step; 0 = none yet */
    double standard_error_s; /* of the mean */
} weir_headspace_times;

typedef struct weir_headspace_result {
    bool is_complete;              /* both rounds are */
    weir_headspace_times loader;   /* with results of the pipeline */
    weir_headspace_times replayed; /* with results from memory */
    double cost;                   /* share of a step that loading costs: 1 - replayed / loader */
    double cost_low, cost_high;    /* 95 % confidence, if the lengths of the steps do not depend on each other */
    uint64_t num_needed;           /* results that the pipeline must make, at least, for a complete measurement */
    char text[256]; /* one line: "loading costs you 13.0 % of each step (12.1 to 13.9 %): …", or what is missing */
} weir_headspace_result;

/* For the inline function below. */
WEIR_API int weir_headspace_new_sized(const weir_headspace_options *options, size_t options_size,
                                      weir_headspace **headspace, weir_error *error);

/* options may be NULL. WEIR_OK, WEIR_EUNSUPPORTED or WEIR_ENOMEM with *error (may be NULL) set. */
static inline int weir_headspace_new(const weir_headspace_options *options, weir_headspace **headspace,
                                     weir_error *error)
{
    return weir_headspace_new_sized(options, sizeof *options, headspace, error);
}

/*
 * weir_pipeline_next(), but in the second round *item is a result that was kept. It shares its data with others: do not
 * change it, and release it with weir_item_release(). A stop or a failure of the pipeline ends the replay. The second round
 * is the phase WEIR_PHASE_REPLAY, which is not counted as throughput. An event "headspace" holds the result when it is
 * complete. One thread at a time.
 */
WEIR_API int weir_headspace_next(weir_headspace *headspace, weir_pipeline *pipeline, weir_item *item,
                                 int64_t timeout_ns);

WEIR_API int weir_headspace_report_sized(const weir_headspace *headspace, weir_headspace_result *result,
                                         size_t result_size);

/* What is known so far. WEIR_OK or WEIR_EINVAL. */
static inline int weir_headspace_report(const weir_headspace *headspace, weir_headspace_result *result)
{
    return weir_headspace_report_sized(headspace, result, sizeof *result);
}

/* NULL is fine. Items that are still in use stay valid. */
WEIR_API void weir_headspace_free(weir_headspace *headspace);

#ifdef __cplusplus
}
#endif

#endif
