/*
 * weir._media.Reader: a weir_video_reader, for weir/_video.py.
 *
 * Calls give up the GIL; so two threads could be in one reader. Each call takes the reader's lock first, also without
 * the GIL. A call runs Python code, of signal handlers and file objects, which may use the reader again: that is
 * refused, as it would wait for itself.
 */
#include <stdatomic.h>
#include <string.h>

#include "python/media/media.h"

typedef struct reader_object {
    PyObject ob_base;
    weir_video_reader *reader; /* NULL = closed */
    weirpy_source source;
    weirpy_video video;
    PyObject *options; /* what the video config points to */
    PyThread_type_lock lock;
    atomic_ulong owner; /* the thread that has the lock; 0 = none */
    weir_item named;    /* nothing but the label, for messages: a URL is without its secrets */
    int64_t asked_ns;   /* for is_interrupted */
} reader_object;

static PyTypeObject *reader_type;

static bool should_stop(void *self)
{
    return weirpy_core_table->is_interrupted(&((reader_object *)self)->asked_ns);
}

/* The error, with the name of the file. Returns NULL. */
static PyObject *raise_error(reader_object *self, weir_error *error)
{
    if (!*error->label && self->named.label)
        snprintf(error->label, sizeof error->label, "%s", self->named.label);
    return weirpy_raise(error);
}

/* ---- opening and closing ------------------------------------------------------------------------------------------ */

