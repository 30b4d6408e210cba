/* Building: stages, a sink and options as Python has them become a pipeline that runs. */
#include <math.h>
#include <string.h>

#include <weir/batch.h>
#include <weir/clock.h>
#include <weir/observer.h>

#include "python/core/pipeline.h"

static const char *const orders[] = { "completion", "input", NULL };
static const char *const checkpoints[] = { "off", "delivered", "done", NULL };

static const weirpy_field stage_fields[] = {
    WEIRPY_FIELD(weir_stage_options, name, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_stage_options, concurrency, WEIRPY_U32),
    WEIRPY_FIELD(weir_stage_options, queue_items, WEIRPY_U32),
    WEIRPY_FIELD(weir_stage_options, queue_bytes, WEIRPY_U64),
    WEIRPY_FIELD(weir_stage_options, threads, WEIRPY_U32),
    WEIRPY_ENUM(weir_stage_options, output_order, orders),
    WEIRPY_FIELD(weir_stage_options, task_deadline_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_stage_options, epochs, WEIRPY_U32),
    WEIRPY_FIELD(weir_stage_options, stats_interval_ns, WEIRPY_I64),
    { 0 },
};

static const weirpy_field pipeline_fields[] = {
    WEIRPY_FIELD(weir_pipeline_options, threads, WEIRPY_U32),
    WEIRPY_FIELD(weir_pipeline_options, id, WEIRPY_U32),
    WEIRPY_FIELD(weir_pipeline_options, stats_interval_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_pipeline_options, stall_warning_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_pipeline_options, no_statistics, WEIRPY_BOOL),
    WEIRPY_ENUM(weir_pipeline_options, checkpoints, checkpoints),
    WEIRPY_FIELD(weir_pipeline_options, trace_off, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_pipeline_options, trace_records, WEIRPY_U32),
    WEIRPY_FIELD(weir_pipeline_options, steps_per_lap, WEIRPY_U32),
    WEIRPY_FIELD(weir_pipeline_options, retry_failed, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_pipeline_options, kept_failures, WEIRPY_U32),
    WEIRPY_FIELD(weir_pipeline_options, begin_epoch, WEIRPY_U64),
    { 0 },
};

static const weirpy_field record_fields[] = {
    WEIRPY_FIELD(weir_sqlite_options, buffer_entries, WEIRPY_U32),
    WEIRPY_FIELD(weir_sqlite_options, flush_interval_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_sqlite_options, retry_limit_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_sqlite_options, command, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_sqlite_options, node_id, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_sqlite_options, rank, WEIRPY_I32),
    WEIRPY_FIELD(weir_sqlite_options, world, WEIRPY_U32),
    WEIRPY_FIELD(weir_sqlite_options, job, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_sqlite_options, stacks, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_sqlite_options, keep_ns, WEIRPY_I64),
    { 0 },
};

static const weirpy_field trace_fields[] = {
    WEIRPY_FIELD(weir_trace_options, run, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_trace_options, node_id, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_trace_options, rank, WEIRPY_I32),
    WEIRPY_FIELD(weir_trace_options, local_rank, WEIRPY_I32),
    WEIRPY_FIELD(weir_trace_options, world_size, WEIRPY_U32),
    WEIRPY_FIELD(weir_trace_options, overwrite, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_trace_options, max_bytes, WEIRPY_U64),
    { 0 },
};

/* What is not a field of a struct. Borrowed from the options; NULL = not given. */
typedef struct own_options {
    PyObject *max_failures, *resume, *record, *record_options, *in_memory, *trace, *trace_options;
} own_options;

static const weirpy_field no_fields[] = { { 0 } };

/* Takes the value of a key out of the dictionary; `all` keeps it alive. */
static PyObject *take(PyObject *all, PyObject *rest, const char *key)
{
    PyObject *value = PyDict_GetItemString(all, key);
    if (!value)
        return NULL;
    if (PyDict_DelItemString(rest, key))
        PyErr_Clear();
    return value == Py_None ? NULL : value;
}

