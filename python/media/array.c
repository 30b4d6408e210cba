/*
 * Arrays share the memory of a result, in two ways: by Python's buffer protocol, and by DLPack. Both are made from the tensor that
 * weir_to_dlpack() makes, which owns its share of the memory. So an array may outlive the result, the loader and the pipeline.
 */
#include "python/media/media.h"

#include <pthread.h>
#include <string.h>

#include "stages/batch/dlpack_layout.h"

/* ---- tensors ------------------------------------------------------------------------------------------------------ */

/* The element of the first dimension, instead of all; WEIRPY_WHOLE = all. The shape is part of the managed block, so nothing is
   lost. */
static void step_into(dl_tensor *tensor, Py_ssize_t index)
{
    if (index == WEIRPY_WHOLE)
        return;
    if (index == WEIRPY_NONE) {
        tensor->shape[0] = 0;
        return;
    }
    uint64_t num_values = 1;
    for (int32_t i = 1; i < tensor->num_dims; i++)
        num_values *= (uint64_t)tensor->shape[i];
    tensor->byte_offset += (uint64_t)index * num_values * tensor->dtype.bits / 8;
    tensor->num_dims--;
    tensor->shape++;
    tensor->strides++;
}

static void choose_element(dl_tensor *tensor, const weirpy_view *of)
{
    step_into(tensor, of->index);
    for (int i = 0; i < of->num_inner; i++)
        step_into(tensor, of->inner[i]);
}

/* A tensor makes the item share its memory: one thread at a time. Never held while Python runs. */
static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;

static int share_item(const weirpy_view *of, const weir_memory *wanted, struct DLManagedTensorVersioned **tensor,
                      weir_error *error)
{
    pthread_mutex_lock(&sharing);
    int rc = of->column ? weir_column_to_dlpack(of->item, of->column, tensor, error)
                        : weir_to_dlpack(of->item, of->kind, wanted, tensor, error);
    pthread_mutex_unlock(&sharing);
    return rc;
}

static int share_unversioned(const weirpy_view *of, const weir_memory *wanted, struct DLManagedTensor **tensor,
                             weir_error *error)
{
    pthread_mutex_lock(&sharing);
    int rc = weir_to_dlpack_unversioned(of->item, of->kind, wanted, tensor, error);
    pthread_mutex_unlock(&sharing);
    return rc;
}

/* Of memory that is not where it is wanted, the standard demands a BufferError. */
static void raise_no_tensor(const weir_error *error)
{
    if (error->status == WEIR_EUNSUPPORTED)
        PyErr_SetString(PyExc_BufferError, error->message);
    else
        weirpy_raise(error);
}

static dl_versioned *make_tensor(const weirpy_view *of, const weir_memory *wanted)
{
    struct DLManagedTensorVersioned *tensor = NULL;
    weir_error error = { 0 };
    if (share_item(of, wanted, &tensor, &error) != WEIR_OK) {
        raise_no_tensor(&error);
        return NULL;
    }
    dl_versioned *managed = (dl_versioned *)(void *)tensor;
    choose_element(&managed->tensor, of);
    return managed;
}

/* NumPy's name of the type, and the buffer protocol's letter. */
static const struct {
    uint8_t code, bits;
    const char *name, *letter;
} value_types[] = {
    { DL_UINT, 8, "uint8", "B" },     { DL_UINT, 16, "uint16", "H" },      { DL_INT, 32, "int32", "i" },
    { DL_INT, 64, "int64", "q" },     { DL_FLOAT, 16, "float16", "e" },    { DL_FLOAT, 32, "float32", "f" },
    { DL_FLOAT, 64, "float64", "d" }, { DL_BFLOAT, 16, "bfloat16", NULL },
};

static int find_type(const dl_tensor *tensor)
{
    for (int i = 0; i < (int)(sizeof value_types / sizeof value_types[0]); i++)
        if (value_types[i].code == tensor->dtype.code && value_types[i].bits == tensor->dtype.bits)
            return i;
    return 0; /* weir has no other */
}

