/*
 * weir._media.Dataset: an index that is open, in a file or in memory; and index_build(), which makes one. For weir/_index.py.
 *
 * Calls give up the GIL, so each takes the dataset's lock first, also without the GIL. A pipeline has a Dataset of its own:
 * weirpy_dataset_again().
 */
#include <stdlib.h>
#include <string.h>

#include <weir/dataset.h>

#include "python/media/media.h"

#define MEMORY_CAPSULE "weir._media.memory" /* an index in memory, which all its Datasets share */
#define ORDER_CAPSULE  "weir._media.order"  /* order_arrays */

typedef struct dataset_object {
    PyObject ob_base;
    weir_dataset *dataset;
    PyObject *origin;  /* the path as a str, or the capsule */
    PyObject *options; /* a dict; or None */
    PyThread_type_lock lock;
} dataset_object;

static PyTypeObject *dataset_type;

/* ---- lists of texts ----------------------------------------------------------------------------------------------- */

typedef weirpy_text_list text_list;

void weirpy_text_list_free(text_list *list)
{
    PyMem_Free((void *)(uintptr_t)list->texts);
    Py_XDECREF(list->objects);
}

/* The text of an object: borrowed from what is put into the list. */
static int read_text(text_list *list, size_t at, bool are_paths)
{
    PyObject *object = PyList_GetItem(list->objects, (Py_ssize_t)at), *bytes = NULL;
    if (object == Py_None && !are_paths)
        return 0;
    if (!are_paths) {
        list->texts[at] = weirpy_utf8(object);
        return list->texts[at] ? 0 : -1;
    }
    if (!PyUnicode_FSConverter(object, &bytes))
        return -1;
    list->texts[at] = PyBytes_AsString(bytes);
    return PyList_SetItem(list->objects, (Py_ssize_t)at, bytes);
}

int weirpy_text_list_read(text_list *list, PyObject *sequence, bool are_paths)
{
    *list = (text_list){ 0 };
    if (!sequence || sequence == Py_None)
        return 0;
    list->objects = PySequence_List(sequence);
    list->length = list->objects ? (size_t)PyList_Size(list->objects) : 0;
    list->texts = list->objects ? PyMem_Calloc(list->length + 1, sizeof *list->texts) : NULL;
    if (list->objects && !list->texts)
        PyErr_NoMemory();
    int rc = list->texts ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < list->length; i++)
        rc = read_text(list, i, are_paths);
    return rc;
}

/* ---- columns ------------------------------------------------------------------------------------------------------ */

/* A column with the memory of its values. */
typedef struct column_values {
    uint8_t *is_there;
    int64_t *integers;
    double *reals;
    text_list texts;
} column_values;

static void free_column(column_values *values)
{
    PyMem_Free(values->is_there);
    PyMem_Free(values->integers);
    PyMem_Free(values->reals);
    weirpy_text_list_free(&values->texts);
}

static const char *const column_kinds[] = { "integer", "real", "text", NULL };

static void read_number(column_values *values, size_t at, PyObject *value)
{
    values->is_there[at] = value != Py_None;
    if (value == Py_None && values->reals)
        values->reals[at] = Py_NAN;
    else if (value != Py_None && values->reals)
        values->reals[at] = PyFloat_AsDouble(value);
    else if (value != Py_None && values->integers)
        values->integers[at] = PyLong_AsLongLong(value);
}

static int read_texts(column_values *values, weir_column *column, PyObject *list)
{
    if (weirpy_text_list_read(&values->texts, list, false))
        return -1;
    for (size_t i = 0; i < values->texts.length; i++) {
        values->is_there[i] = values->texts.texts[i] != NULL;
        if (!values->texts.texts[i])
            values->texts.texts[i] = "";
    }
    column->texts = values->texts.texts;
    return 0;
}

