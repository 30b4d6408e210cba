/* What a stage does: the operation, its task, and the hooks around both. */
#ifndef WEIR_OP_H
#define WEIR_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/item.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One run of an operation on one item, as the operation sees it. Valid from run()'s start until the task has ended. */
typedef struct weir_task weir_task;

/*
 * A kind of stage: a static const table, shared by all pipelines. Every function may be called on several threads at
 * once, but never twice at once with the same worker. Only `name` and `run` are required.
 */
typedef struct weir_op {
    const char *name; /* [A-Za-z0-9_.-]+, the stage's name unless its options give another */

    /*
     * The types of the items that it takes and makes: a word, as WEIR_TYPE_TEXT, or several with spaces between; names
     * that begin with "weir." are weir's. weir_builder_build() refuses a stage that takes types behind one that makes
     * none of them, or does not say what it makes.
     *   takes  NULL = anything. Otherwise run() gets no item of another type, and none without data: its task fails
     *          with WEIR_EINVAL
     *   makes  NULL = not declared. One word: out->type is set by the engine. Several, or WEIR_TYPE_ANY: the operation
     *          sets it, or passes on that of its input (weir_item_move()), and each item is checked when it is taken
     */
    const char *takes;
    const char *makes;

    /* Bytes of the options struct, which weir_builder_pipe() copies; 0 = the pointer itself is passed on, and what it points
       to must outlive the pipeline. */
    size_t config_size;
    /* Checks the copy and makes its own what the copy points to (strings). Called by weir_builder_source() and weir_builder_pipe().
       After a failure config_free is not called. Needs config_size. */
    int (*config_init)(void *config, weir_error *error);
    void (*config_free)(void *config);

    size_t worker_size; /* bytes of zeroed state per slot */
    /* Runs before the slot's first task, on that task's thread; a failure is the task's. After a failure worker_free
       is not called and the next task tries again with zeroed state. */
    int (*worker_init)(void *worker, const void *config, weir_task *task);
    /*
     * One step. `in` is NULL for a source. What is left in `in` when the task has ended is released by the engine;
     * an operation that keeps or hands on its data takes it out with weir_item_move(). `out` is empty at the start.
     *   WEIR_OK       out is set; done with in
     *   WEIR_SKIP     done with in, nothing to hand on
     *   WEIR_MORE     out is set; call again with the same in once out has found room
     *   WEIR_KEPT     done with in, which has become a part of a later result (weir_item_keep()); needs flush
     *   WEIR_PENDING  weir_task_complete() brings the result, from any thread; in and task stay valid until then,
     *                 out does not
     *   WEIR_EPOCH    sources only: no item, but the end of an epoch
     *   WEIR_EOF      sources only: nothing more will come
     *   negative      failed: in is dropped, and out, if set, too
     */
    int (*run)(void *worker, weir_item *in, weir_item *out, weir_task *task);
    /* At the end of an epoch and at the end of the input, for each worker that has had a task since the last flush: hands
       on what it has kept. WEIR_OK or WEIR_MORE (out is set; MORE: call again), WEIR_SKIP (nothing to hand on; what it
       had kept it has released) or negative. What it makes gets the seq of the last input it has kept; one worker is
       flushed after the other, in the order of that seq, before the end of the epoch goes on. Not called on stop
       and failure; task hooks do not run around it. */
    int (*flush)(void *worker, weir_item *out, weir_task *task);
    void (*worker_free)(void *worker); /* at the pipeline's end, for each worker that was initialised */

    /* Called once, on the statistics thread, for a pending task that is not wanted any more (stop, failure, deadline): it
       should bring about an early weir_task_complete(). It may call that itself, or run together with it; the task does
       not end before it has returned. */
    void (*cancel)(void *worker, weir_task *task);

    const void *reserved[6]; /* NULL */
} weir_op;

/* True when the task's result is no longer wanted (stop, failure, deadline). Cheap; any thread. Long operations ask
   often, say every millisecond, and return any negative status when it is true. */
WEIR_API bool weir_task_should_stop(const weir_task *task);

/* The item's label, or "" (a source's task has none but what it has set). Valid until the task ends or sets another. */
WEIR_API const char *weir_task_label(const weir_task *task);

