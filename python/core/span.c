/*
 * weir.span(), marker(), frame(), counter(): measurements in Python code, without a pipeline.
 *
 * A span is used thousands of times in a second, so each name is looked up once and then found in a dict (GIL). Spans are
 * those that may end on another thread (weir_span_start()): coroutines of one thread open and close theirs in any order.
 */
#include <weir/output.h>
#include <weir/span.h>

#include "python/core/core.h"

static PyTypeObject *span_type, *counter_type;

/* ---- names --------------------------------------------------------------------------------------------------------- */

/* Category: dict of names, of which each is the address of a weir_span_name. They live as long as the process, so what is found is
   borrowed. Names are added in turn for `adding`. */
static PyObject *names, *adding;
static PyObject *user, *user_names; /* the category "user", and its names, which are borrowed */

static PyObject *names_of(PyObject *category)
{
    PyObject *found = PyDict_GetItemWithError(names, category), *made;
    if (found || PyErr_Occurred())
        return found;
    made = PyDict_New();
    if (!made || PyDict_SetItem(names, category, made)) {
        Py_XDECREF(made);
        return NULL;
    }
    Py_DECREF(made);
    return made; /* borrowed */
}

static void refuse_name(PyObject *category, PyObject *name)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "a name and its category have 1 to 200 bytes, not %R and %R", name, category);
}

static weir_span_name *add_name(PyObject *known, PyObject *category, PyObject *name)
{
    const char *category_text = weirpy_utf8(category);
    const char *text = category_text ? weirpy_utf8(name) : NULL;
    weir_span_name *made = text ? weir_span_name_get(category_text, text) : NULL;
    PyObject *address = made ? PyLong_FromVoidPtr(made) : NULL;
    if (!made)
        refuse_name(category, name);
    if (address && PyDict_SetItem(known, name, address))
        made = NULL;
    Py_XDECREF(address);
    return address ? made : NULL;
}

/* Another thread may have added it meanwhile. */
static weir_span_name *find_or_add(PyObject *category, PyObject *name)
{
    PyObject *known = names_of(category);
    PyObject *address = known ? PyDict_GetItemWithError(known, name) : NULL;
    if (address)
        return PyLong_AsVoidPtr(address);
    return known && !PyErr_Occurred() ? add_name(known, category, name) : NULL;
}

/* NULL with an exception raised. category NULL = "user". */
static weir_span_name *find_name(PyObject *category, PyObject *name)
{
    if (!PyUnicode_Check(name) || (category && !PyUnicode_Check(category))) {
        PyErr_Format(PyExc_TypeError, "a name and its category are strings, not %R",
                     PyUnicode_Check(name) ? category : name);
        return NULL;
    }
    PyObject *known = category ? PyDict_GetItemWithError(names, category) : user_names;
    PyObject *address = known ? PyDict_GetItemWithError(known, name) : NULL;
    weir_span_name *found = NULL;
    if (address)
        return PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    WEIRPY_BEGIN_TURN(adding);
    found = find_or_add(category ? category : user, name);
    WEIRPY_END_TURN();
    return found;
}

/* The name from the arguments (name, category="user"), which may be given by name. */
static weir_span_name *name_from(PyObject *const *args, Py_ssize_t count, PyObject *keywords, const char *function)
{
    PyObject *given[2] = { count > 0 ? args[0] : NULL, count > 1 ? args[1] : NULL };
    const Py_ssize_t num_named = keywords ? PyTuple_Size(keywords) : 0;
    bool is_known = count <= 2;
    for (Py_ssize_t i = 0; i < num_named && is_known; i++) {
        PyObject *keyword = PyTuple_GetItem(keywords, i);
        int at = PyUnicode_CompareWithASCIIString(keyword, "name") == 0       ? 0
                 : PyUnicode_CompareWithASCIIString(keyword, "category") == 0 ? 1
                                                                              : 2;
        is_known = at < 2 && !given[at];
        if (is_known)
            given[at] = args[count + i];
    }
    if (is_known && given[0])
        return find_name(given[1], given[0]);
    PyErr_Format(PyExc_TypeError, "%s() takes a name, and a category (by default \"user\")", function);
    return NULL;
}

/* ---- spans --------------------------------------------------------------------------------------------------------- */

typedef struct span_object {
    PyObject ob_base;
    weir_span_name *name;
    weir_span_token token;
    bool is_open;
} span_object;

static span_object *new_span(weir_span_name *name)
{
    span_object *self = name ? PyObject_New(span_object, span_type) : NULL;
    if (self) {
        self->name = name;
        self->is_open = false;
    }
    return self;
}

static PyObject *span(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    (void)module;
    return (PyObject *)new_span(name_from(args, count, keywords, "span"));
}

