/*
 * Where chains of stages part and meet: a route with its branches and their join, and the merge of several sources. In the list of
 * stages, each is a weir._core.Stage of its own kind, which has no operation: pipeline_options.c tells the builder of it.
 */
#include <stdlib.h>

#include "python/core/core.h"

const weir_op weirpy_route_op = { .name = "route" };
const weir_op weirpy_branch_op = { .name = "branch" };
const weir_op weirpy_join_op = { .name = "join" };
const weir_op weirpy_merge_op = { .name = "merge" };

bool weirpy_is_junction(const weir_op *op)
{
    return op == &weirpy_route_op || op == &weirpy_branch_op || op == &weirpy_join_op || op == &weirpy_merge_op;
}

/* ---- routes ----------------------------------------------------------------------------------------------------------- */

/* -1, which fails the item, with an exception raised. */
static int call_router(PyObject *router, const weir_item *item)
{
    PyObject *object = weirpy_item_peek(item);
    PyObject *result = object ? PyObject_CallFunctionObjArgs(router, object, NULL) : NULL;
    PyObject *number = result ? PyNumber_Index(result) : NULL;
    long branch = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(result);
    Py_XDECREF(object);
    return branch < 0 || branch > WEIR_MAX_SLOTS ? -1 : (int)branch;
}

/* The failure of the item says only that no branch was chosen: the exception is reported here. */
static int pick_branch(void *router, const weir_item *item)
{
    PyGILState_STATE gil;
    if (!weirpy_gil_take(&gil))
        return -1;
    int branch = call_router(router, item);
    if (PyErr_Occurred())
        weirpy_report_exception();
    weirpy_gil_give(gil);
    return branch;
}

PyObject *weirpy_route(PyObject *self, PyObject *args)
{
    PyObject *router;
    Py_ssize_t num_branches;
    (void)self;
    if (!PyArg_ParseTuple(args, "On", &router, &num_branches))
        return NULL;
    if (!PyCallable_Check(router) || num_branches < 1 || num_branches > WEIR_MAX_SLOTS)
        return PyErr_Format(PyExc_TypeError, "a route takes a function and at least one path");
    weir_route_config *config = calloc(1, sizeof *config);
    if (!config)
        return PyErr_NoMemory();
    *config = (weir_route_config){ .pick = pick_branch, .self = router, .num_branches = (uint32_t)num_branches };
    return weirpy_stage_new(&weirpy_route_op, false, config, sizeof *config, NULL, router);
}

PyObject *weirpy_branch(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return weirpy_stage_new(&weirpy_branch_op, false, NULL, 0, NULL, NULL);
}

PyObject *weirpy_join(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return weirpy_stage_new(&weirpy_join_op, false, NULL, 0, NULL, NULL);
}

/* ---- merges ----------------------------------------------------------------------------------------------------------- */

static const char *const orders[] = { "arrival", "round_robin", "weighted", "random", NULL };
static const char *const ends[] = { "last", "first", NULL };

static const weirpy_field merge_fields[] = {
    WEIRPY_ENUM(weir_merge_config, order, orders),
    WEIRPY_ENUM(weir_merge_config, end, ends),
    WEIRPY_FIELD(weir_merge_config, seed, WEIRPY_U64),
    { 0 },
};

static void free_merge(void *config)
{
    union {
        const uint32_t *given;
        void *owned;
    } weights = { ((weir_merge_config *)config)->weights };
    free(weights.owned);
}

/* 0, or -1 with an exception raised. */
static int fill_weights(weir_merge_config *config, PyObject *list)
{
    Py_ssize_t count = PyTuple_Size(list);
    uint32_t *weights = count ? calloc((size_t)count, sizeof *weights) : NULL;
    config->weights = weights;
    config->num_weights = weights ? (size_t)count : 0;
    if (count && !weights) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long weight = PyLong_AsUnsignedLong(PyTuple_GetItem(list, i));
        if (PyErr_Occurred())
            return -1;
        if (weight > UINT32_MAX) {
            PyErr_Format(PyExc_ValueError, "a weight is %lu; it must be below 2**32", weight);
            return -1;
        }
        weights[i] = (uint32_t)weight;
    }
    return 0;
}

PyObject *weirpy_merge(PyObject *self, PyObject *args)
{
    PyObject *values, *weights;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!", &values, &PyTuple_Type, &weights))
        return NULL;
    weir_merge_config *config = calloc(1, sizeof *config);
    if (!config)
        return PyErr_NoMemory();
    if (weirpy_fill(config, merge_fields, values, "merge") == 0 && fill_weights(config, weights) == 0)
        return weirpy_stage_new(&weirpy_merge_op, false, config, sizeof *config, free_merge, NULL);
    free_merge(config);
    free(config);
    return NULL;
}
