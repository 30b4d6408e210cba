/* What a stage does: the operation, its tasks, and the hooks around both. */
#ifndef WEIR_OP_H
#define WEIR_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/item.h>
#include <weir/item_part.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One run of an operation on one item, as the operation sees it. Valid from the start of run() until the task has
   ended. */
typedef struct weir_task weir_task;
struct weir_checkpoint;

/*
 * A kind of stage: a static const table, shared by all pipelines. Every function may be called on several threads at
 * the same time, but never concurrently for the same worker state. Only `name` and `run` are required.
 */
typedef struct weir_op {
    const char *name; /* [A-Za-z0-9_.-]+, the stage's name unless its options give another; a source is called src */

    /*
     * The types of the items that it takes and makes: one word, such as WEIR_TYPE_TEXT, or several separated by
     * spaces. Names that begin with "weir." are reserved. weir_builder_build() rejects a stage that takes certain
     * types if the stage upstream makes none of them or does not declare what it makes.
     *   takes  NULL = anything. Otherwise run() gets no item of another type and no item without data: such a task
     *          fails with WEIR_EINVAL
     *   makes  NULL = not declared. One word: the engine sets out->type. Several words, or WEIR_TYPE_ANY: the
     *          operation sets it, or passes on the type of its input (weir_item_move()), and each item is checked
     *          when it is taken
     */
    const char *takes;
    const char *makes;

    /* Size in bytes of the config struct, which weir_builder_source() and weir_builder_pipe() copy. If the program's
       struct is shorter, the rest of the copy is 0. 0 = the pointer itself is passed on, and what it points to must
       outlive the pipeline. */
    size_t config_size;
    /* Checks the copy and duplicates what it points to (strings). Called by weir_builder_source() and
       weir_builder_pipe(), and by weir_builder_copy() with the bytes of a config that it has initialised: that one is still used.
       After a failure config_free is not called. Needs config_size. */
    int (*config_init)(void *config, weir_error *error);
    void (*config_free)(void *config);

    size_t worker_size; /* bytes of zeroed worker state per slot */
    /* Runs before the slot's first task, on that task's thread; a failure fails the task. After a failure
       worker_free is not called, and the next task tries again with zeroed state. */
    int (*worker_init)(void *worker, const void *config, weir_task *task);
    /*
     * Processes one input. `in` is NULL for a source. The engine releases what is left in `in` when the task has
     * ended; an operation that keeps the data or passes it on takes it out with weir_item_move(). `out` is empty at
     * the start.
     *   WEIR_OK       out is set; done with in
     *   WEIR_SKIP     done with in, no result
     *   WEIR_MORE     out is set; call again with the same in once there is room for out
     *   WEIR_KEPT     done with in, which became part of a later result (weir_item_keep()); needs flush
     *   WEIR_PENDING  weir_task_complete() delivers the result, from any thread; until then in and task stay valid,
     *                 but out does not
     *   WEIR_EPOCH    sources only: no item, but the end of an epoch
     *   WEIR_EOF      sources only: no more items
     *   negative      failed: in, and out if set, are dropped
     */
    int (*run)(void *worker, weir_item *in, weir_item *out, weir_task *task);
    /*
     * Outputs what the worker has kept. Called at the end of an epoch and of the input, for each worker that has had
     * a task since the last flush. WEIR_OK or WEIR_MORE (out is set; MORE: call again), WEIR_SKIP (no result; it has
     * released what it had kept) or negative. The results get the seq and epoch of the last input of the worker.
     * Workers are flushed one after the other, in the order of that seq, before the end of the epoch is passed on.
     * Not called on stop and failure; task hooks do not run around it.
     */
    int (*flush)(void *worker, weir_item *out, weir_task *task);
    void (*worker_free)(void *worker); /* at the end of the pipeline, for each initialised worker */

    /* Called once, on a separate thread of the pipeline, for a pending task whose result is no longer wanted
       (stop, failure, deadline). It should bring about an early weir_task_complete(), which it may call itself,
       and which may run concurrently. The task does not end before cancel has returned. */
    void (*cancel)(void *worker, weir_task *task);

    /*
     * Sources whose items can be made in any order, for checkpoints (see <weir/checkpoint.h>); all or none.
     * With resume, run() makes the item weir_task_seq(task) of the epoch weir_task_epoch(task), whichever that is.
     *   save    What identifies the items, for resume: lines of text, to be freed with free(). epoch: earlier ones do
     *           not matter any more. Any thread, also while run() runs. NULL = out of memory
     *   resume  Called before the pipeline starts: the texts of these checkpoints (weir_checkpoint_source.text) must
     *           be of the same items. WEIR_OK: the items have the same numbers as in the only checkpoint. WEIR_SKIP:
     *           the source numbers what is not done anew, from 0. Or negative with *error filled
     *   renumber  After WEIR_SKIP: the new number of the item that has this number in that checkpoint; UINT64_MAX = this
     *           source does not make it any more
     */
    char *(*save)(const void *config, uint64_t epoch);
    int (*resume)(void *config, const struct weir_checkpoint *const *checkpoints, size_t num_checkpoints,
                  size_t source, weir_error *error);
    uint64_t (*renumber)(const void *config, size_t checkpoint, uint64_t epoch, uint64_t seq);

    /* Sources: not 0 = the pipeline fails if all tasks of a stage have failed in the first whole epoch (or in the
       stream). Otherwise a job would train on nothing. */
    uintptr_t needs_results;

    /*
     * For sources that promise how many results an epoch has. The task of item `seq` of that epoch has failed in the
     * stage that takes the items of the source. This function makes another item in its place. The new item gets its
     * number, epoch and label as any item made by run(), and the task runs again with it. The failure is counted,
     * reported and limited (max_failures) as any other.
     *   attempt  from 1: the attempt-th item in this place; all before it have failed. 0: out is NULL, and nothing is made
     * WEIR_OK; WEIR_SKIP: this source promises nothing, the item is lost; or negative with *error filled: there is no other
     * item, and the pipeline fails. Any thread, also while run() runs. A failure in a later stage cannot be replaced in this
     * way: it fails the pipeline if attempt 0 gives WEIR_OK. A task that has made some of its results (WEIR_MORE) is not
     * replaced.
     */
    int (*replace)(const void *config, uint64_t epoch, uint64_t seq, uint64_t attempt, weir_item *out,
                   weir_error *error);

    const void *reserved[1]; /* NULL */
} weir_op;

