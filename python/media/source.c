/*
 * Where the bytes of a video come from in Python: a path (str, bytes or os.PathLike) or a URL, an object with a
 * buffer, or a file object. A buffer is not copied. A file object has read() and, if it can, seek(). File objects are
 * called with the GIL.
 */
#include <stdio.h>
#include <string.h>

#include "python/media/media.h"

/* ---- file objects ------------------------------------------------------------------------------------------------- */

/* given: what read() has returned; NULL = it has raised. A UnicodeDecodeError is what a video in text mode gives. */
static void raise_not_binary(PyObject *file, PyObject *given)
{
    if (!given && !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return;
    PyErr_Clear();
    PyObject *name = given ? PyType_GetName(Py_TYPE(given)) : PyUnicode_FromString("str");
    if (name)
        PyErr_Format(PyExc_TypeError, "%R is not opened as binary: read() gave %U", file, name);
    Py_XDECREF(name);
}

/* The exception stays set for the thread: the call that reads then raises it. */
static int64_t read_locked(PyObject *file, uint8_t *data, size_t num_bytes)
{
    Py_buffer view;
    PyObject *bytes = PyObject_CallMethod(file, "read", "n", (Py_ssize_t)num_bytes);
    if (!bytes || PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE)) {
        raise_not_binary(file, bytes);
        Py_XDECREF(bytes);
        return WEIR_EIO;
    }
    int64_t num_read = view.len > (Py_ssize_t)num_bytes ? WEIR_EIO : view.len;
    if (num_read > 0)
        memcpy(data, view.buf, (size_t)num_read);
    PyBuffer_Release(&view);
    Py_DECREF(bytes);
    return num_read;
}

static int64_t read_file(void *self, uint8_t *data, size_t num_bytes)
{
    PyGILState_STATE state = PyGILState_Ensure();
    int64_t num_read = PyErr_Occurred() ? WEIR_ESTOPPED : read_locked(self, data, num_bytes);
    PyGILState_Release(state);
    return num_read;
}

static int seek_file(void *self, int64_t position)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *at = PyErr_Occurred() ? NULL : PyObject_CallMethod(self, "seek", "L", (long long)position);
    int rc = at ? WEIR_OK : WEIR_EIO;
    Py_XDECREF(at);
    PyGILState_Release(state);
    return rc;
}

/* Finds the size of the file by a seek to its end. False: the file cannot seek; of exceptions, only Ctrl-C and its like stay. */
static bool find_size(PyObject *file, int64_t *size_bytes)
{
    PyObject *can = PyObject_CallMethod(file, "seekable", NULL);
    bool can_seek = can && PyObject_IsTrue(can) == 1;
    PyObject *end = can_seek ? PyObject_CallMethod(file, "seek", "ii", 0, SEEK_END) : NULL;
    PyObject *start = end ? PyObject_CallMethod(file, "seek", "i", 0) : NULL;
    *size_bytes = start ? PyLong_AsLongLong(end) : -1;
    Py_XDECREF(can);
    Py_XDECREF(end);
    Py_XDECREF(start);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return *size_bytes >= 0;
}

static int begin_file(weirpy_source *source, PyObject *object, weir_video_source *to)
{
    int64_t size_bytes = 0;
    bool can_seek = find_size(object, &size_bytes);
    if (PyErr_Occurred())
        return -1;
    source->functions = (weir_file_functions){ .self = object,
                                               .read = read_file,
                                               .seek = can_seek ? seek_file : NULL,
                                               .size_bytes = can_seek ? size_bytes : 0 };
    source->object = Py_NewRef(object);
    to->functions = &source->functions;
    to->functions_size = sizeof source->functions;
    return 0;
}

/* ---- bytes and paths ---------------------------------------------------------------------------------------------- */

static int begin_bytes(weirpy_source *source, PyObject *object, weir_video_source *to)
{
    if (PyObject_GetBuffer(object, &source->view, PyBUF_SIMPLE))
        return -1;
    to->bytes = weir_bytes_wrap(source->view.buf, (size_t)source->view.len, to->name, NULL, NULL);
    to->own_bytes = true;
    if (to->bytes)
        return 0;
    PyBuffer_Release(&source->view);
    PyErr_NoMemory();
    return -1;
}

static int begin_path(weirpy_source *source, PyObject *object, weir_video_source *to)
{
    if (!PyUnicode_FSConverter(object, &source->path))
        return -1;
    to->path = PyBytes_AsString(source->path);
    to->name = NULL;
    return 0;
}

int weirpy_source_begin(weirpy_source *source, PyObject *object, weir_video_source *to)
{
    *source = (weirpy_source){ 0 };
    if (PyUnicode_Check(object) || PyObject_HasAttrString(object, "__fspath__"))
        return begin_path(source, object, to);
    if (PyObject_CheckBuffer(object))
        return begin_bytes(source, object, to);
    if (PyObject_HasAttrString(object, "read"))
        return begin_file(source, object, to);
    PyErr_Format(PyExc_TypeError, "a video is a path, a URL, bytes or a file object opened as binary, not %R",
                 object);
    return -1;
}

void weirpy_source_end(weirpy_source *source)
{
    if (source->view.obj)
        PyBuffer_Release(&source->view);
    Py_CLEAR(source->path);
    Py_CLEAR(source->object);
}
