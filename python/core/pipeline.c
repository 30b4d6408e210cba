/*
 * weir._core.Pipeline: a chain of stages that was built, for weir/_pipeline.py.
 *
 * The GIL is given up while weir_pipeline_next() waits. Only the main thread can handle signals, so waiting is in slices, and
 * Ctrl-C ends it with KeyboardInterrupt within one.
 */
#include <weir/clock.h>
#include <weir/item.h>
#include <weir/pipeline.h>

#include "python/core/core.h"

typedef struct pipeline_object {
    PyObject ob_base;
    weir_pipeline *pipeline; /* NULL = closed */
    PyObject *stages;        /* a tuple: they must outlive the pipeline */
} pipeline_object;

static PyTypeObject *pipeline_type;

static const char *const orders[] = { "completion", "input", NULL };

static const weirpy_field stage_fields[] = {
    WEIRPY_FIELD(weir_stage_options, name, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_stage_options, concurrency, WEIRPY_U32),
    WEIRPY_FIELD(weir_stage_options, queue_items, WEIRPY_U32),
    WEIRPY_FIELD(weir_stage_options, queue_bytes, WEIRPY_U64),
    WEIRPY_FIELD(weir_stage_options, threads, WEIRPY_U32),
    WEIRPY_ENUM(weir_stage_options, output_order, orders),
    WEIRPY_FIELD(weir_stage_options, task_deadline_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_stage_options, epochs, WEIRPY_U32),
    { 0 },
};

static const weirpy_field pipeline_fields[] = {
    WEIRPY_FIELD(weir_pipeline_options, threads, WEIRPY_U32),
    WEIRPY_FIELD(weir_pipeline_options, id, WEIRPY_U32),
    WEIRPY_FIELD(weir_pipeline_options, stats_interval_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_pipeline_options, kept_failures, WEIRPY_U32),
    WEIRPY_FIELD(weir_pipeline_options, begin_epoch, WEIRPY_U64),
    { 0 },
};

/* ---- building ----------------------------------------------------------------------------------------------------- */

static int add_stage(weir_builder *builder, PyObject *stage_and_options)
{
    PyObject *object, *values;
    weir_stage_options options = { 0 };
    if (!PyArg_ParseTuple(stage_and_options, "OO", &object, &values) ||
        weirpy_fill(&options, stage_fields, values, "stage"))
        return -1;
    const weirpy_stage *stage = weirpy_stage_of(object);
    if (!stage) {
        PyErr_Format(PyExc_TypeError, "%R is no stage", object);
        return -1;
    }
    if (stage->is_source)
        weir_builder_source_sized(builder, stage->op, stage->config, stage->config_size, &options, sizeof options);
    else
        weir_builder_pipe_sized(builder, stage->op, stage->config, stage->config_size, &options, sizeof options);
    return 0;
}

static weir_builder *describe(PyObject *stages, PyObject *sink)
{
    weir_builder *builder = weir_builder_new();
    weir_stage_options options = { 0 };
    int rc = weirpy_fill(&options, stage_fields, sink, "sink");
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_Size(stages); i++)
        rc = add_stage(builder, PyTuple_GetItem(stages, i));
    weir_builder_sink(builder, &options);
    if (rc == 0)
        return builder;
    weir_builder_free(builder);
    return NULL;
}

static PyObject *pipeline_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = { "stages", "sink", "options", NULL };
    PyObject *stages, *sink = NULL, *values = NULL;
    weir_pipeline_options options = { 0 };
    weir_error error = { 0 };
    int rc;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|OO", names, &stages, &sink, &values) ||
        weirpy_fill(&options, pipeline_fields, values, "pipeline"))
        return NULL;
    PyObject *tuple = PySequence_Tuple(stages);
    weir_builder *builder = tuple ? describe(tuple, sink) : NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    pipeline_object *self = builder ? (pipeline_object *)allocate(type, 0) : NULL;
    if (!self) {
        weir_builder_free(builder);
        Py_XDECREF(tuple);
        return NULL;
    }
    self->stages = tuple;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_builder_build_sized(builder, &options, sizeof options, &self->pipeline, &error);
    Py_END_ALLOW_THREADS;
    if (rc == WEIR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return weirpy_raise(&error);
}

/* ---- running ------------------------------------------------------------------------------------------------------ */