/* True if the task's result is no longer wanted (stop, failure, deadline). Cheap; any thread. Long operations
   check it often, for example every millisecond, and return any negative status when it is true. */
WEIR_API bool weir_task_should_stop(const weir_task *task);

/* The item's label, or "" (the task of a source has none until it sets one). Valid until the task ends or sets
   another. */
WEIR_API const char *weir_task_label(const weir_task *task);

/*
 * The origin of the item: its number within its source and epoch, its epoch, and the number of its source in the
 * order of building, each from 0. For the task of a source these are the values that its item will get. They do not
 * depend on timing, so random choices derived from them, as with weir_video_config.seed, are reproducible.
 */
WEIR_API uint64_t weir_task_seq(const weir_task *task);
WEIR_API uint64_t weir_task_epoch(const weir_task *task);
WEIR_API uint32_t weir_task_source(const weir_task *task);

/* The number of results this task has passed on so far (WEIR_MORE): 0 in the first call of run() for an input,
   above 0 in later ones. The same for flush(). */
WEIR_API uint32_t weir_task_num_chunks(const weir_task *task);

/*
 * Sets the label of the task and of the results it makes from now on; the text is copied. Use it for labels in memory
 * that does not outlive run(); others can be set in out->label. Only on the thread that runs the task. WEIR_OK or
 * WEIR_ENOMEM.
 */
WEIR_API int weir_task_set_label(weir_task *task, const char *text);

/* What the item is; see weir_item_identity(). Valid as long as weir_task_label(). */
WEIR_API weir_identity weir_task_identity(const weir_task *task);

/*
 * For operations that make several items of one input (WEIR_MORE). The result of this call of run() gets the number
 * `number` among the results of its input. Its seq is weir_task_seq() << WEIR_NUMBER_BITS, plus this number. Without
 * this function, all results have the seq of the input. Call it only on the thread that runs the task, before run()
 * returns.
 */
#define WEIR_NUMBER_BITS 24
WEIR_API void weir_task_set_number(weir_task *task, uint64_t number);

/*
 * Adds CPU time that was used for the task elsewhere, for example by a child process. It is added to cpu_time of the
 * task's stage and of the process, in the current lap. Call it while run() or flush() runs; any thread. Ignores what
 * is not above 0.
 */
