/* What the recording of a pipeline says: totals, and what limits the run. Readers work without the GIL. */
#include <stdio.h>

#include <weir/verdict.h>

#include "python/core/pipeline.h"

/* The names of the lists of `weir query`. */
static const char *const subject_names[WEIR_NUM_SUBJECTS] = {
    "tasks", "flow", "queues", "pools", "process", "machine", "spans", "counters",
};

/* Reads the recording, while the pipeline runs or after it. Without the GIL. */
typedef int reading(weir_recording *recording, const weir_filter *filter, void *result, weir_error *error);

static int read_complete(weirpy_run *run, reading *read, void *result, weir_error *error)
{
    const weir_filter filter = { .run_id = run->run_id };
    int rc = WEIR_ENOTFOUND;
    pthread_mutex_lock(&run->reader_lock);
    if (run->recording)
        rc = read(run->recording, &filter, result, error);
    else
        weir_error_set(error, rc, 0, "nothing is recorded: build the pipeline with in_memory or record");
    pthread_mutex_unlock(&run->reader_lock);
    return rc;
}

/* If the observers are so slow, what is read does not reach up to now. */
static const int64_t lap_timeout_ns = 1 * WEIR_SECOND;

static int read_running(weirpy_run *run, weir_pipeline *pipeline, reading *read, void *result, weir_error *error)
{
    const weir_filter filter = { .run_id = run->run_id };
    weir_sqlite_writer *writer = run->memory_writer ? run->memory_writer : run->file_writer;
    weir_recording *recording = NULL;
    if (!writer)
        return weir_error_set(error, WEIR_ENOTFOUND, 0,
                              "nothing is recorded: build the pipeline with in_memory or record");
    weir_pipeline_end_lap(pipeline, lap_timeout_ns);
    int rc = weir_recording_open_writer(writer, &recording, error);
    if (rc == WEIR_OK)
        rc = read(recording, &filter, result, error);
    weir_recording_close(recording);
    return rc;
}

/* With the GIL. 0; or -1 with an exception raised. */
static int read_run(weirpy_pipeline *self, reading *read, void *result)
{
    weir_error error = { 0 };
    int rc;
    bool is_freed = false;
    if (self->is_closing) {
        pthread_mutex_lock(&self->run->lock);
        is_freed = self->run->is_freed;
        pthread_mutex_unlock(&self->run->lock);
    }
    if (self->is_closing && !is_freed) {
        PyErr_SetString(PyExc_ValueError, "a function of the pipeline still runs: its recording is not complete yet");
        return -1;
    }
    weir_pipeline *pipeline = is_freed ? NULL : weirpy_pipeline_use(self);
    if (!is_freed && !pipeline)
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    rc = is_freed ? read_complete(self->run, read, result, &error)
                  : read_running(self->run, pipeline, read, result, &error);
    Py_END_ALLOW_THREADS;
    if (!is_freed)
        weirpy_pipeline_leave(self);
    if (rc == WEIR_OK)
        return 0;
    weir_error_set(&error, rc, 0, "%s", weir_status_text(rc));
    weirpy_raise(&error);
    return -1;
}

/* ---- totals ----------------------------------------------------------------------------------------------------------- */

static int read_totals(weir_recording *recording, const weir_filter *filter, void *totals, weir_error *error)
{
    return weir_totals_read(recording, filter, &(weir_grouping){ .by = WEIR_BY_NAME }, totals, error);
}

/* None = not known, or nothing happened. */
static PyObject *total_values(const weir_total *total)
{
    size_t count = 0;
    const weir_measure *measures = weir_subject_measures(total->subject, &count);
    PyObject *values = PyDict_New();
    for (size_t i = 0; values && i < count; i++) {
        double value = weir_total_value(total, &measures[i]);
        PyObject *number = weirpy_known(value);
        if (!number || PyDict_SetItemString(values, measures[i].name, number))
            Py_CLEAR(values);
        Py_XDECREF(number);
    }
    return values;
}

static PyObject *list_values(const weir_total_list *list)
{
    PyObject *values = PyDict_New();
    for (size_t i = 0; values && i < list->count; i++) {
        PyObject *of_one = total_values(&list->all[i]);
        if (!of_one || PyDict_SetItemString(values, list->all[i].key.name, of_one))
            Py_CLEAR(values);
        Py_XDECREF(of_one);
    }
    return values;
}

PyObject *weirpy_pipeline_stats(PyObject *object, PyObject *unused)
{
    weir_totals totals = { 0 };
    (void)unused;
    if (read_run((weirpy_pipeline *)object, read_totals, &totals))
        return NULL;
    PyObject *stats = PyDict_New();
    for (int i = 0; stats && i < WEIR_NUM_SUBJECTS; i++) {
        PyObject *values = list_values(&totals.of[i]);
        if (!values || PyDict_SetItemString(stats, subject_names[i], values))
            Py_CLEAR(stats);
        Py_XDECREF(values);
    }
    weir_totals_free(&totals);
    return stats;
}

/* ---- the verdict ------------------------------------------------------------------------------------------------------ */

/* With or without the GIL; weirpy_text_end() is for later. */
static int write_verdict(const weir_verdict *verdict, weirpy_text *text)
{
    FILE *out = weirpy_text_begin(text);
    if (out)
        weir_verdict_write(verdict, 0, 0, out);
    return out ? WEIR_OK : WEIR_ENOMEM;
}

static int read_verdict(weir_recording *recording, const weir_filter *filter, void *text, weir_error *error)
{
    weir_verdict *verdict = NULL;
    int rc = weir_verdict_explain(recording, filter, &verdict, error);
    if (rc == WEIR_OK)
        rc = write_verdict(verdict, text);
    weir_verdict_free(verdict);
    return rc;
}

/* setting_ns: how long a setting runs, at most; 0 = the default. Without the GIL. */
static int measure_verdict(weir_pipeline *pipeline, int64_t setting_ns, weirpy_text *text)
{
    const weir_live_options options = { .setting_ns = setting_ns, .slice_ns = setting_ns / 10 };
    weir_verdict *verdict = NULL;
    int rc = weir_explain_live(pipeline, &options, &verdict, NULL);
    if (rc == WEIR_OK)
        rc = write_verdict(verdict, text);
    weir_verdict_free(verdict);
    return rc;
}

static int explain_live(weirpy_pipeline *self, int64_t setting_ns, weirpy_text *text)
{
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    weir_error error = { 0 };
    int rc;
    if (!pipeline)
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    rc = measure_verdict(pipeline, setting_ns, text);
    Py_END_ALLOW_THREADS;
    weirpy_pipeline_leave(self);
    if (rc == WEIR_OK)
        return 0;
    weir_error_set(&error, rc, 0, "%s",
                   rc == WEIR_EOF            ? "the run ended before anything was measured"
                   : rc == WEIR_EUNSUPPORTED ? "nobody takes items: iterate in another thread meanwhile"
                                             : weir_status_text(rc));
    weirpy_raise(&error);
    return -1;
}

PyObject *weirpy_pipeline_explain(PyObject *object, PyObject *args)
{
    weirpy_text text = { 0 };
    int is_live = 0;
    long long setting_ns = 0;
    if (!PyArg_ParseTuple(args, "|pL", &is_live, &setting_ns))
        return NULL;
    int rc = is_live ? explain_live((weirpy_pipeline *)object, setting_ns, &text)
                     : read_run((weirpy_pipeline *)object, read_verdict, &text);
    return rc == 0 ? weirpy_text_end(&text, WEIR_OK, NULL) : NULL;
}
