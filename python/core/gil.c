/*
 * The GIL on threads that are not Python's. Each thread of a pool keeps one thread state from its begin to its end, so a task
 * only takes the GIL. At the end of the interpreter no thread may take it any more: what weir still releases then is left
 * to the end of the process. A thread that is inside a callable at that moment is ended by Python itself.
 */
#include <stdatomic.h>

#include "python/core/core.h"

static atomic_bool is_ending;
static _Thread_local const void *run_of_thread;

bool weirpy_gil_take(PyGILState_STATE *state)
{
    if (atomic_load(&is_ending) || !Py_IsInitialized())
        return false;
    *state = PyGILState_Ensure();
    return true;
}

void weirpy_gil_give(PyGILState_STATE state)
{
    PyGILState_Release(state);
}

void weirpy_gil_end(void)
{
    atomic_store(&is_ending, true);
}

/* What it returns is the thread's state without the GIL; NULL = none was made. */
static void *begin_thread(void *run, const char *pool)
{
    PyGILState_STATE state;
    (void)pool;
    run_of_thread = run;
    return weirpy_gil_take(&state) ? PyEval_SaveThread() : NULL;
}

static void end_thread(void *run, void *state)
{
    (void)run;
    run_of_thread = NULL;
    if (!state || atomic_load(&is_ending))
        return;
    PyEval_RestoreThread(state);
    PyGILState_Release(PyGILState_UNLOCKED); /* the one of the begin: it frees the state */
}

weir_thread_hook weirpy_thread_hook(void *run)
{
    return (weir_thread_hook){ .self = run, .begin = begin_thread, .end = end_thread };
}

const void *weirpy_run_of_thread(void)
{
    return run_of_thread;
}
