/*
 * Measures each stage of a pipeline alone, at several numbers of slots: before a run, to see which stage needs slots, which one
 * gains from them, and which one has to get cheaper.
 *
 *     static void print(void *self, const weir_profile_result *r)
 *     {
 *         printf("%s with %u slots: %.1f items/s\n", r->name, r->slots, r->items_per_s);
 *     }
 *     …
 *     if (weir_profile(builder, NULL, print, NULL, &error) != WEIR_OK) …
 *     weir_builder_build(builder, NULL, &pipeline, &error);     // the description is as it was
 *
 * A stage gets inputs that the source and the stages upstream of it make, with the settings of the description; making them is
 * not measured. They are kept in memory and then passed to the stage, whose results are released at once. So nothing holds the
 * stage up: neither a slow upstream stage, nor a slow consumer, nor other stages that need the CPUs. Operations may take their
 * inputs away or change them, so inputs are made anew for each measurement. They are the same each time, with the same numbers,
 * epochs and labels, unless a merge or an operation decides by time.
 *
 * Each slot has a thread: operations that wait run in as many threads as slots, and those that compute gain nothing beyond the
 * CPUs. A stage with private threads has no more of them than the description says.
 */
#ifndef WEIR_PROFILE_H
#define WEIR_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/pipeline.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A zeroed struct selects the defaults. */
typedef struct weir_profile_options {
    /* Inputs of each measurement; less, if the source has no more, or max_bytes is reached (0 = ten for each slot of the largest
       number, and as many as the first measurement of a stage handles in run_ns; but no more than the upstream stages make in
       run_ns, if that is one for each slot) */
    uint64_t items;
    int64_t run_ns; /* see items; sources are measured for so long, or for `items` items (0 = 2 s) */
    /* Numbers of slots, each from 1 to WEIR_MAX_SLOTS, in this order (NULL = 1, 2, 4, … up to the CPU budget or the stage's own
       number, whichever is larger, and that number) */
    const uint32_t *concurrencies;
    size_t num_concurrencies;
    /* Of the inputs that are kept: weir_item.size_bytes and sizeof(weir_item) of each (0 = a quarter of the memory that is
       available) */
    uint64_t max_bytes;
    int64_t time_limit_ns; /* of the whole call (0 = none) */
    /* Asked about 50 times a second, on the thread of weir_profile(); true ends it (NULL = never) */
    bool (*should_stop)(void *self);
    void *should_stop_self;
} weir_profile_options;

/* A source, or a stage with one number of slots. Valid during the call of the function that gets it. */
typedef struct weir_profile_result {
    const char *name; /* as in the options: "load" */
    const char *op;   /* the name of its operation */
    const char *kind; /* "source" or "stage" */
    uint32_t index;   /* among all nodes, in the order of building */
    uint32_t slots;   /* 0 = it was not measured, `error` says why: it is in a branch of a route */
    uint32_t threads;
    bool is_own; /* slots is what the description says */
    uint64_t num_inputs, num_tasks, num_failures, num_results;
    int64_t elapsed_ns; /* from the first input to the last result */
    int64_t busy_ns;    /* slot time running or pending */
    int64_t tail_ns;    /* slot time at the end without input, while other slots had their last ones */
    int64_t cpu_ns;     /* of its tasks, with that of child processes */
    /* Tasks (of a source: results) per second. Of n inputs and s slots, about (s - 1) / 2n of the slot time has no input at the
       end (tail_ns): by that share it is too low. With ten inputs for each slot that is below 5 % */
    double items_per_s;
    /* The same in items of the source: stages may make several results of an item, or one of several. Stages of a description
       are compared by it. Items that were skipped, kept or have failed upstream count */
    double source_items_per_s;
    double cpu_per_item_s;
    double busy_share;    /* of slots x elapsed; below 1 at the end, see items_per_s, and where the hand-offs cost */
    double gain;          /* items_per_s over that of the stage's first measurement; 1 for that one */
    uint64_t kept_bytes;  /* of its inputs */
    int64_t memory_bytes; /* by how much the process grew at most, with children, while it ran; -1 = not known */
    /* Why it was not measured; or that it has failed beyond its max_failures, or in a stage hook. status 0 = neither */
    weir_error error;
} weir_profile_result;

typedef void weir_profile_function(void *self, const weir_profile_result *result);

/* For the inline function below. */
WEIR_API int weir_profile_sized(const weir_builder *builder, const weir_profile_options *options, size_t options_size,
                                weir_profile_function *report, void *self, weir_error *error);

/*
 * Reports the sources and the stages in the order of building, each stage with one number of slots after the other; on the calling
 * thread, which may take as long as it likes. Routes, merges and the sink are not measured, but stages behind a join or a merge are.
 * A stage in a branch of a route is reported as not measured. Hooks of stages and tasks run in each measurement, too, and the
 * environment (WEIR_RECORD) records each as a run. The description is not changed; it needs no sink. options may be NULL.
 *
 *   WEIR_OK        all were reported. Tasks that failed are counted
 *   WEIR_EINVAL    builder or report is NULL, an option is not valid; or the status of the description's error
 *   WEIR_ENOTFOUND the source, or the upstream stages, make nothing for a stage
 *   WEIR_ESTOPPED  should_stop() was true; what was measured before is reported, what was running is not
 *   WEIR_ETIMEDOUT time_limit_ns is over; the same
 *   negative       as weir_pipeline_error(): a stage has failed beyond its max_failures, or a source or a stage hook has failed. What
 *                  failed is reported; those downstream of it get no inputs
 * and WEIR_ENOMEM, WEIR_ESYSTEM; all with *error (may be NULL) filled.
 */
static inline int weir_profile(const weir_builder *builder, const weir_profile_options *options,
                               weir_profile_function *report, void *self, weir_error *error)
{
    return weir_profile_sized(builder, options, sizeof *options, report, self, error);
}

#ifdef __cplusplus
}
#endif

#endif
