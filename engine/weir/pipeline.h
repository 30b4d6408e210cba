/*
 * The pipeline: one or more sources, any number of stages, one sink. Build it once, then drain it with
 * weir_pipeline_next().
 *
 *     weir_builder *b = weir_builder_new();
 *     weir_source_directory(b, &(weir_directory_config){ .root = dir, .glob = WEIR_VIDEO_FILES }, NULL);
 *     weir_pipe_video(b, NULL, &(weir_stage_options){ .concurrency = 10 });
 *     weir_builder_sink(b, NULL);
 *     if (weir_builder_build(b, NULL, &p, &error) != WEIR_OK) …
 *     while ((rc = weir_pipeline_next(p, &item, WEIR_FOREVER)) == WEIR_OK) { use(&item); weir_item_release(&item); }
 *     weir_pipeline_free(p);
 *
 * Cost without any items and without what operations allocate themselves (64-bit machine; `weir-bench costs`):
 *     pipeline of a source and a sink    325 kB
 *     stage of one slot, with its queue  41 kB
 *     slot                               2.5 kB
 *     descriptors                        none
 *     building and freeing               0.4 ms
 * `weir-bench engine` measures the cost of passing one item to the next stage.
 */
#ifndef WEIR_PIPELINE_H
#define WEIR_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/checkpoint.h>
#include <weir/clock.h>
#include <weir/item.h>
#include <weir/observer.h>
#include <weir/op.h>
#include <weir/status.h>
#include <weir/trace.h>
#include <weir/version.h>

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

/* How many failures are tolerated, counted from the start of the run; epochs do not reset the count. All-zero =
   any number. */
typedef struct weir_max_failures {
    weir_failures_kind kind;
    int64_t count; /* COUNT: this many are tolerated, one more fails the pipeline; -1 = any number */
    /* RATE: more than num in den tasks fail the pipeline, checked after 100 tasks. An earlier run may have left over
       items (see retry_failed). After a resume, that many failures and their tasks are not counted. */
    uint32_t num, den;
} weir_max_failures;

/* The order of a stage's results. */
typedef enum weir_order {
    WEIR_ORDER_COMPLETION = 0, /* in the order in which they are completed */
    WEIR_ORDER_INPUT,          /* in the order of their inputs; at most one result per slot is held back */
} weir_order;

/* Which input a merge takes the next item from. Except by arrival, it selects an input and waits for its next item;
   inputs that have ended are skipped. */
typedef enum weir_merge_order {
    WEIR_MERGE_ARRIVAL = 0, /* the input whose item arrived first */
    WEIR_MERGE_ROUND_ROBIN, /* one item from each input, one after the other */
    WEIR_MERGE_WEIGHTED,    /* like round robin, but weights set how many items each input gives */
    /* at random, by the weights. A draw depends on seed, epoch and its number only: every run draws the same. A resumed
       pipeline starts a new sequence of draws */
    WEIR_MERGE_RANDOM,
} weir_merge_order;

/* When a merge has ended. */
typedef enum weir_merge_end {
    WEIR_MERGE_END_LAST = 0, /* with the last input */
    /* With the first input. Except by arrival, the end of an input is noticed when it is selected. Then the other
       sources and their stages are asked to stop, and their items are dropped: a checkpoint has them as not done. Only
       for sources without epochs */
    WEIR_MERGE_END_FIRST,
} weir_merge_end;

/* The largest values: slots of a stage, threads of a pool, items of a queue. */
enum { WEIR_MAX_SLOTS = 1 << 16, WEIR_MAX_THREADS = 1 << 14, WEIR_MAX_QUEUE_ITEMS = 1 << 24 };

/* A zeroed struct selects the defaults. Everything it points to is copied, except what `self` of a hook points to. */
typedef struct weir_stage_options {
    const char *name;     /* [A-Za-z0-9_.-]+ (NULL = the operation's name; of a source: "src") */
    uint32_t concurrency; /* number of slots (0 = 1); a source has one */
    uint32_t queue_items; /* capacity of the output queue, in items (0 = 2) */
    uint64_t queue_bytes; /* capacity of the output queue, in bytes; may be exceeded by one item (0 = unlimited) */
    uint32_t threads;     /* private threads, for operations that block (0 = use the pipeline's pool) */
    weir_order output_order;
    weir_max_failures max_failures; /* (all-zero = the pipeline's) */
    const weir_stage_hook *stage_hooks;
    size_t num_stage_hooks;
    const weir_task_hook *task_hooks; /* inside the pipeline's */
    size_t num_task_hooks;
    /* A task that runs longer is asked to stop and fails with WEIR_ETIMEDOUT. Waiting for room does not count (0 = no
       deadline). */
    int64_t task_deadline_ns;
    /* Sources: the number of epochs. After WEIR_EOF the source runs again with a new worker state. The consumer gets
       WEIR_EPOCH at the end of each epoch (0 = one run without WEIR_EPOCH; WEIR_ENDLESS = until stopped). */
    uint32_t epochs;
    /* Observers get the figures of this stage and of its queue at this interval, not at each lap. They get several
       laps of one mode and phase together, at the end of the last of them. What is left comes before run_end. Not
       shorter than weir_pipeline_options.stats_interval_ns (0 = each lap; WEIR_FOREVER = once, at the end). */
    int64_t stats_interval_ns;
} weir_stage_options;