static int read_values(column_values *values, weir_column *column, PyObject *list)
{
    size_t length = (size_t)PyList_Size(list);
    values->is_there = PyMem_Calloc(length + 1, 1);
    if (column->kind == WEIR_COLUMN_INTEGER)
        values->integers = PyMem_Calloc(length + 1, sizeof *values->integers);
    if (column->kind == WEIR_COLUMN_REAL)
        values->reals = PyMem_Calloc(length + 1, sizeof *values->reals);
    column->is_there = values->is_there;
    column->integers = values->integers;
    column->reals = values->reals;
    if (!values->is_there || (column->kind != WEIR_COLUMN_TEXT && !values->integers && !values->reals)) {
        PyErr_NoMemory();
        return -1;
    }
    if (column->kind == WEIR_COLUMN_TEXT)
        return read_texts(values, column, list);
    for (size_t i = 0; i < length && !PyErr_Occurred(); i++)
        read_number(values, i, PyList_GetItem(list, (Py_ssize_t)i));
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- what is built ------------------------------------------------------------------------------------------------ */

/* The arguments of a build, with the memory behind them. */
typedef struct build {
    weir_dataset_build_options options;
    text_list paths, labels;
    weir_clip_window *windows;
    weir_column *columns;
    column_values *values;
    PyObject *progress; /* a callable, borrowed; NULL = none */
} build;

static const char *const checks[] = { "packets", "first", "all", NULL };

static const weirpy_field build_fields[] = {
    WEIRPY_FIELD(weir_dataset_build_options, root, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_dataset_build_options, glob, WEIRPY_TEXT),
    WEIRPY_ENUM(weir_dataset_build_options, check, checks),
    WEIRPY_FIELD(weir_dataset_build_options, no_packets, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_dataset_build_options, concurrency, WEIRPY_U32),
    WEIRPY_FIELD(weir_dataset_build_options, tar, WEIRPY_BOOL),
    { 0 },
};

static void free_build(build *self)
{
    for (size_t i = 0; self->values && i < self->options.num_columns; i++)
        free_column(&self->values[i]);
    PyMem_Free(self->values);
    PyMem_Free(self->columns);
    PyMem_Free(self->windows);
    weirpy_text_list_free(&self->labels);
    weirpy_text_list_free(&self->paths);
}

/* windows: a list of (start_ns, end_ns, start_frame, end_frame). */
static int read_windows(build *self, PyObject *windows)
{
    if (windows == Py_None)
        return 0;
    self->windows = PyMem_Calloc(self->paths.length + 1, sizeof *self->windows);
    if (!self->windows) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < self->paths.length; i++) {
        PyObject *window = PyList_GetItem(windows, (Py_ssize_t)i);
        long long start_ns, end_ns;
        unsigned long long start_frame, end_frame;
        if (!window || !PyArg_ParseTuple(window, "LLKK", &start_ns, &end_ns, &start_frame, &end_frame))
            return -1;
        self->windows[i] = (weir_clip_window){ start_ns, end_ns, start_frame, end_frame };
    }
    self->options.windows = self->windows;
    return 0;
}

static int read_column(build *self, size_t at, PyObject *described)
{
    PyObject *kind, *list;
    int number;
    if (!PyArg_ParseTuple(described, "sUO!", &self->columns[at].name, &kind, &PyList_Type, &list) ||
        weirpy_word(kind, column_kinds, "the kind of a column", &number))
        return -1;
    if ((size_t)PyList_Size(list) != self->paths.length) {
        PyErr_Format(PyExc_ValueError, "the column %s has %zd values for %zu clips", self->columns[at].name,
                     PyList_Size(list), self->paths.length);
        return -1;
    }
    self->columns[at].kind = (weir_column_kind)number;
    return read_values(&self->values[at], &self->columns[at], list);
}

/* columns: a list of (name, kind, list of values). */
static int read_columns(build *self, PyObject *columns)
{
    Py_ssize_t num_columns = columns == Py_None ? 0 : PyList_Size(columns);
    size_t length = num_columns > 0 ? (size_t)num_columns : 0;
    int rc = 0;
    if (!length)
        return num_columns < 0 ? -1 : 0;
    self->columns = PyMem_Calloc(length, sizeof *self->columns);
    self->values = PyMem_Calloc(length, sizeof *self->values);
    if (!self->columns || !self->values) {
        PyErr_NoMemory();
        return -1;
    }
    self->options.columns = self->columns;
    self->options.num_columns = length;
    for (size_t i = 0; rc == 0 && i < length; i++)
        rc = read_column(self, i, PyList_GetItem(columns, (Py_ssize_t)i));
    return rc;
}

/* ---- building ----------------------------------------------------------------------------------------------------- */

static PyObject *progress_object(const weir_dataset_progress *progress)
{
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsK}", "num_clips", (unsigned long long)progress->num_clips, "num_found",
        (unsigned long long)progress->num_found, "num_total", (unsigned long long)progress->num_total,
        "num_unchanged", (unsigned long long)progress->num_unchanged, "num_indexed",
        (unsigned long long)progress->num_indexed, "num_broken", (unsigned long long)progress->num_broken,
        "num_removed", (unsigned long long)progress->num_removed, "num_unreadable_folders",
        (unsigned long long)progress->num_unreadable_folders, "num_cut", (unsigned long long)progress->num_cut);
}

