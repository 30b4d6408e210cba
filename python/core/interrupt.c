#include <weir/clock.h>

#include "python/core/core.h"

/*
 * should_stop functions are called between packets, thousands of times in a second, without the GIL. Taking it each time would
 * cost more than decoding.
 */
bool weirpy_is_interrupted(int64_t *last_ns)
{
    int64_t now_ns = weir_clock_ns();
    if (*last_ns && now_ns - *last_ns < WEIRPY_SLICE_NS)
        return false;
    *last_ns = now_ns;
    PyGILState_STATE state = PyGILState_Ensure();
    bool is_interrupted = PyErr_Occurred() || PyErr_CheckSignals();
    PyGILState_Release(state); /* the thread keeps its exception: it had a state before the call */
    return is_interrupted;
}