#define WEIR_ENDLESS UINT32_MAX

/* Decides where items go; see weir_builder_route(). */
typedef struct weir_route_config {
    /* Returns the branch for this item, from 0 to num_branches - 1; any other result fails the item. Called on pool
       threads, several at once. */
    int (*pick)(void *self, const weir_item *item);
    void *self;
    uint32_t num_branches;
    /* If the queue of an item's branch is full, the route sets the item aside and goes on. So a slow branch does not
       hold up the others. This is the maximum number of items set aside for all branches together. For each branch,
       the items in its queue and those set aside must also fit into its queue_bytes. The order within each branch is
       kept, and no item passes the end of an epoch. Items that are set aside are not in the queue: its levels do not
       count them, but its put time does. Where a join restores the order of its route, nothing is set aside (0 = 16;
       WEIR_NO_LOOK_AHEAD = none). */
    uint32_t look_ahead_items;
} weir_route_config;

#define WEIR_NO_LOOK_AHEAD UINT32_MAX

/* A zeroed struct selects the defaults. */
typedef struct weir_merge_config {
    weir_merge_order order;
    /* WEIR_MERGE_WEIGHTED and _RANDOM: one weight above 0 for each input, in the order in which the inputs were built;
       copied (RANDOM: NULL = all equal) */
    const uint32_t *weights;
    size_t num_weights;
    weir_merge_end end;
    uint64_t seed; /* WEIR_MERGE_RANDOM */
} weir_merge_config;

/* A zeroed struct selects the defaults. */
typedef struct weir_pipeline_options {
    uint32_t threads;          /* threads of the pool (0 = the CPU budget, see weir_cpu_budget()) */
    uint32_t id;               /* first number in the names of stages and queues (default 0) */
    int64_t stats_interval_ns; /* length of a lap (0 = 60 s; WEIR_FOREVER = a single lap, reported at the end) */
    /* Called in this order; copied, except what `self` points to (NULL = none). */
    const weir_observer *observers;
    size_t num_observers;
    weir_max_failures max_failures;   /* of each stage that does not set its own */
    const weir_task_hook *task_hooks; /* around every stage's tasks; copied */
    size_t num_task_hooks;
    /* A task that has run this long is logged with its stage, label and age while it runs. It is logged again each
       time its age has doubled (0 = 30 s; WEIR_FOREVER = never). */
    int64_t stall_warning_ns;
    /* Measure nothing, to find out what measuring costs. There are no times of tasks, slots, queues and CPUs, and no
       laps. The run_ns that task hooks get is 0. The accounts are kept. The clock is still read once at the end of
       each call of run(). Deadlines need it, and so does the pool, which does not wake a thread for a short task
       (default: false). */
    bool no_statistics;
    /* Track which items are done, for weir_pipeline_checkpoint(): see <weir/checkpoint.h> (default: off). */
    weir_checkpoints checkpoints;
    /* Continue from these texts, which are not copied (NULL = from the start). Give the checkpoint of this pipeline,
       or those of all ranks in any order. What is left of all ranks is divided among the present ranks. */
    const char *const *resume;
    size_t num_resume;
    /* Recording of the raw record (see weir_observer.trace) starts with weir_pipeline_trace(), not with the pipeline
       (default: with the pipeline, if an observer wants it). */
    bool trace_off;
    /* Capacity of the raw record's ring, in records of 32 bytes. The observer thread empties it several times a second
       (0 = 65536). */
    uint32_t trace_records;
    /* A lap also ends after this number of steps (weir_pipeline_mark_step()), at the time of the mark. With 1, the metrics of
       a step are those of its laps, one for each mode and phase in it. Each lap of three stages that is recorded in a database
       costs about 0.3 ms of CPU time outside the pool, and 2 kB. If steps are so short that 256 laps wait to be taken,
       the next ones share a lap (0 = steps do not end laps). */
    uint32_t steps_per_lap;
    /* With checkpoints: a failed item is not done (default: it is done). So a pipeline that is resumed from a
       checkpoint of this one processes it again, even if the checkpoint was made epochs later. Each failed item takes
       56 bytes, and at most 16 million may fail; each item since the first failed one takes 1 bit. */
    bool retry_failed;
    /* Around the life of each thread that runs tasks; copied, except what `self` points to (NULL = none). */
    const weir_thread_hook *thread_hooks;
    size_t num_thread_hooks;
    /* So many failures wait for weir_pipeline_next_failure(), each in about 1 kB; of more, the oldest is lost (0 = none are
       kept). */
    uint32_t kept_failures;
    /* The run begins at the start of this epoch, as if those before it had been delivered. Items have its number.
       weir_stage_options.epochs counts from epoch 0: with 5 epochs, and 3 here, two are left. All sources need epochs. Not together
       with resume, which begins where its checkpoint was made (0 = the first one). */
    uint64_t begin_epoch;
    /* The last call, once everything of a pipeline that was built is freed: tasks, observers, release functions, configs. What they
       use may be freed now. On the thread that frees it: that of weir_pipeline_free(), or one of the pipeline, for which
       weir_pipeline_close() waits. In a forked child it is not called (NULL = no call). */
    void (*freed)(void *self);
    void *freed_self;
} weir_pipeline_options;

