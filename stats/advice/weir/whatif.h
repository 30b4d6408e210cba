/*
 * What if: a model of a pipeline, made from measurements, and a simulator that predicts its throughput with other
 * settings. docs/whatif.md describes the model, its limits and how well it predicts.
 *
 *     weir_model_read(reader, &filter, &model, &error);            // or weir_model_new() and weir_model_observer()
 *     weir_model_set(model, "decode.concurrency", "8", &error);
 *     weir_model_set(model, "threads", "4", &error);
 *     weir_model_predict(model, NULL, &prediction, &error);
 *     printf("%.1f items/s (%.1f to %.1f)\n", prediction->throughput, prediction->low, prediction->high);
 *     weir_prediction_free(prediction);
 *     weir_model_free(model);
 *
 * The simulator runs the engine's own rules on random tasks: slots, threads that pick the ready slot nearest the sink,
 * queues bounded in items and bytes, output in input order, batches, chunks, routes and merges. The CPU part of
 * a task shares the CPUs with all other running tasks; the rest of its time is a fixed delay.
 *
 * Only one thread may use a model at a time. Times are in seconds (double), because figures of a model are means.
 */
#ifndef WEIR_WHATIF_H
#define WEIR_WHATIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/histogram.h>
#include <weir/observer.h>
#include <weir/pipeline.h>
#include <weir/query.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_model weir_model;

/* One source, stage, route, merge or sink: how it is built, and what a task costs. Texts and arrays are copied. */
typedef struct weir_model_node {
    const char *name;     /* as in the statistics, "0:1:decode[10]", or any other name */
    const char *kind;     /* "source", "stage", "route", "merge" or "sink" */
    uint32_t concurrency; /* slots (0 = 1) */
    uint32_t threads;     /* private threads (0 = it uses the pipeline's pool) */
    uint32_t queue_items; /* capacity of its output queue (0 = 2, of a sink 3) */
    uint32_t num_inputs;  /* (0 = the node before it, or none if it is a source) */
    uint64_t queue_bytes; /* (0 = unlimited) */
    weir_order output_order;
    weir_merge_order merge_order;
    const uint32_t *inputs;  /* the nodes it takes from, by index */
    const uint32_t *weights; /* of the inputs, for WEIR_MERGE_WEIGHTED (NULL = all 1) */
    const double *shares;    /* of a route: how its items are divided among num_shares branches, in any scale */
    uint32_t num_shares;

    /* what a task costs */
    double time_s;    /* mean length of a task without competition for CPUs; of a sink: of the consumer's work */
    double cpu_s;     /* part of time_s in which it needs a CPU */
    double pending_s; /* part of the rest in which it holds no thread (WEIR_PENDING) */
    const weir_histogram *times; /* how the lengths vary; only the shape counts (NULL = all tasks take time_s) */
    double skip_share;           /* of the tasks that end without a result, although they have not failed */
    double failure_share;        /* of the tasks that fail */
    double results;    /* for each other task: 0.25 = batches of 4 inputs, 3 = chunks of one input (0 = 1) */
    double item_bytes; /* size of a result */
    double slot_bytes; /* memory of a slot, without its items (0 = not known) */
    /* For each input that is a route: the number of the branch (NULL = branches in the order in which the nodes that
       take from it are added). */
    const uint32_t *branches;
    uint64_t reserved[7]; /* 0 */
} weir_model_node;

/* -- making models. WEIR_OK, or WEIR_EINVAL, WEIR_ENOMEM, … with *error (may be NULL) set -- */

/* An empty model. */
WEIR_API int weir_model_new(weir_model **model, weir_error *error);

/*
 * The model of one run of a database: filter->run_id, by default the last run. Only laps in the steady part of the run
 * that match the filter count; see weir_model_observer(). WEIR_ENOTFOUND if no lap is left; WEIR_EUNSUPPORTED if the
 * recording does not contain how its nodes are connected (routes in databases of older schemas).
 */
WEIR_API int weir_model_read(weir_reader *reader, const weir_filter *filter, weir_model **model, weir_error *error);

/* Adds a node by hand to a model from weir_model_new(). Add a node after the nodes that it takes from. */
WEIR_API int weir_model_add(weir_model *model, const weir_model_node *node, weir_error *error);

/*
 * Fills the model from live laps: give it to a pipeline, or call its functions from your own observer. run_start
 * replaces the content of the model. The model can be used from the first lap_end on; each lap refines it. Laps before
 * the first result of the pipeline and laps in which a source had already ended do not count unless there are no
 * others. Memory use does not depend on the number of laps: if there are more than 64, neighbouring laps are joined.
 * Use the model only on the thread that calls the observer, or after the run has ended.
 */
WEIR_API weir_observer weir_model_observer(weir_model *model);

/* Forgets all laps, for example because the load has changed. The pipeline and its settings stay. */
WEIR_API void weir_model_forget(weir_model *model);

