/*
 * The model behind weir/whatif.h. Its nodes come from weir_model_add(), with figures from the caller, or from a run,
 * with figures computed from its laps (model_figures.c). Settings are stored separately, so that they can be reset, and
 * each resampling of the laps gets the same settings.
 */
#ifndef STATS_ADVICE_MODEL_MODEL_H
#define STATS_ADVICE_MODEL_MODEL_H

#include <weir/whatif.h>

enum { MODEL_MAX_LAPS = 64 };

/* A lap, or the sum of several. */
typedef struct model_lap {
    int64_t elapsed_ns;
    size_t num_laps;
    weir_task_metrics *tasks;   /* of each node; run_times points to `times` */
    weir_queue_metrics *queues; /* of each queue; without histograms */
    uint64_t num_waits;         /* items for which the consumer waited */
    weir_pool_metrics *pools;   /* of each pool */
    weir_histogram *times;
} model_lap;

typedef enum model_key {
    MODEL_THREADS, /* of the pool: node = num_nodes; or of a node */
    MODEL_CPUS,
    MODEL_BACKGROUND,
    MODEL_CONCURRENCY,
    MODEL_QUEUE_ITEMS,
    MODEL_QUEUE_BYTES,
    MODEL_OUTPUT_ORDER,
    MODEL_TIME,
    MODEL_CPU_TIME,
    MODEL_WAIT_TIME,
} model_key;

/* A setting that differs from what was recorded. */
typedef struct model_setting {
    size_t node; /* SIZE_MAX = the pipeline */
    model_key key;
    double value;
    bool is_factor; /* of the recorded value */
} model_setting;

/* Nodes with their settings, and the settings of the pipeline. */
typedef struct model_state {
    weir_model_node *nodes;
    double threads, cpus, background;
} model_state;

typedef struct model_queue {
    char *name;
    size_t node;
    uint32_t branch;
} model_queue;

typedef struct model_pool {
    char *name;
    size_t node; /* its owner; num_nodes = the pipeline's pool */
} model_pool;

struct weir_model {
    model_state recorded; /* with the figures of all laps; owns texts and arrays */
    model_state shown;    /* the same with the settings */
    size_t num_nodes;
    bool knows_background; /* it is computed for the first prediction */
    model_setting *settings;
    size_t num_settings;
    model_queue *queues;
    size_t num_queues;
    model_pool *pools; /* the first is the pipeline's */
    size_t num_pools;

    model_lap *laps[MODEL_MAX_LAPS]; /* steady ones, oldest first */
    size_t num_laps, laps_joined;    /* each one is the sum of laps_joined laps; the last one may have fewer */
    model_lap *others;               /* start and tail of the run */
    model_lap *current;              /* until lap_end */
    double baseline;                 /* throughput at the recorded settings; NAN = not simulated yet */
    bool reads_records;              /* of a database, so that figures are only needed at the end */
    weir_error why;                  /* there is no model of the last run; zeroed = there is one */
};

/* model.c */
void weir__model_clear(weir_model *model);

static inline int weir__model_no_memory(weir_error *error)
{
    weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the model of a pipeline");
    return WEIR_ENOMEM;
}

/* The index of the node with this name, as in the statistics or as in its options; num_nodes = none, or several. */
size_t weir__model_find(const weir_model *model, const char *name);

/* model_settings.c: sets what the settings change in a state that is a copy of the recorded one. */
void weir__model_apply(const weir_model *model, model_state *state);

/* Copies the recorded state to the shown one, and applies the settings. */
void weir__model_show(weir_model *model);

/* model_figures.c */
model_lap *weir__model_lap_new(const weir_model *model);
void weir__model_lap_clear(const weir_model *model, model_lap *lap);
void weir__model_lap_add(const weir_model *model, model_lap *to, const model_lap *from);

/* The sum of the steady laps, or of all if none is steady; `with_others`: of all. The caller frees it. NULL = no
   memory. */
model_lap *weir__model_sum(const weir_model *model, bool with_others);

/* Replaces the figures of the nodes by those of a lap. The structure of the pipeline, such as the size of batches,
   is taken from `whole`, all laps. */
void weir__model_figure(const weir_model *model, const model_lap *lap, const model_lap *whole,
                        weir_model_node *nodes);

/* Items per second that the consumer got. */
double weir__model_throughput(const weir_model *model, const model_lap *lap);

/* The time for which tasks were on a CPU or waited for one, relative to their CPU time; NAN = not known. */
double weir__model_slowdown(const weir_model *model, const model_lap *lap);

/*
 * The time for which the tasks of a pool waited for a CPU; busy_s is that of its threads. The kernel's run-queue delay is
 * also counted when a thread wakes up from a sleep. Such delays belong to the sleep: they occur in every task, even if
 * it needs little CPU time. So only a part of the delay counts: it is multiplied by CPU time / time without delays / 0.95,
 * at most 1: above 0.95 the rest is not sleep, but the error of clocks.
 */
double weir__model_delay(double busy_s, double cpu_s, int64_t run_delay_ns);

/* For how many items the consumer waited. If it is not known: for all. */
uint64_t weir__model_count_waits(const weir_queue_metrics *sink);

/*
 * Whether the consumer polls: it takes all items that there are, and comes back later. Then it is not at work whenever
 * it does not wait: it is away for exactly as long as the queue is not empty, and it takes most items without waiting.
 */
bool weir__model_polls(int64_t elapsed_ns, const weir_queue_metrics *sink, uint64_t num_waits);

/* CPU time of all tasks per second. */
double weir__model_used_cpus(const weir_model *model, const model_lap *lap);

/* Whether long tasks of a node come at even intervals, as if every tenth file was large. */
bool weir__model_is_even(const weir_model *model, size_t node);

/* The middle of a bucket of a histogram, in seconds. */
double weir__model_bucket_s(uint32_t bucket);

#endif
