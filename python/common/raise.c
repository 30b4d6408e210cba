#include "python/common/binding.h"

#include <math.h>
#include <string.h>

/* A message may be cut within a character. */
static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

/* weir/_errors.py chooses the class; this passes on what a weir_error says. */
PyObject *weirpy_exception(const weir_error *error)
{
    PyObject *module = PyImport_ImportModule("weir._errors");
    PyObject *make = module ? PyObject_GetAttrString(module, "make") : NULL;
    PyObject *exception = NULL;
    if (make)
        exception =
            PyObject_CallFunction(make, "issNNNN", error->status, weir_status_name(error->status),
                                  weir_status_text(error->status), text_of(error->stage), text_of(error->message),
                                  PyUnicode_DecodeFSDefault(error->label), PyLong_FromLong(error->library_code));
    Py_XDECREF(make);
    Py_XDECREF(module);
    return exception;
}

PyObject *weirpy_known(double number)
{
    return isfinite(number) ? PyFloat_FromDouble(number) : Py_NewRef(Py_None);
}

PyObject *weirpy_raise(const weir_error *error)
{
    if (PyErr_Occurred())
        return NULL;
    PyObject *exception = weirpy_exception(error);
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
    return NULL;
}

int weirpy_needs_no_gil(PyObject *module)
{
#ifdef Py_GIL_DISABLED
    return PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#else
    (void)module;
    return 0;
#endif
}
