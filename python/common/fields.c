#include "python/common/binding.h"

#include <string.h>

int weirpy_word(PyObject *word, const char *const *words, const char *what, int *value)
{
    PyObject *list = NULL;
    for (int i = 0; PyUnicode_Check(word) && words[i]; i++) {
        if (PyUnicode_CompareWithASCIIString(word, words[i]) == 0) {
            *value = i;
            return 0;
        }
    }
    list = PyUnicode_FromString("");
    for (int i = 0; list && words[i]; i++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s'%s'", list, i == 0 ? "" : ", ", words[i]);
        Py_DECREF(list);
        list = longer;
    }
    if (list)
        PyErr_Format(PyExc_ValueError, "%s is %R; it can be one of: %U", what, word, list);
    Py_XDECREF(list);
    return -1;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

static int set_unsigned(void *at, weirpy_kind kind, PyObject *value)
{
    uint64_t number = PyLong_AsUnsignedLongLong(value);
    const uint64_t most = kind == WEIRPY_U8 ? UINT8_MAX : kind == WEIRPY_U32 ? UINT32_MAX : UINT64_MAX;
    if (PyErr_Occurred())
        return -1;
    if (number > most) {
        PyErr_Format(PyExc_OverflowError, "%R is above %llu", value, (unsigned long long)most);
        return -1;
    }
    switch (kind) {
    case WEIRPY_U8: *(uint8_t *)at = (uint8_t)number; break;
    case WEIRPY_U32: *(uint32_t *)at = (uint32_t)number; break;
    case WEIRPY_SIZE: *(size_t *)at = (size_t)number; break;
    default: *(uint64_t *)at = number; break;
    }
    return 0;
}

static int set_signed(void *at, weirpy_kind kind, PyObject *value)
{
    int64_t number = PyLong_AsLongLong(value);
    if (PyErr_Occurred())
        return -1;
    if (kind == WEIRPY_I64) {
        *(int64_t *)at = number;
    } else if (number < INT32_MIN || number > INT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%R does not fit into 32 bits", value);
        return -1;
    } else {
        *(int32_t *)at = (int32_t)number;
    }
    return 0;
}

static int set_whole_number(void *at, weirpy_kind kind, PyObject *value)
{
    PyObject *number = PyNumber_Index(value); /* also NumPy's integers */
    int rc = -1;
    if (number)
        rc = kind == WEIRPY_I32 || kind == WEIRPY_I64 ? set_signed(at, kind, number) : set_unsigned(at, kind, number);
    Py_XDECREF(number);
    return rc;
}

static int set_double(double *at, PyObject *value)
{
    double number = PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return -1;
    *at = number;
    return 0;
}

static int set_doubles(double *at, uint32_t count, PyObject *value)
{
    int rc = 0;
    PyObject *list = PySequence_List(value);
    if (!list)
        return -1;
    if (PyList_Size(list) != (Py_ssize_t)count) {
        PyErr_Format(PyExc_ValueError, "it needs %u numbers, not %zd", count, PyList_Size(list));
        rc = -1;
    }
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = set_double(at + i, PyList_GetItem(list, (Py_ssize_t)i));
    Py_DECREF(list);
    return rc;
}

/* text NULL: an exception is raised. */
static const char *refuse_zero(const char *text, Py_ssize_t length)
{
    if (!text || strlen(text) == (size_t)length)
        return text;
    PyErr_SetString(PyExc_ValueError, "it has a zero character");
    return NULL;
}

const char *weirpy_utf8(PyObject *object)
{
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(object, &length);
    return refuse_zero(text, length);
}

static int set_text(const char **at, PyObject *value)
{
    Py_ssize_t length = 0;
    char *bytes = NULL;
    if (!PyBytes_Check(value))
        *at = weirpy_utf8(value);
    else
        *at = PyBytes_AsStringAndSize(value, &bytes, &length) == 0 ? refuse_zero(bytes, length) : NULL;
    return *at ? 0 : -1;
}

/* ---- fields ------------------------------------------------------------------------------------------------------- */

static int set_field(void *at, const weirpy_field *field, PyObject *value)
{
    int number = 0;
    switch (field->kind) {
    case WEIRPY_BOOL:
        number = PyObject_IsTrue(value);
        *(bool *)at = number > 0;
        return number < 0 ? -1 : 0;
    case WEIRPY_DOUBLE: return set_double(at, value);
    case WEIRPY_DOUBLES: return set_doubles(at, field->count, value);
    case WEIRPY_TEXT: return set_text(at, value);
    case WEIRPY_WORD:
        if (weirpy_word(value, field->words, "it", &number))
            return -1;
        memcpy(at, &number, sizeof number); /* enums are ints */
        return 0;
    default: return set_whole_number(at, field->kind, value);
    }
}

static const weirpy_field *find_field(const weirpy_field *fields, PyObject *name)
{
    for (const weirpy_field *field = fields; field->name; field++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, field->name) == 0)
            return field;
    return NULL;
}

/* The exception of a value, with the name of the field in front. */
static void name_field(const weirpy_field *field, const char *what)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type != PyExc_TypeError && type != PyExc_ValueError && type != PyExc_OverflowError) {
        PyErr_Restore(type, value, traceback); /* its text is not all that it has */
        return;
    }
    PyErr_Format(type, "%s: %s: %S", what, field->name, value ? value : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

int weirpy_fill(void *to, const weirpy_field *fields, PyObject *values, const char *what)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!values || values == Py_None)
        return 0;
    if (!PyDict_Check(values)) {
        PyErr_Format(PyExc_TypeError, "%s must be a dict, not %R", what, values);
        return -1;
    }
    while (PyDict_Next(values, &at, &name, &value)) {
        const weirpy_field *field = find_field(fields, name);
        if (!field) {
            PyErr_Format(PyExc_TypeError, "%s has no option %R", what, name);
            return -1;
        }
        if (value != Py_None && set_field((char *)to + field->offset, field, value)) {
            name_field(field, what);
            return -1;
        }
    }
    return 0;
}