/* ---- how many failures are tolerated -------------------------------------------------------------------------------- */

/* A count, -1 = any number, or a share below 1. */
static int fill_max_failures(weir_max_failures *to, PyObject *value, const char *what)
{
    const uint32_t parts = 1000000;
    if (!value)
        return 0;
    if (PyFloat_Check(value)) {
        double share = PyFloat_AsDouble(value);
        if (share > 0 && share <= 1) {
            *to = (weir_max_failures){ .kind = WEIR_FAILURES_RATE,
                                       .num = (uint32_t)lround(share * parts),
                                       .den = parts };
            return 0;
        }
    } else {
        long long count = PyLong_AsLongLong(value);
        if (count == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s: max_failures is %R; it is a count, -1 for any number, or a share",
                         what, value);
            return -1;
        }
        if (count >= -1) {
            *to = (weir_max_failures){ .kind = WEIR_FAILURES_COUNT, .count = count };
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError,
                 "%s: max_failures is %R; it is a count, -1 for any number, or a share between 0.0 and 1.0", what,
                 value);
    return -1;
}

static int fill_stage(weir_stage_options *options, PyObject *values, const char *what)
{
    if (!values || values == Py_None || !PyDict_Check(values))
        return weirpy_fill(options, stage_fields, values, what);
    PyObject *rest = PyDict_Copy(values);
    PyObject *max_failures = rest ? take(values, rest, "max_failures") : NULL;
    int rc = rest ? fill_max_failures(&options->max_failures, max_failures, what) : -1;
    if (rc == 0)
        rc = weirpy_fill(options, stage_fields, rest, what);
    Py_XDECREF(rest);
    return rc;
}

/* ---- stages --------------------------------------------------------------------------------------------------------- */

/* The stage at a place of the list; NULL = there is none, or none of that kind. */
static const weirpy_stage *stage_at(PyObject *stages, Py_ssize_t at)
{
    PyObject *pair = at < PyTuple_Size(stages) ? PyTuple_GetItem(stages, at) : NULL;
    return pair ? weirpy_stage_of(PyTuple_GetItem(pair, 0)) : NULL;
}

/* Behind the junction where the paths meet that this place is in. */
static Py_ssize_t end_of_paths(PyObject *stages, Py_ssize_t at)
{
    int depth = 0;
    for (const weirpy_stage *stage; (stage = stage_at(stages, at)); at++) {
        depth += stage->op == &weirpy_route_op;
        if (stage->op == &weirpy_merge_op || (stage->op == &weirpy_join_op && depth-- == 0))
            return at + 1;
    }
    return at;
}

/* Where items go that arrive at this place: past batches, which pass them on as they are, also out of them again; and
   from the end of a path or chain. */
static Py_ssize_t next_taker(PyObject *stages, Py_ssize_t at)
{
    int num_batches = 0;
    for (const weirpy_stage *stage; (stage = stage_at(stages, at));) {
        bool is_unpacked = stage->op == &weir_disaggregate && num_batches > 0;
        num_batches += (stage->op == &weir_aggregate) - is_unpacked;
        if (is_unpacked || stage->op == &weir_aggregate || stage->op == &weirpy_join_op ||
            stage->op == &weirpy_merge_op)
            at++;
        else if (stage->op == &weirpy_branch_op || stage->is_source)
            at = end_of_paths(stages, at);
        else
            break;
    }
    return at;
}

/* What all paths of the route take, if that is the same; else anything. */
static const char *types_of_paths(PyObject *stages, Py_ssize_t route)
{
    const char *types = NULL;
    bool is_first = true;
    int depth = 0;
    for (Py_ssize_t at = route + 1; depth >= 0 && stage_at(stages, at); at++) {
        const weir_op *op = stage_at(stages, at)->op;
        const weirpy_stage *taker = stage_at(stages, next_taker(stages, at + 1));
        depth += (op == &weirpy_route_op) - (op == &weirpy_join_op);
        if (op != &weirpy_branch_op || depth != 0)
            continue;
        const char *own = taker ? taker->op->takes : NULL;
        if (!own || (!is_first && (!types || strcmp(own, types) != 0)))
            return NULL;
        types = own;
        is_first = false;
    }
    return types;
}

