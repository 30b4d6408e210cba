/*
 * The tuner: an observer that changes the slots of stages and the threads of the pipeline's pool while it runs, within
 * a budget of CPU time and memory, to raise the number of items that the consumer gets.
 *
 *     weir_tuner_new(&(weir_tuner_options){ .cpus = 4 }, &tuner, &error);
 *     weir_observer observers[] = { weir_sqlite_observer(writer), weir_tuner_observer(tuner) };
 *     weir_builder_build(builder, &(weir_pipeline_options){ .observers = observers, … }, &pipeline, &error);
 *     weir_tuner_attach(tuner, pipeline);
 *     …
 *     weir_pipeline_free(pipeline);
 *     weir_tuner_free(tuner);
 *
 * It decides after each lap. Decisions depend on the laps only, so a recorded run can be replayed: weir_tuner_replay().
 * The tuner makes a model from the measured costs of tasks (<weir/whatif.h>), finds the settings with the highest
 * predicted throughput, and applies them one change at a time. Each change is measured for at least one lap after the
 * lap in which it was made. A change that gains less than min_gain is reverted, and not tried again until the load
 * changes. When the model predicts no more gain, the tuner tries more slots and threads once where all of them are in
 * use, in case the model is wrong. Then it rests until the throughput changes by more than a sixth, or the slots of a
 * stage or source are busy for another share of the time: for two laps in a row at first, for twice as many (at most 32)
 * after each such change.
 *
 * Every change, every outcome and every rest is an event "tuner" with the reason, the prediction and the result. The
 * engine's events "concurrency" and "threads" record the changes as well. docs/tuning.md has an example.
 */
#ifndef WEIR_TUNER_H
#define WEIR_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/observer.h>
#include <weir/pipeline.h>
#include <weir/query.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_tuner weir_tuner;

typedef enum weir_tuner_action {
    WEIR_TUNER_CHANGED = 1, /* a setting was changed, to measure its effect */
    WEIR_TUNER_KEPT,        /* the current settings are the best so far */
    WEIR_TUNER_REVERTED,    /* a setting was changed back */
    WEIR_TUNER_REDUCED,     /* a setting was lowered because the budget was exceeded */
    WEIR_TUNER_RESTED,      /* no further gain is expected */
    WEIR_TUNER_RESTARTED,   /* the load has changed */
} weir_tuner_action;

/* Texts are valid during the call. */
typedef struct weir_tuner_decision {
    uint64_t lap; /* number of the lap that it is based on */
    weir_tuner_action action;
    const char *stage; /* whose slots; NULL = the threads of the pipeline's pool, or all settings */
    uint32_t before, after;
    double measured;  /* items per second in the last measurement: before a change, and after it if it is kept or
                         reverted; NAN = none yet */
    double predicted; /* with the planned settings, if one was changed, kept or reverted; NAN = no prediction */
    const char *text; /* the complete text of the event */
    uint64_t reserved[4];
} weir_tuner_decision;

/* Setting this struct to all-zero is equivalent to defaults. */
typedef struct weir_tuner_options {
    double cpus;           /* CPU time per second that the pipeline may use (0 = machine_cpus); one that is smaller
                              than the use of one thread cannot be kept */
    double machine_cpus;   /* of the machine, for a replay elsewhere (0 = weir_cpu_budget()) */
    uint64_t memory_bytes; /* resident memory that the process may use (0 = no limit) */
    uint32_t max_threads;  /* of the pool (0 = the larger of 8 and 4 × cpus; at most WEIR_MAX_THREADS) */
    uint32_t max_slots;    /* of each stage (0 = 64; at most WEIR_MAX_SLOTS) */
    double min_gain;       /* a change must gain at least this share (0 = 0.03) */
    uint32_t min_items;    /* results for one measurement, which lasts up to three laps to get them; up to eight if
                              the laps differ much (0 = 20) */
    /* Called for each decision on the observer thread (NULL = no call). Without an attached pipeline the caller may
       apply the decisions. */
    void (*decided)(void *self, const weir_tuner_decision *decision);
    void *decided_self;
} weir_tuner_options;

/* For the inline functions below. */
WEIR_API int weir_tuner_new_sized(const weir_tuner_options *options, size_t options_size, weir_tuner **tuner,
                                  weir_error *error);
WEIR_API int weir_tuner_replay_sized(weir_reader *reader, int64_t run_id, const weir_tuner_options *options,
                                     size_t options_size, weir_error *error);

/* options may be NULL. WEIR_OK, or WEIR_EINVAL or WEIR_ENOMEM with *error (may be NULL) set. */
static inline int weir_tuner_new(const weir_tuner_options *options, weir_tuner **tuner, weir_error *error)
{
    return weir_tuner_new_sized(options, sizeof *options, tuner, error);
}

/* The observer to give to one pipeline; valid until weir_tuner_free(). All-zero for NULL. */
WEIR_API weir_observer weir_tuner_observer(weir_tuner *tuner);

/* Sets the pipeline to change, which must have the tuner's observer. Without a pipeline the tuner only decides. Call it
   directly after building the pipeline, and weir_tuner_free() after weir_pipeline_free(). WEIR_OK or WEIR_EINVAL. Any
   thread. */
WEIR_API int weir_tuner_attach(weir_tuner *tuner, weir_pipeline *pipeline);

/*
 * Makes the decisions of a tuned run (WEIR_LAST_RUN = the last one) again from its recorded laps, and calls
 * options->decided for each. With the options of the run, the decisions are the same as in the run, unless the engine
 * refused one (a stage that keeps items between tasks has fixed slots), which is not recorded. WEIR_OK, or the failure
 * with *error (may be NULL) set.
 */
static inline int weir_tuner_replay(weir_reader *reader, int64_t run_id, const weir_tuner_options *options,
                                    weir_error *error)
{
    return weir_tuner_replay_sized(reader, run_id, options, sizeof *options, error);
}

/* NULL is fine. */
WEIR_API void weir_tuner_free(weir_tuner *tuner);

#ifdef __cplusplus
}
#endif

#endif
