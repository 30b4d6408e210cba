/*
 * The tuner changes the slots of stages and the threads of the pool while a pipeline runs, within a budget of CPU
 * time and memory. It raises the number of items that the consumer gets. It takes back what is not needed for that.
 *
 *     weir_builder_build(builder, &options, &pipeline, &error);
 *     weir_tuner_start(pipeline, &(weir_tuner_options){ .cpus = 4 }, &tuner, &error);
 *     … the consumer takes items …
 *     weir_tuner_free(tuner);       (before the pipeline)
 *     weir_pipeline_free(pipeline);
 *
 * Each change is measured as weir_explain_live() does it. The rules of the verdict name what is full. Twice as much
 * of it runs in alternation with the present setting, and is kept only if it delivers more. A change that brought
 * nothing is remembered. It is not tried again until another change is kept, or the load changes. Where no stage
 * brings more alone, the slots of all stages that are used nearly as much as the fullest one are raised together.
 * When no larger setting brings a gain, slots and threads are halved in the same way, as long as nothing is lost.
 * Then the tuner rests until the throughput has differed by 10 % (WEIR_WORTH_GAIN), and by more than the error of
 * measurement, for twice setting_ns.
 *
 * Every change, every outcome and every rest is an event "tuner" of the pipeline with the reason and the result. The
 * engine's events "concurrency" and "threads" record the changes as well. docs/tuning.md has an example.
 */
#ifndef WEIR_TUNER_H
#define WEIR_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/pipeline.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_tuner weir_tuner;

typedef enum weir_tuner_action {
    WEIR_TUNER_KEPT = 1, /* a setting was measured, and is kept */
    WEIR_TUNER_REVERTED, /* it was measured, and brought nothing, or cost something */
    WEIR_TUNER_REDUCED,  /* a setting was lowered because the budget was exceeded */
    WEIR_TUNER_RESTED,   /* nothing is left to try */
    WEIR_TUNER_RESTARTED /* the load has changed */
} weir_tuner_action;

/* Texts are valid during the call. */
typedef struct weir_tuner_decision {
    weir_tuner_action action;
    const char *stage;       /* whose slots; NULL = the threads of the pipeline's pool, or all settings */
    uint32_t before, after;  /* the setting; 0 = no single one */
    uint32_t slots, threads; /* now: of that stage, and of the threads that it runs on; 0 = no stage */
    double gain, low,
        high;         /* throughput relative to the setting before, with its 95 % interval; NAN = not measured */
    const char *text; /* the complete text of the event */
} weir_tuner_decision;

/* Setting this struct to all-zero is equivalent to defaults. */
typedef struct weir_tuner_options {
    double cpus;           /* CPU time per second that the process may use (0 = no limit) */
    uint64_t memory_bytes; /* resident memory that the process may use (0 = no limit) */
    uint32_t max_threads;  /* of the pool (0 = the larger of 64 and 4 x the CPU budget; at most WEIR_MAX_SLOTS) */
    uint32_t max_slots;    /* of each stage (0 = 64; at most WEIR_MAX_SLOTS) */
    double min_gain;       /* a change must gain at least this share; one that loses less is nothing (0 = 0.03) */
    int64_t slice_ns, setting_ns; /* of each trial, as in weir_live_options (0 = the defaults there) */
    /* Called for each decision on the tuner's thread (NULL = no call). */
    void (*decided)(void *self, const weir_tuner_decision *decision);
    void *decided_self;
} weir_tuner_options;

/* For the inline function below. */
WEIR_API int weir_tuner_start_sized(weir_pipeline *pipeline, const weir_tuner_options *options, size_t options_size,
                                    weir_tuner **tuner, weir_error *error);

/* Starts the tuner's thread. options may be NULL. One tuner for a pipeline, and no weir_explain_live() beside it. WEIR_OK;
   WEIR_EINVAL, WEIR_ENOMEM or WEIR_ESYSTEM with *error (may be NULL) set. */
static inline int weir_tuner_start(weir_pipeline *pipeline, const weir_tuner_options *options, weir_tuner **tuner,
                                   weir_error *error)
{
    return weir_tuner_start_sized(pipeline, options, sizeof *options, tuner, error);
}

/* Ends the thread, within a second; a trial in progress is undone. Before weir_pipeline_free(). NULL is fine. */
WEIR_API void weir_tuner_free(weir_tuner *tuner);

#ifdef __cplusplus
}
#endif

#endif
