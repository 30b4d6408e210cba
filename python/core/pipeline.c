/*
 * weir._core.Pipeline: a chain of stages that was built, for weir/_pipeline.py and the loader.
 *
 * The GIL is given up while a call waits. Only the main thread can handle signals, so waiting is in slices, and Ctrl-C ends it with
 * KeyboardInterrupt within one. Calls of several threads may use the pipeline at the same time; closing it stops it, which
 * ends those that wait, and the last of them frees it.
 *
 *     state      pipeline   is_closing
 *     open       set        no
 *     closing    set        yes          calls are in progress: none begins any more
 *     closed     NULL       yes          it is freed, or its own threads will free it (weir_pipeline_close())
 */
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/item.h>

#include "python/core/pipeline.h"

#include <structmember.h> /* after Python.h */

static PyTypeObject *pipeline_type;
static weirpy_pipeline *first_pipeline; /* in turn for pipeline_type */
static atomic_bool has_ended;           /* the interpreter ends */

/* How long a pipeline that nobody closes, or the end of the interpreter, waits for callables. */
enum { DROPPED_NS = 100 * 1000 * 1000 };

/* Calls that this thread is in. They run handlers of signals and of the log, which may close a pipeline. */
static _Thread_local unsigned num_own_calls;

/* ---- calls in progress ---------------------------------------------------------------------------------------------- */

static bool is_of_parent(const weirpy_pipeline *self)
{
    return self->run->process != getpid();
}

weir_pipeline *weirpy_pipeline_use(weirpy_pipeline *self)
{
    if (is_of_parent(self)) {
        weir_error error = { 0 };
        weir_error_set(&error, WEIR_EFORKED, 0, "%s", weir_status_text(WEIR_EFORKED));
        return weirpy_raise(&error), NULL;
    }
    if (self->is_closing || !self->pipeline) {
        PyErr_SetString(PyExc_ValueError, "the pipeline is closed");
        return NULL;
    }
    pthread_mutex_lock(&self->run->lock);
    self->run->num_calls++;
    pthread_mutex_unlock(&self->run->lock);
    num_own_calls++;
    return self->pipeline;
}

/* Takes the pipeline out of the object if no call uses it. NULL = one does, or it is closed. */
static weir_pipeline *take_idle(weirpy_pipeline *self)
{
    pthread_mutex_lock(&self->run->lock);
    bool is_idle = self->run->num_calls == 0;
    pthread_mutex_unlock(&self->run->lock);
    if (!is_idle)
        return NULL;
    weir_pipeline *pipeline = self->pipeline;
    self->pipeline = NULL;
    return pipeline;
}

void weirpy_pipeline_leave(weirpy_pipeline *self)
{
    num_own_calls--;
    pthread_mutex_lock(&self->run->lock);
    self->run->num_calls--;
    pthread_cond_broadcast(&self->run->changed);
    pthread_mutex_unlock(&self->run->lock);
    weir_pipeline *pipeline = self->is_closing ? take_idle(self) : NULL;
    if (pipeline)
        weir_pipeline_close(pipeline, 0); /* somebody waits for its end */
}

/* ---- closing --------------------------------------------------------------------------------------------------------- */

/* Begins to close it: the pipeline is stopped, and freed once no call uses it. Waits a moment, in which most pipelines end. */
static void begin_close(weirpy_pipeline *self, int64_t timeout_ns)
{
    const int64_t wait_ns = timeout_ns == WEIR_FOREVER || timeout_ns > WEIRPY_SLICE_NS ? WEIRPY_SLICE_NS : timeout_ns;
    if (self->is_closing || !self->pipeline)
        return;
    self->is_closing = true;
    weir_pipeline_stop(self->pipeline); /* never waits */
    weir_pipeline *pipeline = take_idle(self);
    if (!pipeline)
        return;
    Py_BEGIN_ALLOW_THREADS;
    weir_pipeline_close(pipeline, wait_ns);
    Py_END_ALLOW_THREADS;
}

