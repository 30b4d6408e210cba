/*
 * Lines of weir's log, as those of Python's logger "weir".
 *
 * Any thread of weir may log. Such a thread must not run Python code for a line: it would wait for the GIL, and a notebook shows
 * what foreign threads print in some other cell. So lines wait in a queue, and calls from Python take them. The queue is there
 * from the import on: it costs nothing before the first line, and a pipeline may not be without it.
 *
 * Nothing takes lines between two bytecodes (Py_AddPendingCall): a handler with a lock would wait for itself, as in a signal
 * handler. What still waits when a signal or _exit() ends the process is lost; at the end of the interpreter it is taken, and
 * later lines go to stderr.
 */
#include <stdatomic.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/status.h>

#include "python/core/core.h"

enum { MAX_LINE = 4096 };

static atomic_bool is_draining; /* by a call that is not done: of another thread, or of a handler that calls weir */
static int64_t level_ns;        /* when the level was looked at. Of the call that drains, as the next one */
static PyObject *logger;        /* Python's, for ever; NULL = not found yet */

/* Python's levels are ten apart. */
static long python_level(weir_log_level level)
{
    return 40 - 10 * (long)level;
}

/* Exceptions of handlers have no place to go to; Ctrl-C must not be lost. */
void weirpy_report_exception(void)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_Clear();
        PyErr_SetInterrupt();
    } else {
        PyErr_WriteUnraisable(NULL);
    }
}

static bool emit_line(weir_log_level level, const char *text, uint64_t lost)
{
    PyObject *module = PyImport_ImportModule("weir._log");
    PyObject *line = module ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape") : NULL;
    PyObject *done =
        line ? PyObject_CallMethod(module, "emit", "lOK", python_level(level), line, (unsigned long long)lost) : NULL;
    bool is_done = done;
    if (!is_done)
        weirpy_report_exception();
    Py_XDECREF(done);
    Py_XDECREF(line);
    Py_XDECREF(module);
    return is_done;
}

/* NULL = nothing has imported logging, or an exception is raised. */
static PyObject *find_logger(void)
{
    PyObject *name = PyUnicode_FromString("logging");
    PyObject *logging = name ? PyImport_GetModule(name) : NULL;
    PyObject *found = logging ? PyObject_CallMethod(logging, "getLogger", "s", "weir") : NULL;
    Py_XDECREF(logging);
    Py_XDECREF(name);
    return found;
}

/* Lines that the logger would drop are not made. If nothing has imported logging, nobody has set a level. */
static void follow_level(void)
{
    enum { BETWEEN_NS = 100 * 1000 * 1000 };
    int64_t now_ns = weir_clock_ns();
    if (level_ns && now_ns - level_ns < BETWEEN_NS)
        return;
    level_ns = now_ns;
    if (!logger)
        logger = find_logger();
    PyObject *level = logger ? PyObject_CallMethod(logger, "getEffectiveLevel", NULL) : NULL;
    long least = level ? PyLong_AsLong(level) : -1;
    if (PyErr_Occurred())
        weirpy_report_exception();
    else if (level)
        weir_log_set_level(least <= 10   ? WEIR_LOG_DEBUG
                           : least <= 20 ? WEIR_LOG_INFO
                           : least <= 30 ? WEIR_LOG_WARNING
                                         : WEIR_LOG_ERROR);
    Py_XDECREF(level);
}

void weirpy_drain_log(void)
{
    char line[MAX_LINE];
    weir_log_level level;
    uint64_t lost;
    PyObject *type, *value, *traceback;
    if (atomic_exchange(&is_draining, true))
        return;
    PyErr_Fetch(&type, &value, &traceback); /* the caller's */
    follow_level();
    while (weir_log_take(&level, line, sizeof line, &lost, 0) == WEIR_OK)
        if (!emit_line(level, line, lost))
            break;
    PyErr_Restore(type, value, traceback);
    atomic_store(&is_draining, false);
}

static PyObject *drain_log(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    weirpy_drain_log();
    Py_RETURN_NONE;
}

/* At the end of the interpreter. Threads of weir may still log. */
static PyObject *end_log(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    weir_log_set_function(NULL, NULL);
    weirpy_drain_log();
    atomic_store(&is_draining, true); /* no Python code for lines from now on */
    Py_RETURN_NONE;
}

/* For tests: a line, as a thread of weir would write it. */
static PyObject *write_line(PyObject *module, PyObject *args)
{
    int level;
    const char *line;
    (void)module;
    if (!PyArg_ParseTuple(args, "iy", &level, &line))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    weir_log((weir_log_level)level, "%s", line);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "drain_log", drain_log, METH_NOARGS, "Lines of weir's log that wait go to Python's logging now." },
    { "_end_log", end_log, METH_NOARGS, NULL },
    { "_write_line", write_line, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int weirpy_log_ready(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions))
        return -1;
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *end = atexit ? PyObject_GetAttrString(module, "_end_log") : NULL;
    PyObject *done = end ? PyObject_CallMethod(atexit, "register", "O", end) : NULL;
    int rc = done ? 0 : -1;
    Py_XDECREF(done);
    Py_XDECREF(end);
    Py_XDECREF(atexit);
    if (rc == 0)
        weir_log_queue_start(0);
    return rc;
}
