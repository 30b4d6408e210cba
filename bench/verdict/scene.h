/*
 * Pipelines of stand-ins whose limit is known by construction, for `weir-bench verdict`. A stand-in task computes, waits
 * by itself, or uses a resource that all tasks share: a disk, a lock, a rate limiter, a link.
 */
#ifndef BENCH_VERDICT_SCENE_H
#define BENCH_VERDICT_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/pipeline.h>

/* Serves requests in their order, `servers` of them at once. 0 servers = there is none. */
typedef struct scene_resource {
    uint32_t servers;
    double service_ms;
    double jitter;      /* service × (1 ± jitter), uniform */
    bool exponential;   /* instead: exponentially distributed */
    bool computes;      /* a lock that is held while its owner computes */
    uint32_t parts;     /* the number of parts in which a request is served, in turn with the parts of others, as on a
                         shared link (0 = 1) */
    double per_waiting; /* each waiting request makes the service this much longer, relatively (a disk that seeks) */
} scene_resource;

typedef struct scene_work {
    double cpu_ms, wait_ms;        /* on a CPU; off it, each task by itself */
    bool exponential;              /* the length of both */
    uint32_t uses;                 /* the resource: 1 or 2; 0 = none */
    double hit_share;              /* of the tasks that are as short as 0.1 ms: cache hits */
    uint32_t every;                /* each `every`-th task is of the tail (0 = none) */
    double tail_ms, giant_cpu_ms;  /* that waits, or computes, so long instead */
    bool pending;                  /* waits without a thread */
    bool in_child, in_own_threads; /* computes in a child process; in two threads of its own */
    uint32_t burst;                /* source, consumer: works only after each `burst` items (0 = 1) */
    double restart_ms;             /* source: waits so long before the first item of each epoch */
    double fail_share;             /* of the tasks of a stage that fail */
    double fail_length;            /* the length of these, relative to that of the others */
    double growth;                 /* from the change of the scene on, its length grows by this share each second */
} scene_work;

typedef struct scene_stage {
    const char *name; /* NULL = there is none */
    uint32_t slots, threads, queue_items;
    bool in_order;
    scene_work work;
    scene_work later; /* from the change of the scene on, if it has any work */
} scene_stage;

typedef enum scene_shape {
    SCENE_CHAIN,
    SCENE_MERGE,       /* two sources (the second: stages[2].work), merged by arrival; then the first two stages */
    SCENE_ROUND_ROBIN, /* the same, in turn */
    SCENE_ROUTE,       /* half of the items to the first stage, the others to the second, then a join */
} scene_shape;

typedef struct scene {
    const char *name;
    /* "kind:stage" of each right answer, separated by spaces; a kind alone for those without a name. */
    const char *truth;
    double least, most; /* what twice the slots, and threads, of that stage bring; 0 = is not asked */
    double together_least, together_most; /* the same of all its stages together */
    scene_shape shape;
    uint32_t threads, epoch_items, sink_items;
    uint32_t load; /* other processes that compute */
    int nice;      /* of this process, not of the others */
    bool marks_steps;
    uint64_t item_bytes, sink_bytes;
    scene_resource resources[2];
    scene_work source, consumer, consumer_later;
    scene_stage stages[3];
    uint32_t backlog_items; /* items that the source makes at once, before its work begins; the first queue holds
                               them */
    double change_s; /* the change of the scene: so many seconds after the start (0 = in the middle of the run) */
    bool alternates; /* each change_s after the change, `later` ends, or begins again */
} scene;

extern const scene scenes[];
extern const size_t num_scenes;

/* Other settings than those of the scene; 0 = as they are. */
typedef struct scene_change {
    char stage[64];
    uint32_t slots, threads;
} scene_change;

typedef struct scene_run scene_run;

/* Builds and starts a scene with its consumer, on threads of their own. run_ns: until the source ends. NULL = failed. */
scene_run *scene_start(const scene *of, const scene_change *change, int64_t run_ns, const weir_observer *observers,
                       size_t num_observers);
weir_pipeline *scene_pipeline(scene_run *run);
/* Items that the consumer has taken so far. */
uint64_t scene_num_taken(scene_run *run);
/* Waits until the consumer is at the end, and frees everything. */
void scene_end(scene_run *run);

#endif
