/* weir.summary(), explain() and limit(): what a recording says, as text and as a dict. */
#include <string.h>

#include <weir/summary.h>
#include <weir/verdict.h>

#include "python/core/core.h"
#include "python/core/table.h"

enum { MAX_FAILURES = 10 }; /* named below a summary, as weir record does */

/* Which selection of which recording. */
typedef struct question {
    PyObject *path; /* bytes */
    weir_filter filter;
    weir_recording *recording;
    weir_error error;
} question;

/* WEIR_OK; or a failure, which is raised. Close it even then. */
static int open_question(question *of, PyObject *args)
{
    PyObject *values = NULL;
    int status;
    *of = (question){ 0 };
    if (!PyArg_ParseTuple(args, "O&|O", PyUnicode_FSConverter, &of->path, &values) ||
        weirpy_fill_filter(&of->filter, values))
        return WEIR_EINVAL;
    const char *path = PyBytes_AsString(of->path);
    Py_BEGIN_ALLOW_THREADS;
    status = weir_recording_open(path, &of->recording, &of->error);
    Py_END_ALLOW_THREADS;
    if (status != WEIR_OK)
        weirpy_raise(&of->error);
    return status;
}

static void close_question(question *of)
{
    Py_BEGIN_ALLOW_THREADS;
    weir_recording_close(of->recording);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(of->path);
    weirpy_drain_log();
}

/* ---- texts ------------------------------------------------------------------------------------------------------------ */

typedef int question_writer(question *of, unsigned what, FILE *out);

static int write_summary(question *of, unsigned what, FILE *out)
{
    (void)what;
    int status = weir_summary_write(out, of->recording, &of->filter, NULL, weir_verdict_write_limit, &of->error);
    return status == WEIR_OK ? weir_summary_write_failures(out, of->recording, &of->filter, MAX_FAILURES, &of->error)
                             : status;
}

static int write_verdict(question *of, unsigned what, FILE *out)
{
    weir_verdict *verdict;
    int status = weir_verdict_explain(of->recording, &of->filter, &verdict, &of->error);
    if (status != WEIR_OK)
        return status;
    bool has_laps = verdict->num_laps > 0 || verdict->kind != WEIR_VERDICT_UNKNOWN;
    if (has_laps)
        weir_verdict_write(verdict, what, 0, out);
    weir_verdict_free(verdict);
    return has_laps ? WEIR_OK
                    : weir_error_set(&of->error, WEIR_ENOTFOUND, 0, "nothing that matches was recorded yet");
}

static PyObject *text_of(PyObject *args, unsigned what, question_writer *write)
{
    question of;
    weirpy_text text;
    PyObject *object = NULL;
    if (open_question(&of, args) == WEIR_OK) {
        FILE *out = weirpy_text_begin(&text);
        int status = WEIR_ENOMEM;
        Py_BEGIN_ALLOW_THREADS;
        if (out)
            status = write(&of, what, out);
        else
            weir_error_set(&of.error, status, 0, "out of memory");
        Py_END_ALLOW_THREADS;
        object = weirpy_text_end(&text, status, &of.error);
    }
    close_question(&of);
    return object;
}

static PyObject *summary(PyObject *module, PyObject *args)
{
    (void)module;
    return text_of(args, 0, write_summary);
}

static PyObject *explain(PyObject *module, PyObject *args)
{
    (void)module;
    return text_of(args, 0, write_verdict);
}

static PyObject *explain_all(PyObject *module, PyObject *args)
{
    (void)module;
    return text_of(args, WEIR_VERDICT_ALL, write_verdict);
}

/* ---- the verdict as a dict --------------------------------------------------------------------------------------------- */