/* What the stages from that place on take. */
static weirpy_takes takes_from(PyObject *stages, Py_ssize_t at)
{
    at = next_taker(stages, at);
    const weirpy_stage *stage = stage_at(stages, at);
    if (!stage)
        return (weirpy_takes){ 0 };
    if (stage->op == &weirpy_route_op)
        return (weirpy_takes){ .types = types_of_paths(stages, at) };
    bool is_disaggregate = stage->op == &weir_disaggregate;
    return (weirpy_takes){ .types = stage->op->takes,
                           .parts = is_disaggregate ? takes_from(stages, at + 1).types : NULL };
}

static void add_junction(weir_builder *builder, const weirpy_stage *stage, const weir_stage_options *options)
{
    if (stage->op == &weirpy_route_op)
        weir_builder_route_sized(builder, stage->config, stage->config_size, options, sizeof *options);
    else if (stage->op == &weirpy_branch_op)
        weir_builder_branch(builder);
    else if (stage->op == &weirpy_join_op)
        weir_builder_join_sized(builder, options, sizeof *options);
    else
        weir_builder_merge_sized(builder, stage->config, stage->config_size, options, sizeof *options);
}

static int add_stage(weir_builder *builder, PyObject *stages, Py_ssize_t at)
{
    const weirpy_stage *stage = stage_at(stages, at);
    weir_stage_options options = { 0 };
    weirpy_callable callable;
    const void *config = stage->config;
    if (fill_stage(&options, PyTuple_GetItem(PyTuple_GetItem(stages, at), 1), "stage"))
        return -1;
    if (stage->op == &weirpy_call_op || stage->op == &weirpy_iterate_op) {
        callable = *(const weirpy_callable *)config;
        callable.takes = takes_from(stages, at + 1);
        config = &callable;
    }
    if (weirpy_is_junction(stage->op))
        add_junction(builder, stage, &options);
    else if (stage->is_source)
        weir_builder_source_sized(builder, stage->op, config, stage->config_size, &options, sizeof options);
    else
        weir_builder_pipe_sized(builder, stage->op, config, stage->config_size, &options, sizeof options);
    return 0;
}

static weir_builder *describe(PyObject *stages, PyObject *sink)
{
    weir_builder *builder = weir_builder_new();
    weir_stage_options options = { 0 };
    int rc = fill_stage(&options, sink, "sink");
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_Size(stages); i++)
        rc = add_stage(builder, stages, i);
    weir_builder_sink_sized(builder, &options, sizeof options);
    if (rc == 0)
        return builder;
    weir_builder_free(builder);
    return NULL;
}

/* A tuple of pairs (stage, options), checked; NULL with an exception raised. */
static PyObject *check_stages(PyObject *stages)
{
    PyObject *list = PySequence_List(stages);
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++) {
        PyObject *pair = PySequence_Tuple(PyList_GetItem(list, i));
        bool is_pair = pair && PyTuple_Size(pair) == 2 && weirpy_stage_of(PyTuple_GetItem(pair, 0));
        if (is_pair && PyList_SetItem(list, i, pair) == 0)
            continue;
        if (!is_pair) {
            PyErr_Format(PyExc_TypeError, "stage %zd is %R; it must be a stage with its options", i,
                         PyList_GetItem(list, i));
            Py_XDECREF(pair);
        }
        Py_CLEAR(list);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

/* Whether functions of Python run on threads of the pipeline. */
static bool has_callables(PyObject *stages)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(stages); i++) {
        const weir_op *op = stage_at(stages, i)->op;
        if (op == &weirpy_call_op || op == &weirpy_iterate_op || op == &weirpy_route_op)
            return true;
    }
    return false;
}