PyObject *weirpy_shape(const weirpy_view *of)
{
    dl_versioned *managed = make_tensor(of, NULL);
    if (!managed)
        return NULL;
    PyObject *shape = PyTuple_New(managed->tensor.num_dims);
    for (int32_t i = 0; shape && i < managed->tensor.num_dims; i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(managed->tensor.shape[i]));
    managed->deleter(managed);
    return shape;
}

PyObject *weirpy_dtype(const weirpy_view *of)
{
    dl_versioned *managed = make_tensor(of, NULL);
    if (!managed)
        return NULL;
    PyObject *name = PyUnicode_FromString(value_types[find_type(&managed->tensor)].name);
    managed->deleter(managed);
    return name;
}

PyObject *weirpy_array_text(const char *name, const weirpy_view *of)
{
    PyObject *shape = weirpy_shape(of), *dtype = shape ? weirpy_dtype(of) : NULL;
    PyObject *text = dtype ? PyUnicode_FromFormat("<weir.%s %U %S>", name, dtype, shape) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return text;
}

/* ---- the buffer protocol ------------------------------------------------------------------------------------------ */

/* What a view needs until it is released. */
typedef struct buffer {
    dl_versioned *managed;
    Py_ssize_t shape[WEIRPY_MAX_DIMS];
    Py_ssize_t strides[WEIRPY_MAX_DIMS]; /* in bytes */
    char letter[2];
} buffer;

static void set_view(Py_buffer *view, buffer *own, PyObject *exporter, int flags)
{
    const dl_tensor *tensor = &own->managed->tensor;
    Py_ssize_t num_bytes = tensor->dtype.bits / 8;
    for (int32_t i = tensor->num_dims - 1; i >= 0; i--) {
        own->shape[i] = (Py_ssize_t)tensor->shape[i];
        own->strides[i] = num_bytes;
        num_bytes *= own->shape[i];
    }
    *view = (Py_buffer){ .buf = (char *)tensor->data + tensor->byte_offset,
                         .obj = Py_NewRef(exporter),
                         .len = num_bytes,
                         .itemsize = tensor->dtype.bits / 8,
                         .readonly = (own->managed->flags & DL_READ_ONLY) != 0,
                         .ndim = (int)tensor->num_dims,
                         .format = flags & PyBUF_FORMAT ? own->letter : NULL,
                         .shape = flags & PyBUF_ND ? own->shape : NULL,
                         .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? own->strides : NULL,
                         .internal = own };
}

int weirpy_fill_buffer(PyObject *exporter, const weirpy_view *of, Py_buffer *view, int flags)
{
    const weir_memory host = { WEIR_MEMORY_HOST, 0 };
    buffer *own = PyMem_Calloc(1, sizeof *own);
    view->obj = NULL;
    if (!own) {
        PyErr_NoMemory();
        return -1;
    }
    own->managed = make_tensor(of, of->column ? NULL : &host);
    const char *letter = own->managed ? value_types[find_type(&own->managed->tensor)].letter : NULL;
    if (own->managed && !letter)
        PyErr_SetString(PyExc_BufferError, "NumPy has no bfloat16: use DLPack, as torch.from_dlpack() does");
    else if (letter && (flags & PyBUF_WRITABLE) && (own->managed->flags & DL_READ_ONLY))
        PyErr_SetString(PyExc_BufferError, "this memory is read-only: others share it");
    if (!letter || PyErr_Occurred()) {
        if (own->managed)
            own->managed->deleter(own->managed);
        PyMem_Free(own);
        return -1;
    }
    own->letter[0] = *letter;
    set_view(view, own, exporter, flags);
    return 0;
}

void weirpy_release_buffer(PyObject *exporter, Py_buffer *view)
{
    buffer *own = view->internal;
    (void)exporter;
    own->managed->deleter(own->managed);
    PyMem_Free(own);
}

/* ---- DLPack ------------------------------------------------------------------------------------------------------- */

/* Frees the tensor of a capsule that no consumer has taken; a capsule that was taken has another name. */
static void free_capsule(PyObject *capsule)
{
    dl_versioned *versioned =
        PyCapsule_IsValid(capsule, "dltensor_versioned") ? PyCapsule_GetPointer(capsule, "dltensor_versioned") : NULL;
    dl_managed *managed = PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (versioned)
        versioned->deleter(versioned);
    if (managed)
        managed->deleter(managed);
}