/*
 * Where the item comes from: its number in the order of its source and epoch, its epoch, and its source's number in the
 * order of building, each from 0. For a source's task those that its item will get. They do not depend on timing, so
 * random choices that are derived from them, as with weir_video_config.seed, can be repeated.
 */
WEIR_API uint64_t weir_task_seq(const weir_task *task);
WEIR_API uint64_t weir_task_epoch(const weir_task *task);
WEIR_API uint32_t weir_task_source(const weir_task *task);

/* How many results the task has handed on so far (WEIR_MORE): 0 in the first call of run() for an input, above 0 in the
   further ones. The same for flush(). */
WEIR_API uint32_t weir_task_num_pieces(const weir_task *task);

/*
 * Gives the task, and with it what it makes from now on, this label; the text is copied. For labels that are not in
 * memory that outlives run(); others can be set in out->label. Only by who runs the task. WEIR_OK or WEIR_ENOMEM.
 */
WEIR_API int weir_task_set_label(weir_task *task, const char *text);

/* The stage's name in the statistics. Valid until the pipeline is freed. */
WEIR_API const char *weir_task_stage(const weir_task *task);

/* The options given to weir_builder_source() or weir_builder_pipe(), or their copy. */
WEIR_API const void *weir_task_config(const weir_task *task);

/*
 * Says why the task fails; the last call before the task ends counts. library_code is the library's own (AVERROR, …),
 * 0 = none. Only by who runs the task. Returns status: `return weir_task_fail(task, WEIR_EDATA, code, "…")`.
 */
WEIR_API int weir_task_fail(weir_task *task, int status, int library_code, const char *format, ...) WEIR_PRINTF(4, 5);

/*
 * Ends a task whose run() returned, or is about to return, WEIR_PENDING: exactly once, from any thread, also after
 * weir_pipeline_stop(). status is WEIR_OK (then *out is moved into the pipeline), WEIR_SKIP or negative; weir_task_fail() may
 * come before it on the same thread. Never blocks; the task must not be touched afterwards. A second call, where it can
 * be told from a first one, is logged as an error and does nothing but release its item.
 */
WEIR_API void weir_task_complete(weir_task *task, int status, weir_item *out);

/* Adds an event to what the observers are told, with the stage's name as its category. Strings are copied; detail may
   be NULL. WEIR_OK or WEIR_ENOMEM. */
WEIR_API int weir_task_event(weir_task *task, const char *name, const char *detail);

/* How a task ended, for the end of a task hook. */
typedef struct weir_task_end {
    int status;              /* WEIR_OK, WEIR_SKIP, WEIR_KEPT or negative */
    int64_t start_ns;        /* weir_clock_ns() when it first ran */
    int64_t run_ns;          /* time it ran; waiting for room between pieces (WEIR_MORE) is not counted */
    const weir_item *out;    /* the item it made (WEIR_OK), else NULL; not to be changed */
    const weir_error *error; /* NULL = no failure */
} weir_task_end;

/*
 * Runs around every task, on the task's thread: begin before the first call of run(), end after the last one. They
 * always pair: an end runs if, and only if, its begin returned WEIR_OK. Several nest in the order given. A failure
 * (negative result) of either drops the item and counts as the task's; the operation does not run after a failed
 * begin. Sources have no task hooks.
 */
typedef struct weir_task_hook {
    void *self;        /* shared by all threads */
    size_t state_size; /* bytes of zeroed memory per task, handed to both functions */
    int (*begin)(void *self, void *state, weir_task *task, const weir_item *in);
    int (*end)(void *self, void *state, weir_task *task, const weir_task_end *end);
    const void *reserved[4]; /* NULL */
} weir_task_hook;

/*
 * Runs when a stage (or the source) starts, before its first task, and when it ends, after its last one, on a pool
 * thread. An end runs if, and only if, its start returned WEIR_OK, also on stop and failure. A negative result fails
 * the pipeline.
 */
typedef struct weir_stage_hook {
    void *self;
    int (*start)(void *self, const char *stage, weir_error *error);
    int (*end)(void *self, const char *stage, weir_error *error);
    const void *reserved[4]; /* NULL */
} weir_stage_hook;

#ifdef __cplusplus
}
#endif

#endif
