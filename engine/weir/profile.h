/*
 * Measures each stage of a pipeline alone, with several numbers of slots. Use it before a run. It shows which stage needs
 * slots, which one gains from them, and which one has to do less work.
 *
 *     static void print(void *self, const weir_profile_result *r)
 *     {
 *         printf("%s with %u slots: %.1f items/s\n", r->name, r->slots, r->items_per_s);
 *     }
 *     …
 *     if (weir_profile(builder, NULL, print, NULL, &error) != WEIR_OK) …
 *     weir_builder_build(builder, NULL, &pipeline, &error);     // the description is as it was
 *
 * The source and the stages upstream of a stage make its inputs, with the settings of the description. Making them is not
 * measured. They are kept in memory and then passed to the stage, whose results are released at once. So nothing else slows the
 * stage down: neither a slow upstream stage, nor a slow consumer, nor other stages that need the CPUs. An operation may keep or
 * change its inputs, so inputs are made again for each measurement. They are the same each time, with the same numbers, epochs
 * and labels, unless a merge or an operation decides by time.
 *
 * Each slot has a thread. So operations that wait can all wait at once, and those that compute gain nothing from more slots
 * than CPUs. A stage with private threads has no more of them than the description says.
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
    /* Number of inputs of each measurement. There are fewer if the source has no more, or if max_bytes is reached. 0 = ten for
       each slot of the largest number of slots, or more: until the first measurement of a stage lasts for run_ns. The upstream
       stages make inputs for at most run_ns, but at least one for each slot */
    uint64_t items;
    int64_t run_ns; /* time for which a source is measured if items is 0; see also items (0 = 2 s) */
    /* Numbers of slots, each from 1 to WEIR_MAX_SLOTS, in this order. NULL = 1, 2, 4, … up to the CPU budget or the stage's own
       number, whichever is larger, and the stage's own number */
    const uint32_t *concurrencies;
    size_t num_concurrencies;
    /* Most bytes of inputs that are kept: the sum of weir_item.size_bytes and sizeof(weir_item) (0 = a quarter of the
       memory that is available) */
    uint64_t max_bytes;
    int64_t time_limit_ns; /* of the whole call (0 = none) */
    /* Called about 50 times a second, on the thread of weir_profile(). If it returns true, weir_profile() ends (NULL
       = never) */
    bool (*should_stop)(void *self);
    void *should_stop_self;
} weir_profile_options;

/* A source, or a stage with one number of slots. Valid during the call of the function that gets it. */
typedef struct weir_profile_result {
    const char *name; /* as in weir_stage_options: "load" */
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
    int64_t cpu_ns;     /* CPU time of its tasks, including that of child processes */
    /* Tasks (of a source: results) per second. At the end, slots have no input while others have their last one (tail_ns). With
       n inputs and s slots, this is about (s - 1) / 2n of the slot time, and the figure is too low by this share. With ten
       inputs for each slot, the share is below 5 % */
    double items_per_s;
    /* The same in items of the source, because stages may make several results of an item, or one of several. Use it to
       compare the stages of a description. Items that were skipped or kept upstream, or that failed there, count */
    double source_items_per_s;
    double cpu_per_item_s;
    double busy_share;    /* share of slots x elapsed. It is lower because of the end (see items_per_s), and because
                             of hand-offs between threads */
    double gain;          /* items_per_s divided by that of the stage's first measurement (which has 1) */
    uint64_t kept_bytes;  /* of its inputs */
    int64_t memory_bytes; /* the most by which the process and its children grew meanwhile; -1 = not known */
    /* Why it was not measured; or its failure, beyond its max_failures or in a stage hook; or the first failure, if all its
       tasks failed: items_per_s, busy_share, cpu_per_item_s and gain are 0 then. status 0 = none of these */
    weir_error error;
} weir_profile_result;

typedef void weir_profile_function(void *self, const weir_profile_result *result);

/* For the inline function below. */
WEIR_API int weir_profile_sized(const weir_builder *builder, const weir_profile_options *options, size_t options_size,
                                weir_profile_function *report, void *self, weir_error *error);

/*
 * Measures the sources and the stages in the order of building, each stage with one number of slots after the other. It calls
 * `report` for each measurement, on the calling thread. `report` may take as long as it likes. Routes, merges and the sink are not
 * measured, but stages downstream of a join or a merge are. A stage in a branch of a route is reported as not measured. Hooks of
 * stages and tasks also run in each measurement. If WEIR_RECORD is set in the environment, each measurement is recorded as a run.
 * The description is not changed. It needs no sink. options may be NULL.
 *
 *   WEIR_OK        all were reported. Failed tasks are counted in num_failures
 *   WEIR_EINVAL    an option is not valid; or the status of the description's error
 *   WEIR_ENOTFOUND a stage gets no input, because the source or the upstream stages make none
 *   WEIR_ESTOPPED  should_stop() was true. Earlier measurements are reported, the one in progress is not
 *   WEIR_ETIMEDOUT time_limit_ns is over. The same holds
 *   negative       as weir_pipeline_error(): a stage has failed beyond its max_failures, or a source or a stage hook has
 *                  failed; or all tasks of a measurement have failed, and this is the status of one of them. What failed
 *                  is reported; those downstream of it get no inputs
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
