/* What a pipeline tells at one moment: accounts, a snapshot, its state, its failures. */
#include <unistd.h>

#include <string.h>

#include "python/core/pipeline.h"

/* Puts a new reference into the dictionary, which it takes over. 0; or -1 with an exception raised. */
static int put(PyObject *to, const char *name, PyObject *value)
{
    int rc = value ? PyDict_SetItemString(to, name, value) : -1;
    Py_XDECREF(value);
    return rc;
}

PyObject *weirpy_pipeline_account(PyObject *object, PyObject *args)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    const char *stage = NULL;
    weir_account account = { 0 };
    weir_error error = { 0 };
    if (!PyArg_ParseTuple(args, "|z", &stage))
        return NULL;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    if (!pipeline)
        return NULL;
    int rc = weir_pipeline_account(pipeline, stage, &account);
    weirpy_pipeline_leave(self);
    if (rc != WEIR_OK) {
        weir_error_set(&error, rc, 0, "no stage is called \"%s\"", stage ? stage : "");
        return weirpy_raise(&error);
    }
    return Py_BuildValue("{sKsKsKsKsKsKsKsK}", "taken", account.taken, "created", account.created, "passed_on",
                         account.passed_on, "skipped", account.skipped, "failed", account.failed, "dropped",
                         account.dropped, "merged", account.merged, "in_flight", account.in_flight);
}

/* ---- snapshots -------------------------------------------------------------------------------------------------------- */

static PyObject *stage_facts(const weir_snapshot *of, size_t at)
{
    const weir_stage_snapshot *stage = &of->stages[at];
    return Py_BuildValue("{sssssIsIsIsIsIsIsIsIsKsKsOsIsLsK}", "name", stage->name, "kind", stage->kind,
                         "concurrency", stage->concurrency, "slots", stage->slots, "running", stage->running,
                         "pending", stage->pending, "waiting_in", stage->waiting_in, "waiting_thread",
                         stage->waiting_thread, "waiting_turn", stage->waiting_turn, "waiting_out",
                         stage->waiting_out, "num_tasks", stage->num_tasks, "num_failures", stage->num_failures,
                         "ended", stage->ended ? Py_True : Py_False, "threads", stage->threads, "cpu_ns",
                         (long long)stage->cpu_ns, "num_work", stage->num_work);
}

static PyObject *queue_facts(const weir_snapshot *of, size_t at)
{
    const weir_queue_snapshot *queue = &of->queues[at];
    return Py_BuildValue("{sssIsIsKsIsKsKsK}", "name", queue->name, "capacity", queue->capacity, "depth",
                         queue->depth, "bytes", queue->bytes, "waiting_to_put", queue->waiting_to_put, "num_put",
                         queue->num_put, "num_items", queue->num_items, "capacity_bytes", queue->capacity_bytes);
}

static PyObject *task_facts(const weir_snapshot *of, size_t at)
{
    const weir_task_snapshot *task = &of->tasks[at];
    return Py_BuildValue("{sssNsLsO}", "stage", task->stage, "file", PyUnicode_DecodeFSDefault(task->label), "age_ns",
                         (long long)task->age_ns, "pending", task->pending ? Py_True : Py_False);
}

static PyObject *list_of(const weir_snapshot *of, size_t count,
                         PyObject *(*facts)(const weir_snapshot *of, size_t at))
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *value = facts(of, i);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *snapshot_facts(const weir_snapshot *of)
{
    PyObject *facts = Py_BuildValue("{sssIsOss}", "state", of->state, "threads", of->threads, "marks_steps",
                                    of->marks_steps ? Py_True : Py_False, "phase", of->phase);
    if (facts && (put(facts, "stages", list_of(of, of->num_stages, stage_facts)) ||
                  put(facts, "queues", list_of(of, of->num_queues, queue_facts)) ||
                  put(facts, "tasks", list_of(of, of->num_tasks, task_facts))))
        Py_CLEAR(facts);
    return facts;
}

/* NULL with an exception raised. With the pipeline in use. */
static weir_snapshot *take_snapshot(weir_pipeline *pipeline)
{
    weir_snapshot *snapshot = NULL;
    weir_error error = { 0 };
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_pipeline_snapshot(pipeline, &snapshot);
    Py_END_ALLOW_THREADS;
    if (rc == WEIR_OK)
        return snapshot;
    weir_error_set(&error, rc, 0, "snapshot: %s", weir_status_text(rc));
    weirpy_raise(&error);
    return NULL;
}

PyObject *weirpy_pipeline_snapshot(PyObject *object, PyObject *unused)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    (void)unused;
    if (!pipeline)
        return NULL;
    weir_snapshot *snapshot = take_snapshot(pipeline);
    PyObject *facts = snapshot ? snapshot_facts(snapshot) : NULL;
    weir_snapshot_free(snapshot);
    weirpy_pipeline_leave(self);
    return facts;
}

