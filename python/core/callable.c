/*
 * Operations in Python: a stage that calls a function for each item, and a source that iterates. They take the GIL for as long
 * as Python runs. The thread keeps its state between tasks (gil.c).
 *
 * What a function returns is one result; of a generator, each value is one (WEIR_MORE). None and weir.SKIP are not
 * results. An exception fails the task, and stays beside the failure as its cause, with its traceback. The locals of
 * its frames are cleared, so that failures that are kept do not hold pictures.
 */
#include <stdlib.h>

#include <weir/batch.h>

#include "python/core/core.h"

static PyObject *skip;           /* weir.SKIP */
static PyObject *generator_type; /* types.GeneratorType */

static _Thread_local weir_task *task_of_thread; /* whose function runs */

bool weirpy_task_should_stop(void)
{
    return task_of_thread && weir_task_should_stop(task_of_thread);
}

static bool is_skip(const PyObject *object)
{
    return object == Py_None || object == skip;
}

/* ---- failures --------------------------------------------------------------------------------------------------------- */

static void release_cause(void *cause)
{
    PyGILState_STATE state;
    if (!weirpy_gil_take(&state))
        return;
    Py_DECREF((PyObject *)cause);
    weirpy_gil_give(state);
}

static int status_of(PyObject *exception)
{
    const struct {
        PyObject *type;
        int status;
    } rows[] = {
        { PyExc_FileNotFoundError, WEIR_ENOTFOUND }, { PyExc_PermissionError, WEIR_EACCESS },
        { PyExc_TimeoutError, WEIR_ETIMEDOUT },      { PyExc_OSError, WEIR_EIO },
        { PyExc_MemoryError, WEIR_ENOMEM },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (PyErr_GivenExceptionMatches(exception, rows[i].type))
            return rows[i].status;
    return WEIR_EEXCEPTION;
}

/* An attribute of a module; a new reference. NULL with an exception raised. */
static PyObject *import_name(const char *module, const char *name)
{
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *value = imported ? PyObject_GetAttrString(imported, name) : NULL;
    Py_XDECREF(imported);
    return value;
}

static void clear_frames(PyObject *traceback)
{
    PyObject *clear = import_name("traceback", "clear_frames");
    Py_XDECREF(clear ? PyObject_CallFunctionObjArgs(clear, traceback, NULL) : NULL);
    Py_XDECREF(clear);
    PyErr_Clear();
}

/* Also of what it was raised from. */
static void clear_chain(PyObject *exception)
{
    enum { MOST = 100 }; /* it may be a cycle */
    PyObject *at = Py_XNewRef(exception);
    for (int i = 0; at && i < MOST; i++) {
        PyObject *traceback = PyException_GetTraceback(at), *next = PyException_GetCause(at);
        if (!next)
            next = PyException_GetContext(at);
        if (traceback)
            clear_frames(traceback);
        Py_XDECREF(traceback);
        Py_DECREF(at);
        at = next;
    }
    Py_XDECREF(at);
}

/* Takes the exception that is set; a new reference. */
static PyObject *fetch_exception(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    clear_chain(value);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* The task fails with the exception that is set. */
static int fail_task(weir_task *task)
{
    PyObject *exception = fetch_exception();
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(exception), "__name__");
    PyObject *text = name ? PyUnicode_FromFormat("%U: %S", name, exception) : NULL;
    PyObject *line = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    int status = weir_task_fail(task, status_of(exception), 0, "%s", line ? PyBytes_AsString(line) : "an exception");
    PyErr_Clear();
    Py_XDECREF(line);
    Py_XDECREF(text);
    Py_XDECREF(name);
    if (weir_task_set_cause(task, exception, release_cause) != WEIR_OK)
        Py_DECREF(exception);
    return status;
}

/* ---- the stage -------------------------------------------------------------------------------------------------------- */

typedef struct call_worker {
    PyObject *generator; /* that goes on with the next call of run(); NULL = none */
} call_worker;

/* Takes over the reference. WEIR_OK, WEIR_SKIP, or the failure of the task. */
static int put_result(PyObject *result, const weirpy_callable *config, weir_item *out, weir_task *task)
{
    int status = WEIR_SKIP;
    if (!is_skip(result))
        status = weirpy_object_item(result, &config->takes, out) ? fail_task(task) : WEIR_OK;
    Py_DECREF(result);
    return status;
}

/* The next value of the generator that is not a skip. */
static int put_next(call_worker *worker, const weirpy_callable *config, weir_item *out, weir_task *task)
{
    for (;;) {
        PyObject *value = PyIter_Next(worker->generator);
        int status = value ? put_result(value, config, out, task) : PyErr_Occurred() ? fail_task(task) : WEIR_EOF;
        if (status == WEIR_OK)
            return WEIR_MORE;
        if (status == WEIR_SKIP && !weir_task_should_stop(task))
            continue;
        Py_CLEAR(worker->generator);
        return status == WEIR_EOF ? WEIR_SKIP : status;
    }
}

static int call_function(call_worker *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const weirpy_callable *config = weir_task_config(task);
    if (weir_task_num_chunks(task) > 0 && worker->generator)
        return put_next(worker, config, out, task);
    Py_CLEAR(worker->generator);
    PyObject *object = weirpy_input_object(in);
    PyObject *result = object ? PyObject_CallFunctionObjArgs(config->object, object, NULL) : NULL;
    Py_XDECREF(object);
    if (!result)
        return fail_task(task);
    if (!PyObject_TypeCheck(result, (PyTypeObject *)generator_type))
        return put_result(result, config, out, task);
    worker->generator = result;
    return put_next(worker, config, out, task);
}

static int fail_at_end(weir_task *task)
{
    return weir_task_fail(task, WEIR_ESTOPPED, 0, "the interpreter ends");
}

static int run_call(void *state, weir_item *in, weir_item *out, weir_task *task)
{
    PyGILState_STATE gil;
    if (!weirpy_gil_take(&gil))
        return fail_at_end(task);
    weir_task *outer = task_of_thread;
    task_of_thread = task;
    int status = call_function(state, in, out, task);
    task_of_thread = outer;
    weirpy_gil_give(gil);
    return status;
}

/* A generator that has not ended is closed. */
static void free_call(void *state)
{
    call_worker *worker = state;
    PyGILState_STATE gil;
    if (!worker->generator || !weirpy_gil_take(&gil))
        return;
    Py_CLEAR(worker->generator);
    weirpy_gil_give(gil);
}

const weir_op weirpy_call_op = {
    .name = "call",
    .makes = WEIR_TYPE_ANY,
    .config_size = sizeof(weirpy_callable),
    .worker_size = sizeof(call_worker),
    .run = run_call,
    .worker_free = free_call,
};

/* ---- the source ------------------------------------------------------------------------------------------------------- */

typedef struct iterate_worker {
    PyObject *iterator;
} iterate_worker;

static int iterate(iterate_worker *worker, weir_item *out, weir_task *task)
{
    const weirpy_callable *config = weir_task_config(task);
    if (!worker->iterator)
        worker->iterator = PyObject_GetIter(config->object);
    PyObject *value = worker->iterator ? PyIter_Next(worker->iterator) : NULL;
    if (value)
        return put_result(value, config, out, task);
    return PyErr_Occurred() ? fail_task(task) : WEIR_EOF;
}

static int run_iterate(void *state, weir_item *in, weir_item *out, weir_task *task)
{
    PyGILState_STATE gil;
    (void)in;
    if (!weirpy_gil_take(&gil))
        return fail_at_end(task);
    weir_task *outer = task_of_thread;
    task_of_thread = task;
    int status = iterate(state, out, task);
    task_of_thread = outer;
    weirpy_gil_give(gil);
    return status;
}

static void free_iterate(void *state)
{
    iterate_worker *worker = state;
    PyGILState_STATE gil;
    if (!worker->iterator || !weirpy_gil_take(&gil))
        return;
    Py_CLEAR(worker->iterator);
    weirpy_gil_give(gil);
}

const weir_op weirpy_iterate_op = {
    .name = "iterate",
    .makes = WEIR_TYPE_ANY,
    .config_size = sizeof(weirpy_callable),
    .worker_size = sizeof(iterate_worker),
    .run = run_iterate,
    .worker_free = free_iterate,
    .needs_results = 1,
};

/* ---- stages as objects ------------------------------------------------------------------------------------------------ */

static PyObject *new_callable(const weir_op *op, bool is_source, PyObject *object)
{
    weirpy_callable *config = calloc(1, sizeof *config);
    if (!config)
        return PyErr_NoMemory();
    config->object = object;
    return weirpy_stage_new(op, is_source, config, sizeof *config, NULL, object);
}

PyObject *weirpy_call(PyObject *self, PyObject *args)
{
    PyObject *function;
    (void)self;
    if (!PyArg_ParseTuple(args, "O", &function))
        return NULL;
    if (PyCallable_Check(function))
        return new_callable(&weirpy_call_op, false, function);
    PyErr_Format(PyExc_TypeError, "%R is neither a function nor a stage", function);
    return NULL;
}

PyObject *weirpy_iterate(PyObject *self, PyObject *args)
{
    PyObject *iterable;
    (void)self;
    return PyArg_ParseTuple(args, "O", &iterable) ? new_callable(&weirpy_iterate_op, true, iterable) : NULL;
}

PyObject *weirpy_aggregate(PyObject *self, PyObject *args)
{
    Py_ssize_t num_items;
    int drop_last = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "n|p", &num_items, &drop_last))
        return NULL;
    if (num_items < 1) {
        PyErr_Format(PyExc_ValueError, "aggregate takes at least 1 item, not %zd", num_items);
        return NULL;
    }
    weir_aggregate_config *config = calloc(1, sizeof *config);
    if (!config)
        return PyErr_NoMemory();
    config->num_items = (size_t)num_items;
    config->drop_last = drop_last;
    return weirpy_stage_new(&weir_aggregate, false, config, sizeof *config, NULL, NULL);
}

PyObject *weirpy_disaggregate(PyObject *self, PyObject *args)
{
    (void)self;
    return PyArg_ParseTuple(args, "") ? weirpy_stage_new(&weir_disaggregate, false, NULL, 0, NULL, NULL) : NULL;
}

int weirpy_callable_ready(PyObject *module)
{
    skip = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    generator_type = import_name("types", "GeneratorType");
    if (!skip || !generator_type)
        return -1;
    return PyModule_AddObjectRef(module, "SKIP", skip);
}
