/*
 * What functions of Python hand to stages of C: Frames and Batches, which the item shares with the object, and bytes. And the bytes
 * that such stages hand to functions.
 */
#include <string.h>

#include "python/media/media.h"

/* Any thread. */
static void release_object(void *data, void *object)
{
    PyGILState_STATE state;
    (void)data;
    if (!weirpy_core_table->gil_take(&state))
        return;
    Py_DECREF((PyObject *)object);
    weirpy_core_table->gil_give(state);
}

static int share_result(PyObject *object, const char *type, weir_item *out)
{
    const weir_item *item = weirpy_result_item(object);
    if (!item || strcmp(item->type, type) != 0)
        return 1;
    out->data = item->data;
    out->size_bytes = item->size_bytes;
    out->release = release_object;
    out->release_self = Py_NewRef(object);
    out->label = item->label;
    return 0;
}

static int unwrap_frames(PyObject *object, weir_item *out)
{
    return share_result(object, WEIR_TYPE_FRAMES, out);
}

static int unwrap_batch(PyObject *object, weir_item *out)
{
    return share_result(object, WEIR_TYPE_COLLATED, out);
}

static void release_bytes(void *object)
{
    release_object(NULL, object);
}

static int unwrap_bytes(PyObject *object, weir_item *out)
{
    char *data = NULL;
    Py_ssize_t size = 0;
    if (!PyBytes_Check(object))
        return 1;
    if (PyBytes_AsStringAndSize(object, &data, &size))
        return -1;
    weir_bytes *bytes = weir_bytes_wrap(data, (size_t)size, NULL, release_bytes, object);
    if (!bytes) {
        PyErr_NoMemory();
        return -1;
    }
    Py_INCREF(object);
    out->data = bytes;
    out->size_bytes = weir_bytes_memory(bytes);
    out->release = weir_bytes_release;
    return 0;
}

static PyObject *wrap_bytes(weir_item *item)
{
    const weir_bytes *bytes = item->data;
    PyObject *object = PyBytes_FromStringAndSize((const char *)bytes->data, (Py_ssize_t)bytes->size_bytes);
    if (object)
        weir_item_release(item);
    return object;
}

int weirpy_convert_ready(void)
{
    return weirpy_core_table->register_unwrap(WEIR_TYPE_FRAMES, unwrap_frames) ||
           weirpy_core_table->register_unwrap(WEIR_TYPE_COLLATED, unwrap_batch) ||
           weirpy_core_table->register_unwrap(WEIR_TYPE_BYTES, unwrap_bytes) ||
           weirpy_core_table->register_type(WEIR_TYPE_BYTES, wrap_bytes);
}
