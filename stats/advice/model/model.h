/*
 * The model behind weir/whatif.h. Only one thread may use a model at a time. Its nodes come from weir__model_add(),
 * with figures from the caller, or from a run, with figures computed from its laps (model_figures.c). Settings are
 * stored separately, so that they can be reset, and each resampling of the laps gets the same settings.
 */
#ifndef STATS_ADVICE_MODEL_MODEL_H
#define STATS_ADVICE_MODEL_MODEL_H

#include <weir/pipeline.h>
#include <weir/whatif.h>

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
    uint32_t look_ahead_items; /* of a route: what it may set aside (0 = nothing) */
} weir_model_node;

/* -- making models. WEIR_OK, or WEIR_EINVAL, WEIR_ENOMEM, … with *error (may be NULL) set -- */

/* An empty model. */
int weir__model_new(weir_model **model, weir_error *error);

/* If the run tried settings, and laps follow its last trial, only those have one setting: moves the start of the filter, which
   is of one run, to them. */
int weir__model_settle(weir_recording *recording, weir_filter *filter, weir_error *error);

/*
 * The model of one run of a database: filter->run_id, by default the last run. Only laps in the steady part of the run
 * that match the filter count. WEIR_ENOTFOUND if no lap is left; WEIR_EUNSUPPORTED if the
 * recording does not contain how its nodes are connected (routes in databases of older schemas).
 */
int weir__model_read(weir_recording *recording, const weir_filter *filter, weir_model **model, weir_error *error);

/* Adds a node by hand to a model from weir__model_new(). Add a node after the nodes that it takes from. */
int weir__model_add(weir_model *model, const weir_model_node *node, weir_error *error);

/*
 * The same in steps. begin: replaces the content of the model by the nodes of a run, from the records of its stages. take: a
 * weir_record_function for laps, in the order of their ends; end_lap ends the last one. learn: the figures of all laps so
 * far. Laps before the first result of the pipeline and laps in which a source had already ended do not count unless there
 * are no others. Memory use does not depend on the number of laps: if there are more than 64, neighbouring laps are joined.
 */
int weir__model_begin(weir_model *model, const weir_records *stages, weir_error *error);
int weir__model_take(void *model, const weir_record *record, weir_error *error);
void weir__model_end_lap(weir_model *model);
void weir__model_learn(weir_model *model);

/* NULL is fine. */
void weir__model_free(weir_model *model);

/* -- reading models -- */

/* Items per second that the consumer got in the laps that count; NAN = not known. */
double weir__model_measured(const weir_model *model);

/* The number of laps that count, before joining. */
size_t weir__model_num_laps(const weir_model *model);

/* -- changing settings -- */

/* Changes one setting (see weir_whatif_options). WEIR_ENOTFOUND or WEIR_EINVAL with a message that says what is allowed;
   the model is then unchanged. */
int weir__model_set(weir_model *model, const char *setting, const char *value, weir_error *error);

/* Sets all settings back to the recorded ones. */
void weir__model_reset(weir_model *model);

/* Simulates the model with its current settings; those of the options are not used. options may be NULL. WEIR_EINVAL if the
   model has no source, no sink or no lap. */
int weir__model_predict(weir_model *model, const weir_whatif_options *options, weir_prediction **prediction,
                        weir_error *error);

/* ---- private to the model */

enum { MODEL_MAX_LAPS = 64 };

/* A lap, or the sum of several. */
typedef struct model_lap {
    int64_t elapsed_ns;
    size_t num_laps;
    weir_task_metrics *tasks;   /* of each node; run_times points to `times` */
    weir_queue_metrics *queues; /* of each queue; without histograms */
    weir_pool_metrics *pools;   /* of each pool */
    weir_histogram *times;
    weir_process_metrics process;
    weir_machine_metrics machine;
} model_lap;

typedef enum model_key {
    MODEL_THREADS, /* of the pool: node = num_nodes; or of a node */
    MODEL_CPUS,
    MODEL_BACKGROUND,
    MODEL_CONCURRENCY,
    MODEL_QUEUE_ITEMS,
    MODEL_QUEUE_BYTES,
    MODEL_LOOK_AHEAD_ITEMS,
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
    model_state shown;    /* the same with the settings; valid until the model is changed */
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
    model_lap *current;              /* that is being taken: num_laps 0 = none */
    int64_t end_unix_ns;             /* of it */
    double measured;                 /* items per second in the laps that count; NAN = not known */
    double *wanted;                  /* room for a number of each node, for predictions */
    bool lacks_memory;               /* some laps or figures were not taken: no result is true */
    double baseline;                 /* throughput at the recorded settings; NAN = not simulated yet */
    double num_steps;                /* tasks to simulate in a prediction (0 = 150,000) */
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

/*
 * Whether the consumer polls: it does not wait, but comes back later. For most of the time in which it is away there are
 * items that it has asked for before.
 */
bool weir__model_polls(int64_t elapsed_ns, const weir_queue_metrics *sink);

/* CPU time of all tasks per second. */
double weir__model_used_cpus(const weir_model *model, const model_lap *lap);

/* The CPUs that other programs and other virtual machines used. NAN = not known: it was not recorded, or the process
   may use only some of the machine's CPUs, and where the others ran is not known. */
double weir__model_other_cpus(const weir_model *model, const model_lap *lap);

/* The middle of a bucket of a histogram, in seconds. */
double weir__model_bucket_s(uint32_t bucket);

#endif