WEIR_API void weir_task_add_cpu_time(weir_task *task, int64_t cpu_ns);

/* The same for time in which a child process worked for the task, but waited for a CPU (/proc/PID/schedstat). It is
   added to run_delay_time of the pool of the stage, and of the process. */
WEIR_API void weir_task_add_run_delay(weir_task *task, int64_t delay_ns);

/*
 * Says that a child process of this process works for tasks. Until weir_child_process_end(), the memory of the child
 * is in child_resident_bytes and child_pss_bytes of the process, in the laps of all pipelines. Call
 * weir_child_process_end() before you wait for the child: until then, no other process can have its number. PSS is
 * not known where /proc/PID/smaps_rollup must not be read, for example that of a sandboxed child by another user than
 * root. Any thread; a child of fork() has none of these. WEIR_OK, WEIR_EINVAL if the pid is not above 0, or
 * WEIR_ENOMEM.
 */
WEIR_API int weir_child_process_begin(int32_t pid);

/* Does nothing if it has not begun. Any thread. */
WEIR_API void weir_child_process_end(int32_t pid);

/*
 * Reports a part of the item (see <weir/item_part.h>): the time, count or bytes of the whole task so far, with all its results.
 * A later call for the same part replaces the value. Traces show the times of a task inside it, one after the other. If a task
 * has several results (WEIR_MORE), each shows what was added since the last one. Call it while run() or flush() runs, on the
 * thread that runs the task. WEIR_OK; WEIR_ELIMIT if the item already has WEIR_MAX_ITEM_PARTS parts. WEIR_EINVAL: a
 * negative number, a part without a name or with a name that is too long, or a part of another kind.
 */
WEIR_API int weir_task_set_part(weir_task *task, const weir_part_info *part, int64_t number);

/* The same for a part of the kind WEIR_PART_TEXT. The text is copied, without the secrets of URLs. */
WEIR_API int weir_task_set_text(weir_task *task, const weir_part_info *part, const char *text);

/*
 * Reports that `amount` more units of work inside the item are done, such as frames. Call it during the task. Laps, snapshots and
 * experiments then have a figure long before the task ends. The work counts even if the task fails. The unit is a static text. A
 * stage has one unit, that of its first call. amount is at most 2^40. The call is cheap: an atomic addition in the slot. Call it
 * while run() or flush() runs, or while the task is pending. Any thread. WEIR_OK; or WEIR_EINVAL: an empty unit,
 * another unit than before, or an amount that is too large.
 */
WEIR_API int weir_task_advance(weir_task *task, const char *unit, uint64_t amount);

/* Who holds the bytes of weir_task_set_held(). */
typedef enum weir_holder {
    WEIR_HOLDER_WORKER, /* the worker of the task */
    WEIR_HOLDER_STAGE,  /* all workers of the stage together: a cache or a pool that they share */
} weir_holder;

/*
 * Reports how many bytes the operation holds for itself from now on: buffers, kept items, pools, caches and unfinished results.
 * Inputs, and results that are in queues, do not count. The number is valid until the next call for this holder. In laps,
 * max_held_bytes is the largest sum over all holders of a stage. It is not known for stages that never call this. bytes is at most
 * 2^46. The call is cheap: two reads if nothing has changed, else a few atomic operations. Call it while run() or flush() runs, or
 * while the task is pending. Any thread. WEIR_OK; or WEIR_EINVAL: another holder, or a number that is too large.
 */
WEIR_API int weir_task_set_held(weir_task *task, weir_holder holder, uint64_t bytes);

/* The stage's name in the statistics. Valid until the pipeline is freed. */
WEIR_API const char *weir_task_stage(const weir_task *task);

/* The config given to weir_builder_source() or weir_builder_pipe(), or its copy. */
WEIR_API const void *weir_task_config(const weir_task *task);

/*
 * Sets the reason why the task fails; the last call before the task ends counts. library_code is the native code of
 * the library (AVERROR, …), 0 = none. Only on the thread that runs the task. Returns status:
 * `return weir_task_fail(task, WEIR_EDATA, code, "…")`.
 */
WEIR_API int weir_task_fail(weir_task *task, int status, int library_code, const char *format, ...) WEIR_PRINTF(4, 5);

