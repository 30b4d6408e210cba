/* Pipelines with known costs, which can be built, and changed as weir whatif changes a model of them. */
#ifndef BENCH_WHATIF_PLAN_H
#define BENCH_WHATIF_PLAN_H

#include <weir/engine.h>
#include <weir/tuner.h>

#ifdef WEIR_BENCH_STAGES
#include "files.h"
#endif

enum { PLAN_MAX_PARTS = 24, PLAN_MAX_CHANGES = 4 };

typedef enum plan_kind {
    PLAN_SOURCE,
    PLAN_STAGE,
    PLAN_ROUTE,
    PLAN_BRANCH,
    PLAN_JOIN,
    PLAN_MERGE,
    PLAN_AGGREGATE,
    PLAN_DISAGGREGATE,
    PLAN_SINK,
} plan_kind;

typedef enum plan_spread {
    PLAN_CONSTANT,
    PLAN_UNIFORM,
    PLAN_EXPONENTIAL,
    PLAN_RARE,
    PLAN_BURSTS,
    PLAN_GIANTS
} plan_spread;

/* What a task does: it waits, then computes, for a random time. */
typedef struct plan_work {
    uint64_t seed;
    double wait_s, compute_s;
    plan_spread spread;
    uint32_t skips, fails; /* one of N tasks; 0 = none */
    uint32_t pieces;       /* results of one input */
    uint32_t num_files;    /* that are read again and again, in the same order; 0 = no end */
    uint32_t permits;      /* tasks that can work at the same time; the others wait (1 = a lock; 0 = no limit) */
} plan_work;

typedef struct plan_part {
    plan_kind kind;
    char name[16];
    plan_work work; /* of a sink: of the consumer */
    uint32_t count; /* of a route: branches; of batches: items */
    bool in_turn;   /* a route's branches get equally many items; otherwise the later ones get more */
    weir_merge_order merge_order;
    weir_stage_options options;
    const weir_op *op; /* of a source or stage that does real work, with its config; NULL = `work` */
    const void *config;
} plan_part;

/* "s1.concurrency" and "4" */
typedef struct plan_change {
    char setting[32], value[16];
} plan_change;

typedef struct whatif_plan {
    char name[64];
    plan_part parts[PLAN_MAX_PARTS];
    size_t num_parts;
    uint32_t threads;
    plan_change changes[PLAN_MAX_CHANGES];
    size_t num_changes;
    /* A run takes this many results, of which the first num_start do not count (0 = as many as the time allows). */
    uint64_t num_items, num_start;
    uint32_t later_percent; /* from half of the time on, a task of a stage takes so much of its time; 0 = no change */
} whatif_plan;

/* What looks at a run, or changes it. */
typedef struct plan_watch {
    const weir_observer *observers;
    size_t num_observers;
    int64_t lap_ns;    /* 0 = 0.1 s */
    weir_tuner *tuner; /* its observer is in the list; NULL = none */
} plan_watch;

/* A part behind the others; its name gets its index. The name may be NULL. */
plan_part *plan_add(whatif_plan *plan, plan_kind kind, const char *name);

/* A change of a part, or of the pipeline (name ""). */
void plan_add_change(whatif_plan *plan, const char *name, const char *what, uint32_t value);

/* A random pipeline with random changes; the same for the same seed. */
void plan_random(whatif_plan *plan, uint64_t seed);

/* The patterns of examples/simulate, with changes, one at a time. Returns false behind the last one. */
bool plan_pattern(whatif_plan *plan, size_t index);
bool plan_is_pattern(const char *name);

/* The plan with its changes. */
void plan_apply(whatif_plan *plan);

#ifdef WEIR_BENCH_STAGES
/* Decodes the files to 128x128 pixels. They must stay until the plan has run. */
void plan_main_job(whatif_plan *plan, const bench_files *files, uint32_t slots, uint32_t threads);
#endif

/* Runs it for so many seconds; sets the items per second after the first fifth of that time. The watch may be NULL.
   Returns 0, or -1 after an error message on stderr. */
int plan_run(const whatif_plan *plan, double seconds, const plan_watch *watch, double *throughput);

#endif
