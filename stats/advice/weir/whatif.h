/*
 * What if: a model of a pipeline is made from measurements. A simulator predicts its throughput with other settings.
 * docs/whatif.md describes the model, its limits and how well it predicts.
 *
 *     const char *settings[] = { "decode.concurrency=8", "threads=4" };
 *     weir_whatif(recording, &filter, &(weir_whatif_options){ .settings = settings, .num_settings = 2 }, &prediction, &error);
 *     printf("%.1f items/s (%.1f to %.1f)\n", prediction->throughput, prediction->low, prediction->high);
 *     weir_prediction_free(prediction);
 *
 * The simulator runs the engine's own rules on random tasks. It has slots, threads that pick the ready slot nearest
 * the sink, and queues bounded in items and bytes. It knows output in input order, batches, chunks, routes and
 * merges. The CPU time of a task shares the CPUs with all other running tasks; the rest of its time is a fixed delay.
 *
 * Times are in seconds (double), because figures of a model are means.
 */
#ifndef WEIR_WHATIF_H
#define WEIR_WHATIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/query.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What to predict. A zeroed struct selects the defaults.
 *
 * A setting is "NAME=VALUE". Stages are named as in the statistics, or as in their options ("decode").
 *     threads             threads of the pipeline's pool
 *     cpus                CPUs that its threads may use; fractions are allowed
 *     background          mean number of threads of other programs that compete for the CPUs; fractions are allowed
 *     STAGE.concurrency, STAGE.threads, STAGE.queue_items, STAGE.queue_bytes, STAGE.look_ahead_items (of a route)
 *     STAGE.output_order  completion or input
 *     STAGE.time, STAGE.cpu_time, STAGE.wait_time
 *                         what a task costs: "5ms", "0.2s", or "0.5x" for a multiple of what was measured; the name of
 *                         the sink changes the consumer
 */
typedef struct weir_whatif_options {
    const char *const *settings; /* that differ from the recorded ones (NULL = none) */
    size_t num_settings;
    uint64_t num_items; /* to simulate in each run, after the start-up (0 = as many as take a fraction of a second) */
    uint64_t seed;      /* of the random choices */
    uint32_t resamples; /* further runs, each with laps drawn at random, for `low` and `high` (0 = 20) */
    bool no_range;      /* one run only: fast, low = high = throughput */
} weir_whatif_options;

typedef enum weir_limit_kind {
    WEIR_LIMIT_SOURCE = 1,
    WEIR_LIMIT_SLOTS,   /* of a stage */
    WEIR_LIMIT_THREADS, /* of a pool */
    WEIR_LIMIT_CPUS,
    WEIR_LIMIT_ORDER,    /* results wait for earlier ones (output in input order) */
    WEIR_LIMIT_CONSUMER, /* the pipeline waits for it */
    WEIR_LIMIT_NONE,     /* nothing is in use all the time: stages wait for each other (bursts, small queues) */
} weir_limit_kind;

/* Shares of slots × time; they add up to 1. */
typedef struct weir_predicted_node {
    const char *name;
    const char *kind;
    uint32_t concurrency;
    double items_per_s; /* results */
    double busy_share, wait_in_share, wait_thread_share, wait_turn_share, wait_out_share;
    double cpu_wait_share; /* part of busy_share: waiting for a CPU */
    double cpus;           /* CPU time per second */
    double queue_depth;    /* mean number of items in its output queues */
} weir_predicted_node;

/* Texts belong to the prediction. */
typedef struct weir_prediction {
    double throughput; /* items per second that the consumer gets, in the steady state */
    /* 95 % of runs as long as the recorded one, by resampling its laps, extended by the error of the model at the
       recorded settings. With other settings the range reaches to `measured`, because what tasks wait for may not
       serve more of them. Where the CPUs are the limit, the range reaches to as much of a loss as of a gain */
    double low, high;
    double baseline; /* the model's throughput at the recorded settings */
    double measured; /* the measured one; NAN = not known */
    weir_limit_kind limit;
    const char *limit_name; /* of the node, the owner of the pool, or "the pool"; "" = none */
    const char *limit_text; /* "the slots of 0:1:decode[10]", "the CPUs", … */
    double limit_share;     /* share of it that is in use */
    double cpus;            /* CPU time per second of all tasks */
    double cpu_share;       /* of the CPUs */
    double memory_bytes;    /* of items in queues and slots, and of slots if known; NAN = sizes not known */
    bool beyond_measured;   /* more CPUs, threads or slots of a stage than in the measurement */
    uint64_t num_items;     /* simulated in each run */
    double threads, available_cpus, background; /* the settings that were simulated */
    size_t num_laps;                            /* that were recorded and count */
    const weir_predicted_node *nodes;
    size_t num_nodes;
    double deviation; /* of 95 % of runs as long as the recorded one, to either side and relative */
    double error; /* deviation + by how much the model is off at the recorded settings (if `measured`), relative */
} weir_prediction;

WEIR_API int weir_whatif_sized(weir_recording *recording, const weir_filter *filter,
                               const weir_whatif_options *options, size_t options_size, weir_prediction **prediction,
                               weir_error *error);

/*
 * Predicts one run of a database with other settings: filter->run_id, by default the last run. Only laps in the steady part
 * of the run that match the filter count. options may be NULL. The same recording and options give the same prediction on
 * every machine. WEIR_OK: free it with weir_prediction_free(). Failures set *error (may be NULL). WEIR_ENOTFOUND if
 * no lap is left. WEIR_EINVAL, with a message that says what is allowed, if a setting does not exist.
 * WEIR_EUNSUPPORTED if the recording does not contain how its nodes are connected (routes in databases of older
 * schemas). Others are WEIR_ENOMEM, …
 */
static inline int weir_whatif(weir_recording *recording, const weir_filter *filter,
                              const weir_whatif_options *options, weir_prediction **prediction, weir_error *error)
{
    return weir_whatif_sized(recording, filter, options, sizeof *options, prediction, error);
}

/* NULL is fine. */
WEIR_API void weir_prediction_free(weir_prediction *prediction);

#ifdef __cplusplus
}
#endif

#endif