/* NULL is fine. */
WEIR_API void weir_model_free(weir_model *model);

/* -- reading models -- */

WEIR_API size_t weir_model_num_nodes(const weir_model *model);

/* With the current settings and the figures of all laps. Valid until the model is changed. NULL = no such node. */
WEIR_API const weir_model_node *weir_model_node_at(const weir_model *model, size_t index);

/* Items per second that the consumer got in the laps that count; NAN = not known. */
WEIR_API double weir_model_measured(const weir_model *model);

/* The number of laps that count, before joining. */
WEIR_API size_t weir_model_num_laps(const weir_model *model);

/* -- changing settings -- */

/*
 * Changes one setting. Stages are named as in the statistics, or as in their options ("decode").
 *     threads             threads of the pipeline's pool
 *     cpus                CPUs that its threads may use; fractions are allowed
 *     background          mean number of threads of other programs that compete for the CPUs; fractions are allowed
 *     STAGE.concurrency, STAGE.threads, STAGE.queue_items, STAGE.queue_bytes
 *     STAGE.output_order  completion or input
 *     STAGE.time, STAGE.cpu_time, STAGE.wait_time
 *                         what a task costs: "5ms", "0.2s", or "0.5x" for a multiple of what was measured; the name of
 *                         the sink changes the consumer
 * WEIR_ENOTFOUND or WEIR_EINVAL with a message that says what is allowed; the model is then unchanged.
 */
WEIR_API int weir_model_set(weir_model *model, const char *setting, const char *value, weir_error *error);

/* The current value of a numeric setting; times are in seconds. NAN = no such setting. */
WEIR_API double weir_model_get(const weir_model *model, const char *setting);

/* Sets all settings back to the recorded ones. */
WEIR_API void weir_model_reset(weir_model *model);

/* -- predictions -- */

/* A zeroed struct selects the defaults. */
typedef struct weir_predict_options {
    uint64_t num_items; /* to simulate in each run, after the start-up (0 = as many as take a fraction of a second) */
    uint64_t seed;      /* of the random choices */
    uint32_t resamples; /* further runs, each with laps drawn at random, for `low` and `high` (0 = 20) */
    bool no_range;      /* one run only: fast, low = high = throughput */
} weir_predict_options;

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
    double items_per_s; /* results */
    double busy_share, wait_in_share, wait_thread_share, wait_turn_share, wait_out_share;
    double cpu_wait_share; /* part of busy_share: waiting for a CPU */
    double cpus;           /* CPU time per second */
    double queue_depth;    /* mean number of items in its output queues */
} weir_predicted_node;

typedef struct weir_predicted_pool {
    const char *name; /* "0:pool", "0:1:decode[10]_pool" */
    uint32_t threads;
    double busy_share;
} weir_predicted_pool;

/* Texts belong to the prediction. */
typedef struct weir_prediction {
    double throughput; /* items per second that the consumer gets, in the steady state */
    /* 95 % of runs as long as the recorded one, by resampling its laps, extended by the error of the model at the
       recorded settings; with other slots, threads or CPUs than recorded also by `baseline`, because what tasks wait for
       may not serve more of them */
    double low, high;
    double baseline; /* the model's throughput at the recorded settings */
    double measured; /* the measured one; NAN = not known */
    weir_limit_kind limit;
    const char *limit_name; /* of the node or pool; "" = none */
    double limit_share;     /* share of it that is in use */
    double cpus;            /* CPU time per second of all tasks */
    double cpu_share;       /* of the CPUs */
    double memory_bytes;    /* of items in queues and slots, and of slots if known; NAN = sizes not known */
    bool beyond_measured;   /* more CPUs, threads or slots of a stage than in the measurement */
    uint64_t num_items;     /* simulated in each run */
    const weir_predicted_node *nodes;
    size_t num_nodes;
    const weir_predicted_pool *pools;
    size_t num_pools;
} weir_prediction;

WEIR_API int weir_model_predict_sized(weir_model *model, const weir_predict_options *options, size_t options_size,
                                      weir_prediction **prediction, weir_error *error);

/*
 * Simulates the model with its current settings. options may be NULL. The same model, settings and options give the
 * same prediction on every machine. On success free it with weir_prediction_free(). WEIR_EINVAL if the model has no
 * source, no sink or no lap.
 */
static inline int weir_model_predict(weir_model *model, const weir_predict_options *options,
                                     weir_prediction **prediction, weir_error *error)
{
    return weir_model_predict_sized(model, options, sizeof *options, prediction, error);
}

/* NULL is fine. */
WEIR_API void weir_prediction_free(weir_prediction *prediction);

/* "the slots of 0:1:decode[10]", "the CPUs", … */
WEIR_API void weir_prediction_describe_limit(const weir_prediction *prediction, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
