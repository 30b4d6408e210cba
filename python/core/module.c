/* weir._core: the engine and the statistics. Loading it loads no FFmpeg and starts no thread. */
#include <weir/pipeline.h>
#include <weir/version.h>

#include "python/core/core.h"

static const weirpy_core table = {
    .register_type = weirpy_register_type,
    .new_stage = weirpy_stage_new,
    .is_interrupted = weirpy_is_interrupted,
    .drain_log = weirpy_drain_log,
    .register_unwrap = weirpy_register_unwrap,
    .gil_take = weirpy_gil_take,
    .gil_give = weirpy_gil_give,
};

static PyObject *cpu_budget(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromUnsignedLong(weir_cpu_budget());
}

static PyMethodDef functions[] = {
    { "cpu_budget", cpu_budget, METH_NOARGS,
      "The CPUs that this process may use: the smaller of its affinity mask and its cgroup's quota." },
    { "call", weirpy_call, METH_VARARGS, "call(function): a stage that calls the function for each item." },
    { "iterate", weirpy_iterate, METH_VARARGS, "iterate(iterable): a source of what the iterable yields." },
    { "aggregate", weirpy_aggregate, METH_VARARGS,
      "aggregate(n, drop_last=False): a stage that makes lists of n items." },
    { "disaggregate", weirpy_disaggregate, METH_VARARGS,
      "disaggregate(): a stage that passes on the items of lists." },
    { "route", weirpy_route, METH_VARARGS,
      "route(router, num_paths): from here on, the router's number says which path an item takes." },
    { "branch", weirpy_branch, METH_NOARGS, "branch(): the next path begins." },
    { "join", weirpy_join, METH_NOARGS, "join(): the paths meet." },
    { "merge", weirpy_merge, METH_VARARGS, "merge(values, weights): all chains so far meet." },
    { "_end", weirpy_pipelines_end, METH_NOARGS, "The interpreter ends: stops and closes all pipelines." },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "weir._core",
    .m_size = -1,
    .m_methods = functions,
};

/* So that no pipeline runs when the interpreter ends. */
static int register_end(PyObject *module)
{
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *end = atexit ? PyObject_GetAttrString(module, "_end") : NULL;
    PyObject *result = end ? PyObject_CallMethod(atexit, "register", "O", end) : NULL;
    int rc = result ? 0 : -1;
    Py_XDECREF(result);
    Py_XDECREF(end);
    Py_XDECREF(atexit);
    return rc;
}

/* 0, or -1 with an exception raised. */
static int add_parts(PyObject *module)
{
    int (*const parts[])(PyObject *) = { weirpy_needs_no_gil,   weirpy_gil_ready,      weirpy_stage_ready,
                                         weirpy_callable_ready, weirpy_pipeline_ready, weirpy_span_ready,
                                         weirpy_watch_ready,    weirpy_stats_ready,    weirpy_verdict_ready,
                                         weirpy_log_ready,      register_end };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module))
            return -1;
    return 0;
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    union { /* a capsule's pointer is not const */
        const void *given;
        void *kept;
    } at = { &table };
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    PyObject *capsule = PyCapsule_New(at.kept, WEIRPY_CORE_CAPSULE, NULL);
    bool is_ready = capsule && PyModule_AddObjectRef(module, "_table", capsule) == 0 &&
                    PyModule_AddStringConstant(module, "VERSION", WEIR_VERSION) == 0 && add_parts(module) == 0;
    Py_XDECREF(capsule);
    if (is_ready)
        return module;
    Py_DECREF(module);
    return NULL;
}
