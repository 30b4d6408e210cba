/*
 * The pipeline: one source, any number of stages, one sink; built once, then drained with weir_pipeline_next().
 *
 *     weir_builder *b = weir_builder_new();
 *     weir_builder_source(b, &list_files, &(list_files_config){ .root = dir }, NULL);
 *     weir_builder_pipe(b, &decode, NULL, &(weir_stage_options){ .concurrency = 10 });
 *     weir_builder_sink(b, NULL);
 *     if (weir_builder_build(b, NULL, &p, &error) != WEIR_OK) …
 *     while ((rc = weir_pipeline_next(p, &item, WEIR_FOREVER)) == WEIR_OK) { use(&item); weir_item_release(&item); }
 *     weir_pipeline_free(p);
 *
 * What things cost before there are items, besides what operations ask for themselves (64 bits; `weir-bench size`):
 *     pipeline of a source and a sink    128 kB
 *     stage of one slot, with its queue  40 kB
 *     slot                               2.3 kB
 *     descriptors                        none
 *     building and freeing               0.1 ms
 * `weir-bench engine` measures what it costs to hand an item on.
 */
#ifndef WEIR_PIPELINE_H
#define WEIR_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/clock.h>
#include <weir/export.h>
#include <weir/item.h>
#include <weir/observer.h>
#include <weir/op.h>
#include <weir/options.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_builder weir_builder;
typedef struct weir_pipeline weir_pipeline;

typedef enum weir_failures_kind {
    WEIR_FAILURES_ANY = 0,
    WEIR_FAILURES_COUNT,
    WEIR_FAILURES_RATE,
} weir_failures_kind;

/* How many failures are tolerated, from the start of the run: epochs do not begin the count anew. All-zero = any number. */
typedef struct weir_max_failures {
    weir_failures_kind kind;
    int64_t count;     /* COUNT: this many are tolerated, the next one fails the pipeline; -1 = any */
    uint32_t num, den; /* RATE: more than num in den tasks fail the pipeline, checked after 100 tasks */
    uint64_t reserved; /* 0 */
} weir_max_failures;

/* What the order of results is. */
typedef enum weir_order {
    WEIR_ORDER_COMPLETION = 0, /* as they are ready */
    WEIR_ORDER_INPUT,          /* as their inputs came in; at most the stage's own slots are held back */
} weir_order;

/* Which input a merge takes from. */
typedef enum weir_merge_order {
    WEIR_MERGE_ARRIVAL = 0, /* the item that came first */
    WEIR_MERGE_ROUND_ROBIN, /* one from each in turn, waiting for it; inputs that have ended are left out */
    WEIR_MERGE_WEIGHTED,    /* in turns, too, of which each input gets a share by its weight */
} weir_merge_order;

/* Setting this struct to all-0 is equivalent to defaults. Everything it points to is copied, but for `self` of hooks. */
typedef struct weir_stage_options {
    const char *name;     /* [A-Za-z0-9_.-]+ (NULL = the operation's) */
    uint32_t concurrency; /* slots (0 = 1); a source has one */
    uint32_t queue_items; /* capacity of the queue behind the stage (0 = 2) */
    uint64_t queue_bytes; /* …in bytes; may be overshot by one item (0 = unlimited) */
    uint32_t threads;     /* threads of its own, for operations that block (0 = the pipeline's pool) */
    weir_order output_order;
    weir_max_failures max_failures; /* (all-0 = the pipeline's) */
    const weir_stage_hook *stage_hooks;
    size_t num_stage_hooks;
    const weir_task_hook *task_hooks; /* inside the pipeline's */
    size_t num_task_hooks;
    int64_t task_deadline_ns; /* a task that runs longer is asked to stop and fails with WEIR_ETIMEDOUT; waiting for
                                 room does not count (0 = none) */
    uint32_t
        epochs; /* sources: run again after WEIR_EOF, with a new worker, this often in all, and let the consumer know
                        the end of each epoch (0 = once, without that; WEIR_ENDLESS = until stopped) */
} weir_stage_options;

