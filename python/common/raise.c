#include "python/common/binding.h"

/* weir/_errors.py chooses the class; this passes on what a weir_error says. */
PyObject *weirpy_exception(const weir_error *error)
{
    char line[WEIR_ERROR_LINE];
    PyObject *module = PyImport_ImportModule("weir._errors");
    PyObject *make = module ? PyObject_GetAttrString(module, "make") : NULL;
    PyObject *exception = NULL;
    weir_error_format(error, line, sizeof line);
    if (make)
        exception =
            PyObject_CallFunction(make, "issssNN", error->status, weir_status_name(error->status),
                                  weir_status_text(error->status), error->stage, error->message,
                                  PyUnicode_DecodeFSDefault(error->label), PyLong_FromLong(error->library_code));
    Py_XDECREF(make);
    Py_XDECREF(module);
    return exception;
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
