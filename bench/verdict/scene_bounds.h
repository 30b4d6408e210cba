/*
 * What limits a scene, by operational analysis. Each part of it has a bound: the slots of a stage, a shared resource,
 * the pool, the CPUs, the source, the consumer. A bound is the rate that the consumer sees if only this part is busy
 * all the time. The smallest one is the limit; those within a few percent of it are limits together. Nothing here knows
 * the rules of the verdict.
 *
 * What is not known for sure is a range. Where other programs compute, this is the share of the CPUs, and how late a
 * wait ends. If the times of a resource are random, it is the length of its queue: between none, and that of the
 * machine-repair model.
 *
 * It can do scenes with the fields that random_scene.c draws. They have no epochs, no order, no routes, no children, no
 * hits, and no tasks that are pending. Failing tasks use no resource.
 */
#ifndef BENCH_VERDICT_SCENE_BOUNDS_H
#define BENCH_VERDICT_SCENE_BOUNDS_H

#include "bench/verdict/scene.h"

enum { SCENE_STAGES = 3, SCENE_RESOURCES = 2 };

/* The parts. Those of stage i and of resource i: plus i. */
enum {
    BOUND_SLOTS = 0,
    BOUND_RESOURCE = BOUND_SLOTS + SCENE_STAGES,
    BOUND_THREADS = BOUND_RESOURCE + SCENE_RESOURCES,
    BOUND_CPUS,
    BOUND_SOURCE,
    BOUND_CONSUMER,
    NUM_BOUNDS
};

/* Within this share of the smallest one, bounds are equal. Below this ratio, those that are not equal are close: then a
   run cannot be relied on to show which one is the limit. */
#define BOUND_EQUAL 0.03
#define BOUND_FAR   1.25

/* How long the threads of a run have waited for a CPU. All of them are taken to be delayed alike. */
typedef struct cpu_delay {
    double slowdown; /* time on a CPU and waiting for one / time on a CPU; 0 = not known: equal shares */
    double delay_ms; /* a wait ends so late, on average */
} cpu_delay;

typedef struct bound_setting {
    uint32_t cpus;
    cpu_delay delay;  /* counts where other programs compute */
    bool is_late;     /* after the change of the scene, instead of before it */
    uint32_t doubled; /* bit i: stage i has twice its slots, and the pool as many more threads */
} bound_setting;

/* Items per second; INFINITY = does not limit. */
typedef struct scene_bounds {
    double low[NUM_BOUNDS], high[NUM_BOUNDS];
} scene_bounds;

void scene_bounds_find(const scene *of, const bound_setting *setting, scene_bounds *found);
/* The smallest of NUM_BOUNDS. */
double scene_bounds_least(const double *bounds);

/* A range of gains: rate after / rate before. most 0 = is not asked. */
typedef struct gain_range {
    double least, most;
} gain_range;

typedef struct scene_truth {
    scene_bounds bounds;               /* before the change of the scene */
    uint32_t limits;                   /* bit i: bound i is a limit, before the change or after it */
    char answers[240];                 /* as in scene.truth */
    double items_per_s;                /* what the limit lets through at first, at most */
    double next;                       /* the smallest bound that is not a limit, relative to it; INFINITY = none */
    bool is_joint;                     /* several parts are the limit, or may be */
    bool changes;                      /* the limit, or how far it is from the next one, changes during the run */
    bool is_uncertain;                 /* lengths are random, or other programs compute: gains are to be measured */
    bool is_close;                     /* a bound is neither equal to the limit nor far from it */
    bool queues_limit;                 /* a queue is too small for bursts; then no gain is asked */
    gain_range of_stage[SCENE_STAGES]; /* of twice the slots of one stage */
    gain_range together;               /* of all stages that limit, if they alone are the limit together */
} scene_truth;

/* delay: of a run of the scene; NULL = not known. */
void scene_truth_find(const scene *of, uint32_t cpus, const cpu_delay *delay, scene_truth *truth);

/* "read", "the disk of read", "cpus", …: the part that has this bound. */
void scene_bound_name(const scene *of, uint32_t bound, char *text, size_t size);

/* Items that a resource serves in a millisecond if each of `slots` waits for `other_ms` and is then served, all times
   exponential (the machine-repair model). */
double repair_rate(uint32_t slots, double other_ms, double service_ms, uint32_t servers);

#endif