PyObject *weirpy_pipeline_state(PyObject *object, void *unused)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    (void)unused;
    if (self->run->process != getpid())
        return PyUnicode_FromString("of the parent process");
    if (self->is_closing || !self->pipeline)
        return PyUnicode_FromString("closed");
    weir_pipeline *pipeline = weirpy_pipeline_use(self);
    if (!pipeline)
        return NULL;
    weir_snapshot *snapshot = take_snapshot(pipeline);
    PyObject *state = snapshot ? PyUnicode_FromString(snapshot->state) : NULL;
    weir_snapshot_free(snapshot);
    weirpy_pipeline_leave(self);
    return state;
}

/* ---- failures --------------------------------------------------------------------------------------------------------- */

static weir_error error_of(const weir_failure *failure)
{
    weir_error error = { .status = failure->status, .library_code = failure->library_code };
    strncpy(error.stage, failure->name, sizeof error.stage - 1);
    strncpy(error.label, failure->label, sizeof error.label - 1);
    strncpy(error.message, failure->message, sizeof error.message - 1);
    return error;
}

/* A new reference; NULL with an exception raised. */
static PyObject *exception_of(const weir_kept_failure *kept)
{
    const weir_error error = error_of(kept->failure);
    PyObject *exception = weirpy_exception(&error);
    PyObject *number = PyLong_FromUnsignedLongLong(kept->failure->seq);
    PyObject *epoch = PyLong_FromUnsignedLongLong(kept->failure->epoch);
    if (exception && kept->cause)
        PyException_SetCause(exception, Py_NewRef((PyObject *)kept->cause));
    if (!exception || !number || !epoch || PyObject_SetAttrString(exception, "number", number) ||
        PyObject_SetAttrString(exception, "epoch", epoch))
        Py_CLEAR(exception);
    Py_XDECREF(number);
    Py_XDECREF(epoch);
    return exception;
}

/* The oldest are dropped beyond kept_failures. */
static int keep_failure(weirpy_pipeline *self, PyObject *exception)
{
    if (!exception || PyList_Append(self->failures, exception))
        return -1;
    Py_ssize_t above = PyList_Size(self->failures) - (Py_ssize_t)self->kept_failures;
    return above > 0 ? PyList_SetSlice(self->failures, 0, above, NULL) : 0;
}

int weirpy_pull_failures(weirpy_pipeline *self, weir_pipeline *pipeline)
{
    weir_kept_failure *kept = NULL;
    int rc = 0;
    while (rc == 0 && weir_pipeline_next_failure(pipeline, &kept) == WEIR_OK) {
        PyObject *exception = exception_of(kept);
        rc = keep_failure(self, exception);
        Py_XDECREF(exception);
        weir_kept_failure_free(kept);
    }
    return rc;
}

PyObject *weirpy_pipeline_failures(PyObject *object, PyObject *unused)
{
    weirpy_pipeline *self = (weirpy_pipeline *)object;
    (void)unused;
    if (!self->is_closing) {
        weir_pipeline *pipeline = weirpy_pipeline_use(self);
        if (!pipeline)
            return NULL;
        int rc = weirpy_pull_failures(self, pipeline);
        weirpy_pipeline_leave(self);
        if (rc)
            return NULL;
    }
    return PyList_GetSlice(self->failures, 0, PyList_Size(self->failures));
}

/* The exception of the failure that ended the run, if it was kept: the last one of that stage. A new
   reference; NULL = none. */
static PyObject *find_cause(weirpy_pipeline *self, const weir_error *error)
{
    for (Py_ssize_t i = PyList_Size(self->failures); i-- > 0;) {
        PyObject *exception = Py_XNewRef(PyList_GetItem(self->failures, i));
        PyObject *stage = exception ? PyObject_GetAttrString(exception, "stage") : NULL;
        bool is_it = stage && PyUnicode_CompareWithASCIIString(stage, error->stage) == 0;
        Py_XDECREF(stage);
        PyErr_Clear();
        if (is_it)
            return exception;
        Py_XDECREF(exception);
    }
    return NULL;
}

/* Says of the run's failure which item it was. */
static void name_item(PyObject *exception, PyObject *of_item)
{
    static const char *const names[] = { "file", "number", "epoch" };
    PyObject *cause = PyException_GetCause(of_item);
    if (cause)
        PyException_SetCause(exception, cause);
    for (int i = 0; i < 3; i++) {
        PyObject *value = PyObject_GetAttrString(of_item, names[i]);
        if (!value || PyObject_SetAttrString(exception, names[i], value))
            PyErr_Clear();
        Py_XDECREF(value);
    }
}

PyObject *weirpy_raise_failed(weirpy_pipeline *self, weir_pipeline *pipeline)
{
    weir_error error = { 0 };
    if (PyErr_Occurred() || weirpy_pull_failures(self, pipeline))
        return NULL;
    weir_pipeline_error(pipeline, NULL, &error);
    PyObject *of_item = find_cause(self, &error);
    PyObject *exception = weirpy_exception(&error);
    if (exception && of_item)
        name_item(exception, of_item);
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    Py_XDECREF(of_item);
    return NULL;
}
