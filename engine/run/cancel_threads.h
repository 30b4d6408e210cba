/* Threads that call op->cancel on behalf of the service thread, which must not wait. Service thread only. */
#ifndef ENGINE_RUN_CANCEL_THREADS_H
#define ENGINE_RUN_CANCEL_THREADS_H

#include "engine/state/run_state.h"

/* Starts a thread for the pending calls if none has been started just now. *due_ns: when to check again. */
void weir__cancel_threads_serve(weir_pipeline *pipeline, int64_t *due_ns);

/* Call it when the work has ended, so no call is pending. It returns when all threads have ended. */
void weir__cancel_threads_join(weir_pipeline *pipeline);

#endif
