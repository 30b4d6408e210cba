/*
 * Items and objects. Most items of Python are objects as they are ("python.object"). Items of weir's stages become
 * objects by the functions that are registered for their types. Before a stage that takes certain types, objects
 * become items of these types.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/batch.h>
#include <weir/item.h>

#include "python/core/core.h"

#define TYPE_OBJECT "python.object"

enum { MAX_TYPES = 32 };

static struct {
    const char *type;
    weirpy_wrap *wrap;
    weirpy_unwrap *unwrap;
} types[MAX_TYPES];

/* The place of a type, which may be a new one; -1 with an exception raised. */
static int place_of(const char *type)
{
    for (int i = 0; i < MAX_TYPES; i++) {
        if (types[i].type && strcmp(types[i].type, type) != 0)
            continue;
        types[i].type = type;
        return i;
    }
    PyErr_SetString(PyExc_SystemError, "too many types of items");
    return -1;
}

int weirpy_register_type(const char *type, weirpy_wrap *wrap)
{
    int place = place_of(type);
    if (place >= 0)
        types[place].wrap = wrap;
    return place >= 0 ? 0 : -1;
}

int weirpy_register_unwrap(const char *type, weirpy_unwrap *unwrap)
{
    int place = place_of(type);
    if (place >= 0)
        types[place].unwrap = unwrap;
    return place >= 0 ? 0 : -1;
}

/* ---- items as objects ------------------------------------------------------------------------------------------------- */

static PyObject *wrap_text(weir_item *item)
{
    PyObject *text = PyUnicode_DecodeFSDefault(item->data);
    if (text)
        weir_item_release(item);
    return text;
}

static PyObject *wrap_object(weir_item *item)
{
    PyObject *object = item->data; /* with its reference */
    item->data = NULL;
    item->release = NULL;
    weir_item_release(item);
    return object;
}

/* Takes the data of the item as an item of its own. What checkpoints note of the item stays with the item. */
static weir_item take_data(weir_item *item)
{
    weir_item own = *item;
    own.tickets = 0;
    own.label = NULL;
    own.label_owner = NULL;
    weir_item_copy_label(&own, item);
    item->data = NULL;
    item->size_bytes = 0;
    item->release = NULL;
    return own;
}

