/*
 * Frames and Batch: results of weir as Python objects. Each owns its item. The object itself is an array of the pixels.
 * Its labels, times and masks are separate arrays. Views and tensors own a reference to the memory, so they may outlive the object.
 */
#include <string.h>

#include "python/media/media.h"

typedef struct result_object {
    PyObject ob_base;
    weir_item item;
    bool is_empty; /* it has none of the item's frames */
} result_object;

static PyTypeObject *frames_type, *batch_type;

static weir_item *item_of(PyObject *object)
{
    return &((result_object *)object)->item;
}

static weirpy_view whole(PyObject *object, weir_array_kind kind)
{
    bool is_empty = ((result_object *)object)->is_empty;
    return (weirpy_view){ .item = item_of(object), .kind = kind, .index = is_empty ? WEIRPY_NONE : WEIRPY_WHOLE };
}

static const weir_frames *frames_of(PyObject *object)
{
    return item_of(object)->data;
}

static const weir_collated *batch_of(PyObject *object)
{
    return item_of(object)->data;
}

const weir_item *weirpy_result_item(PyObject *object)
{
    bool is_result = Py_TYPE(object) == frames_type || Py_TYPE(object) == batch_type;
    return is_result && !((result_object *)object)->is_empty ? item_of(object) : NULL;
}

static PyObject *new_result(PyTypeObject *type, weir_item *item)
{
    result_object *self = PyObject_New(result_object, type);
    if (!self)
        return NULL;
    self->item = *item; /* with its label, which weir_item_release() frees */
    self->is_empty = false;
    *item = (weir_item){ 0 };
    return (PyObject *)self;
}

PyObject *weirpy_wrap_frames(weir_item *item)
{
    return new_result(frames_type, item);
}

PyObject *weirpy_wrap_batch(weir_item *item)
{
    return new_result(batch_type, item);
}

static void result_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    weir_item item = *item_of(object);
    PyObject_Free(object);
    Py_DECREF(type);
    Py_BEGIN_ALLOW_THREADS; /* freeing is up to a millisecond of the kernel's work */
    weir_item_release(&item);
    Py_END_ALLOW_THREADS;
}

/* ---- what both have ------------------------------------------------------------------------------------------------ */

static int result_buffer(PyObject *object, Py_buffer *view, int flags)
{
    const weirpy_view pixels = whole(object, WEIR_ARRAY_DATA);
    return weirpy_fill_buffer(object, &pixels, view, flags);
}

static PyObject *result_dlpack(PyObject *object, PyObject *args, PyObject *named)
{
    const weirpy_view pixels = whole(object, WEIR_ARRAY_DATA);
    return weirpy_dlpack(&pixels, args, named);
}

static PyObject *result_device(PyObject *object, PyObject *unused)
{
    const weirpy_view pixels = whole(object, WEIR_ARRAY_DATA);
    (void)unused;
    return weirpy_dlpack_device(&pixels);
}

static PyObject *result_shape(PyObject *object, void *unused)
{
    const weirpy_view pixels = whole(object, WEIR_ARRAY_DATA);
    (void)unused;
    return weirpy_shape(&pixels);
}

static PyObject *result_dtype(PyObject *object, void *unused)
{
    const weirpy_view pixels = whole(object, WEIR_ARRAY_DATA);
    (void)unused;
    return weirpy_dtype(&pixels);
}

static PyObject *frames_repr(PyObject *object)
{
    const weirpy_view pixels = whole(object, WEIR_ARRAY_DATA);
    return weirpy_array_text("Frames", &pixels);
}

static PyObject *batch_repr(PyObject *object)
{
    const weirpy_view pixels = whole(object, WEIR_ARRAY_DATA);
    return weirpy_array_text("Batch", &pixels);
}

static PyObject *result_name(PyObject *object, void *unused)
{
    const char *label = item_of(object)->label;
    (void)unused;
    return PyUnicode_DecodeFSDefault(label ? label : "");
}

static PyObject *result_number(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(item_of(object)->seq);
}

static PyObject *result_array(PyObject *object, void *kind)
{
    const weirpy_view view = whole(object, (weir_array_kind)(intptr_t)kind);
    return weirpy_array_new(object, &view);
}

static Py_ssize_t result_length(PyObject *object)
{
    PyObject *shape = result_shape(object, NULL);
    Py_ssize_t length = shape ? PyLong_AsSsize_t(PyTuple_GetItem(shape, 0)) : -1;
    Py_XDECREF(shape);
    return length;
}