/* On the calling thread, several times in a second. An exception stops the build, and stays set for the thread. */
static bool report_progress(void *self, const weir_dataset_progress *progress)
{
    const build *of = self;
    PyGILState_STATE state = PyGILState_Ensure();
    bool goes_on = !PyErr_Occurred() && PyErr_CheckSignals() == 0;
    if (goes_on && of->progress) {
        PyObject *values = progress_object(progress);
        PyObject *result = values ? PyObject_CallFunctionObjArgs(of->progress, values, NULL) : NULL;
        goes_on = result != NULL;
        Py_XDECREF(result);
        Py_XDECREF(values);
    }
    PyGILState_Release(state);
    return goes_on;
}

static void free_memory(PyObject *capsule)
{
    weir_dataset_memory_free(PyCapsule_GetPointer(capsule, MEMORY_CAPSULE));
}

/* path NULL: in memory. The result is the capsule or None, and the progress at the end. */
static PyObject *run_build(const char *path, build *self)
{
    weir_dataset_memory *memory = NULL;
    weir_dataset_progress result = { 0 };
    weir_error error = { 0 };
    int rc;
    self->options.progress = report_progress;
    self->options.self = self;
    Py_BEGIN_ALLOW_THREADS;
    rc = path ? weir_dataset_build(path, &self->options, &result, &error)
              : weir_dataset_build_memory(&self->options, &memory, &result, &error);
    Py_END_ALLOW_THREADS;
    weirpy_core_table->drain_log();
    if (rc != WEIR_OK || PyErr_Occurred()) {
        weir_dataset_memory_free(memory);
        return weirpy_raise(&error);
    }
    PyObject *capsule = memory ? PyCapsule_New(memory, MEMORY_CAPSULE, free_memory) : Py_NewRef(Py_None);
    if (!capsule) {
        weir_dataset_memory_free(memory);
        return NULL;
    }
    return Py_BuildValue("NN", capsule, progress_object(&result));
}

static PyObject *index_build(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = { "path", "options", "paths", "labels", "windows", "columns", "progress", NULL };
    PyObject *options = NULL, *path = Py_None, *paths = Py_None, *labels = Py_None, *windows = Py_None;
    PyObject *columns = Py_None, *progress = Py_None, *path_bytes = NULL, *result = NULL;
    build self = { 0 };
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OO|OOOOO", names, &path, &options, &paths, &labels, &windows,
                                     &columns, &progress) ||
        (path != Py_None && !PyUnicode_FSConverter(path, &path_bytes)))
        return NULL;
    self.progress = progress == Py_None ? NULL : progress;
    if (weirpy_fill(&self.options, build_fields, options, "index") == 0 &&
        weirpy_text_list_read(&self.paths, paths, true) == 0 &&
        weirpy_text_list_read(&self.labels, labels, false) == 0 && read_windows(&self, windows) == 0 &&
        read_columns(&self, columns) == 0) {
        self.options.paths = self.paths.texts;
        self.options.num_paths = self.paths.length;
        self.options.labels = self.labels.texts;
        result = run_build(path_bytes ? PyBytes_AsString(path_bytes) : NULL, &self);
    }
    free_build(&self);
    Py_XDECREF(path_bytes);
    return result;
}

/* ---- opening ------------------------------------------------------------------------------------------------------ */

static const weirpy_field open_fields[] = {
    WEIRPY_FIELD(weir_dataset_options, where, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_dataset_options, root, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_dataset_options, ignore_mtime, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_dataset_options, may_be_empty, WEIRPY_BOOL),
    { 0 },
};

/* The lists of the options are taken out of a copy of the dictionary. */
static int read_open_options(weir_dataset_options *options, PyObject *values, text_list *classes, text_list *paths)
{
    PyObject *rest = values == Py_None ? PyDict_New() : PyDict_Copy(values);
    PyObject *class_list = rest ? PyDict_GetItemString(rest, "classes") : NULL;
    PyObject *path_list = rest ? PyDict_GetItemString(rest, "paths") : NULL;
    int rc = rest && weirpy_text_list_read(classes, class_list, false) == 0 &&
                     weirpy_text_list_read(paths, path_list, true) == 0
                 ? 0
                 : -1;
    if (rc == 0 && class_list)
        rc = PyDict_DelItemString(rest, "classes");
    if (rc == 0 && path_list)
        rc = PyDict_DelItemString(rest, "paths");
    if (rc == 0)
        rc = weirpy_fill(options, open_fields, rest, "index"); /* the texts live as long as `values` */
    options->classes = classes->texts;
    options->num_classes = classes->length;
    options->paths = paths->texts;
    options->num_paths = paths->length;
    Py_XDECREF(rest);
    return rc;
}

