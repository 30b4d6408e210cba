#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>

#include "python/core/pipeline.h"

weirpy_run *weirpy_run_new(PyObject *kept)
{
    weirpy_run *run = calloc(1, sizeof *run);
    if (!run) {
        PyErr_NoMemory();
        return NULL;
    }
    pthread_mutex_init(&run->lock, NULL);
    pthread_mutex_init(&run->reader_lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    run->process = getpid();
    run->kept = Py_NewRef(kept);
    run->references = 1;
    return run;
}

void weirpy_run_hold(weirpy_run *run)
{
    pthread_mutex_lock(&run->lock);
    run->references++;
    pthread_mutex_unlock(&run->lock);
}

void weirpy_run_release(weirpy_run *run)
{
    pthread_mutex_lock(&run->lock);
    bool is_last = --run->references == 0;
    pthread_mutex_unlock(&run->lock);
    if (!is_last)
        return;
    weir_recording_close(run->recording);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->reader_lock);
    pthread_mutex_destroy(&run->lock);
    free(run);
}

/* ---- the end of the pipeline ---------------------------------------------------------------------------------------- */

/* Keeps the first error. Without the GIL. */
static weir_error close_recordings(weirpy_run *run)
{
    weir_error loss = { 0 };
    weir_sqlite_close(run->file_writer, &loss);
    weir_sqlite_close(run->memory_writer, &loss);
    weir_trace_close(run->trace, &loss);
    run->file_writer = run->memory_writer = NULL;
    run->trace = NULL;
    return loss;
}

static void release_kept(weirpy_run *run)
{
    PyGILState_STATE state;
    if (!weirpy_gil_take(&state))
        return;
    Py_CLEAR(run->kept);
    weirpy_gil_give(state);
}

void weirpy_run_freed(void *self)
{
    weirpy_run *run = self;
    weir_recording *recording = NULL;
    weir_sqlite_writer *writer = run->memory_writer ? run->memory_writer : run->file_writer;
    pthread_mutex_lock(&run->lock);
    run->is_releasing = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    if (writer)
        weir_recording_open_writer(writer, &recording, NULL); /* if it fails, closing says why */
    weir_error loss = close_recordings(run);
    release_kept(run);
    pthread_mutex_lock(&run->lock);
    run->recording = recording;
    run->loss = loss;
    run->is_freed = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    weirpy_run_release(run);
}

void weirpy_run_abandon(weirpy_run *run)
{
    Py_CLEAR(run->kept);
    Py_BEGIN_ALLOW_THREADS;
    close_recordings(run);
    Py_END_ALLOW_THREADS;
}

/* Without the GIL. Waits a while for the end, at most up to until_ns. True = it is over, or time is: *is_freed says which. */
static bool wait_slice(weirpy_run *run, int64_t until_ns, bool *is_freed)
{
    const int64_t now_ns = weir_clock_ns(), slice_ns = now_ns + WEIRPY_SLICE_NS;
    pthread_mutex_lock(&run->lock);
    int64_t end_ns = !run->is_releasing && until_ns < slice_ns ? until_ns : slice_ns;
    struct timespec end = { end_ns / WEIR_SECOND, end_ns % WEIR_SECOND };
    if (!run->is_freed && end_ns > now_ns)
        pthread_cond_clockwait(&run->changed, &run->lock, CLOCK_MONOTONIC, &end);
    *is_freed = run->is_freed;
    bool is_over = run->is_freed || (!run->is_releasing && weir_clock_ns() >= until_ns);
    pthread_mutex_unlock(&run->lock);
    return is_over;
}

int weirpy_run_wait_freed(weirpy_run *run, int64_t timeout_ns)
{
    const int64_t now_ns = weir_clock_ns();
    const int64_t until_ns =
        timeout_ns == WEIR_FOREVER || timeout_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + timeout_ns;
    for (bool is_freed = false, is_over = false;;) {
        Py_BEGIN_ALLOW_THREADS;
        is_over = wait_slice(run, until_ns, &is_freed);
        Py_END_ALLOW_THREADS;
        if (is_over)
            return is_freed;
        if (PyErr_CheckSignals())
            return -1;
    }
}
