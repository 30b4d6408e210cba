/* weir._media: what needs FFmpeg. */
#include "python/media/media.h"

const weirpy_core *weirpy_core_table;

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "weir._media",
    .m_size = -1,
};

/* Systems without certificates have those of the package certifi, if it is installed. */
static int find_certificates(void)
{
    if (weir_certificates_find())
        return 0;
    PyObject *certifi = PyImport_ImportModule("certifi");
    PyObject *path = certifi ? PyObject_CallMethod(certifi, "where", NULL) : NULL;
    PyObject *bytes = NULL;
    if (path && PyUnicode_FSConverter(path, &bytes))
        (void)weir_certificates_set_fallback(PyBytes_AsString(bytes), NULL); /* https then says what is missing */
    Py_XDECREF(bytes);
    Py_XDECREF(path);
    Py_XDECREF(certifi);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1; /* Ctrl-C */
    PyErr_Clear();
    return 0;
}

static int fill_module(PyObject *module)
{
    PyObject *core = PyImport_ImportModule("weir._core"); /* the capsule is its attribute */
    weirpy_core_table = core ? PyCapsule_Import(WEIRPY_CORE_CAPSULE, 0) : NULL;
    Py_XDECREF(core);
    if (!weirpy_core_table || weirpy_core_table->register_type(WEIR_TYPE_FRAMES, weirpy_wrap_frames) ||
        weirpy_core_table->register_type(WEIR_TYPE_COLLATED, weirpy_wrap_batch) || weirpy_convert_ready() ||
        find_certificates())
        return -1;
    return weirpy_needs_no_gil(module) || weirpy_array_ready(module) || weirpy_result_ready(module) ||
           weirpy_reader_ready(module) || weirpy_dataset_ready(module) || weirpy_stages_ready(module);
}

PyMODINIT_FUNC PyInit__media(void);

PyMODINIT_FUNC PyInit__media(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && fill_module(module)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