static PyObject *batch_list(weir_batch *batch)
{
    PyObject *list = PyList_New((Py_ssize_t)batch->num_items);
    for (size_t i = 0; list && i < batch->num_items; i++) {
        weir_item own = take_data(&batch->items[i]);
        PyObject *object = weirpy_item_object(&own);
        if (!object || PyList_SetItem(list, (Py_ssize_t)i, object))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *wrap_list(weir_item *item)
{
    PyObject *list = batch_list(item->data);
    if (list)
        weir_item_release(item);
    return list;
}

static bool is_type(const weir_item *item, const char *type)
{
    return item->type && strcmp(item->type, type) == 0;
}

static weirpy_wrap *find_wrap(const weir_item *item)
{
    if (is_type(item, TYPE_OBJECT))
        return wrap_object;
    for (int i = 0; item->type && i < MAX_TYPES && types[i].type; i++)
        if (strcmp(types[i].type, item->type) == 0 && types[i].wrap)
            return types[i].wrap;
    return is_type(item, WEIR_TYPE_TEXT) ? wrap_text : is_type(item, WEIR_TYPE_BATCH) ? wrap_list : NULL;
}

PyObject *weirpy_item_object(weir_item *item)
{
    weirpy_wrap *wrap = find_wrap(item);
    PyObject *object = NULL;
    if (wrap)
        object = wrap(item);
    else
        PyErr_Format(PyExc_TypeError, "items of the type %s have no form in Python",
                     item->type ? item->type : "(not declared)");
    if (!object)
        weir_item_release(item);
    return object;
}

PyObject *weirpy_input_object(weir_item *in)
{
    if (is_type(in, WEIR_TYPE_BATCH))
        return batch_list(in->data); /* the engine releases the batch */
    weir_item own = take_data(in);
    /* cppcheck-suppress returnDanglingLifetime ; the object owns a copy of the item */
    return weirpy_item_object(&own);
}

static PyObject *peek_list(const weir_batch *batch)
{
    PyObject *list = PyList_New((Py_ssize_t)batch->num_items);
    for (size_t i = 0; list && i < batch->num_items; i++) {
        PyObject *object = weirpy_item_peek(&batch->items[i]);
        if (!object || PyList_SetItem(list, (Py_ssize_t)i, object))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *weirpy_item_peek(const weir_item *item)
{
    if (is_type(item, TYPE_OBJECT))
        return Py_NewRef((PyObject *)item->data);
    if (is_type(item, WEIR_TYPE_TEXT))
        return PyUnicode_DecodeFSDefault(item->data);
    if (is_type(item, WEIR_TYPE_BATCH))
        return peek_list(item->data);
    return PyErr_Format(PyExc_TypeError, "a router needs Python objects, not %s: put a function before it",
                        item->type ? item->type : "an item of no type");
}

/* ---- objects as items ------------------------------------------------------------------------------------------------- */

/* Any thread. */
static void release_object(void *object, void *unused)
{
    PyGILState_STATE state;
    (void)unused;
    if (!weirpy_gil_take(&state))
        return;
    Py_DECREF((PyObject *)object);
    weirpy_gil_give(state);
}

static int unwrap_object(PyObject *object, weir_item *out)
{
    out->data = Py_NewRef(object);
    out->release = release_object;
    out->type = TYPE_OBJECT;
    return 0;
}

static int unwrap_text(PyObject *object, weir_item *out)
{
    PyObject *bytes = NULL;
    if (PyBytes_Check(object) || !(PyUnicode_Check(object) || PyObject_HasAttrString(object, "__fspath__")))
        return 1;
    if (!PyUnicode_FSConverter(object, &bytes))
        return -1;
    out->data = strdup(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    if (!out->data) {
        PyErr_NoMemory();
        return -1;
    }
    out->release = weir_release_free;
    out->label = out->data;
    return 0;
}

static int fill_batch(weir_batch *batch, PyObject *list, const char *parts)
{
    const weirpy_takes takes = { .types = parts };
    for (Py_ssize_t i = 0; i < PyTuple_Size(list); i++) {
        weir_item *item = &batch->items[i];
        if (weirpy_object_item(PyTuple_GetItem(list, i), &takes, item))
            return -1;
        batch->num_items++;
        const weir_item unnamed = { .label = item->label };
        weir_item_copy_label(item, &unnamed);
    }
    return 0;
}

/* A list, a tuple, or anything else that can be iterated. */
static int unwrap_list(PyObject *object, const char *parts, weir_item *out)
{
    PyObject *list = PySequence_Tuple(object);
    if (!list)
        return -1;
    weir_batch *batch = calloc(1, sizeof *batch);
    if (batch)
        batch->items = calloc((size_t)PyTuple_Size(list) + 1, sizeof *batch->items);
    int rc = batch && batch->items ? fill_batch(batch, list, parts) : -1;
    if (rc && !PyErr_Occurred())
        PyErr_NoMemory();
    Py_DECREF(list);
    out->data = batch;
    out->release = weir_batch_release;
    out->type = WEIR_TYPE_BATCH;
    if (rc)
        weir_item_release(out);
    return rc;
}

/* 0, 1 and -1 as weirpy_unwrap. */
static int unwrap_as(PyObject *object, const char *type, size_t length, const weirpy_takes *takes, weir_item *out)
{
    if (length == strlen(WEIR_TYPE_BATCH) && strncmp(type, WEIR_TYPE_BATCH, length) == 0)
        return unwrap_list(object, takes->parts, out);
    if (length == strlen(WEIR_TYPE_TEXT) && strncmp(type, WEIR_TYPE_TEXT, length) == 0) {
        out->type = WEIR_TYPE_TEXT;
        return unwrap_text(object, out);
    }
    for (int i = 0; i < MAX_TYPES && types[i].type; i++) {
        if (!types[i].unwrap || strlen(types[i].type) != length || strncmp(types[i].type, type, length) != 0)
            continue;
        out->type = types[i].type;
        return types[i].unwrap(object, out);
    }
    return 1;
}

int weirpy_object_item(PyObject *object, const weirpy_takes *takes, weir_item *out)
{
    if (!takes->types)
        return unwrap_object(object, out);
    for (const char *type = takes->types; *type;) {
        size_t length = strcspn(type, " ");
        int rc = unwrap_as(object, type, length, takes, out);
        if (rc <= 0)
            return rc;
        type += length + strspn(type + length, " ");
    }
    out->type = NULL;
    PyErr_Format(PyExc_TypeError, "the next stage takes %s, not %R", takes->types, Py_TYPE(object));
    return -1;
}
