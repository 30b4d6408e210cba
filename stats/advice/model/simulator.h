/*
 * A discrete-event simulation of the engine: the scheduler core (engine/core) in virtual time, with tasks that only take
 * time. Epochs, failures of the pipeline and hooks are not simulated.
 */
#ifndef STATS_ADVICE_MODEL_SIMULATOR_H
#define STATS_ADVICE_MODEL_SIMULATOR_H

#include "stats/advice/model/model.h"

/* As slot_state of the core. */
typedef enum sim_state { SIM_IDLE, SIM_READY, SIM_RUNNING, SIM_PENDING, SIM_TURN, SIM_BLOCKED, SIM_STATES } sim_state;

/* What to simulate. The nodes are complete: every input is listed, no option is 0. */
typedef struct sim_spec {
    const weir_model_node *nodes;
    size_t num_nodes;
    const double *const *lengths; /* of each node: task lengths relative to the mean, ascending */
    const size_t *num_lengths;
    uint32_t threads;
    double cpus, background;
    uint64_t num_items;   /* to measure, at the consumer */
    uint64_t num_start;   /* before that */
    uint32_t most_queued; /* a queue that holds more is never full in this time */
    uint64_t seed;
} sim_spec;

/* Means over the measured time. */
typedef struct sim_node_result {
    double time_s[SIM_STATES]; /* slots × time */
    double tasks_per_s, results_per_s;
    double cpus;     /* CPU time per second */
    double cpu_wait; /* mean number of tasks that wait for a CPU */
    double queue_depth;
} sim_node_result;

typedef struct sim_result {
    double throughput;
    double elapsed_s;
    double consumer_share;  /* of the time in which the consumer works */
    sim_node_result *nodes; /* of the caller, one for each node */
} sim_result;

/* WEIR_OK; WEIR_ENOMEM; WEIR_EINVAL if no part takes time; WEIR_ELIMIT if too few results come out. */
int weir__simulate(const sim_spec *spec, sim_result *result, weir_error *error);

#endif