static PyObject *span_enter(PyObject *object, PyObject *unused)
{
    span_object *self = (span_object *)object;
    (void)unused;
    if (self->is_open) {
        PyErr_SetString(PyExc_RuntimeError, "this span is open already: call weir.span() for each use");
        return NULL;
    }
    self->is_open = true;
    self->token = weir_span_start(self->name);
    return Py_NewRef(object);
}

static PyObject *span_exit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    span_object *self = (span_object *)object;
    (void)args, (void)count;
    WEIRPY_BEGIN_TURN(object);
    if (self->is_open)
        weir_span_finish(&self->token);
    self->is_open = false;
    WEIRPY_END_TURN();
    Py_RETURN_NONE;
}

static PyObject *span_again(PyObject *object, PyObject *unused)
{
    (void)unused;
    return (PyObject *)new_span(((span_object *)object)->name);
}

/* As a decorator. */
static PyObject *span_call(PyObject *object, PyObject *args, PyObject *named)
{
    PyObject *function;
    if (named && PyDict_Size(named) > 0) {
        PyErr_SetString(PyExc_TypeError, "a span decorates a function");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O", &function))
        return NULL;
    PyObject *module = PyImport_ImportModule("weir._spans");
    PyObject *decorated = module ? PyObject_CallMethod(module, "decorate", "OO", object, function) : NULL;
    Py_XDECREF(module);
    return decorated;
}

static void span_dealloc(PyObject *object)
{
    span_object *self = (span_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->is_open)
        weir_span_finish(&self->token);
    PyObject_Free(object);
    Py_DECREF(type);
}

WEIRPY_IN_TURN(span_enter, PyObject)

static PyMethodDef span_methods[] = {
    { "__enter__", in_turn_span_enter, METH_NOARGS, NULL },
    { "__exit__", (PyCFunction)(void (*)(void))span_exit, METH_FASTCALL, NULL },
    { "_again", span_again, METH_NOARGS, "Another span of the same name." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot span_slots[] = {
    { Py_tp_dealloc, span_dealloc },
    { Py_tp_call, span_call },
    { Py_tp_methods, span_methods },
    { Py_tp_doc, "A span: weir.span() makes it. It is a context manager, and decorates functions." },
    { 0, NULL },
};

static PyType_Spec span_spec = {
    .name = "weir._core.Span",
    .basicsize = sizeof(span_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = span_slots,
};

/* ---- markers and frames -------------------------------------------------------------------------------------------- */

static PyObject *marker(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    weir_span_name *name = name_from(args, count, keywords, "marker");
    (void)module;
    if (!name)
        return NULL;
    weir_marker(name, WEIR_MARKER_PROCESS);
    Py_RETURN_NONE;
}

static PyObject *frame(PyObject *module, PyObject *args)
{
    PyObject *category, *name, *number;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &category, &name, &number))
        return NULL;
    weir_span_name *of = find_name(category, name);
    if (!of)
        return NULL;
    if (number == Py_None) {
        weir_frame_end(of);
        Py_RETURN_NONE;
    }
    int64_t value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    weir_frame_begin(of, value);
    Py_RETURN_NONE;
}

/* ---- counters ------------------------------------------------------------------------------------------------------ */

typedef void counter_change(weir_counter *counter, size_t which, double value);

typedef struct counter_object {
    PyObject ob_base;
    weir_counter *counter;
    PyObject *values; /* a tuple of names; empty = one value without a name */
} counter_object;

static PyObject *counter(PyObject *module, PyObject *args)
{
    enum { MAX_VALUES = 16 };
    const char *category, *name, *texts[MAX_VALUES];
    PyObject *values;
    int is_total;
    (void)module;
    if (!PyArg_ParseTuple(args, "ssO!p", &category, &name, &PyTuple_Type, &values, &is_total))
        return NULL;
    Py_ssize_t count = PyTuple_Size(values);
    for (Py_ssize_t i = 0; i < count && i < MAX_VALUES; i++) {
        texts[i] = weirpy_utf8(PyTuple_GetItem(values, i));
        if (!texts[i])
            return NULL;
    }
    weir_counter *made = count > MAX_VALUES ? NULL
                         : is_total ? weir_counter_get_total(category, name, count ? texts : NULL, (size_t)count)
                                    : weir_counter_get(category, name, count ? texts : NULL, (size_t)count);
    if (!made)
        return PyErr_Format(
            PyExc_ValueError,
            "counter %s/%s: texts have 1 to 200 bytes, there are up to 16 values, and one name is used in "
            "one way only",
            category, name);
    counter_object *self = PyObject_New(counter_object, counter_type);
    if (!self)
        return NULL;
    self->counter = made;
    self->values = Py_NewRef(values);
    return (PyObject *)self;
}

/* -1 with an exception raised. */
static Py_ssize_t find_value(const counter_object *self, PyObject *name)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(self->values); i++) {
        int is_equal = PyObject_RichCompareBool(PyTuple_GetItem(self->values, i), name, Py_EQ);
        if (is_equal != 0)
            return is_equal > 0 ? i : -1;
    }
    PyErr_Format(PyExc_TypeError, "the counter has no value %R; it has %R", name, self->values);
    return -1;
}

