/*
 * weir._core.Table: rows of a recording for weir.read_stats(). What has no GIL reads chunks (table.h); rows in Python are made of
 * these.
 */
#include <stdlib.h>
#include <string.h>

#include "python/core/core.h"
#include "python/core/table.h"

typedef struct table_object {
    PyObject ob_base;
    weirpy_table table;
    bool is_busy; /* a thread reads without the GIL */
} table_object;

static const weirpy_field filter_fields[] = {
    WEIRPY_FIELD(weir_filter, run_id, WEIRPY_I64),      WEIRPY_FIELD(weir_filter, name, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_filter, node_id, WEIRPY_TEXT),    WEIRPY_FIELD(weir_filter, by_rank, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_filter, rank, WEIRPY_I32),        WEIRPY_FIELD(weir_filter, start_unix_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_filter, end_unix_ns, WEIRPY_I64), WEIRPY_FIELD(weir_filter, by_step, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_filter, first_step, WEIRPY_I64),  WEIRPY_FIELD(weir_filter, last_step, WEIRPY_I64),
    WEIRPY_FIELD(weir_filter, phase, WEIRPY_TEXT),      WEIRPY_FIELD(weir_filter, mode, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_filter, from_phase, WEIRPY_TEXT), WEIRPY_FIELD(weir_filter, until_phase, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_filter, no_replay, WEIRPY_BOOL),  { 0 },
};

int weirpy_fill_filter(weir_filter *filter, PyObject *values)
{
    *filter = (weir_filter){ 0 };
    return weirpy_fill(filter, filter_fields, values, "filter");
}

/* ---- opening --------------------------------------------------------------------------------------------------------- */

static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = { "path", "sql", "filter", NULL };
    PyObject *path, *values = NULL;
    const char *sql;
    weir_filter filter;
    int status;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&s|O", names, PyUnicode_FSConverter, &path, &sql, &values))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    table_object *self = weirpy_fill_filter(&filter, values) == 0 ? (table_object *)allocate(type, 0) : NULL;
    if (!self) {
        Py_DECREF(path);
        return NULL;
    }
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = weirpy_table_open(&self->table, text, &filter, sql);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    weirpy_drain_log();
    if (status == WEIR_OK)
        return (PyObject *)self;
    weirpy_raise(&self->table.error);
    Py_DECREF(self);
    return NULL;
}

static void table_dealloc(PyObject *object)
{
    table_object *self = (table_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_BEGIN_ALLOW_THREADS;
    weirpy_table_close(&self->table);
    Py_END_ALLOW_THREADS;
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static table_object *open_table(PyObject *object)
{
    table_object *self = (table_object *)object;
    if (!self->is_busy && self->table.rows)
        return self;
    PyErr_SetString(PyExc_ValueError,
                    self->is_busy ? "another thread reads the rows" : "the rows belong to a stream");
    return NULL;
}

static PyObject *table_columns(PyObject *object, PyObject *unused)
{
    static const char *const types[] = { "int64", "float64", "text", "bytes" };
    size_t count;
    (void)unused;
    const table_object *self = open_table(object);
    if (!self)
        return NULL;
    const weir_row_column *columns = weir_rows_columns(self->table.rows, &count);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *pair = Py_BuildValue("(ss)", columns[i].name, types[columns[i].type]);
        if (!pair)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, pair);
    }
    return list;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

static PyObject *value_at(const struct ArrowArray *column, weir_row_type type, int64_t at)
{
    const uint8_t *valid = column->buffers ? column->buffers[0] : NULL;
    if (type == WEIR_ROW_BYTES || !valid || !(valid[at / 8] >> (at % 8) & 1))
        return Py_NewRef(Py_None);
    if (type == WEIR_ROW_INT)
        return PyLong_FromLongLong(((const int64_t *)column->buffers[1])[at]);
    if (type == WEIR_ROW_REAL)
        return PyFloat_FromDouble(((const double *)column->buffers[1])[at]);
    const int32_t *offsets = column->buffers[1];
    const char *text = column->buffers[2];
    return PyUnicode_DecodeUTF8(text + offsets[at], offsets[at + 1] - offsets[at], "replace");
}

static PyObject *row_at(const struct ArrowArray *chunk, const weir_row_column *types, int64_t at)
{
    PyObject *row = PyTuple_New((Py_ssize_t)chunk->n_children);
    for (int64_t i = 0; row && i < chunk->n_children; i++) {
        PyObject *value = value_at(chunk->children[i], types[i].type, at);
        if (!value)
            Py_CLEAR(row);
        else
            PyTuple_SetItem(row, (Py_ssize_t)i, value);
    }
    return row;
}

static PyObject *rows_of(const struct ArrowArray *chunk, const weir_row_column *types)
{
    PyObject *list = PyList_New((Py_ssize_t)chunk->length);
    for (int64_t i = 0; list && i < chunk->length; i++) {
        PyObject *row = row_at(chunk, types, i);
        if (!row)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, row);
    }
    return list;
}

