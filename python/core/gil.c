/*
 * The GIL on threads that are not Python's. Each thread of a pool keeps one thread state from its begin to its end, so a task
 * only takes the GIL. At the end of the interpreter no thread may take it any more: what weir still releases then is left
 * to the end of the process. A thread that is inside a callable at that moment is ended by Python itself.
 *
 * Forks. To make a thread state, Python takes a lock of the interpreter, without the GIL. Python 3.11 takes the same
 * lock in a forked child before it makes the lock anew: a child that was forked while a thread had it would hang. So
 * this file makes thread states with a lock of its own, which each fork waits for. Later Pythons need none: 3.12
 * makes the lock anew first, and 3.13 has it during the fork, which is why ours must not be there then.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "python/core/core.h"

static atomic_bool is_ending;
static _Thread_local const void *run_of_thread;

/* Set when the module is loaded. NULL = this Python needs no lock for forks. */
static PyInterpreterState *guarded;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* whoever has it does not wait for the GIL */

static void lock_making(void)
{
    pthread_mutex_lock(&making);
}

static void unlock_making(void)
{
    pthread_mutex_unlock(&making);
}

int weirpy_gil_ready(PyObject *module)
{
    (void)module;
    if (guarded || Py_Version >= 0x030C0000)
        return 0;
    guarded = PyInterpreterState_Get();
    if (pthread_atfork(lock_making, unlock_making, unlock_making) == 0)
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* For a thread that has no state. False = it is left to Python. */
static bool take_with_new_state(PyGILState_STATE *state)
{
    lock_making();
    PyThreadState *made = PyThreadState_New(guarded);
    unlock_making();
    if (!made)
        return false;
    PyEval_RestoreThread(made);
    *state = PyGILState_UNLOCKED; /* so giving it frees the state */
    return true;
}

bool weirpy_gil_take(PyGILState_STATE *state)
{
    if (atomic_load(&is_ending) || !Py_IsInitialized())
        return false;
    if (guarded && !PyGILState_GetThisThreadState() && take_with_new_state(state))
        return true;
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
