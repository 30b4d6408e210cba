/*
 * What both extensions use: errors as exceptions, structs filled from keyword arguments, and the table by which weir._media
 * reaches weir._core. Internal. Unless it says otherwise, everything here is called with the GIL held.
 */
#ifndef PYTHON_COMMON_BINDING_H
#define PYTHON_COMMON_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/clock.h>
#include <weir/engine.h>

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* A new exception that says what *error says: weir.Error, or the one of its subclasses that is also Python's own exception for
   it. NULL with another exception set: out of memory. */
PyObject *weirpy_exception(const weir_error *error);

/* Raises it. If an exception is already set, such as KeyboardInterrupt, that one stays. Returns NULL. */
PyObject *weirpy_raise(const weir_error *error);

/* A float; None if the number is not finite: it is not known. */
PyObject *weirpy_known(double number);

/* ---- taking turns ------------------------------------------------------------------------------------------------- */

/*
 * Where Python is built without the GIL, nothing keeps two threads from running at once. What is "with the GIL" then stands
 * between these two: threads take turns for each object, and, as with the GIL, not while one has given up its thread state
 * (Py_BEGIN_ALLOW_THREADS). In all other builds they do nothing. A return between them is not allowed.
 */
#ifdef Py_GIL_DISABLED
#define WEIRPY_BEGIN_TURN(object) Py_BEGIN_CRITICAL_SECTION(object)
#define WEIRPY_END_TURN()         Py_END_CRITICAL_SECTION()
#else
#define WEIRPY_BEGIN_TURN(object) {
#define WEIRPY_END_TURN()         }
#endif

/* Defines in_turn_NAME: the method NAME, of which threads take turns for each object. Of METH_NOARGS, METH_O, METH_VARARGS, or
   (argument void) a getter. */
#define WEIRPY_IN_TURN(name, argument_type) \
    static PyObject *in_turn_##name(PyObject *object, \
                                    argument_type *argument) /* NOLINT(bugprone-macro-parentheses): a type */ \
    { \
        PyObject *result; \
        WEIRPY_BEGIN_TURN(object); \
        result = name(object, argument); \
        WEIRPY_END_TURN(); \
        return result; \
    }

/* When a module is made: it does not need the GIL. 0, or -1 with an exception raised. */
int weirpy_needs_no_gil(PyObject *module);

/* ---- waiting ------------------------------------------------------------------------------------------------------ */

/* Signals are looked at this often while a call waits: a person does not notice it. */
#define WEIRPY_SLICE_NS (50 * WEIR_MILLISECOND)

/* ---- structs from dictionaries ----------------------------------------------------------------------------------- */

typedef enum weirpy_kind {
    WEIRPY_BOOL,
    WEIRPY_U8,
    WEIRPY_U32,
    WEIRPY_I32,
    WEIRPY_U64,
    WEIRPY_I64,
    WEIRPY_SIZE,
    WEIRPY_DOUBLE,
    WEIRPY_DOUBLES, /* `count` of them */
    WEIRPY_TEXT, /* a const char *, which lives as long as the Python object does: a str, or bytes of any encoding */
    WEIRPY_WORD, /* an enum, by its word */
} weirpy_kind;

/* The words of an enum, in the order of its values from 0; ends with NULL. */
typedef const char *const weirpy_words[];

/* A field of a struct, under its own name. */
typedef struct weirpy_field {
    const char *name;
    size_t offset;
    weirpy_kind kind;
    uint32_t count;           /* WEIRPY_DOUBLES */
    const char *const *words; /* WEIRPY_WORD */
} weirpy_field;

#define WEIRPY_FIELD(type, field, what) \
    { \
        .name = #field, .offset = offsetof(type, field), .kind = (what) \
    }
#define WEIRPY_ENUM(type, field, list) \
    { \
        .name = #field, .offset = offsetof(type, field), .kind = WEIRPY_WORD, .words = (list) \
    }

/* Sets the fields that the dictionary names; None leaves a field as it is. `fields` ends with a zeroed one. what: "picture", for
   messages. The dictionary is borrowed, and must live as long as the texts are used (NULL or None = nothing is set). 0; or -1
   with TypeError, ValueError or OverflowError raised. */
int weirpy_fill(void *to, const weirpy_field *fields, PyObject *values, const char *what);

/* The text of a str, which it lives as long as; NULL with an exception raised: it may have no zero character, where C would cut it. */
const char *weirpy_utf8(PyObject *text);

/* The value of a word. 0; or -1 with ValueError raised, which lists the words. */
int weirpy_word(PyObject *word, const char *const *words, const char *what, int *value);

/* ---- what weir._core gives to weir._media ------------------------------------------------------------------------ */

/* Makes the Python object of an item, which it owns from now on: the item is empty afterwards. NULL with an exception raised:
   the item is as it was. */
typedef PyObject *weirpy_wrap(weir_item *item);

/* The other way round: fills *out, except its type, with data of which it owns a reference. 0; 1 = the object is of
   another kind; or -1 with an exception raised. */
typedef int weirpy_unwrap(PyObject *object, weir_item *out);

typedef struct weirpy_core {
    /* Items of that type, a static text, become what wrap() makes of them. 0, or -1 with an exception raised. */
    int (*register_type)(const char *type, weirpy_wrap *wrap);
    /* A stage of C for weir.Pipeline: a source, or an operation. The config is `config_size` bytes. The object owns
       it from now on and frees it with free(). Before that, free_config() frees what the config points to (NULL =
       nothing). `kept` is a Python object that must live as long as pipelines with the stage (NULL = none). NULL with
       an exception raised: config is freed. */
    PyObject *(*new_stage)(const weir_op *op, bool is_source, void *config, size_t config_size,
                           void (*free_config)(void *config), PyObject *kept);
    /* For should_stop functions of calls without the GIL: true if a signal handler has raised an exception, which is then set
       for the calling thread. Asks Python a few times in a second only. Only the main thread handles signals. */
    bool (*is_interrupted)(int64_t *last_ns);
    /* Lines of weir's log go to Python's logging: before a function returns that has waited for weir. An exception that is set
       stays. */
    void (*drain_log)(void);
    /* Before a stage that takes this type, a static text, objects of functions become what unwrap() makes of them. 0, or -1 with an
       exception raised. */
    int (*register_unwrap)(const char *type, weirpy_unwrap *unwrap);
    /* Any thread, without the GIL or with it. Takes the GIL; false = the interpreter ends, and no object may be
       touched any more. */
    bool (*gil_take)(PyGILState_STATE *state);
    void (*gil_give)(PyGILState_STATE state);
} weirpy_core;

#define WEIRPY_CORE_CAPSULE "weir._core._table"

#endif
