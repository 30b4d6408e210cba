/* The pieces of weir._core. Internal; all with the GIL held, unless it says otherwise. */
#ifndef PYTHON_CORE_CORE_H
#define PYTHON_CORE_CORE_H

#include <stdio.h>

#include "python/common/binding.h"

#include <weir/pipeline.h>

/* ---- interrupt.c ---- */

bool weirpy_is_interrupted(int64_t *last_ns);

/* ---- gil.c: the GIL on weir's threads ---- */

/* When the module is loaded. 0, or -1 with an exception raised. */
int weirpy_gil_ready(PyObject *module);

/* Without the GIL, or with it. Takes the GIL; false = the interpreter ends, and no object may be touched any more. */
bool weirpy_gil_take(PyGILState_STATE *state);
void weirpy_gil_give(PyGILState_STATE state);

/* From now on weirpy_gil_take() refuses. */
void weirpy_gil_end(void);

/* Without the GIL. Keeps a thread state for each thread of the pools, so that a task does not make one. */
weir_thread_hook weirpy_thread_hook(void *run);

/* The run (weirpy_thread_hook()) to whose pools this thread belongs; NULL = none. */
const void *weirpy_run_of_thread(void);

/* ---- native_stage.c: a stage of C, as weirpy_core.new_stage() makes it ---- */

typedef struct weirpy_stage {
    PyObject ob_base;
    const weir_op *op;
    bool is_source;
    void *config;
    size_t config_size;
    void (*free_config)(void *config);
    PyObject *kept;
} weirpy_stage;

int weirpy_stage_ready(PyObject *module);

/* The stage; NULL = the object is none. */
weirpy_stage *weirpy_stage_of(PyObject *object);

PyObject *weirpy_stage_new(const weir_op *op, bool is_source, void *config, size_t config_size,
                           void (*free_config)(void *config), PyObject *kept);

/* ---- items.c: what items become in Python, and back ---- */

int weirpy_register_type(const char *type, weirpy_wrap *wrap);
int weirpy_register_unwrap(const char *type, weirpy_unwrap *unwrap);

/* The Python object of an item of any type, which it owns from now on; or NULL with an exception raised, and the item has been
   released. */
PyObject *weirpy_item_object(weir_item *item);

/* ---- span.c: weir.span() and its kind ---- */

int weirpy_span_ready(PyObject *module);

/* ---- text.c: what functions of weir write to a FILE, as a string ---- */

typedef struct weirpy_text {
    FILE *file;
    char *bytes;
    size_t size_bytes;
} weirpy_text;

/* Begins one. NULL = out of memory; end it even then. */
FILE *weirpy_text_begin(weirpy_text *text);

/* The string that was written; or NULL with an exception raised if the status is not WEIR_OK: the error, or if that is NULL the
   status. */
PyObject *weirpy_text_end(weirpy_text *text, int status, const weir_error *error);

/* ---- watch.c: the verdict on any loop ---- */

int weirpy_watch_ready(PyObject *module);

/* ---- stats.c, verdict.c: recordings ---- */

int weirpy_stats_ready(PyObject *module);
int weirpy_verdict_ready(PyObject *module);

/* From a dict with the names of its fields. -1 with an exception raised. */
struct weir_filter;
int weirpy_fill_filter(struct weir_filter *filter, PyObject *values);

/* ---- log.c: lines of the log go to Python's logging ---- */

int weirpy_log_ready(PyObject *module);

/* An exception that has no place to go to: of a handler, of a finalizer. Ctrl-C is raised again later. */
void weirpy_report_exception(void);

/* Lines that wait go to the logger. Call it where Python's caller waits for a result anyway; an exception that is set stays. */
void weirpy_drain_log(void);
/* The same of the input of a task, which the engine releases later. */
PyObject *weirpy_input_object(weir_item *in);

/* An object for an item that stays as it is: one of Python, a path, or a list of these. NULL with an exception raised. */
PyObject *weirpy_item_peek(const weir_item *item);

/* The types of items that a stage takes: words, as weir_op.takes. A batch has items of its own. */
typedef struct weirpy_takes {
    const char *types; /* NULL = anything */
    const char *parts; /* of the items of a batch; NULL = anything */
} weirpy_takes;

/* Makes an item of the object for a stage that takes these types. 0: *out is set, with a reference of its own; or -1 with an
   exception raised. */
int weirpy_object_item(PyObject *object, const weirpy_takes *takes, weir_item *out);

/* ---- callable.c: stages and sources of Python functions ---- */

/* The config of both; copied by the builder. */
typedef struct weirpy_callable {
    PyObject *object;   /* a function, or an iterable; it lives as long as the stage */
    weirpy_takes takes; /* of the stage behind it */
} weirpy_callable;

extern const weir_op weirpy_call_op, weirpy_iterate_op;

/* The functions of the module that make stages: METH_VARARGS. */
PyObject *weirpy_call(PyObject *self, PyObject *args);
PyObject *weirpy_iterate(PyObject *self, PyObject *args);
PyObject *weirpy_aggregate(PyObject *self, PyObject *args);
PyObject *weirpy_disaggregate(PyObject *self, PyObject *args);

int weirpy_callable_ready(PyObject *module);

/* Whether this thread runs a function of a pipeline that has been told to stop. Any thread. */
bool weirpy_task_should_stop(void);

/* ---- junction.c: routes and merges, as stages without an operation ---- */

extern const weir_op weirpy_route_op, weirpy_branch_op, weirpy_join_op, weirpy_merge_op;

bool weirpy_is_junction(const weir_op *op);

/* The functions of the module that make them: METH_VARARGS or METH_NOARGS. */
PyObject *weirpy_route(PyObject *self, PyObject *args);
PyObject *weirpy_branch(PyObject *self, PyObject *unused);
PyObject *weirpy_join(PyObject *self, PyObject *unused);
PyObject *weirpy_merge(PyObject *self, PyObject *args);

/* ---- pipeline.c ---- */

int weirpy_pipeline_ready(PyObject *module);

/* METH_NOARGS of the module, for atexit: stops and closes all pipelines. */
PyObject *weirpy_pipelines_end(PyObject *self, PyObject *unused);

#endif