/* None = there are no more. */
static PyObject *table_next(PyObject *object, PyObject *unused)
{
    struct ArrowArray chunk;
    int status;
    (void)unused;
    table_object *self = open_table(object);
    if (!self)
        return NULL;
    self->is_busy = true;
    Py_BEGIN_ALLOW_THREADS;
    status = weirpy_table_next(&self->table, &chunk);
    Py_END_ALLOW_THREADS;
    self->is_busy = false;
    if (status == WEIR_EOF)
        Py_RETURN_NONE;
    if (status != WEIR_OK)
        return weirpy_raise(&self->table.error);
    PyObject *rows = rows_of(&chunk, weir_rows_columns(self->table.rows, NULL));
    chunk.release(&chunk);
    return rows;
}

/* ---- Arrow ----------------------------------------------------------------------------------------------------------- */

#define STREAM "arrow_array_stream"

static void free_stream(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, STREAM);
    if (stream && stream->release) /* else a consumer has taken it */
        stream->release(stream);
    free(stream);
}

static PyObject *table_stream(PyObject *object, PyObject *unused)
{
    (void)unused;
    table_object *self = open_table(object);
    if (!self)
        return NULL;
    struct ArrowArrayStream *stream = calloc(1, sizeof *stream);
    if (!stream || weirpy_table_stream(&self->table, stream) != WEIR_OK) {
        free(stream);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(stream, STREAM, free_stream);
    if (!capsule) {
        stream->release(stream);
        free(stream);
    }
    return capsule;
}

WEIRPY_IN_TURN(table_columns, PyObject)
WEIRPY_IN_TURN(table_next, PyObject)
WEIRPY_IN_TURN(table_stream, PyObject)

static PyMethodDef table_methods[] = {
    { "columns", in_turn_table_columns, METH_NOARGS, "Names and types." },
    { "next", in_turn_table_next, METH_NOARGS, "The next rows, as a list of tuples; None at the end." },
    { "stream", in_turn_table_stream, METH_NOARGS, "The rows as a stream of Arrow, which owns them from now on." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot table_slots[] = {
    { Py_tp_new, table_new },
    { Py_tp_dealloc, table_dealloc },
    { Py_tp_methods, table_methods },
    { Py_tp_doc, "Rows of a recording." },
    { 0, NULL },
};

static PyType_Spec table_spec = {
    .name = "weir._core.Table",
    .basicsize = sizeof(table_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = table_slots,
};

/* ---- names ------------------------------------------------------------------------------------------------------------ */

static PyObject *stats_tables(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (size_t i = 0; list && weir_recording_table(i); i++) {
        PyObject *name = PyUnicode_FromString(weir_recording_table(i));
        if (!name || PyList_Append(list, name))
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyMethodDef functions[] = {
    { "stats_tables", stats_tables, METH_NOARGS, "The tables of weir.read_stats()." },
    { NULL, NULL, 0, NULL },
};

int weirpy_stats_ready(PyObject *module)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &table_spec, NULL);
    int rc = type ? PyModule_AddType(module, type) : -1;
    Py_XDECREF((PyObject *)type);
    return rc == 0 ? PyModule_AddFunctions(module, functions) : -1;
}