/* What the recordings lost is a warning, once. 0, or -1 if the warning is an exception. */
static int warn_of_loss(weirpy_pipeline *self)
{
    pthread_mutex_lock(&self->run->lock);
    weir_error loss = self->run->loss;
    pthread_mutex_unlock(&self->run->lock);
    if (loss.status == WEIR_OK || self->is_warned)
        return 0;
    self->is_warned = true;
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "the recording is not complete: %s", loss.message);
}

static void join_threads(void)
{
    Py_BEGIN_ALLOW_THREADS;
    weir_pipeline_close_wait(0);
    Py_END_ALLOW_THREADS;
}

/* True = all is freed. -1 with an exception raised. */
static int close_pipeline(weirpy_pipeline *self, int64_t timeout_ns)
{
    if (is_of_parent(self))
        return 1;
    const int64_t begin_ns = weir_clock_ns();
    begin_close(self, timeout_ns);
    if (timeout_ns != WEIR_FOREVER) {
        timeout_ns -= weir_clock_ns() - begin_ns;
        timeout_ns = timeout_ns < 0 ? 0 : timeout_ns;
    }
    bool is_own_thread = num_own_calls > 0 || weirpy_run_of_thread() == self->run; /* it would wait for itself */
    int is_freed = weirpy_run_wait_freed(self->run, is_own_thread ? 0 : timeout_ns);
    if (is_freed > 0) {
        join_threads();
        if (warn_of_loss(self))
            return -1;
    }
    return is_freed;
}

/* So that they are known after the end, too. */
static void pull_last_failures(weirpy_pipeline *self)
{
    if (self->is_closing || !self->pipeline || is_of_parent(self))
        return;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    if (!pipeline || weirpy_pull_failures(self, pipeline))
        weirpy_report_exception(); /* it is closed all the same */
    if (pipeline)
        weirpy_pipeline_leave(self);
}

static PyObject *pipeline_close(PyObject *object, PyObject *args)
{
    PyObject *seconds = NULL;
    if (!PyArg_ParseTuple(args, "|O", &seconds))
        return NULL;
    int64_t timeout_ns = weirpy_timeout_ns(seconds);
    if (PyErr_Occurred())
        return NULL;
    pull_last_failures((weirpy_pipeline *)object);
    int is_freed = close_pipeline((weirpy_pipeline *)object, timeout_ns);
    weirpy_drain_log();
    return is_freed < 0 ? NULL : PyBool_FromLong(is_freed);
}

/* ---- making and dropping ---------------------------------------------------------------------------------------------- */

static void add_to_list(weirpy_pipeline *self)
{
    WEIRPY_BEGIN_TURN(pipeline_type);
    self->next = first_pipeline;
    if (first_pipeline)
        first_pipeline->previous = self;
    first_pipeline = self;
    WEIRPY_END_TURN();
}

static void remove_from_list(weirpy_pipeline *self)
{
    WEIRPY_BEGIN_TURN(pipeline_type);
    if (self->previous)
        self->previous->next = self->next;
    else if (first_pipeline == self)
        first_pipeline = self->next;
    if (self->next)
        self->next->previous = self->previous;
    self->previous = self->next = NULL;
    WEIRPY_END_TURN();
}

/* A new reference; NULL = another thread is dropping the object. */
static PyObject *pipeline_of(PyObject *weak)
{
#ifdef Py_GIL_DISABLED
    PyObject *object = NULL;
    return PyWeakref_GetRef(weak, &object) > 0 ? object : NULL;
#else
    PyObject *object = PyWeakref_GetObject(weak); /* borrowed */
    return object == Py_None ? NULL : Py_XNewRef(object);
#endif
}

/* A list of all; NULL with an exception raised. */
static PyObject *list_pipelines(void)
{
    PyObject *all = PyList_New(0);
    WEIRPY_BEGIN_TURN(pipeline_type);
    for (weirpy_pipeline *self = first_pipeline; self && all; self = self->next) {
        PyObject *object = pipeline_of(self->weak);
        if (object && PyList_Append(all, object))
            Py_CLEAR(all);
        Py_XDECREF(object);
    }
    WEIRPY_END_TURN();
    return all;
}

