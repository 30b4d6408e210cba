/* Threads of the engine: they have a name and block all signals. */
#ifndef ENGINE_STATE_THREAD_H
#define ENGINE_STATE_THREAD_H

#include <uv.h>

struct weir_pipeline;
struct weir_pool_thread;

/* Read in signal handlers, where a thread must not allocate its variables: they are there from its start. */
#define WEIR_SIGNAL_SAFE __attribute__((tls_model("initial-exec")))

enum { THREAD_NAME_BYTES = 16 /* the limit of Linux */ };

/* Starts a thread in which all signals are blocked, so that the program's handlers run on its own threads. ps, gdb
   and perf show the name, truncated to 15 bytes. Returns 0 or a UV_ error. */
int weir__thread_start(uv_thread_t *thread, const char *name, uv_thread_cb run, void *argument);

/* The pipeline whose pool, service, observer or cancel thread this is. NULL = none. */
extern _Thread_local const struct weir_pipeline *weir__pipeline_of_thread WEIR_SIGNAL_SAFE;

/* The thread of a pool that this is. NULL = none. */
extern _Thread_local const struct weir_pool_thread *weir__own_pool_thread WEIR_SIGNAL_SAFE;

#endif