/*
 * Sets an object that tells more about the failure of the task than a message, such as an exception. The task owns it from now on,
 * and releases an earlier one. If the task fails, and the pipeline keeps failures (weir_pipeline_options.kept_failures), the object
 * waits there with the failure for weir_pipeline_next_failure(). If that failure is lost, the object is released on the thread of
 * the failure that replaces it. In all other cases it is released when the task has ended, on the thread that ran the task. release
 * is called once, under no lock (NULL = nothing to release). Call this function where weir_task_fail() may be called, or in task
 * hooks. WEIR_OK; or WEIR_EINVAL, and the cause is still the caller's.
 */
WEIR_API int weir_task_set_cause(weir_task *task, void *cause, void (*release)(void *cause));

/*
 * Ends a task whose run() returned, or is about to return, WEIR_PENDING. Call it exactly once, on any thread, also
 * after weir_pipeline_stop(). status is WEIR_OK (then *out is moved into the pipeline), WEIR_SKIP or negative;
 * weir_task_fail() may be called before on the same thread. Never blocks; do not use the task afterwards. A second
 * call, where it can be detected, is logged as an error and only releases its item.
 */
WEIR_API void weir_task_complete(weir_task *task, int status, weir_item *out);

/* Reports an event to the observers, with the stage's name as its category. Strings are copied; detail may be
   NULL. WEIR_OK or WEIR_ENOMEM. */
WEIR_API int weir_task_event(weir_task *task, const char *name, const char *detail);

/* How a task ended, for the end of a task hook. */
typedef struct weir_task_end {
    int status;                  /* WEIR_OK, WEIR_SKIP, WEIR_KEPT or negative */
    int64_t start_ns;            /* weir_clock_ns() when it first ran */
    int64_t run_ns;              /* run time; waiting for room between results (WEIR_MORE) is not counted */
    const weir_item *out;        /* its result (WEIR_OK), else NULL; must not be changed */
    const weir_error *error;     /* NULL = no failure */
    const weir_item_part *parts; /* those that the operation has reported, in the order of their first reports */
    uint32_t num_parts;
} weir_task_end;

/*
 * Runs around every task, on the task's thread: begin before the first call of run(), end after the last one. They
 * are always paired: end runs if, and only if, its begin returned WEIR_OK. Several hooks nest in the order given. A
 * failure (negative result) of either drops the item and counts as a failure of the task; after a failed begin the
 * operation does not run. Sources have no task hooks.
 */
typedef struct weir_task_hook {
    void *self;        /* shared by all threads */
    size_t state_size; /* bytes of zeroed memory per task, passed to both functions */
    int (*begin)(void *self, void *state, weir_task *task, const weir_item *in);
    int (*end)(void *self, void *state, weir_task *task, const weir_task_end *end);
    const void *reserved[4]; /* NULL */
} weir_task_hook;

/*
 * start runs when a stage or a source starts, before its first task. end runs when it ends, after its last task. Both
 * run on a pool thread. end runs if, and only if, start returned WEIR_OK, also on stop and failure. A negative result
 * fails the pipeline.
 */
typedef struct weir_stage_hook {
    void *self;
    int (*start)(void *self, const char *stage, weir_error *error);
    int (*end)(void *self, const char *stage, weir_error *error);
    const void *reserved[4]; /* NULL */
} weir_stage_hook;

/*
 * Runs at the beginning and at the end of each thread that runs tasks: of the pipeline's pool and of the stages'
 * private threads, and also of those that are added later. For what belongs to a thread: the thread state of an
 * interpreter, a CUDA context, a CPU mask. All operations, workers' init, task hooks and stage hooks run in between;
 * worker_free and release functions may run on other threads.
 *   begin  before the first task of the thread; it may run before weir_builder_build() has returned. pool: the pool's name in the
 *          statistics, "0:pool", valid until the pipeline is freed. What it returns is passed to `end`. A
 *          hook may have only one of the two: without begin, `end` gets NULL
 *   end    after the last one; weir_pipeline_free() waits for it
 * Both are always called in pairs, on the thread, under no lock, on several threads at once. Hooks nest in the order given. Other
 * threads go on meanwhile.
 */
typedef struct weir_thread_hook {
    void *self; /* shared by all threads */
    void *(*begin)(void *self, const char *pool);
    void (*end)(void *self, void *state);
    const void *reserved[4]; /* NULL */
} weir_thread_hook;

#ifdef __cplusplus
}
#endif

#endif