static PyObject *pipeline_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = { "stages", "sink", "options", NULL };
    PyObject *stages, *sink = NULL, *values = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|OO", names, &stages, &sink, &values))
        return NULL;
    if (atomic_load(&has_ended)) {
        PyErr_SetString(PyExc_RuntimeError, "the interpreter ends: no pipeline can be built any more");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    weirpy_pipeline *self = (weirpy_pipeline *)allocate(type, 0);
    if (!self)
        return NULL;
    self->failures = PyList_New(0);
    self->weak = PyWeakref_NewRef((PyObject *)self, NULL);
    if (!self->failures || !self->weak || weirpy_pipeline_build(self, stages, sink, values)) {
        Py_DECREF(self);
        return NULL;
    }
    add_to_list(self);
    return (PyObject *)self;
}

/*
 * What stages keep may refer to the pipeline: a function that closes it, for example. Such a cycle is found here. It is
 * broken when the pipeline is freed, not before: its threads may be in these functions.
 */
static int pipeline_traverse(PyObject *object, visitproc visit, void *arg)
{
    const weirpy_pipeline *self = (const weirpy_pipeline *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->failures);
    if (self->run)
        Py_VISIT(self->run->kept);
    return 0;
}

static int pipeline_clear(PyObject *object)
{
    Py_CLEAR(((weirpy_pipeline *)object)->failures);
    return 0;
}

/* With a limit of time. Also called when nothing was built, or it was closed before. */
static void pipeline_finalize(PyObject *object)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    PyObject *type, *value, *traceback;
    bool is_built = self->pipeline || self->is_closing;
    if (!is_built || is_of_parent(self))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    if (!atomic_load(&has_ended) && close_pipeline(self, DROPPED_NS) < 0)
        weirpy_report_exception();
    PyErr_Restore(type, value, traceback);
}

static void pipeline_dealloc(PyObject *object)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    remove_from_list(self); /* nobody may find it while it waits below */
    PyObject_ClearWeakRefs(object);
    Py_CLEAR(self->weak);
    pipeline_finalize(object);
    if (self->run && !is_of_parent(self)) {
        weirpy_drop_open_items(self);
        weir_item_release(&self->held);
        weirpy_run_release(self->run);
    }
    Py_XDECREF(self->failures);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static void stop_at_end(weirpy_pipeline *self)
{
    WEIRPY_BEGIN_TURN(self);
    if (self->pipeline && !is_of_parent(self))
        weir_pipeline_stop(self->pipeline);
    WEIRPY_END_TURN();
}

static void close_at_end(weirpy_pipeline *self, int64_t until_ns)
{
    int64_t left_ns = until_ns - weir_clock_ns();
    remove_from_list(self);
    WEIRPY_BEGIN_TURN(self);
    if (close_pipeline(self, left_ns > 0 ? left_ns : 0) < 0)
        weirpy_report_exception();
    WEIRPY_END_TURN();
}

/* All are told to stop first, so that they end together. What other threads were building meanwhile comes next. */
PyObject *weirpy_pipelines_end(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const int64_t until_ns = weir_clock_ns() + DROPPED_NS;
    atomic_store(&has_ended, true);
    for (Py_ssize_t count = 1; count > 0;) {
        PyObject *all = list_pipelines();
        if (!all)
            return NULL;
        count = PyList_Size(all);
        for (Py_ssize_t i = 0; i < count; i++)
            stop_at_end((weirpy_pipeline *)PyList_GetItem(all, i));
        for (Py_ssize_t i = 0; i < count; i++)
            close_at_end((weirpy_pipeline *)PyList_GetItem(all, i), until_ns);
        Py_DECREF(all);
    }
    weirpy_gil_end();
    Py_RETURN_NONE;
}

/* ---- items ------------------------------------------------------------------------------------------------------------ */

int64_t weirpy_timeout_ns(PyObject *seconds)
{
    if (!seconds || seconds == Py_None)
        return WEIR_FOREVER;
    double value = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred())
        return -2;
    if (value < 0 || value != value) {
        PyErr_Format(PyExc_ValueError, "timeout is %R; it is seconds from 0 on, or None for no limit", seconds);
        return -2;
    }
    return value < 9e9 ? (int64_t)(value * 1e9) : WEIR_FOREVER;
}

/* step: what the consumer begins with the item, marked here while the GIL is free; WEIR_NO_STEP = nothing is marked. If a signal
   has raised, an exception is set, whatever is returned. */