/* ---- recordings ----------------------------------------------------------------------------------------------------- */

/* A path as bytes, a new reference; NULL with an exception raised. */
static PyObject *path_of(PyObject *path)
{
    PyObject *bytes = NULL;
    return PyUnicode_FSConverter(path, &bytes) ? bytes : NULL;
}

static int open_writer(weir_sqlite_writer **writer, PyObject *path, PyObject *values)
{
    weir_sqlite_options options = { .in_memory = !path };
    weir_error error = { 0 };
    int status;
    if (!path) /* single laps of the last ten minutes: memory stays flat */
        options.keep_ns = 600 * WEIR_SECOND;
    if (weirpy_fill(&options, record_fields, values, "record_options"))
        return -1;
    PyObject *bytes = path ? path_of(path) : NULL;
    if (path && !bytes)
        return -1;
    const char *text = bytes ? PyBytes_AsString(bytes) : NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = weir_sqlite_open(text, &options, writer, &error);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(bytes);
    if (status != WEIR_OK)
        weirpy_raise(&error);
    return status == WEIR_OK ? 0 : -1;
}

static int open_trace(weir_trace_file **trace, PyObject *path, PyObject *values)
{
    weir_trace_options options = { 0 };
    weir_error error = { 0 };
    int status;
    if (weirpy_fill(&options, trace_fields, values, "trace_options"))
        return -1;
    PyObject *bytes = path_of(path);
    if (!bytes)
        return -1;
    const char *text = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS;
    status = weir_trace_open(text, &options, trace, &error);
    Py_END_ALLOW_THREADS;
    Py_DECREF(bytes);
    if (status != WEIR_OK)
        weirpy_raise(&error);
    return status == WEIR_OK ? 0 : -1;
}

/* The number of observers; or -1 with an exception raised. */
static int open_recordings(weirpy_run *run, const own_options *own, weir_observer *observers)
{
    int count = 0, in_memory = own->in_memory ? PyObject_IsTrue(own->in_memory) : 0;
    if (in_memory < 0 || (own->record && open_writer(&run->file_writer, own->record, own->record_options)) ||
        (in_memory && open_writer(&run->memory_writer, NULL, own->record_options)) ||
        (own->trace && open_trace(&run->trace, own->trace, own->trace_options)))
        return -1;
    if (run->file_writer)
        observers[count++] = weir_sqlite_observer(run->file_writer);
    if (run->memory_writer)
        observers[count++] = weir_sqlite_observer(run->memory_writer);
    if (run->trace)
        observers[count++] = weir_trace_observer(run->trace);
    return count;
}

/* ---- the pipeline --------------------------------------------------------------------------------------------------- */

static int fill_options(weir_pipeline_options *options, own_options *own, PyObject *values)
{
    *options = (weir_pipeline_options){ .kept_failures = 1000 };
    *own = (own_options){ 0 };
    if (!values || values == Py_None)
        return 0;
    if (!PyDict_Check(values))
        return weirpy_fill(options, no_fields, values, "pipeline");
    PyObject *rest = PyDict_Copy(values);
    if (!rest)
        return -1;
    own->max_failures = take(values, rest, "max_failures");
    own->resume = take(values, rest, "resume");
    own->record = take(values, rest, "record");
    own->record_options = take(values, rest, "record_options");
    own->in_memory = take(values, rest, "in_memory");
    own->trace = take(values, rest, "trace");
    own->trace_options = take(values, rest, "trace_options");
    int rc = fill_max_failures(&options->max_failures, own->max_failures, "pipeline");
    if (rc == 0)
        rc = weirpy_fill(options, pipeline_fields, rest, "pipeline");
    Py_DECREF(rest);
    return rc;
}