#define WEIR_ENDLESS UINT32_MAX

/* Decides where items go; see weir_builder_route(). */
typedef struct weir_route_config {
    /* The number, below num_branches, of the branch for this item; another one fails the item. On a pool thread, several
       at once. */
    int (*pick)(void *self, const weir_item *item);
    void *self;
    uint32_t num_branches;
} weir_route_config;

/* Setting this struct to all-0 is equivalent to defaults. */
typedef struct weir_merge_config {
    weir_merge_order order;
    const uint32_t
        *weights; /* WEIR_MERGE_WEIGHTED: one for each input, in the order they were built, above 0; copied */
    size_t num_weights;
} weir_merge_config;

/* Setting this struct to all-0 is equivalent to defaults. */
typedef struct weir_pipeline_options {
    uint32_t threads;               /* of the pool (0 = the CPU budget, see weir_cpu_budget()) */
    uint32_t id;                    /* first number in the names of the statistics (default 0) */
    int64_t stats_interval_ns;      /* length of a lap (0 = 60 s; WEIR_FOREVER = one lap, at the end) */
    const weir_observer *observers; /* told in this order; copied, but for what `self` points to (NULL = none) */
    size_t num_observers;
    weir_max_failures max_failures;   /* of each stage that sets none itself */
    const weir_task_hook *task_hooks; /* around every stage's tasks; copied */
    size_t num_task_hooks;
    int64_t
        stall_warning_ns; /* a task that has run this long is logged with its stage, label and age while it runs, and
                                 again each time its age has doubled (0 = 30 s; WEIR_FOREVER = never) */
    bool
        no_statistics; /* measure nothing, to see what measuring costs: no clock is read around steps, so there are no
                           laps, and no thread is spared for steps that are brisk (default: false) */
} weir_pipeline_options;

/*
 * The builder collects; its first mistake is remembered, later calls do nothing, and weir_builder_build() reports it with the
 * stage's name. weir_builder_new() may return NULL (out of memory), which every call accepts. One thread.
 *
 * config and options may be NULL everywhere but in weir_builder_route(). For what ends in _sized see <weir/options.h>.
 */
WEIR_API weir_builder *weir_builder_new(void);