static int wait_next(weir_pipeline *pipeline, weir_item *item, int64_t timeout_ns, int64_t step)
{
    const int64_t start_ns = weir_clock_ns();
    for (;;) {
        int64_t left_ns = timeout_ns == WEIR_FOREVER ? WEIRPY_SLICE_NS : timeout_ns - (weir_clock_ns() - start_ns);
        int64_t wait_ns = left_ns < 0 ? 0 : left_ns < WEIRPY_SLICE_NS ? left_ns : WEIRPY_SLICE_NS;
        int rc;
        Py_BEGIN_ALLOW_THREADS;
        rc = weir_pipeline_next(pipeline, item, wait_ns);
        if (rc == WEIR_OK && step != WEIR_NO_STEP)
            weir_pipeline_mark_step(pipeline, step);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals()) /* before Python runs for the log: what a handler raises there has no place to go to */
            return rc;
        weirpy_drain_log();
        if (rc != WEIR_ETIMEDOUT || (timeout_ns != WEIR_FOREVER && left_ns <= WEIRPY_SLICE_NS))
            return rc;
        if (PyErr_CheckSignals() || weirpy_task_should_stop())
            return WEIR_ESTOPPED;
    }
}

/*
 * A signal that comes while next() waits raises when it returns, and then its result would be lost: the loop would not have it, and
 * checkpoints would say that it has. So the handler runs before, and if it raises, the result stays here.
 */
static void hold_result(weirpy_pipeline *self, int status, weir_item *item)
{
    if (self->held_status != WEIR_ETIMEDOUT) { /* the handler has called next() itself, which has raised as well */
        weir_item_release(item);
        return;
    }
    self->held_status = status;
    self->held = *item;
}

static int take_held(weirpy_pipeline *self, weir_item *item)
{
    int status = self->held_status;
    *item = self->held;
    self->held = (weir_item){ 0 };
    self->held_status = WEIR_ETIMEDOUT;
    return status;
}

static PyObject *raise_status(int status)
{
    weir_error error = { 0 };
    weir_error_set(&error, status, 0, "%s",
                   status == WEIR_ETIMEDOUT ? "no item within this time" : weir_status_text(status));
    return weirpy_raise(&error);
}

static PyObject *pipeline_next(PyObject *object, PyObject *args)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    PyObject *seconds = NULL, *result = NULL;
    long long step = WEIR_NO_STEP;
    weir_item item = { 0 };
    if (!PyArg_ParseTuple(args, "|OL", &seconds, &step))
        return NULL;
    int64_t timeout_ns = weirpy_timeout_ns(seconds);
    weir_pipeline *pipeline = PyErr_Occurred() ? NULL : weirpy_pipeline_use(self);
    if (!pipeline)
        return NULL;
    int rc =
        self->held_status != WEIR_ETIMEDOUT ? take_held(self, &item) : wait_next(pipeline, &item, timeout_ns, step);
    if (PyErr_Occurred() || PyErr_CheckSignals()) {
        if (rc == WEIR_OK || rc == WEIR_EPOCH)
            hold_result(self, rc, &item);
        weirpy_pipeline_leave(self);
        return NULL;
    }
    if (rc == WEIR_OK && self->acknowledges)
        weir_item_done(pipeline, &item);
    switch (rc) {
    case WEIR_OK: result = self->needs_done ? weirpy_keep_open(self, &item) : weirpy_item_object(&item); break;
    case WEIR_EPOCH: result = Py_NewRef(Py_None); break;
    case WEIR_EOF: PyErr_SetNone(PyExc_StopIteration); break;
    case WEIR_EFAILED: weirpy_raise_failed(self, pipeline); break;
    default: raise_status(rc); break;
    }
    weirpy_pipeline_leave(self);
    return result;
}

/* ---- control ---------------------------------------------------------------------------------------------------------- */

/* The result of a function that takes the pipeline for an instant only. */
static PyObject *end_call(weirpy_pipeline *self, int status, const char *what)
{
    weir_error error = { 0 };
    weirpy_pipeline_leave(self);
    if (status == WEIR_OK)
        Py_RETURN_NONE;
    weir_error_set(&error, status, 0, "%s: %s", what, weir_status_text(status));
    return weirpy_raise(&error);
}

