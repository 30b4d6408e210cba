/* What only engine/run needs of a pipeline. */
#ifndef ENGINE_RUN_RUN_ROOM_H
#define ENGINE_RUN_RUN_ROOM_H

#include "engine/state/line_limit.h"
#include "engine/state/run_state.h"

enum { MAX_CANCEL_THREADS = 16 };

/* See cancel_threads.c. */
typedef struct weir__cancel_thread {
    /* owned by the service thread */
    uv_thread_t thread;
    bool started; /* and not joined */

    weir_pipeline *pipeline; /* immutable while it is started */
    atomic_bool has_ended;   /* there was nothing more to call; the thread only has to be joined */
} weir__cancel_thread;

typedef struct weir__closing weir__closing; /* see closing.c */

/* The service thread. */
typedef struct weir__service {
    bool wake_made; /* pipeline->service_wake; immutable after init */

    /* owned by the service thread */
    uv_thread_t thread;
    bool started;
    bool stop_reported, failure_reported;
    int end_status;  /* once the work has ended */
    bool work_ended; /* what is to be done when the work has ended is done */
    weir__line_limit stall_lines;
    weir__cancel_thread cancel_threads[MAX_CANCEL_THREADS];
    int64_t cancel_thread_ns; /* when one was last started */
} weir__service;

/* Stops by signals: any thread, also signal handlers; see signals.c. */
typedef struct weir__signal_stop {
    atomic_bool wanted;
    atomic_int signal;                       /* the one that stopped the pipeline; 0 = none */
    _Atomic(weir_pipeline *) next_on_signal; /* written with the lock of signals.c, as on_signals */
    bool on_signals;
} weir__signal_stop;

/* A virtual speedup, see speedup.h. */
typedef struct weir__speedup {
    uv_mutex_t lock; /* held for some ns; no other lock is taken with it. Guards the others: */
    double share;    /* by which the chosen stage is faster */
    int64_t held_ns; /* by how much everything should have been held back until since_ns */
    int64_t since_ns;
    uint32_t num_running; /* steps of the chosen stage that run */
    uint32_t number;      /* of this speedup, among those of the process */
} weir__speedup;

typedef struct weir__run {
    /* immutable after init */
    weir_thread_hook *thread_hooks;
    size_t num_thread_hooks;

    weir__service service;
    weir__signal_stop stop;
    weir__speedup speedup;
    /* Guarded by pipeline->lock: weir_task_complete() of tasks that are not pending. */
    weir__line_limit completion_lines;

    weir__closing *closing; /* weir_pipeline_free() or the builder frees it, unless free_closed is set */
    /* pipeline.c, with pipeline->lock, before pipeline->closing is set: the service thread calls it at its end, and the pipeline
       is freed. NULL = weir_pipeline_free() does that. */
    void (*free_closed)(weir_pipeline *pipeline);

    void (*freed)(void *self); /* weir_pipeline_options.freed; immutable after init, as freed_self */
    void *freed_self;
} weir__run;

#endif