/* The texts to resume from, as C has them, to be freed with PyMem_Free(). `list`, a tuple, keeps them alive. */
static int fill_resume(weir_pipeline_options *options, PyObject *list, const char ***texts)
{
    Py_ssize_t count = PyTuple_Size(list);
    *texts = PyMem_Calloc((size_t)count + 1, sizeof **texts);
    if (!*texts) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!((*texts)[i] = weirpy_utf8(PyTuple_GetItem(list, i))))
            return -1;
    if (count) {
        options->resume = *texts;
        options->num_resume = (size_t)count;
    }
    return 0;
}

/* Builds and starts; the builder is freed. */
static int start(weirpy_pipeline *self, weir_builder *builder, const weir_pipeline_options *given, bool is_python)
{
    weir_pipeline_options options = *given;
    weir_thread_hook hook = weirpy_thread_hook(self->run);
    weir_error error = { 0 };
    int rc;
    if (is_python) {
        options.thread_hooks = &hook;
        options.num_thread_hooks = 1;
    }
    options.freed = weirpy_run_freed;
    options.freed_self = self->run;
    self->kept_failures = options.kept_failures;
    self->needs_done = options.checkpoints == WEIR_CHECKPOINTS_DONE;
    self->acknowledges = options.checkpoints == WEIR_CHECKPOINTS_DELIVERED;
    if (self->acknowledges) /* what the engine delivers, a signal may keep from Python */
        options.checkpoints = WEIR_CHECKPOINTS_DONE;
    self->held_status = WEIR_ETIMEDOUT;
    weirpy_run_hold(self->run);
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_builder_build_sized(builder, &options, sizeof options, &self->pipeline, &error);
    weir_sqlite_writer *writer = self->run->memory_writer ? self->run->memory_writer : self->run->file_writer;
    if (rc == WEIR_OK && writer)
        self->run->run_id = weir_sqlite_run_id(writer);
    Py_END_ALLOW_THREADS;
    if (rc == WEIR_OK)
        return 0;
    weirpy_run_release(self->run);
    weirpy_raise(&error);
    return -1;
}

static int build_run(weirpy_pipeline *self, PyObject *stages, PyObject *sink, const weir_pipeline_options *given,
                     const own_options *own, PyObject *resume)
{
    weir_pipeline_options options = *given;
    weir_observer observers[WEIRPY_MAX_OBSERVERS];
    const char **texts = NULL;
    weir_builder *builder = NULL;
    int rc = fill_resume(&options, resume, &texts);
    int num_observers = rc == 0 ? open_recordings(self->run, own, observers) : -1;
    if (num_observers >= 0)
        builder = describe(stages, sink);
    options.observers = observers;
    options.num_observers = num_observers > 0 ? (size_t)num_observers : 0;
    rc = builder ? start(self, builder, &options, has_callables(stages)) : -1;
    PyMem_Free(texts);
    if (rc)
        weirpy_run_abandon(self->run);
    return rc;
}

int weirpy_pipeline_build(weirpy_pipeline *self, PyObject *stages, PyObject *sink, PyObject *values)
{
    weir_pipeline_options options;
    own_options own;
    if (fill_options(&options, &own, values))
        return -1;
    if (own.resume && PyUnicode_Check(own.resume)) {
        PyErr_SetString(PyExc_TypeError, "resume must be a list of texts, not one text");
        return -1;
    }
    PyObject *resume = own.resume ? PySequence_Tuple(own.resume) : PyTuple_New(0);
    PyObject *checked = resume ? check_stages(stages) : NULL;
    PyObject *kept = checked ? PyTuple_Pack(2, checked, resume) : NULL;
    int rc = -1;
    self->run = kept ? weirpy_run_new(kept) : NULL;
    if (self->run)
        rc = build_run(self, checked, sink, &options, &own, resume);
    Py_XDECREF(kept);
    Py_XDECREF(checked);
    Py_XDECREF(resume);
    return rc;
}