/* 0, which weir refuses, for what is not a number of slots or threads. */
static uint32_t as_count(Py_ssize_t number)
{
    return number < 0 || number > WEIR_MAX_SLOTS ? 0 : (uint32_t)number;
}

static PyObject *pipeline_stop(PyObject *object, PyObject *unused)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    (void)unused;
    if (self->is_closing || is_of_parent(self))
        Py_RETURN_NONE;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    return pipeline ? end_call(self, weir_pipeline_stop(pipeline), "stop") : NULL;
}

static PyObject *pipeline_checkpoint(PyObject *object, PyObject *unused)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    char *text = NULL;
    int rc;
    (void)unused;
    if (!pipeline)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_pipeline_checkpoint(pipeline, &text);
    Py_END_ALLOW_THREADS;
    if (rc != WEIR_OK)
        return end_call(self, rc, rc == WEIR_EUNSUPPORTED ? "build it with checkpoints" : "checkpoint");
    PyObject *result = PyUnicode_FromString(text);
    weir_release_free(text, NULL);
    weirpy_pipeline_leave(self);
    return result;
}

static PyObject *pipeline_set_concurrency(PyObject *object, PyObject *args)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    const char *stage;
    Py_ssize_t concurrency;
    int rc;
    if (!PyArg_ParseTuple(args, "sn", &stage, &concurrency))
        return NULL;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    if (!pipeline)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_pipeline_set_concurrency(pipeline, stage, as_count(concurrency));
    Py_END_ALLOW_THREADS;
    return end_call(self, rc, stage);
}

static PyObject *pipeline_set_threads(PyObject *object, PyObject *args)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    const char *stage = NULL;
    Py_ssize_t threads;
    int rc;
    if (!PyArg_ParseTuple(args, "n|z", &threads, &stage))
        return NULL;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    if (!pipeline)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_pipeline_set_threads(pipeline, stage, as_count(threads));
    Py_END_ALLOW_THREADS;
    return end_call(self, rc, stage ? stage : "threads");
}

static PyObject *pipeline_mark_step(PyObject *object, PyObject *args)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    long long step;
    if (!PyArg_ParseTuple(args, "L", &step))
        return NULL;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    return pipeline ? end_call(self, weir_pipeline_mark_step(pipeline, step), "mark_step") : NULL;
}

static PyObject *mark_name(PyObject *object, PyObject *args, int (*mark)(weir_pipeline *, const char *))
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    return pipeline ? end_call(self, mark(pipeline, name), name) : NULL;
}

static PyObject *pipeline_mark_phase(PyObject *object, PyObject *args)
{
    return mark_name(object, args, weir_pipeline_mark_phase);
}

static PyObject *pipeline_mark_mode(PyObject *object, PyObject *args)
{
    return mark_name(object, args, weir_pipeline_mark_mode);
}

/* ---- the type --------------------------------------------------------------------------------------------------------- */

WEIRPY_IN_TURN(pipeline_next, PyObject)
WEIRPY_IN_TURN(pipeline_stop, PyObject)
WEIRPY_IN_TURN(pipeline_close, PyObject)
WEIRPY_IN_TURN(pipeline_checkpoint, PyObject)
WEIRPY_IN_TURN(weirpy_pipeline_failures, PyObject)
WEIRPY_IN_TURN(weirpy_pipeline_account, PyObject)
WEIRPY_IN_TURN(weirpy_pipeline_snapshot, PyObject)
WEIRPY_IN_TURN(pipeline_set_concurrency, PyObject)
WEIRPY_IN_TURN(pipeline_set_threads, PyObject)
WEIRPY_IN_TURN(pipeline_mark_step, PyObject)
WEIRPY_IN_TURN(pipeline_mark_phase, PyObject)
WEIRPY_IN_TURN(pipeline_mark_mode, PyObject)
WEIRPY_IN_TURN(weirpy_pipeline_done, PyObject)
WEIRPY_IN_TURN(weirpy_pipeline_stats, PyObject)
WEIRPY_IN_TURN(weirpy_pipeline_explain, PyObject)
WEIRPY_IN_TURN(weirpy_pipeline_state, void)

