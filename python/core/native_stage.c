#include <stdlib.h>

#include "python/core/core.h"

static PyTypeObject *stage_type;

PyObject *weirpy_stage_new(const weir_op *op, bool is_source, void *config, size_t config_size,
                           void (*free_config)(void *config), PyObject *kept)
{
    weirpy_stage *stage = PyObject_GC_New(weirpy_stage, stage_type);
    if (!stage) {
        if (free_config)
            free_config(config);
        free(config);
        return NULL;
    }
    stage->op = op;
    stage->is_source = is_source;
    stage->config = config;
    stage->config_size = config_size;
    stage->free_config = free_config;
    stage->kept = Py_XNewRef(kept);
    PyObject_GC_Track(stage);
    return (PyObject *)stage;
}

/* Without clear: a cycle through a stage is broken elsewhere, because a pipeline may still use what the stage keeps. */
static int stage_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((weirpy_stage *)self)->kept);
    return 0;
}

static void stage_dealloc(PyObject *self)
{
    weirpy_stage *stage = (weirpy_stage *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (stage->free_config)
        stage->free_config(stage->config);
    free(stage->config);
    Py_XDECREF(stage->kept);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *stage_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<weir stage %s>", ((weirpy_stage *)self)->op->name);
}

static PyType_Slot stage_slots[] = {
    { Py_tp_dealloc, stage_dealloc },
    { Py_tp_traverse, stage_traverse },
    { Py_tp_repr, stage_repr },
    { Py_tp_doc, "A stage of C for weir.Pipeline. Functions of weir make it." },
    { 0, NULL },
};

static PyType_Spec stage_spec = {
    .name = "weir._core.Stage",
    .basicsize = sizeof(weirpy_stage),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = stage_slots,
};

int weirpy_stage_ready(PyObject *module)
{
    stage_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &stage_spec, NULL);
    return stage_type ? PyModule_AddType(module, stage_type) : -1;
}

weirpy_stage *weirpy_stage_of(PyObject *object)
{
    return PyObject_TypeCheck(object, stage_type) ? (weirpy_stage *)object : NULL;
}