/*
 * Collects the description of a pipeline. The first error is remembered, later calls do nothing, and
 * weir_builder_build() reports it with the stage's name. weir_builder_new() returns NULL if out of memory; every call
 * accepts that NULL. Use a builder on one thread at a time.
 *
 * config and options may be NULL, except in weir_builder_route(). They are copied. Functions that end in _sized get
 * the sizes that these structs have in the program's headers. Fields that an older program does not know are 0. A
 * newer program may set a field that this library does not know: it is refused with WEIR_EUNSUPPORTED.
 */
WEIR_API weir_builder *weir_builder_new(void);

/* Called by the inline functions below; bindings for other languages pass the sizes of their structs. */
WEIR_API void weir_builder_source_sized(weir_builder *builder, const weir_op *op, const void *config,
                                        size_t config_size, const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_pipe_sized(weir_builder *builder, const weir_op *op, const void *config,
                                      size_t config_size, const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_route_sized(weir_builder *builder, const weir_route_config *config, size_t config_size,
                                       const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_join_sized(weir_builder *builder, const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_merge_sized(weir_builder *builder, const weir_merge_config *config, size_t config_size,
                                       const weir_stage_options *options, size_t options_size);
WEIR_API void weir_builder_sink_sized(weir_builder *builder, const weir_stage_options *options, size_t options_size);
WEIR_API int weir_builder_build_sized(weir_builder *builder, const weir_pipeline_options *options,
                                      size_t options_size, weir_pipeline **pipeline, weir_error *error);

/*
 * A source begins a new chain of stages; a stage is appended to the chain that was begun last. These two functions are
 * for operations of the program. Operations of weir have functions of their own, such as weir_source_directory() and
 * weir_pipe_video(), which take only the right config. config_size is the size of *config in bytes. It is 0 if
 * weir_op.config_size is 0: then the pointer itself is passed on.
 */
static inline void weir_builder_source(weir_builder *builder, const weir_op *op, const void *config,
                                       size_t config_size, const weir_stage_options *options)
{
    weir_builder_source_sized(builder, op, config, config_size, options, sizeof *options);
}

static inline void weir_builder_pipe(weir_builder *builder, const weir_op *op, const void *config, size_t config_size,
                                     const weir_stage_options *options)
{
    weir_builder_pipe_sized(builder, op, config, config_size, options, sizeof *options);
}

/*
 * A route: `config->pick` selects a branch for each item. Each weir_builder_branch() begins the next branch, and the
 * calls that follow describe its stages (none: items pass unchanged). weir_builder_join() ends the last branch and
 * merges all branches:
 *
 *     weir_builder_route(b, &(weir_route_config){ .pick = by_size, .num_branches = 2 }, NULL);
 *         weir_builder_branch(b);  weir_builder_pipe(b, &shrink_small, …);
 *         weir_builder_branch(b);  weir_builder_pipe(b, &crop_large, …);  weir_builder_pipe(b, &shrink, …);
 *     weir_builder_join(b, NULL);
 *
 * Branches may contain routes.
 */
static inline void weir_builder_route(weir_builder *builder, const weir_route_config *config,
                                      const weir_stage_options *options)
{
    weir_builder_route_sized(builder, config, sizeof *config, options, sizeof *options);
}

WEIR_API void weir_builder_branch(weir_builder *builder);

/*
 * By default a join passes items on in the order in which they arrive. With output_order = WEIR_ORDER_INPUT it restores
 * the order in which they entered the route; every stage in its branches then keeps its input order, too. Exceptions:
 *   - An operation in a branch may have a flush function (such as weir_aggregate). What its flush produces at the end
 *     of an epoch or of the input comes after later items of other branches.
 *   - Once the pipeline has failed, the remaining items come in the order in which they arrive.
 */
static inline void weir_builder_join(weir_builder *builder, const weir_stage_options *options)
{
    weir_builder_join_sized(builder, options, sizeof *options);
}

/*
 * Merges all open chains (several sources) into one. Downstream of the merge an epoch ends when it has ended for
 * every source. A source that has ended for good, or has no epochs, counts as being at the end of every epoch. So all
 * items of a source without epochs belong to the first epoch, which lasts until that source ends.
 *
 * The threads of a pool run the ready task nearest the sink, counted in stages on the longest way. Stages of equal
 * distance take turns: one task each, or up to 16 tasks if they take less than 2 µs. So chains of the same stages whose
 * tasks take equally long advance equally. Over a second, their numbers of items differ by at most 10 % from each other,
 * or from their weights. Chains of different length or cost that are merged by arrival need not advance equally: the
 * cheaper one delivers more.
 */
static inline void weir_builder_merge(weir_builder *builder, const weir_merge_config *config,
                                      const weir_stage_options *options)
{
    weir_builder_merge_sized(builder, config, sizeof *config, options, sizeof *options);
}

/* The end of the pipeline. weir_pipeline_next() takes items from its queue (queue_items 0 = 3). */
static inline void weir_builder_sink(weir_builder *builder, const weir_stage_options *options)
{
    weir_builder_sink_sized(builder, options, sizeof *options);
}

/*
 * Builds and starts the pipeline. The builder is freed in any case; weir_builder_copy() makes another one before. On
 * failure *pipeline is NULL, nothing runs, and *error (may be NULL) says why. A pipeline does not survive fork(): its threads
 * stay in the parent, and in a child its functions return WEIR_EFORKED.
 */
static inline int weir_builder_build(weir_builder *builder, const weir_pipeline_options *options,
                                     weir_pipeline **pipeline, weir_error *error)
{
    return weir_builder_build_sized(builder, options, sizeof *options, pipeline, error);
}

/*
 * Copies the description, for another pipeline. The copy can be built as it is, or after more stages were added. The program
 * builds or frees each of the two. The copy has its own copy of all that the description owns: config_init() of each operation
 * gets the bytes of a config that it has initialised, and duplicates what they point to. What the description does not own
 * (`self` of hooks, configs that are not copied) is shared. Pipelines that run at the same time use it at the same time. An error
 * of the description is copied, too. If copying fails, weir_builder_build() of the copy reports it. NULL = out of memory.
 */
WEIR_API weir_builder *weir_builder_copy(const weir_builder *builder);

/*
 * Prints the description for people. Each source, stage, route and merge, and the sink, has a line, in the order of flow. A
 * line has the operation, the slots, the queue, and each option that is not the default. The branches of a route are indented
 * below it. The last line is the error, if there is one. The configs of operations are not printed. The text may differ
 * between versions. To get it in memory, see weir_text_open(). WEIR_OK, WEIR_EIO, WEIR_ENOMEM or WEIR_EINVAL.
 *
 *     src: source numbers, queue of 2 items
 *     by-size: route of 2 branches, sets aside up to 16 items, 1 slot, queue of 2 items
 *       branch 0
 *         shrink: resize, 4 slots, queue of 2 items, in input order
 *       branch 1
 *     join: end of route by-size, queue of 2 items
 *     sink: queue of 3 items
 */
WEIR_API int weir_builder_print(const weir_builder *builder, FILE *out);

/* Frees a builder that will not be built. NULL is accepted. */
WEIR_API void weir_builder_free(weir_builder *builder);

/*
 * Gets the next result in *item. The caller owns it and releases it with weir_item_release().
 *   WEIR_OK        *item is set
 *   WEIR_EPOCH     no item: an epoch has ended. All its items have been delivered, and none of the next epoch. With
 *                  several calling threads, one of them gets it; the others may still be processing items of that
 *                  epoch, and may get items of the next one soon
 *   WEIR_EOF       all items have been delivered; every later call returns the same
 *   WEIR_ETIMEDOUT no item within timeout_ns (0 = do not wait; WEIR_FOREVER = wait without limit)
 *   WEIR_EINVAL    timeout_ns is negative and not WEIR_FOREVER
 *   WEIR_EFAILED   the pipeline failed, and all items downstream of the failure were delivered; every later call
 *                  returns the same
 *   WEIR_ESTOPPED  weir_pipeline_stop() was called; every later call returns the same
 *   WEIR_EFORKED   the pipeline was built before this process was forked; all functions of a pipeline return this then
 * Any thread; several may wait at the same time.
 */
WEIR_API int weir_pipeline_next(weir_pipeline *pipeline, weir_item *item, int64_t timeout_ns);

/*
 * Stops the pipeline: wakes all waiting threads, starts no new task, makes weir_task_should_stop() return true. Never
 * waits. Any thread (also in tasks and hooks), in any state, any number of times; not from a signal handler. WEIR_OK
 * or WEIR_EINVAL.
 */
WEIR_API int weir_pipeline_stop(weir_pipeline *pipeline);

/* The same from a signal handler. Async-signal-safe: a thread of the pipeline then performs the stop immediately.
   The program must not free the pipeline during the call. WEIR_OK or WEIR_EINVAL. */
WEIR_API int weir_pipeline_stop_from_signal(weir_pipeline *pipeline);

/*
 * Installs signal handlers: the first SIGINT (Ctrl-C) or SIGTERM stops the pipeline, even if the signal was ignored
 * before. Further ones are ignored for a second (WEIR_SIGNAL_REPEATS_NS), because timeout(1) and launchers send them
 * twice; a later one has its default action, which ends the process. Several pipelines may use this; the first signal
 * stops all of them. When the last of them is freed, the previous signal handling is restored. WEIR_OK or
 * WEIR_EINVAL. Any thread.
 */
WEIR_API int weir_pipeline_stop_on_signals(weir_pipeline *pipeline);

/* How long after a signal that has stopped a pipeline another one counts as the same. */
#define WEIR_SIGNAL_REPEATS_NS WEIR_SECOND

/* The number of the signal that stopped the pipeline after weir_pipeline_stop_on_signals(); 0 = none. Any thread. */
WEIR_API int weir_pipeline_stop_signal(weir_pipeline *pipeline);

/*
 * For event loops (epoll, libuv, GLib): *fd is readable while weir_pipeline_next() with a timeout of 0 would return
 * anything other than WEIR_ETIMEDOUT. Wait until it is readable, then call weir_pipeline_next() until it returns
 * WEIR_ETIMEDOUT, or once for each wake-up: the descriptor stays readable while there is more. The pipeline owns it:
 * do not read, write or close it, and remove it from the event loop before weir_pipeline_free(). The first call
 * creates it; later calls return the same. WEIR_OK, WEIR_EINVAL, or WEIR_ESYSTEM if no descriptors are left. Any
 * thread.
 */
WEIR_API int weir_pipeline_poll_fd(weir_pipeline *pipeline, int *fd);

/*
 * Stops the pipeline, joins all its threads, reports the last lap, releases all remaining items and frees everything.
 * The run lasts until this call. What the consumer has reported before (events, steps, phases, spans, counters) is in
 * the last lap, the trace and the recording. This includes what it reported after the last item, a stop or a failure.
 * No other call on this pipeline may be in progress. Do not call it on one of the pipeline's own threads (in a task,
 * hook or observer): there it logs an error, stops the pipeline and does not free it. In a process that was forked
 * after the pipeline was built it does nothing. NULL is accepted.
 */
WEIR_API void weir_pipeline_free(weir_pipeline *pipeline);

/*
 * The same as weir_pipeline_free(), but waits at most timeout_ns (0 = not at all, WEIR_FOREVER = without limit): for tasks that may
 * not end, such as callbacks of a program in another language. The pipeline must not be used afterwards, whatever is returned:
 *   WEIR_OK        everything is freed, and no thread is left
 *   WEIR_ETIMEDOUT code of the program still runs: a task, a hook, a function of an operation or of an observer, or a release
 *                  function. The pipeline is stopped. When that code returns, a thread of the pipeline reports the
 *                  last lap, releases the items and frees everything.
 *   WEIR_EINVAL    timeout_ns is negative and not WEIR_FOREVER, or it is being closed already: nothing was done
 *   WEIR_EFORKED   it belongs to the parent process; nothing was done
 * Here worker_free, config_free, `detach` of observers and release functions run on a thread of the pipeline, not on
 * the caller's. `mark` of observers runs on the caller's thread, before the time begins. It may also be called on one
 * of the pipeline's own threads (in a task, hook or observer): there it does not wait. Calls of weir_pipeline_next()
 * that wait at that time return WEIR_ESTOPPED and are waited for; no other call may be in progress.
 *
 * After WEIR_ETIMEDOUT, what that code uses (the objects of callbacks, observers, databases) must stay valid until
 * it has returned. The libraries that contain the code, and those of weir, must stay loaded.
 * weir_pipeline_close_wait() says when all is freed. If the process ends before, the threads end with it: of a
 * recording, what was flushed is kept.
 */
WEIR_API int weir_pipeline_close(weir_pipeline *pipeline, int64_t timeout_ns);

/*
 * Waits until all pipelines that weir_pipeline_close() has left behind are freed, and their threads have ended: before dlclose(),
 * or at the end of a program. Any thread but those of pipelines. WEIR_OK: none is left; WEIR_ETIMEDOUT: some are left after
 * timeout_ns (0 = do not wait; WEIR_FOREVER = wait without limit); or WEIR_EINVAL: timeout_ns is negative and not WEIR_FOREVER.
 */
WEIR_API int weir_pipeline_close_wait(int64_t timeout_ns);

/*
 * Why the pipeline failed (stage NULL), or the first failure of a stage, with the item's label, our status and the native
 * library code. The stage is named as in the statistics ("0:1:load[10]") or as in its options ("load"). Returns
 * error->status; WEIR_OK with a zeroed *error if it has not failed; WEIR_ENOTFOUND, with an error that names no stage, if
 * the stage does not exist. Any thread.
 */
WEIR_API int weir_pipeline_error(weir_pipeline *pipeline, const char *stage, weir_error *error);

/*
 * A failure that waits for the program, with weir_pipeline_options.kept_failures. It is what observers get, and also that of the
 * task of a source.
 */
typedef struct weir_kept_failure {
    /* The texts of the failure are valid until weir_kept_failure_free(), its stage until the pipeline is freed. */
    const weir_failure *failure;
    uint64_t attempt; /* items that have failed in this place before, see weir_op.replace */
    /* weir_task_set_cause(); NULL = none. It belongs to this failure. Set it to NULL to own it: then nobody else releases it */
    void *cause;
    uint64_t num_lost; /* failures that were lost since the one that was pulled before */
} weir_kept_failure;

/*
 * Pulls the oldest failure that waits; never waits itself. A failure is there before the account counts it, and
 * before weir_pipeline_next() returns the WEIR_EFAILED that it has caused. Those of tasks that were asked to stop are
 * not kept, as they are not reported. What nobody has pulled is released when the pipeline is freed, each cause on
 * the thread that frees it.
 *   WEIR_OK        *failure is the caller's, to be freed with weir_kept_failure_free()
 *   WEIR_ENOTFOUND none waits, or none are kept; *failure is NULL
 * Any thread.
 */
WEIR_API int weir_pipeline_next_failure(weir_pipeline *pipeline, weir_kept_failure **failure);

/* Also releases its cause, on this thread. Any thread, also after the pipeline was freed. NULL is accepted. */
WEIR_API void weir_kept_failure_free(weir_kept_failure *failure);

/*
 * Where every item went. For a stage, at any moment,
 *     taken + created = passed_on + skipped + failed + dropped + merged + in_flight
 * The same holds for the pipeline, where `taken` is what the sources produced and `passed_on` what
 * weir_pipeline_next() delivered. After weir_pipeline_stop() and the end of the last task, in_flight is what
 * weir_pipeline_free() will still release; it counts those items as dropped.
 */
typedef struct weir_account {
    uint64_t taken;     /* items received (pipeline: produced by the sources) */
    uint64_t created;   /* additional items of an input (WEIR_MORE), of a flush, or in the place of one that failed */
    uint64_t passed_on; /* items passed downstream (pipeline: delivered) */
    uint64_t skipped;
    uint64_t failed;
    uint64_t dropped;   /* discarded at stop or failure */
    uint64_t merged;    /* became part of another item (WEIR_KEPT) */
    uint64_t in_flight; /* in slots, set aside by a route and, for the pipeline, in queues */
} weir_account;

WEIR_API int weir_pipeline_account_sized(weir_pipeline *pipeline, const char *stage, weir_account *account,
                                         size_t account_size);

/* stage: as for weir_pipeline_error(), NULL = the whole pipeline. WEIR_OK or WEIR_ENOTFOUND. Any thread. */
static inline int weir_pipeline_account(weir_pipeline *pipeline, const char *stage, weir_account *account)
{
    return weir_pipeline_account_sized(pipeline, stage, account, sizeof *account);
}

/*
 * Changes the number of slots of a stage while it runs. No item is lost: surplus slots end when their task has ended.
 * The stage keeps its name in the statistics; an event "concurrency" records the change. Any thread. WEIR_OK;
 * WEIR_ENOTFOUND; WEIR_EINVAL if concurrency is 0 or above WEIR_MAX_SLOTS; WEIR_EUNSUPPORTED for sources, merges, the
 * sink and stages that keep items between tasks (flush); WEIR_ENOMEM.
 */
WEIR_API int weir_pipeline_set_concurrency(weir_pipeline *pipeline, const char *stage, uint32_t concurrency);

/*
 * Changes the number of threads of the pipeline's pool (stage NULL) or of a stage with private threads. New threads are
 * started at once. Surplus ones finish their current call of an operation, and then sleep until they are needed again
 * or the pipeline is freed. An event "threads" records the change. Any thread. WEIR_OK; WEIR_ENOTFOUND; WEIR_EINVAL if
 * threads is 0 or above WEIR_MAX_THREADS; WEIR_EUNSUPPORTED for a stage without private threads; WEIR_ESTOPPED;
 * WEIR_ENOMEM or WEIR_ESYSTEM if not all could be started: those that could be run.
 */
WEIR_API int weir_pipeline_set_threads(weir_pipeline *pipeline, const char *stage, uint32_t threads);

/*
 * Measures what the run would gain if a source, a stage, or the consumer (the name of the sink) were faster by
 * `share`. A share of 0.2 means that tasks take 20 % less time. The method is that of the profiler Coz: while one of
 * its tasks runs for t, all other slots and the consumer are held back for share × t. So the run gets slower. Items
 * per second of (elapsed time - weir_snapshot.delayed_ns) are those of the faster run. stage NULL or share 0 ends the
 * measurement. Time for which tasks are pending does not count. Any thread. WEIR_OK; WEIR_ENOTFOUND; WEIR_EINVAL
 * unless 0 <= share < 1; WEIR_EUNSUPPORTED for merges.
 */
WEIR_API int weir_pipeline_set_speedup(weir_pipeline *pipeline, const char *stage, double share);

/* What a thread that runs a task waits for when it sleeps, by the system call that it is in. */
typedef enum weir_wait {
    WEIR_WAIT_FILE,    /* opening, reading, writing or syncing a file, or a page of a mapped one */
    WEIR_WAIT_NETWORK, /* a connection to another machine */
    WEIR_WAIT_PROCESS, /* another process: its end, a pipe, or a local socket */
    WEIR_WAIT_LOCK,    /* a lock, a condition or another thread */
    WEIR_WAIT_SLEEP,   /* a time */
    WEIR_WAIT_OTHER,
    WEIR_NUM_WAITS
} weir_wait;

/* The state of the pipeline at one moment. Names are valid until the pipeline is freed, labels until the snapshot
   is freed. */
typedef struct weir_stage_snapshot {
    const char *name;
    const char *kind;     /* "source", "stage", "route", "merge" or "sink" */
    uint32_t concurrency; /* number of slots that is set; below `slots` while surplus ones finish their tasks */
    uint32_t slots;       /* the sum of: */
    uint32_t running, pending, waiting_in, waiting_thread, waiting_turn, waiting_out;
    uint64_t num_tasks, num_failures; /* since the start; num_tasks includes the failures */
    int64_t failed_ns;                /* run time of the tasks that failed, since the start */
    bool ended;
    uint32_t threads; /* private threads that may run now; 0 = it uses the pipeline's pool */
    /* CPU time of its tasks, since the start; of long tasks at work, up to the last lap. That of other processes is included if
       tasks report it. */
    int64_t cpu_ns;
    /* What other processes have waited for a CPU, since the start; see weir_task_add_run_delay(). */
    int64_t child_delay_ns;
    uint64_t num_work; /* the work that its tasks have reported as done since the start, see weir_task_advance() */
    const char *work_unit; /* the unit of num_work; NULL = nothing was reported yet */
    /* At regular intervals, the engine looks at the threads that run its tasks. num_looks is the number of looks since the
       start, and num_waits says in how many of them a thread slept. 0 looks: there is no permission to read
       /proc/self/task/TID/syscall, or no task ran for long enough. */
    uint64_t num_looks;
    uint64_t num_waits[WEIR_NUM_WAITS];
    /* How many of waiting_in wait at the end of an epoch. tail: until its last items are done. gap: then, until the next
       epoch has an item. */
    uint32_t waiting_epoch_tail, waiting_epoch_gap;
} weir_stage_snapshot;

typedef struct weir_queue_snapshot {
    const char *name;
    uint32_t capacity, depth;
    uint64_t bytes;
    uint32_t waiting_to_put;     /* results waiting for room, in slots or set aside by a route */
    uint64_t num_put, num_items; /* put and taken since the start */
    uint64_t capacity_bytes;     /* 0 = unlimited */
} weir_queue_snapshot;

typedef struct weir_task_snapshot {
    const char *stage;
    const char *label; /* "" = none */
    int64_t age_ns;    /* run time so far */
    bool pending;
} weir_task_snapshot;

typedef struct weir_snapshot {
    const char *state; /* "running", "stopping", "failed" or "ended" */
    const weir_stage_snapshot *stages;
    size_t num_stages;
    const weir_queue_snapshot *queues;
    size_t num_queues;
    const weir_task_snapshot *tasks; /* running or pending */
    size_t num_tasks;
    uint32_t threads;   /* of the pipeline's pool that may run now */
    int64_t delayed_ns; /* by weir_pipeline_set_speedup(), since the start */
    bool marks_steps;   /* the consumer has called weir_pipeline_mark_step() */
    char phase[64];     /* of the consumer; "" = none was marked */
} weir_snapshot;

/* Takes a snapshot; free it with weir_snapshot_free(). Delays the pipeline by well below a millisecond. Any
   thread, at any time. WEIR_OK or WEIR_ENOMEM. */
WEIR_API int weir_pipeline_snapshot(weir_pipeline *pipeline, weir_snapshot **snapshot);
WEIR_API void weir_snapshot_free(weir_snapshot *snapshot);

/* Reports how many bytes of results the consumer keeps from now on, for example to return them again. Laps have the largest number
   as max_held_bytes of the sink; see weir_task_set_held(). Any thread. WEIR_OK; or WEIR_EINVAL: above 2^46. */
WEIR_API int weir_pipeline_set_held(weir_pipeline *pipeline, uint64_t bytes);

/* Reports an event to the observers, unless weir_pipeline_free() has begun. Strings are copied; category and detail may be NULL.
   Any thread. WEIR_OK or WEIR_ENOMEM. */
WEIR_API int weir_pipeline_event(weir_pipeline *pipeline, const char *name, const char *category, const char *detail);

/*
 * These mark the position of the consumer, on three independent axes. A step has an increasing number. A phase has any
 * name, such as "forward" or "load". A mode is, for example, "train" or "eval" (names have up to 63 bytes). Each lasts
 * until the next mark of its kind, and the last one until weir_pipeline_free(). A step also ends at the mark WEIR_NO_STEP.
 * Laps (weir_lap_position), traces and spans say in which step, phase and mode they were. The thread that marks moves all
 * figures at the time of the mark.
 *
 * Without phase marks, "startup", "loop" and "finish" are set automatically. A program that marks phases itself also marks
 * "finish" if it wants one. At a point where several change, mark the step first: the time up to the next mark belongs to it.
 * A mark takes about a microsecond. Any thread. WEIR_OK; WEIR_ENOMEM, without an effect; WEIR_EINVAL for a name that is
 * empty or too long.
 */
WEIR_API int weir_pipeline_mark_step(weir_pipeline *pipeline, int64_t step);
WEIR_API int weir_pipeline_mark_phase(weir_pipeline *pipeline, const char *phase);
WEIR_API int weir_pipeline_mark_mode(weir_pipeline *pipeline, const char *mode);

/*
 * Ends the lap now instead of at the end of its interval, and waits until the observers have got it. Then they know all that was
 * measured before the call. The ends of intervals stay where they are. After the end of the work, they know all up to that end, and
 * what the consumer reports later is in the last lap. Without observers of laps, it does nothing.
 *
 * Returns WEIR_OK, WEIR_EINVAL, WEIR_EFORKED, or one of these. WEIR_ETIMEDOUT: an observer did not take the lap
 * within timeout_ns (WEIR_FOREVER = no limit), and gets it later. WEIR_EBUSY: this is the thread that calls the
 * observers. WEIR_EOF: weir_pipeline_free() has begun. Any other thread.
 */
WEIR_API int weir_pipeline_end_lap(weir_pipeline *pipeline, int64_t timeout_ns);

#define WEIR_PHASE_REPLAY "replay" /* the consumer uses results that it has kept: analyses leave these laps out */

/* The CPUs this process may use: the smaller of its affinity mask and its cgroup's quota (rounded down), at least 1. */
WEIR_API uint32_t weir_cpu_budget(void);

#ifdef __cplusplus
}
#endif

#endif
