/* weir._core: the engine and the statistics. Loading it loads no FFmpeg and starts no thread. */
#include <weir/pipeline.h>
#include <weir/version.h>

#include "python/core/core.h"

static const weirpy_core table = {
    .register_type = weirpy_register_type,
    .new_stage = weirpy_stage_new,
    .is_interrupted = weirpy_is_interrupted,
    .drain_log = weirpy_drain_log,
};

static PyObject *cpu_budget(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromUnsignedLong(weir_cpu_budget());
}

static PyMethodDef functions[] = {
    { "cpu_budget", cpu_budget, METH_NOARGS,
      "The CPUs that this process may use: the smaller of its affinity mask and its cgroup's quota." },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "weir._core",
    .m_size = -1,
    .m_methods = functions,
};

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
    bool is_ready =
        capsule && PyModule_AddObjectRef(module, "_table", capsule) == 0 &&
        PyModule_AddStringConstant(module, "VERSION", WEIR_VERSION) == 0 && weirpy_stage_ready(module) == 0 &&
        weirpy_pipeline_ready(module) == 0 && weirpy_span_ready(module) == 0 && weirpy_watch_ready(module) == 0 &&
        weirpy_stats_ready(module) == 0 && weirpy_verdict_ready(module) == 0 && weirpy_log_ready(module) == 0;
    Py_XDECREF(capsule);
    if (is_ready)
        return module;
    Py_DECREF(module);
    return NULL;
}