static int open_dataset(dataset_object *self)
{
    weir_dataset_options options = { 0 };
    text_list classes = { 0 }, paths = { 0 };
    weir_error error = { 0 };
    PyObject *bytes = NULL;
    int rc = read_open_options(&options, self->options, &classes, &paths);
    bool is_memory = PyCapsule_IsValid(self->origin, MEMORY_CAPSULE);
    if (rc == 0 && is_memory)
        options.memory = PyCapsule_GetPointer(self->origin, MEMORY_CAPSULE);
    else if (rc == 0)
        rc = PyUnicode_FSConverter(self->origin, &bytes) ? 0 : -1;
    const char *path = bytes ? PyBytes_AsString(bytes) : NULL;
    if (rc == 0) {
        Py_BEGIN_ALLOW_THREADS;
        rc = weir_dataset_open(path, &options, &self->dataset, &error);
        Py_END_ALLOW_THREADS;
        if (rc != WEIR_OK)
            weirpy_raise(&error);
    }
    weirpy_text_list_free(&classes);
    weirpy_text_list_free(&paths);
    Py_XDECREF(bytes);
    return rc == 0 ? 0 : -1;
}

static PyObject *new_dataset(PyTypeObject *type, PyObject *origin, PyObject *options)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    dataset_object *self = (dataset_object *)allocate(type, 0);
    if (!self)
        return NULL;
    self->origin = Py_NewRef(origin);
    self->options = options == Py_None ? Py_NewRef(options) : PyDict_Copy(options);
    self->lock = PyThread_allocate_lock();
    if (!self->lock)
        PyErr_NoMemory();
    else if (self->options && open_dataset(self) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static PyObject *dataset_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = { "origin", "options", NULL };
    PyObject *origin, *options = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|O", names, &origin, &options))
        return NULL;
    if (options != Py_None && !PyDict_Check(options)) {
        PyErr_SetString(PyExc_TypeError, "options must be a dict");
        return NULL;
    }
    return new_dataset(type, origin, options);
}

PyObject *weirpy_dataset_again(PyObject *dataset)
{
    if (!PyObject_TypeCheck(dataset, dataset_type)) {
        PyErr_Format(PyExc_TypeError, "%R is no weir._media.Dataset", dataset);
        return NULL;
    }
    const dataset_object *of = (dataset_object *)dataset;
    return new_dataset(dataset_type, of->origin, of->options);
}

weir_sampler_items weirpy_dataset_items(PyObject *dataset)
{
    return weir_dataset_items(((dataset_object *)dataset)->dataset);
}