static int64_t time_of(PyObject *seconds)
{
    double value = seconds && seconds != Py_None ? PyFloat_AsDouble(seconds) : -1;
    return value < 0 ? WEIR_FOREVER : (int64_t)(value * 1e9);
}

static int wait_next(weir_pipeline *pipeline, weir_item *item, int64_t timeout_ns)
{
    const int64_t slice_ns = 50 * 1000 * 1000, start_ns = weir_clock_ns();
    for (;;) {
        int64_t left_ns = timeout_ns == WEIR_FOREVER ? slice_ns : timeout_ns - (weir_clock_ns() - start_ns);
        int64_t wait_ns = left_ns < 0 ? 0 : left_ns < slice_ns ? left_ns : slice_ns;
        int rc;
        Py_BEGIN_ALLOW_THREADS;
        rc = weir_pipeline_next(pipeline, item, wait_ns);
        Py_END_ALLOW_THREADS;
        if (rc != WEIR_ETIMEDOUT || (timeout_ns != WEIR_FOREVER && wait_ns == left_ns))
            return rc;
        if (PyErr_CheckSignals())
            return WEIR_ESTOPPED;
    }
}

static PyObject *raise_end(pipeline_object *self, int rc)
{
    weir_error error = { 0 };
    if (rc == WEIR_EFAILED)
        weir_pipeline_error(self->pipeline, NULL, &error);
    weir_error_set(&error, rc, 0, "%s", rc == WEIR_ETIMEDOUT ? "no item within this time" : weir_status_text(rc));
    return weirpy_raise(&error);
}

static PyObject *pipeline_next(PyObject *object, PyObject *args)
{
    pipeline_object *self = (pipeline_object *)object;
    PyObject *seconds = NULL;
    weir_item item = { 0 };
    if (!PyArg_ParseTuple(args, "|O", &seconds))
        return NULL;
    int64_t timeout_ns = time_of(seconds);
    if (PyErr_Occurred())
        return NULL;
    if (!self->pipeline) {
        PyErr_SetString(PyExc_ValueError, "the pipeline is closed");
        return NULL;
    }
    int rc = wait_next(self->pipeline, &item, timeout_ns);
    switch (rc) {
    case WEIR_OK: return weirpy_item_object(&item);
    case WEIR_EPOCH: Py_RETURN_NONE;
    case WEIR_EOF: PyErr_SetNone(PyExc_StopIteration); return NULL;
    default: return raise_end(self, rc);
    }
}

static void close_pipeline(pipeline_object *self, int64_t timeout_ns)
{
    weir_pipeline *pipeline = self->pipeline;
    self->pipeline = NULL;
    if (!pipeline)
        return;
    Py_BEGIN_ALLOW_THREADS;
    weir_pipeline_close(pipeline, timeout_ns);
    Py_END_ALLOW_THREADS;
}

static PyObject *pipeline_close(PyObject *object, PyObject *args)
{
    PyObject *seconds = NULL;
    if (!PyArg_ParseTuple(args, "|O", &seconds))
        return NULL;
    int64_t timeout_ns = time_of(seconds);
    if (PyErr_Occurred())
        return NULL;
    close_pipeline((pipeline_object *)object, timeout_ns);
    Py_RETURN_NONE;
}

static void pipeline_dealloc(PyObject *object)
{
    pipeline_object *self = (pipeline_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    close_pipeline(self, WEIR_FOREVER);
    Py_XDECREF(self->stages);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef pipeline_methods[] = {
    { "next", pipeline_next, METH_VARARGS,
      "next(timeout=None): the next item; None at the end of an epoch. Raises StopIteration at the end." },
    { "close", pipeline_close, METH_VARARGS, "close(timeout=None): stops the pipeline and frees it." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot pipeline_slots[] = {
    { Py_tp_new, pipeline_new },
    { Py_tp_dealloc, pipeline_dealloc },
    { Py_tp_methods, pipeline_methods },
    { Py_tp_doc, "A pipeline that was built and runs." },
    { 0, NULL },
};

static PyType_Spec pipeline_spec = {
    .name = "weir._core.Pipeline",
    .basicsize = sizeof(pipeline_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = pipeline_slots,
};

int weirpy_pipeline_ready(PyObject *module)
{
    pipeline_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &pipeline_spec, NULL);
    return pipeline_type ? PyModule_AddType(module, pipeline_type) : -1;
}