/* -- functions for the inline ones below; bindings to other languages call them with the sizes of their structs -- */
WEIR_API void weir_builder_source_sized(weir_builder *builder, const weir_op *op, const void *config,
                                        const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_pipe_sized(weir_builder *builder, const weir_op *op, const void *config,
                                      const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_route_sized(weir_builder *builder, const weir_route_config *config, size_t config_size,
                                       const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_join_sized(weir_builder *builder, const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_merge_sized(weir_builder *builder, const weir_merge_config *config, size_t config_size,
                                       const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_sink_sized(weir_builder *builder, const weir_stage_options *options, size_t options_size);
WEIR_API int weir_builder_build_sized(weir_builder *builder, const weir_pipeline_options *options,
                                      size_t options_size, weir_pipeline **pipeline, weir_error *error);

/* A source begins a line of its own; a stage continues the line that was begun last. The config is copied as op says. */
static inline void weir_builder_source(weir_builder *builder, const weir_op *op, const void *config,
                                       const weir_stage_options *options)
{
    weir_builder_source_sized(builder, op, config, options, sizeof *options);
}

static inline void weir_builder_pipe(weir_builder *builder, const weir_op *op, const void *config,
                                     const weir_stage_options *options)
{
    weir_builder_pipe_sized(builder, op, config, options, sizeof *options);
}

/*
 * A route: `config->pick` decides for each item which branch it goes through. weir_builder_branch() begins the next branch, the
 * calls up to the next one describe its stages (none: items pass), and weir_builder_join() ends the last one and merges them:
 *
 *     weir_builder_route(b, &(weir_route_config){ .pick = by_size, .num_branches = 2 }, NULL);
 *         weir_builder_branch(b);  weir_builder_pipe(b, &decode_small, …);
 *         weir_builder_branch(b);  weir_builder_pipe(b, &decode_large, …);  weir_builder_pipe(b, &shrink, …);
 *     weir_builder_join(b, NULL);
 *
 * Branches may hold routes. Behind the join items are in the order in which they arrive; with output_order =
 * WEIR_ORDER_INPUT in the order in which they came to the route, for which every stage in its branches keeps its order, too.
 * Once the pipeline has failed, what is left comes as it arrives.
 */
static inline void weir_builder_route(weir_builder *builder, const weir_route_config *config,
                                      const weir_stage_options *options)
{
    weir_builder_route_sized(builder, config, sizeof *config, options, sizeof *options);
}

WEIR_API void weir_builder_branch(weir_builder *builder);

static inline void weir_builder_join(weir_builder *builder, const weir_stage_options *options)
{
    weir_builder_join_sized(builder, options, sizeof *options);
}

/*
 * Several sources: weir_builder_merge() makes one line of all that are open. An epoch ends behind it when it has ended for
 * every source; one that has ended for good, or has no epochs, counts as at the end of each. So all items of a source without
 * epochs belong to the first epoch, which lasts until that source ends.
 */
static inline void weir_builder_merge(weir_builder *builder, const weir_merge_config *config,
                                      const weir_stage_options *options)
{
    weir_builder_merge_sized(builder, config, sizeof *config, options, sizeof *options);
}

/* The end, from whose queue (queue_items 0 = 3) weir_pipeline_next() takes. */
static inline void weir_builder_sink(weir_builder *builder, const weir_stage_options *options)
{
    weir_builder_sink_sized(builder, options, sizeof *options);
}

/*
 * Builds and starts. The builder is freed, whatever the result. On failure *pipeline is NULL, nothing runs, and
 * *error (may be NULL) says why. A pipeline does not go through fork(): its threads stay with the parent, and a child
 * must not touch it.
 */
static inline int weir_builder_build(weir_builder *builder, const weir_pipeline_options *options,
                                     weir_pipeline **pipeline, weir_error *error)
{
    return weir_builder_build_sized(builder, options, sizeof *options, pipeline, error);
}

/* Frees a builder that is not to be built. NULL is fine. */
WEIR_API void weir_builder_free(weir_builder *builder);

/*
 * The next result, in *item, which the caller then owns and releases with weir_item_release().
 *   WEIR_OK        *item is set
 *   WEIR_EPOCH     no item, but the end of an epoch: all items of it have been delivered, and none of the next one. Of
 *                  several callers one gets it; others may still be at work on items of that epoch, or have items of
 *                  the next one soon
 *   WEIR_EOF       all has been delivered; again and again
 *   WEIR_ETIMEDOUT nothing came within timeout_ns (0 = do not wait; WEIR_FOREVER)
 *   WEIR_EINVAL    timeout_ns is negative and not WEIR_FOREVER, or a pointer is NULL
 *   WEIR_EFAILED   the pipeline failed, and what had got past the failing stage has been delivered; again and again
 *   WEIR_ESTOPPED  weir_pipeline_stop() was called; again and again
 * Any thread; several may wait at once.
 */
WEIR_API int weir_pipeline_next(weir_pipeline *pipeline, weir_item *item, int64_t timeout_ns);

/*
 * Asks everything to end: wakes what waits, starts no new task, turns weir_task_should_stop() true. Never waits.
 * Any thread (a task's or a hook's, too), any state, any number of times; not from a signal handler. WEIR_OK or
 * WEIR_EINVAL.
 */
WEIR_API int weir_pipeline_stop(weir_pipeline *pipeline);

/* The same from a signal handler: async-signal-safe, the stop itself follows at once on a thread of the pipeline. The
   program sees to it that the pipeline is not freed meanwhile. WEIR_OK or WEIR_EINVAL. */
WEIR_API int weir_pipeline_stop_from_signal(weir_pipeline *pipeline);

/*
 * From now on the first SIGINT (Ctrl-C) or SIGTERM stops the pipeline, even where these signals were ignored, and the
 * next one has its default action, which ends the process. Several pipelines may ask for it: the first signal stops all of
 * them. When the last of these is freed, the signals do again what they did before. WEIR_OK or WEIR_EINVAL. Any thread.
 */
WEIR_API int weir_pipeline_stop_on_signals(weir_pipeline *pipeline);

/* The number of the signal by which weir_pipeline_stop_on_signals() has stopped it; 0 = none. Any thread. */
WEIR_API int weir_pipeline_stop_signal(weir_pipeline *pipeline);

/*
 * For event loops (epoll, libuv, GLib): *fd is readable while weir_pipeline_next() with a timeout of 0 would answer
 * something else than WEIR_ETIMEDOUT. Wait for it, then call weir_pipeline_next() until it answers that, or once for each
 * wake-up: the descriptor stays readable as long as there is more. It is the pipeline's: do not read, write or close
 * it, and forget it before weir_pipeline_free(). Made by the first call, the same in each. WEIR_OK, WEIR_EINVAL, or
 * WEIR_ESYSTEM if there are no descriptors left. Any thread.
 */
WEIR_API int weir_pipeline_poll_fd(weir_pipeline *pipeline, int *fd);

/*
 * Stops, joins every thread, reports the last lap, releases every item that is left, frees. Nobody may be inside
 * another call on this pipeline. Not from one of its own threads (a task's, a hook's, an observer's): there it logs an
 * error, stops the pipeline and leaves it. NULL is fine.
 */
WEIR_API void weir_pipeline_free(weir_pipeline *pipeline);

/* Why the pipeline failed: returns error->status, WEIR_OK with an all-zero *error if it did not. Any thread. */
WEIR_API int weir_pipeline_error(weir_pipeline *pipeline, weir_error *error);

/*
 * The first failure of a stage, named as in the statistics ("0:1:decode[10]") or as in its options ("decode"): with
 * its label, our status and the library's code. Returns error->status, WEIR_OK with an all-zero *error if it had none;
 * WEIR_ENOTFOUND, with an error that names no stage, if there is no such stage. Any thread.
 */
WEIR_API int weir_pipeline_stage_error(weir_pipeline *pipeline, const char *stage, weir_error *error);

/*
 * Where every item went. At any moment, for a stage,
 *     taken + created = handed_on + skipped + failed + dropped + merged + in_flight
 * and for the pipeline, where `taken` is what the source made and `handed_on` what weir_pipeline_next() delivered, the same.
 * After weir_pipeline_stop() and the end of the last task in_flight is only what weir_pipeline_free() still has to release; it counts
 * them as dropped.
 */
typedef struct weir_account {
    uint64_t taken;     /* items that came in (pipeline: that the source made) */
    uint64_t created;   /* items beyond one that were made of an input (WEIR_MORE), or by a flush */
    uint64_t handed_on; /* items that went on (pipeline: were delivered) */
    uint64_t skipped;
    uint64_t failed;
    uint64_t dropped;   /* given up at stop or failure */
    uint64_t merged;    /* became a part of another item (WEIR_KEPT) */
    uint64_t in_flight; /* in slots and, for the pipeline, in queues */
    uint64_t reserved[8];
} weir_account;

/* stage: as for weir_pipeline_stage_error(), NULL = the whole pipeline. WEIR_OK or WEIR_ENOTFOUND. Any thread. */
WEIR_API int weir_pipeline_account(weir_pipeline *pipeline, const char *stage, weir_account *account);

/*
 * Changes how many slots a stage has, up or down, while it runs; nothing is lost, slots that are too many end when their
 * task has. The stage keeps its name in the statistics; an event "concurrency" records the change. Any thread.
 * WEIR_OK; WEIR_ENOTFOUND; WEIR_EINVAL if it is 0 or beyond 65536; WEIR_EUNSUPPORTED for sources, merges, the sink and
 * stages that keep items from one task to the next (flush); WEIR_ENOMEM.
 */
WEIR_API int weir_pipeline_set_concurrency(weir_pipeline *pipeline, const char *stage, uint32_t concurrency);

/* The graph as built, as text; *description is freed by the caller. WEIR_OK or WEIR_ENOMEM. Any thread. */
WEIR_API int weir_pipeline_describe(weir_pipeline *pipeline, char **description);

/* What goes on at one moment. Names live until the pipeline is freed, labels until the snapshot is. */
typedef struct weir_stage_snapshot {
    const char *name;
    const char *kind; /* "source", "stage", "route", "merge" or "sink" */
    uint32_t slots;   /* the sum of: */
    uint32_t running, pending, waiting_in, waiting_thread, waiting_turn, waiting_out;
    uint64_t num_tasks, num_failures; /* since the start; failures are among the tasks */
    bool ended;
    uint64_t reserved[8];
} weir_stage_snapshot;

typedef struct weir_queue_snapshot {
    const char *name;
    uint32_t capacity, depth;
    uint64_t bytes;
    uint32_t waiting_to_put;     /* results that wait for room */
    uint64_t num_put, num_items; /* put and taken since the start */
    uint64_t reserved[8];
} weir_queue_snapshot;

typedef struct weir_task_snapshot {
    const char *stage;
    const char *label; /* "" = none */
    int64_t age_ns;    /* how long it has run */
    bool pending;
    uint64_t reserved[8];
} weir_task_snapshot;

typedef struct weir_snapshot {
    const char *state; /* "running", "stopping", "failed" or "ended" */
    const weir_stage_snapshot *stages;
    size_t num_stages;
    const weir_queue_snapshot *queues;
    size_t num_queues;
    const weir_task_snapshot *tasks; /* running or pending */
    size_t num_tasks;
} weir_snapshot;

/* Takes one; *snapshot is freed with weir_snapshot_free(). Holds the pipeline up for well below a millisecond. Any
   thread, any time. WEIR_OK or WEIR_ENOMEM. */
WEIR_API int weir_pipeline_snapshot(weir_pipeline *pipeline, weir_snapshot **snapshot);
WEIR_API void weir_snapshot_free(weir_snapshot *snapshot);

/* As text: a line for each stage, queue and task. */
WEIR_API void weir_snapshot_print(const weir_snapshot *snapshot, FILE *file);

/* Adds an event to what the observers are told. Strings are copied; category and detail may be NULL. Any thread.
   WEIR_OK or WEIR_ENOMEM. */
WEIR_API int weir_pipeline_event(weir_pipeline *pipeline, const char *name, const char *category, const char *detail);

/*
 * Tells the statistics where the consumer is in its job: that it begins step `step` (a number that rises), or a phase of
 * any name, as "train" or "eval" (up to 63 bytes), which lasts until the next mark of a phase. The laps that follow say
 * so. Without marks of phases "startup", "loop" and "finish" come by themselves (see weir_lap_place); a program that marks
 * its own marks "finish" where it has one. Any thread. WEIR_OK, or WEIR_EINVAL for a phase that is NULL, empty or too
 * long.
 */
WEIR_API int weir_pipeline_mark_step(weir_pipeline *pipeline, int64_t step);
WEIR_API int weir_pipeline_mark_phase(weir_pipeline *pipeline, const char *phase);

/* The CPUs this process may use: the smaller of its affinity mask and its cgroup's quota (rounded down), at least 1. */
WEIR_API uint32_t weir_cpu_budget(void);

#ifdef __cplusplus
}
#endif

#endif