static PyMethodDef pipeline_methods[] = {
    { "next", in_turn_pipeline_next, METH_VARARGS,
      "next(timeout=None, step): the next item; None at the end of an epoch. With `step`, the consumer begins this "
      "step with "
      "the item. Raises StopIteration at the end, weir.Stopped after stop(), TimedOut after `timeout` seconds, and "
      "weir.Error "
      "if the pipeline has failed." },
    { "stop", in_turn_pipeline_stop, METH_NOARGS,
      "Tells the pipeline to stop. Never waits; next() then raises weir.Stopped." },
    { "close", in_turn_pipeline_close, METH_VARARGS,
      "close(timeout=None): stops the pipeline and frees it. True = all is freed; False = a callable still runs "
      "after so many "
      "seconds, and its thread frees the rest when it returns." },
    { "checkpoint", in_turn_pipeline_checkpoint, METH_NOARGS,
      "The items that are done, as a text for the option resume." },
    { "failures", in_turn_weirpy_pipeline_failures, METH_NOARGS,
      "The failures so far, as exceptions with stage, file, number and epoch. What a callable raised is their "
      "__cause__." },
    { "account", in_turn_weirpy_pipeline_account, METH_VARARGS,
      "account(stage=None): where every item went, as numbers by name." },
    { "snapshot", in_turn_weirpy_pipeline_snapshot, METH_NOARGS,
      "The state at this moment: stages, queues and tasks." },
    { "set_concurrency", in_turn_pipeline_set_concurrency, METH_VARARGS,
      "set_concurrency(stage, n): changes the slots of a stage." },
    { "set_threads", in_turn_pipeline_set_threads, METH_VARARGS,
      "set_threads(n, stage=None): changes the threads of the pool, or of a stage that has its own." },
    { "mark_step", in_turn_pipeline_mark_step, METH_VARARGS, "mark_step(n): the consumer begins this step." },
    { "mark_phase", in_turn_pipeline_mark_phase, METH_VARARGS,
      "mark_phase(name): the consumer begins a phase, such as \"forward\"." },
    { "done", in_turn_weirpy_pipeline_done, METH_VARARGS,
      "done(n=1): the n oldest results that are not done yet have been handled." },
    { "mark_mode", in_turn_pipeline_mark_mode, METH_VARARGS,
      "mark_mode(name): the consumer begins a mode, such as \"eval\"." },
    { "stats", in_turn_weirpy_pipeline_stats, METH_NOARGS,
      "Totals up to now, by the names of the database: {\"tasks\": {stage: {measure: value}}, "
      "…}." },
    { "explain", in_turn_weirpy_pipeline_explain, METH_VARARGS,
      "explain(live=False, setting_ns=0): what limits the run, as a text. live: by an experiment of some seconds, "
      "while another thread "
      "iterates; each setting runs for setting_ns at most." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef pipeline_fields[] = {
    { "state", in_turn_weirpy_pipeline_state, NULL, "\"running\", \"stopping\", \"failed\", \"ended\" or \"closed\".",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMemberDef pipeline_members[] = {
    { "__weaklistoffset__", T_PYSSIZET, offsetof(weirpy_pipeline, weak_list), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot pipeline_slots[] = {
    { Py_tp_new, pipeline_new },
    { Py_tp_dealloc, pipeline_dealloc },
    { Py_tp_traverse, pipeline_traverse },
    { Py_tp_clear, pipeline_clear },
    { Py_tp_finalize, pipeline_finalize },
    { Py_tp_methods, pipeline_methods },
    { Py_tp_getset, pipeline_fields },
    { Py_tp_members, pipeline_members },
    { Py_tp_doc, "A pipeline that was built and runs. Threads may share it." },
    { 0, NULL },
};

static PyType_Spec pipeline_spec = {
    .name = "weir._core.Pipeline",
    .basicsize = sizeof(weirpy_pipeline),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = pipeline_slots,
};

int weirpy_pipeline_ready(PyObject *module)
{
    pipeline_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &pipeline_spec, NULL);
    return pipeline_type ? PyModule_AddType(module, pipeline_type) : -1;
}