static PyObject *make_capsule(const weirpy_view *of, const weir_memory *wanted, bool is_versioned)
{
    struct DLManagedTensor *old = NULL;
    weir_error error = { 0 };
    void *tensor = NULL;
    if (is_versioned || of->column)
        tensor = make_tensor(of, wanted);
    else if (share_unversioned(of, wanted, &old, &error) == WEIR_OK) {
        tensor = old;
        choose_element(&((dl_managed *)tensor)->tensor, of);
    } else
        raise_no_tensor(&error);
    if (!tensor)
        return NULL;
    PyObject *capsule =
        PyCapsule_New(tensor, is_versioned || of->column ? "dltensor_versioned" : "dltensor", free_capsule);
    if (!capsule && (is_versioned || of->column))
        ((dl_versioned *)tensor)->deleter(tensor);
    else if (!capsule)
        ((dl_managed *)tensor)->deleter(tensor);
    return capsule;
}

/* None leaves the numbers as they are. */
static bool read_pair(PyObject *pair, const char *name, int *first, int *second)
{
    if (pair == Py_None ||
        (PyTuple_Check(pair) && PyTuple_Size(pair) == 2 && PyArg_ParseTuple(pair, "ii", first, second)))
        return true;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s is a tuple of two numbers, or None, not %R", name, pair);
    return false;
}

/* The consumer's wishes, as the array API standard has them. */
PyObject *weirpy_dlpack(const weirpy_view *of, PyObject *args, PyObject *named)
{
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    int type = 0, number = 0, major = 0, minor = 0;
    weir_memory wanted;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|OOOO", names, &stream, &version, &device, &copy) ||
        !read_pair(device, "dl_device", &type, &number) || !read_pair(version, "max_version", &major, &minor))
        return NULL;
    if (of->column && major < DL_MAJOR_VERSION) {
        PyErr_SetString(PyExc_BufferError, "a column of yours needs DLPack 1.0: numpy.asarray() takes it");
        return NULL;
    }
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "weir makes no copies: copy the array that the consumer makes");
        return NULL;
    }
    wanted = weir_memory_of_dlpack(type, number);
    return make_capsule(of, device == Py_None ? NULL : &wanted, major >= DL_MAJOR_VERSION);
}

PyObject *weirpy_dlpack_device(const weirpy_view *of)
{
    dl_versioned *managed = make_tensor(of, NULL);
    if (!managed)
        return NULL;
    int type = managed->tensor.device.type, number = managed->tensor.device.id;
    managed->deleter(managed);
    return Py_BuildValue("(ii)", type, number);
}

/* ---- the type ----------------------------------------------------------------------------------------------------- */

typedef struct array_object {
    PyObject ob_base;
    PyObject *owner; /* of the item */
    weirpy_view view;
} array_object;

static PyTypeObject *array_type;

static const weirpy_view *view_of(PyObject *object)
{
    return &((array_object *)object)->view;
}

PyObject *weirpy_array_new(PyObject *owner, const weirpy_view *view)
{
    array_object *self = PyObject_New(array_object, array_type);
    if (!self)
        return NULL;
    self->owner = Py_NewRef(owner);
    self->view = *view;
    return (PyObject *)self;
}

static void array_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_DECREF(((array_object *)object)->owner);
    PyObject_Free(object);
    Py_DECREF(type);
}

static int array_buffer(PyObject *object, Py_buffer *view, int flags)
{
    return weirpy_fill_buffer(object, view_of(object), view, flags);
}

static PyObject *array_dlpack(PyObject *object, PyObject *args, PyObject *named)
{
    return weirpy_dlpack(view_of(object), args, named);
}

static PyObject *array_device(PyObject *object, PyObject *unused)
{
    (void)unused;
    return weirpy_dlpack_device(view_of(object));
}

static PyObject *array_shape(PyObject *object, void *unused)
{
    (void)unused;
    return weirpy_shape(view_of(object));
}

static PyObject *array_dtype(PyObject *object, void *unused)
{
    (void)unused;
    return weirpy_dtype(view_of(object));
}