static void dataset_dealloc(PyObject *object)
{
    dataset_object *self = (dataset_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_BEGIN_ALLOW_THREADS;
    weir_dataset_close(self->dataset);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(self->origin);
    Py_XDECREF(self->options);
    if (self->lock)
        PyThread_free_lock(self->lock);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static void lock_dataset(dataset_object *self)
{
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock(self->lock, WAIT_LOCK);
    Py_END_ALLOW_THREADS;
}

static void unlock_dataset(dataset_object *self)
{
    PyThread_release_lock(self->lock);
}

/* ---- facts -------------------------------------------------------------------------------------------------------- */

static PyObject *class_names(const weir_dataset *dataset)
{
    uint32_t num_classes = weir_dataset_num_classes(dataset);
    PyObject *names = PyList_New((Py_ssize_t)num_classes);
    for (uint32_t i = 0; names && i < num_classes; i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(weir_dataset_class_name(dataset, i));
        if (!name || PyList_SetItem(names, (Py_ssize_t)i, name)) {
            Py_DECREF(names);
            return NULL;
        }
    }
    return names;
}

static PyObject *column_names(const weir_dataset *dataset)
{
    size_t num_columns;
    const weir_column *columns = weir_dataset_columns(dataset, &num_columns);
    PyObject *kinds = PyDict_New();
    for (size_t i = 0; kinds && i < num_columns; i++) {
        PyObject *kind = PyUnicode_FromString(column_kinds[columns[i].kind]);
        if (!kind || PyDict_SetItemString(kinds, columns[i].name, kind)) {
            Py_XDECREF(kind);
            Py_DECREF(kinds);
            return NULL;
        }
        Py_DECREF(kind);
    }
    return kinds;
}

static PyObject *dataset_facts(PyObject *object, PyObject *unused)
{
    dataset_object *self = (dataset_object *)object;
    (void)unused;
    return Py_BuildValue("{sKsKsNsN}", "count", (unsigned long long)weir_dataset_count(self->dataset), "fingerprint",
                         (unsigned long long)weir_dataset_fingerprint(self->dataset), "classes",
                         class_names(self->dataset), "columns", column_names(self->dataset));
}

static PyObject *dataset_count_broken(PyObject *object, PyObject *unused)
{
    dataset_object *self = (dataset_object *)object;
    uint64_t num_broken = 0;
    weir_error error = { 0 };
    int rc;
    (void)unused;
    lock_dataset(self);
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_dataset_count_broken(self->dataset, &num_broken, &error);
    Py_END_ALLOW_THREADS;
    unlock_dataset(self);
    return rc == WEIR_OK ? PyLong_FromUnsignedLongLong(num_broken) : weirpy_raise(&error);
}

static PyObject *dataset_read_broken(PyObject *object, PyObject *args)
{
    dataset_object *self = (dataset_object *)object;
    unsigned long long number;
    weir_broken_clip clip = { 0 };
    weir_error error = { 0 };
    PyObject *result = NULL;
    int rc;
    if (!PyArg_ParseTuple(args, "K", &number))
        return NULL;
    lock_dataset(self);
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_dataset_read_broken(self->dataset, number, &clip, &error);
    Py_END_ALLOW_THREADS;
    if (rc == WEIR_OK) /* its texts are valid until the next call */
        result = Py_BuildValue("NNss", PyUnicode_DecodeFSDefault(clip.path), PyUnicode_DecodeFSDefault(clip.label),
                               clip.message, weir_status_name(clip.status));
    unlock_dataset(self);
    return rc == WEIR_OK ? result : weirpy_raise(&error);
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

static PyObject *cell_object(const weir_dataset_cell *cell)
{
    switch (cell->kind) {
    case WEIR_CELL_INTEGER: return PyLong_FromLongLong(cell->integer);
    case WEIR_CELL_REAL: return PyFloat_FromDouble(cell->real);
    case WEIR_CELL_TEXT: return PyUnicode_DecodeFSDefault(cell->text);
    default: return Py_NewRef(Py_None);
    }
}

static int add_row_locked(PyObject *rows, const weir_dataset_cell *cells, size_t num_cells)
{
    PyObject *row = PyDict_New();
    int rc = row && !PyErr_CheckSignals() ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < num_cells; i++) {
        PyObject *value = cell_object(&cells[i]);
        rc = value ? PyDict_SetItemString(row, cells[i].name, value) : -1;
        Py_XDECREF(value);
    }
    if (rc == 0)
        rc = PyList_Append(rows, row);
    Py_XDECREF(row);
    return rc == 0 ? WEIR_OK : WEIR_ESTOPPED;
}

static int add_row(void *self, const weir_dataset_cell *cells, size_t num_cells)
{
    PyGILState_STATE state = PyGILState_Ensure();
    int rc = add_row_locked(self, cells, num_cells);
    PyGILState_Release(state);
    return rc;
}

static const char *const questions[] = { "summary", "classes", "codecs", "durations", "broken", "clips", NULL };

/* Of the whole index that match the condition, whatever the options of the dataset. */
static PyObject *dataset_ask(PyObject *object, PyObject *args)
{
    dataset_object *self = (dataset_object *)object;
    PyObject *question, *bytes = NULL;
    const char *where = NULL;
    int number, rc;
    weir_error error = { 0 };
    if (!PyArg_ParseTuple(args, "O|z", &question, &where) || weirpy_word(question, questions, "question", &number))
        return NULL;
    const weir_dataset_memory *memory =
        PyCapsule_IsValid(self->origin, MEMORY_CAPSULE) ? PyCapsule_GetPointer(self->origin, MEMORY_CAPSULE) : NULL;
    if (!memory && !PyUnicode_FSConverter(self->origin, &bytes))
        return NULL;
    const char *path = bytes ? PyBytes_AsString(bytes) : NULL;
    PyObject *rows = PyList_New(0);
    Py_BEGIN_ALLOW_THREADS;
    rc = memory ? weir_dataset_ask_memory(memory, (weir_dataset_question)number, where, add_row, rows, &error)
                : weir_dataset_ask(path, (weir_dataset_question)number, where, add_row, rows, &error);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(bytes);
    if (rc == WEIR_OK && !PyErr_Occurred())
        return rows;
    Py_XDECREF(rows);
    return weirpy_raise(&error);
}

/* ---- what orders need of each clip ---------------------------------------------------------------------------------- */

typedef struct order_arrays {
    double *sizes;    /* NULL = the order has groups */
    uint64_t *groups; /* NULL = the order has sizes */
} order_arrays;

static void free_order(order_arrays *order)
{
    free(order->sizes);
    free(order->groups);
    free(order);
}

static void free_order_capsule(PyObject *capsule)
{
    free_order(PyCapsule_GetPointer(capsule, ORDER_CAPSULE));
}

/* Takes what was read. */
static PyObject *order_object(order_arrays read, int rc, const weir_error *error)
{
    if (rc != WEIR_OK)
        return weirpy_raise(error);
    order_arrays *order = malloc(sizeof *order);
    if (!order) {
        free(read.sizes);
        free(read.groups);
        return PyErr_NoMemory();
    }
    *order = read;
    PyObject *capsule = PyCapsule_New(order, ORDER_CAPSULE, free_order_capsule);
    if (!capsule)
        free_order(order);
    return capsule;
}

static PyObject *dataset_read_sizes(PyObject *object, PyObject *args)
{
    dataset_object *self = (dataset_object *)object;
    const char *expression;
    order_arrays read = { NULL, NULL };
    weir_error error = { 0 };
    if (!PyArg_ParseTuple(args, "z", &expression))
        return NULL;
    lock_dataset(self);
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_dataset_read_sizes(self->dataset, expression, &read.sizes, &error);
    Py_END_ALLOW_THREADS;
    unlock_dataset(self);
    return order_object(read, rc, &error);
}

static PyObject *dataset_read_files(PyObject *object, PyObject *unused)
{
    dataset_object *self = (dataset_object *)object;
    order_arrays read = { NULL, NULL };
    weir_error error = { 0 };
    (void)unused;
    lock_dataset(self);
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_dataset_read_files(self->dataset, &read.groups, &error);
    Py_END_ALLOW_THREADS;
    unlock_dataset(self);
    return order_object(read, rc, &error);
}

int weirpy_order_fill(PyObject *capsule, weir_sampler_config *config)
{
    if (capsule == Py_None)
        return 0;
    const order_arrays *order = PyCapsule_GetPointer(capsule, ORDER_CAPSULE);
    if (!order)
        return -1;
    config->sizes = order->sizes;
    config->groups = order->groups;
    return 0;
}

/* ---- the type ----------------------------------------------------------------------------------------------------- */

static PyMethodDef dataset_methods[] = {
    { "facts", dataset_facts, METH_NOARGS, "The number of clips, the fingerprint, the classes and the columns." },
    { "count_broken", dataset_count_broken, METH_NOARGS, "How many files cannot be used." },
    { "read_broken", dataset_read_broken, METH_VARARGS,
      "read_broken(number): path, label, reason and status of a file that cannot be used." },
    { "read_sizes", dataset_read_sizes, METH_VARARGS,
      "read_sizes(expression): what the order \"buckets\" needs; None = by duration." },
    { "read_files", dataset_read_files, METH_NOARGS, "What the order \"groups\" needs." },
    { "ask", dataset_ask, METH_VARARGS, "ask(question, where=None): rows of the index, each a dict." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot dataset_slots[] = {
    { Py_tp_new, dataset_new },
    { Py_tp_dealloc, dataset_dealloc },
    { Py_tp_methods, dataset_methods },
    { Py_tp_doc, "An open index. weir.Index is for people." },
    { 0, NULL },
};

static PyType_Spec dataset_spec = {
    .name = "weir._media.Dataset",
    .basicsize = sizeof(dataset_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = dataset_slots,
};

static PyMethodDef functions[] = {
    { "index_build", (PyCFunction)(void (*)(void))index_build, METH_VARARGS | METH_KEYWORDS,
      "index_build(path, options, paths=None, labels=None, windows=None, columns=None, progress=None): makes an "
      "index, "
      "in memory "
      "if the path is None. Returns what Dataset() opens, or None, and the progress at the end." },
    { NULL, NULL, 0, NULL },
};

int weirpy_dataset_ready(PyObject *module)
{
    dataset_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &dataset_spec, NULL);
    if (!dataset_type || PyModule_AddType(module, dataset_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