static int change_value(const counter_object *self, Py_ssize_t which, PyObject *value, counter_change *change)
{
    double number = PyFloat_AsDouble(value);
    if (which < 0 || (number == -1 && PyErr_Occurred()))
        return -1;
    change(self->counter, (size_t)which, number);
    return 0;
}

static PyObject *change_counter(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                                counter_change *change)
{
    const counter_object *self = (const counter_object *)object;
    const Py_ssize_t num_named = keywords ? PyTuple_Size(keywords) : 0;
    const bool has_names = PyTuple_Size(self->values) > 0;
    if (has_names ? count > 0 || num_named == 0 : count != 1 || num_named > 0) {
        PyErr_Format(PyExc_TypeError,
                     has_names ? "give the values of the counter by their names: %R" : "give one number",
                     self->values);
        return NULL;
    }
    if (!has_names && change_value(self, 0, args[0], change))
        return NULL;
    for (Py_ssize_t i = 0; i < num_named; i++)
        if (change_value(self, find_value(self, PyTuple_GetItem(keywords, i)), args[count + i], change))
            return NULL;
    Py_RETURN_NONE;
}

static PyObject *counter_set(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return change_counter(object, args, count, keywords, weir_counter_set);
}

static PyObject *counter_add(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return change_counter(object, args, count, keywords, weir_counter_add);
}

static void counter_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(((counter_object *)object)->values);
    PyObject_Free(object);
    Py_DECREF(type);
}

#define WITH_NAMES (METH_FASTCALL | METH_KEYWORDS)

static PyMethodDef counter_methods[] = {
    { "set", (PyCFunction)(void (*)(void))counter_set, WITH_NAMES,
      "set(0.5), or set(train=0.5, test=0.7) of a counter with several values: sets them." },
    { "add", (PyCFunction)(void (*)(void))counter_add, WITH_NAMES,
      "add(1), or add(hits=1) of a counter with several values: adds the amounts." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot counter_slots[] = {
    { Py_tp_dealloc, counter_dealloc },
    { Py_tp_methods, counter_methods },
    { Py_tp_doc, "A value over time, or several: weir.counter() makes it." },
    { 0, NULL },
};

static PyType_Spec counter_spec = {
    .name = "weir._core.Counter",
    .basicsize = sizeof(counter_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = counter_slots,
};

/* ---- all of them --------------------------------------------------------------------------------------------------- */

static PyObject *dump_spans(PyObject *module, PyObject *args)
{
    int is_json, does_reset;
    (void)module;
    if (!PyArg_ParseTuple(args, "pp", &is_json, &does_reset))
        return NULL;
    weirpy_text text;
    weir_span_dump_options options = { .json = is_json, .reset = does_reset };
    FILE *out = weirpy_text_begin(&text);
    int status = WEIR_ENOMEM;
    Py_BEGIN_ALLOW_THREADS;
    if (out)
        status = weir_span_dump(out, &options);
    Py_END_ALLOW_THREADS;
    return weirpy_text_end(&text, status, NULL);
}

static PyObject *set_paused(PyObject *module, PyObject *is_paused)
{
    int wanted = PyObject_IsTrue(is_paused), status;
    (void)module;
    if (wanted < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = weir_set_paused(wanted);
    Py_END_ALLOW_THREADS;
    if (status != WEIR_OK)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "span", (PyCFunction)(void (*)(void))span, WITH_NAMES,
      "span(name, category=\"user\")\n--\n\n"
      "An interval of time in your code: `with weir.span(\"forward\"): …`, or `@weir.span(\"forward\")` before a "
      "function or a\n"
      "coroutine function. It is recorded under \"category/name\" in recordings and traces of running pipelines;\n"
      "weir.spans() has those of the process. Coroutines and threads do not disturb each other. Call it for each "
      "use: names\n"
      "are looked up once." },
    { "marker", (PyCFunction)(void (*)(void))marker, WITH_NAMES,
      "marker(name, category=\"user\")\n--\n\nA moment in time, in traces and counts." },
    { "_frame", frame, METH_VARARGS, NULL },
    { "_counter", counter, METH_VARARGS, NULL },
    { "_dump_spans", dump_spans, METH_VARARGS, NULL },
    { "_set_paused", set_paused, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

int weirpy_span_ready(PyObject *module)
{
    names = PyDict_New();
    adding = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    user = names ? PyUnicode_FromString("user") : NULL;
    user_names = user ? names_of(user) : NULL;
    span_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &span_spec, NULL);
    counter_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &counter_spec, NULL);
    if (!user_names || !adding || !span_type || !counter_type)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