/* Returns one frame, or one item of a batch. Python has already made a negative index positive. */
static PyObject *result_item(PyObject *object, Py_ssize_t at)
{
    Py_ssize_t length = result_length(object);
    weirpy_view view = whole(object, WEIR_ARRAY_DATA);
    view.index = at;
    if (length >= 0 && at >= 0 && at < length)
        return weirpy_array_new(object, &view);
    if (length >= 0)
        PyErr_Format(PyExc_IndexError, "there are %zd of them, from 0", length);
    return NULL;
}

#define KIND(kind) ((void *)(intptr_t)(kind))
#define SHARED_METHODS \
    { "__dlpack__", (PyCFunction)(void (*)(void))result_dlpack, METH_VARARGS | METH_KEYWORDS, \
      "A DLPack capsule of the pixels, without a copy." }, \
    { \
        "__dlpack_device__", result_device, METH_NOARGS, "DLPack's type and number of the device." \
    }
#define SHARED_FIELDS \
    { "shape", result_shape, NULL, "The length of each dimension of the pixels.", NULL }, \
    { \
        "dtype", result_dtype, NULL, "NumPy's name of the type of the values.", NULL \
    }

/* ---- Frames ------------------------------------------------------------------------------------------------------- */

static PyObject *frames_codec(PyObject *object, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(frames_of(object)->codec);
}

static PyObject *frames_damage(PyObject *object, void *unused)
{
    const weir_frames *frames = frames_of(object);
    (void)unused;
    return Py_BuildValue("{sKsKsK}", "errors", (unsigned long long)frames->num_errors, "corrupt",
                         (unsigned long long)frames->num_corrupt_frames, "missing",
                         (unsigned long long)frames->num_missing_frames);
}

static PyObject *frames_source_size(PyObject *object, void *unused)
{
    const weir_frames *frames = frames_of(object);
    (void)unused;
    return Py_BuildValue("(II)", frames->source_height, frames->source_width);
}

static PyObject *frames_none(PyObject *object, PyObject *unused)
{
    (void)unused;
    ((result_object *)object)->is_empty = true;
    return Py_NewRef(object);
}

static PyObject *frames_time_base(PyObject *object, void *unused)
{
    const weir_frames *frames = frames_of(object);
    (void)unused;
    return Py_BuildValue("(ii)", frames->time_base_num, frames->time_base_den);
}

