/* Threads that call user code on behalf of the service thread, which must not wait: op->cancel, and the log. */
#ifndef ENGINE_RUN_CANCEL_THREADS_H
#define ENGINE_RUN_CANCEL_THREADS_H

#include "run_state.h"

enum { MAX_CANCEL_THREADS = 16 };

int weir__cancel_threads_init(weir_pipeline *pipeline, weir_error *error);
void weir__cancel_threads_destroy(weir_pipeline *pipeline);

/* A log line about a task that has run very long. */
struct stall_warning {
    struct stall_warning *next;
    char text[1200];
};

/* Service thread only. Takes ownership of the warning. */
void weir__cancel_threads_log(weir_pipeline *pipeline, struct stall_warning *warning);

/* Service thread only. Starts the pending calls on an idle thread or a new one. *due_ns: when to check again. */
void weir__cancel_threads_serve(weir_pipeline *pipeline, int64_t *due_ns);

/* Service thread only, at the end of the run. Returns when all calls have returned. */
void weir__cancel_threads_join(weir_pipeline *pipeline);

#endif
