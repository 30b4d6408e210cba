/*
 * weir._core.Pipeline in its files: run.c what outlives the object, pipeline_options.c building, pipeline.c the object and its
 * end, pipeline_facts.c and pipeline_stats.c what it tells.
 */
#ifndef PYTHON_CORE_PIPELINE_H
#define PYTHON_CORE_PIPELINE_H

#include <pthread.h>
#include <sys/types.h>

#include <weir/clock.h>
#include <weir/query.h>
#include <weir/sqlite.h>
#include <weir/trace_file.h>

#include "python/core/core.h"

/* ---- run.c ---- */

/*
 * What a pipeline uses, until the pipeline is freed: the Python object may be gone before. References: one of the object, one of
 * the pipeline. Lock order: `lock` may be taken with the GIL held, because it is held for some instructions only, and never while
 * the GIL is taken.
 */
typedef struct weirpy_run {
    PyObject *kept; /* a tuple: stages, texts to resume from. With the GIL; NULL when the pipeline is freed */
    pid_t process;  /* immutable: a forked child leaves everything as it is */

    /* immutable until the pipeline is freed */
    weir_sqlite_writer *file_writer, *memory_writer;
    weir_trace_file *trace;
    int64_t run_id; /* of the recording that is read */

    pthread_mutex_t lock;
    /* guarded by lock */
    pthread_cond_t changed; /* one of the following */
    unsigned references;
    unsigned num_calls;        /* that use the pipeline now */
    bool is_releasing;         /* the tasks have ended, only recordings are completed */
    bool is_freed;             /* and the next two are set */
    weir_recording *recording; /* of the complete recording; NULL = none. Used with reader_lock */
    weir_error loss;           /* the first failure of a recording or trace */

    pthread_mutex_t reader_lock; /* taken without the GIL */
} weirpy_run;

/* NULL with an exception raised. One reference, `kept` is another one. */
weirpy_run *weirpy_run_new(PyObject *kept);
void weirpy_run_hold(weirpy_run *run);
void weirpy_run_release(weirpy_run *run);

/* The weir_pipeline_options.freed of a pipeline. Without the GIL. It releases a reference. */
void weirpy_run_freed(void *run);

/* Opens the recordings and the trace that the options name, and fills observers[]. Their number; or -1 with an exception raised. */
enum { WEIRPY_MAX_OBSERVERS = 3 };

/* Closes the recordings of a pipeline that was not built. */
void weirpy_run_abandon(weirpy_run *run);

/* Waits until the pipeline is freed, or for that time; handles signals. 1 = it is freed, 0 = it is not, -1 = an
   exception is raised. A recording that is completed has its own limit of time, which comes on top. */
int weirpy_run_wait_freed(weirpy_run *run, int64_t timeout_ns);

/* ---- pipeline.c ---- */

typedef struct weirpy_open_item weirpy_open_item;

typedef struct weirpy_pipeline {
    PyObject ob_base;
    weir_pipeline *pipeline; /* NULL = closed */
    weirpy_run *run;
    PyObject *failures; /* a list: those that were pulled */
    uint32_t kept_failures;
    bool needs_done;                          /* results are kept open; pipeline_done.c */
    weirpy_open_item *open_items, *last_open; /* oldest first */
    bool acknowledges;   /* next() itself does, once Python has the result: checkpoints="delivered" */
    int held_status;     /* of a result that next() had taken when a signal raised; WEIR_ETIMEDOUT = none */
    weir_item held;      /* with WEIR_OK: the next call returns it */
    bool is_closing;     /* no call begins any more */
    bool is_warned;      /* of what the recording lost */
    PyObject *weak;      /* a reference to the object itself, for the list */
    PyObject *weak_list; /* Python's */
    struct weirpy_pipeline *previous, *next; /* in the list of pipelines, guarded as that is */
} weirpy_pipeline;

/* Begin and end of a call that uses the pipeline, and gives up the GIL meanwhile. NULL = it is closed, or of another
   process: an exception is raised. */
weir_pipeline *weirpy_pipeline_use(weirpy_pipeline *self);
void weirpy_pipeline_leave(weirpy_pipeline *self);

/* Seconds, None = without limit. -2 with an exception raised. */
int64_t weirpy_timeout_ns(PyObject *seconds);

/* ---- pipeline_options.c ---- */

/* Builds it, into *self, whose failures are set already. 0, or -1 with an exception raised. */
int weirpy_pipeline_build(weirpy_pipeline *self, PyObject *stages, PyObject *sink, PyObject *options);

/* ---- pipeline_facts.c: METH_VARARGS or METH_NOARGS ---- */

PyObject *weirpy_pipeline_account(PyObject *object, PyObject *args);
PyObject *weirpy_pipeline_snapshot(PyObject *object, PyObject *unused);
PyObject *weirpy_pipeline_state(PyObject *object, void *unused);
PyObject *weirpy_pipeline_failures(PyObject *object, PyObject *unused);

/* Pulls the failures that wait. 0, or -1 with an exception raised. With the pipeline in use. */
int weirpy_pull_failures(weirpy_pipeline *self, weir_pipeline *pipeline);

/* Raises why the pipeline failed, with the exception that caused it. Returns NULL. With the pipeline in use. */
PyObject *weirpy_raise_failed(weirpy_pipeline *self, weir_pipeline *pipeline);

/* ---- pipeline_done.c ---- */

/* The object of a result, which stays open until done(). The item is empty afterwards. NULL with an exception raised. */
PyObject *weirpy_keep_open(weirpy_pipeline *self, weir_item *item);

/* Nobody acknowledges them any more. */
void weirpy_drop_open_items(weirpy_pipeline *self);

/* METH_VARARGS. */
PyObject *weirpy_pipeline_done(PyObject *object, PyObject *args);

/* ---- pipeline_stats.c: METH_VARARGS or METH_NOARGS ---- */

PyObject *weirpy_pipeline_stats(PyObject *object, PyObject *unused);
PyObject *weirpy_pipeline_explain(PyObject *object, PyObject *args);

#endif
