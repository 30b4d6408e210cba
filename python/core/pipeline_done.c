/*
 * Results that Python has got and not acknowledged yet (checkpoints="done"): what checkpoints note of an item stays here until
 * done(). They are acknowledged in the order in which they were delivered. With the GIL.
 */
#include <stdlib.h>

#include "python/core/pipeline.h"

struct weirpy_open_item {
    weir_item item; /* without its data, which belongs to Python */
    weirpy_open_item *next;
};

PyObject *weirpy_keep_open(weirpy_pipeline *self, weir_item *item)
{
    weirpy_open_item *open = calloc(1, sizeof *open);
    PyObject *object = open ? weirpy_input_object(item) : NULL;
    if (!open)
        PyErr_NoMemory();
    if (!open || !object) {
        weir_item_release(item);
        free(open);
        return NULL;
    }
    open->item = *item;
    *item = (weir_item){ 0 };
    weirpy_open_item **end = &self->open_items;
    if (self->last_open)
        end = &self->last_open->next;
    *end = self->last_open = open;
    return object;
}

/* Releases the oldest one. */
static void drop_open(weirpy_pipeline *self)
{
    weirpy_open_item *open = self->open_items;
    self->open_items = open->next;
    if (!open->next)
        self->last_open = NULL;
    weir_item_release(&open->item);
    free(open);
}

void weirpy_drop_open_items(weirpy_pipeline *self)
{
    while (self->open_items)
        drop_open(self);
}

static Py_ssize_t count_open(const weirpy_pipeline *self, Py_ssize_t most)
{
    Py_ssize_t count = 0;
    for (const weirpy_open_item *open = self->open_items; open && count < most; open = open->next)
        count++;
    return count;
}

PyObject *weirpy_pipeline_done(PyObject *object, PyObject *args)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    Py_ssize_t count = 1;
    if (!PyArg_ParseTuple(args, "|n", &count))
        return NULL;
    if (!self->needs_done || count < 0)
        return PyErr_Format(PyExc_ValueError, self->needs_done ? "done() takes a number of results from 0 on"
                                                               : "build it with checkpoints=\"done\"");
    Py_ssize_t found = count_open(self, count);
    if (found < count)
        return PyErr_Format(PyExc_ValueError, "only %zd results are not done yet", found);
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    if (!pipeline)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        weir_item_done(pipeline, &self->open_items->item);
        drop_open(self);
    }
    weirpy_pipeline_leave(self);
    Py_RETURN_NONE;
}