static int open_reader(reader_object *self, PyObject *object, const char *name)
{
    weir_video_source source = { .name = name, .should_stop = should_stop, .self = self };
    weir_error error = { 0 };
    int rc;
    if (weirpy_source_begin(&self->source, object, &source))
        return -1;
    if (source.path || name)
        weir_item_set_address(&self->named, source.path ? source.path : name, 0);
    Py_BEGIN_ALLOW_THREADS;
    const weirpy_video *video = &self->video;
    rc = video->is_isolated
             ? weir_isolated_reader_open(&self->reader, &source, sizeof source, &video->config, sizeof video->config,
                                         &video->isolated, sizeof video->isolated, &error)
             : weir_video_reader_open(&self->reader, &source, sizeof source, &video->config, sizeof video->config,
                                      &error);
    Py_END_ALLOW_THREADS;
    if (rc == WEIR_OK && !PyErr_Occurred())
        return 0;
    raise_error(self, &error);
    return -1;
}

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = { "source", "name", "options", NULL };
    PyObject *source, *options = NULL;
    const char *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|zO", names, &source, &name, &options))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    reader_object *self = (reader_object *)allocate(type, 0);
    if (!self)
        return NULL;
    self->options = Py_XNewRef(options);
    self->lock = PyThread_allocate_lock();
    if (!self->lock)
        PyErr_NoMemory();
    else if (weirpy_video_fill(&self->video, options) == 0 && open_reader(self, source, name) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void close_reader(reader_object *self)
{
    weir_video_reader *reader = self->reader;
    self->reader = NULL;
    if (reader) {
        Py_BEGIN_ALLOW_THREADS;
        weir_video_reader_free(reader);
        Py_END_ALLOW_THREADS;
    }
    weirpy_source_end(&self->source);
    self->source = (weirpy_source){ 0 };
}

static void reader_dealloc(PyObject *object)
{
    reader_object *self = (reader_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    close_reader(self);
    weirpy_video_end(&self->video);
    Py_XDECREF(self->options);
    if (self->lock)
        PyThread_free_lock(self->lock);
    weir_item_release(&self->named);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* At the end of the interpreter, the thread that has the lock may have ended. */
static bool may_wait_on(void)
{
    PyGILState_STATE state;
    if (!weirpy_core_table->gil_take(&state)) {
        PyErr_SetString(PyExc_RuntimeError, "the interpreter ends");
        return false;
    }
    weirpy_core_table->gil_give(state);
    return true;
}

/* Waits for the calls of other threads; Ctrl-C ends that. False with an exception raised. */
static bool take_lock(reader_object *self)
{
    PyLockStatus status = PyThread_acquire_lock(self->lock, NOWAIT_LOCK) ? PY_LOCK_ACQUIRED : PY_LOCK_FAILURE;
    if (status != PY_LOCK_ACQUIRED && atomic_load(&self->owner) == PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError, "this thread is inside a call of this video already");
        return false;
    }
    while (status != PY_LOCK_ACQUIRED) {
        if (PyErr_CheckSignals() || !may_wait_on())
            return false;
        Py_BEGIN_ALLOW_THREADS;
        status = PyThread_acquire_lock_timed(self->lock, WEIRPY_SLICE_NS / 1000, 0);
        Py_END_ALLOW_THREADS;
    }
    atomic_store(&self->owner, PyThread_get_thread_ident());
    return true;
}

static void unlock_reader(reader_object *self)
{
    atomic_store(&self->owner, 0);
    PyThread_release_lock(self->lock);
    weirpy_core_table->drain_log();
}

/* False: it is closed, or waiting was ended; an exception is raised, and nothing is locked. */
static bool lock_reader(reader_object *self)
{
    if (!take_lock(self))
        return false;
    if (self->reader)
        return true;
    unlock_reader(self);
    PyErr_SetString(PyExc_ValueError, "the video is closed");
    return false;
}

static PyObject *reader_close(PyObject *object, PyObject *unused)
{
    reader_object *self = (reader_object *)object;
    (void)unused;
    if (!take_lock(self))
        return NULL;
    close_reader(self);
    unlock_reader(self);
    Py_RETURN_NONE;
}

/* ---- facts -------------------------------------------------------------------------------------------------------- */

/* num / den as a pair; None = unknown. */
static PyObject *rate_of(uint32_t num, uint32_t den)
{
    return num ? Py_BuildValue("(II)", num, den) : Py_NewRef(Py_None);
}

static PyObject *info_object(const weir_video_info *info)
{
    return Py_BuildValue(
        "{sssss(II)sisOsNsIsNsNs(ii)sOsKsKsLsLsIsO}", "codec", info->codec, "container", info->container, "size",
        info->height, info->width, "rotation", (int)info->rotation, "mirrored",
        info->is_mirrored ? Py_True : Py_False, "sample_aspect",
        rate_of(info->sample_aspect_num, info->sample_aspect_den), "bit_depth", info->bit_depth, "average_rate",
        rate_of(info->average_rate_num, info->average_rate_den), "real_rate",
        rate_of(info->real_rate_num, info->real_rate_den), "time_base", info->time_base_num, info->time_base_den,
        "exact", info->is_exact ? Py_True : Py_False, "num_frames", (unsigned long long)info->num_frames,
        "num_keyframes", (unsigned long long)info->num_keyframes, "duration_ns", (long long)info->duration_ns,
        "start_ns", (long long)info->start_ns, "stream", info->stream, "audio", info->has_audio ? Py_True : Py_False);
}

static PyObject *reader_info(PyObject *object, PyObject *unused)
{
    reader_object *self = (reader_object *)object;
    weir_video_info info = { 0 };
    (void)unused;
    if (!lock_reader(self))
        return NULL;
    weir_video_reader_info(self->reader, &info, sizeof info);
    unlock_reader(self);
    return info_object(&info);
}

static PyObject *reader_scan(PyObject *object, PyObject *unused)
{
    reader_object *self = (reader_object *)object;
    weir_error error = { 0 };
    int rc;
    (void)unused;
    if (!lock_reader(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_video_reader_scan(self->reader, &error);
    Py_END_ALLOW_THREADS;
    unlock_reader(self);
    if (rc != WEIR_OK || PyErr_Occurred())
        return raise_error(self, &error);
    Py_RETURN_NONE;
}

static PyObject *times_object(const weir_frame_times *times)
{
    PyObject *list = PyList_New((Py_ssize_t)times->num_frames), *keys = PyList_New(0);
    for (uint64_t i = 0; list && keys && i < times->num_frames; i++) {
        PyObject *number = times->is_key[i] ? PyLong_FromUnsignedLongLong(i) : NULL;
        PyList_SetItem(list, (Py_ssize_t)i, PyLong_FromLongLong(times->times_ns[i]));
        if (number)
            PyList_Append(keys, number);
        Py_XDECREF(number);
    }
    return list && keys ? Py_BuildValue("(NNL)", list, keys, (long long)times->end_ns) : PyErr_NoMemory();
}

static PyObject *reader_times(PyObject *object, PyObject *unused)
{
    reader_object *self = (reader_object *)object;
    weir_frame_times *times = NULL;
    weir_error error = { 0 };
    (void)unused;
    if (!lock_reader(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    weir_video_reader_times(self->reader, &times, &error);
    Py_END_ALLOW_THREADS;
    unlock_reader(self);
    PyObject *result = times && !PyErr_Occurred() ? times_object(times) : raise_error(self, &error);
    weir_frame_times_free(times);
    return result;
}

/* ---- frames ------------------------------------------------------------------------------------------------------- */

static void release_frames(weir_frames *frames)
{
    Py_BEGIN_ALLOW_THREADS;
    weir_frames_free(frames);
    Py_END_ALLOW_THREADS;
}

/* The frames, which it owns; or the error. */
static PyObject *frames_object(reader_object *self, weir_frames *frames, weir_error *error)
{
    weir_item item = { .data = frames, .release = weir_frames_release, .type = WEIR_TYPE_FRAMES, .label = "" };
    if (!frames || PyErr_Occurred()) {
        release_frames(frames);
        return raise_error(self, error);
    }
    if (self->named.label)
        weir_item_copy_label(&item, &self->named);
    PyObject *object = weirpy_wrap_frames(&item);
    if (!object)
        weir_item_release(&item);
    return object;
}

/* A request: a sampling, and a picture or that of the reader. */
typedef struct request {
    weir_sampling sampling;
    weir_picture_config picture;
    int64_t *numbers;
    bool has_picture;
} request;

/* Locks the reader, too. Otherwise an exception is raised, and there is nothing to end. */
static bool begin_request(reader_object *self, request *to, PyObject *args)
{
    PyObject *sampling = NULL, *picture = NULL;
    *to = (request){ 0 };
    if (!PyArg_ParseTuple(args, "|OO", &sampling, &picture) ||
        weirpy_sampling_fill(&to->sampling, sampling, &to->numbers) || weirpy_picture_fill(&to->picture, picture) ||
        !lock_reader(self)) {
        PyMem_Free(to->numbers);
        return false;
    }
    to->has_picture = picture && picture != Py_None;
    return true;
}

static void end_request(reader_object *self, request *asked)
{
    unlock_reader(self);
    PyMem_Free(asked->numbers);
}

static PyObject *reader_frames(PyObject *object, PyObject *args)
{
    reader_object *self = (reader_object *)object;
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    request asked;
    if (!begin_request(self, &asked, args))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    weir_video_reader_frames(self->reader, &asked.sampling, sizeof asked.sampling,
                             asked.has_picture ? &asked.picture : NULL, sizeof asked.picture, &frames, &error);
    Py_END_ALLOW_THREADS;
    end_request(self, &asked);
    return frames_object(self, frames, &error);
}

static PyObject *reader_begin(PyObject *object, PyObject *args)
{
    reader_object *self = (reader_object *)object;
    weir_error error = { 0 };
    request asked;
    int rc;
    if (!begin_request(self, &asked, args))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_video_reader_begin(self->reader, &asked.sampling, sizeof asked.sampling,
                                 asked.has_picture ? &asked.picture : NULL, sizeof asked.picture, &error);
    Py_END_ALLOW_THREADS;
    end_request(self, &asked);
    if (rc != WEIR_OK || PyErr_Occurred())
        return raise_error(self, &error);
    Py_RETURN_NONE;
}

static PyObject *reader_next(PyObject *object, PyObject *unused)
{
    reader_object *self = (reader_object *)object;
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    int rc;
    (void)unused;
    if (!lock_reader(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_video_reader_next(self->reader, &frames, &error);
    Py_END_ALLOW_THREADS;
    unlock_reader(self);
    if (rc == WEIR_EOF && !PyErr_Occurred())
        Py_RETURN_NONE;
    return frames_object(self, frames, &error);
}

static PyObject *reader_set_number(PyObject *object, PyObject *args)
{
    reader_object *self = (reader_object *)object;
    PyObject *of_epoch, *of_number;
    if (!PyArg_ParseTuple(args, "OO", &of_epoch, &of_number)) /* "K" would not notice what is too large */
        return NULL;
    unsigned long long epoch = PyLong_AsUnsignedLongLong(of_epoch);
    unsigned long long number = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(of_number);
    if (PyErr_Occurred() || !lock_reader(self))
        return NULL;
    weir_video_reader_set_number(self->reader, epoch, number);
    unlock_reader(self);
    Py_RETURN_NONE;
}

static PyMethodDef reader_methods[] = {
    { "info", reader_info, METH_NOARGS, "Facts about the stream." },
    { "scan", reader_scan, METH_NOARGS, "Finds all frames: then the facts are exact." },
    { "times", reader_times, METH_NOARGS,
      "The times of all frames in ns, the numbers of keyframes, and the end in ns." },
    { "frames", reader_frames, METH_VARARGS, "frames(sampling=None, picture=None): the frames that are selected." },
    { "begin", reader_begin, METH_VARARGS, "begin(sampling=None, picture=None): next() then returns the frames." },
    { "next", reader_next, METH_NOARGS, "The next frames of the request that was begun; None at its end." },
    { "set_number", reader_set_number, METH_VARARGS, "set_number(epoch, number): what determines random frames." },
    { "close", reader_close, METH_NOARGS, "Closes the file." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot reader_slots[] = {
    { Py_tp_new, reader_new },
    { Py_tp_dealloc, reader_dealloc },
    { Py_tp_methods, reader_methods },
    { Py_tp_doc, "An open video. weir.Video is for people." },
    { 0, NULL },
};

static PyType_Spec reader_spec = {
    .name = "weir._media.Reader",
    .basicsize = sizeof(reader_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = reader_slots,
};

int weirpy_reader_ready(PyObject *module)
{
    reader_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &reader_spec, NULL);
    return reader_type ? PyModule_AddType(module, reader_type) : -1;
}