static PyMethodDef frames_methods[] = {
    SHARED_METHODS,
    { "_none", frames_none, METH_NOARGS, "Removes all frames and returns the object; for empty slices." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef frames_fields[] = {
    SHARED_FIELDS,
    { "name", result_name, NULL, "What the frames are of: a path, or the name that was given.", NULL },
    { "number", result_number, NULL, "The number of the file among those of its source and epoch.", NULL },
    { "pts", result_array, NULL, "The time of each frame as the stream stores it, in units of time_base.",
      KIND(WEIR_ARRAY_PTS) },
    { "times_ns", result_array, NULL, "The time of each frame from the video's first one, in nanoseconds.",
      KIND(WEIR_ARRAY_TIMES) },
    { "mask", result_array, NULL,
      "Of each frame: 0 = it repeats an earlier one, because the video is too short; else 1.",
      KIND(WEIR_ARRAY_MASK) },
    { "time_base", frames_time_base, NULL, "The unit of pts, in seconds: numerator and denominator.", NULL },
    { "codec", frames_codec, NULL, "FFmpeg's name of the codec.", NULL },
    { "damage", frames_damage, NULL, "What was damaged: errors, corrupt and missing frames, each a number.", NULL },
    { "source_size", frames_source_size, NULL, "Height and width as the first frame was coded.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot frames_slots[] = {
    { Py_tp_dealloc, result_dealloc },
    { Py_tp_methods, frames_methods },
    { Py_tp_getset, frames_fields },
    { Py_tp_repr, frames_repr },
    { Py_sq_length, result_length },
    { Py_sq_item, result_item },
    { Py_bf_getbuffer, result_buffer },
    { Py_bf_releasebuffer, weirpy_release_buffer },
    { Py_tp_doc, "Decoded frames: an array of pixels. numpy.asarray() and torch.from_dlpack() share its memory." },
    { 0, NULL },
};

static PyType_Spec frames_spec = {
    .name = "weir._media.Frames",
    .basicsize = sizeof(result_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = frames_slots,
};

/* ---- Batch -------------------------------------------------------------------------------------------------------- */

/* numpy.asarray(batch) and batch.frames are the same array. */
static PyObject *batch_names(PyObject *object, void *unused)
{
    const weir_collated *batch = batch_of(object);
    (void)unused;
    PyObject *names = PyList_New((Py_ssize_t)batch->num_items);
    for (size_t i = 0; names && i < batch->num_items; i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(batch->names[i]);
        if (!name || PyList_SetItem(names, (Py_ssize_t)i, name)) {
            Py_DECREF(names);
            return NULL;
        }
    }
    return names;
}

static PyObject *text_column(const weir_column *column, size_t num_items)
{
    PyObject *texts = PyList_New((Py_ssize_t)num_items);
    for (size_t i = 0; texts && i < num_items; i++) {
        bool is_there = !column->is_there || column->is_there[i];
        PyObject *text = is_there ? PyUnicode_FromString(column->texts[i]) : Py_NewRef(Py_None);
        if (!text || PyList_SetItem(texts, (Py_ssize_t)i, text)) {
            Py_DECREF(texts);
            return NULL;
        }
    }
    return texts;
}

static PyObject *batch_columns(PyObject *object, void *unused)
{
    const weir_collated *batch = batch_of(object);
    (void)unused;
    PyObject *columns = PyDict_New();
    for (size_t i = 0; columns && i < batch->num_columns; i++) {
        const weir_column *column = &batch->columns[i];
        const weirpy_view view = { .item = item_of(object), .column = column->name, .index = WEIRPY_WHOLE };
        PyObject *values = column->kind == WEIR_COLUMN_TEXT ? text_column(column, batch->num_items)
                                                            : weirpy_array_new(object, &view);
        if (!values || PyDict_SetItemString(columns, column->name, values)) {
            Py_XDECREF(values);
            Py_DECREF(columns);
            return NULL;
        }
        Py_DECREF(values);
    }
    return columns;
}

static PyObject *batch_epoch(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(batch_of(object)->epoch);
}

static PyObject *batch_padding(PyObject *object, void *unused)
{
    (void)unused;
    return PyFloat_FromDouble(batch_of(object)->padding);
}

static PyMethodDef batch_methods[] = { SHARED_METHODS, { NULL, NULL, 0, NULL } };

static PyGetSetDef batch_fields[] = {
    SHARED_FIELDS,
    { "frames", result_array, NULL, "The pixels: the batch comes first, with clips then the clip.",
      KIND(WEIR_ARRAY_DATA) },
    { "labels", result_array, NULL, "The class of each item; -1 = unknown.", KIND(WEIR_ARRAY_LABELS) },
    { "ids", result_array, NULL, "The number of each item in the dataset.", KIND(WEIR_ARRAY_IDS) },
    { "sizes", result_array, NULL, "Frames, height and width of each item without padding.", KIND(WEIR_ARRAY_SIZES) },
    { "mask", result_array, NULL, "Of each frame of each item: 1 = a frame, 0 = padding or a repeat.",
      KIND(WEIR_ARRAY_MASK) },
    { "valid", result_array, NULL,
      "Of each item: 0 = it stands for one that failed, leave it out of the loss; else 1.", KIND(WEIR_ARRAY_VALID) },
    { "names", batch_names, NULL, "What each item is: its path.", NULL },
    { "columns", batch_columns, NULL, "Your columns by their names: arrays of numbers, lists of texts.", NULL },
    { "epoch", batch_epoch, NULL, "The epoch of the last item.", NULL },
    { "padding", batch_padding, NULL, "The share of the pixels that is padding.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot batch_slots[] = {
    { Py_tp_dealloc, result_dealloc },
    { Py_tp_methods, batch_methods },
    { Py_tp_getset, batch_fields },
    { Py_tp_repr, batch_repr },
    { Py_sq_length, result_length },
    { Py_sq_item, result_item },
    { Py_bf_getbuffer, result_buffer },
    { Py_bf_releasebuffer, weirpy_release_buffer },
    { Py_tp_doc, "A batch of clips. torch.from_dlpack(batch.frames) shares its memory." },
    { 0, NULL },
};

static PyType_Spec batch_spec = {
    .name = "weir._media.Batch",
    .basicsize = sizeof(result_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = batch_slots,
};

int weirpy_result_ready(PyObject *module)
{
    frames_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &frames_spec, NULL);
    batch_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &batch_spec, NULL);
    if (!frames_type || !batch_type || PyModule_AddType(module, frames_type))
        return -1;
    return PyModule_AddType(module, batch_type);
}