static PyObject *text_or_none(const char *text)
{
    return *text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

static PyObject *advice_object(const weir_verdict *verdict, size_t at)
{
    const weir_verdict_advice *a = &verdict->advice[at];
    return Py_BuildValue(
        "{sN sN sN s(NN) sN sN sN sN sN sN sI sI sO sO}",                                                /* */
        "change", text_or_none(a->change), "gain", weirpy_known(a->gain),                                /* */
        "gain_error", weirpy_known(a->error), "gain_range", weirpy_known(a->low), weirpy_known(a->high), /* */
        "items_per_s", weirpy_known(a->items_per_s),                                                     /* */
        "more_cpus", weirpy_known(a->more_cpus), "more_bytes", weirpy_known(a->more_bytes),              /* */
        "next", text_or_none(a->next), "assumes", text_or_none(a->assumes),                              /* */
        "stage", text_or_none(a->stage), "slots", a->slots, "threads", a->threads,                       /* */
        "is_measured", a->is_measured ? Py_True : Py_False, "changes_job", a->changes_job ? Py_True : Py_False);
}

static PyObject *evidence_object(const weir_verdict *verdict, size_t at)
{
    return text_or_none(verdict->evidence[at]);
}

static PyObject *list_of(const weir_verdict *verdict, size_t count, PyObject *(*make)(const weir_verdict *, size_t))
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *value = make(verdict, i);
        if (!value)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, value);
    }
    return list;
}

static PyObject *verdict_object(const weir_verdict *v)
{
    return Py_BuildValue("{ss sN sN sd ss sN sN sN sN sN sN sL sN sN}",                                       /* */
                         "kind", weir_verdict_word(v->kind),                                                  /* */
                         "name", text_or_none(v->name), "sentence", text_or_none(v->sentence),                /* */
                         "confidence", v->confidence, "certainty", weir_verdict_certainty(v),                 /* */
                         "other_name", text_or_none(v->other_name), "other", text_or_none(v->other_sentence), /* */
                         "missing", text_or_none(v->missing), "items_per_s", weirpy_known(v->items_per_s),    /* */
                         "start_time", weirpy_known((double)v->start_unix_ns / 1e9),                          /* */
                         "end_time", weirpy_known((double)v->end_unix_ns / 1e9),                              /* */
                         "num_laps", (long long)v->num_laps,                                                  /* */
                         "evidence", list_of(v, v->num_evidence, evidence_object),                            /* */
                         "advice", list_of(v, v->num_advice, advice_object));
}

static PyObject *limit(PyObject *module, PyObject *args)
{
    question of;
    weir_verdict *verdict = NULL;
    PyObject *object = NULL;
    (void)module;
    if (open_question(&of, args) == WEIR_OK) {
        int status;
        Py_BEGIN_ALLOW_THREADS;
        status = weir_verdict_explain(of.recording, &of.filter, &verdict, &of.error);
        Py_END_ALLOW_THREADS;
        object = status == WEIR_OK ? verdict_object(verdict) : weirpy_raise(&of.error);
        weir_verdict_free(verdict);
    }
    close_question(&of);
    return object;
}

/* ---- runs -------------------------------------------------------------------------------------------------------------- */

typedef struct run_states {
    PyObject *list;
} run_states;

static int add_state(void *self, const weir_record *record, weir_error *error)
{
    PyObject *list = ((run_states *)self)->list;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *name = PyUnicode_FromString(weir_run_state_name(weir_run_state_of(&record->run)));
    bool is_added = name && PyList_Append(list, name) == 0;
    Py_XDECREF(name);
    PyGILState_Release(gil);
    return is_added ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* In the order of the table of runs. */
static PyObject *list_run_states(PyObject *module, PyObject *args)
{
    question of;
    run_states states = { PyList_New(0) };
    int status = WEIR_ENOMEM;
    (void)module;
    if (open_question(&of, args) == WEIR_OK && states.list) {
        Py_BEGIN_ALLOW_THREADS;
        status = weir_recording_each(of.recording, WEIR_RECORD_RUN, &of.filter, add_state, &states, &of.error);
        Py_END_ALLOW_THREADS;
        if (status != WEIR_OK)
            weirpy_raise(&of.error);
    }
    close_question(&of);
    if (status != WEIR_OK)
        Py_CLEAR(states.list);
    return states.list;
}

static PyMethodDef functions[] = {
    { "summary", summary, METH_VARARGS, NULL },
    { "explain", explain, METH_VARARGS, NULL },
    { "explain_all", explain_all, METH_VARARGS, NULL },
    { "limit", limit, METH_VARARGS, NULL },
    { "run_states", list_run_states, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int weirpy_verdict_ready(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
