/* weir._core.Loop: the clock of weir.watch(), see weir/loop.h. */

#include <weir/loop.h>

#include "python/core/core.h"

typedef struct loop_object {
    PyObject ob_base;
    weir_loop *loop;
} loop_object;

static PyObject *loop_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    weir_error error = { 0 };
    (void)args, (void)named;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    loop_object *self = (loop_object *)allocate(type, 0);
    if (!self)
        return NULL;
    if (weir_loop_new(&self->loop, &error) == WEIR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return weirpy_raise(&error);
}

static void loop_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    weir_loop_free(((loop_object *)object)->loop);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *loop_wait(PyObject *object, PyObject *unused)
{
    (void)unused;
    weir_loop_wait(((loop_object *)object)->loop);
    Py_RETURN_NONE;
}

static PyObject *loop_step(PyObject *object, PyObject *is_replayed)
{
    weir_loop_step(((loop_object *)object)->loop, is_replayed == Py_True);
    Py_RETURN_NONE;
}

static PyObject *loop_pause(PyObject *object, PyObject *unused)
{
    (void)unused;
    weir_loop_pause(((loop_object *)object)->loop);
    Py_RETURN_NONE;
}

static PyObject *loop_judge(PyObject *object, PyObject *unused)
{
    static const char *const kinds[] = { "unknown", "data", "steps" };
    weir_loop_result r;
    (void)unused;
    weir_loop_judge(((loop_object *)object)->loop, &r);
    return Py_BuildValue(
        "{ss sK sN sN sN s(NN) sN s(NN) sK sN s(NN) sK sN ss}",                                               /* */
        "kind", kinds[r.kind],                                                                                /* */
        "steps", (unsigned long long)r.num_steps,                                                             /* */
        "wait", weirpy_known(r.wait_s), "step", weirpy_known(r.step_s),                                       /* */
        "share", weirpy_known(r.share), "share_range", weirpy_known(r.share_low), weirpy_known(r.share_high), /* */
        "most", weirpy_known(r.most), "most_range", weirpy_known(r.most_low), weirpy_known(r.most_high),      /* */
        "replayed", (unsigned long long)r.num_replayed,                                                       /* */
        "gain", weirpy_known(r.gain), "gain_range", weirpy_known(r.gain_low), weirpy_known(r.gain_high),      /* */
        "starts", (unsigned long long)r.num_starts, "start", weirpy_known(r.start_s), "text", r.text);
}

WEIRPY_IN_TURN(loop_wait, PyObject)
WEIRPY_IN_TURN(loop_step, PyObject)
WEIRPY_IN_TURN(loop_pause, PyObject)
WEIRPY_IN_TURN(loop_judge, PyObject)

static PyMethodDef loop_methods[] = {
    { "wait", in_turn_loop_wait, METH_NOARGS, "The loop asks for data." },
    { "step", in_turn_loop_step, METH_O, "step(is_replayed): it has them." },
    { "pause", in_turn_loop_pause, METH_NOARGS, "It does something else." },
    { "judge", in_turn_loop_judge, METH_NOARGS, "What is known so far, as a dict; times are in seconds." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot loop_slots[] = {
    { Py_tp_new, loop_new },
    { Py_tp_dealloc, loop_dealloc },
    { Py_tp_methods, loop_methods },
    { Py_tp_doc, "The clock of weir.watch()." },
    { 0, NULL },
};

static PyType_Spec loop_spec = {
    .name = "weir._core.Loop",
    .basicsize = sizeof(loop_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = loop_slots,
};

int weirpy_watch_ready(PyObject *module)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &loop_spec, NULL);
    int rc = type ? PyModule_AddType(module, type) : -1;
    Py_XDECREF((PyObject *)type);
    return rc;
}