/* The time of a single frame. */
static PyObject *array_time(PyObject *object, void *unused)
{
    const weirpy_view *view = view_of(object);
    (void)unused;
    if (view->index < 0 || view->kind != WEIR_ARRAY_DATA || strcmp(view->item->type, WEIR_TYPE_FRAMES) != 0)
        Py_RETURN_NONE;
    const weir_frames *frames = view->item->data;
    if (view->num_inner != (frames->num_clips ? 1 : 0))
        Py_RETURN_NONE;
    uint64_t at = (uint64_t)view->index;
    if (frames->num_clips)
        at = at * (frames->num_frames / frames->num_clips) + (uint64_t)view->inner[0];
    return PyFloat_FromDouble((double)frames->times_ns[at] / 1e9);
}

static PyObject *array_list(PyObject *object, PyObject *unused)
{
    PyObject *view = PyMemoryView_FromObject(object);
    (void)unused;
    PyObject *list = view ? PyObject_CallMethod(view, "tolist", NULL) : NULL;
    Py_XDECREF(view);
    return list;
}

static Py_ssize_t array_length(PyObject *object)
{
    PyObject *shape = array_shape(object, NULL);
    Py_ssize_t length = shape && PyTuple_Size(shape) ? PyLong_AsSsize_t(PyTuple_GetItem(shape, 0)) : -1;
    Py_XDECREF(shape);
    return length;
}

/* Also iteration: of the list's elements. */
static PyObject *array_item(PyObject *object, Py_ssize_t at)
{
    const weirpy_view *whole = view_of(object);
    PyObject *shape = array_shape(object, NULL);
    Py_ssize_t num_dims = shape ? PyTuple_Size(shape) : 0;
    Py_ssize_t length = num_dims ? PyLong_AsSsize_t(PyTuple_GetItem(shape, 0)) : 0;
    Py_XDECREF(shape);
    if (!shape)
        return NULL;
    if (at < 0 || at >= length) {
        PyErr_Format(PyExc_IndexError, "there are %zd of them, from 0", length);
        return NULL;
    }
    if (num_dims > 1) {
        weirpy_view one = *whole;
        if (whole->index == WEIRPY_WHOLE)
            one.index = at;
        else
            one.inner[one.num_inner++] = at;
        return weirpy_array_new(((array_object *)object)->owner, &one);
    }
    PyObject *view = PyMemoryView_FromObject(object), *key = PyLong_FromSsize_t(at);
    PyObject *value = view && key ? PyObject_GetItem(view, key) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(view);
    return value;
}

static PyObject *array_repr(PyObject *object)
{
    return weirpy_array_text("Array", view_of(object));
}

static PyMethodDef array_methods[] = {
    { "__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
      "A DLPack capsule, without a copy." },
    { "__dlpack_device__", array_device, METH_NOARGS, "DLPack's type and number of the device." },
    { "tolist", array_list, METH_NOARGS, "A list of Python's numbers." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef array_fields[] = {
    { "shape", array_shape, NULL, "The length of each dimension.", NULL },
    { "dtype", array_dtype, NULL, "NumPy's name of the type of its values.", NULL },
    { "time", array_time, NULL, "Of a single frame: its time from the video's first one, in seconds. Else None.",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot array_slots[] = {
    { Py_tp_dealloc, array_dealloc },
    { Py_tp_methods, array_methods },
    { Py_tp_getset, array_fields },
    { Py_tp_repr, array_repr },
    { Py_sq_length, array_length },
    { Py_sq_item, array_item },
    { Py_bf_getbuffer, array_buffer },
    { Py_bf_releasebuffer, weirpy_release_buffer },
    { Py_tp_doc,
      "An array in the memory of a result. numpy.asarray(), numpy.from_dlpack() and torch.from_dlpack() share it." },
    { 0, NULL },
};

static PyType_Spec array_spec = {
    .name = "weir._media.Array",
    .basicsize = sizeof(array_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = array_slots,
};

int weirpy_array_ready(PyObject *module)
{
    array_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &array_spec, NULL);
    return array_type ? PyModule_AddType(module, array_type) : -1;
}
